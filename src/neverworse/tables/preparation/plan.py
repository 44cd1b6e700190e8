"""Decide what each column of a table is, and what is made of it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neverworse._typing import Indices
from neverworse._words import cropped
from neverworse.tables._errors import TableError, UnreadableColumnsError
from neverworse.tables.preparation.notation import Reading
from neverworse.tables.preparation.recognise import (
    FEW_VALUES,
    MAJORITY,
    MARK,
    VERSION,
    Hints,
    Texts,
    as_entry,
    recognise,
)
from neverworse.tables.preparation.values import (
    DATE_PARTS,
    DATES,
    NUMBERS,
    as_text,
    coded,
    date_part,
    distinct,
    distinct_days,
    is_date,
    is_number,
    numbers,
)
from neverworse.tables.reading.delimited import TEXT, decoded, is_text

Kind = Literal["number", "category", "date", "dropped"]

SAME_POINT = 1e-6  # numbers on a circle of radius 1 that differ less are the same
# What pandas calls an index that nobody named: in memory and Parquet, and when it reads CSV.
INDEX = re.compile(r"\s*|__index_level_\d+__|Unnamed: 0")
# Names of whole numbers that are codes, in English, German and French.
CODE = re.compile(r"(?i:(?:^|[\W_])(?:zip|post(?:al)?[\W_]?code|plz|postleitzahl|code postal)$)")
# Names of columns that name the rows.
ID = re.compile(r"(?i:(?:^|[\W_])(?:id|nr|no|key|code|index|number))$|[a-z]I[Dd]$")
ID_DIGITS = 5  # numbers of one length, at least this, that all differ are ids under any name
SENTINELS = tuple(float(f"{sign}{'9' * n}") for sign in ("-", "") for n in range(2, 7))
CATEGORY = Reading("category")
CONSTANT = "has the same value in all rows"
LONGER_THAN = {"day": 0.0, "week": 7.0, "year": 180.0}  # days, for a rhythm to show
N_EXAMPLES, MAX_EXAMPLE_LENGTH = 3, 20
_NATIVE = {"bool": "true/false", "time": "times of day", "duration": "durations"}


@dataclass(frozen=True)
class ColumnPlan:
    """A column, what it is taken for, and why."""

    name: str
    kind: Kind
    note: str  # what is made of it, or why nothing is
    n_missing: int
    reading: Reading | None = None  # how its cells are read; None if nothing is made of it
    read_as: str = "dropped"  # the same, in words
    look: str = ""  # what people should look at, and what they can do about it
    # Of a category, the most frequent first; None stands for missing values.
    levels: tuple[str | None, ...] = ()
    parts: tuple[str, ...] = ()  # of a date, see `date_part`
    means: tuple[float, ...] = ()  # of a number, or of the parts of a date
    variances: tuple[float, ...] = ()
    error: TableError | None = None  # why a column cannot be read


def plan_columns(
    table: pa.Table, columns: Mapping[str, Reading | None], hints: Hints, max_levels: int = 30
) -> list[ColumnPlan]:
    """Decide for every column of a table.

    `columns` has what is known about columns already (None for those to leave out); `hints` decide
    where values leave it open; `max_levels` levels of a category get their own indicator.
    """

    def plan(name: str) -> ColumnPlan:
        column = table.column(name)
        n_missing = _n_missing(column)
        if name in columns and columns[name] is None:
            return ColumnPlan(name, "dropped", "as requested", n_missing)
        try:
            planned = _plan(name, column, n_missing, columns.get(name), hints)
        except TableError as error:
            return ColumnPlan(
                *(name, "dropped", "cannot be read", n_missing),
                read_as="-",
                look=str(error),
                error=error,
            )
        return planned if planned.look else _with_look(planned, len(column), max_levels)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        plans = list(pool.map(plan, table.column_names))
    if all(plan.kind == "dropped" and plan.error is None for plan in plans):
        reasons = "; ".join(f"{cropped(plan.name)!r} ({plan.note})" for plan in plans[:3])
        more = f"; and {len(plans) - 3:,} more" if len(plans) > 3 else ""
        raise TableError(
            f"There is no column to learn from: {reasons or 'no other column is left'}{more}.",
            "Add columns, or leave out fewer (--drop, --id).",
            code="column",
        )
    return plans


def check_readable(plans: Sequence[ColumnPlan]) -> None:
    """Raise if columns cannot be read: what is wrong with all of them."""
    errors = [plan.error for plan in plans if plan.error is not None]
    if errors:
        raise errors[0] if len(errors) == 1 else UnreadableColumnsError(errors)


def _with_look(plan: ColumnPlan, n_rows: int, max_levels: int) -> ColumnPlan:
    """Add what people should look at whatever the values are."""
    if len(plan.levels) > max_levels + 1:
        look = (
            f"{len(plan.levels):,} different values: the {max_levels} most frequent ones get "
            "a feature each, all others share one. If that loses information, merge some of them."
        )
    elif plan.n_missing > MAJORITY * n_rows:
        share = 100.0 * plan.n_missing / n_rows
        shown = f"{share:.0f} %" if share < 99.5 else f"{share:.1f} %"
        look = f"{shown} of the rows have no value. Find out why, or leave it out: --drop."
    else:
        return plan
    return replace(plan, look=look)


def _plan(
    name: str, column: pa.ChunkedArray, n_missing: int, reading: Reading | None, hints: Hints
) -> ColumnPlan:
    if n_missing == len(column):
        return _dropped(name, "is empty", n_missing)
    look = ""
    if reading is None and pa.types.is_dictionary(column.type) and column.type != TEXT:
        reading = CATEGORY
    elif reading is None and is_text(column.type):
        values, codes = distinct(column)
        texts = Texts(name, values.cast(pa.string()), codes)
        reading, look = recognise(texts, hints)
        if reading is None or reading == CATEGORY:
            return _text(texts, n_missing, look, "codes" if reading else CATEGORY.words)
    if reading is None:
        return _native(name, column, n_missing, hints)
    if reading == CATEGORY:
        return _levels(name, *coded(column), n_missing)
    make = _date if reading.kind == "date" else _number
    planned = make(name, column, n_missing, reading)
    return replace(planned, look=look or planned.look)


def _dropped(name: str, note: str, n_missing: int, look: str = "") -> ColumnPlan:
    look = look or f"It {note}, so it is not used."
    return ColumnPlan(name, "dropped", note, n_missing, look=look)


def _native(name: str, column: pa.ChunkedArray, n_missing: int, hints: Hints) -> ColumnPlan:
    """Plan a column of a type that the file knows, or that its reader has found."""
    if is_date(column.type):
        return _date(name, column, n_missing, DATES)
    if not is_number(column.type):
        kind = cropped(str(column.type))
        look = f"Values of type {kind} are not used: split them into columns of plain values."
        return _dropped(name, f"holds values of type {kind}", n_missing, look)
    whole, few = pa.types.is_integer(column.type), len(column) < FEW_VALUES
    low, high = pc.min_max(column).as_py().values() if whole else (0, 0)
    counts = whole and not few and high - low + 1 == len(column) and _all_differ(column)
    if counts or INDEX.fullmatch(name):
        return _dropped(name, "numbers the rows (to keep it in the results: --id)", 0)
    planned = _number(name, column, n_missing, Reading("number", hints.decimal or "."))
    if not whole or planned.kind == "dropped":
        return planned
    look = planned.look
    alike = not few and len(str(low)) == len(str(high)) >= ID_DIGITS
    if CODE.search(name.strip()):
        look = look or f"These numbers may be codes. If they are: --categorical {name!r}."
    elif (alike or ID.search(name)) and _all_differ(column):
        look = (
            "The numbers differ from row to row. If they only identify the rows: --id "
            f"{name!r}, or --drop {name!r}."
        )
    return replace(planned, read_as=NUMBERS.words, look=look)


def _all_differ(column: pa.ChunkedArray) -> bool:
    return not column.null_count and pc.count_distinct(column).as_py() == len(column)


def _number(name: str, column: pa.ChunkedArray, n_missing: int, reading: Reading) -> ColumnPlan:
    native = column.type
    known = (pa.types.is_integer, pa.types.is_float32, pa.types.is_float64)
    # PyArrow does not add up all others, and takes NaN for a number.
    if not any(check(native) for check in known) or n_missing > column.null_count:
        column = pa.array(numbers(name, column, reading), from_pandas=True)
    extremes = pc.min_max(column)
    low, high = float(extremes["min"].as_py()), float(extremes["max"].as_py())
    if math.isinf(low) or math.isinf(high):
        raise infinite(name, int(np.argmax(np.isinf(column.to_numpy(zero_copy_only=False)))))
    if low == high and not n_missing:
        return _dropped(name, CONSTANT, n_missing)
    note = "yes = 1, scaled" if reading.kind == "yes/no" else "scaled"
    note += ", missing: mean and an indicator" if n_missing else ""
    read_as = _NATIVE.get(str(native).partition("[")[0].rstrip("3264"), reading.words)
    return ColumnPlan(
        *(name, "number", note, n_missing, reading, read_as, _sentinel(column, low, high)),
        means=(pc.mean(column).as_py(),),
        variances=(pc.variance(column).as_py(),),
    )


def _sentinel(column: pa.Array | pa.ChunkedArray, low: float, high: float) -> str:
    """Say that a number such as -999, far from all others, may mark missing values."""
    for value in (low, high):
        if value not in SENTINELS:
            continue
        others = column.filter(pc.not_equal(column, pa.scalar(value).cast(column.type)))
        n_rows = len(column) - column.null_count - len(others)
        if n_rows < 2 or not len(others):
            continue
        lowest, highest = map(float, pc.min_max(others).as_py().values())
        gap = lowest - value if value == low else value - highest
        if gap > highest - lowest:
            return (
                f"{n_rows:,} rows have {value:g}, far from all other values. If it marks missing "
                f"values: --missing {value:g}."
            )
    return ""


def infinite(name: str, row: int) -> TableError:
    """Say that a number is infinite, in a row that is counted from 0."""
    fix = "Correct it, or leave the cell empty if it is not known."
    return TableError(f"Column {name!r} has an infinite number", fix, column=name, row=row)


def _text(texts: Texts, n_missing: int, look: str, read_as: str) -> ColumnPlan:
    """Text is a category, unless it differs from row to row."""
    n_values, n_known = len(texts.values), len(texts.codes) - n_missing
    if n_values > max(FEW_VALUES, MAJORITY * n_known):
        note = f"text, with {n_values:,} different values in {n_known:,} rows"
        look = (
            f"{n_values:,} different texts in {n_known:,} rows, so they are not used. If they "
            f"identify the rows: --id {texts.name!r}; if they have a meaning, group them into "
            f"fewer; to use the most frequent ones: --categorical {texts.name!r}."
        )
        return _dropped(texts.name, note, n_missing, look)
    planned = _levels(texts.name, [*texts.values.to_pylist(), None], texts.codes, n_missing)
    if planned.kind == "dropped":
        return planned
    return replace(planned, read_as=read_as, look=look or planned.look)


def _levels(name: str, values: Sequence[str | None], codes: Indices, n_missing: int) -> ColumnPlan:
    stripped = [level_of(value) for value in values]
    merged = list(dict.fromkeys(stripped))
    number = {value: k for k, value in enumerate(merged)}
    counts = np.bincount(np.array([number[value] for value in stripped])[codes])
    order = np.argsort(-counts, kind="stable")
    levels = tuple(merged[k] for k in order if counts[k])
    if len(levels) < 2:
        return _dropped(name, CONSTANT, n_missing)
    baseline = "missing" if levels[0] is None else cropped(levels[0], 30)
    note = f"{len(levels):,} levels, compared with {baseline!r}"
    return ColumnPlan(
        *(name, "category", note, n_missing, CATEGORY, CATEGORY.words, _twins(levels)),
        levels=levels,
    )


def level_of(value: str | None) -> str | None:
    """Return the level that a value means: spaces around it do not matter."""
    return None if value is None else value.strip()


def _twins(levels: Sequence[str | None]) -> str:
    """Say that two levels differ in capital letters only."""
    folded: dict[str, str] = {}
    for level in levels:
        if level is not None and folded.setdefault(level.casefold(), level) != level:
            twin = folded[level.casefold()]
            both = f"{cropped(twin)!r} and {cropped(level)!r} count as two levels."
            return f"{both} If they are one, spell them alike."
    return ""


def _date(name: str, column: pa.ChunkedArray, n_missing: int, reading: Reading) -> ColumnPlan:
    """Choose the parts of a date: of rhythms, those that the dates go through."""
    stamps, codes = distinct_days(name, column, reading)
    counts = np.bincount(codes, minlength=len(stamps)) * ~np.isnan(stamps)
    stamps, counts = stamps[counts > 0], counts[counts > 0]
    first, last = stamps.min(), stamps.max()
    if first == last and not n_missing:
        return _dropped(name, CONSTANT, n_missing)
    parts, means, variances = [], [], []
    for part in DATE_PARTS:
        if part != "day" and last - first <= LONGER_THAN[part.split(",")[0]]:
            continue
        values = date_part(stamps, part)
        # Of dates that are all on a Monday, only rounding errors would differ.
        if part == "day" or values.max() - values.min() > SAME_POINT:
            parts.append(part)
            means.append(float(np.average(values, weights=counts)))
            variances.append(float(np.average((values - means[-1]) ** 2, weights=counts)))
    rhythms = sorted({part.split(",")[0] for part in parts[1:]}, reverse=True)
    note = "days" + (f", and place in the {' and '.join(rhythms)}" if rhythms else "")
    return ColumnPlan(
        *(name, "date", note, n_missing, reading, reading.words),
        parts=tuple(parts),
        means=tuple(means),
        variances=tuple(variances),
    )


def _n_missing(column: pa.ChunkedArray) -> int:
    n_missing = int(column.null_count)
    if pa.types.is_floating(column.type):
        n_missing += pc.sum(pc.is_nan(column.cast(pa.float64()))).as_py() or 0
    return n_missing


def describe(plans: Sequence[ColumnPlan], looks: Mapping[str, str], table: Any) -> dict[str, Any]:
    """Return a plan with all that people may want to know to change it.

    `looks` has what people should look at, by column; of a column that cannot be read, the plan
    says why.
    """
    columns = {}
    for plan in plans:
        column = table.column(plan.name)
        entry = {"kind": "unreadable"} if plan.error is not None else as_entry(plan.reading)
        columns[plan.name] = entry | {
            "read_as": plan.read_as,
            "made_into": "not used: " + plan.note if plan.reading is None else plan.note,
            "missing": plan.n_missing,
            "distinct": None if pa.types.is_nested(column.type) else len(distinct(column)[0]),
            "examples": _examples(column, plan.reading),
            "look": looks.get(plan.name, "") if plan.error is None else str(plan.error),
        }
    return {MARK: VERSION, "columns": columns}


def _examples(column: pa.ChunkedArray, reading: Reading | None) -> list[str]:
    """Return the first different values, with the decimal mark that they were written with."""
    some = column.drop_null().slice(0, 100)
    if pa.types.is_nested(some.type):
        return [cropped(str(some[0]))] if len(some) else []
    some = decoded(some)
    texts = dict.fromkeys(text for text in as_text(some) if text is not None)
    if reading is not None and reading.decimal == "," and pa.types.is_floating(some.type):
        texts = dict.fromkeys(text.replace(".", ",") for text in texts)
    return [cropped(text, MAX_EXAMPLE_LENGTH) for text in list(texts)[:N_EXAMPLES]]
