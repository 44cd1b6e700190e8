"""Cases in which a plausible solver goes wrong without saying so."""

import numpy as np
import pytest
from sklearn.base import clone

from neverworse import ICLSClassifier, LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.projection.solver import passes
from neverworse.projection.solver.problem import StreamedHinges


def _one_hot(seed, n):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 9))
    group = rng.integers(0, k, n)
    Z = rng.normal(size=(n, 2))
    y = (Z[:, 0] + 0.5 * (group % 2) + rng.normal(size=n) > 0.3).astype(int)
    return np.hstack([np.eye(k)[group], Z]), y


@pytest.mark.parametrize("seed", [21, 27, 34])
@pytest.mark.parametrize("n", [6000, 12_000, 100_000])
def test_one_hot_columns_are_the_same_with_and_without_the_first(seed, n):
    X, y = _one_hot(seed, n)
    few = np.where(np.arange(n) < 60, y, -1)
    cases = [
        (LeastSquaresClassifier(), y),
        (ProjectedLeastSquaresClassifier(alpha=0.0, tol=1e-12), few),
        (ICLSClassifier(alpha=0.0, tol=1e-12), few),
    ]
    for clf, labels in cases:
        full = clf.fit(X, labels).decision_function(X)
        less = clf.fit(X[:, 1:], labels).decision_function(X[:, 1:])
        np.testing.assert_allclose(full, less, atol=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_a_dozen_distinct_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 20))[rng.integers(0, 12, 20_000)]
    y = np.full(20_000, -1)
    y[:10] = [0, 1] * 5
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, constraint_alpha=0.001).fit(X, y)
    certificate = clf.certificate_
    assert certificate.converged
    assert certificate.holds


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6, 1e7])
def test_weights_in_the_constraint_set_stay_whatever_the_distance(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) * [scale, 1.0]
    y = np.r_[[0, 1] * 3, [-1] * 34]
    points = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    for distance in ("all", "labeled", "euclidean", points):
        clf = ProjectedLeastSquaresClassifier(distance, alpha=0.0).fit(X, y)
        assert clf.certificate_.reason == "inside"
        np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)


@pytest.mark.parametrize("constant", [1e3, 1e9, 1e12])
def test_constant_column_with_a_small_penalty(constant):
    rng = np.random.default_rng(0)
    B = rng.normal(size=(60, 3))
    y = np.r_[[0, 1] * 3, [-1] * 54]
    X = np.column_stack([B, B[:, 0] - B[:, 1]])
    with_constant = np.column_stack([X, np.full(60, constant)])
    for alpha, constraint_alpha in ((0.0, 1e-6), (1e-30, 0.0)):
        clf = ProjectedLeastSquaresClassifier(alpha=alpha, constraint_alpha=constraint_alpha)
        plain, same = (clone(clf).fit(rows, y) for rows in (X, with_constant))
        np.testing.assert_allclose(same.coef_[0, :4], plain.coef_[0], rtol=1e-5)
        assert same.coef_[0, 4] == 0.0
        assert same.certificate_.worst_case == pytest.approx(plain.certificate_.worst_case)


@pytest.mark.parametrize("distance", ["all", "labeled", "unlabeled", "euclidean", np.eye(2)])
def test_rows_of_zeros_without_an_intercept(distance):
    clf = ProjectedLeastSquaresClassifier(distance, fit_intercept=False)
    clf.fit(np.zeros((9, 2)), [0, 1] + [-1] * 7)
    assert clf.certificate_.holds
    np.testing.assert_array_equal(clf.coef_, 0.0)


def _far_row(rng, n):
    X = rng.normal(size=(n, 8))
    X[rng.integers(0, n)] *= 1e5
    return X


HARD = {
    "a row far from all others": _far_row,
    "units": lambda rng, n: rng.normal(size=(n, 8)) * 10.0 ** rng.uniform(-6, 6, 8),
    "heavy tails": lambda rng, n: np.exp(4.0 * rng.normal(size=(n, 4))),
}


@pytest.mark.parametrize("kind", HARD)
def test_rounding_errors_of_scores_end_no_fit_to_several_classes(kind):
    """Scores of the classes that share a row are equal, not zero: σ would magnify their errors."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, n_classes = int(rng.integers(50, 400)), int(rng.integers(3, 7))
        X, y = HARD[kind](rng, n), rng.integers(0, n_classes, n)
        y[:n_classes], y[n_classes + 10 :] = range(n_classes), -1
        clf = ProjectedLeastSquaresClassifier(alpha=rng.choice([0.0, 1.0])).fit(X, y)
        assert clf.certificate_.converged


@pytest.mark.parametrize("separation", [0.5, 1.5, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_ordinary_data_take_few_passes(separation, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n, d = 60_000, 50
    truth = np.arange(n) % 2
    mean = rng.normal(size=d)
    X = rng.normal(size=(n, d))
    X += np.where(truth, 1.0, -1.0)[:, None] * mean * separation / np.linalg.norm(mean)
    y = np.where(np.arange(n) < 100, truth, -1)
    made = []
    look = passes._look

    def counted(*arguments):
        made.append(1)
        return look(*arguments)

    monkeypatch.setattr(passes, "_look", counted)
    monkeypatch.delattr(StreamedHinges, "adjoint")  # Newton's method on all rows would need it
    certificate = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y).certificate_
    assert certificate.converged
    assert certificate.guaranteed_improvement > 0
    assert 2 <= len(made) <= 8


def test_a_solver_that_gives_up_warns_and_is_certified(monkeypatch):
    from sklearn.exceptions import ConvergenceWarning

    from neverworse.projection.solver import newton

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    y = np.where(np.arange(200) < 25, np.arange(200) % 2, -1)
    monkeypatch.setattr(newton, "PATIENCE", 1)
    monkeypatch.setattr(newton, "SLOW_GAP_SHARE", 0.0)
    with pytest.warns(ConvergenceWarning, match="stopped making progress"):
        clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    assert clf.certificate_.holds
    assert not clf.certificate_.stopped_early
    assert "stopped making progress" in clf.certificate_.summary()
