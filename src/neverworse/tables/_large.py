"""Tables that are larger than memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from neverworse.tables._csv import infer_types, stream_csv
from neverworse.tables._errors import TableError
from neverworse.tables._file import TableFile
from neverworse.tables._options import ReadOptions
from neverworse.tables._stored import StoredTable

SHARE = 0.5  # of the free memory that a table may take
# A number takes 8 bytes as it is read, as a feature, and in arrays that come and go.
BYTES_PER_CELL = 24
BYTES_PER_CHARACTER = 4  # of text, of which a cell has some six
GROUP_ROWS = 1 << 18


def is_large(files: Sequence[TableFile], limit: float | None = None) -> bool:
    """Return whether tables should not be in memory as a whole.

    Parameters
    ----------
    files : sequence of TableFile
    limit : float, optional
        In bytes; half of the memory that is free otherwise.
    """
    most = SHARE * _free_memory() if limit is None else limit
    return sum(map(_bytes_in_memory, files)) > most


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


def _bytes_in_memory(file: TableFile) -> float:
    """Estimate how much memory a table takes, from its size or from what it says of itself."""
    if file.once:
        return 0.0
    if file.format == "parquet" and file.compression is None:
        with file.explained():
            about = parquet.read_metadata(file.path)
        return float(BYTES_PER_CELL * about.num_rows * about.num_columns)
    size = Path(file.path).stat().st_size
    return float(BYTES_PER_CHARACTER * size * (1 if file.compression is None else 5))


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
