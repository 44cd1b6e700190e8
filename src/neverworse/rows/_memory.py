"""Rows in memory (or mapped into it): of a dense array, or of a sparse matrix."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from neverworse._typing import AnyArray, Indices, Matrix, Scalars, Vector
from neverworse.rows._base import SMALL, Rows
from neverworse.rows._blocks import Weigh, map_in_threads

N_PARTS = 4  # whose sums threads share, whatever their number
# Products of sparse matrices take some 500 times as long for each multiplication as those of dense
# blocks, run on one core, and copy the data: where at least one number in this many is not zero,
# dense blocks are at least as fast for a Gram matrix.
DENSE = 24

Result = TypeVar("Result")


class DenseRows(Rows):
    """Rows of a two-dimensional array of any real type and any memory layout.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns)
        Never written to and never copied as a whole.
    shift : array of shape (n_columns,), optional
        See `Rows`.
    """

    def __init__(self, X: AnyArray, shift: Vector | None = None) -> None:
        super().__init__(X.shape[0], X.shape[1], shift)
        self._X = X

    def block(self, start: int, stop: int) -> Matrix:
        # A view of the data where they are float64 and not shifted.
        block = self._X[start:stop].astype(np.float64, copy=False)
        return block if self.shift is None else block - self.shift

    def take(self, indices: Indices) -> Matrix:
        taken = self._X[indices].astype(np.float64, copy=False)
        if self.shift is not None:
            taken -= self.shift
        return taken

    def shifted(self, shift: Vector) -> DenseRows:
        return DenseRows(self._X, shift)

    def some(self, indices: Indices) -> DenseRows:
        return some_dense(self, indices)

    def column(self, index: int) -> AnyArray:
        column: AnyArray = self._X[:, index]
        return column


def some_dense(rows: Rows, indices: Indices) -> DenseRows:
    """Return some of any rows as a dense array, with the same shift."""
    plain = rows if rows.shift is None else rows.shifted(np.zeros(rows.n_columns))
    return DenseRows(plain.take(indices), rows.shift)


class SparseRows(Rows):
    """Rows of a sparse matrix; never made dense as a whole.

    Parameters
    ----------
    X : CSR matrix or array of shape (n_rows, n_columns)
    shift : array of shape (n_columns,), optional
        See `Rows`. Shifted rows are dense, so they are read block by block.
    """

    def __init__(self, X: Any, shift: Vector | None = None) -> None:
        super().__init__(X.shape[0], X.shape[1], shift)
        self._X = _without_duplicates(sparse.csr_array(X))

    def block(self, start: int, stop: int) -> Matrix:
        return self._dense(self._X[start:stop])

    def take(self, indices: Indices) -> Matrix:
        return self._dense(self._X[indices])

    def shifted(self, shift: Vector) -> SparseRows:
        return SparseRows(self._X, shift)

    def column(self, index: int) -> AnyArray:
        return self._X[:, [index]].toarray().ravel()

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
        if weights is not None:  # first, for rows without one may be of any size
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

    def some(self, indices: Indices) -> SparseRows:
        return SparseRows(self._X[indices], self.shift)

    def ranges(self, columns: Indices, weights: Vector | None) -> tuple[Vector, Vector]:
        # Of all columns at once, because there may be many.
        X = self._X if weights is None else self._X[weights > 0]
        if not X.shape[0]:
            return np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
        X = X[:, columns].tocsc()
        low, high = (np.asarray(end.toarray(), np.float64).ravel() for end in (X.min(0), X.max(0)))
        return low, high

    def weighted_sum(self, weights: Vector) -> Vector:
        if self.shift is not None:
            return super().weighted_sum(weights)

        def part(rows: slice, X: Any) -> Vector:
            return np.asarray(X.T @ weights[..., rows].T, dtype=np.float64)

        return _added_up(self._map_parts(part))

    def single_kernel_product(self, x: Matrix, centre: Vector) -> Matrix | None:
        # In half the time, from copies of the rows and of the columns.
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
        """The columns and the rows in single precision, in parts of about as many numbers."""

        def parts(X: Any) -> list[Any]:
            cuts = np.searchsorted(X.indptr, np.linspace(0, X.nnz, N_PARTS + 1)[1:-1])
            return [X[lo:hi] for lo, hi in pairwise([0, *cuts.tolist(), X.shape[0]])]

        X = self._X.astype(np.float32)
        return parts(sparse.csr_array(X.T.tocsr())), parts(X)

    def _pass(self, coef: Vector, intercept: Scalars, weigh: Weigh | None) -> tuple[Any, ...]:
        if self.shift is not None:
            return super()._pass(coef, intercept, weigh)
        scores = np.empty((*coef.shape[:-1], self.n_rows))
        columns = np.ascontiguousarray(coef.T)
        offset = np.asarray(intercept)[..., None]

        @np.errstate(over="ignore", invalid="ignore")  # rows that play no part may score infinity
        def part(rows: slice, X: Any) -> tuple[Vector, ...]:
            t = scores[..., rows]
            t[:] = (X @ columns).T
            t += offset
            if weigh is None:
                return ()
            x = weigh(t, rows)
            return np.asarray(X.T @ x.T, dtype=np.float64), x.sum(axis=-1)

        parts = self._map_parts(part)
        if weigh is None:
            return (scores,)
        return scores, _added_up([p[0] for p in parts]), sum(p[1] for p in parts)

    def _map_parts(self, function: Callable[[slice, Any], Result]) -> list[Result]:
        """Apply a function to parts of the rows, in threads; few, for each may return a sum."""
        if self._X.nnz < SMALL:
            return [function(slice(0, self.n_rows), self._X)]
        edges = np.linspace(0, self.n_rows, N_PARTS + 1).astype(int)
        parts = [slice(int(lo), int(hi)) for lo, hi in pairwise(edges)]
        return map_in_threads(lambda rows: function(rows, self._view(rows)), parts)

    def _factor(self, rows: slice) -> Any:
        return self._view(rows) if self.shift is None else super()._factor(rows)

    def _view(self, rows: slice) -> Any:
        """Return some rows as a sparse matrix, without copying them."""
        X = self._X
        lo, hi = int(X.indptr[rows.start]), int(X.indptr[rows.stop])
        indptr = X.indptr[rows.start : rows.stop + 1] - X.indptr[rows.start]
        shape = (rows.stop - rows.start, self.n_columns)
        return sparse.csr_array((X.data[lo:hi], X.indices[lo:hi], indptr), shape=shape)

    def _dense(self, X: Any) -> Matrix:
        dense: Matrix = X.astype(np.float64, copy=False).toarray()
        if self.shift is not None:
            dense -= self.shift
        return dense


def _without_duplicates(X: Any) -> Any:
    """Return a matrix with at most one entry in each place; the same one if that is so already.

    Products with large entries that cancel would lose the digits that their sum has.
    """
    if X.has_canonical_format:
        return X
    X = X.tocsc().tocsr()  # sorted, with duplicates in the order in which they were given
    X.sum_duplicates()
    return X


def _added_up(parts: list[Vector]) -> Vector:
    """Add up arrays that have the columns first, and put these last."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return np.ascontiguousarray(total.T)


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
