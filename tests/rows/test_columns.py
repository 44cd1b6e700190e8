"""Rows that are stored column by column do what dense rows do."""

from itertools import pairwise

import numpy as np
import pytest

from neverworse.rows import DenseRows, RowWeigh, Standard
from neverworse.rows._parquet import ColumnRows

N = 5000
TYPES = [np.float64, np.float32, np.float16, np.int8, np.int64, np.bool_]
RNG = np.random.default_rng(0)
COLUMNS = [RNG.integers(-2, 3, N).astype(kind) for kind in TYPES]
X = np.column_stack([column.astype(np.float64) for column in COLUMNS])
D = X.shape[1]
CUTS = {"one piece": (), "two pieces": (1234,), "many pieces": (1, 2, 700, 701, 4999)}
SHIFT = np.arange(D) - 2.5
INDICES = np.array([4999, 0, 0, 1, 1234, 1233, 702, 2])
COEF = np.arange(1.0, D + 1.0)
WEIGHTS = RNG.choice([0.0, 1.0, 4.0], N)


@pytest.fixture(params=CUTS)
def pieces(request):
    edges = [0, *CUTS[request.param], N]
    return [[column[lo:hi] for column in COLUMNS] for lo, hi in pairwise(edges)]


@pytest.fixture(params=[False, True], ids=["as is", "shifted"])
def both(request, pieces):
    shift = SHIFT if request.param else None
    return ColumnRows(pieces, shift), DenseRows(X, shift)


def weighed(t, weights):
    return weights * np.sign(t)


STANDARD = Standard(np.arange(D), np.zeros(D), np.ones(D))
VERBS = {
    "gram": lambda rows: rows.gram(),
    "weighted gram": lambda rows: rows.gram(WEIGHTS),
    "scores": lambda rows: rows.scores(COEF, 0.5),
    "scores of classes": lambda rows: rows.scores(np.stack([COEF, -COEF]), np.ones(2)),
    "scores_and_sum": lambda rows: rows.scores_and_sum(COEF, 0.5, RowWeigh(weighed, (WEIGHTS,))),
    "weighted_sum": lambda rows: rows.weighted_sum(WEIGHTS),
    "squares": lambda rows: rows.squares(WEIGHTS),
    "ranges": lambda rows: rows.ranges(np.arange(D), WEIGHTS),
    "spread_along": lambda rows: rows.spread_along(COEF[None], SHIFT, WEIGHTS),
    "triangle": lambda rows: rows.triangle(STANDARD, WEIGHTS, WEIGHTS[None]),
    "kernel": lambda rows: rows.some(INDICES).kernel(SHIFT),
    "take": lambda rows: rows.take(INDICES),
    "copies": lambda rows: rows.copies(INDICES),
    "take nothing": lambda rows: rows.take(INDICES[:0]),
    "block": lambda rows: rows.block(650, 2000),
    "empty block": lambda rows: rows.block(700, 700),
    "last block": lambda rows: rows.block(4998, N),
    "first_not_finite": lambda rows: rows.first_not_finite(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_same_as_dense_rows(verb, both):
    found, expected = map(VERBS[verb], both)
    if verb == "triangle":  # rows of a triangle may have either sign
        found, expected = found.T @ found, expected.T @ expected
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        if b is None:
            assert a is None
        else:
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def test_shifted_rows_leave_the_others_alone(pieces):
    rows = ColumnRows(pieces)
    assert (rows.n_rows, rows.n_columns) == (N, D)
    np.testing.assert_array_equal(rows.shifted(SHIFT).block(0, N), X - SHIFT)
    np.testing.assert_array_equal(rows.block(0, N), X)


@pytest.mark.parametrize("where", [0, 1, 699, 700, 4999])
def test_first_not_finite(where, pieces):
    start = 0
    for columns in pieces:
        columns[1] = columns[1].copy()
        if start <= where < start + len(columns[1]):
            columns[1][where - start] = np.inf
        start += len(columns[1])
    assert ColumnRows(pieces).first_not_finite() == (where, 1, np.inf)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_copies_take_no_more_memory_than_columns(kind):
    values = RNG.standard_normal((3, 50)).astype(kind)
    copies = ColumnRows([list(values)]).copies(np.arange(0, 50, 7))
    assert copies.dtype == kind
    np.testing.assert_array_equal(copies, values[:, ::7].T)
