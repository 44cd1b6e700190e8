"""Decide what each column of a table is, and what is made of it."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neverworse._typing import Vector
from neverworse._words import cropped, nearest, percent
from neverworse.tables._errors import PlanError, TableError
from neverworse.tables.preparation import columns
from neverworse.tables.preparation.columns import FEW_VALUES, MAJORITY, Column, DateOrder
from neverworse.tables.preparation.notation import CATEGORY, DATES, DROP, NUMBERS, Reading
from neverworse.tables.reading.formats import TEXT, decoded, is_text

MAX_LEVELS = 30  # of a category that get an indicator of their own
SAME_POINT = 1e-6  # numbers on a circle of radius 1 that differ less are the same
# What pandas calls an index that nobody named: in memory and Parquet, and when it reads CSV.
INDEX = re.compile(r"\s*|__index_level_\d+__|Unnamed: 0")
# Names of whole numbers that are codes, in English, German and French.
CODE = re.compile(r"(?i:(?:^|[\W_])(?:zip|post(?:al)?[\W_]?code|plz|postleitzahl|code postal)$)")
# Names of columns that name the rows.
ID = re.compile(r"(?i:(?:^|[\W_])(?:id|nr|no|key|code|index|number))$|[a-z]I[Dd]$")
ID_DIGITS = 5  # numbers of one length, at least this, that all differ are ids under any name
SENTINELS = {float(f"{sign}{'9' * n}") for sign in ("-", "") for n in range(2, 7)}
CONSTANT = "has the same value in all rows"
LONGER_THAN = {"day": 0.0, "week": 7.0, "year": 180.0}  # days, for a cycle to show
# Of plans in files.
VERSION = 1
MARK = "neverworse_plan"
READ = ("kind", "decimal", "thousands", "unit", "parentheses", "order")
ABOUT = ("read_as", "made_into", "missing", "distinct", "examples", "look")
N_EXAMPLES, MAX_EXAMPLE_LENGTH = 3, 20


@dataclass(frozen=True)
class ColumnPlan:
    """A column, what it is taken for, and why."""

    name: str
    kind: Literal["number", "category", "date", "dropped"]
    note: str  # what is made of it, or why nothing is
    n_missing: int
    reading: Reading = DROP  # how its cells are read
    read_as: str = "dropped"  # the same, in words
    look: str = ""  # what people should look at, and what they can do about it
    # Of a category, the most frequent first; None stands for missing values.
    levels: tuple[str | None, ...] = ()
    parts: tuple[str, ...] = ()  # of a number or a date, see `date_part`
    means: tuple[float, ...] = ()  # of a number, or of the parts of a date
    variances: tuple[float, ...] = ()
    error: TableError | None = None  # why a column cannot be read


def plan_columns(
    table: pa.Table, known: Mapping[str, Reading], decimal: str | None, dates: DateOrder | None
) -> list[ColumnPlan]:
    """Decide for every column of a table, unless `known` has how to read it."""

    def plan(name: str) -> ColumnPlan:
        column = Column(name, table.column(name))
        if known.get(name) == DROP:
            return ColumnPlan(name, "dropped", "as requested", column.n_missing)
        try:
            planned = _plan(column, known.get(name), decimal, dates)
        except TableError as error:
            unreadable = ColumnPlan(name, "dropped", "cannot be read", column.n_missing)
            return replace(unreadable, read_as="-", look=str(error), error=error)
        return replace(planned, look=planned.look or _check(planned, len(column.data)))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        plans = list(pool.map(plan, table.column_names))
    if all(plan.kind == "dropped" and plan.error is None for plan in plans):
        reasons = "; ".join(f"{cropped(plan.name)!r} ({plan.note})" for plan in plans[:5])
        problem = f"There is no column to learn from: {reasons or 'no other column is left'}."
        raise TableError(problem, "Add columns, or leave out fewer (--drop, --id).", code="column")
    return plans


def check_readable(plans: Sequence[ColumnPlan]) -> None:
    """Raise if columns cannot be read: what is wrong with all of them."""
    errors = [plan.error for plan in plans if plan.error is not None]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        reasons = "".join(f"\n- {error}" for error in errors)
        raise TableError(f"{len(errors)} columns cannot be read:{reasons}", column=errors[0].column)


def _check(plan: ColumnPlan, n_rows: int) -> str:
    """Return what people should look at whatever the values are."""
    if len(plan.levels) > MAX_LEVELS + 1:
        return (
            f"{len(plan.levels):,} different values: the {MAX_LEVELS} most frequent ones get "
            "a feature each, all others share one. If that loses information, merge some of them."
        )
    if plan.n_missing > MAJORITY * n_rows:
        share = percent(plan.n_missing / n_rows)
        return f"{share} of the rows have no value. Find out why, or leave it out: --drop."
    return ""


def _plan(
    column: Column, reading: Reading | None, decimal: str | None, dates: DateOrder | None
) -> ColumnPlan:
    kind, look = column.data.type, ""
    if not column.n_known:
        return _dropped(column, "is empty")
    if reading is None and pa.types.is_dictionary(kind) and kind != TEXT:
        reading = CATEGORY
    elif reading is None and is_text(kind):
        reading, look = columns.recognise(column, decimal, dates)
        if reading is None or reading == CATEGORY:
            return _text(column, look, "codes" if reading else CATEGORY.words)
    if reading is None:
        return _native(column, decimal)
    if reading == CATEGORY:
        return _levels(column)
    planned = _scaled(column, reading)
    return replace(planned, look=look or planned.look)


def _dropped(column: Column, note: str, look: str = "") -> ColumnPlan:
    look = look or f"It {note}, so it is not used."
    return ColumnPlan(column.name, "dropped", note, column.n_missing, look=look)


def _native(column: Column, decimal: str | None) -> ColumnPlan:
    """Plan a column of a type that the file knows, or that its reader has found."""
    name, data = column.name, column.data
    if columns.is_date(data.type):
        return _scaled(column, DATES)
    if not columns.is_number(data.type):
        kind = cropped(str(data.type))
        look = f"Values of type {kind} are not used: split them into columns of plain values."
        return _dropped(column, f"holds values of type {kind}", look)
    planned = _scaled(column, Reading("number", decimal or "."))
    if not pa.types.is_integer(data.type) or planned.kind == "dropped":
        return planned
    planned = replace(planned, read_as=NUMBERS.words)  # they have no decimal mark
    low, high = pc.min_max(data).as_py().values()
    few = len(data) < FEW_VALUES
    counts = not few and high - low + 1 == len(data) and _all_differ(data)
    if counts or INDEX.fullmatch(name):
        return _dropped(column, "numbers the rows (to keep it in the results: --id)")
    alike = not few and len(str(low)) == len(str(high)) >= ID_DIGITS
    if CODE.search(name.strip()):
        look = f"These numbers may be codes. If they are: --categorical {name!r}."
        return replace(planned, look=planned.look or look)
    if (alike or ID.search(name)) and _all_differ(data):
        differ = "The numbers differ from row to row. If they only identify the rows"
        return replace(planned, look=f"{differ}: --id {name!r}, or --drop {name!r}.")
    return planned


def _all_differ(data: pa.ChunkedArray) -> bool:
    return not data.null_count and pc.count_distinct(data).as_py() == len(data)


def _scaled(column: Column, reading: Reading) -> ColumnPlan:
    """Plan a column of numbers, or of dates: the day, and cycles that the dates cover."""
    name, n_missing = column.name, column.n_missing
    values = columns.numbers(name, column.data, reading)
    missing = np.isnan(values)
    known = values[~missing] if missing.any() else values
    dates = reading.kind == "date"
    with np.errstate(over="ignore", invalid="ignore"):
        length, parts = np.ptp(known), {"day": known}
        for part in columns.DATE_PARTS[1:] if dates else ():
            place = columns.date_part(known, part)
            # Of dates that are all on a Monday, only rounding errors would differ.
            if length > LONGER_THAN[part.split(",")[0]] and np.ptp(place) > SAME_POINT:
                parts[part] = place
        means = tuple(float(part.mean()) for part in parts.values())
        variances = tuple(float(part.var()) for part in parts.values())
    if not np.isfinite(variances[0]):
        raise too_large(name, int(np.nanargmax(np.abs(values))))
    if length == 0.0 and not n_missing:
        return _dropped(column, CONSTANT)
    if dates:
        rhythms = sorted({part.split(",")[0] for part in list(parts)[1:]}, reverse=True)
        note = "days" + (f", and place in the {' and '.join(rhythms)}" if rhythms else "")
    else:
        note = "yes = 1, scaled" if reading.kind == "yes/no" else "scaled"
        note += ", missing: mean and an indicator" if n_missing else ""
    read_as = replace(reading, native=str(column.data.type)).words
    look = "" if dates else _sentinel(known)
    about = (note, n_missing, reading, read_as, look)
    planned = ColumnPlan(name, "date" if dates else "number", *about)
    return replace(planned, parts=tuple(parts), means=means, variances=variances)


def _sentinel(values: Vector) -> str:
    """Return a hint that a number such as -999, far from all others, may mark missing values."""
    for value in sorted({values.min(), values.max()} & SENTINELS):
        others = values[values != value]
        n_rows = len(values) - len(others)
        is_alone = n_rows < 2 or not len(others)
        if not is_alone and max(others.min() - value, value - others.max()) > np.ptp(others):
            return (
                f"{n_rows:,} rows have {value:g}, far from all other values. If it marks missing "
                f"values: --missing {value:g}."
            )
    return ""


def too_large(name: str, row: int) -> TableError:
    """Return an error about a number that cannot be scaled, in a row that is counted from 0."""
    problem = f"Column {name!r} has a number that is infinite, or too large to be squared,"
    fix = f"Correct it, leave the cell empty, or leave the column out: --drop {name!r}."
    return TableError(problem, fix, column=name, row=row)


def _text(column: Column, look: str, read_as: str) -> ColumnPlan:
    """Text is a category, unless it differs from row to row."""
    name, n_values, n_known = column.name, len(column.values), column.n_known
    if n_values > max(FEW_VALUES, MAJORITY * n_known):
        look = (
            f"{n_values:,} different texts in {n_known:,} rows, so they are not used. If they "
            f"identify the rows: --id {name!r}; if they have a meaning, group them into "
            f"fewer; to use the most frequent ones: --categorical {name!r}."
        )
        note = f"text, with {n_values:,} different values in {n_known:,} rows"
        return _dropped(column, note, look)
    return _levels(column, read_as, look)


def _levels(column: Column, read_as: str = CATEGORY.words, look: str = "") -> ColumnPlan:
    levels = tuple(level for level, _ in level_counts(column.data).most_common())
    if len(levels) < 2:
        return _dropped(column, CONSTANT)
    baseline = "missing" if levels[0] is None else cropped(levels[0], 30)
    note = f"{len(levels):,} levels, compared with {baseline!r}"
    about = (note, column.n_missing, CATEGORY, read_as, look, levels)
    return ColumnPlan(column.name, "category", *about)


def level_counts(column: pa.ChunkedArray) -> Counter[str | None]:
    """Count the levels of a category; None is missing."""
    values, codes = columns.coded(column)
    counted: Counter[str | None] = Counter()
    for value, n_rows in zip(values, np.bincount(codes, minlength=len(values)), strict=True):
        counted[value] += int(n_rows)
    return +counted  # without those that no row has


# Plans in files


def describe(plans: Sequence[ColumnPlan], looks: Mapping[str, str], table: Any) -> dict[str, Any]:
    """Return a plan with all that people may want to know to change it, and where to look."""
    entries = {}
    for plan in plans:
        data = table.column(plan.name)
        entry = {"kind": "unreadable"} if plan.error is not None else plan.reading.to_dict()
        entries[plan.name] = entry | {
            "read_as": plan.read_as,
            "made_into": "not used: " + plan.note if plan.kind == "dropped" else plan.note,
            "missing": plan.n_missing,
            "distinct": None if pa.types.is_nested(data.type) else len(columns.distinct(data)[0]),
            "examples": _examples(data),
            "look": looks.get(plan.name, "") if plan.error is None else str(plan.error),
        }
    return {MARK: VERSION, "columns": entries}


def _examples(data: pa.ChunkedArray) -> list[str]:
    """Return the first different values."""
    some = decoded(data.drop_null().slice(0, 100))
    texts = map(str, some.to_pylist()) if pa.types.is_nested(some.type) else columns.as_text(some)
    different = list(dict.fromkeys(text for text in texts if text is not None))
    return [cropped(text, MAX_EXAMPLE_LENGTH) for text in different[:N_EXAMPLES]]


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


def text_columns(plan: Mapping[str, Any], decimal: str | None) -> frozenset[str]:
    """Return the columns of a plan whose text is left to `Reading.parse`, not to PyArrow."""
    native = (Reading("number", decimal or "."), DATES, DROP)
    return frozenset(name for name in plan if from_entry(name, plan[name]) not in native)


def read_plan(path: Path) -> dict[str, dict[str, Any]]:
    """Return what a file says about columns; each entry is checked."""
    make = f"Make one with --plan {path.stem or 'plan'}.json."
    try:
        plan = json.loads(path.read_bytes())
        entries = plan["columns"].items() if plan[MARK] == VERSION else None
    except (FileNotFoundError, IsADirectoryError):
        raise PlanError(f"There is no plan {path}. {make}") from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        entries = None
    if entries is None:
        raise PlanError(f"{path} is not a plan of version {VERSION}. {make}")
    return {name: from_entry(name, entry).to_dict() for name, entry in entries}
