"""Rows of a dense array in memory (or mapped into it)."""

from __future__ import annotations

import numpy as np

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.rows._base import Rows


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
        """See `Rows.block`; a view of the data where they are float64 and not shifted."""
        block = self._X[start:stop].astype(np.float64, copy=False)
        return block if self.shift is None else block - self.shift

    def take(self, indices: Indices) -> Matrix:
        """See `Rows.take`."""
        taken = self._X[indices].astype(np.float64, copy=False)
        if self.shift is not None:
            taken -= self.shift
        return taken

    def shifted(self, shift: Vector) -> DenseRows:
        """See `Rows.shifted`."""
        return DenseRows(self._X, shift)

    def some(self, indices: Indices) -> DenseRows:
        """See `Rows.some`."""
        return some_dense(self, indices)

    def column(self, index: int) -> AnyArray:
        """See `Rows.column`."""
        column: AnyArray = self._X[:, index]
        return column


def some_dense(rows: Rows, indices: Indices) -> DenseRows:
    """Return some of any rows as a dense array, with the same shift."""
    plain = rows if rows.shift is None else rows.shifted(np.zeros(rows.n_columns))
    return DenseRows(plain.take(indices), rows.shift)
