"""Very many columns and several classes: systems in the space of rows, and soft labels by them."""

import numpy as np
import pytest
from scipy import sparse

from neverworse import ProjectedLeastSquaresClassifier
from neverworse._budget import Budget
from neverworse._iterations import conjugate_gradients, low_rank
from neverworse.projection import coordinates
from neverworse.projection.coordinates.gram import column_moments
from neverworse.projection.coordinates.matrix_free import weight_coordinates
from neverworse.projection.solver.label_descent import RowSystem
from neverworse.rows import as_rows
from tests.projection.high_dimensions import assert_same, choose, fit, make, text_like

SETTINGS = {"alpha": 0.1, "constraint_alpha": 1.0, "tol": 1e-9}


def coordinates_of(rows, weights, alpha, fit_intercept):
    sums = column_moments(rows, weights, centre=fit_intercept)
    return weight_coordinates(sums, weights, alpha, fit_intercept)


def decaying(n=80, seed=0):
    """Return a matrix with a few large eigenvalues."""
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    values = 1000.0 * 0.5 ** np.arange(n) + np.linspace(1.0, 0.0, n)
    return (basis * values) @ basis.T


def test_low_rank_finds_the_largest_directions():
    K = decaying()
    found = low_rank(lambda x: K @ x, len(K), 8, at_once=3)
    values, vectors = np.linalg.eigh(K)
    np.testing.assert_allclose(found.values[:4], values[::-1][:4], rtol=1e-3)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(8), atol=1e-10)
    assert abs(found.vectors[:, 0] @ vectors[:, -1]) > 0.999
    left = np.linalg.eigvalsh(K - (found.vectors * found.values) @ found.vectors.T)
    assert left.min() > -1e-8  # never larger than the matrix


def test_low_rank_of_a_matrix_of_lower_rank():
    B = np.random.default_rng(1).normal(size=(30, 4))
    found = low_rank(lambda x: B @ (B.T @ x), 30, 10, at_once=10)
    np.testing.assert_allclose((found.vectors * found.values) @ found.vectors.T, B @ B.T, atol=1e-9)


def test_preconditioner_is_symmetric_and_leaves_a_small_condition_number():
    K, alpha = decaying(), 1.0
    found = low_rank(lambda x: K @ x, len(K), 12, at_once=12)
    C = found.preconditioner(alpha)(np.eye(len(K)))
    np.testing.assert_allclose(C, C.T, atol=1e-6)
    values = np.linalg.eigvals(C @ (K + alpha * np.eye(len(K)))).real
    assert values.max() / values.min() < 5.0
    assert np.linalg.cond(K + alpha * np.eye(len(K))) > 500.0


def test_preconditioned_conjugate_gradients_take_fewer_products():
    K, alpha = decaying(), 1e-3
    right = np.random.default_rng(2).normal(size=(len(K), 3))
    A = K + alpha * np.eye(len(K))
    precondition = low_rank(lambda x: K @ x, len(K), 12, at_once=12).preconditioner(alpha)

    def solve(**how):
        return conjugate_gradients(
            lambda x: A @ x, right, lambda r: np.linalg.norm(r) < 1e-6, **how
        )

    plain, better = solve(), solve(precondition=precondition)
    np.testing.assert_allclose(A @ better.x, right, atol=1e-5)
    np.testing.assert_allclose(better.residual, right - A @ better.x, atol=1e-9)
    assert better.n_products < plain.n_products


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("far", [0.0, 1e9])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_systems_of_rows(fit_intercept, far, is_sparse):
    """Also of rows far from zero, which are shifted where there is an intercept."""
    X, _ = make(60, 40, is_sparse=is_sparse)
    near = X.toarray() if is_sparse else X
    far = far if fit_intercept else 0.0
    X = X + sparse.csr_matrix(np.where(np.arange(40) == 3, far, np.zeros((60, 1))))
    rng = np.random.default_rng(0)
    s = rng.uniform(0.5, 2.0, 60)
    s[[3, 50]] = 0.0
    space = coordinates_of(as_rows(X if is_sparse else np.asarray(X)), s, 0.7, fit_intercept)
    assert (space.rows.shift is not None) == (far > 0.0)
    A = np.sqrt(s)[:, None] * (near - (s @ near / s.sum() if fit_intercept else 0.0))
    system = RowSystem(space, 3, Budget())
    y = rng.normal(size=(60, 3))
    np.testing.assert_allclose(system.combine(y), A.T @ y, atol=1e-6)
    np.testing.assert_allclose(system.products(A.T @ y), A @ (A.T @ y), atol=1e-5)
    np.testing.assert_allclose(system.kernel(y), A @ (A.T @ y), atol=1e-5)
    np.testing.assert_allclose(system.rough_kernel(y), A @ (A.T @ y), atol=2e-4)
    right = A @ rng.normal(size=(40, 3))
    solution, residual = system.solve(np.zeros_like(y), right, 1e-4)
    expected = np.linalg.solve(A @ A.T + 0.7 * np.eye(60), right)
    np.testing.assert_allclose(solution, expected, atol=2e-4)
    np.testing.assert_allclose(residual, system.residual(right, solution), atol=1e-4)


@pytest.mark.parametrize(("scale", "mean"), [(1e25, 0.0), (1.0, 300.0)])
def test_products_that_need_more_than_single_precision(scale, mean):
    """Where numbers are too large for it, or their mean."""
    X = sparse.csr_matrix(scale * make(60, 40)[0] + mean)
    space = coordinates_of(as_rows(X), None, float(X.max()), True)
    assert space.rows.shift is None
    y = np.random.default_rng(0).normal(size=(60, 3))
    A = X.toarray() - X.toarray().mean(axis=0)
    expected = A @ (A.T @ y)
    size = np.abs(expected).max()
    found = RowSystem(space, 3, Budget()).rough_kernel(y)
    np.testing.assert_allclose(found, expected, atol=1e-8 * size)


def test_small_penalties_are_left_to_newton():
    X, _ = make(60, 40)
    for alpha, expected in ((1.0, True), (1e-4, False)):
        system = RowSystem(coordinates_of(as_rows(X), None, alpha, True), 1, Budget())
        assert system.is_well_conditioned == expected


def nearly_repeated(n, d, n_classes):
    """Return rows of text, many of which are nearly those of others: small curvatures."""
    X, truth = text_like(n, d, n_classes)
    X = X.tolil()
    for row in range(1, n, 3):
        X[row] = X[row - 1]
        X[row, row % d] += 0.05
        truth[row] = truth[row - 1]
    return X.tocsr(), truth


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_many_classes_agree_with_the_gram_matrix(monkeypatch, fit_intercept, capfd):
    X, truth = nearly_repeated(300, 200, 6)
    y = np.where(np.arange(300) < 60, truth, -1)
    weights = np.random.default_rng(1).uniform(0.3, 2.0, 300)
    weights[[2, 200, 201]] = 0.0
    settings = {**SETTINGS, "fit_intercept": fit_intercept}
    choose(monkeypatch, "gram")
    reference = fit(X, y, weights, **settings)
    choose(monkeypatch, "free")
    capfd.readouterr()
    model = fit(X, y, weights, **settings, verbose=1)
    told = capfd.readouterr().err
    assert model.certificate_.converged
    assert_same(model, reference, 1e-5)
    assert "labels (" in told
    assert "Newton step (" not in told  # nothing was left to it


def test_labels_with_bounds_of_their_shares(monkeypatch):
    """Rows of which some classes are excluded."""
    X, truth = text_like(300, 6000, 4)
    y = np.where(np.arange(300) < 60, truth, -1)
    bounds = np.tile([0.0, 1.0], (300, 4, 1))
    bounds[60:160, 0, 1] = 0.0
    bounds[160:200, 1, 1] = 0.4

    def fitted():
        return ProjectedLeastSquaresClassifier(**SETTINGS).fit(X, y, label_bounds=bounds)

    reference = fitted()
    monkeypatch.setattr(coordinates, "MOST_ROWS", 0)
    model = fitted()
    assert model.certificate_.converged
    assert_same(model, reference, 1e-5)
