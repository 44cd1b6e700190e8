"""Tables as delimited text, how they are to be read, and which of their values are missing."""

from __future__ import annotations

import codecs
import csv
import io
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from neverworse._words import count, cropped
from neverworse.tables._errors import TableError
from neverworse.tables.reading.files import (
    BOMS,
    DELIMITERS,
    TableFile,
    delimiter_of,
    is_too_long,
    signature,
)

# Words for missing values, in all formats: those that pandas and PyArrow write or understand.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)
TEXT = pa.dictionary(pa.int32(), pa.string())  # names, as they are read from CSV
BLOCK_BYTES = 8 << 20  # of text at a time, when it is streamed
PART_BYTES = 2 << 20  # of text that becomes one part of a table in memory
# What is looked at, before all is read, to see how numbers are written.
HEAD_CHARACTERS, N_PIECES, PIECE_BYTES = 1 << 16, 16, 1 << 13
SHOULD_HOLD = {"double": "numbers", "bool": "true or false", "timestamp": "dates (2026-01-31)"}

Types = Mapping[str, pa.DataType]


@dataclass(frozen=True)
class ReadOptions:
    """How to read a table, instead of what is detected.

    Attributes
    ----------
    delimiter : str, optional
        Of delimited text.
    encoding : str, optional
        Of text.
    decimal : {".", ","}, optional
        Decimal mark of numbers in text.
    missing : tuple of str
        Further words that mean a missing value.
    sheet : str, optional
        Of a workbook; by default, the first one.
    text : frozenset of str
        Columns to read as text, whatever their values look like.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()
    sheet: str | None = None
    text: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal is '.' or ',', not {self.decimal!r}.")

    @property
    def words(self) -> tuple[str, ...]:
        return (*MISSING, *self.missing)


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings, or refer to a dictionary of strings."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def decoded(column: Any) -> Any:
    """Return values in place of a dictionary and what refers to it."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def as_strings(column: Any) -> Any:
    """Return a column, or an array, as text.

    Moments are in UTC: for other zones, PyArrow needs a database that not every Windows has.
    """
    kind = column.type
    if not (pa.types.is_timestamp(kind) and kind.tz):
        return column.cast(pa.string())
    moments = column.cast(pa.timestamp(kind.unit)).cast(pa.string())
    return pc.binary_join_element_wise(moments, "Z", "")


def spells_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def correction(text: str, decimal: str | None) -> str:
    """Return what to do about a cell; `decimal` is the mark that a number would have."""
    other = {".": ",", ",": "."}.get(decimal or "")
    if other and text.count(other) == 1 and spells_number(text.replace(other, ".")):
        return f"If {other!r} is the decimal mark of this table: --decimal {other!r}."
    return f"Correct it; if it marks missing values: --missing {text!r}."


def as_times(texts: Any, kind: pa.DataType) -> Any:
    """Return text as times of the day, which PyArrow finds only beside a date."""
    some_day = pc.binary_join_element_wise("1970-01-01T", texts, "")
    return some_day.cast(pa.timestamp("us")).cast(kind)


def with_nulls(table: pa.Table, words: Sequence[str]) -> pa.Table:
    """Make words that mean a missing value null.

    Spaces around them do not matter, and a number is the same in all spellings.
    """
    spelled = [float(word) for word in words if spells_number(word) and float(word) == float(word)]

    def kept(column: pa.ChunkedArray) -> pa.ChunkedArray:
        kind = column.type
        if is_text(kind) and pa.types.is_dictionary(kind):
            return pa.chunked_array([_without_words(chunk, words) for chunk in column.chunks], kind)
        if is_text(kind):
            found = pc.is_in(pc.utf8_trim_whitespace(column), pa.array(words, kind))
        elif spelled and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            found = pc.is_in(column.cast("f8", safe=False), pa.array(spelled))
        else:
            return column
        return pc.if_else(found, pa.scalar(None, kind), column) if pc.any(found).as_py() else column

    return pa.Table.from_arrays([kept(column) for column in table.columns], schema=table.schema)


def _without_words(chunk: pa.DictionaryArray, words: Sequence[str]) -> pa.DictionaryArray:
    texts, codes = chunk.dictionary, chunk.indices
    found = pc.is_in(pc.utf8_trim_whitespace(texts), pa.array(words, texts.type))
    if not pc.any(found).as_py():
        return chunk
    codes = pc.if_else(found.take(codes), pa.scalar(None, codes.type), codes)
    return pa.DictionaryArray.from_arrays(codes, texts, ordered=chunk.type.ordered)


class DelimitedText:
    """A file of delimited text: what is in its first line, and its rows."""

    def __init__(self, file: TableFile, options: ReadOptions) -> None:
        self.file, self.options = file, options

    def read(self) -> pa.Table:
        """Read all rows; the type of a column is found from all of its values."""
        names = self.names
        convert = self._conversion({n: TEXT for n in self.options.text if n in names})
        convert.auto_dict_encode = True
        read, parse = self._reading(PART_BYTES), arrow_csv.ParseOptions(delimiter=self.delimiter)
        # PyArrow's own allocator gives memory back to the system and asks for it all the time.
        pool = pa.system_memory_pool()
        # Line breaks between quotes are slower to allow for, so only the second try does.
        for parse.newlines_in_values in (False, True):
            try:
                table = arrow_csv.read_csv(self.file.native(), read, parse, convert, pool)
            except pa.ArrowInvalid as error:
                wrong = error
                continue
            if any("binary" in str(kind) for kind in table.schema.types):
                raise self.file.not_decoded()
            return table
        raise self._explained(wrong)

    def stream(self, types: Types) -> Iterator[pa.RecordBatch]:
        """Read some columns, of known types, a block of rows at a time."""
        wanted = {name: kind for name, kind in types.items() if name in self.names}
        try:
            yield from self._blocks(wanted)
        except pa.ArrowInvalid as error:
            raise self._wrong_value(wanted) or self._explained(error) from None

    def some_rows(self) -> pa.Table:
        """Return rows from the beginning and from places all over, as text.

        No rows if they cannot be read in this way; what is wrong is found when all rows are read.
        """
        text = self._first_lines[:HEAD_CHARACTERS]
        if len(text) == HEAD_CHARACTERS:
            text = text.rpartition("\n")[0] + "\n"
        encoding = codecs.lookup(self._encoding).name
        if not encoding.startswith(("utf-16", "utf-32")):  # in which a byte is no character
            for piece in self.file.pieces(N_PIECES, PIECE_BYTES):
                text += piece.partition(b"\n")[2].rpartition(b"\n")[0].decode(encoding, "replace")
                text += "\n"
        parse = arrow_csv.ParseOptions(
            delimiter=self.delimiter, invalid_row_handler=lambda _: "skip"
        )
        convert = self._conversion(dict.fromkeys(self.names, pa.string()))
        try:
            source = pa.BufferReader(text.encode())
            return arrow_csv.read_csv(source, parse_options=parse, convert_options=convert)
        except (pa.ArrowException, UnicodeError):
            return pa.table({})

    def first_types(self) -> dict[str, pa.DataType]:
        """Return the types of all columns, as far as the first rows tell.

        Whole numbers may get decimals later, and a column that is empty at first may be anything.
        """
        with self.file.explained(), self._open({}) as reader:
            schema = reader.schema
        types = {}
        for field in schema:
            kind = pa.float64() if pa.types.is_integer(field.type) else field.type
            text = field.name in self.options.text or pa.types.is_null(kind)
            types[field.name] = pa.string() if text else kind
        return types

    @cached_property
    def delimiter(self) -> str:
        return self.options.delimiter or delimiter_of(self._first_lines)

    @cached_property
    def names(self) -> list[str]:
        rows = csv.reader(io.StringIO(self._first_lines), delimiter=self.delimiter)
        try:
            first = next((row for row in rows if row), None)
        except csv.Error as error:
            raise self.file.error(f"has no column names in its first line: {error}.") from None
        if first is None:
            raise self.file.empty()
        return first

    def _wrong_value(self, types: Types) -> TableError | None:
        """Say which value is not of the type of its column, which PyArrow says only in words."""
        n_rows = 0
        try:
            for block in self._blocks(dict.fromkeys(types, pa.string())):
                texts = with_nulls(pa.Table.from_batches([block]), self.options.words)
                for name, kind in types.items():
                    cells = pc.utf8_trim_whitespace(texts.column(name).combine_chunks())
                    if not is_text(kind) and self._cast(cells, kind) is None:
                        return self._wrong_cell(name, kind, cells, n_rows)
                n_rows += texts.num_rows
        except pa.ArrowInvalid as error:
            return self._explained(error)
        return None

    def _cast(self, texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
        """Return text as another type, or nothing if some of it is not."""
        if pa.types.is_floating(kind) and self.options.decimal == ",":
            texts = pc.replace_substring(pc.replace_substring(texts, ".", "?"), ",", ".")
        try:
            return as_times(texts, kind) if pa.types.is_time(kind) else texts.cast(kind)
        except pa.ArrowInvalid:
            return None

    def _wrong_cell(
        self, name: str, kind: pa.DataType, texts: pa.Array, n_before: int
    ) -> TableError:
        def fails(row: int) -> bool:  # or one before it
            return self._cast(texts.slice(0, row + 1), kind) is None

        row = bisect_left(range(len(texts)), True, key=fails)
        value, what = cropped(str(texts[row])), str(kind).partition("[")[0]
        return TableError(
            f"Column {name!r} of {self.file.name} should hold {SHOULD_HOLD.get(what, what)}, but "
            f"has {value!r}",
            correction(value, self.options.decimal if pa.types.is_floating(kind) else None),
            column=name,
            row=n_before + row,
        )

    def _explained(self, error: pa.ArrowInvalid) -> TableError:
        """Return what PyArrow complains about, in other words."""
        if "UTF8" in str(error):
            return self.file.not_decoded()
        if is_too_long(error):
            return self.file.too_long()
        first = str(error).strip().splitlines()[0]
        return self._wrong_width() or self.file.error(f"cannot be read as CSV: {first}")

    def _wrong_width(self) -> TableError | None:
        """Say which line has more or fewer cells than the header.

        PyArrow tells lines apart in threads, which do not know their numbers.
        """
        line = 1
        with io.TextIOWrapper(self.file.stream(), self._encoding, "replace", newline="") as text:
            rows = csv.reader(text, delimiter=self.delimiter)
            try:
                for row in rows:
                    if row and line > 1 and len(row) != len(self.names):
                        break
                    line = rows.line_num + 1
                else:
                    return None
            except csv.Error:
                return None
        other = ", ".join(repr(d) for d in DELIMITERS if any(d in name for name in self.names))
        hint = f" Perhaps the delimiter is wrong: --delimiter {other}." if other else ""
        fix = "Put quotes around cells that contain the delimiter."
        if len(row) < len(self.names):
            fix = "Add the cells that are missing; they may be empty."
        return TableError(
            f"{self.file.name}: line {line:,} has {count(len(row), 'cell')}, but the header has "
            f"{len(self.names)}.",
            f"{fix}{hint}",
            code="file",
        )

    def _blocks(self, types: Types) -> Iterator[pa.RecordBatch]:
        with self._open(types) as reader:
            yield from reader

    def _open(self, types: Types) -> Any:
        convert = self._conversion(types)
        convert.include_columns = list(types)
        parse = arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        return arrow_csv.open_csv(self.file.native(), self._reading(BLOCK_BYTES), parse, convert)

    def _reading(self, block_size: int) -> arrow_csv.ReadOptions:
        utf8 = codecs.lookup(self._encoding).name == "utf-8"  # which PyArrow need not recode
        encoding = "utf8" if utf8 else self._encoding
        return arrow_csv.ReadOptions(encoding=encoding, block_size=block_size)

    def _conversion(self, types: Types) -> arrow_csv.ConvertOptions:
        return arrow_csv.ConvertOptions(
            column_types=dict(types),
            strings_can_be_null=True,
            decimal_point=self.options.decimal or ".",
            null_values=list(self.options.words),
        )

    @cached_property
    def _first_lines(self) -> str:
        """The first bytes as text; they may end within a character."""
        decoder = codecs.getincrementaldecoder(self._encoding)()
        try:
            return decoder.decode(self.file.head, final=False).removeprefix("\ufeff")
        except UnicodeError:
            raise self.file.not_decoded() from None

    @cached_property
    def _encoding(self) -> str:
        known = self.options.encoding or signature(self.file.head, BOMS)
        try:
            codecs.lookup(known or "utf-8")
        except LookupError:
            problem, fix = f"There is no encoding {known!r}.", "Common ones: utf-8, cp1252, utf-16."
            raise TableError(problem, fix, code="file") from None
        if known is None and b"\x00" in self.file.head:
            raise self.file.error(
                "is neither text nor a known format.",
                "Export the table as CSV or Parquet; if it is text in another encoding, name it, "
                "for example --encoding utf-16.",
            )
        return known or "utf-8"
