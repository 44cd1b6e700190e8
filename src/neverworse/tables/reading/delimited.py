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
    DELIMITERS,
    TableFile,
    delimiter_of,
    encoding_of,
    is_too_long,
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
    """How a table is read, where that should not be detected.

    Attributes
    ----------
    delimiter : str, optional
        Between the cells of delimited text.
    encoding : str, optional
        Of text.
    decimal : {".", ","}, optional
        Before the decimals of numbers in text.
    missing : tuple of str
        Further words that mean a missing value.
    sheet : str, optional
        Of a workbook; the first one otherwise.
    text : frozenset of str
        Columns that hold names, whatever they look like.
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


def with_nulls(rows: Any, words: Sequence[str]) -> Any:
    """Make words that mean a missing value null, in a table or a batch.

    Spaces around them do not matter, and a number is the same in all spellings.
    """
    spelled = [float(word) for word in words if spells_number(word) and float(word) == float(word)]
    for k, field in enumerate(rows.schema):
        column = rows.column(k)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        if is_text(field.type):
            kept = [_without_words(chunk, words) for chunk in chunks]
        elif spelled and (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
            numbers = pa.array(spelled)
            kept = [_without(chunk, chunk.cast("f8", safe=False), numbers) for chunk in chunks]
        else:
            continue
        if any(new is not old for new, old in zip(kept, chunks, strict=True)):
            whole = pa.chunked_array(kept) if isinstance(column, pa.ChunkedArray) else kept[0]
            rows = rows.set_column(k, field.name, whole)
    return rows


def _without_words(chunk: pa.Array, words: Sequence[str]) -> pa.Array:
    coded = pa.types.is_dictionary(chunk.type)
    texts = chunk.dictionary if coded else chunk
    trimmed, known = pc.utf8_trim_whitespace(texts), pa.array(words).cast(texts.type)
    if not coded:
        return _without(chunk, trimmed, known)
    found = pc.is_in(trimmed, known)
    if not pc.any(found).as_py():
        return chunk
    kept = pc.if_else(found.take(chunk.indices), pa.scalar(None, chunk.indices.type), chunk.indices)
    return pa.DictionaryArray.from_arrays(kept, texts, ordered=chunk.type.ordered)


def _without(chunk: pa.Array, values: pa.Array, missing: pa.Array) -> pa.Array:
    found = pc.is_in(values, missing)
    if not pc.any(found).as_py():
        return chunk
    return pc.if_else(found, pa.scalar(None, chunk.type), chunk)


class DelimitedText:
    """A file of delimited text: what is in its first line, and its rows."""

    def __init__(self, file: TableFile, options: ReadOptions) -> None:
        self.file, self.options = file, options

    def read(self) -> pa.Table:
        """Read all rows; the type of a column is found from all of its values."""
        names = self.names
        convert = self._conversion({n: TEXT for n in self.options.text if n in names})
        convert.auto_dict_encode = True
        read, parse = self._reading(PART_BYTES), self._parsing()
        # PyArrow's own allocator gives memory back to the system and asks for it all the time.
        pool = pa.system_memory_pool()
        # Line breaks between quotes are slower to allow for, so only the second try does.
        for parse.newlines_in_values in (True,) if self.file.once else (False, True):
            try:
                table = arrow_csv.read_csv(self.file.native(), read, parse, convert, pool)
            except pa.ArrowInvalid as error:
                wrong = error
                continue
            if any(_is_binary(kind) for kind in table.schema.types):
                raise self.file.not_decoded()
            return table
        raise self._explained(wrong)

    def stream(self, types: Types) -> Iterator[pa.RecordBatch]:
        """Read some columns, of known types, a block of rows at a time.

        PyArrow says only in words which value is not of the type of its column. So what it refuses,
        and what cannot be read twice, is read as text, of which each column is converted here.
        """
        wanted = {name: kind for name, kind in types.items() if name in self.names}
        try:
            if not self.file.once:
                yield from self._blocks(wanted)
                return
        except pa.ArrowInvalid as error:
            for _ in self._converted(wanted):
                pass
            raise self._explained(error) from None
        yield from self._converted(wanted)

    def some_rows(self) -> tuple[pa.Table, pa.Table] | None:
        """Return rows from the beginning and from places all over: as text, and by type.

        Nothing if they cannot be read in this way; what is wrong is found when all rows are.
        """
        text = self._first_lines[:HEAD_CHARACTERS]
        if len(text) == HEAD_CHARACTERS:
            text = text.rpartition("\n")[0] + "\n"
        encoding = codecs.lookup(self._encoding).name
        if not encoding.startswith(("utf-16", "utf-32")):  # in which a byte is no character
            for piece in self.file.pieces(N_PIECES, PIECE_BYTES):
                text += piece.partition(b"\n")[2].rpartition(b"\n")[0].decode(encoding, "replace")
                text += "\n"
        parse = self._parsing()
        parse.invalid_row_handler = lambda _: "skip"
        try:
            as_text, by_type = (
                arrow_csv.read_csv(
                    pa.BufferReader(text.encode()),
                    parse_options=parse,
                    convert_options=self._conversion(types),
                )
                for types in (dict.fromkeys(self.names, pa.string()), {})
            )
        except (pa.ArrowException, UnicodeError, TableError):
            return None
        return as_text, by_type

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

    def _converted(self, types: Types) -> Iterator[pa.RecordBatch]:
        """Read text, and convert it to other types; say which value cannot be."""
        as_read = {name: kind if is_text(kind) else pa.string() for name, kind in types.items()}
        n_rows = 0
        try:
            for block in self._blocks(as_read):
                texts = with_nulls(block, self.options.words)
                columns = []
                for k, (name, kind) in enumerate(types.items()):
                    cells = texts.column(k)
                    column = cells if is_text(kind) else self._cast(cells, kind)
                    if column is None:
                        raise self._wrong_value(name, kind, cells, n_rows)
                    columns.append(column)
                yield pa.RecordBatch.from_arrays(columns, names=list(types))
                n_rows += texts.num_rows
        except pa.ArrowInvalid as error:
            raise self._explained(error) from None

    def _cast(self, column: pa.Array, kind: pa.DataType) -> pa.Array | None:
        """Return text as another type, or nothing if some of it is not."""
        texts = pc.utf8_trim_whitespace(column)
        if pa.types.is_floating(kind) and self.options.decimal == ",":
            texts = pc.replace_substring(pc.replace_substring(texts, ".", "?"), ",", ".")
        try:
            if not pa.types.is_time(kind):
                return texts.cast(kind)
            some_day = pc.binary_join_element_wise("1970-01-01T", texts, "")
            return some_day.cast(pa.timestamp("us")).cast(kind)
        except pa.ArrowInvalid:
            return None

    def _wrong_value(
        self, name: str, kind: pa.DataType, texts: pa.Array, n_before: int
    ) -> TableError:
        def fails(row: int) -> bool:  # or one before it
            return self._cast(texts.slice(0, row + 1), kind) is None

        row = bisect_left(range(len(texts)), True, key=fails)
        value, what = cropped(str(texts[row])), str(kind).partition("[")[0]
        return TableError(
            f"Column {name!r} of {self.file.name} should hold {SHOULD_HOLD.get(what, what)}, but "
            f"has {value!r}",
            f"Correct it; if it marks missing values: --missing {value!r}.",
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
        """Say which line has more or fewer cells than the header; of a pipe, if it is known still.

        PyArrow tells lines apart in threads, which do not know their numbers.
        """
        file, line = self.file, 1
        content: Any = io.BytesIO(file.head.rpartition(b"\n")[0]) if file.once else file.stream()
        with io.TextIOWrapper(content, self._encoding, "replace", newline="") as text:
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
        return TableError(
            f"{file.name}: line {line:,} has {count(len(row), 'cell')}, but the header has "
            f"{len(self.names)}.",
            f"Put quotes around cells that contain the delimiter.{hint}",
            code="file",
        )

    def _blocks(self, types: Types) -> Iterator[pa.RecordBatch]:
        with self._open(types) as reader:
            yield from reader

    def _open(self, types: Types) -> Any:
        convert, parse = self._conversion(types), self._parsing()
        convert.include_columns = list(types)
        parse.newlines_in_values = True
        return arrow_csv.open_csv(self.file.native(), self._reading(BLOCK_BYTES), parse, convert)

    def _reading(self, block_size: int) -> arrow_csv.ReadOptions:
        utf8 = codecs.lookup(self._encoding).name == "utf-8"  # which PyArrow need not recode
        encoding = "utf8" if utf8 else self._encoding
        return arrow_csv.ReadOptions(encoding=encoding, block_size=block_size)

    def _parsing(self) -> arrow_csv.ParseOptions:
        return arrow_csv.ParseOptions(delimiter=self.delimiter)

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
        known = self.options.encoding or encoding_of(self.file.head)
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


def _is_binary(kind: pa.DataType) -> bool:
    """Whether text was no text."""
    return bool(pa.types.is_binary(kind.value_type if pa.types.is_dictionary(kind) else kind))
