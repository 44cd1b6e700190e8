"""Problems that are solved by samples, passes and working sets: same answers, proved."""

import numpy as np
import pytest
from scipy import sparse

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.projection.solver import working_set

N, D = 20_000, 8


def _data(seed=0, n_labeled=30, noise=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    truth = (X @ rng.normal(size=D) + noise * rng.normal(size=N) > 0).astype(int)
    y = np.full(N, -1)
    labeled = rng.permutation(N)[:n_labeled]
    y[labeled] = truth[labeled]
    return X, y, rng


def _fit(X, y, **kwargs):
    sample_weight = kwargs.pop("sample_weight", None)
    # Accurate enough to compare weights: a gap of g leaves the weights uncertain by sqrt(g).
    settings = {"alpha": 0.0, "tol": 1e-12, **kwargs}
    return ProjectedLeastSquaresClassifier(**settings).fit(X, y, sample_weight)


@pytest.fixture
def all_at_once(monkeypatch):
    """Solve with all rows in memory, whatever their number."""

    def switch():
        monkeypatch.setattr(working_set, "FEWEST_ROWS", N)

    return switch


CASES = {
    "gaussian": lambda X, rng: X,
    "heavy tails": lambda X, rng: np.sign(X) * np.exp(2 * np.abs(X)),
    "a few giants": lambda X, rng: X / np.abs(rng.normal(size=(N, 1))),
    "binary": lambda X, rng: (X > 0.7).astype(float),
    "few distinct rows": lambda X, rng: X[rng.integers(0, 40, N)],
    "sorted": lambda X, rng: np.sort(X, axis=0),
    "scales": lambda X, rng: X * 10.0 ** rng.integers(-6, 7, D),
    "far from zero": lambda X, rng: X + 10.0 ** rng.integers(3, 8, D),
    "dependent": lambda X, rng: np.column_stack([X, X[:, :2] @ [1.0, -1.0]]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n_labeled", [12, 2000])
def test_same_as_all_rows_at_once(case, n_labeled, all_at_once):
    X, y, rng = _data(n_labeled=n_labeled)
    X = CASES[case](X, rng)
    quick = _fit(X, y)
    all_at_once()
    slow = _fit(X, y)
    a, b = quick.certificate_, slow.certificate_
    assert a.converged
    assert a.holds
    assert a.reason == b.reason
    scale = b.supervised_loss[1]
    assert a.worst_case == pytest.approx(b.worst_case, rel=1e-7, abs=1e-12 * scale)
    moved = slow.decision_function(X) - slow.supervised_.decision_function(X)
    difference = quick.decision_function(X) - slow.decision_function(X)
    assert np.sqrt(np.mean(difference**2)) <= 1e-6 * np.sqrt(np.mean(moved**2))


@pytest.mark.parametrize("distance", ["labeled", "unlabeled", "euclidean"])
def test_other_distances(distance, all_at_once):
    X, y, _ = _data()
    quick = _fit(X, y, distance=distance)
    all_at_once()
    slow = _fit(X, y, distance=distance)
    assert quick.certificate_.converged
    np.testing.assert_allclose(quick.coef_, slow.coef_, rtol=1e-4, atol=1e-6)


def test_weights(all_at_once):
    X, y, rng = _data()
    weights = rng.exponential(size=N) ** 2
    quick = _fit(X, y, sample_weight=weights)
    all_at_once()
    slow = _fit(X, y, sample_weight=weights)
    assert quick.certificate_.worst_case == pytest.approx(slow.certificate_.worst_case, rel=1e-7)


@pytest.mark.parametrize("tol", [1e-6, 1e-9, 1e-13])
def test_gap_on_request(tol):
    X, y, _ = _data(n_labeled=12)
    certificate = _fit(X, y, tol=tol).certificate_
    assert certificate.guaranteed_improvement > 0
    assert 0 <= certificate.duality_gap <= tol


def test_float32_is_accumulated_in_double_precision():
    X, y, _ = _data(n_labeled=12)
    X = X.astype(np.float32)
    single, double = _fit(X, y), _fit(X.astype(np.float64), y)
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-9)
    assert single.coef_.dtype == np.float64


def test_sparse_rows():
    X, y, rng = _data(n_labeled=12)
    X[rng.random(X.shape) < 0.7] = 0.0
    dense, thin = _fit(X, y), _fit(sparse.csr_array(X), y)
    assert dense.certificate_.guaranteed_improvement > 0
    np.testing.assert_allclose(dense.coef_, thin.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", [5, 9, 20, 30])
def test_samples_that_lead_to_the_same_direction_again(seed):
    """Nothing is uncertain then, but for the last digits."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 12_000)
    seen = rng.random((len(truth), 2)) < 0.4
    X = np.where(seen, rng.normal(size=seen.shape) + truth[:, None], 0.0)
    y = np.where(np.arange(len(truth)) < 30, truth, -1)
    certificate = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y).certificate_
    assert certificate.converged
    assert certificate.guaranteed_improvement > 0


def test_row_order_does_not_matter():
    X, y, rng = _data(n_labeled=12)
    order = rng.permutation(N)
    a, b = _fit(X, y), _fit(X[order], y[order])
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-5)


def test_inside_is_proved_by_soft_labels():
    X, y, _ = _data(n_labeled=2000, noise=5.0)
    clf = _fit(X, y)
    assert clf.certificate_.reason == "inside"
    np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)
    # Least squares on all rows with the soft labels gives the supervised weights back.
    target = np.where(y == -1, 0.0, y)
    target[y == -1] = clf.soft_labels_
    E = np.column_stack([X, np.ones(N)])
    w = np.linalg.lstsq(E, target, rcond=None)[0]
    np.testing.assert_allclose(w[:-1], clf.supervised_.coef_[0], atol=1e-8)


@pytest.mark.parametrize("max_iter", [1, 5, 15, 25, 40])
@pytest.mark.parametrize("n_labeled", [12, 2000])
def test_stopped_early_is_certified(max_iter, n_labeled):
    X, y, _ = _data(n_labeled=n_labeled)
    clf = _fit(X, y, max_iter=max_iter)
    assert clf.certificate_.holds
    assert clf.n_iter_ <= max_iter
    f, g = clf.decision_function(X), clf.supervised_.decision_function(X)
    worst = np.where(y == -1, f < g, y) - 0.5  # the closed form of the worst labeling
    assert np.sum((f - worst) ** 2) <= np.sum((g - worst) ** 2) * (1 + 1e-12)


def test_more_steps_never_hurt_much():
    X, y, _ = _data(n_labeled=12)
    full = _fit(X, y).certificate_.guaranteed_improvement
    early = [_fit(X, y, max_iter=k).certificate_.guaranteed_improvement for k in (1, 10, 20, 100)]
    assert all(0 <= value <= full * (1 + 1e-9) for value in early)
    assert early[-1] == pytest.approx(full)
