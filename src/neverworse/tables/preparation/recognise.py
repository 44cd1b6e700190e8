"""How the text of columns is read: as a plan says, or as all values of a column tell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neverworse._typing import Mask
from neverworse._words import nearest, quoted
from neverworse.tables._errors import PlanError, TableError
from neverworse.tables.preparation.notation import (
    ORDERS,
    THOUSANDS,
    Numbers,
    Reading,
    days,
    matches,
    normalised,
    with_numbered_months,
)
from neverworse.tables.preparation.values import Column
from neverworse.tables.reading.files import TableFile
from neverworse.tables.reading.formats import DelimitedText, ReadOptions

FEW_VALUES = 10  # texts that are levels of a category, however few rows there are
MAJORITY = 0.5
SAMPLE_VALUES = 1000  # values that tell whether a column may hold numbers or dates at all
MAX_UNITS = 3  # in one column; what has more is text that begins with a number

# Of plans.
VERSION = 1
MARK = "neverworse_plan"
READ = ("kind", "decimal", "thousands", "unit", "parentheses", "order")
ABOUT = ("read_as", "made_into", "missing", "distinct", "examples", "look")

DateOrder = Literal["day-first", "month-first"]


def recognise(
    column: Column, decimal: str | None = None, dates: DateOrder | None = None
) -> tuple[Reading | None, str]:
    """Return how the values of a column of text are written, if in any way, and what to check.

    What is mostly numbers or dates, but not all of one kind, is an error.
    """
    n_values = len(column.values)
    chosen = np.linspace(0, n_values - 1, min(n_values, SAMPLE_VALUES)).astype(np.int64)
    some = normalised(column.values.take(chosen))
    if n_values <= SAMPLE_VALUES and set(Reading("yes/no").parse(some).tolist()) == {0.0, 1.0}:
        return Reading("yes/no"), ""
    some_dates = with_numbered_months(some)
    orders = [order for order in ORDERS if not np.isnan(days(some_dates, order)).all()]
    if orders:
        values = with_numbered_months(column.values)
        fits = {order: ~np.isnan(days(values, order)) for order in orders}
        if column.n_rows(np.logical_or.reduce(list(fits.values()))) > MAJORITY * column.n_known:
            return _date(column, fits, dates), ""
    if np.mean(np.asarray(Numbers(some).bodies.is_valid())) <= MAJORITY / 2.0:
        return None, ""
    values = normalised(column.values)
    digits, padded = (matches(values, pattern) for pattern in ("^[0-9]+$", "^0[0-9]+$"))
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
            values = normalised(column.drop_null().unique())
            if matches(values, "^-?[0-9]+$").all():
                codes |= {name} if matches(values, "^0[0-9]").any() else set()
            elif "." not in decimals or not matches(values, "^-?[0-9]*[.]?[0-9]*$").all():
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
    ungrouped = matches(found.bodies, "^[0-9]{4,}$")
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


# Plans


def from_entry(name: str, entry: Any) -> Reading:
    """Return how a plan wants a column to be read."""
    entry = entry if isinstance(entry, Mapping) else {}
    unknown = [key for key in entry if key not in (*READ, *ABOUT)]
    try:
        if unknown:
            raise ValueError(f"it has {unknown[0]!r}. {nearest(unknown[0], READ)}".rstrip("."))
        return Reading(**{"kind": None, **{key: entry[key] for key in READ if key in entry}})
    except ValueError as error:
        raise PlanError(f"The plan for column {name!r} cannot be used: {error}.") from None


def check_plan(columns: Mapping[str, Any], names: Sequence[str]) -> dict[str, Reading]:
    """Return how a plan wants the columns of a table to be read, if all of them are there."""
    for name in columns:
        if name not in names:
            problem = f"The plan has a column {name!r}, but the table does not."
            raise PlanError(f"{problem} {nearest(name, names)}")
    return {name: from_entry(name, entry) for name, entry in columns.items()}


def text_columns(columns: Mapping[str, Any], decimal: str | None) -> frozenset[str]:
    """Return the columns of a plan whose text is left to `Reading.parse`, not to PyArrow."""
    readings = {name: from_entry(name, entry) for name, entry in columns.items()}
    native = (Reading("number", decimal or "."), Reading("date"), Reading("drop"))
    return frozenset(name for name, reading in readings.items() if reading not in native)


def read_plan(path: Path) -> dict[str, dict[str, Any]]:
    """Return what a file says about columns; each entry is checked."""
    make = f"Make one with --plan {path.stem or 'plan'}.json."
    try:
        plan = json.loads(path.read_bytes())
        columns = plan["columns"].items() if plan[MARK] == VERSION else None
    except (FileNotFoundError, IsADirectoryError):
        raise PlanError(f"There is no plan {path}. {make}") from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        columns = None
    if columns is None:
        raise PlanError(f"{path} is not a plan of version {VERSION}. {make}")
    return {name: from_entry(name, entry).to_dict() for name, entry in columns}
