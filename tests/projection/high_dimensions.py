"""Problems for paths that are chosen by the number of columns, and how to choose them all the same.

The constants that decide are set, so that small problems take each path.
"""

import numpy as np
from scipy import sparse

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.projection import coordinates
from neverworse.projection.coordinates import gram
from tests.exact import loss_penalty

NEVER = 10**9
PATHS = ("gram", "kernel", "rows", "free")


def choose(monkeypatch, path):
    """Let fits take a path: Gram matrix, kernel, factors of the rows, conjugate gradients."""
    high = 0 if path == "kernel" else NEVER
    monkeypatch.setattr(coordinates, "HIGH", high)
    monkeypatch.setattr(gram, "HIGH", 0 if path == "rows" else high)
    monkeypatch.setattr(coordinates, "LARGEST_GRAM", 0 if path == "free" else NEVER)


def make(n, d, n_classes=2, seed=0, *, is_sparse=False, n_labeled=None):
    """Return rows and labels, of which a fifth (or so many) are known."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % n_classes)
    X = rng.normal(size=(n, d)) + 0.6 * rng.normal(size=(n_classes, d))[truth]
    if is_sparse:
        X = sparse.csr_matrix(np.where(rng.random((n, d)) < 0.25, X, 0.0))
    y = np.full(n, -1)
    n_labeled = n // 5 if n_labeled is None else n_labeled
    y[:n_labeled] = truth[:n_labeled]
    y[:n_classes] = np.arange(n_classes)
    return X, y


def text_like(n, d, n_classes=2, seed=0, per_row=60):
    """Return sparse rows of unit length with words that depend on the class, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % n_classes)
    # Frequent words first, as in a text; each class prefers words of its own.
    words = (d * rng.random((n, per_row)) ** 3).astype(int)
    own = rng.random((n, per_row)) < 0.2
    words[own] = (words[own] // n_classes) * n_classes + np.repeat(truth, own.sum(axis=1))
    words = np.minimum(words, d - 1)
    counts = np.ones(words.size)
    X = sparse.csr_matrix((counts, words.ravel(), np.arange(0, words.size + 1, per_row)), (n, d))
    X.sum_duplicates()
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sparse.csr_matrix(X.multiply(1.0 / length[:, None])), truth


def fit(X, y, weights=None, **settings):
    settings = {"alpha": 0.0, "tol": 1e-11, **settings}
    return ProjectedLeastSquaresClassifier(**settings).fit(X, y, sample_weight=weights)


def assert_same(model, reference, rtol):
    """Check weights against the largest one, and what is proved."""
    size = np.abs(reference.coef_).max()
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=0, atol=rtol * size)
    atol = 10 * rtol * max(1.0, np.abs(reference.intercept_).max())
    np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=0, atol=atol)
    ours, theirs = model.certificate_, reference.certificate_
    assert ours.holds == theirs.holds
    assert ours.reason == theirs.reason
    size = max(abs(theirs.worst_case), abs(theirs.best_case))
    np.testing.assert_allclose(
        [ours.worst_case, ours.best_case],
        [theirs.worst_case, theirs.best_case],
        rtol=0,
        atol=max(10 * rtol, 1e-11) * size,
    )


def worst_difference(model, X, y, weights=None):
    """Return the loss less the supervised one for the worst labeling, from scores."""
    s = np.ones(len(y)) if weights is None else weights
    scores = np.atleast_2d(model.decision_function(X).T) + 0.5
    base = np.atleast_2d(model.supervised_.decision_function(X).T) + 0.5
    several = len(model.classes_) > 2
    target = (y == np.asarray(model.classes_)[:, None]) if several else (y == model.classes_[1])
    target = np.atleast_2d(np.asarray(target, float))
    t = scores - base
    known = y != -1
    total = (s * t * (t + 2 * base))[:, :].sum()
    total -= 2 * (s * t * target)[:, known].sum()
    free = t[:, ~known]
    worst = -free.min(axis=0) if several else np.maximum(0.0, -free[0])
    penalty = (model.coef_**2).sum() - (model.supervised_.coef_**2).sum()
    return total + 2 * (s[~known] * worst).sum() + float(loss_penalty(model)) * penalty
