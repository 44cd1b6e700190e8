"""``neverworse report``: the page again, from what a fit left."""

from __future__ import annotations

import json
import resource

import pytest

from neverworse.cli import main
from neverworse.report import page
from neverworse.report._outputs import read_study
from tests.cli.tables import files_in, neverworse
from tests.report import studies


@pytest.fixture
def folder(tmp_path):
    """A folder with the numbers of a report."""
    (tmp_path / "results").mkdir()
    content = json.dumps(studies.binary().to_dict())
    (tmp_path / "results" / "study.json").write_text(content)
    return tmp_path / "results"


def test_the_page_is_made_again(folder):
    ran = neverworse("report", "results", cwd=folder.parent)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Written: results/report.html\n", "")
    assert (folder / "report.html").read_text("utf-8") == page(read_study(folder))
    assert files_in(folder) == ["report.html", "study.json"]


def test_json_and_quiet_and_another_place(folder, tmp_path, capsys):
    out = tmp_path / "elsewhere.html"
    assert main(["report", str(folder), "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"report": str(out), "claim": studies.binary().claim}
    assert out.exists()
    assert main(["report", str(folder), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_disk_that_fills(folder):
    (folder / "report.html").write_text("old")
    ran = neverworse(
        *("report", "results"),
        cwd=folder.parent,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)),
    )
    assert (ran.returncode, ran.stderr) == (1, "neverworse report: error: File too large\n")
    assert files_in(folder) == ["report.html", "study.json"]
    assert (folder / "report.html").read_text() == "old"


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (None, 1, "has no study.json, so it is no folder of results. Give what was --out of"),
        ("{", 1, "study.json is damaged, or of another version of neverworse"),
        ('{"version": "9"}', 1, "study.json is damaged, or of another version of neverworse"),
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


def test_a_place_that_is_not_there(folder, capsys):
    assert main(["report", str(folder), "--out", "none/x.html"]) == 2
    assert "There is no folder none. Make it" in capsys.readouterr().err
