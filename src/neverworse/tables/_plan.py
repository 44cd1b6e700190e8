"""Decide what each column of a table is, and what is made of it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neverworse.tables._errors import TableError, listed, nearest, short
from neverworse.tables._values import (
    DATE_PARTS,
    TEXT,
    coded,
    date_parts,
    days,
    is_date,
    is_number,
    is_text,
    numbers,
    spells_number,
)

Kind = Literal["number", "category", "date", "dropped"]

FEW = 10  # so many different texts are levels of a category, however few rows there are
MOSTLY = 0.5
SAME = 1e-6  # numbers on a circle of radius 1 that differ less are the same
DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}\b")  # 31.1.2026, 1/31/26
# What pandas calls an index that nobody named: in memory and Parquet, and when it reads CSV.
INDEX = re.compile(r"\s*|__index_level_\d+__|Unnamed: 0")


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
    levels : tuple of str or None
        Of a category, the most frequent first; None stands for missing values.
    parts : tuple of str
        Of a date, see `date_parts`.
    means, variances : tuples of float
        Of a number, or of the parts of a date.
    """

    name: str
    kind: Kind
    note: str
    n_missing: int
    levels: tuple[str | None, ...] = ()
    parts: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    variances: tuple[float, ...] = ()


def plan_columns(
    table: pa.Table, *, categorical: Collection[str] = (), drop: Collection[str] = ()
) -> list[ColumnPlan]:
    """Decide for every column of a table.

    Parameters
    ----------
    table : pyarrow Table
    categorical : collection of str
        Columns that are categories, whatever they look like.
    drop : collection of str
        Columns to leave out.
    """
    check_known(table.column_names, categorical, "categorical")
    check_known(table.column_names, drop, "drop")
    dropped, categories = set(drop), set(categorical)

    def plan(name: str) -> ColumnPlan:
        column = table.column(name)
        if name in dropped:
            return ColumnPlan(name, "dropped", "as asked for", _n_missing(column))
        return _plan(name, column, name in categories)

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


def _plan(name: str, column: pa.ChunkedArray, categorical: bool) -> ColumnPlan:
    n_missing = _n_missing(column)
    n_known = len(column) - n_missing
    if not n_known:
        return ColumnPlan(name, "dropped", "is empty", n_missing)
    declared = pa.types.is_dictionary(column.type) and column.type != TEXT
    if categorical or declared:
        return _category(name, column, n_missing)
    if is_text(column.type):
        return _text(name, column, n_missing)
    if is_date(column.type):
        return _date(name, column, n_missing)
    if not is_number(column.type):
        note = f"holds values of the type {short(str(column.type))}"
        return ColumnPlan(name, "dropped", note, n_missing)
    if INDEX.fullmatch(name) or _numbers_rows(column):
        return ColumnPlan(name, "dropped", "numbers the rows (to keep it in results: --id)", 0)
    return _number(name, column, n_missing)


def _number(name: str, column: pa.ChunkedArray, n_missing: int, how: str = "") -> ColumnPlan:
    known = (pa.types.is_integer, pa.types.is_float32, pa.types.is_float64)
    # PyArrow does not add up all others, and takes NaN for a number.
    if not any(check(column.type) for check in known) or n_missing > column.null_count:
        column = pa.array(numbers(name, column), from_pandas=True)
    extremes = pc.min_max(column)
    low, high = float(extremes["min"].as_py()), float(extremes["max"].as_py())
    if math.isinf(low) or math.isinf(high):
        raise infinite(name, int(np.argmax(np.isinf(column.to_numpy(zero_copy_only=False)))) + 1)
    if low == high and not n_missing:
        return ColumnPlan(name, "dropped", "has the same value in all rows", n_missing)
    note = how + "scaled" + (", missing: mean and an indicator" if n_missing else "")
    mean, variance = pc.mean(column).as_py(), pc.variance(column).as_py()
    return ColumnPlan(name, "number", note, n_missing, means=(mean,), variances=(variance,))


def infinite(name: str, row: int) -> TableError:
    """Say that a number is infinite, in a row that is counted from 1."""
    return TableError(
        f"Column {name!r} has an infinite number in row {row:,}. Correct it, or leave the cell "
        "empty if it is not known."
    )


def _text(name: str, column: pa.ChunkedArray, n_missing: int) -> ColumnPlan:
    """Text is a category, unless it spells numbers or differs from row to row."""
    values, codes = coded(column)
    n_known = len(codes) - n_missing
    spelled = np.array([text is not None and spells_number(text) for text in values])
    n_spelled = int(np.count_nonzero(spelled[codes]))
    if n_spelled == n_known:
        return _number(name, column, n_missing, "spelled as text, ")
    if n_spelled > MOSTLY * n_known:
        raise _mixed(name, values, codes, spelled)
    if len(values) - 1 > max(FEW, MOSTLY * n_known):
        commas = sum(text is not None and spells_number(text.replace(",", ".")) for text in values)
        if commas > MOSTLY * len(values):
            raise TableError(
                f"Column {name!r} has numbers with a decimal comma, such as {values[0]!r}. "
                "Say so: --decimal ','."
            )
        note = f"text, with {len(values) - 1:,} different values in {n_known:,} rows{_hint(values)}"
        return ColumnPlan(name, "dropped", note, n_missing)
    return _category(name, column, n_missing)


def _mixed(
    name: str, values: list[str | None], codes: np.ndarray, spelled: np.ndarray
) -> TableError:
    others = [k for k, text in enumerate(values) if text is not None and not spelled[k]]
    rows = np.isin(codes, others)
    first = int(np.argmax(rows))
    text = short(str(values[codes[first]]))
    return TableError(
        f"Column {name!r} has numbers, but also {listed(str(values[k]) for k in others)} in "
        f"{int(rows.sum()):,} of its rows, first in row {first + 1:,}. If that marks missing "
        f"values: --missing {text!r}; if the column is a category: --categorical {name!r}."
    )


def _category(name: str, column: pa.ChunkedArray, n_missing: int) -> ColumnPlan:
    values, codes = coded(column)
    counts = np.bincount(codes, minlength=len(values))
    order = np.argsort(-counts, kind="stable")
    levels = tuple(values[k] for k in order if counts[k])
    if len(levels) < 2:
        return ColumnPlan(name, "dropped", "has the same value in all rows", n_missing)
    baseline = "missing" if levels[0] is None else short(levels[0], 30)
    note = f"{len(levels):,} levels, compared with {baseline!r}{_hint(values)}"
    return ColumnPlan(name, "category", note, n_missing, levels=levels)


def _hint(values: list[str | None]) -> str:
    """Say how dates are written if these look like some."""
    written = sum(text is not None and DATE.match(text) is not None for text in values)
    return " (dates are known as 2026-01-31)" if written > MOSTLY * len(values) else ""


def _date(name: str, column: pa.ChunkedArray, n_missing: int) -> ColumnPlan:
    """Choose the parts of a date: of rhythms, those that the dates go through."""
    stamps = days(name, column)
    if n_missing:
        stamps = stamps[~np.isnan(stamps)]
    first, last = stamps.min(), stamps.max()
    if first == last and not n_missing:
        return ColumnPlan(name, "dropped", "has the same value in all rows", n_missing)
    longer_than = {"day": 0.0, "week": 7.0, "year": 180.0}
    parts, means, variances = [], [], []
    for part in DATE_PARTS:
        if part != "day" and last - first <= longer_than[part.split(",")[0]]:
            continue
        values = date_parts(stamps, (part,))
        # Of dates that are all on a Monday, only rounding errors would differ.
        if part == "day" or values.max() - values.min() > SAME:
            parts.append(part)
            means.append(float(values.mean()))
            variances.append(float(values.var()))
    rhythms = sorted({part.split(",")[0] for part in parts[1:]}, reverse=True)
    note = "days" + (f", and place in the {' and '.join(rhythms)}" if rhythms else "")
    return ColumnPlan(
        name,
        "date",
        note,
        n_missing,
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


def _n_missing(column: pa.ChunkedArray) -> int:
    n_missing = int(column.null_count)
    if pa.types.is_floating(column.type):
        n_missing += pc.sum(pc.is_nan(column.cast(pa.float64()))).as_py() or 0
    return n_missing
