"""Messy tables are read as they are meant, or refused in words that help."""

from __future__ import annotations

import json

import pytest

from neverworse.cli import main
from tests.tables.messy import TABLES


def planned(name, tmp_path, *words):
    table = TABLES[name]
    (tmp_path / "t.csv").write_bytes(table.csv)
    path = str(tmp_path / "t.csv")
    return main(["fit", path, "--target", table.target, *table.options, "--plan", *words])


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if not table.refused])
def test_columns_are_read_as_they_are_meant(name, tmp_path, capsys):
    table = TABLES[name]
    assert planned(name, tmp_path, "--json") == 0
    columns = json.loads(capsys.readouterr().out)["columns"]
    assert {column: entry["read_as"] for column, entry in columns.items()} == table.kinds
    assert {column for column, entry in columns.items() if entry["look"]} == table.look


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.refused])
def test_tables_that_are_refused(name, tmp_path, capsys):
    assert planned(name, tmp_path) == 4
    shown = capsys.readouterr()
    assert TABLES[name].refused in shown.err
    assert ("not used: cannot be read" in shown.out) == (name != "same_names")
