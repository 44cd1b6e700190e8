"""Tables as delimited text."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow_csv

from neverworse.tables._errors import TableError, short
from neverworse.tables._file import TableFile, empty, not_decoded, too_long
from neverworse.tables._options import ReadOptions
from neverworse.tables._sniff import DELIMITERS, delimiter_of, encoding_of
from neverworse.tables._values import TEXT

BLOCK_BYTES = 8 << 20  # of text at a time, when it is streamed
PART_BYTES = 2 << 20  # of text that becomes one part of a table in memory
# What is looked at, before all is read, to see how numbers are written.
HEAD_CHARACTERS, N_PIECES, PIECE_BYTES = 1 << 16, 16, 1 << 13


def read_csv(file: TableFile, options: ReadOptions) -> pa.Table:
    """Read all rows; the type of a column is found from all of its values."""
    names = column_names(file, options)
    types = {name: TEXT for name in options.text if name in names}
    table = _read_rows(file, options, names, types)
    if any(_is_binary(kind) for kind in table.schema.types):
        raise not_decoded(file)
    return table


def _is_binary(kind: pa.DataType) -> bool:
    """Whether text was no text."""
    return bool(pa.types.is_binary(kind.value_type if pa.types.is_dictionary(kind) else kind))


def _read_rows(
    file: TableFile, options: ReadOptions, names: list[str], types: Mapping[str, pa.DataType]
) -> pa.Table:
    convert = _conversion(options, types)
    convert.auto_dict_encode = True
    read, parse = _reading(file, options), _parsing(file, options)
    read.block_size = PART_BYTES
    # Line breaks between quotes are slower to allow for, so only the second try does. The third
    # is for the message: threads do not know the number of the row that is wrong.
    # PyArrow's own allocator gives memory back to the system and asks for it again all the time.
    pool = pa.system_memory_pool()
    tries = ((True, True),) if file.once else ((False, True), (True, True), (True, False))
    for parse.newlines_in_values, read.use_threads in tries:
        try:
            return arrow_csv.read_csv(file.native(), read, parse, convert, pool)
        except pa.ArrowInvalid as error:
            wrong = _what_is_wrong(file, names, error)
    raise wrong


def stream_csv(
    file: TableFile, options: ReadOptions, types: Mapping[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    """Read some columns, of known types, a block of rows at a time."""
    names = column_names(file, options)
    # Threads do not know the number of the row that is wrong, so it is looked for without.
    threads = not file.once
    try:
        yield from _blocks(file, options, names, types, threads)
    except pa.ArrowInvalid:
        if threads:
            try:
                for _ in _blocks(file, options, names, types, False):
                    pass
            except pa.ArrowInvalid as again:
                error = again
        raise _what_is_wrong(file, names, error) from None


def _blocks(
    file: TableFile,
    options: ReadOptions,
    names: list[str],
    types: Mapping[str, pa.DataType],
    threads: bool,
) -> Iterator[pa.RecordBatch]:
    convert = _conversion(options, types)
    convert.include_columns = [name for name in types if name in names]
    read = _reading(file, options)
    read.block_size, read.use_threads = BLOCK_BYTES, threads
    parse = _parsing(file, options)
    parse.newlines_in_values = True
    with arrow_csv.open_csv(file.native(), read, parse, convert) as reader:
        yield from reader


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
    convert = _conversion(options, {})
    read = _reading(file, options)
    read.block_size = BLOCK_BYTES
    parse = _parsing(file, options)
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
        raise TableError(
            f"The first line of {file.name} has no names of columns: {error}."
        ) from None
    if first is None:
        raise empty(file)
    return first


def _first_lines(file: TableFile, options: ReadOptions) -> str:
    """Return the first bytes as text; they may end within a character."""
    try:
        decoder = codecs.getincrementaldecoder(_encoding(file, options))()
    except LookupError:
        raise TableError(
            f"There is no encoding {options.encoding!r}. Well-known ones: utf-8, cp1252, utf-16."
        ) from None
    try:
        return decoder.decode(file.head, final=False).removeprefix("\ufeff")
    except UnicodeError:
        raise not_decoded(file) from None


def _encoding(file: TableFile, options: ReadOptions) -> str:
    known = options.encoding or encoding_of(file.head)
    if known is None and b"\x00" in file.head:
        raise TableError(
            f"{file.name} is no text and no format that is known here. Export the table as CSV or "
            "Parquet; if it is text in another encoding, name that: --encoding utf-16."
        )
    return known or "utf-8"


def _reading(file: TableFile, options: ReadOptions) -> arrow_csv.ReadOptions:
    encoding = _encoding(file, options)
    utf8 = codecs.lookup(encoding).name == "utf-8"  # which PyArrow need not recode
    return arrow_csv.ReadOptions(encoding="utf8" if utf8 else encoding)


def _parsing(file: TableFile, options: ReadOptions) -> arrow_csv.ParseOptions:
    return arrow_csv.ParseOptions(delimiter=delimiter(file, options))


def _conversion(options: ReadOptions, types: Mapping[str, pa.DataType]) -> arrow_csv.ConvertOptions:
    convert = arrow_csv.ConvertOptions(
        column_types=dict(types), strings_can_be_null=True, decimal_point=options.decimal or "."
    )
    convert.null_values = list(options.words)
    return convert


def _what_is_wrong(file: TableFile, names: list[str], error: Exception) -> TableError:
    """Return what PyArrow complains about, in other words."""
    if "UTF8" in str(error):
        return not_decoded(file)
    if "straddl" in str(error):
        return too_long(file)
    return _wrong_value(file, names, error) or _wrong_width(file, names, error)


def _wrong_value(file: TableFile, names: list[str], error: Exception) -> TableError | None:
    """Say which column has a value of another type, from PyArrow's message."""
    found = re.search(
        r"In CSV column #(\d+):.*conversion error to (.+?): .*?'(.*)'",
        str(error),
        re.DOTALL,
    )
    if found is None or int(found[1]) >= len(names):
        return None
    kind = found[2].partition("[")[0]
    what = {"double": "numbers", "bool": "true or false", "timestamp": "dates (2026-01-31)"}
    value = short(found[3])
    row = re.search(r"Row #(\d+)", str(error))  # in which the names are the first
    where = f" in row {int(row[1]) - 1:,}" if row else ""
    return TableError(
        f"Column {names[int(found[1])]!r} of {file.name} should hold {what.get(kind, kind)}, but "
        f"has {value!r}{where}. Correct it; if it marks missing values: --missing {value!r}."
    )


def _wrong_width(file: TableFile, names: list[str], error: Any) -> TableError:
    """Say that some row has too many or too few cells."""
    found = re.search(r"Expected (\d+) columns, got (\d+)", str(error))
    if found is None:
        first = str(error).strip().splitlines()[0]
        return TableError(f"{file.name} cannot be read as CSV: {first}")
    row = re.search(r"Row #(\d+)", str(error))
    where = f"line {int(row[1]):,}" if row else "a line"
    other = ", ".join(repr(d) for d in DELIMITERS if any(d in name for name in names))
    hint = f" Perhaps the delimiter is another: --delimiter {other}." if other else ""
    return TableError(
        f"{file.name}: {where} has {found[2]} cells, but the header has {found[1]}. Put quotes "
        f"around cells that contain the delimiter.{hint}"
    )
