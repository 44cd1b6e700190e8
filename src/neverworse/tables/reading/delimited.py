"""Tables as delimited text."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from neverworse.tables._errors import TableError, short
from neverworse.tables.reading.files import (
    DELIMITERS,
    FileError,
    TableFile,
    delimiter_of,
    empty,
    encoding_of,
    is_too_long,
    not_decoded,
    too_long,
)
from neverworse.tables.reading.options import TEXT, ReadOptions, is_text, with_nulls

BLOCK_BYTES = 8 << 20  # of text at a time, when it is streamed
PART_BYTES = 2 << 20  # of text that becomes one part of a table in memory
# What is looked at, before all is read, to see how numbers are written.
HEAD_CHARACTERS, N_PIECES, PIECE_BYTES = 1 << 16, 16, 1 << 13
SHOULD_HOLD = {"double": "numbers", "bool": "true or false", "timestamp": "dates (2026-01-31)"}

Types = Mapping[str, pa.DataType]


def read_csv(file: TableFile, options: ReadOptions) -> pa.Table:
    """Read all rows; the type of a column is found from all of its values."""
    names = column_names(file, options)
    convert = _conversion(options, {name: TEXT for name in options.text if name in names})
    convert.auto_dict_encode = True
    read, parse = _reading(file, options, PART_BYTES), _parsing(file, options)
    # PyArrow's own allocator gives memory back to the system and asks for it again all the time.
    pool = pa.system_memory_pool()
    # Line breaks between quotes are slower to allow for, so only the second try does.
    for parse.newlines_in_values in (True,) if file.once else (False, True):
        try:
            table = arrow_csv.read_csv(file.native(), read, parse, convert, pool)
        except pa.ArrowInvalid as error:
            wrong = error
            continue
        if any(_is_binary(kind) for kind in table.schema.types):
            raise not_decoded(file)
        return table
    raise _explained(file, options, wrong)


def stream_csv(file: TableFile, options: ReadOptions, types: Types) -> Iterator[pa.RecordBatch]:
    """Read some columns, of known types, a block of rows at a time.

    PyArrow says only in words which value is not of the type of its column. So what it refuses, and
    what cannot be read twice, is read as text, of which each column is converted here.
    """
    names = column_names(file, options)
    wanted = {name: kind for name, kind in types.items() if name in names}
    try:
        if not file.once:
            yield from _blocks(file, options, wanted)
            return
    except pa.ArrowInvalid as error:
        for _ in _converted(file, options, wanted):
            pass
        raise _explained(file, options, error) from None
    yield from _converted(file, options, wanted)


def _converted(file: TableFile, options: ReadOptions, types: Types) -> Iterator[pa.RecordBatch]:
    as_read = {name: kind if is_text(kind) else pa.string() for name, kind in types.items()}
    n_rows = 0
    try:
        for block in _blocks(file, options, as_read):
            texts = with_nulls(block, options.words)
            columns = []
            for k, (name, kind) in enumerate(types.items()):
                cells = texts.column(k)
                column = cells if is_text(kind) else _cast(cells, kind, options)
                if column is None:
                    raise _wrong_value(file, options, name, kind, cells, n_rows)
                columns.append(column)
            yield pa.RecordBatch.from_arrays(columns, names=list(types))
            n_rows += texts.num_rows
    except pa.ArrowInvalid as error:
        raise _explained(file, options, error) from None


def _blocks(file: TableFile, options: ReadOptions, types: Types) -> Iterator[pa.RecordBatch]:
    convert = _conversion(options, types)
    convert.include_columns = list(types)
    read, parse = _reading(file, options, BLOCK_BYTES), _parsing(file, options)
    parse.newlines_in_values = True
    with arrow_csv.open_csv(file.native(), read, parse, convert) as reader:
        yield from reader


def _cast(column: pa.Array, kind: pa.DataType, options: ReadOptions) -> pa.Array | None:
    """Return text as another type, or nothing if some of it is not."""
    texts = pc.utf8_trim_whitespace(column)
    if pa.types.is_floating(kind) and options.decimal == ",":
        texts = pc.replace_substring(pc.replace_substring(texts, ".", "?"), ",", ".")
    try:
        if not pa.types.is_time(kind):
            return texts.cast(kind)
        some_day = pc.binary_join_element_wise("1970-01-01T", texts, "")
        return some_day.cast(pa.timestamp("us")).cast(kind)
    except pa.ArrowInvalid:
        return None


def _wrong_value(
    file: TableFile,
    options: ReadOptions,
    name: str,
    kind: pa.DataType,
    texts: pa.Array,
    n_before: int,
) -> TableError:
    """Say which value of a column is of another type."""
    row = next(k for k in range(len(texts)) if _cast(texts.slice(k, 1), kind, options) is None)
    value, what = short(str(texts[row])), str(kind).partition("[")[0]
    return TableError(
        f"Column {name!r} of {file.name} should hold {SHOULD_HOLD.get(what, what)}, but has "
        f"{value!r}",
        f"Correct it; if it marks missing values: --missing {value!r}.",
        column=name,
        row=n_before + row,
    )


def some_rows(file: TableFile, options: ReadOptions) -> tuple[pa.Table, pa.Table] | None:
    """Return rows from the beginning of a file and from places all over it: as text, and by type.

    Nothing if they cannot be read in this way; what is wrong is found when all rows are.
    """
    text = _first_lines(file, options)[:HEAD_CHARACTERS]
    if len(text) == HEAD_CHARACTERS:
        text = text.rpartition("\n")[0] + "\n"
    encoding = codecs.lookup(_encoding(file, options)).name
    if not encoding.startswith(("utf-16", "utf-32")):  # in which a byte is no character
        for piece in file.pieces(N_PIECES, PIECE_BYTES):
            text += piece.partition(b"\n")[2].rpartition(b"\n")[0].decode(encoding, "replace")
            text += "\n"
    parse = _parsing(file, options)
    parse.invalid_row_handler = lambda _: "skip"
    try:
        found = []
        for types in (dict.fromkeys(column_names(file, options), pa.string()), {}):
            convert = _conversion(options, types)
            source = pa.BufferReader(text.encode())
            found.append(arrow_csv.read_csv(source, parse_options=parse, convert_options=convert))
    except (pa.ArrowException, UnicodeError, TableError):
        return None
    return found[0], found[1]


def infer_types(file: TableFile, options: ReadOptions) -> dict[str, pa.DataType]:
    """Return the types of all columns, as far as the first rows tell.

    Whole numbers may get decimals later, and a column that is empty at first may be anything.
    """
    read, parse = _reading(file, options, BLOCK_BYTES), _parsing(file, options)
    convert = _conversion(options, {})
    with file.explained(), arrow_csv.open_csv(file.native(), read, parse, convert) as reader:
        schema = reader.schema
    types = {}
    for field in schema:
        kind = pa.float64() if pa.types.is_integer(field.type) else field.type
        text = field.name in options.text or pa.types.is_null(kind)
        types[field.name] = pa.string() if text else kind
    return types


def delimiter(file: TableFile, options: ReadOptions) -> str:
    """Return what is between two cells."""
    return options.delimiter or delimiter_of(_first_lines(file, options))


def column_names(file: TableFile, options: ReadOptions) -> list[str]:
    """Return the names in the first line."""
    text = _first_lines(file, options)
    rows = csv.reader(io.StringIO(text), delimiter=delimiter(file, options))
    try:
        first = next((row for row in rows if row), None)
    except csv.Error as error:
        problem = f"The first line of {file.name} has no names of columns: {error}."
        raise FileError(problem) from None
    if first is None:
        raise empty(file)
    return first


def _explained(file: TableFile, options: ReadOptions, error: pa.ArrowInvalid) -> FileError:
    """Return what PyArrow complains about, in other words."""
    if "UTF8" in str(error):
        return not_decoded(file)
    if is_too_long(error):
        return too_long(file)
    first = str(error).strip().splitlines()[0]
    other = FileError(f"{file.name} cannot be read as CSV: {first}")
    return _wrong_width(file, options) or other


def _wrong_width(file: TableFile, options: ReadOptions) -> FileError | None:
    """Say which line has more or fewer cells than the header; of a pipe, only the first are known.

    PyArrow tells its lines apart in threads, which do not know their numbers.
    """
    content: Any = file.stream() if not file.once else io.BytesIO(file.head.rpartition(b"\n")[0])
    names = column_names(file, options)
    line = 1
    with io.TextIOWrapper(content, _encoding(file, options), "replace", newline="") as text:
        rows = csv.reader(text, delimiter=delimiter(file, options))
        try:
            for row in rows:
                if row and line > 1 and len(row) != len(names):
                    break
                line = rows.line_num + 1
            else:
                return None
        except csv.Error:
            return None
    other = ", ".join(repr(d) for d in DELIMITERS if any(d in name for name in names))
    hint = f" Perhaps the delimiter is another: --delimiter {other}." if other else ""
    return FileError(
        f"{file.name}: line {line:,} has {len(row)} cells, but the header has {len(names)}.",
        f"Put quotes around cells that contain the delimiter.{hint}",
    )


def _reading(file: TableFile, options: ReadOptions, block_size: int) -> arrow_csv.ReadOptions:
    encoding = _encoding(file, options)
    utf8 = codecs.lookup(encoding).name == "utf-8"  # which PyArrow need not recode
    return arrow_csv.ReadOptions(encoding="utf8" if utf8 else encoding, block_size=block_size)


def _parsing(file: TableFile, options: ReadOptions) -> arrow_csv.ParseOptions:
    return arrow_csv.ParseOptions(delimiter=delimiter(file, options))


def _conversion(options: ReadOptions, types: Types) -> arrow_csv.ConvertOptions:
    return arrow_csv.ConvertOptions(
        column_types=dict(types),
        strings_can_be_null=True,
        decimal_point=options.decimal or ".",
        null_values=list(options.words),
    )


def _first_lines(file: TableFile, options: ReadOptions) -> str:
    """Return the first bytes as text; they may end within a character."""
    try:
        decoder = codecs.getincrementaldecoder(_encoding(file, options))()
    except LookupError:
        raise FileError(
            f"There is no encoding {options.encoding!r}.",
            "Well-known ones: utf-8, cp1252, utf-16.",
        ) from None
    try:
        return decoder.decode(file.head, final=False).removeprefix("\ufeff")
    except UnicodeError:
        raise not_decoded(file) from None


def _encoding(file: TableFile, options: ReadOptions) -> str:
    known = options.encoding or encoding_of(file.head)
    if known is None and b"\x00" in file.head:
        raise FileError(
            f"{file.name} is no text and no format that is known here.",
            "Export the table as CSV or Parquet; if it is text in another encoding, name that: "
            "--encoding utf-16.",
        )
    return known or "utf-8"


def _is_binary(kind: pa.DataType) -> bool:
    """Whether text was no text."""
    return bool(pa.types.is_binary(kind.value_type if pa.types.is_dictionary(kind) else kind))
