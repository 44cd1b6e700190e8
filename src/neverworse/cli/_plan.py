"""How columns would be read: shown, written to a file, and read from it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neverworse._files import write_whole
from neverworse.cli._errors import UsageError
from neverworse.cli._text import aligned, wrapped
from neverworse.tables._errors import grouped

if TYPE_CHECKING:
    import pyarrow as pa

    from neverworse.study import FitSettings
    from neverworse.tables import StoredTable


def show_plan(
    arguments: argparse.Namespace, table: pa.Table | StoredTable, settings: FitSettings
) -> None:
    """Print how the columns of a table would be read, and write it if a file is named."""
    from neverworse.study import feature_columns, looks_at
    from neverworse.tables import TablePreparation
    from neverworse.tables._plan_file import describe
    from neverworse.tables._target import read_target

    target = read_target(table, settings.target, settings.markers)
    columns = feature_columns(table, settings)
    plans = TablePreparation(**settings.reading).fit(columns).plans_
    plan = describe(plans, looks_at(columns, target, plans), columns)
    text = json.dumps(plan, ensure_ascii=False, indent=1)
    if arguments.plan:
        path = Path(arguments.plan)
        write_whole(path, lambda file: file.write(f"{text}\n".encode()))
    if arguments.json:
        print(text)
    elif not arguments.quiet:
        for paragraph in _shown(plan["columns"]):
            print(paragraph)
        if arguments.plan:
            print(f"\nIn {arguments.plan}. Edit it, and give it back: --columns {arguments.plan}")


def columns_of(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the columns of the plan that --columns names."""
    from neverworse.tables._plan_file import PlanError, read_plan

    try:
        columns = read_plan(arguments.columns)
    except PlanError as error:
        raise UsageError(str(error)) from None
    if arguments.target in columns:
        raise UsageError(
            f"--target and the plan {arguments.columns} both name the column "
            f"{arguments.target!r}. Remove it from the plan."
        )
    # What the command says of a column comes before what the plan says.
    return {k: v for k, v in columns.items() if k not in (arguments.id, arguments.weight)}


def _shown(columns: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield aligned(
        ("column", "read as", "made into", "missing", "distinct", "examples"),
        [
            (
                *(name, entry["read_as"], entry["made_into"]),
                f"{entry['missing']:,}" if entry["missing"] else "",
                "" if entry["distinct"] is None else f"{entry['distinct']:,}",
                " | ".join(entry["examples"]),
            )
            for name, entry in columns.items()
        ],
        right=(3, 4),
    )
    yield from to_look_at({name: entry["look"] for name, entry in columns.items()})


def to_look_at(looks: Mapping[str, str]) -> Iterator[str]:
    """Yield a list of columns with what is to be looked at, in full; those alike share a line."""
    found = grouped(looks)
    if found:
        yield "\nColumns to look at:"
    for look, names in found.items():
        yield wrapped(f"- {names}: {look}", hanging="  ")
