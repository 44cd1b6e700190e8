"""Rows of a table that is stored column by column, such as a batch of an Arrow table."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Self

import numpy as np

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.rows._base import Rows
from neverworse.rows._dense import some_dense

# Every column of a block is copied by itself: longer blocks than elsewhere are worth their while.
BLOCK_BYTES, MOST_BLOCK_ROWS = 2**23, 2**14

_own = threading.local()


def _scratch(n_columns: int, n_rows: int) -> Matrix:
    """Return memory that a thread uses again and again: new memory would have to be cleared."""
    size = n_columns * n_rows
    buffer: Vector | None = getattr(_own, "buffer", None)
    if buffer is None or len(buffer) < size:
        buffer = _own.buffer = np.empty(size)
    return buffer[:size].reshape(n_columns, n_rows)


class ColumnRows(Rows):
    """Rows of which every column is an array, or a few that follow each other.

    Nothing is copied but the blocks that are worked on.

    Parameters
    ----------
    pieces : sequence of lists of arrays
        The columns of consecutive pieces of the rows, of any real types.
    shift : array of shape (n_columns,), optional
        See `Rows`.
    """

    def __init__(self, pieces: Sequence[list[AnyArray]], shift: Vector | None = None) -> None:
        self._pieces = pieces
        self._edges = np.cumsum([0, *(len(piece[0]) for piece in pieces)])
        super().__init__(int(self._edges[-1]), len(pieces[0]), shift)
        fitting = BLOCK_BYTES // (8 * max(self.n_columns, 1))
        self.block_rows = min(max(1, 2 ** (fitting.bit_length() - 1)), MOST_BLOCK_ROWS)

    def block(self, start: int, stop: int) -> Matrix:
        """See `Rows.block`; valid until the thread that asks reads its next block."""
        columns = _scratch(self.n_columns, stop - start)
        first = int(np.searchsorted(self._edges, start, side="right")) - 1
        begin, end = int(self._edges[first]), int(self._edges[first + 1])
        if stop <= end:  # all at once: a loop in Python would take as long as the arithmetic
            parts = [column[start - begin : stop - begin] for column in self._pieces[first]]
            np.concatenate(parts, out=columns.reshape(-1))
        else:
            self._collect(start, stop, first, columns)
        if self.shift is not None:
            columns -= self.shift[:, None]
        return columns.T

    def _collect(self, start: int, stop: int, first: int, columns: Matrix) -> None:
        """Fill in the columns of rows that lie in several pieces."""
        at = start
        while at < stop:
            piece, begin = self._pieces[first], int(self._edges[first])
            end = min(stop, int(self._edges[first + 1]))
            for into, column in zip(columns[:, at - start : end - start], piece, strict=True):
                into[:] = column[at - begin : end - begin]
            at, first = end, first + 1

    def take(self, indices: Indices) -> Matrix:
        """See `Rows.take`."""
        columns = np.empty((self.n_columns, len(indices)))
        number = np.searchsorted(self._edges, indices, side="right") - 1
        for k, piece in enumerate(self._pieces):
            mine = slice(None) if len(self._pieces) == 1 else np.flatnonzero(number == k)
            chosen = indices[mine] - self._edges[k]
            for into, column in zip(columns, piece, strict=True):
                into[mine] = column[chosen]
        if self.shift is not None:
            columns -= self.shift[:, None]
        return np.ascontiguousarray(columns.T)

    def some(self, indices: Indices) -> Rows:
        """See `Rows.some`."""
        return some_dense(self, indices)

    def shifted(self, shift: Vector) -> Self:
        """See `Rows.shifted`."""
        return type(self)(self._pieces, shift)

    def column(self, index: int) -> AnyArray:
        """See `Rows.column`."""
        return np.concatenate([piece[index] for piece in self._pieces])
