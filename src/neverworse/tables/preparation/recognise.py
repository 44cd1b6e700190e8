"""How the text of columns is read: as a plan says, or as all values of a column tell.

A plan is a JSON file that people can edit and give back:

```json
{
  "neverworse_plan": 1,
  "columns": {
    "price": {"kind": "number", "decimal": ",", "thousands": ".", "unit": "€"},
    "seen": {"kind": "date", "order": "day.month.year"},
    "remarks": {"kind": "drop"}
  }
}
```

What else it says about a column (what is made of it, examples) is for people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neverworse._typing import Indices, Mask
from neverworse._words import cropped, nearest, quoted
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
from neverworse.tables.reading.delimited import DelimitedText, ReadOptions
from neverworse.tables.reading.files import TableFile

FEW_VALUES = 10  # texts that are levels of a category, however few rows there are
MAJORITY = 0.5
SAMPLE_VALUES = 1000  # values that tell whether a column may hold numbers or dates at all
MAX_UNITS = 3  # in one column; what has more is text that begins with a number

# Of plans.
VERSION = 1
MARK = "neverworse_plan"
DROP = "drop"
KINDS = ("number", "category", "date", "yes/no", DROP)
READ = ("kind", "decimal", "thousands", "unit", "parentheses", "order")
ABOUT = ("read_as", "made_into", "missing", "distinct", "examples", "look")

DateOrder = Literal["day-first", "month-first"]


@dataclass(frozen=True)
class Hints:
    """What decides where the values of a column leave it open."""

    decimal: str | None = None  # what other columns of the table have before decimals
    dates: DateOrder | None = None  # which of two numbers up to twelve is the day


@dataclass(frozen=True)
class Texts:
    """The distinct values of a column."""

    name: str  # of the column
    values: pa.Array  # without nulls
    # Which of them each row has; rows without a value have the number behind the last.
    codes: Indices

    def rows(self, mask: Mask) -> int:
        """Count the rows with one of some values."""
        return int(np.count_nonzero(np.append(mask, False)[self.codes]))

    def first(self, mask: Mask) -> int:
        """Return the first row with one of some values, counted from 0."""
        return int(np.argmax(np.append(mask, False)[self.codes]))

    def value(self, mask: Mask) -> str:
        return str(self.values[int(self.codes[self.first(mask)])])

    def at(self, mask: Mask) -> str:
        """Return the first of some values and where it is, in words."""
        return f"{cropped(self.value(mask))!r} (row {self.first(mask) + 1:,})"

    def error(self, problem: str, fix: str) -> TableError:
        return TableError(f"Column {self.name!r} has {problem}.", fix, column=self.name)


def recognise(texts: Texts, hints: Hints) -> tuple[Reading | None, str]:
    """Return how values are written, and what people should look at.

    Text that is no number, no date, and not yes or no, has no reading: it is a category, or
    nothing is made of it. What is mostly numbers or dates but not all of one kind is an error.
    """
    n_values = len(texts.values)
    chosen = np.linspace(0, n_values - 1, min(n_values, SAMPLE_VALUES)).astype(np.int64)
    some = normalised(texts.values.take(chosen))
    some_dates = with_numbered_months(some)
    orders = [order for order in ORDERS if not np.isnan(days(some_dates, order)).all()]
    may_be_numbers = np.mean(np.asarray(Numbers.find(some).bodies.is_valid())) > MAJORITY / 2.0
    said = Reading("yes/no").parse(some)
    if n_values <= SAMPLE_VALUES and not np.isnan(said).any() and len(np.unique(said)) == 2:
        return Reading("yes/no"), ""
    n_known = int(np.count_nonzero(texts.codes < n_values))
    if orders:
        values = with_numbered_months(texts.values)
        fits = {order: ~np.isnan(days(values, order)) for order in orders}
        if texts.rows(np.logical_or.reduce(list(fits.values()))) > MAJORITY * n_known:
            return _date(texts, fits, hints)
    if not may_be_numbers:
        return None, ""
    values = normalised(texts.values)
    digits, padded = (matches(values, pattern) for pattern in ("^[0-9]+$", "^0[0-9]+$"))
    if padded.any() and texts.rows(digits) > MAJORITY * n_known:
        return Reading("category"), (
            f"Codes with leading zeros, such as {cropped(texts.value(padded))!r}, are treated "
            "as categories. If they are numbers, say so in a plan: --plan, --columns."
        )
    return _number(texts, values, n_known, hints)


def found_options(files: Sequence[TableFile], options: ReadOptions) -> ReadOptions:
    """Return options with what some rows of CSV files tell about their numbers.

    The decimal mark, if all columns that tell agree in it; and columns of codes with leading zeros,
    which are text.
    """
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
    found = Numbers.find(values)
    fits = {
        decimal: np.logical_or.reduce([found.fits(t, decimal) for t in THOUSANDS if t != decimal])
        for decimal in ".,"
    }
    if np.count_nonzero(fits["."] | fits[","]) <= MAJORITY * len(values):
        return set()
    return {one for one, other in (".,", ",.") if (fits[one] & ~fits[other]).any()}


def _date(texts: Texts, fits: Mapping[str, Mask], hints: Hints) -> tuple[Reading, str]:
    whole = [order for order, mask in fits.items() if mask.all()]
    if not whole:
        best = max(fits, key=lambda order: texts.rows(fits[order]))
        raise _others(texts, f"dates ({best})", ~fits[best])
    if len(whole) == 2 and not whole[0].startswith("day."):
        if hints.dates is None:
            raise texts.error(
                f"dates such as {texts.value(fits[whole[0]])!r}, and no number above 12 tells "
                "whether the day or the month is first",
                "Say so: --dates day-first, or --dates month-first.",
            )
        first = hints.dates.partition("-")[0]
        whole.sort(key=lambda order: not order.startswith(first))
    return Reading("date", order="" if whole[0] == "year-month-day" else whole[0]), ""


def _number(
    texts: Texts, values: pa.Array, n_known: int, hints: Hints
) -> tuple[Reading | None, str]:
    found = Numbers.find(values)
    fits = {pair: found.fits(*pair) for pair in _conventions(found.marks())}
    likely = np.logical_or.reduce(list(fits.values()))
    units = found.common_units(likely, MAX_UNITS)
    likely &= np.asarray(pc.is_in(found.units, pa.array(units, pa.string())))
    if texts.rows(likely) <= MAJORITY * n_known:
        return None, ""
    if len(units) > 1 and len(values) <= FEW_VALUES:
        return None, (
            f"Numbers in several units are categories: {_several(texts, found, likely)}. To use "
            "them as numbers, write all of them in one unit."
        )
    if not likely.all():
        raise _others(texts, "numbers", ~likely)
    category = f"if it is a category: --categorical {texts.name!r}."
    if len(units) > 1:
        raise texts.error(
            f"numbers in several units: {_several(texts, found, likely)}",
            f"Write all of them in one unit; {category}",
        )
    whole = [pair for pair, mask in fits.items() if mask.all()]
    if not whole:
        best = fits[max(fits, key=lambda pair: texts.rows(fits[pair]))]
        raise texts.error(
            f"numbers in several notations: {texts.at(best)} and {texts.at(~best)}",
            f"Write all of them in one notation; {category}",
        )
    (thousands, decimal), look = _decided(texts, found, whole, hints)
    return Reading(
        "number",
        decimal=decimal,
        thousands=thousands,
        unit=units[0],
        parentheses=bool(found.enclosed.any()),
    ), look


def _conventions(marks: set[str]) -> list[tuple[str, str]]:
    """Return the pairs of marks, of thousands and decimals, that some of these could be."""
    return [
        (thousands, decimal)
        for decimal in ".,"
        for thousands in ("", *sorted(marks - {decimal}))
        if decimal in marks or thousands or not marks & {".", ","}
    ]


def _decided(
    texts: Texts, found: Numbers, whole: list[tuple[str, str]], hints: Hints
) -> tuple[tuple[str, str], str]:
    """Choose from notations that all fit: 1,892 may be a number of four digits, or of two."""
    marks = found.marks()
    grouped = {decimal: thousands for thousands, decimal in whole}
    if hints.decimal in grouped:
        return (grouped[hints.decimal], hints.decimal), ""
    decimal = "." if "." in grouped else ","
    if len(grouped) == 1 or not marks & {".", ","}:
        return (grouped[decimal], decimal), ""
    mark = "," if "," in marks else "."
    example = texts.value(found.have(mark))
    ungrouped = matches(found.bodies, "^[0-9]{4,}$")
    if "," in marks and ("." in marks or ungrouped.any()):
        other = texts.value(found.have(".") if "." in marks else ungrouped)
        raise texts.error(
            f"{example!r}, but also {other!r}: it is unclear which one is the decimal mark",
            "Say so: --decimal '.', or --decimal ','.",
        )
    # A comma is before thousands; a point before decimals, as it is in numbers without a unit.
    read = found.floats(grouped["."], ".")[texts.codes[texts.first(found.have(mark))]]
    return (grouped["."], "."), (
        f"{cropped(example)!r} is read as {read:.10g}. If that is wrong: --decimal ','."
    )


def _several(texts: Texts, found: Numbers, likely: Mask) -> str:
    """Return two values with different units, and where they are."""
    unit = found.units[int(texts.codes[texts.first(likely)])]
    own = np.asarray(pc.equal(found.units, unit))
    return f"{texts.at(likely & own)} and {texts.at(likely & ~own)}"


def _others(texts: Texts, what: str, others: Mask) -> TableError:
    every = (str(texts.values[int(k)]) for k in np.flatnonzero(others))
    return texts.error(
        f"{what}, but also {quoted(every)} in {texts.rows(others):,} of its rows, first in row "
        f"{texts.first(others) + 1:,}",
        f"If that marks missing values: --missing {cropped(texts.value(others))!r}; if the column "
        f"is a category: --categorical {texts.name!r}.",
    )


# Plans


def as_entry(reading: Reading | None) -> dict[str, Any]:
    """Return what a plan says about a column that is read in this way."""
    return {"kind": DROP} if reading is None else reading.to_dict()


def from_entry(name: str, entry: Mapping[str, Any]) -> Reading | None:
    """Return how a plan wants a column to be read; None if not at all."""
    kind = entry.get("kind")
    if kind not in KINDS:
        known = ", ".join(map(repr, KINDS))
        problem = f"The plan has the kind {kind!r} for column {name!r}. Kinds are {known}."
        raise PlanError(problem, column=name)
    if kind == DROP:
        return None
    try:
        return Reading(**{key: entry[key] for key in READ if key in entry})
    except (TypeError, ValueError) as error:
        problem = f"The plan for column {name!r} cannot be used: {error}."
        raise PlanError(problem, column=name) from None


def check_plan(
    columns: Mapping[str, Mapping[str, Any]], names: Sequence[str]
) -> dict[str, Reading | None]:
    """Return how a plan wants the columns of a table to be read, if all of them are there."""
    for name in columns:
        if name not in names:
            problem = f"The plan has a column {name!r}, but the table does not."
            raise PlanError(f"{problem} {nearest(name, names)}", column=name)
    return {name: from_entry(name, entry) for name, entry in columns.items()}


def text_columns(columns: Mapping[str, Mapping[str, Any]], decimal: str | None) -> frozenset[str]:
    """Return the columns of a plan that are read from text as they are, and understood here.

    All others are what readers of text know as well: numbers with the decimal mark of the table (a
    point, if it is None), and dates as in ISO 8601.
    """

    def is_text(name: str) -> bool:
        reading = from_entry(name, columns[name])
        if reading is None:
            return False
        if reading.kind in ("category", "yes/no") or not reading.plain:
            return True
        return reading.kind == "number" and reading.decimal != (decimal or ".")

    return frozenset(filter(is_text, columns))


def read_plan(path: Path) -> dict[str, dict[str, Any]]:
    """Return what a file says about columns; each entry is checked."""
    make = f"Make one with --plan {path.stem or 'plan'}.json."
    try:
        plan = json.loads(path.read_bytes())
    except (FileNotFoundError, IsADirectoryError):
        raise PlanError(f"There is no plan {path}. {make}") from None
    except (ValueError, RecursionError):
        raise PlanError(f"{path} is not a plan: it is not JSON. {make}") from None
    columns = plan.get("columns") if isinstance(plan, dict) and MARK in plan else None
    if not isinstance(columns, dict):
        raise PlanError(f"{path} is not a plan. {make}")
    if plan[MARK] != VERSION:
        problem = f"{path} is a plan of version {plan[MARK]!r}, but this program reads {VERSION}."
        raise PlanError(f"{problem} {make}")
    for name, entry in columns.items():
        if not isinstance(entry, dict):
            raise PlanError(
                f"{path}: column {name!r} should have an entry such as {{'kind': 'number'}}, not "
                f"{cropped(repr(entry))}.",
                column=name,
            )
        for key in entry:
            if key not in (*READ, *ABOUT):
                problem = f"{path}: column {name!r} has {key!r}. {nearest(key, READ)}"
                raise PlanError(problem, column=name)
        from_entry(name, entry)
    return {
        name: {key: entry[key] for key in READ if key in entry} for name, entry in columns.items()
    }
