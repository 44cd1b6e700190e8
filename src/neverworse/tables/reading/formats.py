"""Tables that are larger than memory: measured, and left in Parquet files."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from neverworse.rows import File
from neverworse.tables._errors import TableError
from neverworse.tables.reading.delimited import DelimitedText, ReadOptions, is_text, with_nulls
from neverworse.tables.reading.files import TableFile

MAX_MEMORY_SHARE = 0.5  # of the free memory that a table may take
# A number takes 8 bytes as it is read, as a feature, and in arrays that come and go.
BYTES_PER_CELL = 24
BYTES_PER_CHARACTER = 4  # of text, of which a cell has some six
GROUP_ROWS = 1 << 18
TEXTS = ("csv", "json lines", "json")
PIECE_BYTES = 1 << 20  # that are looked at, at a time


@dataclass(frozen=True)
class StoredTable:
    """Rows of Parquet files with the same columns, as much of a PyArrow table as is needed.

    Columns and batches of rows are read when they are needed.
    """

    files: tuple[File, ...]
    column_names: list[str]  # of all columns that are in use
    missing: tuple[str, ...] = ("",)  # words that mean a missing value
    batch_rows: int = 1 << 14  # that are read at once

    @classmethod
    def open(cls, paths: Sequence[str], missing: Sequence[str] = ()) -> StoredTable:
        """Look at files, which must have the same columns and types."""
        try:
            files = tuple(File.look_at(path) for path in paths)
        except ValueError as error:
            raise TableError(str(error), code="file") from None
        first = files[0]
        for file in files[1:]:
            if not file.schema.remove_metadata().equals(first.schema.remove_metadata()):
                raise TableError(
                    f"{file.path} has other columns, or other types, than {first.path}.",
                    "Tables that are larger than memory need the same in all files.",
                    code="column",
                )
        return cls(files, list(first.schema.names), ("", *missing))

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return sum(file.n_rows for file in self.files)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return pa.schema([self.files[0].schema.field(name) for name in self.column_names])

    def select(self, names: Sequence[str]) -> StoredTable:
        """Return the table with some of its columns."""
        return replace(self, column_names=list(names))

    def column(self, name: str) -> pa.ChunkedArray:
        """Read one column; repeated text is kept once."""
        kind = self.schema.field(name).type
        encoded = [name] if is_text(kind) and not pa.types.is_dictionary(kind) else None
        parts = []
        for file in self.files:
            with file.open(read_dictionary=encoded) as opened:
                parts += opened.read(columns=[name]).column(0).chunks
        column = pa.chunked_array(parts, type=parts[0].type if parts else kind)
        return with_nulls(pa.table({name: column}), self.missing).column(0)

    def sizes(self) -> list[int]:
        """Return the numbers of rows of all batches: none spans two row groups."""
        return [
            min(self.batch_rows, rows - start)
            for file in self.files
            for rows in file.group_rows
            for start in range(0, rows, self.batch_rows)
        ]

    def batches(self, chosen: Sequence[int] | None = None) -> Iterator[pa.Table]:
        """Read batches of rows, by their numbers in increasing order, or all of them.

        Row groups without any of them are not touched.
        """
        wanted = set(range(len(self.sizes())) if chosen is None else chosen)
        first = 0  # of the row group, among all batches
        for file in self.files:
            groups = []
            for group, rows in enumerate(file.group_rows):
                numbers = range(first, first - (-rows // self.batch_rows))
                if not wanted.isdisjoint(numbers):
                    groups.append((group, numbers))
                first = numbers.stop
            if groups:
                yield from self._read(file, groups, wanted)

    def _read(
        self, file: File, groups: list[tuple[int, range]], wanted: set[int]
    ) -> Iterator[pa.Table]:
        with file.open() as opened:
            for group, numbers in groups:
                batches = opened.iter_batches(
                    self.batch_rows, row_groups=[group], columns=self.column_names
                )
                for number, batch in zip(numbers, batches, strict=True):
                    if number in wanted:
                        yield with_nulls(pa.Table.from_batches([batch]), self.missing)


def is_large(files: Sequence[TableFile], options: ReadOptions, limit: float | None = None) -> bool:
    """Return whether tables take more than `limit` bytes, or half of the memory that is free.

    What a table takes is measured, not estimated from the size of its file: that may be compressed.
    Pipes can be read only once, so they are measured when they are read, which fails where they
    turn out to be too large.
    """
    most = MAX_MEMORY_SHARE * _free_memory() if limit is None else limit
    if sum(map(_most_bytes, files)) <= most:  # so that most files need not be looked at
        return False
    taken = 0.0
    for file in files:
        taken += _bytes_in_memory(file, options, most - taken)
        if taken > most:
            return True
    for file in files:
        if file.once:
            file.watch = _Meter(file, options, most - taken).check
    return False


def store(files: Sequence[TableFile], options: ReadOptions, scratch: Path) -> StoredTable:
    """Return tables as Parquet files: as they are, or copied from CSV to a folder `scratch`."""
    paths = [_stored(file, options, scratch / f"{k}.parquet") for k, file in enumerate(files)]
    return StoredTable.open(paths, options.missing)


def _stored(file: TableFile, options: ReadOptions, copy: Path) -> str:
    if file.format == "parquet" and not file.once:
        return file.path
    if file.format != "csv" or file.once:
        raise _too_large(file.name, "Convert it to Parquet")
    text = DelimitedText(file, options)
    types = text.first_types()
    try:
        with file.explained(), parquet.ParquetWriter(copy, pa.schema(types.items())) as writer:
            for batch in text.stream(types):
                writer.write_batch(batch, row_group_size=GROUP_ROWS)
    except TableError as error:
        fix = (
            f"{error.fix} {file.name} is larger than memory, so that types were taken from its "
            "first rows; in a Parquet file they are certain."
        )
        raise TableError(
            error.problem, fix, code=error.code, column=error.column, row=error.row
        ) from None
    return str(copy)


def _too_large(name: str, instead: str) -> TableError:
    fix = f"{instead}, or allow more: --memory GB."
    return TableError(f"{name} is larger than memory.", fix, code="memory")


def _most_bytes(file: TableFile) -> float:
    """Return what a file of text takes at most: no cell is shorter than a character."""
    if file.once or file.compression is not None or file.format not in TEXTS:
        return float("inf")
    return float(max(BYTES_PER_CELL, BYTES_PER_CHARACTER) * Path(file.path).stat().st_size)


def _bytes_in_memory(file: TableFile, options: ReadOptions, most: float) -> float:
    """Measure how much memory a table takes, or that it takes more than `most`."""
    if file.once:
        return 0.0
    if file.format == "parquet" and file.compression is None:
        with file.explained():
            about = parquet.read_metadata(file.path)
        return float(BYTES_PER_CELL * about.num_rows * about.num_columns)
    if file.format == "excel" and zipfile.is_zipfile(file.path):
        with file.explained(), zipfile.ZipFile(file.path) as workbook:
            return float(BYTES_PER_CHARACTER * sum(part.file_size for part in workbook.infolist()))
    meter = _Meter(file, options, most)
    with file.explained():
        stream = file.stream()
        while meter.needed <= most and (piece := stream.read(PIECE_BYTES)):
            meter.add(piece)
    return meter.needed


class _Meter:
    """Counts what a table will take in memory, from its uncompressed bytes."""

    def __init__(self, file: TableFile, options: ReadOptions, most: float) -> None:
        self._name, self._most = file.name, most
        self._marks: list[str] = []  # there is one for each cell
        if file.format == "csv":
            self._marks = ["\n", DelimitedText(file, options).delimiter]
        elif file.format in ("json", "json lines"):
            self._marks = [":"]
        self._n_cells = 0
        self._n_bytes = 0

    def add(self, piece: bytes) -> None:
        """Count another piece."""
        codes = np.frombuffer(piece, np.uint8)
        self._n_bytes += len(codes)
        for mark in self._marks:
            self._n_cells += int(np.count_nonzero(codes == ord(mark)))

    def check(self, piece: bytes) -> None:
        """Count another piece, which ends the reading of a pipe that takes too much memory."""
        self.add(piece)
        if self.needed > self._most:
            raise _too_large(self._name, "Save the table in a file")

    @property
    def needed(self) -> float:
        """Bytes of memory for what was counted so far."""
        return float(max(BYTES_PER_CELL * self._n_cells, BYTES_PER_CHARACTER * self._n_bytes))


def _free_memory() -> float:
    """Return the bytes of memory that are free, or would be if need be."""
    if sys.platform == "win32":
        import ctypes

        status = (ctypes.c_uint64 * 8)(64)  # MEMORYSTATUSEX: size, all memory, free memory
        ctypes.windll.kernel32.GlobalMemoryStatusEx(status)
        free = float(status[2])
    else:
        try:
            with Path("/proc/meminfo").open(encoding="utf-8") as lines:
                found = next(line for line in lines if line.startswith("MemAvailable:"))
                free = 1024.0 * float(found.split()[1])
        except (OSError, StopIteration):  # on macOS
            free = 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return free
