"""The transductive machine beside a plain implementation of SVMlin's schedule.

SVMlin stops its solver early. Here the machine on the way, and the last one, are found by a
trust-region method of SciPy to many digits, so that only the schedule is shared.
"""

import numpy as np
import pytest
from scipy import optimize

from neverworse.methods import TransductiveSVMClassifier
from neverworse.methods.svm._transductive import label_like_svmlin
from tests.methods.svm.problems import clusters, make, rare_class, raw_units


def train(E, target, cost, penalty, start):
    """Minimise (λ/2)|w|² + ½ Σ c max(0, 1 - t w·e)², constant column and its weight included."""

    def shortfall(w):
        return np.maximum(0.0, 1.0 - target * (E @ w))

    def value(w):
        return 0.5 * penalty * w @ w + 0.5 * np.sum(cost * shortfall(w) ** 2)

    def gradient(w):
        return penalty * w - E.T @ (cost * target * shortfall(w))

    def hessian(w):
        inside = np.where(shortfall(w) > 0.0, cost, 0.0)
        return penalty * np.eye(len(w)) + (E.T * inside) @ E

    found = optimize.minimize(
        value, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-9}
    ).x
    for _ in range(5):  # the last digits, on the rows that are inside the margin now
        found = found - np.linalg.solve(hessian(found), gradient(found))
    return found


def svmlin(X, y, penalty=0.1, last_weight=1.0):
    """Return the weights and the bias, which comes last and is penalised."""
    labeled, unlabeled = np.flatnonzero(y >= 0), np.flatnonzero(y < 0)
    n_labeled, n_unlabeled = len(labeled), len(unlabeled)
    E = np.c_[X, np.ones(len(X))]
    target = np.where(y == 1, 1.0, -1.0)
    share = np.count_nonzero(y == 1) / n_labeled
    cost = np.where(y >= 0, 1.0 / n_labeled, 0.0)
    w = train(E, target, cost, penalty, np.zeros(E.shape[1]))
    # Sums in the order of the columns: equal rows have equal scores.
    scores = np.array([sum(row * w) for row in E[unlabeled]])
    threshold = sorted(scores)[int((1.0 - share) * n_unlabeled) - 1]
    target[unlabeled] = np.where(scores > threshold, 1.0, -1.0)
    weight, w = 1e-5, np.zeros(E.shape[1])
    while True:
        cost[unlabeled] = weight / n_unlabeled
        w = train(E, target, cost, penalty, w)
        while switch(target, unlabeled, E @ w):
            w = train(E, target, cost, penalty, w)
        if weight == last_weight:
            return w, target[unlabeled]
        weight = min(1.5 * weight, last_weight)


def switch(target, unlabeled, scores):
    """Exchange the labels of the worst pairs; return how many there were."""
    positive = [k for k in unlabeled if target[k] > 0.0 and scores[k] < 1.0]
    negative = [k for k in unlabeled if target[k] < 0.0 and scores[k] > -1.0]
    positive.sort(key=lambda k: scores[k])
    negative.sort(key=lambda k: -scores[k])
    n_switched = 0
    for up, down in zip(negative, positive, strict=False):
        # Equal rows differ by rounding errors only, and would switch for ever.
        if not scores[down] < scores[up] - 1e-9:
            break
        target[up], target[down] = 1.0, -1.0
        n_switched += 1
    return n_switched


def uneven(seed):
    """A share that leaves no whole number of rows."""
    X, _, truth = make(n=107, n_labeled=107, seed=seed)
    y = np.where(np.arange(107) < 14, truth, -1)
    y[np.flatnonzero(y == 1)[:3]] = -1
    return X, y, truth


def repeated(seed):
    """Unlabeled rows drawn with replacement, so that many have the score of the threshold."""
    X, y, truth = make(n=40, n_labeled=10, seed=seed)
    drawn = np.random.default_rng(seed).integers(0, 40, 150)
    return np.r_[X[:10], X[drawn]], np.r_[y[:10], np.full(150, -1)], np.r_[truth[:10], truth[drawn]]


@pytest.mark.parametrize("problem", [make, uneven, repeated, clusters, rare_class])
@pytest.mark.parametrize("seed", range(4))
def test_weights_of_svmlin(problem, seed):
    X, y, _ = problem(seed=seed)
    expected, labels = svmlin(X, y)
    clf = TransductiveSVMClassifier(positive_rounding="svmlin", penalise_intercept=True).fit(X, y)
    found = np.r_[clf.coef_[0], clf.intercept_]
    assert np.count_nonzero(clf.labels_ == 1) == np.count_nonzero(labels > 0.0)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-6 * np.abs(expected).max())


def test_weights_of_svmlin_in_raw_units():
    X, y, _ = raw_units(0)
    X = X / X.std(axis=0) * np.logspace(-1, 1, X.shape[1])
    expected, _ = svmlin(X, y)
    clf = TransductiveSVMClassifier(positive_rounding="svmlin", penalise_intercept=True).fit(X, y)
    found = np.r_[clf.coef_[0], clf.intercept_]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-6 * np.abs(expected).max())


def test_the_other_rounding_gives_other_weights():
    differences = []
    for seed in range(4):
        X, y, _ = repeated(seed)
        clf = TransductiveSVMClassifier(penalise_intercept=True).fit(X, y)
        differences.append(abs(clf.intercept_[0] - svmlin(X, y)[0][-1]))
    assert max(differences) > 1e-3


@pytest.mark.parametrize(
    ("scores", "share", "n_positive"),
    [
        ([1.0, 2.0, 3.0, 4.0], 0.5, 2),
        ([1.0, 2.0, 3.0], 0.5, 2),  # up
        ([1.0, 2.0, 2.0, 3.0], 0.5, 1),  # those as high as the threshold are negative
        ([2.0, 2.0, 2.0], 0.5, 0),
        ([1.0, 2.0], 0.9, 2),  # none is negative
        (list(range(10)), 0.9, 10),  # (1 - 0.9) · 10 is less than 1
        (list(range(10)), 0.0, 0),
    ],
)
def test_positive_rows_of_svmlin(scores, share, n_positive):
    positive = label_like_svmlin(np.array(scores, float), share)
    assert np.count_nonzero(positive) == n_positive
    assert positive.tolist() == sorted(positive.tolist())


def test_rounding_errors_of_equal_rows_make_no_difference():
    scores = np.array([-1.0, 0.3, 0.1 + 0.2, 0.3, 0.1 + 0.2, 1.0])
    assert label_like_svmlin(scores, 0.6).tolist() == [False] * 5 + [True]


@pytest.mark.parametrize("method", ["switching", "annealing"])
def test_labels_have_the_number_of_svmlin(method):
    X, y, _ = uneven(0)
    clf = TransductiveSVMClassifier(positive_rounding="svmlin", method=method).fit(X, y)
    share = np.mean(y[y >= 0])
    assert np.count_nonzero(clf.labels_ == 1) == 96 - int((1.0 - share) * 96)
