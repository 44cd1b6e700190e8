"""Read tables of any format: whole, or a batch of rows at a time."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import feather, ipc, parquet
from pyarrow import json as arrow_json

from neverworse._extras import install
from neverworse.tables._errors import TableError, listed, nearest
from neverworse.tables.reading.delimited import DelimitedText, ReadOptions, with_nulls
from neverworse.tables.reading.files import STDIN, Bytes, TableFile, printable

BATCH_ROWS = 1 << 14
JSON_BYTES = 16 << 20  # of a block, in which a row must fit
MAX_DEPTH = 100  # lists and objects in each other; a row of plain cells is 1 deep
_OTHERS = bytes(set(range(256)) - set(b'[]{}"\n\r'))
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
SUFFIXES = (
    *(".csv", ".tsv", ".txt", ".gz", ".bz2", ".zst", ".xz", ".lz4", ".parquet", ".pq", ".feather"),
    *(".arrow", ".ipc", ".jsonl", ".ndjson", ".json", ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
)

Check = Callable[[str, Sequence[str]], None]


def table_files(paths: Sequence[str]) -> list[TableFile]:
    """Return the files of which a table consists; of a folder, all tables in it."""
    if list(paths).count(STDIN) > 1:
        raise TableError("Standard input can be read only once: give one '-'.", code="file")
    files: list[TableFile] = []
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            files += [TableFile(str(inside)) for inside in _tables_in(Path(path))]
        else:
            files.append(TableFile(path))
    places = Counter(Path(file.path).resolve() for file in files if not file.once)
    twice = [printable(place.name) for place, times in places.items() if times > 1]
    if twice:
        problem = f"The same file is given twice: {listed(twice)}."
        raise TableError(problem, "Give it once.", code="file")
    return files


def _tables_in(folder: Path) -> list[Path]:
    """Return the tables in a folder and those below it, but none that are hidden."""
    inside = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in SUFFIXES
        and path.is_file()
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    )
    if not inside:
        raise TableError(f"There is no table in the folder {printable(folder)}.", code="file")
    return inside


def read_table(files: Sequence[TableFile], options: ReadOptions) -> pa.Table:
    """Read all rows of some files with the same columns.

    Returns
    -------
    table : pyarrow Table
        Names of columns are unique. Words that mean a missing value are null.
    """
    tables: list[pa.Table] = []
    for file in files:
        table = _without_blanks(_read_file(file, options))
        check_unique(file.name, table.column_names)
        if tables and set(table.column_names) != set(tables[0].column_names):
            raise _other_columns(files[0].name, tables[0], file.name, table)
        tables.append(table)
    return stacked(tables)


def stacked(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of all tables; types that differ become one that holds all values."""
    if len(tables) == 1:
        return tables[0]
    names = tables[0].column_names
    return pa.table({n: _joined(n, [table.column(n) for table in tables]) for n in names})


def _joined(name: str, columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    plain = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in columns]
    # Numbers in one file and text in another: text, in which preparation looks for numbers.
    for as_text in (False, True):
        with contextlib.suppress(pa.ArrowException):
            parts = [column.cast(pa.string()) for column in plain] if as_text else plain
            tables = [pa.table({name: part}) for part in parts]
            return pa.concat_tables(tables, promote_options="permissive").column(0)
    raise TableError(
        f"Column {name!r} holds values of types that do not go together in the files.",
        "Make them alike, or remove it.",
        column=name,
    )


def stream_batches(
    file: TableFile, options: ReadOptions, types: Mapping[str, pa.DataType], check: Check
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a file, a batch of rows at a time.

    Those that are missing are left out. Text is read as these types; files that know the types of
    their columns keep them. `check` is called with the name of the file and the names of all its
    columns before any row is read.
    """
    with file.explained():
        for batch in _stream(file, options, types, check):
            yield with_nulls(batch, options.words)


def _stream(
    file: TableFile, options: ReadOptions, types: Mapping[str, pa.DataType], check: Check
) -> Iterator[Any]:
    def wanted(names: Sequence[str]) -> list[str]:
        check(file.name, names)
        there = set(names)
        return [name for name in types if name in there]

    if file.format == "csv":
        text = DelimitedText(file, options)
        wanted(text.names)
        yield from text.stream(types)
    elif file.format == "parquet":
        # No read-ahead: a row group may be larger than the memory that is left.
        opened = parquet.ParquetFile(file.seekable(), pre_buffer=False, buffer_size=1 << 20)
        columns = wanted(opened.schema_arrow.names)
        for batch in opened.iter_batches(BATCH_ROWS, columns=columns):
            yield valid(batch)
    elif file.format == "arrow stream":
        with ipc.open_stream(file.native()) as reader:
            columns = wanted(reader.schema.names)
            for batch in reader:
                yield valid(batch.select(columns))
    else:
        table = _read_file(file, options)
        yield from table.select(wanted(table.column_names)).to_batches(BATCH_ROWS)


def _read_file(file: TableFile, options: ReadOptions) -> pa.Table:
    with file.explained():
        if file.format == "excel":
            return read_workbook(file, options)
        if file.format == "csv":
            table = DelimitedText(file, options).read()
        else:
            table = read_json(file) if "json" in file.format else read_arrow(file)
        return with_nulls(table, options.words)


def check_unique(name: str, columns: Sequence[str]) -> None:
    """Raise if columns of a file have the same name."""
    repeated = [column for column, times in Counter(columns).items() if times > 1]
    if repeated:
        problem = f"{name} has several columns with the same name: {listed(repeated)}."
        raise TableError(problem, "Rename them.", code="column", column=repeated[0])


def _other_columns(name: str, first: pa.Table, other: str, table: pa.Table) -> TableError:
    missing = set(first.column_names) - set(table.column_names)
    extra = set(table.column_names) - set(first.column_names)
    what = f"lacks {listed(sorted(missing))}" if missing else f"also has {listed(sorted(extra))}"
    problem, fix = f"{other} {what}, unlike {name}.", "All files need the same columns."
    return TableError(problem, fix, code="column", column=min(missing or extra))


def _without_blanks(table: pa.Table) -> pa.Table:
    """Leave out columns without name and values, which spreadsheets put at the end of tables."""
    kept = [
        k
        for k, name in enumerate(table.column_names)
        if name.strip() or table.column(k).null_count < table.num_rows
    ]
    return table if len(kept) == table.num_columns else table.select(kept)


# Formats that are read whole


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
    """Read JSON lines, or a list of rows."""
    depth, stream = _Depth(file), file.stream()
    content = Bytes(lambda n: depth.checked(stream.read(n)))
    source: Any = content
    if file.format == "json":
        rows = json.loads(content.readall())
        if not all(isinstance(row, dict) for row in rows):
            raise file.error("is not a list of rows such as [{'age': 31}, ...].")
        source = pa.BufferReader("\n".join(map(json.dumps, rows)).encode())
    table = valid(arrow_json.read_json(source, arrow_json.ReadOptions(block_size=JSON_BYTES)))
    if all(pa.types.is_nested(kind) for kind in table.schema.types):
        raise file.error(
            "does not have one row per line, such as {'age': 31}.",
            "From pandas: to_json(orient='records', lines=True).",
        )
    return table


class _Depth:
    """Refuses the bytes of a JSON file that nest too deeply, before they are parsed.

    PyArrow's parser calls itself for every level, and crashes the process when its stack is full.
    It may begin anew after any line, so the depth is the largest that it could see from any
    bracket on, and no string goes on after a line break.
    """

    def __init__(self, file: TableFile) -> None:
        self._file = file
        self._backslash = b""  # the last byte, if what it escapes is in the next block
        self._quoted = False
        self._depth = 0  # above the lowest so far

    def checked(self, content: bytes) -> bytes:
        """Return the next bytes, if they are not too deep."""
        plain = _ESCAPED.sub(b"", self._backslash + content)
        self._backslash = plain[-1:] if plain.endswith(b"\\") else b""
        marks = np.frombuffer(plain.translate(None, _OTHERS), np.uint8)
        if not len(marks):
            return content
        quotes = np.cumsum(marks == ord('"')) + self._quoted
        breaks = (marks == ord("\n")) | (marks == ord("\r"))
        before = np.maximum.accumulate(np.where(breaks, quotes, 0))  # those of earlier lines
        quoted = (quotes - before) % 2 == 1
        opening = (marks == ord("[")) | (marks == ord("{"))
        closing = (marks == ord("]")) | (marks == ord("}"))
        steps = opening.astype(np.int64) - closing
        steps[quoted] = 0
        levels = np.cumsum(steps) + self._depth
        depths = levels - np.minimum(np.minimum.accumulate(levels), 0)
        if depths.max() > MAX_DEPTH:
            raise self._file.error(
                f"nests lists and objects more than {MAX_DEPTH} deep, as no table does.",
                "Give rows of plain values, such as {'age': 31}.",
            )
        self._quoted, self._depth = bool(quoted[-1]), int(depths[-1])
        return content


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
        rows = book.get_sheet_by_name(_sheet(file, book.sheet_names, options)).to_python()
    except PasswordError:
        raise file.error("is protected by a password.", "Save it without one.") from None
    except CalamineError as error:
        raise file.error(f"cannot be read as a workbook: {error}.") from None
    if not rows:
        raise file.error("has an empty sheet.", "Name another: --sheet NAME.")
    names = [_text(cell) for cell in rows[0]]
    missing = set(options.words)
    columns = [_column([row[k] for row in rows[1:]], missing) for k in range(len(names))]
    return pa.Table.from_arrays(columns, names=names)


def _sheet(file: TableFile, sheets: Sequence[str], options: ReadOptions) -> str:
    if options.sheet is None:
        return sheets[0]
    if options.sheet not in sheets:
        problem = f"has no sheet {options.sheet!r}: {listed(sheets)}."
        raise file.error(problem, nearest(options.sheet, sheets))
    return options.sheet


def _column(cells: list[Any], missing: set[str]) -> pa.Array:
    """Return cells as an array of one type: that of all of them, or text."""
    values = [None if isinstance(cell, str) and cell.strip() in missing else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    for known, kind in (
        (set(), pa.null()),
        ({int, float}, pa.float64()),
        ({bool}, pa.bool_()),
        ({dt.date}, pa.date32()),
        ({dt.time}, pa.time64("us")),
        ({dt.timedelta}, pa.duration("us")),
    ):
        if kinds <= known:
            return pa.array(values, kind)
    if kinds <= {dt.date, dt.datetime}:
        return pa.array([_moment(value) for value in values], pa.timestamp("us"))
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _moment(value: dt.date | None) -> dt.datetime | None:
    if value is None or isinstance(value, dt.datetime):
        return value
    return dt.datetime.combine(value, dt.time())


def _text(value: Any) -> str:
    """Write a cell as people would: a whole number without decimals."""
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)
