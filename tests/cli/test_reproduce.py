"""``neverworse reproduce``, as it is typed."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from neverworse._files import only_one
from neverworse.cli import PACKAGES, _options, main
from neverworse.datasets import PAPER_DATASETS
from neverworse.experiments import EXPERIMENTS
from tests.cli.tables import needs_signals

WDBC = ("--datasets", "WDBC", "--jobs", "1")


@pytest.fixture(autouse=True, scope="module")
def nothing_of_this_machine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machine")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NEVERWORSE_DATA", raising=False)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setenv("SCIKIT_LEARN_DATA", str(folder / "sklearn"))
        yield


@pytest.fixture
def run(capsys, tmp_path):
    """Run with these arguments: exit code, output and complaints."""

    def call(*arguments, out=tmp_path / "out"):
        code = main(["reproduce", *arguments, "--out", str(out)])
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small run: the folder of its results, and what it printed."""
    folder, said, complained = (
        tmp_path_factory.mktemp("small") / "out",
        io.StringIO(),
        io.StringIO(),
    )
    words = ["reproduce", "robustness", "table", "--repeats", "2", *WDBC, "--out", str(folder)]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        assert main(words) == 0
    assert complained.getvalue() == ""
    return folder, said.getvalue()


def test_a_small_run(small):
    folder, out = small
    words = " ".join(out.split())
    assert "The guarantee holds." in words
    assert "2 of 2 resamplings" in words
    assert "20 of 20 folds" in words
    assert re.search(r"\d of 6 cells of Table 1 are within three standard errors", words)
    assert "Self-Learning 0 / 1 / 0 (published: 0 / 0 / 1)" in words
    assert "With fewer than 11 repeats and the 64 tests of the paper no difference can be" in words
    assert out.rstrip().endswith(str(folder / "report.html"))
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert "neverworse reproduce robustness table --repeats 2 --datasets WDBC" in report


def test_a_damaged_file_is_computed_again_and_the_report_covers_earlier_runs(run, small, tmp_path):
    shutil.copytree(small[0], tmp_path / "out")
    before = (tmp_path / "out/measurements/robustness.csv").read_bytes()
    (path,) = (tmp_path / "out/repeats").rglob("robustness*/**/1.json.gz")
    content = path.read_bytes()
    path.write_bytes(content[:50] + bytes([content[50] ^ 1]) + content[51:])
    (tmp_path / "out" / "report.html").unlink()
    code, _, err = run("robustness", "--repeats", "2", *WDBC)
    assert (code, err) == (0, "")
    assert path.read_bytes() == content
    assert (tmp_path / "out/measurements/robustness.csv").read_bytes() == before
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert 'id="robustness"' in report
    assert 'id="table"' in report


def command(folder, *arguments):
    return [
        *(sys.executable, "-m", "neverworse", "reproduce", "table", *WDBC),
        *("--out", str(folder), *arguments),
    ]


def test_a_killed_run_goes_on_and_gives_the_same(run, small, tmp_path):
    folder = tmp_path / "killed"
    process = subprocess.Popen(command(folder, "--repeats", "2"))
    end = time.monotonic() + 60.0
    while not (stored := list(folder.rglob("0.json.gz"))):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not list(folder.rglob("1.json.gz"))
    assert not (folder / "report.html").exists()
    stored[0].with_name("1.json.gz").write_bytes(b"\x1f\x8b")  # killed while it wrote
    assert run("table", "--repeats", "2", *WDBC, out=folder)[0] == 0
    for name in ("measurements/table.csv", "summaries/table.csv", "table1.md"):
        assert (folder / name).read_bytes() == (small[0] / name).read_bytes()


@needs_signals
def test_interrupted_by_hand(tmp_path):
    process = subprocess.Popen(
        command(tmp_path, "--repeats", "500"), stderr=subprocess.PIPE, text=True
    )
    while not list(tmp_path.rglob("*.json.gz")):
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == (
        "neverworse reproduce: stopped. All finished repeats are stored; run the same command to "
        "resume.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tables",), "invalid choice: 'tables' (choose from"),
        (("--datasets", "Iris"), "invalid choice: 'Iris' (choose from"),
        (("--repeats", "0"), "--repeats: must be a whole number of at least 1, not '0'."),
        (("--jobs", "-1"), "--jobs: must be a whole number of at least 1, not '-1'."),
        (("--seed", "-1"), "--seed: must be a whole number between 0 and 4294967295, not '-1'."),
        (("--protocol", "paper"), "invalid choice: 'paper'"),
        (("--correction", "none"), "invalid choice: 'none'"),
    ],
)
def test_impossible_arguments(run, tmp_path, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "out").exists()


def test_nothing_to_run(run):
    code, out, err = run("curves", *WDBC)
    assert (code, out) == (2, "")
    assert "there are learning curves of Ionosphere, SPECT and USPS only" in err


def test_missing_data(run, monkeypatch):
    def offline(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", offline)
    code, out, err = run("table", "--datasets", "Sonar", "--repeats", "1")
    assert (code, out) == (1, "")
    assert "The data set Sonar was not found." in err
    assert err.endswith("Without it: --datasets available\n")
    assert "Traceback" not in err


@pytest.mark.parametrize("name", PACKAGES["paper"])
def test_missing_packages(run, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    code, out, err = run("table", *WDBC)
    assert (code, out) == (1, "")
    assert err == (
        f"neverworse reproduce: error: Not installed: {name}. "
        'Run in a clone of neverworse: pip install ".[paper]"\n'
    )


def test_another_run_in_the_same_folder(run, tmp_path):
    with only_one(tmp_path / "out" / "repeats"):
        code, out, err = run("table", *WDBC)
    assert (code, out) == (1, "")
    assert "Another run is writing to" in err


def test_out_is_a_file(run, tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    code, _, err = run("table", *WDBC, out=path)
    assert code == 2
    assert (
        err == f"neverworse reproduce: error: {path} is not a folder. Name a folder: --out DIR.\n"
    )


def test_help_needs_none_of_what_runs_experiments(tmp_path):
    script = (
        "import sys; from neverworse.cli import main; main(['reproduce', '--help'])\n"
        "assert not {'matplotlib', 'tqdm', 'neverworse.experiments'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "--protocol {code,text}" in done.stdout


def test_names_are_those_of_the_experiments():
    assert tuple(EXPERIMENTS) == _options.EXPERIMENTS
    assert list(PAPER_DATASETS) == _options.DATASETS
