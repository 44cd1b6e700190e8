"""Formats other than delimited text: Parquet that stays on disk, Arrow, JSON, workbooks."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import feather, ipc, parquet
from pyarrow import json as arrow_json

from neverworse._words import install, nearest
from neverworse.rows import File
from neverworse.tables._errors import TableError
from neverworse.tables.reading.delimited import ReadOptions, is_text, with_nulls
from neverworse.tables.reading.files import TableFile

JSON_BYTES = 16 << 20  # of a block, in which a row must fit
MAX_DEPTH = 100  # lists and objects in each other; a row of plain cells is 1 deep
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STRING = re.compile(rb'"(?:[^"\\\n\r]|\\[^\n\r])*"')


@dataclass(frozen=True)
class StoredTable:
    """Parquet files with the same columns as a table; columns and batches are read when needed."""

    files: tuple[File, ...]
    column_names: list[str]  # of all columns that are in use
    missing: tuple[str, ...] = ("",)  # words that mean a missing value
    batch_rows: int = 1 << 14  # that are read at once

    @classmethod
    def open(cls, paths: Sequence[str], missing: Sequence[str] = ()) -> StoredTable:
        """Open files, which must have the same columns and types."""
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
        return sum(file.n_rows for file in self.files)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([self.files[0].schema.field(name) for name in self.column_names])

    def select(self, names: Sequence[str]) -> StoredTable:
        return replace(self, column_names=list(names))

    def column(self, name: str) -> pa.ChunkedArray:
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
        """Read some batches of rows, in increasing order, or all of them."""
        wanted = set(range(len(self.sizes())) if chosen is None else chosen)
        first = 0  # of the row group, among all batches
        for file in self.files:
            with file.open() as opened:
                for group, rows in enumerate(file.group_rows):
                    numbers = range(first, first - (-rows // self.batch_rows))
                    first = numbers.stop
                    if wanted.isdisjoint(numbers):
                        continue
                    batches = opened.iter_batches(
                        self.batch_rows, row_groups=[group], columns=self.column_names
                    )
                    for number, batch in zip(numbers, batches, strict=True):
                        if number in wanted:
                            yield with_nulls(pa.Table.from_batches([batch]), self.missing)


def read_arrow(file: TableFile) -> pa.Table:
    """Read all rows of a file of Parquet, Feather or Arrow."""
    if file.format == "parquet":
        return valid(parquet.ParquetFile(file.seekable(), pre_buffer=True).read())
    if file.format == "arrow":
        return valid(feather.read_table(file.seekable()))
    with ipc.open_stream(file.native()) as reader:
        return valid(reader.read_all())


def valid(rows: Any) -> Any:
    """Return rows from a file that may be damaged; PyArrow would believe what it says."""
    rows.validate(full=True)
    return rows


def read_json(file: TableFile) -> pa.Table:
    """Read JSON lines, unless they nest too deeply.

    PyArrow's parser calls itself for every level, and crashes the process when its stack is full.
    It may begin anew after any line, so the depth is the largest that it could see from any
    bracket on, and no string goes on after a line break.
    """
    content = file.stream().read()
    brackets = np.frombuffer(_STRING.sub(b"", content).translate(None, _NO_BRACKETS), np.uint8)
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), np.int8(1), np.int8(-1))
    levels = np.cumsum(steps, dtype=np.int32)
    if np.any(levels - np.minimum.accumulate(np.minimum(levels, 0)) > MAX_DEPTH):
        raise file.error(
            f"nests lists and objects more than {MAX_DEPTH} deep, as no table does.",
            "Give rows of plain values, such as {'age': 31}.",
        )
    table = None
    if not file.head.lstrip().startswith(b"["):
        options = arrow_json.ReadOptions(block_size=JSON_BYTES)
        table = valid(arrow_json.read_json(pa.BufferReader(content), options))
    if table is None or all(pa.types.is_nested(kind) for kind in table.schema.types):
        raise file.error(
            "does not have one row per line, such as {'age': 31}.",
            "From pandas: to_json(orient='records', lines=True).",
        )
    return table


def read_workbook(file: TableFile, options: ReadOptions) -> pa.Table:
    """Read a sheet whose first row has the names of the columns."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook, PasswordError
    except ImportError:
        problem = "is a workbook, which needs python-calamine to be read."
        raise file.error(problem, install("tables")) from None
    source = file.seekable()
    try:
        if isinstance(source, str):
            book = CalamineWorkbook.from_path(Path(source))
        else:
            book = CalamineWorkbook.from_filelike(source)
        sheet = book.sheet_names[0] if options.sheet is None else options.sheet
        if sheet not in book.sheet_names:
            raise file.error(f"has no sheet {sheet!r}.", nearest(sheet, book.sheet_names))
        rows = book.get_sheet_by_name(sheet).to_python()
    except PasswordError:
        raise file.error("is protected by a password.", "Save it without one.") from None
    except CalamineError as error:
        raise file.error(f"cannot be read as a workbook: {error}.") from None
    if not rows:
        raise file.error("has an empty sheet.", "Name another: --sheet NAME.")
    columns = [_column(list(cells), options.words) for cells in zip(*rows[1:], strict=True)]
    names = [_text(cell) for cell in rows[0]]
    return pa.Table.from_arrays(columns or [pa.nulls(0)] * len(names), names=names)


def _column(cells: list[Any], missing: Sequence[str]) -> pa.Array:
    """Return cells as an array of one type: that of all of them, or text."""
    values = [None if isinstance(cell, str) and cell.strip() in missing else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {dt.date, dt.datetime}:
        values = [v if v is None else dt.datetime.fromisoformat(str(v)) for v in values]
    elif len(kinds) > 1 and kinds != {int, float}:
        values = [None if value is None else _text(value) for value in values]
    return pa.array(values, pa.float64() if kinds and kinds <= {int, float} else None)


def _text(value: Any) -> str:
    """Write a cell as people would: a whole number without decimals."""
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)
