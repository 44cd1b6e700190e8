"""Rows of Parquet files, read batch by batch in every pass."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.rows._base import Rows
from neverworse.rows._blocks import float_type, in_streams, narrowed, read_ahead
from neverworse.rows._chunked import Arguments, ChunkedRows, Combine, Verb
from neverworse.rows._parquet_files import (
    File,
    check_columns,
    find_files,
    read_chunks,
    read_column,
)

__all__ = ["ColumnRows", "File", "ParquetData", "ParquetRows", "open_parquet"]

CHUNK_BYTES = 2**25  # each stream has two or three of these in memory
MOST_CHUNK_ROWS = 2**18
N_PARTS = 32  # of the files, for as many streams as there are cores
# Every column of a block is converted by itself: longer blocks than elsewhere are faster.
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
    """Rows in pieces that follow each other, each a list of columns of any real types.

    Only the blocks that are worked on are copied.
    """

    def __init__(self, pieces: Sequence[Sequence[AnyArray]], shift: Vector | None = None) -> None:
        self._pieces = pieces
        *self._starts, n_rows = np.cumsum([0, *(len(piece[0]) for piece in pieces)]).tolist()
        super().__init__(n_rows, len(pieces[0]), shift)
        fitting = BLOCK_BYTES // (8 * max(self.n_columns, 1))
        self.block_rows = min(max(1, 2 ** (fitting.bit_length() - 1)), MOST_BLOCK_ROWS)

    def block(self, start: int, stop: int) -> Matrix:
        # Valid until the calling thread reads its next block.
        columns = _scratch(self.n_columns, stop - start)
        parts = [
            (piece, slice(max(start - first, 0), max(stop - first, 0)))
            for first, piece in zip(self._starts, self._pieces, strict=True)
        ]
        # At once: a copy of each column would take as long as the arithmetic.
        each = [piece[j][rows] for j in range(self.n_columns) for piece, rows in parts]
        np.concatenate(each, out=columns.reshape(-1))
        if self.shift is not None:
            columns -= self.shift[:, None]
        return columns.T

    def take(self, indices: Indices) -> Matrix:
        return self._less_shift(self._gathered(indices).astype(np.float64, order="C"))

    def copies(self, indices: Indices) -> AnyArray:
        return narrowed(self._gathered(indices)) if self.shift is None else super().copies(indices)

    def _gathered(self, indices: Indices) -> AnyArray:
        """Return rows in the type of the columns, before any shift."""
        kind = np.result_type(*(column for piece in self._pieces for column in piece))
        found = np.empty((self.n_columns, len(indices)), kind)
        number = np.searchsorted(self._starts, indices, side="right") - 1
        for k, piece in enumerate(self._pieces):
            mine: Any = slice(None) if len(self._pieces) == 1 else np.flatnonzero(number == k)
            places = indices[mine] - self._starts[k]
            for into, column in zip(found, piece, strict=True):
                into[mine] = column.take(places, mode="clip")  # which checks no index: passes take
        return found.T

    def shifted(self, shift: Vector | None) -> ColumnRows:
        return ColumnRows(self._pieces, shift)


class ParquetData(NamedTuple):
    """What `open_parquet` returns; ``fit(*data)`` fits to it.

    Attributes
    ----------
    X : ParquetRows
        The features, which stay on disk.
    y : array of shape (n_rows,) or None
        The target.
    sample_weight : array of shape (n_rows,) or None
    """

    X: ParquetRows
    y: AnyArray | None
    sample_weight: AnyArray | None

    def __array__(self, *_: Any, **__: Any) -> AnyArray:
        raise TypeError(
            "This is all that open_parquet returns. Pass its parts: estimator.fit(*data), "
            "estimator.predict(data.X)."
        )


class ParquetRows(ChunkedRows):
    """Rows of Parquet files, see `open_parquet`."""

    def __init__(
        self, files: Sequence[File], columns: Sequence[str], batch_rows: int | None = None
    ) -> None:
        check_columns(files, columns)
        self.files = tuple(files)
        kinds = [(name, files[0].schema.field(name).type) for name in columns]
        self.dtype = float_type(
            (f"Column {name!r} of {files[0].path}", kind, _numpy_type(kind)) for name, kind in kinds
        )
        if batch_rows is None:
            fitting = CHUNK_BYTES // (self.dtype.itemsize * max(len(columns), 1))
            batch_rows = min(2 ** max(fitting.bit_length() - 1, 0), MOST_CHUNK_ROWS)
            # Chunks that divide row groups evenly are not in two pieces.
            group_rows = max(files[0].group_rows, default=0)
            n_chunks = -(-group_rows // batch_rows)
            if n_chunks > 1 and group_rows % n_chunks == 0:
                batch_rows = group_rows // n_chunks
        self.batch_rows = batch_rows
        n_rows = sum(file.n_rows for file in files)
        whole, rest = divmod(n_rows, batch_rows)
        super().__init__([batch_rows] * whole + [rest] * (rest > 0), len(columns), list(columns))

    def reduce_chunks(self, verb: Verb, arguments: Arguments, combine: Combine) -> Any:
        return reduce(combine, self.map_chunks(verb, range(self.n_chunks), arguments, combine))

    def map_chunks(
        self,
        verb: Verb,
        chosen: Sequence[int],
        arguments: Arguments,
        combine: Combine | None = None,
    ) -> Iterator[Any]:
        # Of chunks that are combined, one result for each part of the files.
        parts, names = self._parts(chosen), self.column_names or []

        def work(part: slice) -> Iterator[Any]:
            chunks = read_chunks(self.files, names, self.batch_rows, chosen[part])
            chunks = read_ahead(chunks) if len(parts) == 1 else chunks
            # No chunk is held while the next one is read.
            found = (verb(ColumnRows(next(chunks)), *own) for own in arguments[part])
            return found if combine is None else iter([reduce(combine, found)])

        yield from work(parts[0]) if len(parts) == 1 else in_streams(parts, work)
        pa.default_memory_pool().release_unused()

    def _parts(self, chosen: Sequence[int]) -> list[slice]:
        """Cut the chosen chunks into parts that begin with a row group, where reading can begin."""
        groups = np.cumsum([0, *(n for file in self.files for n in file.group_rows)])[:-1]
        numbers = np.asarray(chosen)
        starts = np.unique(np.searchsorted(numbers, -(-groups // self.batch_rows)))
        evenly = np.linspace(0, len(numbers), N_PARTS + 1).astype(int)[:-1]
        edges = starts[np.minimum(np.searchsorted(starts, evenly), len(starts) - 1)]
        edges = np.unique(np.concatenate([[0], edges[edges < len(numbers)], [len(numbers)]]))
        return [slice(int(lo), int(hi)) for lo, hi in pairwise(edges)]

    def where(self, row: int) -> str:
        starts = np.cumsum([0, *(file.n_rows for file in self.files[:-1])])
        k = int(np.searchsorted(starts, row, side="right")) - 1
        return f"row {row - starts[k]} of {self.files[k].path}"


def open_parquet(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    batch_rows: int | None = None,
) -> ParquetData:
    """Open Parquet files as training rows that stay on disk.

    Parameters
    ----------
    path : str, path, or list of these
        A file, a folder (all ``*.parquet`` files in it that are not hidden, in the order of their
        names), or a pattern such as ``"part-*.parquet"``.
    target : str, optional
        The column with the labels. It is read into memory.
    columns : sequence of str, optional
        The columns with the features; all others but `target` and `weight` if not given.
    weight : str, optional
        The column with the row weights. It is read into memory.
    batch_rows : int, optional
        Number of rows that are read at once; by default as many as take 32 MB.

    Returns
    -------
    data : ParquetData
        A tuple of X, y and sample_weight, so that ``estimator.fit(*data)`` fits to it.

    Examples
    --------
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.rows import open_parquet
    >>> data = open_parquet("rows/", target="label")  # doctest: +SKIP
    >>> ProjectedLeastSquaresClassifier().fit(*data)  # doctest: +SKIP
    """
    if batch_rows is not None and batch_rows < 1:
        raise ValueError(f"batch_rows must be 1 or more, got {batch_rows}.")
    files = find_files(path)
    beside = [name for name in (target, weight) if name is not None]
    check_columns(files, beside)
    if columns is None:
        columns = [name for name in files[0].schema.names if name not in beside]
        for file in files:
            more = [name for name in file.schema.names if name not in files[0].schema.names]
            if more:
                raise ValueError(
                    f"{file.path} has a column {more[0]!r}, which {files[0].path} has not. Name "
                    "the features with columns=[...]."
                )
    if isinstance(columns, str) or not columns:
        raise ValueError(f"columns must be a list of at least one feature, got {columns!r}.")
    if target in columns:
        raise ValueError(f"Column {target!r} is the target, so it cannot be a feature.")
    return ParquetData(
        ParquetRows(files, columns, batch_rows),
        None if target is None else read_column(files, target),
        None if weight is None else read_column(files, weight),
    )


def _numpy_type(kind: pa.DataType) -> np.dtype[Any] | None:
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return np.dtype(kind.to_pandas_dtype()) if number else None
