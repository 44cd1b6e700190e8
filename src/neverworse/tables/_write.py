"""Write one batch of rows after another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from neverworse.tables._errors import TableError

# What spreadsheets take for the beginning of a formula, unless all of it is a number.
_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def write_csv(batches: Iterator[pa.Table], file: Any, *, keep_formulas: bool = False) -> None:
    """Write rows as CSV.

    Parameters
    ----------
    batches : iterator of tables
    file : file or path
    keep_formulas : bool
        Whether to write text as it is that a spreadsheet would run as a formula. Otherwise it has
        an apostrophe before it, which makes text of it there.
    """
    first, rest = _first(batches if keep_formulas else map(without_formulas, batches))
    with csv.CSVWriter(file, first.schema) as writer:
        for batch in rest:
            writer.write(batch)


def without_formulas(table: pa.Table) -> pa.Table:
    """Return a table with an apostrophe before text, in names as well, that is a formula."""
    names = _as_text(pa.array(table.column_names, pa.string())).to_pylist()
    columns = [_as_text(c) if pa.types.is_string(c.type) else c for c in table.columns]
    return pa.table(columns, names)


def _as_text(column: Any) -> Any:
    formula = pc.match_substring_regex(column, _FORMULA)
    number = pc.match_substring_regex(column, _NUMBER)
    quoted = pc.binary_join_element_wise("'", column, "")
    return pc.if_else(pc.and_not(formula, number), quoted, column)


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
