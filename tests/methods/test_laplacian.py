"""Laplacian least squares against the closed form of Belkin, Niyogi and Sindhwani."""

import numpy as np
import pytest
from scipy.sparse import csgraph
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.neighbors import kneighbors_graph

from neverworse import LeastSquaresClassifier, audit
from neverworse.methods import LaplacianLeastSquaresClassifier


def make(n=120, n_labeled=10):
    X, truth = make_moons(n, noise=0.15, random_state=0)
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_same_as_the_closed_form(kernel):
    X, y, _ = make()
    clf = LaplacianLeastSquaresClassifier(
        0.05, 0.2, kernel=kernel, gamma=2.0, fit_intercept=False
    ).fit(X, y)
    K, known = pairwise_kernels(X, metric=kernel, gamma=2.0), y >= 0
    near = kneighbors_graph(X, 10).toarray()
    L = csgraph.laplacian(np.maximum(near, near.T))
    dual = np.linalg.solve(
        np.diag(known) @ K + 0.05 * np.eye(len(X)) + 0.2 * L @ K, np.where(known, y, 0.0)
    )
    assert clf.decision_function(X) + 0.5 == pytest.approx(K @ dual, abs=1e-8)


def test_without_graph_it_is_the_supervised_classifier():
    X, y, _ = make()
    clf = LaplacianLeastSquaresClassifier(0.05, 0.0, gamma=2.0).fit(X, y)
    supervised = LeastSquaresClassifier(0.05, kernel="rbf", gamma=2.0).fit(X, y)
    assert clf.decision_function(X) == pytest.approx(supervised.decision_function(X), abs=1e-7)


def test_minimum_with_intercept_and_weights():
    X, y, _ = make()
    s = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    s[:10] = np.arange(1, 11)
    clf = LaplacianLeastSquaresClassifier(0.05, 0.2, kernel="linear").fit(X, y, sample_weight=s)
    used = s > 0
    near = kneighbors_graph(X[used], 10).toarray()
    L = csgraph.laplacian(np.maximum(near, near.T))

    def loss(coef, intercept):
        f = X @ coef + intercept
        smooth = f[used] @ L @ f[used]
        return s[:10] @ (f[:10] - y[:10]) ** 2 + 0.05 * coef @ coef + 0.2 * smooth

    best = loss(clf.coef_[0], clf.intercept_[0] + 0.5)
    rng = np.random.default_rng(1)
    for step in 1e-4 * rng.normal(size=(50, 3)):
        assert loss(clf.coef_[0] + step[:2], clf.intercept_[0] + 0.5 + step[2]) > best


def test_unlabeled_rows_help_where_classes_are_apart():
    X, y, truth = make(300, 8)
    clf = LaplacianLeastSquaresClassifier(gamma=5.0).fit(X, y)
    supervised = LeastSquaresClassifier(0.01, kernel="rbf", gamma=5.0).fit(X, y)
    assert clf.score(X, truth) > 0.95 > 0.8 > supervised.score(X, truth)
    found = audit(clf, supervised, X, y)
    assert not found.holds  # better here, but not for every labeling
    few = LaplacianLeastSquaresClassifier(gamma=5.0, n_components=100, random_state=0).fit(X, y)
    assert few.score(X, truth) > 0.95


def test_a_matrix_has_no_neighbours():
    X, y, _ = make()
    with pytest.raises(ValueError, match="gives no distances between rows"):
        LaplacianLeastSquaresClassifier(kernel="precomputed").fit(X @ X.T, y)
