"""Notations in files: found from some rows, checked on all, and the same for later rows."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.cli import main
from neverworse.study import FitSettings, fit_table
from neverworse.tables import (
    Noticed,
    ReadOptions,
    TableClassifier,
    TableError,
    TablePreparation,
    found_options,
    predict_batches,
    read_table,
    table_files,
)
from neverworse.tables.reading import formats
from tests.tables.messy import TABLES

GERMAN = TABLES["german_clinic"]


def read(path, text=frozenset(), **options):
    files = table_files([str(path)])
    found = found_options(files, ReadOptions(text=frozenset(text), **options))
    return read_table(files, found), found


def german(tmp_path):
    """The table as it is read, and a model of it."""
    path = tmp_path / "t.csv"
    path.write_bytes(GERMAN.csv)
    table, found = read(path, {"Befund"}, missing=("k.A.",))
    classifier = ProjectedLeastSquaresClassifier(alpha=1.0, missing_label=np.nan)
    model = TableClassifier(classifier, decimal=found.decimal)
    model.fit(table.drop_columns(["Befund"]), table.column("Befund"))
    return path, table, model


def test_numbers_and_dates_are_those_of_pandas(tmp_path):
    _, table, model = german(tmp_path)
    by_hand = pd.read_csv(
        io.BytesIO(GERMAN.csv),
        sep=";",
        decimal=",",
        thousands=".",
        na_values=["k.A."],
        dtype={"PLZ": str, "Anteil": str, "Aufnahme": str},
        encoding="utf-8-sig",
    ).drop(columns="Befund")
    by_hand["Aufnahme"] = pd.to_datetime(by_hand["Aufnahme"], format="%d.%m.%Y")
    by_hand["Anteil"] = by_hand["Anteil"].str.rstrip(" %").str.replace(",", ".").astype(float)
    by_hand["Raucher"] = (by_hand["Raucher"] == "ja").astype(float)
    expected = TablePreparation(categorical=["PLZ"]).fit(by_hand)
    ours = model.preparation_
    assert ours.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    np.testing.assert_allclose(ours.transform(table), expected.transform(by_hand), atol=1e-9)


@pytest.mark.parametrize("block", [1 << 11, 8 << 20])
def test_new_rows_are_read_in_the_same_way(tmp_path, monkeypatch, block):
    path, table, model = german(tmp_path)
    monkeypatch.setattr(formats, "BLOCK_BYTES", block)
    options = ReadOptions(missing=("k.A.",))
    found = pa.concat_tables(predict_batches(model, table_files([str(path)]), options, Noticed()))
    assert found.column("prediction").to_pylist() == model.predict(table).tolist()
    # The same values from a file that knows its types.
    parquet.write_table(table, tmp_path / "t.parquet")
    stored = table_files([str(tmp_path / "t.parquet")])
    again = pa.concat_tables(predict_batches(model, stored, options, Noticed()))
    np.testing.assert_allclose(again.column("score"), found.column("score"), rtol=1e-12)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("Kosten", "viel", "thousands '.', decimal ',', but has 'viel' in row 201."),
        ("Kosten", "1,234.5", "but has '1,234.5' in row 201."),
        ("Wert", "5.3", "should hold numbers, decimal ',', but has '5.3' in row 201."),
        ("Aufnahme", "05/20/2021", "day.month.year, but has '05/20/2021' in row 201."),
        ("Raucher", "vielleicht", "should hold yes/no, but has 'vielleicht' in row 201."),
        ("Anteil", "0,3", "should hold percent, decimal ',', but has '0,3' in row 201."),
    ],
)
@pytest.mark.parametrize("block", [1 << 11, 8 << 20])
def test_a_value_that_does_not_fit_is_named(tmp_path, monkeypatch, column, value, said, block):
    path, _, model = german(tmp_path)
    monkeypatch.setattr(formats, "BLOCK_BYTES", block)
    new = pd.read_csv(path, sep=";", dtype=str, encoding="utf-8-sig")
    new.loc[200, column] = value
    new.to_csv(path, sep=";", index=False)
    options = ReadOptions(missing=("k.A.",))
    with pytest.raises(TableError) as caught:
        list(predict_batches(model, table_files([str(path)]), options, Noticed()))
    assert f"Column '{column}'" in str(caught.value)
    assert said in str(caught.value)


def test_tables_in_files_give_the_same_features(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(GERMAN.csv)
    fit = ["fit", "t.csv", "--target", GERMAN.target, *GERMAN.options, "--quiet", "--plan"]
    assert main([*fit, "here.json"]) == 0
    assert main([*fit, "away.json", "--memory", "1e-7"]) == 0
    assert (tmp_path / "here.json").read_text() == (tmp_path / "away.json").read_text()


def test_a_table_in_a_file_names_the_row_of_a_value_that_does_not_fit(
    tmp_path, capsys, monkeypatch
):
    """Though PyArrow took the column for numbers, from its first rows."""
    monkeypatch.setattr(formats, "BLOCK_BYTES", 1 << 12)
    rows = [f"{k}.25,{'ab'[k % 2] if k < 20 else ''}" for k in range(4_000)]
    rows[3_900] = "x,"
    (tmp_path / "t.csv").write_text("\n".join(["n,y", *rows]))
    assert main(["fit", str(tmp_path / "t.csv"), "--target", "y", "--memory", "1e-7"]) == 4
    said = " ".join(capsys.readouterr().err.split())
    assert "but also 'x' in 1 of its rows, first in row 3,901." in said


def test_an_explicit_decimal_mark_is_binding(tmp_path, capsys):
    rows = [f"{k},5;{'ab'[k % 2] if k < 20 else ''}" for k in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["dose;y", *rows]))
    fit = ["fit", str(tmp_path / "t.csv"), "--target", "y", "--plan"]
    assert main([*fit, "--quiet"]) == 0
    assert main([*fit, "--decimal", "."]) == 4
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "Column 'dose' has numbers such as '0,5', but the decimal mark of the table is '.'" in said
    )


# What some rows tell


def test_codes_far_from_the_beginning_are_found(tmp_path):
    rng = np.random.default_rng(0)
    codes = [f"{k}" for k in rng.integers(10_000, 99_999, 200_000)]
    codes[150_000:] = [f"0{code[1:]}" for code in codes[150_000:]]
    (tmp_path / "t.csv").write_text("\n".join(["zip,n", *(f"{code},1" for code in codes)]))
    table, found = read(tmp_path / "t.csv")
    assert found.text == {"zip"}
    assert table.column("zip").cast(pa.string()).to_pylist() == codes


@pytest.mark.parametrize(
    ("rows", "decimal"),
    [
        (["1.5;x", "2;y"], "."),
        (["1,5;x", "2;y"], ","),
        (["1,5;2.25", "2;3.5"], None),
        (["1,892;x", "2;y"], None),
        (["1.892;x", "2;y"], None),
        (["1.892,5;1.892", "2;364"], ","),
        (["2;Smith, 5", "3;Jones, 7"], None),
        (["20.05.2021;1", "21.05.2021;2"], None),
    ],
)
def test_decimal_marks_are_found_where_columns_agree(tmp_path, rows, decimal):
    (tmp_path / "t.csv").write_text("\n".join(["a;b", *rows]))
    assert read(tmp_path / "t.csv")[1].decimal == decimal
    assert read(tmp_path / "t.csv", decimal=".")[1].decimal == "."


def test_a_number_that_marks_gaps_is_the_same_in_all_spellings(tmp_path):
    values = [1.5, -999.0, 3.0, -999.0]
    (tmp_path / "t.csv").write_text("a,b\n1.5,7\n-999.0,-999\n3.0, - \n-9.99e2,8\n")
    table, _ = read(tmp_path / "t.csv", missing=("-999", "-"))
    assert table.column("a").to_pylist() == [1.5, None, 3.0, None]
    assert table.column("b").null_count == 2
    parquet.write_table(pa.table({"a": values, "n": [1, -999, 3, 4]}), tmp_path / "t.parquet")
    table, _ = read(tmp_path / "t.parquet", missing=("-999",))
    assert table.column("a").to_pylist() == [1.5, None, 3.0, None]
    assert table.column("n").to_pylist() == [1, None, 3, 4]


def test_cells_of_spaces_are_missing_and_spaces_around_values_do_not_matter(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n 5.5 ,x\n  ,x \n7, y\n 8,  \n")
    table, _ = read(tmp_path / "t.csv")
    plans = {plan.name: plan for plan in TablePreparation().fit(table).plans_}
    assert (plans["a"].kind, plans["a"].n_missing) == ("number", 1)
    assert plans["b"].levels == ("x", "y", None)


def test_weights_and_a_target_are_no_part_of_the_plan(tmp_path):
    (tmp_path / "t.csv").write_bytes(GERMAN.csv)
    table, found = read(tmp_path / "t.csv", {"Befund"}, missing=("k.A.",))
    settings = FitSettings("Befund", alpha=1.0, decimal=found.decimal, drop=("PLZ",))
    fit = fit_table(table, settings)
    assert "Befund" not in fit.model.preparation_.plan_
    assert fit.model.preparation_.plan_["PLZ"] == {"kind": "drop"}
    assert fit.looks == {}
