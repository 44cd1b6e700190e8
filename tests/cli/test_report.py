"""``neverworse report``: the page again, from what a fit left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neverworse.cli import main
from neverworse.study import read_study, write_report
from tests.cli.tables import files_in, neverworse, small_files
from tests.study.report import studies


@pytest.fixture
def folder(tmp_path):
    """A folder with the numbers of a report."""
    (tmp_path / "results").mkdir()
    content = json.dumps(studies.binary().to_dict())
    (tmp_path / "results" / "study.json").write_text(content)
    return tmp_path / "results"


def test_the_page_is_made_again(folder):
    ran = neverworse("report", "results", cwd=folder.parent)
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        0,
        f"Written: {Path('results/report.html')}\n",
        "",
    )
    assert files_in(folder) == ["report.html", "study.json"]
    write_report(read_study(folder), folder / "again.html")
    assert (folder / "report.html").read_bytes() == (folder / "again.html").read_bytes()


def test_json_and_quiet(folder, capsys):
    assert main(["report", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"report": str(folder / "report.html"), "claim": studies.binary().claim}
    assert main(["report", str(folder), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_disk_that_fills(folder, capsys):
    (folder / "report.html").write_text("old")
    with small_files(3000):
        assert main(["report", str(folder)]) == 1
    assert capsys.readouterr().err == "neverworse report: error: File too large\n"
    assert files_in(folder) == ["report.html", "study.json"]
    assert (folder / "report.html").read_text() == "old"


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (None, 5, "has no study.json, so it is not a results folder. Give the --out folder of"),
        ("{", 5, "study.json is damaged: "),
        ('{"version": "9"}', 5, "study.json was written by neverworse 9, which this one"),
    ],
)
def test_folders_that_are_no_results(tmp_path, capsys, content, code, said):
    if content is not None:
        (tmp_path / "study.json").write_text(content)
    assert main(["report", str(tmp_path)]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("neverworse report: error: ")
    assert said in err
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("certificate", "worst_case"), "low"),
        (("certificate", "supervised_loss"), [1.0]),
        (("certificate", "assumptions", "class_prior"), [["a", 0.1]]),
        (("certificate", "holds"), None),
        (("certificate", "n_labeled"), -5),
        (("data", "n_rows"), True),
        (("data", "n_rows"), 10**400),
        (("data", "classes"), []),
        (("scores", 0, "edges"), []),
        (("scores", 0, "groups", 0, "projected"), [1]),
        (("changes", "counts"), [[1]]),
        (("coefficients", 0, "projected"), float("nan")),
        (("coefficients", 0, "projected"), float("inf")),
        (("comparison", "methods", 0, "numbers", "confusion"), [[1.0]]),
        (("verdict", "kind"), "perhaps"),
        (("unlabeled_curve", "sizes"), []),
        (("labeled_curve", "lines", 0, "error"), [0.1]),
        (("settings", "alpha"), {"a": [1]}),
        (("packages", "numpy"), 2),
    ],
)
def test_numbers_that_somebody_changed(folder, capsys, path, value):
    content = json.loads((folder / "study.json").read_text())
    *holders, last = path
    part = content
    for key in holders:
        part = part[key]
    part[last] = value
    (folder / "study.json").write_text(json.dumps(content))
    assert main(["report", str(folder)]) == 5
    out, err = capsys.readouterr()
    assert out == ""
    assert "study.json is damaged: " in err
    assert err.count("\n") == 1
    assert len(err) < 400
    assert files_in(folder) == ["study.json"]
