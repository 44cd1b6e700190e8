"""Tables in files of each format: CSV, Parquet, Arrow, JSON lines, and workbooks."""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from pyarrow import json as arrow_json

from neverworse._words import count, install, nearest
from neverworse.tables.reading.files import HEAD_BYTES, NOT_UTF8, TableFile, signature

# Words for missing values, in all formats: those that pandas and PyArrow write or understand.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)
DELIMITERS = (",", "\t", ";", "|")
BOMS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8"}
TEXT = pa.dictionary(pa.int32(), pa.string())  # text, as it is read from CSV
BLOCK_BYTES = 8 << 20  # of text at a time, when it is streamed
PART_BYTES = 2 << 20  # of text that becomes one part of a table in memory
# The sample that shows how numbers are written.
HEAD_CHARACTERS, N_PIECES, PIECE_BYTES = 1 << 16, 16, 1 << 13
LONGEST_CELL = 1 << 30  # characters, for the reader of Python
END = "\x1a end of file"
JSON_BYTES = 16 << 20  # of a block, in which a row must fit
MAX_DEPTH = 100  # lists and objects in each other; a row of plain cells is 1 deep
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STRING = re.compile(rb'"(?:[^"\\\n\r]++|\\[^\n\r])*+"')

Types = Mapping[str, pa.DataType]


@dataclass(frozen=True)
class ReadOptions:
    """How to read a table, instead of what is detected."""

    delimiter: str | None = None  # of delimited text
    encoding: str | None = None  # of text
    decimal: str | None = None  # decimal mark of numbers in text: "." or ","
    missing: tuple[str, ...] = ()  # further words that mean a missing value
    sheet: str | None = None  # of a workbook; by default, the first one
    text: frozenset[str] = frozenset()  # columns to read as text, whatever their values look like

    @property
    def words(self) -> tuple[str, ...]:
        return (*MISSING, *self.missing)


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings, or refer to a dictionary of strings."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def decoded(column: Any) -> Any:
    """Return a column without dictionary encoding."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def as_strings(column: Any) -> Any:
    """Return a column, or an array, as text; timestamps with a time zone in UTC."""
    kind = column.type
    if not (pa.types.is_timestamp(kind) and kind.tz):
        return column.cast(pa.string())
    # PyArrow itself needs a database of time zones, which not every Windows has.
    moments = column.cast(pa.timestamp(kind.unit)).cast(pa.string())
    return pc.binary_join_element_wise(moments, "Z", "")


def spells_number(text: str) -> bool:
    """Whether a text is a number, as Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def written(value: Any) -> str:
    """Write a value as people do: a number that is whole without decimals."""
    text = str(value).strip()
    is_whole = spells_number(text) and float(text).is_integer() and abs(float(text)) < 2.0**53
    return str(int(float(text))) if is_whole else text


class DelimitedText:
    """A file of delimited text; errors of PyArrow are left to `TableFile.explained`."""

    def __init__(self, file: TableFile, options: ReadOptions) -> None:
        self.file, self.options, start = file, options, file.head
        known: str | None = options.encoding or signature(start, BOMS)
        if known is None and b"\x00" in start:
            fix = "Export the table as CSV or Parquet, or name its encoding: --encoding utf-16."
            raise file.error("is neither text nor a known format.", fix)
        name = codecs.lookup(known or "utf-8").name
        self._encoding = "utf8" if name == "utf-8" else name  # which PyArrow need not recode
        try:  # the first bytes may end within a character
            head = codecs.getincrementaldecoder(self._encoding)().decode(start)
        except UnicodeError:
            raise file.error(*NOT_UTF8) from None
        head = head.removeprefix("\ufeff")
        # The line before the names of columns in which Excel names the delimiter.
        excel = re.match(r'"?sep=(.)"?\r?\n', head)
        self._n_skipped, self._first_lines = (1, head[excel.end() :]) if excel else (0, head)
        self.delimiter = options.delimiter or (excel[1] if excel else delimiter_of(head))

    def read(self) -> pa.Table:
        """Read all rows; the type of a column is found from all of its values."""
        types = {name: TEXT for name in self.options.text if name in self.names}
        read, parse, convert = self._settings(types, PART_BYTES)
        convert.auto_dict_encode = True
        # PyArrow's own allocator gives memory back to the system and asks for it all the time.
        pool = pa.system_memory_pool()
        try:
            table = arrow_csv.read_csv(self.file.plain, read, parse, convert, pool)
        except pa.ArrowInvalid:  # perhaps because of line breaks between quotes, which are slower
            parse.newlines_in_values = True
            with self._rows_checked():
                table = arrow_csv.read_csv(self.file.plain, read, parse, convert, pool)
        if any("binary" in str(kind) for kind in table.schema.types):
            raise self.file.error(*NOT_UTF8)
        self._check_last_cell(table)
        return table

    def stream(self, types: Types) -> Iterator[pa.RecordBatch]:
        """Read columns as these types; as text from the first block on in which they are not."""
        n_done = 0
        try:
            for block in self.blocks(types):
                yield block
                n_done += block.num_rows
        except pa.ArrowInvalid:
            for block in self.blocks(dict.fromkeys(types, TEXT)):
                if n_done < block.num_rows:
                    yield block.slice(n_done)
                n_done = max(0, n_done - block.num_rows)

    def blocks(self, types: Types) -> Iterator[pa.RecordBatch]:
        """Read some columns, as these types, a block of rows at a time."""
        with self._rows_checked(), self._open(types) as reader:
            last = None
            for last in reader:
                yield last
            self._check_last_cell(last)

    def first_types(self) -> dict[str, pa.DataType]:
        """Return the types of all columns, as far as the first rows tell."""
        with self._rows_checked(), self._open({}) as reader:
            types = dict(zip(reader.schema.names, reader.schema.types, strict=True))
        for name, kind in types.items():
            if name in self.options.text or pa.types.is_null(kind):  # which may become anything
                types[name] = pa.string()
            elif pa.types.is_integer(kind):  # to which decimals may be added
                types[name] = pa.float64()
        return types

    def some_rows(self) -> pa.Table:
        """Return rows from the beginning and from places all over, as text, if that is possible."""
        text = self._first_lines[:HEAD_CHARACTERS]
        if len(text) == HEAD_CHARACTERS:
            text = text.rpartition("\n")[0] + "\n"
        size = Path(self.file.plain).stat().st_size
        if size > HEAD_BYTES and not self._encoding.startswith(("utf-16", "utf-32")):
            with Path(self.file.plain).open("rb") as file:
                for k in range(1, N_PIECES + 1):
                    file.seek((size - PIECE_BYTES) * k // N_PIECES)
                    lines = file.read(PIECE_BYTES).partition(b"\n")[2].rpartition(b"\n")[0]
                    text += lines.decode(self._encoding, "replace") + "\n"
        _, parse, convert = self._settings(dict.fromkeys(self.names, pa.string()), PART_BYTES)
        parse.invalid_row_handler = lambda _: "skip"
        try:
            source = pa.BufferReader(text.encode())
            return arrow_csv.read_csv(source, parse_options=parse, convert_options=convert)
        except (pa.ArrowException, UnicodeError):
            return pa.table({})

    @cached_property
    def names(self) -> list[str]:
        rows = csv.reader(io.StringIO(self._first_lines), delimiter=self.delimiter)
        try:
            first = next((row for row in rows if row), None)
        except csv.Error:
            problem = "has a first line that cannot be read as column names."
            fix = "Save it as CSV again, with a header and with the line ends of Windows or Unix."
            raise self.file.error(problem, fix) from None
        if first is None:
            raise self.file.empty()
        return first

    def _open(self, types: Types) -> Any:
        read, parse, convert = self._settings(types, BLOCK_BYTES)
        parse.newlines_in_values = True
        convert.include_columns = list(types)
        return arrow_csv.open_csv(self.file.plain, read, parse, convert)

    @contextmanager
    def _rows_checked(self) -> Iterator[None]:
        """Name the line that PyArrow stumbles over, which it does not do itself."""
        try:
            yield
        except pa.ArrowInvalid:
            self._check_rows()
            raise

    def _check_last_cell(self, rows: Any) -> None:
        """Raise if the last cell has swallowed the rows behind a quote that is never closed."""
        k = rows.schema.get_field_index(self.names[-1]) if rows else -1
        if k >= 0 and "\n" in str(rows.column(k)[-1]):
            self._check_rows()

    def _check_rows(self) -> None:
        """Raise if a row has more or fewer cells than columns, or a quote that is never closed."""
        with ExitStack() as stack, Path(self.file.plain).open("rb") as file, suppress(csv.Error):
            stack.callback(csv.field_size_limit, csv.field_size_limit(LONGEST_CELL))
            text = io.TextIOWrapper(file, self._encoding, "replace", newline="")
            # Behind all rows, END is a row of its own, unless there is an open quote.
            lines = chain(islice(text, self._n_skipped, None), [f'"{END}'])
            rows, line = csv.reader(lines, delimiter=self.delimiter), self._n_skipped + 1
            for row in rows:
                if row == [END]:
                    break
                if row and row[-1].endswith(END):
                    problem = f"has a quotation mark in line {line:,} that is never closed."
                    raise self.file.error(problem, "Close it, or remove it.")
                if row and len(row) != len(self.names):
                    n_cells, n_columns = count(len(row), "cell"), count(len(self.names), "column")
                    raise self.file.error(
                        f"has {n_cells} in line {line:,}, but {n_columns}.",
                        "Put quotes around cells that contain the delimiter, close quotes that are "
                        "open, or name another delimiter: --delimiter.",
                    )
                line = self._n_skipped + rows.line_num + 1

    def _settings(self, types: Types, block_bytes: int) -> tuple[Any, Any, Any]:
        """Return how PyArrow reads, splits and converts text."""
        read = arrow_csv.ReadOptions(encoding=self._encoding, block_size=block_bytes)
        read.skip_rows = self._n_skipped
        convert = arrow_csv.ConvertOptions(column_types=dict(types), strings_can_be_null=True)
        convert.decimal_point = self.options.decimal or "."
        convert.null_values = list(self.options.words)
        return read, arrow_csv.ParseOptions(delimiter=self.delimiter), convert


def delimiter_of(text: str) -> str:
    """Return what separates the columns: what splits the first lines into as many parts each."""
    lines = text.splitlines()[:50]

    def vote(delimiter: str) -> tuple[float, int]:
        """Return the share of lines with as many columns as the first, and that number."""
        with suppress(csv.Error):
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
            if widths and widths[0] > 1:
                return widths.count(widths[0]) / len(widths), widths[0]
        return 0.0, 0

    return max(DELIMITERS, key=vote)  # a comma, if none splits them


# Other formats


def valid(rows: Any) -> Any:
    """Return rows from a file that may be damaged; PyArrow would believe what it says."""
    rows.validate(full=True)
    return rows


def read_json(file: TableFile) -> pa.Table:
    """Read JSON lines, unless they nest too deeply: PyArrow would crash when its stack is full.

    It may begin anew after any line, so depth counts from any bracket on, and strings end there.
    """
    content = Path(file.plain).read_bytes()
    brackets = np.frombuffer(_STRING.sub(b"", content).translate(None, _NO_BRACKETS), np.uint8)
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), np.int8(1), np.int8(-1))
    levels = np.cumsum(steps, dtype=np.int32)
    too_deep = np.any(levels - np.minimum.accumulate(np.minimum(levels, 0)) > MAX_DEPTH)
    if not too_deep and not file.head.lstrip().startswith(b"["):
        options = arrow_json.ReadOptions(block_size=JSON_BYTES)
        table = valid(arrow_json.read_json(pa.BufferReader(content), options))
        if not all(pa.types.is_nested(kind) for kind in table.schema.types):
            return table
    problem = "does not have one row of plain values per line, such as {'age': 31}."
    raise file.error(problem, "From pandas: to_json(orient='records', lines=True).")


def read_workbook(file: TableFile, options: ReadOptions) -> pa.Table:
    """Read a sheet whose first row has the names of the columns."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        problem = "is a workbook, which needs python-calamine to be read."
        raise file.error(problem, install("tables")) from None
    try:
        book = CalamineWorkbook.from_path(Path(file.plain))
        sheet = book.sheet_names[0] if options.sheet is None else options.sheet
        if sheet not in book.sheet_names:
            raise file.error(f"has no sheet {sheet!r}.", nearest(sheet, book.sheet_names))
        rows = book.get_sheet_by_name(sheet).to_python()
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
