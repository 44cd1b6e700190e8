"""Rows of Parquet files, read batch by batch in every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from os import PathLike
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from neverworse._typing import AnyArray
from neverworse.rows._chunked import ChunkedRows, Verb
from neverworse.rows._columns import ColumnRows
from neverworse.rows._parquet_files import File, check_columns, find_files, read_chunks, read_column
from neverworse.rows._streams import in_streams, read_ahead

CHUNK_BYTES = 2**24  # three of these are in memory at once
MOST_CHUNK_ROWS = 2**18
N_PARTS = 32  # of the files, of which as many are worked on at once as there are cores

Item = TypeVar("Item")


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


class ParquetRows(ChunkedRows):
    """Rows of Parquet files.

    Parameters
    ----------
    files : sequence of File
    columns : sequence of str
    batch_rows : int, optional
        How many rows are read at once.
    """

    def __init__(
        self, files: Sequence[File], columns: Sequence[str], batch_rows: int | None = None
    ) -> None:
        check_columns(files, columns)
        self.files = tuple(files)
        self.dtype = _common_type(files[0], columns)
        if batch_rows is None:
            fitting = CHUNK_BYTES // (self.dtype.itemsize * max(len(columns), 1))
            batch_rows = min(2 ** max(fitting.bit_length() - 1, 0), MOST_CHUNK_ROWS)
        self.batch_rows = batch_rows
        n_rows = sum(file.n_rows for file in files)
        whole, rest = divmod(n_rows, batch_rows)
        super().__init__([batch_rows] * whole + [rest] * (rest > 0), len(columns), list(columns))

    def map_chunks(
        self, verb: Verb, chosen: Sequence[int], arguments: Sequence[tuple[Any, ...]]
    ) -> Iterable[Any]:
        """See `ChunkedRows.map_chunks`; several parts of the files are worked on at once."""
        parts = self._parts(chosen)
        if len(parts) > 1:
            return in_streams(
                parts, lambda part: self._work(verb, chosen[part], arguments[part], _as_they_come)
            )
        return self._work(verb, chosen, arguments, read_ahead)

    def reduce_chunks(
        self, verb: Verb, arguments: Sequence[tuple[Any, ...]], combine: Callable[[Any, Any], Any]
    ) -> Any:
        """See `ChunkedRows.reduce_chunks`; every part of the files is reduced by itself."""
        every = range(self.n_chunks)

        def reduced(part: slice) -> Iterator[Any]:
            yield reduce(combine, self._work(verb, every[part], arguments[part], _as_they_come))

        parts = self._parts(every)
        if len(parts) > 1:
            return reduce(combine, in_streams(parts, reduced))
        return super().reduce_chunks(verb, arguments, combine)

    def _work(
        self,
        verb: Verb,
        chosen: Sequence[int],
        arguments: Sequence[tuple[Any, ...]],
        reading: Callable[[Iterator[Any]], Iterator[Any]],
    ) -> Iterator[Any]:
        assert self.column_names is not None
        chunks = read_chunks(self.files, self.column_names, self.batch_rows, chosen)
        for pieces, own in zip(reading(chunks), arguments, strict=True):
            yield verb(ColumnRows(pieces), *own)

    def _parts(self, chosen: Sequence[int]) -> list[slice]:
        """Cut the chosen chunks into parts that begin with a row group: no other can be entered."""
        groups = np.cumsum([0, *(n for file in self.files for n in file.group_rows)])[:-1]
        numbers = np.asarray(chosen)
        starts = np.unique(np.searchsorted(numbers, -(-groups // self.batch_rows)))
        evenly = np.linspace(0, len(numbers), N_PARTS + 1).astype(int)[:-1]
        edges = starts[np.minimum(np.searchsorted(starts, evenly), len(starts) - 1)]
        edges = np.unique(np.concatenate([[0], edges[edges < len(numbers)], [len(numbers)]]))
        return [slice(int(lo), int(hi)) for lo, hi in pairwise(edges)]

    def where(self, row: int) -> str:
        """See `ChunkedRows.where`."""
        start = 0
        for file in self.files:
            if row < start + file.n_rows:
                return f"row {row - start} of {file.path}"
            start += file.n_rows
        return super().where(row)


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
        A file, a folder (all ``*.parquet`` files in it, in the order of their names), or a pattern
        such as ``"part-*.parquet"``.
    target : str, optional
        The column with the labels. It is read into memory at once.
    columns : sequence of str, optional
        The columns with the features; all others but `target` and `weight` if not given.
    weight : str, optional
        The column with the row weights. It is read into memory at once.
    batch_rows : int, optional
        How many rows are read at once; by default as many as take 16 MB.

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
        raise ValueError(f"batch_rows={batch_rows} is no number of rows. Pass 1 or more.")
    files = find_files(path)
    beside = [name for name in (target, weight) if name is not None]
    check_columns(files, beside)
    if columns is None:
        columns = [name for name in files[0].schema.names if name not in beside]
        _check_same_names(files)
    if isinstance(columns, str) or not columns:
        raise ValueError(f"columns={columns!r} is no list of columns. Name at least one feature.")
    if target in columns:
        raise ValueError(f"Column {target!r} is the target, and cannot be a feature as well.")
    return ParquetData(
        ParquetRows(files, columns, batch_rows),
        None if target is None else read_column(files, target),
        None if weight is None else read_column(files, weight),
    )


def _check_same_names(files: Sequence[File]) -> None:
    """Check that no file has more columns than the first: they would be left out in silence."""
    names = set(files[0].schema.names)
    for file in files:
        more = [name for name in file.schema.names if name not in names]
        if more:
            raise ValueError(
                f"{file.path} has a column {more[0]!r}, which {files[0].path} has not. Name the "
                "features with columns=[...]."
            )


def _common_type(file: File, columns: Sequence[str]) -> np.dtype[Any]:
    """Return the smallest of float32 and float64 that holds all columns."""
    types = []
    for name in columns:
        kind = file.schema.field(name).type
        if not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        ):
            raise ValueError(
                f"Column {name!r} of {file.path} is {kind}, but features are numbers. Encode it, "
                "or name the features with columns=[...]."
            )
        types.append(np.dtype(kind.to_pandas_dtype()))
    return np.result_type(np.float32, *types)


def _as_they_come(items: Iterator[Item]) -> Iterator[Item]:
    return items
