"""Decide what each column of a table is, and what is made of it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neverworse._typing import Indices
from neverworse.tables._errors import CellError, TableError, nearest, short
from neverworse.tables._reading import Reading
from neverworse.tables._recognise import FEW, MOSTLY, Hints, Texts, recognise
from neverworse.tables._values import (
    DATE_PARTS,
    DATES,
    NUMBERS,
    TEXT,
    coded,
    date_part,
    distinct,
    distinct_days,
    is_date,
    is_number,
    is_text,
    numbers,
)

Kind = Literal["number", "category", "date", "dropped"]

SAME = 1e-6  # numbers on a circle of radius 1 that differ less are the same
# What pandas calls an index that nobody named: in memory and Parquet, and when it reads CSV.
INDEX = re.compile(r"\s*|__index_level_\d+__|Unnamed: 0")
# Names of whole numbers that are codes, in English, German and French.
CODE = re.compile(r"(?i:(?:^|[\W_])(?:zip|post(?:al)?[\W_]?code|plz|postleitzahl|code postal)$)")
DAYS = 19_000_101, 21_001_231
SENTINELS = tuple(float(f"{sign}{'9' * n}") for sign in ("-", "") for n in range(2, 7))
CATEGORY = Reading("category")
_HOLES = "of the rows have no value. Find out why, or leave it out: --drop."


@dataclass(frozen=True)
class ColumnPlan:
    """A column, what it is taken for, and why.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "date", "dropped"}
    note : str
        What is made of it, or why nothing is.
    n_missing : int
    reading : Reading or None
        How its cells are read; None if nothing is made of it.
    read_as : str
        The same, in words.
    look : str
        What people should look at, and what they can do about it.
    levels : tuple of str or None
        Of a category, the most frequent first; None stands for missing values.
    parts : tuple of str
        Of a date, see `date_part`.
    means, variances : tuples of float
        Of a number, or of the parts of a date.
    """

    name: str
    kind: Kind
    note: str
    n_missing: int
    reading: Reading | None = None
    read_as: str = "dropped"
    look: str = ""
    levels: tuple[str | None, ...] = ()
    parts: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    variances: tuple[float, ...] = ()


def plan_columns(
    table: pa.Table,
    *,
    columns: Mapping[str, Reading | None] | None = None,
    hints: Hints | None = None,
    max_levels: int = 30,
) -> list[ColumnPlan]:
    """Decide for every column of a table.

    Parameters
    ----------
    table : pyarrow Table
    columns : mapping of str to Reading or None
        What is known about columns already; None for those to leave out.
    hints : Hints, optional
        What decides where the values of a column leave it open.
    max_levels : int
        Levels of a category that get their own indicator.
    """
    known = {} if columns is None else columns

    def plan(name: str) -> ColumnPlan:
        column = table.column(name)
        if name in known and known[name] is None:
            return ColumnPlan(name, "dropped", "as asked for", _n_missing(column))
        planned = _plan(name, column, known.get(name), hints or Hints())
        if not planned.look and len(planned.levels) > max_levels + 1:
            planned = replace(planned, look=_many(len(planned.levels), max_levels))
        if not planned.look and planned.n_missing > MOSTLY * len(column):
            share = planned.n_missing / len(column)
            planned = replace(planned, look=f"{_percent(share)} {_HOLES}")
        return planned

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        plans = list(pool.map(plan, table.column_names))
    if not any(plan.kind != "dropped" for plan in plans):
        reasons = "; ".join(f"{short(plan.name)!r} ({plan.note})" for plan in plans[:3])
        raise TableError(
            f"There is no column to learn from: {reasons or 'the table has only its target'}."
        )
    return plans


def check_known(names: Sequence[str], wanted: Collection[str], option: str) -> None:
    """Raise if a column that was asked for is not there."""
    for name in wanted:
        if name not in names:
            raise TableError(f"There is no column {name!r} for --{option}. {nearest(name, names)}")


def _plan(name: str, column: pa.ChunkedArray, reading: Reading | None, hints: Hints) -> ColumnPlan:
    n_missing = _n_missing(column)
    if n_missing == len(column):
        return _dropped(
            name, "is empty", n_missing, "No row has a value, so nothing is made of it."
        )
    look = ""
    declared = pa.types.is_dictionary(column.type) and column.type != TEXT
    if reading is None and declared:
        reading = CATEGORY
    elif reading is None and is_text(column.type):
        texts = _texts(name, column)
        reading, look = recognise(texts, hints)
        if reading is None or reading == CATEGORY:
            return _text(texts, n_missing, look, "codes" if reading else CATEGORY.words)
    if reading is None:
        return _native(name, column, n_missing, hints)
    if reading == CATEGORY:
        return _category(name, column, n_missing)
    if reading.kind == "date":
        return replace(_date(name, column, n_missing, reading), look=look)
    planned = _number(name, column, n_missing, reading)
    return replace(planned, look=look or planned.look)


def _native(name: str, column: pa.ChunkedArray, n_missing: int, hints: Hints) -> ColumnPlan:
    """Plan a column of a type that the file knows, or that its reader has found."""
    if is_date(column.type):
        return _date(name, column, n_missing, DATES)
    if not is_number(column.type):
        note = f"holds values of the type {short(str(column.type))}"
        look = f"Nothing is made of values of the type {short(str(column.type))}: take them apart."
        return _dropped(name, note, n_missing, look)
    if INDEX.fullmatch(name) or _numbers_rows(column):
        look = "It numbers the rows, so nothing is made of it. To keep it in results: --id."
        return _dropped(name, "numbers the rows (to keep it in results: --id)", 0, look)
    planned = _number(name, column, n_missing, Reading("number", hints.decimal or "."))
    if not pa.types.is_integer(column.type) or planned.kind == "dropped":
        return planned
    look = planned.look
    if not look and CODE.search(name.strip()):
        look = f"These numbers may be codes. If they are: --categorical {name!r}."
    if not look and DAYS[0] <= planned.means[0] <= DAYS[1] and _are_days(column):
        look = "These numbers may be dates without marks. If they are, write them as 2026-01-31."
    return replace(planned, read_as=NUMBERS.words, look=look)


def _are_days(column: pa.ChunkedArray) -> bool:
    """Whether whole numbers are years, months and days in one, such as 20260131."""
    values = column.drop_null().to_numpy()
    months, days = values // 100 % 100, values % 100
    between = (values >= DAYS[0]) & (values <= DAYS[1])
    return bool((between & (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)).all())


def _dropped(name: str, note: str, n_missing: int, look: str) -> ColumnPlan:
    return ColumnPlan(name, "dropped", note, n_missing, look=look)


def _constant(name: str, n_missing: int) -> ColumnPlan:
    look = "All rows have the same value, so nothing is made of it."
    return _dropped(name, "has the same value in all rows", n_missing, look)


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
        return _constant(name, n_missing)
    note = "yes is 1, scaled" if reading.kind == "yes/no" else "scaled"
    note += ", missing: mean and an indicator" if n_missing else ""
    mean, variance = pc.mean(column).as_py(), pc.variance(column).as_py()
    return ColumnPlan(
        name,
        "number",
        note,
        n_missing,
        reading,
        _NATIVE.get(str(native).partition("[")[0].rstrip("3264"), reading.words),
        _sentinel(column, low, high),
        means=(mean,),
        variances=(variance,),
    )


_NATIVE = {"bool": "true/false", "time": "times of day", "duration": "durations"}


def _sentinel(column: pa.Array | pa.ChunkedArray, low: float, high: float) -> str:
    """Say that a number such as -999, far from all others, may mark missing values."""
    for value in (low, high):
        if value not in SENTINELS:
            continue
        others = column.filter(pc.not_equal(column, pa.scalar(value).cast(column.type)))
        n_rows = len(column) - column.null_count - (len(others) - others.null_count)
        extremes = pc.min_max(others)
        if n_rows < 2 or extremes["min"].as_py() is None:
            continue
        lowest, highest = float(extremes["min"].as_py()), float(extremes["max"].as_py())
        gap = lowest - value if value == low else value - highest
        if gap > highest - lowest:
            return (
                f"{n_rows:,} rows have {value:g}, far from all others. If it marks missing values: "
                f"--missing {value:g}."
            )
    return ""


def infinite(name: str, row: int) -> CellError:
    """Say that a number is infinite, in a row that is counted from 0."""
    return CellError(
        f"Column {name!r} has an infinite number",
        row,
        "Correct it, or leave the cell empty if it is not known.",
    )


def _texts(name: str, column: pa.ChunkedArray) -> Texts:
    """Return the values of a column that some row has."""
    values, codes = distinct(column)
    used = np.zeros(len(values) + 1, bool)
    used[codes] = True
    if not used[:-1].all():
        kept = np.flatnonzero(used[:-1])
        values, codes = values.take(pa.array(kept)), _renumbered(used)[codes]
    return Texts(name, values.cast(pa.string()), codes)


def _renumbered(used: np.ndarray) -> Indices:
    numbers = np.cumsum(used) - 1
    numbers[-1] = np.count_nonzero(used[:-1])
    return numbers


def _text(texts: Texts, n_missing: int, look: str, read_as: str) -> ColumnPlan:
    """Text is a category, unless it differs from row to row."""
    n_values, n_known = len(texts.values), len(texts.codes) - n_missing
    if n_values > max(FEW, MOSTLY * n_known):
        note = f"text, with {n_values:,} different values in {n_known:,} rows"
        return _dropped(
            texts.name,
            note,
            n_missing,
            f"{n_values:,} different texts in {n_known:,} rows: nothing is made of them. If they "
            f"name the rows: --id {texts.name!r}; if they mean something, group them into fewer; "
            f"to use the most frequent ones: --categorical {texts.name!r}.",
        )
    values: list[str | None] = [*texts.values.to_pylist(), None]
    planned = _levels(texts.name, values, texts.codes, n_missing)
    if planned.kind == "dropped":
        return planned
    return replace(planned, read_as=read_as, look=look or planned.look)


def _category(name: str, column: pa.ChunkedArray, n_missing: int) -> ColumnPlan:
    values, codes = coded(column)
    return _levels(name, values, codes, n_missing)


def _levels(name: str, values: Sequence[str | None], codes: Indices, n_missing: int) -> ColumnPlan:
    stripped = [level_of(value) for value in values]
    merged = list(dict.fromkeys(stripped))
    number = {value: k for k, value in enumerate(merged)}
    counts = np.bincount(np.array([number[value] for value in stripped])[codes])
    order = np.argsort(-counts, kind="stable")
    levels = tuple(merged[k] for k in order if counts[k])
    if len(levels) < 2:
        return _constant(name, n_missing)
    baseline = "missing" if levels[0] is None else short(levels[0], 30)
    note = f"{len(levels):,} levels, compared with {baseline!r}"
    return ColumnPlan(
        *(name, "category", note, n_missing, CATEGORY, CATEGORY.words, _level_look(levels)),
        levels=levels,
    )


def level_of(value: str | None) -> str | None:
    """Return the level that a value means: spaces around it do not matter."""
    return None if value is None else value.strip()


def _level_look(levels: Sequence[str | None]) -> str:
    folded: dict[str, str] = {}
    for level in levels:
        if level is not None and folded.setdefault(level.casefold(), level) != level:
            twin = folded[level.casefold()]
            return f"{short(twin)!r} and {short(level)!r} are two levels: spell them alike if not."
    return ""


def _many(n_levels: int, max_levels: int) -> str:
    return (
        f"{n_levels:,} different values: the {max_levels} most frequent ones count, and all others "
        "share one feature. If that loses something, group them into fewer."
    )


def _date(name: str, column: pa.ChunkedArray, n_missing: int, reading: Reading) -> ColumnPlan:
    """Choose the parts of a date: of rhythms, those that the dates go through."""
    stamps, codes = distinct_days(name, column, reading)
    counts = np.bincount(codes, minlength=len(stamps)) * ~np.isnan(stamps)
    stamps, counts = stamps[counts > 0], counts[counts > 0]
    first, last = stamps.min(), stamps.max()
    if first == last and not n_missing:
        return _constant(name, n_missing)
    longer_than = {"day": 0.0, "week": 7.0, "year": 180.0}
    parts, means, variances = [], [], []
    for part in DATE_PARTS:
        if part != "day" and last - first <= longer_than[part.split(",")[0]]:
            continue
        values = date_part(stamps, part)
        # Of dates that are all on a Monday, only rounding errors would differ.
        if part == "day" or values.max() - values.min() > SAME:
            parts.append(part)
            means.append(float(np.average(values, weights=counts)))
            variances.append(float(np.average((values - means[-1]) ** 2, weights=counts)))
    rhythms = sorted({part.split(",")[0] for part in parts[1:]}, reverse=True)
    note = "days" + (f", and place in the {' and '.join(rhythms)}" if rhythms else "")
    return ColumnPlan(
        name,
        "date",
        note,
        n_missing,
        reading,
        reading.words,
        parts=tuple(parts),
        means=tuple(means),
        variances=tuple(variances),
    )


def _numbers_rows(column: pa.ChunkedArray) -> bool:
    """Whether a column of whole numbers counts the rows, in whatever order."""
    if not pa.types.is_integer(column.type) or column.null_count or len(column) < FEW:
        return False
    extremes = pc.min_max(column)
    if extremes["max"].as_py() - extremes["min"].as_py() != len(column) - 1:
        return False
    return pc.count_distinct(column).as_py() == len(column)


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %" if share < 0.995 else f"{100.0 * share:.1f} %"


def _n_missing(column: pa.ChunkedArray) -> int:
    n_missing = int(column.null_count)
    if pa.types.is_floating(column.type):
        n_missing += pc.sum(pc.is_nan(column.cast(pa.float64()))).as_py() or 0
    return n_missing
