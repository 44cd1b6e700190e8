"""The supervised machine: its objective at the solution, and LinearSVC's answers."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from neverworse.methods import L2SVMClassifier
from neverworse.methods.svm import _l2svm, _newton
from neverworse.rows import SparseRows, as_rows
from tests.methods.svm.problems import make, objective


def gradient(clf, X, target, weights, penalise_intercept):
    """Return the gradient of the objective, relative to the size of what it is the sum of."""
    scores = X @ clf.coef_[0] + clf.intercept_[0]
    pull = weights * np.maximum(0.0, 1.0 - target * scores) * target
    by_coef = clf.alpha * clf.coef_[0] - X.T @ pull
    by_intercept = clf.alpha * penalise_intercept * clf.intercept_[0] - pull.sum()
    size = np.abs(clf.alpha * clf.coef_[0]) + np.abs(X).T @ np.abs(pull)
    return np.append(by_coef / size, by_intercept / np.abs(pull).sum())


# The objective


@pytest.mark.parametrize("penalise_intercept", [False, True])
@pytest.mark.parametrize("scaling", ["sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-4, 0.1, 10.0])
def test_gradient_is_zero_at_the_solution(penalise_intercept, scaling, weighted, alpha):
    X, y, _ = make()
    s = np.linspace(0.2, 3.0, len(y)) if weighted else None
    clf = L2SVMClassifier(alpha, scaling=scaling, penalise_intercept=penalise_intercept)
    clf.fit(X, y, s)
    labeled = y >= 0
    weights = (np.ones(len(y)) if s is None else s)[labeled]
    if scaling == "mean":
        weights = weights / weights.sum()
    target = 2.0 * y[labeled] - 1.0
    assert clf.converged_
    found = gradient(clf, X[labeled], target, weights, penalise_intercept)
    np.testing.assert_allclose(found, 0.0, atol=1e-11)
    value = objective(clf, X[labeled], target, weights, penalise_intercept)
    assert clf.objective_ == pytest.approx(value, rel=1e-12)


def test_two_points_by_hand():
    # By symmetry b = 0; (α/2) w² + (1 - 2w)² has its minimum at w = 4 / (α + 8).
    clf = L2SVMClassifier(0.5).fit([[-2.0], [2.0]], [0, 1])
    assert clf.coef_[0, 0] == pytest.approx(4.0 / 8.5, rel=1e-14)
    assert clf.intercept_[0] == pytest.approx(0.0, abs=1e-14)
    # As the mean, half of the loss.
    clf = L2SVMClassifier(0.5, scaling="mean").fit([[-2.0], [2.0]], [0, 1])
    assert clf.coef_[0, 0] == pytest.approx(2.0 / 4.5, rel=1e-14)


def test_row_beyond_the_margin_does_not_matter():
    near, far = [[-2.0], [2.0], [9.0]], [[-2.0], [2.0], [900.0]]
    coef = [L2SVMClassifier(0.5).fit(X, [0, 1, 1]).coef_[0, 0] for X in (near, far)]
    assert coef[0] == pytest.approx(4.0 / 8.5, rel=1e-9)
    assert coef[1] == pytest.approx(4.0 / 8.5, rel=1e-9)


def test_penalised_intercept_by_hand():
    # Points 1 (negative) and 3 (positive) without penalty of b have b = -2w; with it, |b| < 2w.
    X, y = [[1.0], [3.0]], [0, 1]
    free = L2SVMClassifier(0.1).fit(X, y)
    held = L2SVMClassifier(0.1, penalise_intercept=True).fit(X, y)
    assert free.intercept_[0] == pytest.approx(-2.0 * free.coef_[0, 0], rel=1e-12)
    # Both rows are within the margin: the normal equations of (w, b).
    A = np.array([[1.0, 1.0], [3.0, 1.0]])
    solution = np.linalg.solve(A.T @ A + 0.1 * np.eye(2), A.T @ [-1.0, 1.0])
    np.testing.assert_allclose([held.coef_[0, 0], held.intercept_[0]], solution, rtol=1e-12)


def test_objective_of_svmlin():
    """λ/2 of all weights, bias included, plus half the sum; of TSVM's first machine, the mean."""
    X, y, _ = make(n_labeled=30)
    labeled = y >= 0
    A, t = np.c_[X[labeled], np.ones(30)], 2.0 * y[labeled] - 1.0
    for scaling, cost in (("sum", 1.0), ("mean", 1.0 / 30.0)):
        clf = L2SVMClassifier(0.1, scaling=scaling, penalise_intercept=True).fit(X, y)
        w = np.append(clf.coef_[0], clf.intercept_)
        losses = np.maximum(0.0, 1.0 - t * (A @ w))
        np.testing.assert_allclose(0.1 * w - cost * A.T @ (t * losses), 0.0, atol=1e-12)
        value = 0.05 * w @ w + 0.5 * cost * losses @ losses
        assert clf.objective_ == pytest.approx(value, rel=1e-12)


# LinearSVC


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_linear_svc(container, alpha, weighted):
    X, y, _ = make(n=300, d=8, n_labeled=300)
    s = np.linspace(0.1, 2.0, 300) if weighted else np.ones(300)
    reference = LinearSVC(C=0.5 / alpha, dual=False, tol=1e-14, max_iter=100_000)
    reference.fit(container(X), y, s)
    clf = L2SVMClassifier(alpha, penalise_intercept=True).fit(container(X), y, s)
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(clf.intercept_, reference.intercept_, rtol=1e-6, atol=1e-8)
    theirs = L2SVMClassifier(alpha)
    theirs.coef_, theirs.intercept_ = reference.coef_, reference.intercept_
    value = objective(theirs, X, 2.0 * y - 1.0, s, penalise_intercept=True)
    assert clf.objective_ == pytest.approx(value, rel=1e-6)
    assert clf.objective_ <= value * (1.0 + 1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_linear_svc_without_intercept(weighted):
    X, y, _ = make(n=200, d=5, n_labeled=200)
    s = np.linspace(0.1, 2.0, 200) if weighted else None
    reference = LinearSVC(C=5.0, fit_intercept=False, dual=False, tol=1e-14, max_iter=100_000)
    reference.fit(X, y, s)
    clf = L2SVMClassifier(0.1, fit_intercept=False).fit(X, y, s)
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-6)
    assert clf.intercept_.tolist() == [0.0]


def test_agrees_with_linear_svc_on_several_classes():
    X, y = load_iris(return_X_y=True)
    reference = LinearSVC(C=0.5, dual=False, tol=1e-14, max_iter=100_000).fit(X, y)
    clf = L2SVMClassifier(1.0, penalise_intercept=True).fit(X, y)
    assert clf.coef_.shape == (3, 4)
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(clf.predict(X), reference.predict(X))
    assert clf.objective_.shape == (3,)
    assert clf.decision_function(X).shape == (150, 3)


def test_class_against_the_rest():
    X, y, _ = make(n_classes=3)
    several = L2SVMClassifier().fit(X, y)
    for k in range(3):
        one = L2SVMClassifier().fit(X, np.where(y < 0, -1, y == k))
        np.testing.assert_allclose(several.coef_[k], one.coef_[0], rtol=1e-10)
        assert several.objective_[k] == pytest.approx(one.objective_, rel=1e-12)


def test_unlabeled_rows_are_ignored():
    X = make(n=300)[0]
    for n_labeled in (12, 100):  # copied out of the others, and left in place
        y_some = np.where(np.arange(300) < n_labeled, np.arange(300) % 2, -1)
        wild = np.where(y_some[:, None] < 0, 1e150 * X, X)
        clf = L2SVMClassifier().fit(wild, y_some)
        alone = L2SVMClassifier().fit(X[:n_labeled], y_some[:n_labeled])
        np.testing.assert_allclose(clf.coef_, alone.coef_, rtol=1e-10)


# Scales


@pytest.mark.parametrize("penalise_intercept", [False, True])
@pytest.mark.parametrize("alpha", [1e-6, 0.1, 100.0])
def test_raw_units(penalise_intercept, alpha):
    X, y = load_breast_cancer(return_X_y=True)
    clf = L2SVMClassifier(alpha, penalise_intercept=penalise_intercept).fit(X, y)
    assert clf.converged_
    found = gradient(clf, X, 2.0 * y - 1.0, np.ones(len(y)), penalise_intercept)
    np.testing.assert_allclose(found, 0.0, atol=1e-10)
    assert clf.n_iter_ < 30


@pytest.mark.parametrize("penalise_intercept", [False, True])
@pytest.mark.parametrize("n_labeled", [10, 20, 200])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_scales_from_tiny_to_huge(penalise_intercept, n_labeled, alpha):
    for seed in range(6):
        X, y, _ = make(n=200, d=12, n_labeled=n_labeled, seed=seed)
        X *= 10.0 ** np.random.default_rng(seed).integers(-8, 9, 12)
        clf = L2SVMClassifier(alpha, penalise_intercept=penalise_intercept).fit(X, y)
        assert clf.converged_
        assert np.isfinite(clf.coef_).all()
        assert clf.n_iter_ < 100


def test_margin_below_the_rounding_error_of_scores():
    # Hard margins but for 1e-18: the shortest weights with scores of at least 1, in huge units.
    X = 1e8 * np.array(
        [[1.0, 1.0], [2.0, 0.0], [3.0, 5.0], [-1.0, -1.0], [-4.0, 1.0], [-2.0, -9.0]]
    )
    clf = L2SVMClassifier(1e-3, fit_intercept=False).fit(X, [1, 1, 1, 0, 0, 0])
    assert clf.converged_
    np.testing.assert_allclose(clf.coef_[0], [5e-9, 5e-9], rtol=1e-9)


def test_columns_far_from_zero():
    X, y, _ = make()
    far = X + np.array([1e7, -1e7, 0.0, 1e6])
    clf, reference = L2SVMClassifier().fit(far, y), L2SVMClassifier().fit(X, y)
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-6)
    np.testing.assert_allclose(
        clf.decision_function(far), reference.decision_function(X), atol=1e-6
    )


def test_constant_column_has_no_weight():
    X, y, _ = make()
    for constant in (0.0, 0.1, 1e8 / 3):
        clf = L2SVMClassifier().fit(np.insert(X, 1, constant, axis=1), y)
        assert clf.coef_[0, 1] == 0.0
        np.testing.assert_allclose(
            np.delete(clf.coef_, 1, axis=1), L2SVMClassifier().fit(X, y).coef_, rtol=1e-9
        )


def test_duplicate_columns_share_the_weight():
    X, y, _ = make()
    clf = L2SVMClassifier().fit(np.c_[X, X[:, 0]], y)
    assert clf.coef_[0, 0] == pytest.approx(clf.coef_[0, -1], rel=1e-10)
    huge = L2SVMClassifier(1e-6).fit(1e9 * np.c_[X, X[:, 0]], y)  # singular in floating point
    assert huge.converged_
    assert huge.coef_[0, 0] == pytest.approx(huge.coef_[0, -1], rel=1e-5)


# The ways to solve


@pytest.mark.parametrize("penalise_intercept", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_conjugate_gradients_find_the_same(
    monkeypatch, penalise_intercept, fit_intercept, container
):
    X, y, _ = make(n=400, d=20, n_labeled=300)
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    X[:, 3] += 50.0
    options = {"fit_intercept": fit_intercept, "penalise_intercept": penalise_intercept}
    exact = L2SVMClassifier(0.1, **options).fit(container(X), y)
    monkeypatch.setattr(_l2svm, "MAX_COLUMNS", 0)
    monkeypatch.setattr(_l2svm, "MAX_SPARSE_COLUMNS", 0)
    clf = L2SVMClassifier(0.1, **options).fit(container(X), y)
    assert clf.converged_
    np.testing.assert_allclose(clf.coef_, exact.coef_, rtol=1e-4, atol=1e-6)
    assert clf.objective_ == pytest.approx(exact.objective_, rel=1e-11)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_many_columns(container):
    rng = np.random.default_rng(2)
    X = np.where(rng.random((300, 1500)) < 0.1, rng.normal(size=(300, 1500)), 0.0)
    y = np.where(np.arange(300) < 200, X[:, :40].sum(axis=1) > 0.0, -1)
    clf = L2SVMClassifier(1.0).fit(container(X), y)
    labeled = slice(0, 200)
    assert clf.converged_
    found = gradient(clf, X[labeled], 2.0 * y[labeled] - 1.0, np.ones(200), False)
    scale = np.abs(X[labeled]).sum(axis=0) > 0.0  # columns that no labeled row has
    np.testing.assert_allclose(found[:-1][scale], 0.0, atol=1e-4)
    assert found[-1] == pytest.approx(0.0, abs=1e-5)


def test_columns_that_no_labeled_row_has_are_not_looked_at_one_by_one(monkeypatch):
    rng = np.random.default_rng(4)
    X = sparse.random_array((60, 3000), density=0.01, rng=rng, format="csr")
    y = np.where(np.arange(60) < 40, np.arange(60) % 2, -1)
    held = np.diff(X[:40].tocsc().indptr) > 0
    assert 0 < held.sum() < 2000
    reference = L2SVMClassifier(0.1).fit(X[:, held], y)
    looks, ranges = [], SparseRows.ranges

    def counted(rows, columns, weights):
        looks.append(columns)
        return ranges(rows, columns, weights)

    monkeypatch.setattr(SparseRows, "ranges", counted)
    clf = L2SVMClassifier(0.1).fit(X, y)
    assert len(looks) <= 3
    assert not clf.coef_[0, ~held].any()
    np.testing.assert_allclose(clf.coef_[0, held], reference.coef_[0], rtol=1e-4, atol=1e-6)


def test_many_sparse_columns_stay_sparse_though_one_is_far_from_zero():
    rng = np.random.default_rng(5)
    X = sparse.random_array((200, 400), density=0.05, rng=rng, format="csr").toarray()
    y = np.where(np.arange(200) < 120, X[:, :9].sum(axis=1) > np.median(X[:, :9].sum(axis=1)), -1)
    X[:, 7] = 1e6 + rng.normal(size=200)
    rows = as_rows(sparse.csr_array(X))
    design, system = L2SVMClassifier()._prepare(rows, np.arange(200), (y >= 0).astype(float))
    assert design.rows is rows
    assert isinstance(system, _newton.ConjugateSystem)
    clf = L2SVMClassifier().fit(sparse.csr_array(X), y)
    assert clf.objective_ == pytest.approx(L2SVMClassifier().fit(X, y).objective_, rel=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_bad_values_in_many_columns(container, value):
    X, y, _ = make(d=1200)
    X[3, 700] = value
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)|so large"):
        L2SVMClassifier().fit(container(X), y)


def test_dense_columns_far_from_zero_in_conjugate_gradients(monkeypatch):
    X, y, _ = make()
    reference = L2SVMClassifier().fit(X, y)
    monkeypatch.setattr(_l2svm, "MAX_COLUMNS", 0)
    clf = L2SVMClassifier().fit(np.c_[X + 1e7, np.full(len(y), 0.1)], y)
    np.testing.assert_allclose(clf.coef_[0, :-1], reference.coef_[0], rtol=1e-5)
    assert clf.coef_[0, -1] == 0.0


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n", [50, 4000])
def test_gram_matrix_of_some_rows(container, fit_intercept, n):
    rng = np.random.default_rng(3)
    X = np.where(rng.random((n, 100)) < 0.5, rng.normal(size=(n, 100)), 0.0)
    weights = rng.random(n)
    clf = L2SVMClassifier(fit_intercept=fit_intercept)
    design, _ = clf._prepare(as_rows(container(X)), np.arange(n), weights)
    E = np.c_[X - weights @ X / weights.sum(), np.ones(n)] if fit_intercept else X
    chosen = rng.permutation(n)[: n // 2 + n // 4]
    gram = design.gram(chosen, weights[chosen])
    np.testing.assert_allclose(gram, (E[chosen].T * weights[chosen]) @ E[chosen], atol=1e-9)
    np.testing.assert_array_equal(design.gram(chosen[:0], weights[:0]), 0.0)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_steps_are_exact_where_the_last_factor_is_corrected(monkeypatch, fit_intercept):
    X = make(n=300, d=120)[0]
    clf = L2SVMClassifier(0.1, fit_intercept=fit_intercept)
    design, system = clf._prepare(as_rows(X), np.arange(300), np.ones(300))
    E, rng, factored = design.take(np.arange(300)), np.random.default_rng(0), []
    factor = _newton._Factor
    monkeypatch.setattr(_newton, "_Factor", lambda *given: factored.append(1) or factor(*given))
    curvature = np.ones(300)
    for n_changed in (0, 2, 3, 100, 3, 0):
        curvature = curvature.copy()
        curvature[rng.choice(300, n_changed, replace=False)] = rng.choice([0.0, 0.5, 2.0])
        gradient = rng.normal(size=E.shape[1])
        step = system.step(_newton.LocalModel(design, gradient, None, curvature, gradient))
        expected = np.linalg.solve((E.T * curvature) @ E + np.diag(design.penalty), -gradient)
        np.testing.assert_allclose(step, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())
    assert len(factored) == 2
    # Nothing is left of the curvature: a correction would be wrong, and is not used.
    gradient = np.append(np.ones(120), np.zeros(int(fit_intercept)))
    some = np.flatnonzero(curvature)[:5]
    design, system = clf._prepare(as_rows(X), some, np.ones(5))
    for curvature in (np.ones(5), np.zeros(5)):
        model = _newton.LocalModel(design, gradient, None, curvature, gradient)
        step = system.step(model)
    np.testing.assert_allclose(step[:120], -10.0, rtol=1e-7)


# How it ends


def test_max_iter_is_heeded_with_a_warning():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        clf = L2SVMClassifier(1e-3, max_iter=2).fit(X, y)
    assert not clf.converged_
    assert clf.n_iter_ == 2
    assert np.isfinite(clf.coef_).all()
    assert clf.objective_ > L2SVMClassifier(1e-3).fit(X, y).objective_


def test_tol_is_a_fraction_of_the_objective():
    X, y = load_breast_cancer(return_X_y=True)
    best = L2SVMClassifier(1e-3).fit(X, y)
    rough = L2SVMClassifier(1e-3, tol=1e-2).fit(X, y)
    assert rough.converged_
    assert rough.n_iter_ < best.n_iter_
    assert best.objective_ < rough.objective_ < 1.05 * best.objective_


def test_large_penalty():
    X, y, _ = make()
    clf = L2SVMClassifier(1e12).fit(X, y)
    assert clf.converged_
    # So short that all rows are within the margin: one step along the gradient.
    labeled, target = y >= 0, 2.0 * y - 1.0
    centred = target[labeled] - target[labeled].mean()
    np.testing.assert_allclose(clf.coef_[0], X[labeled].T @ centred / 1e12, rtol=1e-6)
