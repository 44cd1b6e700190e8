"""Parquet files that together are one table, and must stay what they are."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet

from neverworse._typing import AnyArray

# Read columns through a buffer instead of whole: a row group may be larger than memory. Pages that
# are longer than the buffer are read past it, and not copied once more.
BUFFER_BYTES = 2**14
TAIL_BYTES = 8  # the length of the footer, and a magic word: the end of every Parquet file


class ChangedFileError(RuntimeError):
    """A file is not what it was when it was opened."""


@dataclass(frozen=True)
class File:
    """One file as it was when it was opened."""

    path: str
    group_rows: tuple[int, ...]  # the number of rows in each of its row groups
    schema: pa.Schema
    stamp: tuple[int, int]  # its size and the time of its last change
    # Digest of what it says about its row groups: where they lie, how long they are and which
    # values they span. Times can be set, and are coarse on some file systems.
    footer: bytes

    @classmethod
    def look_at(cls, path: str) -> File:
        """Read what a file says about itself."""
        try:
            stamp, footer = _stamp(path), _footer(path)
            with parquet.ParquetFile(path) as file:
                groups = range(file.metadata.num_row_groups)
                rows = tuple(file.metadata.row_group(g).num_rows for g in groups)
                return cls(path, rows, file.schema_arrow, stamp, footer)
        except pa.ArrowInvalid as error:
            raise ValueError(f"{path} is no Parquet file that can be read: {error}") from None

    def open(self, read_dictionary: list[str] | None = None) -> parquet.ParquetFile:
        """Open the file for reading, if it is still the same.

        Of some columns of text, every value is kept once.
        """
        self.check(footer=True)
        return parquet.ParquetFile(
            self.path,
            buffer_size=BUFFER_BYTES,
            pre_buffer=False,
            memory_map=False,
            read_dictionary=read_dictionary,
        )

    def check(self, *, footer: bool = False) -> None:
        """Check that the file is what it was: a look at its times, and at its footer if asked."""
        try:
            if _stamp(self.path) == self.stamp and (
                not footer or _footer(self.path) == self.footer
            ):
                return
        except FileNotFoundError:
            raise ChangedFileError(
                f"{self.path} has vanished since it was opened. Put it back, and open the data "
                "again."
            ) from None
        raise ChangedFileError(
            f"{self.path} has changed since it was opened. Open the data again, and leave them "
            "alone while a model is fitted."
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
        # Hidden ones are no data: macOS leaves some on other drives, Spark while it writes.
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
    """Return one column of all files as an array in which nulls are still to be seen."""
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
        # As floats or objects, integers would not be what they were. -1 says the same as null,
        # unless it is among them already.
        low = compute.min(column).as_py()
        if low is None or low >= 0:
            column = column.cast(pa.int64()).fill_null(-1)
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy()
    if pa.types.is_floating(kind) or (pa.types.is_boolean(kind) and not column.null_count):
        return column.to_numpy()
    encoded = column.combine_chunks().dictionary_encode()  # one object for all that are equal
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    return values[encoded.indices.fill_null(len(values) - 1).to_numpy()]


class Piece(NamedTuple):
    """Some consecutive rows of columns."""

    columns: Sequence[AnyArray]
    start: int
    stop: int

    def of_rows(self, start: int, stop: int) -> list[AnyArray]:
        """Return the columns of some of these rows."""
        return [column[self.start + start : self.start + stop] for column in self.columns]


def read_chunks(
    files: Sequence[File], names: Sequence[str], chunk_rows: int, chosen: Sequence[int]
) -> Iterator[list[Piece]]:
    """Read chunks of `chunk_rows` rows, whatever the row groups and files they lie in.

    Yields for each chunk its pieces: record batches, or parts of them. Nothing that was yielded is
    held while the next is read, but the rest of a batch.
    Row groups without any row of the chosen chunks (in increasing order) are not touched.
    """
    n_rows = sum(file.n_rows for file in files)
    wanted = iter(chosen)
    number = next(wanted, None)
    if number is None:
        return
    pieces: list[Piece] = []
    filled = 0
    for start, columns in _batches(files, names, chunk_rows, chosen):
        at, stop = 0, len(columns[0])
        while at < stop:
            # Rows of the batch that lie before the wanted chunk are skipped.
            begin = number * chunk_rows + filled
            size = min(chunk_rows, n_rows - number * chunk_rows)
            if start + stop <= begin:
                break
            at = max(at, begin - start)
            length = min(stop - at, size - filled)
            pieces.append(Piece(columns, at, at + length))
            at, filled = at + length, filled + length
            if filled == size:
                complete, pieces, filled = pieces, [], 0
                yield complete
                del complete
                number = next(wanted, None)
                if number is None:
                    return


def _batches(
    files: Sequence[File], names: Sequence[str], chunk_rows: int, chosen: Sequence[int]
) -> Iterator[tuple[int, list[AnyArray]]]:
    """Yield the columns of record batches of the row groups that are needed.

    With the number of their first row, among all rows.
    """
    needed = np.asarray(chosen)
    start = 0
    for file in files:
        first_rows, before = {}, start
        for group, size in enumerate(file.group_rows):
            first, last = start // chunk_rows, (start + size - 1) // chunk_rows
            k = int(np.searchsorted(needed, first))
            if size and k < len(needed) and needed[k] <= last:
                first_rows[group] = start
            start += size
        for group, batch in _read(file, list(first_rows), names, chunk_rows):
            at = first_rows[group]
            first_rows[group] += len(batch)
            yield at, _columns(batch, names, file, at - before)


def _read(
    file: File, groups: Sequence[int], names: Sequence[str], batch_rows: int
) -> Iterator[tuple[int, Any]]:
    """Yield record batches with the number of their row group; none spans two of them."""
    if not groups:
        return
    try:
        with file.open() as opened:
            for group in groups:
                for batch in opened.iter_batches(
                    batch_rows, row_groups=[group], columns=names, use_threads=False
                ):
                    file.check()  # what was read before is what it was
                    yield group, batch
            file.check(footer=True)  # a file that is cut just ends
    except (OSError, pa.ArrowException) as error:
        raise ChangedFileError(f"{file.path} cannot be read any more: {error}") from error


def _columns(batch: Any, names: Sequence[str], file: File, row: int) -> list[AnyArray]:
    """Return the columns of a batch, which begins with that row of the file.

    They are not copied where that can be.
    """
    found = dict(zip(batch.schema.names, batch.columns, strict=True))  # in the order of the file
    for name in names:
        if found[name].null_count:
            missing = row + found[name].is_null().index(True).as_py()
            raise ValueError(
                f"Column {name!r} of {file.path} has missing values, such as in row {missing}. "
                "Fill them in, or drop these rows, before the table is used."
            )
    return [found[name].to_numpy(zero_copy_only=False) for name in names]
