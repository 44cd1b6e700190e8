"""Columns of a table as NumPy arrays."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neverworse._typing import AnyArray, Indices, Vector
from neverworse.tables._errors import CellError, TableError, short
from neverworse.tables._reading import Reading

TEXT = pa.dictionary(pa.int32(), pa.string())  # names, as they are read from CSV
PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
DAY = 86_400.0  # seconds
YEAR = 365.2425  # days
NUMBERS, DATES = Reading("number"), Reading("date")


def as_table(X: Any) -> pa.Table:
    """Return a table of PyArrow; nothing is copied."""
    if isinstance(X, pa.Table):
        return X
    if isinstance(X, pa.RecordBatch):
        return pa.Table.from_batches([X])
    pandas = sys.modules.get("pandas")  # a data frame of it is there only if this is
    try:
        if pandas is not None and isinstance(X, pandas.DataFrame):
            return pa.Table.from_pandas(X, preserve_index=False)
        if hasattr(X, "__arrow_c_stream__") or isinstance(X, dict):
            return pa.table(X)
    except (pa.ArrowException, OverflowError) as error:
        raise TableError(
            "A column has values of several types, or integers beyond 64 bits. Turn it into "
            f"numbers or text ({': '.join(map(str, reversed(error.args)))})."
        ) from None
    raise TypeError(
        "X must be a table with named columns: of pandas, polars or PyArrow, not "
        f"{type(X).__name__}."
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings, or refer to a dictionary of strings."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return any(
        check(kind)
        for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def is_number(kind: pa.DataType) -> bool:
    """Whether values can be taken as numbers: durations and times of the day can, too."""
    checks = (
        *(pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean),
        *(pa.types.is_duration, pa.types.is_time),
    )
    if pa.types.is_dictionary(kind):
        return is_number(kind.value_type)
    return any(check(kind) for check in checks)


def is_date(kind: pa.DataType) -> bool:
    """Whether values are dates, with or without a time."""
    if pa.types.is_dictionary(kind):
        return is_date(kind.value_type)
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


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
            kept = [_without_numbers(chunk, spelled) for chunk in chunks]
        else:
            continue
        if any(new is not old for new, old in zip(kept, chunks, strict=True)):
            whole = pa.chunked_array(kept) if isinstance(column, pa.ChunkedArray) else kept[0]
            rows = rows.set_column(k, field.name, whole)
    return rows


def _without_words(chunk: pa.Array, words: Sequence[str]) -> pa.Array:
    coded = pa.types.is_dictionary(chunk.type)
    texts = chunk.dictionary if coded else chunk
    found = pc.is_in(pc.utf8_trim_whitespace(texts), pa.array(words).cast(texts.type))
    if not pc.any(found).as_py():
        return chunk
    if not coded:
        return pc.if_else(found, pa.scalar(None, chunk.type), chunk)
    kept = pc.if_else(found.take(chunk.indices), pa.scalar(None, chunk.indices.type), chunk.indices)
    return pa.DictionaryArray.from_arrays(kept, texts, ordered=chunk.type.ordered)


def _without_numbers(chunk: pa.Array, spelled: Sequence[float]) -> pa.Array:
    found = pc.is_in(chunk.cast(pa.float64(), safe=False), pa.array(spelled))
    if not pc.any(found).as_py():
        return chunk
    return pc.if_else(found, pa.scalar(None, chunk.type), chunk)


def numbers(
    name: str, column: pa.ChunkedArray, reading: Reading = NUMBERS, *, first_row: int = 0
) -> Vector:
    """Return a column as floats, NaN where a value is missing.

    Parameters
    ----------
    name : str
        Of the column, for messages.
    column : ChunkedArray
        Numbers, or text that spells them.
    reading : Reading
        How text spells them.
    first_row : int
        How many rows of the table came before, for messages.
    """
    kind = column.type
    if pa.types.is_float64(kind):
        return _floats(column)
    if is_text(kind):
        return _spelled(name, column, reading, first_row)
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_time(kind):
        counted = pa.int64() if kind.bit_width == 64 else pa.int32()
        return _floats(column.cast(counted)) / PER_SECOND[kind.unit]
    elif pa.types.is_duration(kind):
        return _floats(column.cast(pa.int64())) / (DAY * PER_SECOND[kind.unit])
    elif not is_number(kind):
        raise TableError(
            f"Column {name!r} should hold {reading.words}, but holds values of the type {kind}."
        )
    return _floats(column.cast(pa.float64(), safe=False))


def row_weights(name: str, column: pa.ChunkedArray) -> Vector:
    """Return how much rows count, if these are numbers for that."""
    weights = numbers(name, column)
    wrong = ~(weights >= 0.0) | np.isinf(weights)
    if wrong.any():
        row = int(np.argmax(wrong))
        value = "empty" if np.isnan(weights[row]) else f"{weights[row]:g}"
        raise TableError(
            f"The weight in row {row + 1:,} (column {name!r}) is {value}. Weights are numbers that "
            "are not negative."
        )
    return weights


def as_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times of the day that may be spelled as text; what else there is, as it is."""
    if is_text(column.type):
        with contextlib.suppress(pa.ArrowInvalid):
            some_day = pc.binary_join_element_wise("1970-01-01T", column.cast(pa.string()), "")
            return some_day.cast(pa.timestamp("us")).cast(pa.time64("us"))
    return column


def days(
    name: str, column: pa.ChunkedArray, reading: Reading = DATES, *, first_row: int = 0
) -> Vector:
    """Return dates as days since 1970, NaN where one is missing; see `numbers`."""
    if is_text(column.type):
        if reading.order:
            return _spelled(name, column, reading, first_row)
        try:
            column = column.cast(pa.string()).cast(pa.timestamp("us"))
        except pa.ArrowInvalid:
            return _spelled(name, column, reading, first_row)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not is_date(column.type):
        raise TableError(
            f"Column {name!r} should hold {reading.words} ({reading.example}), but holds "
            f"values of the type {column.type}."
        )
    stamps = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    return _floats(stamps) / (DAY * 1e6)


def distinct_days(
    name: str, column: pa.ChunkedArray, reading: Reading = DATES, *, first_row: int = 0
) -> tuple[Vector, Indices]:
    """Return the distinct days of a column, NaN last, and which of them each row has.

    Dates with a time mostly differ, so that all of them are returned.
    """
    if pa.types.is_date(column.type):
        values, codes = distinct(column)
        return np.append(days(name, pa.chunked_array([values]), reading), np.nan), codes
    stamps = days(name, column, reading, first_row=first_row)
    return stamps, np.arange(len(stamps))


def date_part(stamps: Vector, part: str) -> Vector:
    """Return a part of dates, as a point on a circle if it comes back.

    Parameters
    ----------
    stamps : array of shape (n_rows,)
        Days since 1970.
    part : str
        Of `DATE_PARTS`.
    """
    return _PARTS[part](stamps)


_PARTS: dict[str, Callable[[Vector], Vector]] = {
    "day": lambda stamps: stamps,
    "year, cosine": lambda stamps: np.cos(2.0 * np.pi * stamps / YEAR),
    "year, sine": lambda stamps: np.sin(2.0 * np.pi * stamps / YEAR),
    "week, cosine": lambda stamps: np.cos(2.0 * np.pi * stamps / 7.0),
    "week, sine": lambda stamps: np.sin(2.0 * np.pi * stamps / 7.0),
    "day, cosine": lambda stamps: np.cos(2.0 * np.pi * stamps),
    "day, sine": lambda stamps: np.sin(2.0 * np.pi * stamps),
}
DATE_PARTS = tuple(_PARTS)


def coded(column: pa.ChunkedArray) -> tuple[list[str | None], Indices]:
    """Return the distinct values of a column as text, and which of them each row has.

    Missing values are None, which comes last and may be there without being used.
    """
    values, codes = distinct(column)
    return [*as_text(values), None], codes


def distinct(column: pa.ChunkedArray) -> tuple[pa.Array, Indices]:
    """Return the distinct values of a column, and which of them each row has.

    Rows without a value have the number behind the last. There may be values that no row has.
    """
    if not pa.types.is_dictionary(column.type):
        try:
            column = column.dictionary_encode()
        except pa.ArrowNotImplementedError:
            raise TableError(
                "A column for labels or categories has no plain values in its cells, but "
                f"{short(str(column.type))}. Take them apart, or leave it out: --drop COLUMN."
            ) from None
    if column.num_chunks == 1:
        merged = column.chunk(0)
    else:
        merged = column.unify_dictionaries().combine_chunks()
        if isinstance(merged, pa.ChunkedArray):
            merged = pa.concat_arrays(merged.chunks)
    codes = merged.indices
    if codes.null_count:
        codes = pc.fill_null(codes.cast(pa.int64()), len(merged.dictionary))
    return merged.dictionary, codes.to_numpy(zero_copy_only=False)


def as_text(values: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Return values as people write them: whole numbers without decimals."""
    if pa.types.is_floating(values.type):
        return [None if v is None or v != v else _plain(v) for v in values.to_pylist()]
    if pa.types.is_boolean(values.type):
        return [None if v is None else str(v).lower() for v in values.to_pylist()]
    return values.cast(pa.string()).to_pylist()


def _plain(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() and abs(value) < 2.0**53 else repr(value)


def spells_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _spelled(name: str, column: pa.ChunkedArray, reading: Reading, first_row: int) -> Vector:
    """Return what the text in a column spells."""
    values, codes = distinct(column)
    parsed = np.append(reading.parse(values), np.nan)
    found: Vector = parsed[codes]
    wrong = np.isnan(found) & (codes < len(values))
    if wrong.any():
        row = int(np.argmax(wrong))
        text = short(str(values[int(codes[row])]))
        such = f" ({reading.example})" if reading.example else ""
        raise CellError(
            f"Column {name!r} should hold {reading.words}{such}, but has {text!r}",
            first_row + row,
            f"Correct it; if it marks missing values: --missing {text!r}.",
        )
    return found


def _floats(column: pa.ChunkedArray) -> Vector:
    one = column.num_chunks == 1  # which need not be copied
    floats: AnyArray = column.chunk(0).to_numpy(zero_copy_only=False) if one else column.to_numpy()
    return floats.astype(np.float64, copy=False)
