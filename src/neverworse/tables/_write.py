"""Write one batch of rows after another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from neverworse.tables._errors import TableError


def write_csv(batches: Iterator[pa.Table], file: Any) -> None:
    """Write rows as CSV."""
    first, rest = _first(batches)
    with csv.CSVWriter(file, first.schema) as writer:
        for batch in rest:
            writer.write(batch)


def write_parquet(batches: Iterator[pa.Table], file: Any) -> None:
    """Write rows as Parquet."""
    first, rest = _first(batches)
    with parquet.ParquetWriter(file, first.schema) as writer:
        for batch in rest:
            writer.write(batch)


def write_json_lines(batches: Iterator[pa.Table], file: Any) -> None:
    """Write each row as a JSON object."""
    for batch in _first(batches)[1]:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())
        file.write("".join(lines).encode())


def _first(batches: Iterator[pa.Table]) -> tuple[pa.Table, Iterator[pa.Table]]:
    """Return the first batch, whose columns all have, and all of them."""
    first = next(batches, None)
    if first is None:
        raise TableError("The table has no rows.")
    return first, _chained(first, batches)


def _chained(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    for batch in rest:
        yield batch.cast(first.schema)
