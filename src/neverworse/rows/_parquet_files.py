"""Parquet files that together are one table, and must not change while it is read."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet

from neverworse._typing import AnyArray

# Columns are read through a buffer instead of whole: a row group may be larger than memory. Pages
# longer than the buffer are read directly.
BUFFER_BYTES = 2**14
TAIL_BYTES = 8  # the end of every Parquet file: the length of the footer, and a magic number


class ChangedFileError(RuntimeError):
    """A file has changed since it was opened."""


@dataclass(frozen=True)
class File:
    """One file as it was when it was opened."""

    path: str
    group_rows: tuple[int, ...]  # the number of rows in each of its row groups
    schema: pa.Schema
    stamp: tuple[int, int]  # its size and the time of its last change
    # Digest of its metadata: position, length and range of values of each row group. Times alone
    # can be set, and are coarse on some file systems.
    footer: bytes

    @classmethod
    def look_at(cls, path: str) -> File:
        """Read the metadata of a file."""
        try:
            stamp, footer = _stamp(path), _footer(path)
            with parquet.ParquetFile(path) as file:
                groups = range(file.metadata.num_row_groups)
                rows = tuple(file.metadata.row_group(g).num_rows for g in groups)
                return cls(path, rows, file.schema_arrow, stamp, footer)
        except pa.ArrowInvalid as error:
            raise ValueError(f"{path} is no Parquet file that can be read: {error}") from None

    def open(self, read_dictionary: list[str] | None = None) -> parquet.ParquetFile:
        """Open the file for reading, if it has not changed; some columns as dictionaries."""
        self.check(footer=True)
        return parquet.ParquetFile(
            self.path,
            buffer_size=BUFFER_BYTES,
            pre_buffer=False,
            memory_map=False,
            read_dictionary=read_dictionary,
        )

    def check(self, *, footer: bool = False) -> None:
        """Check that size and time of the file have not changed, nor its footer if asked."""
        try:
            same = _stamp(self.path) == self.stamp
            if same and (not footer or _footer(self.path) == self.footer):
                return
            what = "changed"
        except FileNotFoundError:
            what = "vanished"
        raise ChangedFileError(
            f"{self.path} has {what} since it was opened. Open the data again, and do not change "
            "the files while a model is fitted."
        )

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(self.group_rows)


def find_files(paths: Any) -> list[File]:
    """Return the files of a path, a folder, a pattern, or a list of these, in a fixed order."""
    several = isinstance(paths, Iterable) and not isinstance(paths, (str, bytes, os.PathLike))
    found = [file for path in (paths if several else [paths]) for file in _expand(os.fspath(path))]
    if not found:
        raise ValueError(f"There is no Parquet file in {paths!r}.")
    return [File.look_at(path) for path in found]


def _expand(path: str) -> list[str]:
    if Path(path).is_dir():
        # Hidden files are not data: macOS leaves some on other drives, Spark while it writes.
        found = (file.relative_to(path) for file in Path(path).rglob("*.parquet"))
        seen = (file for file in found if not any(part[0] in "._" for part in file.parts))
        return sorted(str(Path(path, file)) for file in seen)
    if Path(path).exists() or not glob.has_magic(path):
        return [path]
    return sorted(glob.glob(path))  # noqa: PTH207 (a pattern may begin at the root)


def _stamp(path: str) -> tuple[int, int]:
    status = Path(path).stat()
    return status.st_size, status.st_mtime_ns


def _footer(path: str) -> bytes:
    """Return a digest of the footer; of the whole file if that is no Parquet file."""
    with Path(path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - TAIL_BYTES, 0))
        length = int.from_bytes(file.read(4), "little") + TAIL_BYTES
        file.seek(max(size - length, 0))
        return hashlib.blake2b(file.read(), digest_size=16).digest()


def check_columns(files: Sequence[File], names: Sequence[str]) -> None:
    """Check that all files have these columns, with the same types."""
    first = files[0]
    for file in files:
        missing = [name for name in names if name not in file.schema.names]
        if missing:
            raise ValueError(
                f"{file.path} has no column {missing[0]!r}. It has {', '.join(file.schema.names)}."
            )
        for name in names:
            if file.schema.names.count(name) > 1:
                raise ValueError(f"{file.path} has two columns {name!r}. Rename one of them.")
            here, there = file.schema.field(name).type, first.schema.field(name).type
            if here != there:
                raise ValueError(
                    f"Column {name!r} is {there} in {first.path}, but {here} in {file.path}. Write "
                    "all files with the same types."
                )


def read_column(files: Sequence[File], name: str) -> AnyArray:
    """Return one column of all files as an array; nulls become NaN, None or -1."""
    batches = [
        batch.column(0)
        for file in files
        for _, batch in _read(file, range(len(file.group_rows)), [name], 2**20)
    ]
    column = pa.chunked_array(batches, type=files[0].schema.field(name).type)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_integer(kind) and column.null_count:
        # They stay integers: -1 means a missing label, unless there are negative ones already.
        low = compute.min(column).as_py()
        if low is None or low >= 0:
            column = column.cast(pa.int64()).fill_null(-1)
    whole = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if pa.types.is_floating(kind) or (whole and not column.null_count):
        return column.to_numpy()
    encoded = column.combine_chunks().dictionary_encode()  # one object for all that are equal
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    return values[encoded.indices.fill_null(len(values) - 1).to_numpy()]


def read_chunks(
    files: Sequence[File], names: Sequence[str], chunk_rows: int, chosen: Sequence[int]
) -> Iterator[list[list[AnyArray]]]:
    """Yield chunks of `chunk_rows` rows, whatever row groups and files these are in.

    A chunk is a list of pieces that follow each other, each a list of columns; nothing is copied.
    Row groups without any row of the chosen chunks (in increasing order) are not read.
    """
    n_rows = sum(file.n_rows for file in files)
    wanted = iter(chosen)
    number = next(wanted, None)
    pieces: list[list[AnyArray]] = []  # of the next chunk
    for start, columns in _batches(files, names, chunk_rows, chosen):
        stop = start + len(columns[0])
        while number is not None and number * chunk_rows < stop:
            first, end = number * chunk_rows, min((number + 1) * chunk_rows, n_rows)
            rows = slice(max(first - start, 0), end - start)
            pieces.append([column[rows] for column in columns])
            if stop < end:
                break
            complete, pieces = pieces, []
            yield complete
            del complete  # not held while the next chunk is read
            number = next(wanted, None)


def _batches(
    files: Sequence[File], names: Sequence[str], chunk_rows: int, chosen: Sequence[int]
) -> Iterator[tuple[int, list[AnyArray]]]:
    """Yield the columns of the record batches that are needed, and their first row."""
    needed = np.asarray(chosen)
    start = 0  # of the file
    for file in files:
        edges = start + np.cumsum([0, *file.group_rows])
        first, last = edges[:-1] // chunk_rows, (edges[1:] - 1) // chunk_rows
        read = np.searchsorted(needed, first) < np.searchsorted(needed, last, "right")
        for row, batch in _read(file, np.flatnonzero(read).tolist(), names, chunk_rows):
            yield start + row, _columns(batch, names, file, row)
        start += file.n_rows


def _read(
    file: File, groups: Sequence[int], names: Sequence[str], batch_rows: int
) -> Iterator[tuple[int, Any]]:
    """Yield record batches and their first row in the file; none spans two row groups."""
    if not groups:
        return
    starts = np.cumsum([0, *file.group_rows]).tolist()
    try:
        with file.open() as opened:
            for group in groups:
                row = starts[group]
                for batch in opened.iter_batches(
                    batch_rows, row_groups=[group], columns=names, use_threads=False
                ):
                    file.check()
                    yield row, batch
                    row += len(batch)
            file.check(footer=True)
    except (OSError, pa.ArrowException) as error:
        raise ChangedFileError(f"{file.path} cannot be read any more: {error}") from error


def _columns(batch: pa.RecordBatch, names: Sequence[str], file: File, row: int) -> list[AnyArray]:
    """Return the columns of a batch, which begins with that row of the file."""
    found = dict(zip(batch.schema.names, batch.columns, strict=True))  # in the order of the file
    for name in names:
        if found[name].null_count:
            missing = row + found[name].is_null().index(True).as_py()
            raise ValueError(
                f"Column {name!r} of {file.path} has missing values, such as in row {missing}. "
                "Fill them in, or drop these rows, before the table is used."
            )
    return [found[name].to_numpy(zero_copy_only=False) for name in names]
