"""``neverworse predict`` through the real command: streams, formats, notes and what is wrong."""

from __future__ import annotations

import csv
import io
import json
import pickle
import subprocess

import numpy as np
import openpyxl
import pandas as pd
import pytest

from neverworse.cli import main
from tests.cli.tables import COMMAND, files_in, patients, quick, small_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model and tables."""
    folder = tmp_path_factory.mktemp("predict")
    table = patients()
    table.to_csv(folder / "patients.csv", index=False)
    table.to_parquet(folder / "patients.parquet")
    arguments = ["--target", "diagnosis", "--id", "patient", "--alpha", "1", "--no-curves"]
    out = ["--candidates", "none", "--out", str(folder / "results"), "--quiet"]
    assert main(["fit", str(folder / "patients.csv"), *arguments, *out]) == 0
    (folder / "results" / "model.skops").rename(folder / "model.skops")
    return folder


def as_frame(text):
    return pd.read_csv(io.StringIO(text), dtype={"patient": str})


def test_predictions_are_those_of_the_fit(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["predict", "model.skops", "patients.csv", "--id", "patient"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = as_frame(out).set_index("patient")
    fitted = pd.read_csv(folder / "results" / "predictions.csv", dtype={"patient": str})
    fitted = fitted.set_index("patient")
    found = found.loc[fitted.index]
    assert found["prediction"].tolist() == fitted["prediction"].tolist()
    np.testing.assert_allclose(found["score"], fitted["score"], atol=1e-9)


def test_tables_with_another_decimal_mark(folder, tmp_path, capsys):
    commas = tmp_path / "commas.csv"
    patients().to_csv(commas, index=False, sep=";", decimal=",")
    said = []
    for table, mark in ((folder / "patients.csv", []), (commas, ["--decimal", ","])):
        assert main(["predict", str(folder / "model.skops"), str(table), *mark]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    audit = ["audit", str(folder / "model.skops"), str(commas), "--target", "diagnosis", "--json"]
    assert main([*audit, "--decimal", ","]) == 0
    assert main(["predict", str(folder / "model.skops"), str(commas)]) == 4
    assert "--decimal ','" in capsys.readouterr().err


def test_formats_and_streams_agree(folder, tmp_path, monkeypatch, capsys):
    model, table = str(folder / "model.skops"), str(folder / "patients.parquet")
    frames = {}
    for suffix in (".csv", ".parquet", ".jsonl"):
        out = tmp_path / f"p{suffix}"
        words = ["predict", model, table, "--probabilities", "--out", str(out), "--json"]
        assert main(words) == 0
        summary = json.loads(capsys.readouterr().out)
        assert summary["n_rows"] == 569
        assert sum(summary["classes"].values()) == 569
        assert summary["ignored_columns"] == []
        read = {".csv": pd.read_csv, ".parquet": pd.read_parquet}.get(
            suffix, lambda path: pd.read_json(path, lines=True)
        )
        frames[suffix] = read(out)
    pd.testing.assert_frame_equal(frames[".csv"], frames[".parquet"])
    pd.testing.assert_frame_equal(frames[".csv"], frames[".jsonl"])
    shares = frames[".csv"].filter(like="probability: ")
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
    table = io.BytesIO(patients().to_csv(index=False).encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(table))
    assert main(["predict", model, "-", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["prediction"] for line in lines] == frames[".csv"]["prediction"].tolist()


def test_notes_and_quiet(folder, tmp_path, capsys):
    table = patients().assign(extra=1)
    table.loc[3, "clinic"] = "new\x1b[31m"
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["predict", str(folder / "model.skops"), str(tmp_path / "t.csv")]
    assert main(words) == 0
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "neverworse predict: note: Ignored 1 column: 'extra'."
    assert err[1].startswith("neverworse predict: note: Column 'clinic' has values that the model")
    assert "\x1b" not in err[1]
    assert main([*words, "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*words, "--quiet", "--out", str(tmp_path / "p.csv")]) == 0
    assert capsys.readouterr() == ("", "")
    assert main([*words, "--out", str(tmp_path / "p.csv")]) == 0
    assert capsys.readouterr().out.startswith(f"Written: {tmp_path / 'p.csv'}, 569 rows (benign: ")


def test_the_reader_that_has_seen_enough(folder, tmp_path):
    pd.concat([patients()] * 30).to_csv(tmp_path / "big.csv", index=False)
    process = subprocess.Popen(
        [*COMMAND, "predict", str(folder / "model.skops"), str(tmp_path / "big.csv")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == '"row","prediction","score"\n'
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 141
    process.stderr.close()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_disk_that_fills(folder, tmp_path, capsys, suffix):
    out = tmp_path / f"p{suffix}"
    out.write_text("old")
    words = [str(folder / "model.skops"), str(folder / "patients.csv"), "--out", str(out)]
    with small_files(3000):
        assert main(["predict", *words]) == 1
    assert capsys.readouterr().err == "neverworse predict: error: File too large\n"
    assert files_in(tmp_path) == [out.name]
    assert out.read_text() == "old"


def test_a_table_that_breaks_off_leaves_the_old_file(folder, tmp_path, capsys):
    (tmp_path / "p.csv").write_text("old")
    table = patients().astype({"mean area": object})
    table.loc[500, "mean area"] = "?"
    table.to_csv(tmp_path / "t.csv", index=False)
    words = [str(folder / "model.skops"), str(tmp_path / "t.csv"), "--out", str(tmp_path / "p.csv")]
    assert main(["predict", *words]) == 4
    said = capsys.readouterr().err
    assert "Column 'mean area' should hold numbers" in said
    assert "should hold numbers, but has '?' in row 501. Correct it; if it marks missing" in said
    assert files_in(tmp_path) == ["p.csv", "t.csv"]
    assert (tmp_path / "p.csv").read_text() == "old"
    assert main(["predict", *words, "--missing", "?"]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("none.skops patients.csv", 5, "There is no file"),
        ("results patients.csv", 5, "There is no file results. Give the model.skops of a fit."),
        ("patients.csv patients.csv", 5, "is not a model file, which is a zip archive."),
        ("pickle patients.csv", 5, "is a pickle (of pickle or joblib)"),
        ("truncated patients.csv", 5, "truncated"),
        ("changed patients.csv", 5, "changed"),
        ("model.skops none.csv", 4, "There is no file"),
        ("model.skops lacks.csv", 4, "lacks 1 column that the model was fitted to: 'clinic'."),
        ("model.skops empty.csv", 4, "is empty. Give a table"),
        ("model.skops header.csv", 4, "The table has no rows."),
        ("model.skops patients.csv --id pat", 4, "no column 'pat' for --id. Did you mean 'pati"),
        ("model.skops patients.csv --out x.txt", 2, "--out ends in .csv, .parquet, .jsonl"),
        ("model.skops patients.csv --out none/x.csv", 2, "none/x.csv cannot be written."),
        ("model.skops patients.csv --out folder.csv", 2, "folder.csv cannot be written."),
        ("model.skops patients.csv --out patients.csv", 2, "--out would replace the table"),
        ("model.skops", 2, "the following arguments are required: TABLE"),
    ],
)
def test_what_is_wrong(folder, tmp_path, monkeypatch, capsys, arguments, code, said):
    table = patients()
    model = (folder / "model.skops").read_bytes()
    middle = len(model) // 2
    contents = {
        "model.skops": model,
        "truncated": model[:middle],
        "changed": model[:middle] + bytes([model[middle] ^ 1]) + model[middle + 1 :],
        "pickle": pickle.dumps(print),
        "patients.csv": table.to_csv(index=False).encode(),
        "lacks.csv": table.drop(columns="clinic").to_csv(index=False).encode(),
        "header.csv": table.head(0).to_csv(index=False).encode(),
        "empty.csv": b"",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "results").mkdir()
    (tmp_path / "folder.csv").mkdir()
    there = files_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["predict", *arguments.split()]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("neverworse predict: error: ")
    assert said in err
    assert files_in(tmp_path) == there


def test_standard_output_that_is_closed(folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout", None)
    words = [str(folder / "model.skops"), str(folder / "patients.csv")]
    assert main(["predict", *words]) == 1
    assert "Standard output is closed. Name a file: --out FILE." in capsys.readouterr().err


FORMULAS = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "-5", "+1.5e3", "a=b", "'x", "-"]
SAFE = ["'=1+1", "'+cmd", "'-2+3", "'@SUM(A1)", "'\t=1", "-5", "+1.5e3", "a=b", "'x", "'-"]


@pytest.mark.parametrize(("option", "expected"), [((), SAFE), (("--keep-formulas",), FORMULAS)])
def test_ids_and_classes_that_a_spreadsheet_would_run(tmp_path, capfdbinary, option, expected):
    table = quick().assign(**{"=id": FORMULAS * 10})
    table["species"] = table["species"].replace({"small": "=2*3", "large": "+9+9"})
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["--id", "=id", "--quiet", *option]
    fit = ["fit", str(tmp_path / "t.csv"), "--target", "species", "--alpha", "1"]
    assert main([*fit, *words, "--out", str(tmp_path / "out")]) == 0
    predict = ["predict", str(tmp_path / "out" / "model.skops"), str(tmp_path / "t.csv"), *words]
    assert main([*predict, "--out", str(tmp_path / "p.csv")]) == 0
    assert main(predict) == 0
    printed = capfdbinary.readouterr().out.decode()
    assert printed == (tmp_path / "p.csv").read_text()
    names = {"=id", "=2*3", "+9+9"} if option else {"'=id", "'=2*3", "'+9+9"}
    for path, n_labeled in ((tmp_path / "out" / "predictions.csv", 2), (tmp_path / "p.csv", 0)):
        with path.open(newline="") as file:
            rows = list(csv.reader(file))
        assert {rows[0][0], *(row[1] for row in rows[1:])} == names
        ids = [row[0] for row in rows[1:]]
        assert set(ids) == set(expected)
        assert len(ids) == 100 - n_labeled
        # What a spreadsheet makes of it.
        sheet = openpyxl.Workbook().active
        for row in rows:
            sheet.append(row)
        formulas = [cell for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]
        assert bool(formulas) == bool(option)
    assert main([*predict, "--out", str(tmp_path / "p.jsonl")]) == 0
    kept = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [row["=id"] for row in kept] == FORMULAS * 10
