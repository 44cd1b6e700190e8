"""Some of the rows: their sums of squares, without a copy of all of them."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from neverworse._typing import Indices, Matrix, Vector
from neverworse.rows import Rows, SparseRows, as_rows
from neverworse.rows._base import N_PARTS, SMALL
from neverworse.rows._threads import map_in_threads


def choose(rows: Rows, indices: Indices) -> Rows:
    """Return a copy of some rows (which are not shifted), sparse if they are."""
    if isinstance(rows, SparseRows):
        return SparseRows(rows._X[indices])
    return as_rows(rows.take(indices))


def gram_of(rows: Rows, indices: Indices, weights: Vector) -> tuple[Matrix, Vector]:
    """Return E'SE and E's for some rows and their weights, which are not negative."""
    if isinstance(rows, SparseRows) and rows.shift is None:
        return choose(rows, indices).gram(weights)
    d, step = rows.n_columns, rows.block_rows

    def part(chosen: Indices) -> tuple[Matrix, Vector]:
        gram, total = np.zeros((d, d)), np.zeros(d)
        for lo in range(0, len(chosen), step):
            these = chosen[lo : lo + step]
            block = rows.take(indices[these])
            total += weights[these] @ block
            block *= np.sqrt(weights[these])[:, None]
            gram += block.T @ block
        return gram, total

    n_parts = N_PARTS if len(indices) * d >= SMALL else 1
    parts = map_in_threads(part, np.array_split(np.arange(len(indices)), n_parts))
    return sum((p[0] for p in parts), np.zeros((d, d))), sum((p[1] for p in parts), np.zeros(d))


@np.errstate(over="ignore")  # an overflow shows in the result
def squares_of(rows: Rows, weights: Vector) -> Vector:
    """Return the weighted sum of squares of every column."""
    if isinstance(rows, SparseRows) and rows.shift is None:
        X = rows._X
        if not X.has_canonical_format:  # numbers in the same place have to be added up first
            X = X.copy()
            X.sum_duplicates()
        squares = np.square(X.data, dtype=np.float64)
        squared = sparse.csr_array((squares, X.indices, X.indptr), shape=X.shape)
        total: Vector = squared.T @ weights
        return total

    @np.errstate(over="ignore")
    def part(bounds: tuple[int, int]) -> Vector:
        total = np.zeros(rows.n_columns)
        for these in rows._slices(*bounds):
            total += weights[these] @ np.square(rows.block(these.start, these.stop))
        return total

    return sum(map_in_threads(part, rows.parts()), np.zeros(rows.n_columns))
