"""Exact linear dependencies take a pass, and the result is that of orthogonal factors."""

from unittest.mock import patch

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.projection import solve_least_squares
from neverworse.projection.coordinates.gram import _Varying, factor, whiten
from neverworse.rows import DaskRows, DenseRows, SparseRows

SIZES = (2, 3, 5, 8)  # of the groups of one-hot columns
N_DEPENDENT = len(SIZES) + 2
REFUSED = AssertionError("the rows were factored")
PLACES = {
    "dense": DenseRows,
    "float32": lambda X: DenseRows(X.astype(np.float32)),
    "sparse": lambda X: SparseRows(sparse.csr_array(X)),
    "chunks": lambda X: DaskRows(da.from_array(X, chunks=(max(len(X) // 3, 1), -1))),
}


def one_hot(n=2000, seed=0):
    """One-hot groups, two numbers, a combination of these, a duplicate, and constant columns."""
    rng = np.random.default_rng(seed)
    groups = [np.eye(k)[rng.integers(0, k, n)] for k in SIZES]
    Z = rng.integers(-50, 50, (n, 2)) / 16.0  # also exact as float32, and their sums too
    constant = np.tile([0.0, 1.0, 0.1], (n, 1)).astype(np.float32)
    X = np.column_stack([*groups, Z, Z[:, 0] - 2.0 * Z[:, 1], groups[2][:, 1], constant])
    y = (Z[:, 0] + groups[1] @ [0.0, 1.0, -1.0] + rng.normal(size=n) > 0.0).astype(float)
    return X, y, rng


def solve(rows, y, weights=None, **options):
    """Coefficients and intercept for one target."""
    found = solve_least_squares(rows, y[None], weights, **options)
    return found.coef[0], found.intercept[0]


def orthogonal(rows, weights, fit_intercept, target):
    """The same factor, of the rows themselves."""
    with patch.object(_Varying, "_eigenvectors", return_value=None):
        return factor(rows, weights, 0.0, fit_intercept, target)


@pytest.fixture
def no_triangle():
    """Rows that refuse to be factored."""
    with patch.object(_Varying, "_orthogonal", side_effect=REFUSED):
        yield


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_same_as_orthogonal_factors(place, weighted, fit_intercept):
    X, y, rng = one_hot()
    rows = PLACES[place](X)
    weights = rng.choice([0.0, 0.3, 1.0, 2.5], len(X)) if weighted else None
    residual = (y - np.average(y, weights=weights) if fit_intercept else y)[None]
    expected = orthogonal(rows, weights, fit_intercept, residual)
    with patch.object(_Varying, "_orthogonal", side_effect=REFUSED):
        found = factor(rows, weights, 0.0, fit_intercept, residual)
        coef = solve(rows, y, weights, fit_intercept=fit_intercept)[0]
    assert found.basis.shape == expected.basis.shape
    assert found.null_space.shape == expected.null_space.shape
    # Without an intercept, sums of two groups differ by nothing, and constant columns are columns.
    assert found.null_space.shape[1] == N_DEPENDENT + (0 if fit_intercept else 1)
    # The bases differ by a rotation.
    np.testing.assert_allclose(
        found.basis @ found.basis.T, expected.basis @ expected.basis.T, rtol=0, atol=1e-12
    )
    for a, b in [(found, expected), (expected, found)]:
        np.testing.assert_allclose(a.basis.T @ b.null_space, 0.0, atol=1e-12)
    np.testing.assert_allclose(coef, expected.solution[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("place", PLACES)
def test_null_space_and_basis_are_what_they_say(place, no_triangle):
    X, _, rng = one_hot()
    weights = rng.choice([0.0, 0.5, 1.0], len(X))
    found = factor(PLACES[place](X), weights, 0.0, True)
    centred = (X - np.average(X, axis=0, weights=weights)) * np.sqrt(weights)[:, None]
    scores = centred @ found.null_space
    assert np.abs(scores).max() < 1e-14
    form = (centred @ found.basis).T @ (centred @ found.basis)
    np.testing.assert_allclose(form, np.eye(len(form)), atol=1e-12)


def test_the_shortest_solution(no_triangle):
    X, y, _ = one_hot()
    coef = solve_least_squares(DenseRows(X), np.stack([y, 1 - 2 * y])).coef
    expected = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]
    np.testing.assert_allclose(coef, np.outer([1.0, -2.0], expected), atol=1e-13)


@pytest.mark.parametrize("gap", [1e-7, 1e-9, 1e-11])
@pytest.mark.parametrize("place", ["dense", "chunks"])
def test_nearly_exact_dependencies_are_none(gap, place):
    X, _, rng = one_hot()
    X[:, 0] += gap * rng.normal(size=len(X))
    rows = PLACES[place](X)
    with patch.object(
        _Varying, "_orthogonal", autospec=True, side_effect=_Varying._orthogonal
    ) as used:
        found = factor(rows, None, 0.0, True)
    assert used.call_count == 1
    assert found.null_space.shape[1] == N_DEPENDENT - 1
    # All of what is known about the weights in this direction comes from the difference.
    scores = (X - X.mean(axis=0)) @ found.basis
    np.testing.assert_allclose(scores.T @ scores, np.eye(scores.shape[1]), atol=1e-14 / gap)


def test_a_dependency_up_to_rounding_is_one(no_triangle):
    X, _, rng = one_hot()
    mixed = X[:, :4] @ rng.normal(size=4) / 3.0 + X[:, -6]
    assert whiten(DenseRows(np.column_stack([X, mixed])), None, 0.0, True).rank == (
        whiten(DenseRows(X), None, 0.0, True).rank
    )


@pytest.mark.parametrize("exponent", [3, 6, 9])
def test_units_of_columns_change_nothing(exponent, no_triangle):
    X, y, rng = one_hot()
    scale = 2.0 ** rng.integers(-3 * exponent, 3 * exponent + 1, X.shape[1])  # nothing is rounded
    plain = solve(DenseRows(X), y)
    scaled = solve(DenseRows(X * scale), y)
    np.testing.assert_allclose(
        X @ plain[0] + plain[1],
        (X * scale) @ scaled[0] + scaled[1],
        atol=1e-12,
    )


@pytest.mark.parametrize("offset", [1e2, 1e5, 1e8])
def test_columns_far_from_zero(offset):
    X, y, _ = one_hot()
    far = X + offset * (np.arange(X.shape[1]) % 3)
    exact = far - offset * (np.arange(X.shape[1]) % 3)
    assert np.allclose(exact, X, atol=1e-7)
    plain, shifted = (solve(DenseRows(A), y) for A in (X, far))
    np.testing.assert_allclose(
        X @ plain[0] + plain[1],
        far @ shifted[0] + shifted[1],
        atol=1e-13 * offset,
    )


def test_a_rare_category(no_triangle):
    X, y, _ = one_hot(20_000)
    X[:, :2] = [1.0, 0.0]
    X[7, :2] = [0.0, 1.0]
    full = solve(DenseRows(X), y)
    less = solve(DenseRows(np.delete(X, 0, axis=1)), y)
    np.testing.assert_allclose(
        X @ full[0] + full[1],
        np.delete(X, 0, axis=1) @ less[0] + less[1],
        atol=1e-11,
    )


def test_rows_without_weight_may_score_infinity(no_triangle):
    X, y, _ = one_hot()
    X = np.vstack([X, np.full((3, X.shape[1]), 1e308)])
    y, weights = np.append(y, [0.0, 1.0, 0.0]), np.append(np.ones(len(y)), np.zeros(3))
    coef = solve(DenseRows(X), y, weights)[0]
    expected = solve(DenseRows(X[:-3]), y[:-3])[0]
    np.testing.assert_allclose(coef, expected, atol=1e-12)


@pytest.mark.parametrize("place", ["dense", "sparse"])
def test_fits_factor_no_rows(place, no_triangle):
    X, y, _ = one_hot(6000)
    X = X if place == "dense" else sparse.csr_array(X)
    LeastSquaresClassifier().fit(X, y)
    few = np.where(np.arange(len(y)) < 300, y, -1).astype(int)
    certificate = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, few).certificate_
    assert certificate.holds
    assert certificate.converged
