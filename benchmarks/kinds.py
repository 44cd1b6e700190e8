"""Kinds of tables that people have, made at random: where a solver may be slow.

Each is a function of the number of rows and a generator, and returns features, classes of all rows
(0 and 1, or more), and row weights or None.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse


def gaussians_near(n, rng):
    return _gaussians(n, rng, 30, 1.5)


def gaussians_far(n, rng):
    """Classes 20 standard deviations apart."""
    return _gaussians(n, rng, 30, 10.0)


def _gaussians(n, rng, d, half):
    truth = rng.integers(0, 2, n)
    mean = rng.normal(size=d)
    mean *= half / np.linalg.norm(mean)
    return rng.normal(size=(n, d)) + np.where(truth, 1.0, -1.0)[:, None] * mean, truth, None


def one_hot(n, rng):
    """Six categorical columns, whose levels are as frequent as words."""
    X = np.hstack([_levels(n, rng, k) for k in (4, 5, 8, 10, 14, 20)])
    return X, _noisy_classes(X, rng), None


def _levels(n, rng, k):
    share = 1.0 / np.arange(1, k + 1)
    return np.eye(k)[rng.choice(k, n, p=share / share.sum())]


def _noisy_classes(X, rng, share=0.5):
    """Classes that a linear function of the columns tells, but for noise of its own size."""
    X = np.asarray(X.todense()) if sparse.issparse(X) else X
    spread = X.std(axis=0)
    score = (X - X.mean(axis=0)) @ (rng.normal(size=X.shape[1]) / np.where(spread > 0, spread, 1))
    score = score / score.std() + rng.normal(size=len(score))
    return (score > np.quantile(score, 1.0 - share)).astype(int)


def mixed(n, rng):
    """Categories, amounts and counts."""
    X = np.hstack(
        [
            *(_levels(n, rng, k) for k in (3, 6, 12)),
            np.exp(rng.normal(size=(n, 6)) * 1.5),
            rng.poisson(3.0, (n, 6)),
        ]
    )
    return X, _noisy_classes(X, rng), None


def copies(n, rng):
    """Every row is there 400 times."""
    X, truth, _ = _gaussians(max(n // 400, 2), rng, 15, 1.0)
    order = rng.permutation(np.arange(n) % len(X))
    return X[order], truth[order], None


def student(n, rng):
    """Tails so heavy that there is no variance."""
    X = rng.standard_t(1.5, (n, 15))
    return X, _noisy_classes(X, rng), None


def correlated(n, rng):
    """Columns with a condition number of a million."""
    d = 30
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    X = rng.normal(size=(n, d)) * np.logspace(0, -6, d) @ rotation
    return X, _noisy_classes(X, rng), None


def sparse_counts(n, rng):
    X = sparse.csr_array(rng.poisson(0.05, (n, 80)).astype(float))
    return X, _noisy_classes(X, rng), None


def grid(n, rng):
    """Measurements with one digit."""
    X, truth, _ = _gaussians(n, rng, 10, 1.0)
    return np.round(X, 1), truth, None


def scales(n, rng):
    """Columns in units from a millionth to a million."""
    X, truth, _ = _gaussians(n, rng, 25, 1.0)
    return X * np.logspace(-6, 6, X.shape[1]), truth, None


def rare_class(n, rng):
    """One row in a hundred is of the second class."""
    X = rng.normal(size=(n, 20))
    truth = _noisy_classes(X, rng, 0.01)
    X[:, :3] += truth[:, None]
    return X, truth, None


def weighted(n, rng):
    X, truth, _ = _gaussians(n, rng, 20, 1.0)
    return X, truth, np.exp(1.5 * rng.normal(size=n))


def single_precision(n, rng):
    X, truth, _ = _gaussians(n, rng, 30, 1.0)
    return X.astype(np.float32), truth, None


def three_classes(n, rng):
    truth = rng.integers(0, 3, n)
    return rng.normal(size=(n, 20)) + (rng.normal(size=(3, 20)) * 0.6)[truth], truth, None


KINDS = {
    f.__name__.replace("_", " "): f
    for f in (
        *(gaussians_near, gaussians_far, one_hot, mixed, copies, student, correlated),
        *(sparse_counts, grid, scales, rare_class, weighted, single_precision, three_classes),
    )
}


@dataclass(frozen=True)
class Table:
    """A table most of whose labels are hidden.

    Attributes
    ----------
    X, y : arrays
        Features; classes, or -1 for an unlabeled row.
    weights : array or None
    """

    X: object
    y: object
    weights: object


def make(kind, n_rows, n_labeled=None, seed=0):
    """Return a table of a kind, with labels of rows at random: 2 d + 10 unless said."""
    rng = np.random.default_rng(seed)
    X, truth, weights = KINDS[kind](n_rows, rng)
    n_labeled = 2 * X.shape[1] + 10 if n_labeled is None else n_labeled
    order = rng.permutation(n_rows)
    first = [order[np.flatnonzero(truth[order] == k)[0]] for k in np.unique(truth)]
    known = np.r_[first, order[:n_labeled]]
    y = np.full(n_rows, -1)
    y[known] = truth[known]
    return Table(X, y, weights)
