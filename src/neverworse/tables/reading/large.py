"""Tables that are larger than memory."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from neverworse.tables._csv import delimiter, infer_types, stream_csv
from neverworse.tables._errors import TableError
from neverworse.tables._file import TableFile
from neverworse.tables._options import ReadOptions
from neverworse.tables._stored import StoredTable

SHARE = 0.5  # of the free memory that a table may take
# A number takes 8 bytes as it is read, as a feature, and in arrays that come and go.
BYTES_PER_CELL = 24
BYTES_PER_CHARACTER = 4  # of text, of which a cell has some six
GROUP_ROWS = 1 << 18
TEXTS = ("csv", "json lines", "json")
PIECE_BYTES = 1 << 20  # that are looked at, at a time


def is_large(files: Sequence[TableFile], options: ReadOptions, limit: float | None = None) -> bool:
    """Return whether tables should not be in memory as a whole.

    What a table takes is measured, not estimated from the size of its file: that may be compressed.
    Pipes can be read only once, so they are measured when they are read, which fails where they
    turn out to be too large.

    Parameters
    ----------
    files : sequence of TableFile
    options : ReadOptions
    limit : float, optional
        In bytes; half of the memory that is free otherwise.
    """
    most = SHARE * _free_memory() if limit is None else limit
    if sum(map(_most_bytes, files)) <= most:  # so that most files need not be looked at
        return False
    taken = 0.0
    for file in files:
        taken += _bytes_in_memory(file, options, most - taken)
        if taken > most:
            return True
    for file in files:
        if file.once:
            file.watch = _Watch(file, options, most - taken)
    return False


def store(files: Sequence[TableFile], options: ReadOptions, scratch: Path) -> StoredTable:
    """Return tables as Parquet files: as they are, or copied from CSV.

    Parameters
    ----------
    files : sequence of TableFile
    options : ReadOptions
    scratch : Path
        Folder for copies.
    """
    paths = [_stored(file, options, scratch / f"{k}.parquet") for k, file in enumerate(files)]
    return StoredTable.open(paths, options.missing)


def _stored(file: TableFile, options: ReadOptions, copy: Path) -> str:
    if file.format == "parquet" and not file.once:
        return file.path
    if file.format != "csv" or file.once:
        raise TableError(
            f"{file.name} is larger than memory. Convert it to Parquet, or allow more: --memory GB."
        )
    types = infer_types(file, options)
    try:
        with file.explained(), parquet.ParquetWriter(copy, pa.schema(types.items())) as writer:
            for batch in stream_csv(file, options, types):
                writer.write_batch(batch, row_group_size=GROUP_ROWS)
    except TableError as error:
        raise TableError(
            f"{error} {file.name} is larger than memory, so that types were taken from its first "
            "rows; in a Parquet file they are certain."
        ) from None
    return str(copy)


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
    meter = _Meter(file, options)
    with file.explained():
        stream = file.stream()
        while meter.needed <= most and (piece := stream.read(PIECE_BYTES)):
            meter.add(piece)
    return meter.needed


class _Meter:
    """Counts what a table will take in memory, from its uncompressed bytes.

    Parameters
    ----------
    file : TableFile
    options : ReadOptions
    """

    def __init__(self, file: TableFile, options: ReadOptions) -> None:
        self._marks: list[str] = []  # there is one for each cell
        if file.format == "csv":
            self._marks = ["\n", delimiter(file, options)]
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

    @property
    def needed(self) -> float:
        """Bytes of memory for what was counted so far."""
        return float(max(BYTES_PER_CELL * self._n_cells, BYTES_PER_CHARACTER * self._n_bytes))


class _Watch:
    """Ends the reading of a pipe when the table takes more memory than it may."""

    def __init__(self, file: TableFile, options: ReadOptions, most: float) -> None:
        self._meter = _Meter(file, options)
        self._name = file.name
        self._most = most

    def __call__(self, piece: bytes) -> None:
        self._meter.add(piece)
        if self._meter.needed > self._most:
            raise TableError(
                f"{self._name} is larger than memory. Save the table in a file, or allow more: "
                "--memory GB."
            )


def _free_memory() -> float:
    """Return the bytes of memory that are free, or would be if need be."""
    try:
        with Path("/proc/meminfo").open() as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024.0 * float(line.split()[1])
    except OSError:
        pass
    try:
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4e9
