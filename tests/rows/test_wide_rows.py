"""What is asked of rows now and then: squares, kernel, some of the rows, ranges, spread."""

import numpy as np
import pytest
from scipy import sparse

from neverworse.rows import DenseRows, SparseRows, as_rows
from neverworse.rows import _sparse as sparse_module

KINDS = {
    "dense": lambda X, shift=None: DenseRows(X, shift),
    "sparse": lambda X, shift=None: SparseRows(sparse.csr_array(X), shift),
}
kinds = pytest.mark.parametrize("kind", KINDS)
shifts = pytest.mark.parametrize("shifted", [False, True], ids=["as is", "shifted"])


def example(shifted, n=300, d=40):
    """Small integers, most of them zero: no sum of their products is ever rounded."""
    rng = np.random.default_rng(0)
    X = rng.integers(-6, 7, (n, d)) * (rng.random((n, d)) < 0.3).astype(np.float64)
    shift = rng.integers(-3, 4, d).astype(np.float64) if shifted else None
    return X, shift, X if shift is None else X - shift


@kinds
@shifts
def test_squares(kind, shifted):
    X, shift, E = example(shifted)
    rows = KINDS[kind](X, shift)
    weights = np.random.default_rng(1).choice([0.0, 0.25, 3.0], len(X))
    assert np.array_equal(rows.squares(), (E**2).sum(axis=0))
    assert np.array_equal(rows.squares(weights), weights @ E**2)


@kinds
@shifts
def test_rows_without_weight_may_be_of_any_size(kind, shifted):
    X, shift, E = example(shifted)
    weights = np.random.default_rng(1).choice([0.0, 0.25, 3.0], len(X))
    expected = weights @ E**2, weights @ E
    X[weights == 0.0] *= 1e200
    rows = KINDS[kind](X, shift)
    assert np.array_equal(rows.squares(weights), expected[0])
    assert np.array_equal(rows.weighted_sum(weights), expected[1])


@pytest.mark.parametrize("weighted", [False, True])
def test_squares_of_entries_that_add_up(weighted):
    X, _, _ = example(False)
    indices = np.tile(np.arange(40), 2)
    both = np.column_stack([X, X[:, ::-1]]).ravel()
    thin = sparse.csr_array((both, np.tile(indices, 300), np.arange(301) * 80), shape=X.shape)
    before = thin.data.copy()
    weights = np.random.default_rng(1).choice([0.0, 0.25, 3.0], len(X)) if weighted else None
    added = X + X[:, ::-1]
    expected = added**2 if weights is None else weights[:, None] * added**2
    assert np.array_equal(as_rows(thin).squares(weights), expected.sum(axis=0))
    assert np.array_equal(thin.data, before)


@kinds
@shifts
@pytest.mark.parametrize("d", [40, 5000])  # in one piece, and in several
def test_kernel(kind, shifted, d):
    X, shift, E = example(shifted, 150, d)
    centre = np.random.default_rng(2).integers(-2, 3, d).astype(np.float64)
    rows = KINDS[kind](X, shift)
    assert np.array_equal(rows.kernel(np.zeros(d)), E @ E.T)
    assert np.array_equal(rows.kernel(centre), (E - centre) @ (E - centre).T)


@kinds
@shifts
def test_some(kind, shifted):
    X, shift, E = example(shifted)
    chosen = np.array([3, 0, 299])
    rows = KINDS[kind](X, shift).some(chosen)
    assert isinstance(rows, type(KINDS[kind](X)))
    assert np.array_equal(rows.take(np.arange(3)), E[chosen])
    coef = np.arange(40.0)
    assert np.array_equal(rows.scores(coef), X[chosen] @ coef)


@kinds
@shifts
@pytest.mark.parametrize("weighted", [False, True])
def test_ranges(kind, shifted, weighted):
    X, shift, _ = example(shifted)
    X[:, 7] = 0.0
    X[:, 8] = np.abs(X[:, 8]) + 1.0  # no zero among them
    weights = (np.arange(300) % 3 > 0).astype(float) if weighted else None
    kept = X if weights is None else X[weights > 0]
    columns = np.array([8, 7, 0, 39])
    low, high = KINDS[kind](X, shift).ranges(columns, weights)
    assert np.array_equal(low, kept[:, columns].min(axis=0))
    assert np.array_equal(high, kept[:, columns].max(axis=0))


@kinds
def test_ranges_of_no_rows(kind):
    X, _, _ = example(False)
    low, high = KINDS[kind](X).ranges(np.array([1, 2]), np.zeros(300))
    assert np.array_equal(low, [np.inf, np.inf])
    assert np.array_equal(high, [-np.inf, -np.inf])


@pytest.mark.parametrize("dense", [0, 24, np.inf])  # never, sometimes, always in dense blocks
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("nonzero", [0.01, 0.1])
def test_gram_of_sparse_rows(monkeypatch, dense, dtype, nonzero):
    monkeypatch.setattr(sparse_module, "DENSE", dense)
    rng = np.random.default_rng(5)
    X = rng.integers(-6, 7, (9000, 40)) * (rng.random((9000, 40)) < nonzero)
    rows = SparseRows(sparse.csr_array(X.astype(dtype)))
    for weights in (None, rng.choice([0.0, 0.25, 4.0], len(X))):
        gram, total = rows.gram(weights)
        s = np.ones(len(X)) if weights is None else weights
        assert np.array_equal(gram, (X * s[:, None]).T @ X)
        assert np.array_equal(total, s @ X)


@kinds
@shifts
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [300, 9000])  # in one part and one block, and in several
def test_spread_along(kind, shifted, weighted, n):
    X, shift, E = example(shifted, n)
    rng = np.random.default_rng(4)
    directions, centre = rng.integers(-3, 4, (3, 40)) * 1.0, rng.integers(-2, 3, 40) * 1.0
    weights = rng.choice([0.0, 0.25, 3.0], n) if weighted else None
    squares, products = KINDS[kind](X, shift).spread_along(directions, centre, weights)
    s = np.ones(n) if weights is None else weights
    scores = (E - centre) @ directions.T
    assert np.array_equal(squares, scores.T @ (s[:, None] * scores))
    assert np.array_equal(products, (s[:, None] * scores).T @ (E - centre))


@kinds
def test_spread_along_leaves_out_rows_without_a_weight(kind):
    X, _, _ = example(False)
    weights = np.where(np.arange(300) < 3, 0.0, 1.0)
    expected = KINDS[kind](X[3:]).spread_along(np.eye(2, 40) * 2.0, np.ones(40), None)
    X[:3, :2] = 1.7e308
    found = KINDS[kind](X).spread_along(np.eye(2, 40) * 2.0, np.ones(40), weights)
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("n", [2, 300])  # some parts are empty, or none
def test_parts_of_sparse_rows(monkeypatch, n):
    X, _, _ = example(False, n)
    monkeypatch.setattr(sparse_module, "SMALL", 0)
    rows = SparseRows(sparse.csr_array(X))
    rng = np.random.default_rng(3)
    coef, x = rng.integers(-3, 4, (3, 40)) * 1.0, rng.integers(-3, 4, (3, n)) * 1.0
    t, summed, total = rows.scores_and_sum(coef, np.ones(3), lambda t, rows: x[:, rows] * t)
    assert np.array_equal(t, coef @ X.T + 1.0)
    assert np.array_equal(summed, (x * t) @ X)
    assert np.array_equal(total, (x * t).sum(axis=1))
    assert np.array_equal(rows.weighted_sum(x), x @ X)
    assert np.array_equal(rows.scores(coef[0], 2.0), X @ coef[0] + 2.0)
