"""Rows of a sparse matrix, in memory or mapped into it."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from neverworse._typing import Indices, Matrix, Vector
from neverworse.rows._base import SMALL, DenseRows, Rows
from neverworse.rows._blocks import map_in_threads

N_PARTS = 4  # for threads, whatever their number
# Multiplications of sparse matrices take some 500 times as long as those of dense blocks, run on
# one core, and copy the data: for a Gram matrix, dense blocks are at least as fast where at least
# one number in this many is not zero.
DENSE = 24


class SparseRows(Rows):
    """Rows of a sparse matrix; shifted ones are dense, so they are read block by block."""

    def __init__(self, X: Any, shift: Vector | None = None) -> None:
        super().__init__(X.shape[0], X.shape[1], shift)
        self._X = _without_duplicates(sparse.csr_array(X))

    def block(self, start: int, stop: int) -> Matrix:
        return self._dense(self._X[start:stop])

    def take(self, indices: Indices) -> Matrix:
        return self._dense(self._X[indices])

    def shifted(self, shift: Vector | None) -> SparseRows:
        return SparseRows(self._X, shift)

    def some(self, indices: Indices) -> SparseRows:
        return SparseRows(self._X[indices], self.shift)

    @np.errstate(over="ignore", invalid="ignore")  # an overflow shows in the result
    def gram(self, weights: Vector | None = None) -> tuple[Matrix, Vector]:
        if self.shift is not None or DENSE * self._X.nnz > self.n_rows * self.n_columns:
            return super().gram(weights)
        X = self._X.astype(np.float64, copy=False)
        weighted = X if weights is None else X.multiply(weights[:, None]).tocsr()
        gram = (X.T @ weighted).toarray()
        return gram, np.asarray(weighted.sum(axis=0)).ravel()

    @np.errstate(over="ignore", invalid="ignore")
    def squares(self, weights: Vector | None = None) -> Vector:
        if self.shift is not None:
            return super().squares(weights)
        squares = self._X.astype(np.float64)  # a copy
        plain = squares.data.copy()
        if weights is not None:  # first, as in `Rows.squares`
            squares.data *= np.repeat(weights, np.diff(squares.indptr))
        squares.data *= plain
        return np.asarray(squares.T @ np.ones(self.n_rows))

    def kernel(self, centre: Vector) -> Matrix:
        if self.shift is not None:
            return super().kernel(centre)
        X = self._X.astype(np.float64, copy=False)
        kernel: Matrix = (X @ X.T).toarray()
        if centre.any():
            at_centre = X @ centre
            kernel -= at_centre
            kernel -= at_centre[:, None]
            kernel += centre @ centre
        return kernel

    def ranges(self, columns: Indices, weights: Vector | None) -> tuple[Vector, Vector]:
        X = self._X if weights is None else self._X[weights > 0]
        if not X.shape[0]:
            return np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
        X = X[:, columns].tocsc()
        low, high = (np.asarray(end.toarray(), np.float64).ravel() for end in (X.min(0), X.max(0)))
        return low, high

    def single_kernel_product(self, x: Matrix, centre: Vector) -> Matrix | None:
        # In half the time, from copies by rows and by columns.
        if self.shift is not None:
            return None
        few, total = np.asarray(x, np.float32), x.sum(axis=0)
        columns, rows = self._single
        combined = np.concatenate(map_in_threads(lambda part: part @ few, columns))
        product = np.concatenate(map_in_threads(lambda part: part @ combined, rows), dtype=float)
        product -= np.outer(self._X @ centre, total)
        product -= centre.astype(np.float32) @ combined - (centre @ centre) * total
        return product

    @cached_property
    def _single(self) -> tuple[list[Any], list[Any]]:
        """Copies by columns and by rows in single precision, each in parts of equal size."""

        def parts(X: Any) -> list[Any]:
            cuts = np.searchsorted(X.indptr, np.linspace(0, X.nnz, N_PARTS + 1)[1:-1])
            return [X[lo:hi] for lo, hi in pairwise([0, *cuts.tolist(), X.shape[0]])]

        X = self._X.astype(np.float32)
        return parts(sparse.csr_array(X.T.tocsr())), parts(X)

    def _factor(self, rows: slice) -> Any:
        return self._view(rows) if self.shift is None else super()._factor(rows)

    def _factor_slices(self) -> list[list[slice]]:
        if self.shift is not None:
            return super()._factor_slices()
        # Few, because sums over each may have very many columns.
        n_parts = 1 if self._X.nnz < SMALL else N_PARTS
        edges = np.linspace(0, self.n_rows, n_parts + 1).astype(int).tolist()
        return [[slice(lo, hi)] for lo, hi in pairwise(edges)]

    def _view(self, rows: slice) -> Any:
        """Return some rows as a sparse matrix, without copying them."""
        X = self._X
        lo, hi = int(X.indptr[rows.start]), int(X.indptr[rows.stop])
        indptr = X.indptr[rows.start : rows.stop + 1] - X.indptr[rows.start]
        shape = (rows.stop - rows.start, self.n_columns)
        return sparse.csr_array((X.data[lo:hi], X.indices[lo:hi], indptr), shape=shape)

    def _dense(self, X: Any) -> Matrix:
        return self._less_shift(X.astype(np.float64, copy=False).toarray())


def _without_duplicates(X: Any) -> Any:
    """Add up duplicate entries: of large ones that cancel, products would lose all digits."""
    if X.has_canonical_format:
        return X
    X = X.tocsc().tocsr()  # sorted, with duplicates in the order in which they were given
    X.sum_duplicates()
    return X


def as_rows(X: Any) -> Rows:
    """Return the rows of a checked array or sparse matrix, without copying it.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.rows import as_rows
    >>> as_rows(np.ones((3, 2))).n_rows
    3
    """
    return SparseRows(X) if sparse.issparse(X) else DenseRows(X)
