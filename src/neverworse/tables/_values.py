"""Columns of a table as NumPy arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.tables._errors import TableError, short

TEXT = pa.dictionary(pa.int32(), pa.string())  # names, as they are read from CSV
PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
DAY = 86_400.0  # seconds
YEAR = 365.2425  # days


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
    """Make words that mean a missing value null, in a table or a batch."""
    for k, field in enumerate(rows.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if not is_text(kind):
            continue
        column = rows.column(k)
        found = pc.is_in(column, pa.array(words).cast(kind))
        if pc.any(found).as_py():
            kept = pc.if_else(found, pa.scalar(None, kind), column.cast(kind))
            rows = rows.set_column(k, field.name, kept.cast(field.type))
    return rows


def numbers(name: str, column: pa.ChunkedArray, *, first_row: int = 0) -> Vector:
    """Return a column as floats, NaN where a value is missing.

    Parameters
    ----------
    name : str
        Of the column, for messages.
    column : ChunkedArray
        Numbers, or text that spells them.
    first_row : int
        How many rows of the table came before, for messages.
    """
    kind = column.type
    if is_text(kind):
        return _spelled_numbers(name, column, first_row)
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
            f"Column {name!r} should hold numbers, but holds values of the type {kind}."
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


def days(name: str, column: pa.ChunkedArray) -> Vector:
    """Return dates as days since 1970, NaN where one is missing."""
    if is_text(column.type):
        with contextlib.suppress(pa.ArrowInvalid):
            column = column.cast(pa.string()).cast(pa.timestamp("us"))
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not is_date(column.type):
        raise TableError(
            f"Column {name!r} should hold dates (2026-01-31), but holds values of the type "
            f"{column.type}."
        )
    stamps = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    return _floats(stamps) / (DAY * 1e6)


def date_parts(stamps: Vector, parts: tuple[str, ...]) -> Matrix:
    """Return parts of dates, those that come back as points on a circle.

    Parameters
    ----------
    stamps : array of shape (n_rows,)
        Days since 1970.
    parts : tuple of str
        Of `DATE_PARTS`.
    """
    return np.column_stack([_PARTS[part](stamps) for part in parts])


_PARTS = {
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
    if not pa.types.is_dictionary(column.type):
        try:
            column = column.dictionary_encode()
        except pa.ArrowNotImplementedError:
            raise TableError(
                "A column for labels or categories has no plain values in its cells, but "
                f"{short(str(column.type))}. Take them apart, or leave it out: --drop COLUMN."
            ) from None
    merged = column.unify_dictionaries().combine_chunks()
    if isinstance(merged, pa.ChunkedArray):
        merged = pa.concat_arrays(merged.chunks)
    values = as_text(merged.dictionary)
    codes = pc.fill_null(merged.indices.cast(pa.int64()), len(values))
    return [*values, None], codes.to_numpy(zero_copy_only=False)


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


def _spelled_numbers(name: str, column: pa.ChunkedArray, first_row: int) -> Vector:
    values, codes = coded(column)
    wrong = [k for k, text in enumerate(values) if text is not None and not spells_number(text)]
    if wrong:
        row = first_row + int(np.argmax(np.isin(codes, wrong))) + 1
        text = short(str(values[wrong[0]]))
        raise TableError(
            f"Column {name!r} should hold numbers, but has {text!r} in row {row:,}. Correct it; if "
            f"it marks missing values: --missing {text!r}."
        )
    found = np.array([np.nan if text is None else float(text) for text in values])
    return found[codes]


def _floats(column: pa.ChunkedArray) -> Vector:
    floats: AnyArray = column.to_numpy()
    return floats.astype(np.float64, copy=False)
