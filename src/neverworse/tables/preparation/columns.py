"""Columns of a table: found by their names, as NumPy arrays, and how their text is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neverworse._typing import Indices, Mask, Vector
from neverworse._words import count, cropped, nearest, quoted
from neverworse.tables._errors import TableError
from neverworse.tables.preparation import notation
from neverworse.tables.preparation.notation import DAY, ORDERS, THOUSANDS, Numbers, Reading
from neverworse.tables.reading import StoredTable, formats
from neverworse.tables.reading.files import TableFile
from neverworse.tables.reading.formats import DelimitedText, ReadOptions

DateOrder = Literal["day-first", "month-first"]

FEW_VALUES = 10  # texts that are levels of a category, however few rows there are
MAJORITY = 0.5
SAMPLE_VALUES = 1000  # values that tell whether a column may hold numbers or dates at all
MAX_UNITS = 3  # in one column; what has more is text that begins with a number
PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
# Features of dates: the days since 1970, and points on circles for the time of year, week and day.
CIRCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}
DATE_PARTS = ("day", *(f"{name}, {wave}" for name in CIRCLES for wave in ("cosine", "sine")))


def as_table(X: Any) -> Any:
    """Return X as a PyArrow table, without copying it; a `StoredTable` is returned as it is."""
    if isinstance(X, pa.Table | StoredTable):
        return X
    try:
        if hasattr(X, "iloc"):  # of pandas
            return pa.Table.from_pandas(X, preserve_index=False)
        if hasattr(X, "to_arrow"):  # of polars, whose first versions have no stream
            return X.to_arrow()
        if hasattr(X, "__arrow_c_stream__") or isinstance(X, dict | pa.RecordBatch):
            return pa.table(X)
    except (pa.ArrowException, OverflowError) as error:
        for name in X:
            try:
                pa.array(list(X[name]), from_pandas=True)
            except (pa.ArrowException, OverflowError):
                problem = f"Column {name!r} has values of several types, or beyond 64 bits."
                fix = "Convert it to numbers or text."
                raise TableError(problem, fix, column=str(name)) from None
        raise TableError(f"X cannot be a table: {error}.", code="column") from error
    libraries = "(of pandas, polars or PyArrow)"
    raise TypeError(f"X must be a table with named columns {libraries}, not {type(X).__name__}.")


def find_column(table: pa.Table, name: str, option: str) -> pa.ChunkedArray:
    """Return a column that an option of the command line names, if there is one."""
    check_known(table.column_names, [name], option)
    return table.column(name)


def check_known(names: Sequence[str], wanted: Collection[str], option: str) -> None:
    """Raise if there is no column of a name that an option of the command line gives."""
    for name in wanted:
        if name not in names:
            problem, fix = f"There is no column {name!r} for --{option}", nearest(name, names)
            marks = [mark for mark in formats.DELIMITERS if len(names) == 1 and mark in names[0]]
            if marks:
                problem += f": the whole table is one column, named {cropped(names[0])!r}"
                fix = f"Name the delimiter: --delimiter {' or '.join(map(repr, marks))}."
            raise TableError(f"{problem}.", fix, code="column", column=name)


def check_columns(names: Sequence[str], needed: Sequence[str]) -> None:
    """Raise if a column is missing that features are made of."""
    found = set(names)
    missing = [name for name in needed if name not in found]
    if missing:
        hint = nearest(missing[0], names) if len(missing) == 1 and found - {*needed} else ""
        lacks = f"lacks {count(len(missing), 'column')} that the model was fitted to"
        fix = f"Add what is missing, with empty cells for unknown values. {hint}".rstrip()
        problem = f"The table {lacks}: {quoted(missing)}."
        raise TableError(problem, fix, code="column", column=missing[0])


def is_number(kind: pa.DataType) -> bool:
    """Whether values can be taken as numbers: durations and times of day can, too."""
    names = ("integer", "floating", "decimal", "boolean", "duration", "time")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def is_date(kind: pa.DataType) -> bool:
    """Whether values are dates, with or without a time."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


class Column:
    """A column of a table, and its distinct values."""

    def __init__(self, name: str, data: pa.ChunkedArray) -> None:
        self.name, self.data = name, data
        self.n_missing = int(data.null_count)
        if pa.types.is_floating(data.type):
            self.n_missing += pc.sum(pc.is_nan(data.cast(pa.float64()))).as_py() or 0
        self.n_known = len(data) - self.n_missing

    @cached_property
    def _distinct(self) -> tuple[pa.Array, Indices]:
        return distinct(self.data)

    @cached_property
    def values(self) -> pa.Array:
        """The distinct values, as text."""
        return self._distinct[0].cast(pa.string())

    @property
    def codes(self) -> Indices:
        """Which of the values each row has; one more than the last for missing ones."""
        return self._distinct[1]

    def n_rows(self, mask: Mask) -> int:
        """Count the rows with one of some values."""
        return int(np.count_nonzero(np.append(mask, False)[self.codes]))

    def first(self, mask: Mask) -> int:
        """Return the first row with one of some values, counted from 0."""
        return int(np.argmax(np.append(mask, False)[self.codes]))

    def value(self, mask: Mask) -> str:
        """Return the first of some values."""
        return cropped(str(self.values[int(self.codes[self.first(mask)])]))

    def error(self, problem: str, fix: str) -> TableError:
        return TableError(f"Column {self.name!r} has {problem}.", fix, column=self.name)


def numbers(
    name: str, column: pa.ChunkedArray, reading: Reading = notation.NUMBERS, first_row: int = 0
) -> Vector:
    """Return a column as floats, NaN where it has none: dates and durations in days, times in s."""
    if formats.is_text(column.type):
        texts = Column(name, column)
        values = reading.parse(texts.values)
        wrong = np.isnan(values)
        if wrong.any():
            text = texts.value(wrong)
            fix = correction(text, reading.decimal if reading.kind == "number" else None)
            raise _wrong(name, reading, f"has {text!r}", fix, first_row + texts.first(wrong))
        return np.append(values, np.nan)[texts.codes]
    column = formats.decoded(column)
    kind = column.type
    if not (is_date if reading.kind == "date" else is_number)(kind):
        fix = "Convert them, or write the table as CSV."
        raise _wrong(name, reading, f"holds values of type {kind}.", fix)
    if is_date(kind):
        return _floats(column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())) / (DAY * 1e6)
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        counts = _floats(column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()))
        return counts / (PER_SECOND[kind.unit] * (DAY if pa.types.is_duration(kind) else 1.0))
    return _floats(column.cast(pa.float64(), safe=False))


def date_part(stamps: Vector, part: str) -> Vector:
    """Return a part, of `DATE_PARTS`, of days since 1970."""
    circle, _, wave = part.partition(", ")
    if not wave:
        return stamps
    angles = 2.0 * np.pi * stamps / CIRCLES[circle]
    return np.cos(angles) if wave == "cosine" else np.sin(angles)


def coded(column: pa.ChunkedArray) -> tuple[list[str | None], Indices]:
    """Return distinct values as text without spaces around it, None last, and rows' positions."""
    values, codes = distinct(column)
    return [*(text and text.strip() for text in as_text(values)), None], codes


def distinct(column: pa.ChunkedArray) -> tuple[pa.Array, Indices]:
    """Return the distinct values of a column, and which of them each row has; the last has none."""
    if not pa.types.is_dictionary(column.type):
        try:
            column = column.dictionary_encode()
        except pa.ArrowNotImplementedError:
            problem = f"Labels or categories cannot be of type {cropped(str(column.type))}."
            raise TableError(problem, "Leave the column out: --drop COLUMN.") from None
    merged = column.unify_dictionaries().combine_chunks()
    if isinstance(merged, pa.ChunkedArray):
        merged = pa.concat_arrays(merged.chunks)
    values, codes = merged.dictionary, merged.indices
    if codes.null_count:
        codes = pc.fill_null(codes.cast(pa.int64()), len(values))
    codes = codes.to_numpy(zero_copy_only=False)
    used = np.bincount(codes, minlength=len(values) + 1)[:-1] > 0
    if used.all():
        return values, codes
    positions = np.append(np.cumsum(used) - 1, np.count_nonzero(used))
    return values.filter(pa.array(used)), positions[codes]


def as_text(values: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Return values as people write them: whole numbers without decimals, NaN as None."""
    if pa.types.is_floating(values.type):
        return [None if v is None or v != v else formats.written(v) for v in values.to_pylist()]
    return formats.as_strings(values).to_pylist()


def correction(text: str, decimal: str | None) -> str:
    """Return what to do about a cell, in which a number would have this decimal mark."""
    other = {".": ",", ",": "."}.get(decimal or "")
    if other and text.count(other) == 1 and formats.spells_number(text.replace(other, ".")):
        return f"If {other!r} is the decimal mark of this table: --decimal {other!r}."
    return f"Correct it; if it marks missing values: --missing {text!r}."


def _wrong(name: str, reading: Reading, found: str, fix: str, row: int | None = None) -> TableError:
    is_iso = reading.kind == "date" and not reading.order
    words = "dates (2026-01-31)" if is_iso else reading.words
    problem = f"Column {name!r} should hold {words}, but {found}"
    return TableError(problem, fix, column=name, row=row)


def _floats(column: pa.ChunkedArray) -> Vector:
    return column.to_numpy().astype(np.float64, copy=False)


# How texts are written


def recognise(
    column: Column, decimal: str | None = None, dates: DateOrder | None = None
) -> tuple[Reading | None, str]:
    """Return how the values of a column of text are written, if in any way, and what to check.

    What is mostly numbers or dates, but not all of one kind, is an error.
    """
    n_values = len(column.values)
    chosen = np.linspace(0, n_values - 1, min(n_values, SAMPLE_VALUES)).astype(np.int64)
    some = notation.normalised(column.values.take(chosen))
    if n_values <= SAMPLE_VALUES and set(Reading("yes/no").parse(some).tolist()) == {0.0, 1.0}:
        return Reading("yes/no"), ""
    some_dates = notation.with_numbered_months(some)
    orders = [order for order in ORDERS if not np.isnan(notation.days(some_dates, order)).all()]
    if orders:
        values = notation.with_numbered_months(notation.normalised(column.values))
        fits = {order: ~np.isnan(notation.days(values, order)) for order in orders}
        if column.n_rows(np.logical_or.reduce(list(fits.values()))) > MAJORITY * column.n_known:
            return _date(column, fits, dates), ""
    if np.mean(np.asarray(Numbers(some).bodies.is_valid())) <= MAJORITY / 2.0:
        return None, ""
    values = notation.normalised(column.values)
    digits, padded = (notation.matches(values, pattern) for pattern in ("^[0-9]+$", "^0[0-9]+$"))
    if padded.any() and column.n_rows(digits) > MAJORITY * column.n_known:
        return Reading("category"), (
            f"Codes with leading zeros, such as {column.value(padded)!r}, are treated "
            "as categories. If they are numbers, say so in a plan: --plan, --columns."
        )
    return _number(column, Numbers(values), decimal)


def found_options(files: Sequence[TableFile], options: ReadOptions) -> ReadOptions:
    """Return options with what a sample of CSV files tells: decimal mark, codes with zeros."""
    decimals: set[str] = set()
    codes: set[str] = set()
    for file in files:
        table = DelimitedText(file, options).some_rows() if file.format == "csv" else pa.table({})
        for name, column in zip(table.column_names, table.columns, strict=True):
            values = notation.normalised(column.drop_null().unique())
            if notation.matches(values, "^-?[0-9]+$").all():
                codes |= {name} if notation.matches(values, "^0[0-9]").any() else set()
            elif "." not in decimals or not notation.matches(values, "^-?[0-9]*[.]?[0-9]*$").all():
                decimals |= _decimals(values)
    decimal = options.decimal or (decimals.pop() if len(decimals) == 1 else None)
    return replace(options, decimal=decimal, text=options.text | codes)


def _decimals(values: pa.Array) -> set[str]:
    """Return the decimal marks of numbers that could have no other."""
    found = Numbers(values)
    fits = {
        decimal: np.logical_or.reduce([found.fits(t, decimal) for t in THOUSANDS if t != decimal])
        for decimal in ".,"
    }
    if np.count_nonzero(fits["."] | fits[","]) <= MAJORITY * len(values):
        return set()
    return {one for one, other in (".,", ",.") if (fits[one] & ~fits[other]).any()}


def _date(column: Column, fits: Mapping[str, Mask], dates: DateOrder | None) -> Reading:
    whole = [order for order, mask in fits.items() if mask.all()]
    if not whole:
        best = max(fits, key=lambda order: column.n_rows(fits[order]))
        raise _mixed(column, f"dates ({best})", ~fits[best])
    if len(whole) == 2 and not whole[0].startswith("day."):
        if dates is None:
            raise column.error(
                f"dates such as {column.value(fits[whole[0]])!r}, and it is unclear "
                "whether the day or the month comes first",
                "Say so: --dates day-first, or --dates month-first.",
            )
        whole.sort(key=lambda order: not order.startswith(dates.partition("-")[0]))
    return Reading("date", order="" if whole[0] == "year-month-day" else whole[0])


def _number(column: Column, found: Numbers, decimal: str | None) -> tuple[Reading | None, str]:
    marks = sorted(found.marks)
    fits = {(t, d): found.fits(t, d) for d in ".," for t in ("", *marks) if t != d}
    likely = np.logical_or.reduce(list(fits.values()))
    counted = Counter(found.units.filter(pa.array(likely)).to_pylist())
    units = [unit for unit, _ in counted.most_common(MAX_UNITS)]
    likely &= np.asarray(pc.is_in(found.units, pa.array(units, pa.string())))
    if column.n_rows(likely) <= MAJORITY * column.n_known:
        return None, ""
    in_unit = np.asarray(pc.equal(found.units, units[0]))
    fits = {pair: mask & in_unit for pair, mask in fits.items()}
    thousands = {d: t for (t, d), mask in fits.items() if mask.all()}
    if thousands:
        mark, check = _decimal_mark(column, found, thousands, decimal)
        enclosed = bool(found.enclosed.any())
        return Reading("number", mark, thousands[mark], units[0], enclosed), check
    best = max(fits.values(), key=column.n_rows)
    if len(units) > 1 and len(column.values) <= FEW_VALUES:
        return None, (
            f"{column.value(best)!r} and {column.value(~best)!r} are numbers in several units, so "
            "they are categories. To use them as numbers, write all of them in one unit."
        )
    raise _mixed(column, f"numbers such as {column.value(best)!r}", ~best)


def _decimal_mark(
    column: Column, found: Numbers, thousands: Mapping[str, str], decimal: str | None
) -> tuple[str, str]:
    """Choose one of the decimal marks that fit all values, given with those of `thousands`."""
    marks = [mark for mark in ",." if mark in found.marks]
    if not marks or decimal in thousands:
        return decimal or ".", ""
    has_mark, only = found.marks[marks[0]], next(iter(thousands))
    example = column.value(has_mark)
    if decimal is not None:
        raise column.error(
            f"numbers such as {example!r}, but the decimal mark of the table is {decimal!r}",
            f"If {only!r} is the decimal mark: --decimal {only!r}; if it is that of this column "
            "only, say so in a plan: --plan, --columns.",
        )
    if len(thousands) == 1:
        return only, ""
    ungrouped = notation.matches(found.bodies, "^[0-9]{4,}$")
    if "," in marks and ("." in marks or ungrouped.any()):
        other = column.value(found.marks.get(".", ungrouped))
        raise column.error(
            f"{example!r}, but also {other!r}: it is unclear which one is the decimal mark",
            "Say so: --decimal '.', or --decimal ','.",
        )
    # A comma is before thousands; a point before decimals, as it is in numbers without a unit.
    read = found.floats(thousands["."], ".")[column.codes[column.first(has_mark)]]
    return ".", f"{example!r} is read as {read:.10g}. If that is wrong: --decimal ','."


def _mixed(column: Column, what: str, others: Mask) -> TableError:
    every = (str(column.values[int(k)]) for k in np.flatnonzero(others))
    return column.error(
        f"{what}, but also {quoted(every)} in {column.n_rows(others):,} of its rows, first in row "
        f"{column.first(others) + 1:,}",
        f"If that marks missing values: --missing {column.value(others)!r}; if the column is a "
        f"category: --categorical {column.name!r}; otherwise, write all of them in one notation "
        "and unit.",
    )
