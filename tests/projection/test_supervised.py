"""Least squares against other least squares, in and beyond double precision."""

import mpmath
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from neverworse import LeastSquaresClassifier
from neverworse.projection import solve_least_squares
from neverworse.projection.coordinates.gram import factor, moments, whiten
from neverworse.rows import DenseRows, as_rows


def _data(n=60, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=d) + rng.normal(size=n) > 0).astype(float)
    return X, y, rng


def _solve(X, y, weights=None, **kwargs):
    solution = solve_least_squares(as_rows(X), y[None], weights, **kwargs)
    return solution.coef[0], solution.intercept[0]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_equals_ridge(alpha, fit_intercept, weighted):
    X, y, rng = _data()
    X += 3.0
    weights = rng.uniform(0.1, 3, len(y)) if weighted else None
    expected = Ridge(alpha, fit_intercept=fit_intercept, solver="svd").fit(X, y, weights)
    coef, intercept = _solve(X, y, weights, alpha=alpha, fit_intercept=fit_intercept)
    np.testing.assert_allclose(coef, expected.coef_, rtol=1e-9, atol=1e-12)
    assert intercept == pytest.approx(expected.intercept_, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("shape", [(10, 30), (30, 30), (31, 30)])
def test_minimum_norm_with_few_rows(shape):
    X, y, _ = _data(*shape)
    coef, intercept = _solve(X, y)
    centred = X - X.mean(axis=0)
    expected = np.linalg.lstsq(centred, y - y.mean(), rcond=None)[0]
    np.testing.assert_allclose(coef, expected, rtol=1e-6, atol=1e-9)
    assert intercept == pytest.approx(y.mean() - X.mean(axis=0) @ expected, rel=1e-6)


def test_minimum_norm_with_dependent_columns():
    X, y, _ = _data()
    X = np.column_stack([X, X[:, 0], X[:, 1] - 2 * X[:, 2], np.full(len(X), 7.0)])
    coef, _ = _solve(X, y)
    expected = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]
    np.testing.assert_allclose(coef, expected, rtol=1e-8, atol=1e-10)
    assert coef[-1] == 0.0


def test_rank_does_not_depend_on_the_scales_of_the_columns():
    X, y, rng = _data()
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    scale = 10.0 ** rng.integers(-12, 13, X.shape[1])
    rank = whiten(as_rows(X), None, 0.0, True).rank
    assert rank == whiten(as_rows(X * scale), None, 0.0, True).rank == 6  # 5 columns and a one
    plain, scaled = _solve(X, y), _solve(X * scale, y)
    np.testing.assert_allclose(X @ plain[0] + plain[1], (X * scale) @ scaled[0] + scaled[1])


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e9])
def test_columns_far_from_zero(offset):
    X, y, _ = _data()
    expected, _ = _solve(X, y)
    # What the shifted columns really are, after rounding.
    rounded = (X + offset) - offset
    reference, _ = _solve(rounded, y)
    coef, _ = _solve(X + offset, y)
    np.testing.assert_allclose(coef, reference, rtol=1e-6)
    np.testing.assert_allclose(coef, expected, rtol=max(1e-9, offset * 1e-12))


def _mp_least_squares(X, y):
    mpmath.mp.dps = 60
    A = mpmath.matrix([[*map(mpmath.mpf, row), 1] for row in X.tolist()])
    return mpmath.lu_solve(A.T * A, A.T * mpmath.matrix(y.tolist()))


@pytest.mark.parametrize("spread", [0, 6, 12])
def test_wide_scales_in_extended_precision(spread):
    X, y, _ = _data(d=4)
    X = X * 10.0 ** np.linspace(-spread / 2, spread / 2, 4)
    exact = _mp_least_squares(X, y)
    coef, intercept = _solve(X, y)
    np.testing.assert_allclose([*coef, intercept], [float(v) for v in exact], rtol=1e-10)


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-7])
def test_nearly_dependent_columns_in_extended_precision(gap):
    X, y, rng = _data(d=3)
    X = np.column_stack([X, X[:, 0] + gap * rng.normal(size=len(X))])
    exact = _mp_least_squares(X, y)
    coef, _ = _solve(X, y)
    # The condition number is 1 / gap, and enters once, not squared.
    np.testing.assert_allclose(coef, [float(v) for v in exact][:4], rtol=1e-13 / gap)


def test_rcond_cuts_singular_values_of_the_centred_gram_matrix():
    X, y, _ = _data()
    X = X * np.array([1.0, 1.0, 1e-3, 1e-5, 1e5])
    centred = X - X.mean(axis=0)
    for rcond in (1e-13, 1.49e-8):
        inverse = np.linalg.pinv(centred.T @ centred, rcond=rcond, hermitian=True)
        coef, _ = _solve(X, y, rcond=rcond)
        np.testing.assert_allclose(coef, inverse @ centred.T @ (y - y.mean()), rtol=1e-4)
    exact, _ = _solve(X, y)
    assert not np.allclose(coef, exact, rtol=0.1)  # the cut-off does something here


def test_zero_weights_remove_rows():
    X, y, rng = _data()
    weights = rng.uniform(0.5, 2, len(y)) * (rng.random(len(y)) < 0.6)
    X[weights == 0] *= 1e8
    coef, _ = _solve(X, y, weights)
    expected, _ = _solve(X[weights > 0], y[weights > 0], weights[weights > 0])
    np.testing.assert_allclose(coef, expected, rtol=1e-9)


def test_constant_columns_are_told_from_nearly_constant_ones():
    X, _, _ = _data()
    X = np.column_stack([X, np.full(len(X), 0.1), 1e6 + 1e-3 * X[:, 0]])
    found = moments(DenseRows(X), None, centre=True)
    np.testing.assert_array_equal(found.varies, [True] * 5 + [False, True])
    assert found.rows.shift is not None
    variance = found.gram[-1, -1] / len(X)
    assert variance == pytest.approx(np.var(X[:, -1] - 1e6), rel=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("n", [8, 200, 30_000])
@pytest.mark.parametrize("exactly", [True, False])
def test_whitening_makes_the_quadratic_form_the_identity(alpha, n, exactly):
    X, _, rng = _data(n, 6)
    X[:, 5] = X[:, 4] + 1e-6 * (X[:, 3] if exactly else rng.normal(size=n))
    weights = rng.uniform(0.5, 2, n)
    whitening = whiten(as_rows(X), weights, alpha, True)
    K = whitening.apply(X.copy())
    form = K.T @ (weights[:, None] * K) + alpha * whitening.basis.T @ whitening.basis
    np.testing.assert_allclose(form, np.eye(whitening.rank), atol=1e-8)


def test_orthogonal_factors_agree_in_one_block_and_in_many():
    X, y, rng = _data(30_000, 6)
    X[:, 5] = X[:, 4] + 1e-6 * rng.normal(size=len(X))
    centred = X - X.mean(axis=0)
    solution = factor(as_rows(X), None, 0.0, True, (y - y.mean())[None]).solution[0]
    expected = np.linalg.lstsq(centred, y - y.mean(), rcond=None)[0]
    np.testing.assert_allclose(centred @ solution, centred @ expected, atol=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_rows_that_play_no_part_may_score_infinity(alpha):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = 0.1 * rng.normal(size=(40, 1)) + 0.1 * y[:, None]
    without = LeastSquaresClassifier(alpha).fit(X[:30], y[:30])
    y[30:] = -1
    X[35] = 1e308
    np.testing.assert_allclose(
        LeastSquaresClassifier(alpha).fit(X, y).coef_, without.coef_, rtol=1e-12
    )
    weights = np.where(np.arange(40) < 30, 1.0, 0.0)
    weighted = LeastSquaresClassifier(alpha).fit(X, np.arange(40) % 2, sample_weight=weights)
    np.testing.assert_allclose(weighted.coef_, without.coef_, rtol=1e-12)
