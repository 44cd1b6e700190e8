"""What is wrong with a table is told in words, and by attributes for programs."""

from __future__ import annotations

import datetime as dt
import io
from types import SimpleNamespace

import pyarrow as pa
import pytest

from neverworse.tables import (
    Noticed,
    PlanError,
    ReadOptions,
    TableClassifier,
    TableError,
    TablePreparation,
    outputs,
    predict_batches,
    read_table,
    read_target,
    table_files,
)
from neverworse.tables.reading import formats

READABLE = {"x": [1.0, 2.0, 3.0]}


def caught(function, *arguments, kind=TableError, **named):
    with pytest.raises(kind) as found:
        function(*arguments, **named)
    return found.value


def test_errors_name_code_column_row_and_fix(tmp_path):
    error = caught(TablePreparation().fit, {"x": [1.0, float("inf"), 2.0]})
    assert (error.code, error.column, error.row) == ("value", "x", 1)
    assert error.fix == "Correct it, leave the cell empty, or leave the column out: --drop 'x'."
    assert str(error) == f"{error.problem} in row 2. {error.fix}"

    error = caught(read_target, pa.table(READABLE), "y")
    assert (error.code, error.column, error.row) == ("column", "y", None)
    assert str(error) == f"{error.problem} {error.fix}"

    error = caught(read_target, pa.table({"y": ["a", "a"]}), "y")
    assert (error.code, error.column) == ("label", "y")

    error = caught(table_files, [str(tmp_path / "none.csv")])
    assert (error.code, error.column) == ("file", None)
    assert error.fix == "Check the name and the folder."


def test_several_unreadable_columns_are_one_error_with_all_reasons():
    table = {"a": ["1,5", "2.5"] * 10, "b": ["01/02/2026", "03/04/2026"] * 10, "c": range(20)}
    error = caught(TablePreparation().fit, pa.table({k: pa.array(v) for k, v in table.items()}))
    assert str(error).startswith("2 columns cannot be read:\n- Column 'a' has numbers such as ")
    assert "\n- Column 'b' has dates such as " in str(error)
    only = caught(TablePreparation(drop=["a"]).fit, pa.table(table | {"c": list(range(20))}))
    assert only.column == "b"
    assert "--dates day-first" in only.fix


def test_a_column_that_only_the_plan_has_is_an_error_of_the_plan():
    plan = {"X": {"kind": "number"}}
    error = caught(TablePreparation(columns=plan).fit, READABLE, kind=PlanError)
    assert "Did you mean 'x'?" in str(error)


def source(content, piped, tmp_path, monkeypatch):
    """Return a file, or standard input, with this content."""
    if piped:
        stdin = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: False)
        monkeypatch.setattr("sys.stdin", stdin)
        return table_files(["-"])
    (tmp_path / "t.csv").write_bytes(content)
    return table_files([str(tmp_path / "t.csv")])


TABLE = pa.table(
    {
        "a": [1.5, 2.0, None] * 4,
        "b": pa.array([dt.datetime(2026, 1, 31), dt.datetime(2026, 2, 28, 10), None] * 4),
        "c": [True, False, None] * 4,
        "d": pa.array([dt.time(12, 30), None, dt.time(23, 59)] * 4),
    }
)
ROWS = b"a,b,c,d\n1.5,2026-01-31,true,12:30:00\n 2 ,2026-02-28 10:00:00,0,\n,NA,,23:59\n"


def predicted(files):
    """Scores of a model of `TABLE` for the rows of files, one block of text after another."""
    model = TableClassifier().fit(TABLE, ["yes", "no", *[None] * 10])
    batches = predict_batches(model, files, ReadOptions(), Noticed())
    return model, pa.concat_tables(batches).column("score").to_numpy()


@pytest.mark.parametrize("piped", [False, True])
def test_text_is_converted_alike_from_files_and_pipes(piped, tmp_path, monkeypatch):
    model, scores = predicted(source(ROWS, piped, tmp_path, monkeypatch))
    expected = outputs(model.estimator_, model.preparation_.transform(TABLE.slice(0, 3)))[1]
    assert scores.tolist() == pytest.approx(expected.tolist(), abs=1e-12)


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("block", [64, 1 << 20])
@pytest.mark.parametrize(
    ("column", "value", "should_hold"),
    [
        ("a", "1.2.3", "numbers"),
        ("b", "31.01.2026", "dates (2026-01-31)"),
        ("c", "perhaps", "true/false"),
        ("d", "noon", "times of day"),
    ],
)
def test_a_value_of_another_type_is_named(
    column, value, should_hold, block, piped, tmp_path, monkeypatch
):
    monkeypatch.setattr(formats, "BLOCK_BYTES", block)
    cells = dict.fromkeys("abcd", "") | {column: f'"{value}"'}
    wrong = ",".join(cells.values()).encode() + b"\n"
    files = source(ROWS + wrong + ROWS.partition(b"\n")[2], piped, tmp_path, monkeypatch)
    error = caught(predicted, files)
    assert (error.column, error.row) == (column, 3)
    assert f"should hold {should_hold}, but has {value!r} in row 4." in str(error)
    assert error.fix == f"Correct it; if it marks missing values: --missing {value!r}."


@pytest.mark.parametrize("piped", [False, True])
def test_a_row_of_another_width_is_named_by_its_line(piped, tmp_path, monkeypatch):
    content = b'a,b\n1,"two\nlines"\n\n3,4\n5,6,7\n8,9\n'
    files = source(content, piped, tmp_path, monkeypatch)
    error = caught(read_table, files, ReadOptions())
    assert "has 3 cells in line 6, but 2 columns." in str(error)
