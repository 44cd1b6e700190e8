"""``neverworse fit`` through the real command, on real files, and with everything that is wrong."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from neverworse import ProjectedLeastSquaresClassifier
from neverworse._words import printed
from neverworse.cli import main
from neverworse.cli._common import parse_prior
from neverworse.cli._options import number
from neverworse.study import OUTPUTS, read_study, write_report
from neverworse.tables import load_model
from tests.cli.tables import (
    COMMAND,
    files_in,
    flowers,
    needs_any_name,
    needs_signals,
    neverworse,
    patients,
    quick,
    small_files,
)
from tests.study.report.test_browser import BROWSER, opened

QUICK = ("--alpha", "1", "--no-curves", "--candidates", "none")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A fit with everything that it says and writes."""
    folder = tmp_path_factory.mktemp("patients")
    patients().to_csv(folder / "patients.csv", index=False)
    ran = neverworse(
        *("fit", "patients.csv", "--target", "diagnosis", "--id", "patient", "--alpha", "0"),
        *("--out", "results"),
        cwd=folder,
    )
    return folder, ran


def test_everything_is_written_and_said(fitted):
    folder, ran = fitted
    assert (ran.returncode, ran.stderr) == (0, "")
    assert files_in(folder) == ["patients.csv", "results"]
    assert files_in(folder / "results") == sorted(OUTPUTS)
    said = " ".join(ran.stdout.split())
    document = json.loads((folder / "results" / "certificate.json").read_text())
    certificate = document["certificate"]
    assert "Read 569 rows from patients.csv: 30 with a label in 'diagnosis', 539 without." in said
    assert document["claim"] in said
    assert certificate["summary"] in said
    assert re.search(r"clinic categories 3 levels, compared with '[\w, ]+' 2", said)
    assert "visit dates days, and place in the year and week 5" in said
    assert "mean texture numbers scaled, missing: mean and an indicator" in said
    study = read_study(folder / "results")
    assert said.startswith(f"{study.verdict.headline} How good {study.verdict.quality} Certain ")
    rungs = [sentence for rung in study.ladder for sentence in rung.words]
    for sentence in (
        *rungs,
        *study.verdict.reasons,
        *study.verdict.cautions,
        *study.verdict.advice,
    ):
        assert printed(sentence) in said
    number, change = r"0\.\d{3}", r"[+-]?0\.\d{3}"
    step = rf"{change} \({change} to {change}\)"
    for name, last in (("supervised", ""), ("projected", f" {step}"), ("ICLS", f" {step}")):
        assert re.search(rf"{name}( {number}){{4}}{last}", said), name
    assert re.search(rf"always '\w+'( {number}){{4}} supervised", said)
    assert certificate["holds"]
    assert certificate["guaranteed_improvement"] > 0
    assert max(map(len, ran.stdout.splitlines())) <= 100


def test_files_agree_with_a_fit_by_hand(fitted):
    folder, _ = fitted
    table = pd.read_csv(folder / "patients.csv", dtype={"patient": str})
    loaded = load_model(folder / "results" / "model.skops")
    document = json.loads((folder / "results" / "certificate.json").read_text())
    labels = table["diagnosis"].astype(object).where(table["diagnosis"].notna(), None)
    visits = table.assign(visit=pd.to_datetime(table["visit"]))
    features = loaded.model.preparation_.transform(visits)
    by_hand = ProjectedLeastSquaresClassifier(alpha=0.0).fit(features, labels.to_numpy())
    ours = document["certificate"]
    for key, value in by_hand.certificate_.to_dict().items():
        if isinstance(value, float):
            assert ours[key] == pytest.approx(value, rel=1e-4, abs=1e-8), key
    assert document["model"]["sha256"] == loaded.sha256
    digest = hashlib.sha256((folder / "patients.csv").read_bytes()).hexdigest()
    assert document["data"]["files"] == [
        {
            "name": "patients.csv",
            "n_bytes": (folder / "patients.csv").stat().st_size,
            "sha256": digest,
        }
    ]
    assert document["made"]["by"].startswith("neverworse fit patients.csv --target diagnosis")
    found = pd.read_csv(folder / "results" / "predictions.csv", dtype={"patient": str})
    unlabeled = table["diagnosis"].isna().to_numpy()
    assert found["patient"].tolist() == table["patient"][unlabeled].tolist()
    assert found["prediction"].tolist() == by_hand.predict(features)[unlabeled].tolist()
    before = by_hand.supervised_.predict(features)[unlabeled]
    assert found["changed"].tolist() == (found["prediction"] != before).tolist()
    scores = 0.5 + np.abs(by_hand.decision_function(features)[unlabeled])
    np.testing.assert_allclose(found["score"], scores, atol=1e-6)


def test_the_report_is_that_of_the_study(fitted, tmp_path):
    folder, _ = fitted
    study = read_study(folder / "results")
    write_report(study, tmp_path / "again.html")
    written = [
        path.read_bytes() for path in (folder / "results/report.html", tmp_path / "again.html")
    ]
    assert written[0] == written[1]
    assert study.unlabeled_curve is not None
    assert study.labeled_curve is not None
    assert study.comparison is not None


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_numbers_on_the_page_are_those_of_the_certificate(fitted, tmp_path):
    folder, _ = fitted
    document = json.loads((folder / "results" / "certificate.json").read_text())
    dom, said = opened((folder / "results" / "report.html").read_text("utf-8"), tmp_path)
    assert said == []
    numbers = {float(value) for value in re.findall(r'<data value="([^"]*)"', dom)}
    certificate = document["certificate"]
    for key in ("worst_case", "best_case", "n_labeled", "n_unlabeled"):
        assert certificate[key] in numbers, key
    text = re.sub(r"<[^>]*>", "", dom)
    assert document["claim"].replace("'", "&#x27;") in text or document["claim"] in text


def test_three_classes_as_json_and_from_standard_input(tmp_path):
    flower = flowers(n_labeled=15)
    ran = neverworse(
        *("fit", "-", "--target", "species", "--json", "--no-curves", "--compare", "--out", "o"),
        *("--model", "projected", "--candidates", "none"),
        cwd=tmp_path,
        input=flower.to_csv(index=False),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    said = json.loads(ran.stdout)
    assert {k: os.path.basename(v) for k, v in said["outputs"].items()} == {n: n for n in OUTPUTS}  # noqa: PTH119
    document = json.loads((tmp_path / "o" / "certificate.json").read_text())
    study = json.loads((tmp_path / "o" / "study.json").read_text())
    assert {k: v for k, v in said.items() if k != "outputs"} == study
    assert document["certificate"] == said["certificate"]
    assert [c["name"] for c in said["data"]["classes"]] == ["setosa", "versicolor", "virginica"]
    assert said["data"]["files"] == [{"name": "standard input", "n_bytes": None, "sha256": None}]
    assert len(said["comparison"]["methods"]) > 3
    found = pd.read_csv(tmp_path / "o" / "predictions.csv")
    np.testing.assert_allclose(found["row"], 1 + np.flatnonzero(flower["species"].isna()))


def test_quiet_prints_nothing(tmp_path, monkeypatch, capfd):
    quick().to_parquet(tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "t.parquet", "--target", "species", "--quiet", *QUICK]) == 0
    assert capfd.readouterr() == ("", "")
    assert files_in(tmp_path / "neverworse-fit") == sorted(OUTPUTS)


# Faults. Each leaves what was there before, and nothing else.


@pytest.fixture
def before(tmp_path):
    """Results of an earlier fit, which have to stay, and a table."""
    quick().to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "out").mkdir()
    for name in OUTPUTS:
        (tmp_path / "out" / name).write_text(f"old {name}")

    def check():
        assert files_in(tmp_path) == ["out", "t.csv"]
        assert files_in(tmp_path / "out") == sorted(OUTPUTS)
        for name in OUTPUTS:
            assert (tmp_path / "out" / name).read_text() == f"old {name}"

    return check


FIT = ("fit", "t.csv", "--target", "species", "--quiet", *QUICK)


@pytest.mark.parametrize(("out", "limit"), [("out", 20_000), ("new", 1_000)])
def test_a_disk_that_fills(before, tmp_path, monkeypatch, capsys, out, limit):
    monkeypatch.chdir(tmp_path)
    with small_files(limit):
        assert main([*FIT, "--out", out]) == 1
    assert capsys.readouterr().err == "neverworse fit: error: File too large\n"
    if out == "new":
        (tmp_path / "new").rmdir()  # it is empty
    before()


@needs_signals
def test_interrupted(before, tmp_path):
    flowers().to_csv(tmp_path / "t.csv", index=False)
    process = subprocess.Popen(
        [*COMMAND, "fit", "t.csv", "--target", "species", "--compare", "--out", "out"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(2.5)  # it is fitting by now, or comparing methods
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=60)
    # Python ends itself with the signal, as shells expect, if it was importing at that moment.
    assert process.returncode in (130, -signal.SIGINT)
    assert (said, complained) == ("", "neverworse fit: stopped\n")
    before()


def test_a_file_that_changes_while_it_is_read(before, tmp_path, monkeypatch, capsys):
    from neverworse import study

    original = study.fit_table

    def and_somebody_writes(*arguments):
        os.utime(tmp_path / "t.csv", ns=(1, 1))
        return original(*arguments)

    monkeypatch.setattr(study, "fit_table", and_somebody_writes)
    monkeypatch.chdir(tmp_path)
    assert main([*FIT, "--out", "out"]) == 4
    assert capsys.readouterr() == (
        "",
        "neverworse fit: error: t.csv changed while it was being read. Run this again.\n",
    )
    before()


def test_a_folder_that_may_not_be_written_to(before, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    monkeypatch.chdir(tmp_path)
    assert main([*FIT, "--out", "out"]) == 1
    said = "neverworse fit: error: out cannot be written to. Name another folder: --out DIR.\n"
    assert capsys.readouterr().err == said
    before()


# What is wrong with tables and arguments: (name of a table, arguments, exit code, message)

N = 60
RNG = np.random.default_rng(0)
GOOD = pd.DataFrame(
    {
        "id": range(N),
        "age": RNG.normal(50, 9, N).round(2),
        "bmi": RNG.normal(25, 4, N).round(2),
        "city": RNG.choice(["A", "B"], N),
        "w": 1.0,
    }
)
GOOD["sick"] = np.where(RNG.random(N) < 0.4, np.where(GOOD["age"] > 50, "yes", "no"), "")


def text(table, **options):
    return table.to_csv(index=False, **options)


TABLES = {
    "good.csv": text(GOOD),
    "empty.csv": "",
    "header.csv": "age,sick\n",
    "one class.csv": text(GOOD.assign(sick=GOOD["sick"].where(GOOD["sick"] == "yes"))),
    "no label.csv": text(GOOD.assign(sick="")),
    "all labels.csv": text(GOOD.assign(sick=np.where(GOOD["age"] > 50, "yes", "no"))),
    "marked.csv": text(GOOD.assign(sick=GOOD["sick"].replace("", "-1"))),
    "same names.csv": text(GOOD).replace("bmi", "age"),
    "mixed.csv": text(GOOD.assign(bmi=GOOD["bmi"].astype(str).where(GOOD.index != 7, "high"))),
    "semicolons.csv": text(GOOD, sep=";"),
    "two marks.csv": text(GOOD, sep=";", decimal=",").replace(",", ".", 21),
    "cp1252.csv": text(GOOD.assign(city="Köln")).encode("cp1252"),
    "ragged.csv": "age,sick\n1,yes\n2,no,?\n",
    "number.csv": text(GOOD.assign(sick=GOOD["age"])),
    "names.csv": text(GOOD.assign(sick=[f"n{k}" for k in range(N)])),
    "infinite.csv": text(GOOD.assign(bmi=GOOD["bmi"].where(GOOD.index != 3, np.inf))),
    "huge.csv": text(GOOD.assign(bmi=GOOD["bmi"] * 1e300)),
    "negative.csv": text(GOOD.assign(w=-1)),
    "only target.csv": text(GOOD[["sick"]]),
    "no text.csv": bytes(range(256)) * 20,
    "broken.parquet": b"PAR1" + bytes(50),
    "broken.xlsx": b"PK\x03\x04" + bytes(50),
    "broken.csv.gz": b"\x1f\x8b" + bytes(50),
    "model.csv": b"\x80\x05\x95" + bytes(50),
}
WRONG = [
    ("empty.csv", "", 4, "empty.csv is empty. Give a table"),
    ("header.csv", "", 4, "The table has column names, but no rows."),
    ("good.csv", "--target sik", 4, "There is no column 'sik' for --target. Did you mean 'sick'?"),
    ("one class.csv", "", 4, "All labels in column 'sick' are 'yes', in 15 rows."),
    ("no label.csv", "", 4, "No row has a label: column 'sick' is empty."),
    ("all labels.csv", "", 4, "All 60 rows have a label"),
    ("marked.csv", "", 4, "--missing-label=-1."),
    ("same names.csv", "", 4, "several columns with the same name: 'age'. Rename them."),
    ("mixed.csv", "", 4, "--missing 'high'; if the column is a category: --categorical 'bmi';"),
    ("semicolons.csv", "--delimiter ,", 4, "Name the delimiter: --delimiter ';'."),
    ("two marks.csv", "--drop bmi w", 4, "Column 'age' has numbers such as "),
    ("cp1252.csv", "", 4, "is not UTF-8 text. Name its encoding, for example --encoding cp1252"),
    ("cp1252.csv", "--encoding x", 2, "There is no encoding 'x'."),
    ("cp1252.csv", "--encoding hex", 2, "There is no encoding 'hex'."),
    ("ragged.csv", "", 4, "has 3 cells in line "),
    ("number.csv", "", 4, "it looks like a number, not a class."),
    ("names.csv", "", 4, "it looks like an id or a text, not a class."),
    ("good.csv", "--target id", 4, "it looks like a number, not a class."),
    ("infinite.csv", "", 4, "is infinite, or too large to be squared, in row 4. Correct"),
    ("huge.csv", "", 4, "leave the column out: --drop 'bmi'."),
    ("negative.csv", "--weight w", 4, "The weight in row 1 (column 'w') is -1."),
    ("good.csv", "--weight city", 4, "Column 'city' should hold numbers"),
    ("only target.csv", "", 4, "There is no column to learn from"),
    ("good.csv", "--drop age bmi city w id", 4, "There is no column to learn from"),
    ("no text.csv", "", 4, "is neither text nor a known format."),
    ("broken.parquet", "", 4, "broken.parquet is damaged or incomplete. Save or copy it again."),
    ("broken.xlsx", "", 4, "broken.xlsx cannot be read as a workbook:"),
    ("broken.csv.gz", "", 4, "broken.csv.gz"),
    ("model.csv", "", 4, "model.csv is neither text nor a known format. Export the table as CSV"),
    ("gud.csv", "", 4, "There is no file gud.csv. Check the name and the folder."),
    ("none/good.csv", "", 4, "There is no file none"),
    ("good.csv", "--drop agee", 4, "no column 'agee' for --drop. Did you mean 'age'?"),
    ("good.csv", "--id ident", 4, "There is no column 'ident' for --id."),
    ("good.csv", "--categorical cty", 4, "'cty' for --categorical. Did you mean 'city'?"),
    ("good.csv", "--unlabeled all", 4, "There is no file all. Check the name and the folder."),
    ("good.csv", "--unlabeled marked.csv", 4, "marked.csv has 60 labels in column 'sick'."),
    ("good.csv", "good.csv", 4, "The same file is given twice."),
    ("good.csv", "header.csv", 4, "Only one of good.csv and header.csv has "),
    ("good.csv", "--prior yess=0.3", 4, "no class 'yess' for --prior. Did you mean 'yes'?"),
    ("good.csv", "--prior yes=0.9 --prior no=0.9", 4, "--prior is infeasible"),
    (
        "good.csv",
        "--prior confidence --weight age",
        4,
        "--prior 'confidence' counts the labeled rows",
    ),
    ("good.csv", "--id sick", 2, "The column 'sick' can only have one role"),
    ("good.csv", "--drop sick", 2, "The column 'sick' can only have one role"),
    ("good.csv", "--categorical sick", 2, "The column 'sick' can only have one role"),
    ("good.csv", "--weight age --drop age", 2, "The column 'age' can only have one role"),
    ("good.csv", "--alpha x", 2, "--alpha: must be loo, or a number of at least 0, not 'x'."),
    ("good.csv", "--constraint-alpha loo", 2, "same, or a number of at least 0, not 'loo'."),
    ("good.csv", "--constraint-alpha -1", 2, "a number of at least 0, not '-1'."),
    ("good.csv", "--alpha nan", 2, "a number of at least 0, not 'nan'."),
    ("good.csv", "--alpha inf", 2, "a number of at least 0, not 'inf'."),
    ("good.csv", "--memory 0", 2, "--memory: must be a number of at least 1e-09, not '0'."),
    ("good.csv", "--prior 1.5", 2, "--prior is a share between 0 and 1 such as 0.4"),
    ("good.csv", "--prior x", 2, "--prior is a share between 0 and 1 such as 0.4"),
    ("good.csv", "--prior 0.1 --prior 0.2", 2, "--prior is given twice"),
    (
        "good.csv",
        "--prior 0.1 --prior confidence",
        2,
        "or confidence alone, not 'confidence'.",
    ),
    ("good.csv", "--seed -1", 2, "--seed: must be a whole number between 0 and"),
    ("good.csv", "--delimiter ab", 2, "--delimiter: must be one character (or tab)"),
    ("good.csv", "--decimal x", 2, "--decimal: invalid choice: 'x'"),
    ("good.csv", "--delimiter , --decimal ,", 2, "cannot be the same"),
    ("good.csv", "--distance far", 2, "invalid choice: 'far'"),
    ("good.csv", "--out good.csv", 2, "good.csv is not a folder. Name a folder: --out DIR."),
    ("good.csv", "--out good.csv/x", 2, "good.csv is not a folder. Name a folder: --out DIR."),
]


@pytest.mark.parametrize(("table", "arguments", "code", "said"), WRONG)
def test_what_is_wrong_is_said_in_a_sentence_or_two(
    tmp_path, monkeypatch, capsys, table, arguments, code, said
):
    for name, content in TABLES.items():
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    words = arguments.split()
    target = [] if "--target" in words else ["--target", "sick"]
    assert main(["fit", table, *words, *target]) == code
    out, err = capsys.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("neverworse fit: error: ")
    assert said in last
    assert len(last) < 400
    assert err.count("\n") == 1
    assert files_in(tmp_path) == sorted(TABLES)  # nothing was written


def test_results_are_not_written_over_the_table(tmp_path, monkeypatch, capsys):
    quick().to_csv(tmp_path / "predictions.csv", index=False)
    (tmp_path / "study.json").write_text("{}")  # so that the folder looks like one of results
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "predictions.csv", "--target", "species", "--out", "."]) == 2
    assert "predictions.csv would be replaced" in capsys.readouterr().err


def test_files_that_are_of_no_fit_are_not_replaced(tmp_path, monkeypatch, capsys):
    quick().to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "report.html").write_text("mine")
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "t.csv", "--target", "species", "--out", "."]) == 2
    assert "report.html is no file of an earlier fit" in capsys.readouterr().err
    assert (tmp_path / "report.html").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("text", "expected"), [("loo", "loo"), ("0", 0.0), ("1e-3", 0.001), ("10", 10.0)]
)
def test_penalties(text, expected):
    assert number(float, 0, word="loo")(text) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], {}),
        (["confidence"], "confidence"),
        (["0.4"], {None: (0.4, 0.4)}),
        (["0.3..0.5"], {None: (0.3, 0.5)}),
        (["0..1"], {None: (0.0, 1.0)}),
        ([".25...5"], {None: (0.25, 0.5)}),
        (["a=0.1..0.2", "b=c=1e-1"], {"a": (0.1, 0.2), "b=c": (0.1, 0.1)}),
    ],
)
def test_shares(texts, expected):
    assert parse_prior(texts) == expected


@needs_any_name
def test_names_that_are_no_text_and_a_terminal_that_shows_little(tmp_path, monkeypatch, capsys):
    name = os.fsdecode(b"\xff\xfe t\x1b[31m.csv")
    (tmp_path / name).write_text(quick().assign(town="A\xb1").to_csv(index=False), "utf-8")
    monkeypatch.chdir(tmp_path)
    terminal = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["fit", name, "--target", "species", "--drop", "town", "--out", "o", *QUICK]) == 0
    assert capsys.readouterr().err == ""
    said = terminal.buffer.getvalue()
    assert b"Read 100 rows from" in said
    assert b"\x1b" not in said
    document = json.loads((tmp_path / "o" / "certificate.json").read_text("utf-8"))
    assert document["data"]["files"][0]["name"] == "\ufffd\ufffd t\x1b[31m.csv"


@pytest.mark.parametrize(
    "column", ["row", "prediction", "", " diagnosis ", "a\nb", "☃ 'x' \"y\"", "__class__", "=1+1"]
)
def test_columns_of_any_name(tmp_path, monkeypatch, capsys, column):
    table = quick().rename(columns={"species": column})
    table.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    arguments = ["t.csv", "--target", column, "--json", "--alpha", "1", "--no-curves"]
    assert main(["fit", *arguments]) == 0
    out = capsys.readouterr().out
    assert out.isascii()  # JSON in every encoding
    assert json.loads(out)["data"]["target"] == column
    assert main(["predict", "neverworse-fit/model.skops", "t.csv"]) == 0
    out, err = capsys.readouterr()
    assert len(pd.read_csv(io.StringIO(out))) == len(table)
    assert err == ""


def test_thousands_of_columns(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(12, 1_500)).round(3)).add_prefix("g")
    path = tmp_path / "wide.csv"
    frame.assign(sick=["a", "b", "", ""] * 3).to_csv(path, index=False)
    words = ["fit", str(path), "--target", "sick", "--out", str(tmp_path / "out"), "--no-curves"]
    assert main([*words, "--candidates", "none", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["data"]["n_features"] == 1_500
    assert found["certificate"]["holds"]


@pytest.mark.filterwarnings("error")
def test_a_solver_that_gives_up_is_a_note_without_advice_about_python(
    tmp_path, monkeypatch, capsys
):
    for name, value in (("PATIENCE", 1), ("SLOW_GAP_SHARE", 0.0)):  # no setting makes it give up
        monkeypatch.setattr(f"neverworse.projection.solver.newton.{name}", value)
    monkeypatch.chdir(tmp_path)
    patients().to_csv("patients.csv", index=False)
    words = ["fit", "patients.csv", "--target", "diagnosis", "--id", "patient", "--alpha", "0"]
    assert main([*words, "--no-curves", "--candidates", "none"]) == 0
    said = capsys.readouterr()
    assert "Warning" not in said.err
    assert not re.search(r"\b(tol|max_iter|StandardScaler|rescale)\b", said.out + said.err)
    text = " ".join(said.out.split())
    assert "The solver stopped making progress, at a relative duality gap" in text
    study = read_study(tmp_path / "neverworse-fit")
    assert not study.certificate["converged"]


def test_a_solver_that_converges_is_no_note(fitted):
    study = read_study(fitted[0] / "results")
    assert study.certificate["converged"]
    assert not [note for note in study.notes if "solver" in note]


@pytest.mark.parametrize("command", ["fit", "predict", "demo", "reproduce"])
def test_an_empty_name_is_not_the_current_folder(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    words = {"fit": ["t.csv", "--target", "y"], "predict": ["m", "t.csv"]}
    assert main([command, *words.get(command, []), "--out", ""]) == 2
    assert "--out: an empty name" in capsys.readouterr().err
    assert files_in(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="not everybody may make links on Windows")
@pytest.mark.parametrize("out", ["link", "link/new"])
def test_a_link_to_nothing_is_noticed_before_anything_is_read(tmp_path, capsys, out):
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    words = ["fit", str(tmp_path / "none.csv"), "--target", "y", "--out", str(tmp_path / out)]
    assert main(words) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_labels_that_are_lists(tmp_path, capsys):
    rows = [{"a": k, "y": [] if k < 2 else None} for k in range(9)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ["fit", str(tmp_path / "t.jsonl"), "--target", "y", "--out", str(tmp_path / "out")]
    assert main(words) == 4
    assert "Labels or categories cannot be of type list<item: null>" in capsys.readouterr().err
