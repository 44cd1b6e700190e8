"""Tables in workbooks of Excel and other spreadsheets."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from neverworse._extras import install
from neverworse.tables._errors import TableError, listed, nearest
from neverworse.tables._file import TableFile
from neverworse.tables._options import ReadOptions


def read_workbook(file: TableFile, options: ReadOptions) -> pa.Table:
    """Read a sheet whose first row has the names of the columns."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook, PasswordError
    except ImportError:
        raise TableError(
            f"{file.name} is a workbook, and reading it needs python-calamine. {install('tables')}"
        ) from None
    source = file.seekable()
    try:
        if isinstance(source, str):
            book = CalamineWorkbook.from_path(Path(source))
        else:
            book = CalamineWorkbook.from_filelike(source)
        rows = book.get_sheet_by_name(_sheet(file, book.sheet_names, options)).to_python()
    except PasswordError:
        raise TableError(f"{file.name} is protected by a password. Save it without.") from None
    except CalamineError as error:
        raise TableError(f"{file.name} cannot be read as a workbook: {error}.") from None
    if not rows:
        raise TableError(f"{file.name}: the sheet is empty. Name another: --sheet NAME.")
    names = [_text(cell) for cell in rows[0]]
    missing = set(options.words)
    columns = [_column([row[k] for row in rows[1:]], missing) for k in range(len(names))]
    return pa.Table.from_arrays(columns, names=names)


def _sheet(file: TableFile, sheets: Sequence[str], options: ReadOptions) -> str:
    if options.sheet is None:
        return sheets[0]
    if options.sheet not in sheets:
        raise TableError(
            f"{file.name} has no sheet {options.sheet!r}: {listed(sheets)}. "
            f"{nearest(options.sheet, sheets)}"
        )
    return options.sheet


def _column(cells: list[Any], missing: set[str]) -> pa.Array:
    """Return cells as an array of one type: that of all of them, or text."""
    values = [None if isinstance(cell, str) and cell.strip() in missing else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values))
    if kinds <= {int, float}:
        return pa.array(values, pa.float64())
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {dt.date}:
        return pa.array(values, pa.date32())
    if kinds <= {dt.date, dt.datetime}:
        return pa.array([_moment(value) for value in values], pa.timestamp("us"))
    if kinds == {dt.time}:
        return pa.array(values, pa.time64("us"))
    if kinds == {dt.timedelta}:
        return pa.array(values, pa.duration("us"))
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _moment(value: dt.date | None) -> dt.datetime | None:
    if value is None or isinstance(value, dt.datetime):
        return value
    return dt.datetime.combine(value, dt.time())


def _text(value: Any) -> str:
    """Write a cell as people would: a whole number without decimals."""
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)
