"""A plan of how columns are read, as a JSON file that people can edit and give back.

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

What else a plan says about a column (what is made of it, examples) is for people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neverworse.tables._errors import nearest, short
from neverworse.tables.preparation.notation import Reading
from neverworse.tables.preparation.plan import ColumnPlan
from neverworse.tables.preparation.values import as_text, distinct
from neverworse.tables.reading.files import encoding_of

VERSION = 1
MARK = "neverworse_plan"
DROP, UNREADABLE = "drop", "unreadable"
KINDS = ("number", "category", "date", "yes/no", DROP)
READ = ("kind", "decimal", "thousands", "unit", "parentheses", "order")
ABOUT = ("read_as", "made_into", "missing", "distinct", "examples", "look")
N_EXAMPLES, MAX_EXAMPLE_LENGTH = 3, 20


class PlanError(ValueError):
    """A plan that cannot be used; the message says what to change, `column` in which entry."""

    def __init__(self, message: str, *, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column


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
            problem = f"The plan has a column {name!r}, which the table has not."
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


def describe(plans: Sequence[ColumnPlan], looks: Mapping[str, str], table: Any) -> dict[str, Any]:
    """Return a plan with all that people may want to know to change it.

    `looks` has what people should look at, by column; of a column that cannot be read, the plan
    says why.
    """
    columns = {}
    for plan in plans:
        column = table.column(plan.name)
        entry = {"kind": UNREADABLE} if plan.error is not None else as_entry(plan.reading)
        columns[plan.name] = entry | {
            "read_as": plan.read_as,
            "made_into": "nothing: " + plan.note if plan.reading is None else plan.note,
            "missing": plan.n_missing,
            "distinct": None if pa.types.is_nested(column.type) else _n_distinct(column),
            "examples": _examples(column, plan.reading),
            "look": looks.get(plan.name, "") if plan.error is None else str(plan.error),
        }
    return {MARK: VERSION, "columns": columns}


def read_plan(path: Path) -> dict[str, dict[str, Any]]:
    """Return what a file says about columns; each entry is checked."""
    make = f"with --plan {path.name}."
    try:
        content = path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        raise PlanError(f"There is no plan {path}. Make one {make}") from None
    try:
        plan = json.loads(content.decode(encoding_of(content) or "utf-8").removeprefix("\ufeff"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise PlanError(f"{path} is no plan: {error}. Make one {make}") from None
    if not isinstance(plan, dict) or MARK not in plan:
        raise PlanError(f"{path} is no plan. Make one {make}")
    if plan[MARK] != VERSION:
        raise PlanError(
            f"{path} is a plan of version {plan[MARK]!r}, and this program knows {VERSION}. Make a "
            f"new one {make}"
        )
    columns = plan.get("columns")
    if not isinstance(columns, dict):
        raise PlanError(f"{path} has no columns. Make a new one {make}")
    for name, entry in columns.items():
        if not isinstance(entry, dict):
            raise PlanError(
                f"{path}: column {name!r} should have an entry such as {{'kind': 'number'}}, not "
                f"{short(repr(entry))}.",
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


def _n_distinct(column: pa.ChunkedArray) -> int:
    values, codes = distinct(column)
    return len(np.unique(codes[codes < len(values)]))


def _examples(column: pa.ChunkedArray, reading: Reading | None) -> list[str]:
    """Return the first different values, with the decimal mark that they were written with."""
    some = column.drop_null().slice(0, 100)
    if pa.types.is_nested(some.type):
        return [short(str(some[0]))] if len(some) else []
    if pa.types.is_dictionary(some.type):
        some = some.cast(some.type.value_type)
    texts = dict.fromkeys(text for text in as_text(some) if text is not None)
    if reading is not None and reading.decimal == "," and pa.types.is_floating(some.type):
        texts = dict.fromkeys(text.replace(".", ",") for text in texts)
    return [short(text, MAX_EXAMPLE_LENGTH) for text in list(texts)[:N_EXAMPLES]]
