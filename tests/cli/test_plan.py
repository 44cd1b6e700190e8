"""Plans of how columns are read: shown, saved, edited, given back, and kept in the model."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from neverworse.cli import main
from neverworse.cli.fit import columns_to_check
from neverworse.tables import load_model
from tests.tables.messy import TABLES


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a table of two labels: too few for a comparison, which would take long."""
    monkeypatch.chdir(tmp_path)
    header, *rows = TABLES["german_clinic"].csv.decode("utf-8-sig").splitlines()
    kept = [next(row for row in rows if row.endswith(f";{label}")) for label in ("gesund", "krank")]
    rows = [row if row in kept else row.rpartition(";")[0] + ";" for row in rows]
    (tmp_path / "t.csv").write_text("\n".join([header, *rows]))
    return tmp_path


FIT = ["fit", "t.csv", "--target", "Befund", "--missing", "k.A."]
QUICK = ["--alpha", "1", "--no-curves", "--quiet"]


def edited(path, **changes):
    plan = json.loads(path.read_text())
    for name, entry in changes.items():
        plan["columns"][name] = entry
    path.write_text(json.dumps(plan))


def test_a_plan_is_shown_and_nothing_is_fitted(place, capsys):
    assert main([*FIT, "--plan"]) == 0
    said = capsys.readouterr().out
    assert "column    read as                              made into" in said
    assert "Aufnahme  dates day.month.year                 days, and place in the year" in said
    assert "23.05.2021 | 19.06.2020" in said
    assert "Columns to check:\n- 'PLZ': Codes with leading zeros, such as '01067'" in said
    assert sorted(path.name for path in place.iterdir()) == ["t.csv"]


def test_a_plan_is_saved_edited_given_back_and_kept(place, capsys):
    assert main([*FIT, "--plan", "p.json"]) == 0
    assert "--columns p.json" in capsys.readouterr().out
    plan = json.loads((place / "p.json").read_text())
    assert plan["columns"]["Kosten"].items() >= {
        ("kind", "number"), ("thousands", "."), ("decimal", ","), ("missing", 0), ("distinct", 240)
    }  # fmt: skip
    # Unchanged, it makes no difference.
    assert main([*FIT, *QUICK, "--out", "a"]) == 0
    assert main([*FIT, *QUICK, "--out", "b", "--columns", "p.json"]) == 0
    first, second = (pd.read_csv(place / out / "predictions.csv") for out in "ab")
    pd.testing.assert_frame_equal(first, second)
    edited(place / "p.json", PLZ={"kind": "number"}, Anteil={"kind": "drop"})
    assert main([*FIT, *QUICK, "--out", "c", "--columns", "p.json"]) == 0
    preparation = load_model(place / "c" / "model.skops").model.preparation_
    assert preparation.plan_["PLZ"] == {"kind": "number"}
    assert preparation.plan_["Anteil"] == {"kind": "drop"}
    assert preparation.plan_["Aufnahme"] == {"kind": "date", "order": "day.month.year"}
    assert "PLZ" in preparation.number_names_
    assert "Anteil" not in preparation.feature_columns_


def test_only_some_columns_and_options_that_go_first(place, capsys):
    plan = {"neverworse_plan": 1, "columns": {"PLZ": {"kind": "number"}}}
    # What a shell of Windows writes.
    (place / "p.json").write_bytes(json.dumps(plan).encode("utf-16"))
    assert main([*FIT, "--plan", "--json", "--columns", "p.json"]) == 0
    shown = json.loads(capsys.readouterr().out)["columns"]
    assert (shown["PLZ"]["kind"], shown["Raucher"]["kind"]) == ("number", "yes/no")
    assert main([*FIT, "--plan", "--json", "--columns", "p.json", "--categorical", "PLZ"]) == 0
    assert json.loads(capsys.readouterr().out)["columns"]["PLZ"]["kind"] == "category"


def test_the_id_of_the_command_goes_first(place):
    plan = {"neverworse_plan": 1, "columns": {"PLZ": {"kind": "number"}}}
    (place / "p.json").write_text(json.dumps(plan))
    assert main([*FIT, *QUICK, "--out", "i", "--columns", "p.json", "--id", "PLZ"]) == 0
    assert "PLZ" not in load_model(place / "i" / "model.skops").model.preparation_.plan_


def test_a_plan_says_how_numbers_are_written(place, capsys):
    """What is read as 1.892 by itself can be said to be 1892."""
    rng = np.random.default_rng(0)
    steps = rng.integers(1001, 9999, 60)
    labels = ["a", "b", *[""] * 58]
    rows = [f"{n // 1000}.{n % 1000:03d};{label}" for n, label in zip(steps, labels, strict=True)]
    (place / "s.csv").write_text("\n".join(["steps;y", *rows]))
    plan = {"kind": "number", "thousands": ".", "decimal": ","}
    text = json.dumps({"neverworse_plan": 1, "columns": {"steps": plan}})
    (place / "p.json").write_text(text)
    for words, scale in (([], 1e-3), (["--columns", "p.json"], 1.0), (["--decimal", ","], 1.0)):
        fit = ["fit", "s.csv", "--target", "y", *QUICK, "--out", "o", *words]
        assert main(fit) == 0
        offset = load_model(place / "o" / "model.skops").model.preparation_.offsets()[0]
        assert offset == pytest.approx(scale * steps.mean())


@pytest.mark.parametrize(
    ("columns", "code", "said"),
    [
        (
            {"Kostn": {"kind": "drop"}},
            2,
            "column 'Kostn', but the table does not. Did you mean 'Kosten'?",
        ),
        (
            {"PLZ": {"kind": "numeric"}},
            2,
            "column 'PLZ' cannot be used: kind is one of 'number',",
        ),
        ({"PLZ": {"kind": "number", "decimal": ";"}}, 2, "decimal is one of '.', ',', not ';'"),
        ({"PLZ": {"kind": "date", "order": "dmy"}}, 2, "order is one of '', 'day.month.year', "),
        ({"PLZ": {"kind": "number", "unti": "kg"}}, 2, "has 'unti'. Did you mean 'unit'?"),
        ({"PLZ": {"unit": "kg"}}, 2, "'yes/no', 'drop', not None."),
        ({"PLZ": "number"}, 2, "'yes/no', 'drop', not None."),
        ({"Befund": {"kind": "category"}}, 2, "--target and the plan p.json both name"),
        ({"Raucher": {"kind": "number"}}, 4, "should hold numbers, but has 'ja' in row 1."),
        ({"Wert": {"kind": "date"}}, 4, "should hold dates (2026-01-31), but holds values"),
        (["PLZ"], 2, "is not a plan"),
    ],
)
def test_plans_that_cannot_be_used(place, capsys, columns, code, said):
    plan = {"neverworse_plan": 1, "columns": columns}
    (place / "p.json").write_text(json.dumps(plan))
    assert main([*FIT, *QUICK, "--columns", "p.json"]) == code
    assert said in " ".join(capsys.readouterr().err.split())


def test_files_that_are_no_plans(place, capsys):
    (place / "list.json").write_text("[]")
    (place / "later.json").write_text('{"neverworse_plan": 2, "columns": {}}')
    said = {
        "t.csv": "t.csv is not a plan",
        "none.json": "There is no plan none.json. Make one with --plan none.json.",
        ".": "There is no plan .",
        "list.json": "list.json is not a plan of version 1. Make one",
        "later.json": "later.json is not a plan of version 1.",
    }
    for name, words in said.items():
        assert main([*FIT, "--columns", name]) == 2
        assert words in capsys.readouterr().err
    assert main([*FIT, "--plan", "none/p.json"]) == 2


def test_a_table_behind_the_option_is_not_replaced(place, capsys):
    before = (place / "t.csv").read_bytes()
    assert main(["fit", "--plan", "t.csv", "--target", "Befund"]) == 2
    assert "Put --plan after the tables" in capsys.readouterr().err
    assert (place / "t.csv").read_bytes() == before


def test_notes_are_never_cut_off_and_those_alike_share_a_line():
    long = "word " * 60 + "--drop 'x'."
    said = "\n".join(columns_to_check({"x": long, "a": "Same.", "b": "Same.", "c": ""}))
    assert " ".join(said.split()).endswith(f"- 'x': {' '.join(long.split())} - 'a', 'b': Same.")
    assert list(columns_to_check({"c": ""})) == []


TWO_UNREADABLE = """seen,dose,age,y
01/02/2026,"1,5",31,a
03/04/2026,2.5,45,b
05/06/2026,"3,5",62,
07/08/2026,4.5,18,
"""


def test_all_columns_that_cannot_be_read_are_told_at_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TWO_UNREADABLE)
    fit = ["fit", "t.csv", "--target", "y"]
    assert main([*fit, "--plan", "p.json"]) == 4
    shown = capsys.readouterr()
    assert shown.err.startswith("neverworse fit: error: 2 columns cannot be read:\n- Column 'seen'")
    assert "\n- Column 'dose' has numbers such as '2.5', but also '1,5', '3,5' in 2" in shown.err
    assert "--dates day-first" in shown.err
    assert "--categorical 'dose'" in shown.err
    assert "age     numbers  scaled" in shown.out
    assert shown.out.count("not used: cannot be read") == 2
    columns = json.loads((tmp_path / "p.json").read_text())["columns"]
    assert [entry["kind"] for entry in columns.values()] == ["unreadable", "unreadable", "number"]
    assert "--dates day-first" in columns["seen"]["look"]
    # Nothing is fitted, for the same reasons.
    assert main([*fit, "--quiet"]) == 4
    assert capsys.readouterr().err == shown.err
    # The plan has to be edited before it can be given back.
    assert main([*fit, "--columns", "p.json", "--plan"]) == 2
    assert "column 'seen' cannot be used: kind is one of" in capsys.readouterr().err
    edited(tmp_path / "p.json", seen={"kind": "date", "order": "day/month/year"})
    edited(tmp_path / "p.json", dose={"kind": "category"})
    assert main([*fit, "--columns", "p.json", "--plan"]) == 0
