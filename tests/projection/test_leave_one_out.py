"""Scores without a row in closed form, against fits that are made without the row."""

import time
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse
from sklearn.linear_model import RidgeCV

from neverworse.projection.least_squares import leave_one_out as module
from neverworse.rows import as_rows
from tests.projection.left_out import leave_one_out

ALPHAS = np.array([1.0, 0.0, 1e-12, 1e-6, 1e-3, 30.0, 1e4])


def _data(n=40, d=5, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1.0
    targets = rng.normal(size=(n_classes, n))
    weights = rng.uniform(0.1, 3.0, n)
    return X, targets, weights, rng


def _predict(X, targets, weights, alpha, fit_intercept, points):
    """Scores of the points, by the singular values of the rows stacked on the penalty."""
    mean, means = np.zeros(X.shape[1]), np.zeros(len(targets))
    if fit_intercept:
        mean = np.average(X, axis=0, weights=weights)
        means = np.average(targets, axis=1, weights=weights)
    root = np.sqrt(weights)[:, None]
    A = np.vstack([root * (X - mean), np.sqrt(alpha) * np.eye(X.shape[1])])
    B = np.vstack([root * (targets - means[:, None]).T, np.zeros((X.shape[1], len(targets)))])
    coef = np.linalg.lstsq(A, B, rcond=None)[0]
    return ((points - mean) @ coef + means).T


def _refits(X, targets, weights, alphas, fit_intercept, indices=None):
    scores = []
    for i in range(len(X)) if indices is None else indices:
        rest = np.arange(len(X)) != i
        without = X[rest], targets[:, rest], weights[rest]
        scores.append([_predict(*without, a, fit_intercept, X[[i]])[:, 0] for a in alphas])
    return np.array(scores).transpose(1, 2, 0)


def _exact(X, target, weights, alphas, fit_intercept):
    """Fits without each row in rational arithmetic; for a penalty of zero, of 1e-60."""
    ones = np.ones((len(X), int(fit_intercept)))
    E = [[Fraction(float(v)) for v in row] for row in np.column_stack([X, ones])]
    y, s = ([Fraction(float(v)) for v in values] for values in (target, weights))
    scores = np.empty((len(alphas), len(E)))
    for i, row in enumerate(E):
        rest = [j for j in range(len(E)) if j != i]
        p = range(len(row))
        H = [[sum(s[j] * E[j][a] * E[j][b] for j in rest) for b in p] for a in p]
        g = [sum(s[j] * E[j][a] * y[j] for j in rest) for a in p]
        for k, alpha in enumerate(alphas):
            penalty = Fraction(float(alpha)) if alpha else Fraction(1, 10**60)
            penalised = [
                [*H[a], g[a]]
                if a >= X.shape[1]
                else [*H[a][:a], H[a][a] + penalty, *H[a][a + 1 :], g[a]]
                for a in p
            ]
            w = _solve(penalised)
            scores[k, i] = float(sum(x * c for x, c in zip(row, w, strict=True)))
    return scores


def _solve(A):
    """Gauss and Jordan; the matrix is positive definite, so no pivot is zero."""
    n = len(A)
    for k in range(n):
        A[k] = [v / A[k][k] for v in A[k]]
        for r in range(n):
            if r != k and A[r][k]:
                A[r] = [v - A[r][k] * w for v, w in zip(A[r], A[k], strict=True)]
    return [row[-1] for row in A]


@pytest.fixture
def refitted(monkeypatch):
    """The rows for which other fits were made."""
    found = []
    without = module.Fit.without
    monkeypatch.setattr(module.Fit, "without", lambda fit, i: (found.append(i), without(fit, i))[1])
    return found


@pytest.mark.parametrize(
    "shape", [(40, 5), (40, 1), (2, 1), (3, 5), (12, 30), (29, 30), (30, 30), (31, 30), (32, 30)]
)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_equals_fits_without_the_row(shape, fit_intercept, weighted, refitted):
    X, targets, weights, _ = _data(*shape)
    scores = leave_one_out(
        as_rows(X), targets, weights if weighted else None, ALPHAS, fit_intercept
    )
    if not weighted:
        weights = np.ones(len(X))
    expected = _refits(X, targets, weights, ALPHAS, fit_intercept)
    assert scores.shape == (len(ALPHAS), *targets.shape)
    for ours, theirs in zip(scores, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())
    assert not refitted


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(60, 7), (15, 40)])
@pytest.mark.parametrize("weighted", [True, False])
def test_equals_ridge_cv(shape, fit_intercept, weighted):
    X, targets, weights, _ = _data(*shape)
    alphas = [1e-3, 0.1, 1.0, 100.0]
    ridge = RidgeCV(alphas, fit_intercept=fit_intercept, store_cv_results=True)
    ridge.fit(X, targets.T, sample_weight=weights if weighted else None)
    scores = leave_one_out(
        as_rows(X), targets, weights if weighted else None, np.array(alphas), fit_intercept
    )
    squared = (scores - targets) ** 2
    if weighted:
        squared *= weights
    np.testing.assert_allclose(squared.transpose(2, 1, 0), ridge.cv_results_, rtol=1e-7, atol=1e-12)


def test_one_target_is_one_class():
    X, targets, weights, _ = _data()
    together = leave_one_out(as_rows(X), targets, weights, ALPHAS)
    for k, target in enumerate(targets):
        alone = leave_one_out(as_rows(X), target, weights, ALPHAS)
        assert alone.shape == (len(ALPHAS), len(X))
        np.testing.assert_allclose(alone, together[:, k], rtol=1e-12, atol=1e-14)


def test_each_penalty_is_on_its_own():
    X, targets, weights, _ = _data()
    together = leave_one_out(as_rows(X), targets, weights, ALPHAS)
    for alpha, scores in zip(ALPHAS, together, strict=True):
        single = leave_one_out(as_rows(X), targets, weights, np.array([alpha]))
        np.testing.assert_allclose(single[0], scores, rtol=1e-12, atol=1e-14)


def _rare(X, rng):
    return np.column_stack([X, np.eye(len(X))[:, :2] * 3.0, np.eye(len(X))[:, 2] - 5.0])


HARD = {
    "plain": lambda X, rng: X,
    "scales": lambda X, rng: X * [1e-6, 1e6, 1.0],
    "wild scales": lambda X, rng: X * [1e-10, 1e10, 1.0],
    "nearly collinear": lambda X, rng: np.column_stack([X, X[:, 0] + 1e-4 * X[:, 1] ** 2]),
    "constant column": lambda X, rng: np.column_stack([X, np.full(len(X), 0.1)]),
    "rare columns": _rare,
    "rare columns in other coordinates": lambda X, rng: (
        np.round(8 * _rare(X, rng)) @ rng.integers(-3, 4, (6, 6))
    ),
    "one-hot": lambda X, rng: np.column_stack([X[:, :1], np.eye(4)[rng.integers(0, 4, len(X))]]),
    "few distinct rows": lambda X, rng: X[[0, *rng.integers(1, 4, len(X) - 1)]],
    "dependent": lambda X, rng: np.round(8 * X) @ [[1, 0, 0, 2], [0, 1, 0, -1], [0, 0, 1, 1]],
    "dependent, other scales": lambda X, rng: (
        np.round(8 * X)
        @ np.array([[1, 0, 0, 2], [0, 1, 0, -1], [0, 0, 1, 1]])
        * [1, 1, 256, 1 / 256]
    ),
    "outlier": lambda X, rng: X * np.append(1e3, np.ones(len(X) - 1))[:, None],
    "giant": lambda X, rng: X * np.append(1e7, np.ones(len(X) - 1))[:, None],
    "two giants": lambda X, rng: X * np.append([1e5, 1e7], np.ones(len(X) - 2))[:, None],
    "float32": lambda X, rng: X.astype(np.float32),
    "few rows": lambda X, rng: X[:3],
    "few rows of other scales": lambda X, rng: X[:3] * [1e-4, 1e4, 1.0],
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_hard_cases_in_rational_arithmetic(kind, fit_intercept):
    X, targets, weights, rng = _data(10, 3)
    X = HARD[kind](X, rng)
    target, weights = targets[0, : len(X)], weights[: len(X)]
    scores = leave_one_out(as_rows(X), target, weights, ALPHAS, fit_intercept)
    expected = _exact(X, target, weights, ALPHAS, fit_intercept)
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_columns_far_from_zero_in_rational_arithmetic(offset):
    X, targets, weights, _ = _data(10, 3)
    X += offset
    scores = leave_one_out(as_rows(X), targets[0], weights, ALPHAS)
    np.testing.assert_allclose(scores, _exact(X, targets[0], weights, ALPHAS, True), rtol=1e-10)


@pytest.mark.parametrize("exponent", [4, 8])
def test_weights_of_very_different_size_in_rational_arithmetic(exponent):
    X, targets, _, rng = _data(10, 3)
    weights = 10.0 ** rng.uniform(-exponent / 2, exponent / 2, len(X))
    weights[0] = 10.0**exponent
    scores = leave_one_out(as_rows(X), targets[0], weights, ALPHAS)
    expected = _exact(X, targets[0], weights, ALPHAS, True)
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)


whole_numbers = st.integers(-2, 2)


@given(st.data(), st.integers(2, 7), st.integers(1, 4), st.booleans())
@settings(max_examples=100, deadline=None)
def test_whole_numbers_in_rational_arithmetic(data, n, d, fit_intercept):
    """Ties, duplicates, dependent columns, rows without weight, rows that are alone."""

    def draw(values, size):
        return np.array(data.draw(st.lists(values, min_size=size, max_size=size)), dtype=float)

    X = draw(whole_numbers, n * d).reshape(n, d)
    target = draw(whole_numbers, n)
    weights = draw(st.integers(0, 3), n)
    weights[:2] += 1.0
    alphas = np.array([0.0, 1e-9, 0.5])
    scores = leave_one_out(as_rows(X), target, weights, alphas, fit_intercept)
    expected = _exact(X, target, weights, alphas, fit_intercept)
    expected[:, weights == 0] = np.nan
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)


def test_rare_columns_need_no_other_fit(refitted):
    X, targets, weights, rng = _data(15, 2)
    # Two columns that are zero but in two rows are as good as one column for each of them.
    pair = np.zeros((15, 2))
    pair[[7, 9]] = [[1.0, 2.0], [-3.0, 1.0]]
    X = np.column_stack([_rare(X, rng), pair]) * [1e-5, 1e5, 1.0, 1e-5, 1.0, 1.0, 1e3]
    scores = leave_one_out(as_rows(X), targets[0], weights, ALPHAS)
    expected = _exact(X, targets[0], weights, ALPHAS, True)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    assert [list(rows) for rows in refitted] == [[0, 1, 2, 7, 9]]


def test_only_giants_need_another_fit(refitted):
    X, targets, _, rng = _data(60, 4)
    X = _rare(X, rng)
    X[[10, 20], :4] *= 1e6
    leave_one_out(as_rows(X), targets, None, ALPHAS)
    assert [np.ravel(rows).tolist() for rows in refitted] == [[0, 1, 2], [10], [20]]


@pytest.mark.parametrize("shape", [(40, 5), (12, 30)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rows_without_weight_play_no_part(shape, fit_intercept):
    X, targets, weights, rng = _data(*shape)
    out = rng.random(len(X)) < 0.4
    weights[out] = 0.0
    X[out] *= 1e200
    scores = leave_one_out(as_rows(X), targets, weights, ALPHAS, fit_intercept)
    kept = X[~out], targets[:, ~out], weights[~out]
    others = leave_one_out(as_rows(kept[0]), *kept[1:], ALPHAS, fit_intercept)
    np.testing.assert_allclose(scores[:, :, ~out], others, rtol=1e-9, atol=1e-12)


def test_rows_in_many_blocks_and_parts():
    X, targets, weights, rng = _data(30_000, 24)
    X[:, 3] = rng.random(len(X)) < 1e-3
    rows = as_rows(X)
    assert len(rows.parts()) > 1
    indices = [0, 8191, 8192, 15_000, 29_999]
    scores = leave_one_out(rows, targets, weights, ALPHAS)[:, :, indices]
    expected = _refits(X, targets, weights, ALPHAS, True, indices)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_rows(fit_intercept):
    """Many rows are alone in one column, or in some columns that they share."""
    _, targets, weights, rng = _data(24)
    X = sparse.random(24, 12, density=0.08, format="csr", rng=rng)
    scores = leave_one_out(as_rows(X), targets[0], weights, ALPHAS[:3], fit_intercept)
    expected = _exact(X.toarray(), targets[0], weights, ALPHAS[:3], fit_intercept)
    np.testing.assert_allclose(scores, expected, rtol=1e-11, atol=1e-11)


def test_no_column_that_differs():
    _, targets, weights, _ = _data(6)
    scores = leave_one_out(as_rows(np.full((6, 2), 0.1)), targets, weights, ALPHAS)
    means = (targets @ weights)[:, None] - targets * weights
    means /= weights.sum() - weights
    np.testing.assert_allclose(scores, np.broadcast_to(means, scores.shape), rtol=1e-12)
    scores = leave_one_out(as_rows(np.zeros((6, 2))), targets, weights, ALPHAS, False)
    np.testing.assert_allclose(scores, 0.0, atol=1e-15)


def test_one_row_alone_leaves_nothing_to_fit():
    X, targets, _, _ = _data(3, 2)
    weights = np.array([0.0, 2.0, 0.0])
    scores = leave_one_out(as_rows(X), targets, weights, ALPHAS)
    assert np.isnan(scores[:, :, 1]).all()
    scores = leave_one_out(as_rows(X), targets, weights, ALPHAS, False)
    np.testing.assert_allclose(scores[:, :, 1], 0.0, atol=1e-15)


def test_refuses_what_makes_no_sense():
    X, targets, _, _ = _data()
    with pytest.raises(ValueError, match="alphas must not be negative"):
        leave_one_out(as_rows(X), targets, None, np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="weights must not all be zero"):
        leave_one_out(as_rows(X), targets, np.zeros(len(X)), ALPHAS)


def test_fast_and_never_a_copy_of_all_rows():
    X, targets, _, _ = _data(200_000, 50, n_classes=1)
    rows, alphas = as_rows(X), np.logspace(-3, 3, 7)
    begin = time.process_time()
    module.leave_one_out(rows, targets, None, alphas, _squares)
    assert time.process_time() - begin < 10.0  # a twentieth of that, if nothing else runs
    tracemalloc.start()
    module.leave_one_out(rows, targets, None, alphas, _squares)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < X.nbytes / 4


def _squares(scores, target, weights):
    return np.sum((scores - target) ** 2, axis=1) @ weights


def test_singular_values_are_found_where_divide_and_conquer_fails(monkeypatch):
    X, targets, weights, _ = _data(40, 5, n_classes=1)
    alphas = np.array([0.0, 1.0])
    expected = leave_one_out(as_rows(X), targets, weights, alphas)
    svd = linalg.svd

    def failing(matrix, *, lapack_driver="gesdd", **options):
        if lapack_driver == "gesdd":
            raise linalg.LinAlgError("SVD did not converge")
        return svd(matrix, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr(linalg, "svd", failing)
    found = leave_one_out(as_rows(X), targets, weights, alphas)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
