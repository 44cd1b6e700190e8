"""What people see first: ``neverworse demo``."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
import sklearn

import neverworse
from neverworse.cli import main
from neverworse.cli.demo import hide_labels
from tests.cli.tables import neverworse as run_command

mpl.use("Agg")

NUMBERS = re.compile(
    r"^(supervised|projected|ICLS|oracle) .*? ([\d.]+)% +([\d.]+) +([\d.]+)% +([\d.]+)$", re.M
)


def table(text):
    """Error and loss on training and test rows, for each classifier."""
    found = {name: [float(v) for v in values] for name, *values in NUMBERS.findall(text)}
    assert list(found) == ["supervised", "projected", "ICLS", "oracle"]
    return found


@pytest.fixture
def with_picture(capsys, tmp_path):
    """Run the demo with these arguments: exit code, output and complaints."""

    def run(*arguments, out=tmp_path):
        code = main(["demo", "--out", str(out), *arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def demo(with_picture, monkeypatch):
    """Run it without the picture, which is always the same."""
    monkeypatch.setattr("neverworse.cli.demo.find_spec", lambda _: None)
    return with_picture


def test_demo_prints_table_and_certificate_and_saves_picture(with_picture, tmp_path):
    code, out, err = with_picture()
    assert code == 0
    assert err == ""
    table(out)
    assert "358 unlabeled rows" in " ".join(out.split())
    assert "Never worse: whatever the true labels" in " ".join(out.split())
    assert f"two dimensions: {tmp_path / 'constraint-set.png'}\n" in out
    assert {path.name for path in tmp_path.iterdir()} == {"constraint-set.png", "patients.csv"}
    pixels = mpl.image.imread(tmp_path / "constraint-set.png")[..., :3]
    for half in np.array_split(pixels, 2, axis=1):
        assert len(np.unique(half.reshape(-1, 3), axis=0)) > 100, "blank"


@pytest.mark.parametrize("seed", range(21))
def test_the_table_never_contradicts_the_claim(demo, seed):
    code, out, _ = demo("--seed", str(seed))
    assert code == 0
    rows = table(out)
    train = {name: values[1] for name, values in rows.items()}
    assert train["projected"] <= train["supervised"]
    assert train["oracle"] <= min(train.values())
    for values in rows.values():
        assert 0 <= values[0] <= 100
        assert 0 <= values[2] <= 100


def test_measured_improvement_is_within_the_certificate(demo):
    out = " ".join(demo("--seed", "0")[1].split())
    assert "chosen by leave-one-out; the constraint set and the loss of the guarantee" in out
    least, most = map(float, re.search(r"by at least ([\d.]+) and at most ([\d.]+)", out).groups())
    said = r"the loss plus its penalty is ([\d.]+) instead of ([\d.]+), lower by ([\d.]+)\."
    after, before, lower = map(float, re.search(said, out).groups())
    assert 0.0 < least <= lower <= most
    assert lower == pytest.approx(before - after, abs=0.02)


def test_same_seed_same_output(demo):
    first = demo("--seed", "7")
    assert demo("--seed", "7") == first
    assert demo("--seed", "8")[1].replace("seed 8", "seed 7") != first[1]


def test_hidden_labels():
    (X_train, y_train), (X_test, _), y_known = hide_labels(seed=1)
    known = y_known >= 0
    assert known.sum() == 40
    np.testing.assert_array_equal(y_known[known], y_train[known])
    assert set(y_known[known]) == {0, 1}
    assert len(X_train) + len(X_test) == 569
    np.testing.assert_allclose(X_train.std(axis=0), 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seed", "-1"), "--seed: must be a whole number between 0 and 4294967295, not '-1'."),
        (("--no-such-option",), "unrecognized arguments: --no-such-option"),
    ],
)
def test_other_impossible_arguments(demo, arguments, message):
    code, out, err = demo(*arguments)
    assert code == 2
    assert out == ""
    assert message in err


def test_out_is_a_file(demo, tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    code, out, err = demo(out=path)
    assert code == 2
    assert out == ""
    assert err == f"neverworse demo: error: {path} is not a folder. Name a folder: --out DIR.\n"
    assert path.read_text() == "mine"


def test_out_below_a_file(demo, tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    code, _, err = demo(out=path / "below")
    assert code == 2
    assert err == f"neverworse demo: error: {path} is not a folder. Name a folder: --out DIR.\n"


def test_out_may_not_be_written_to(demo, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    code, out, err = demo()
    assert code == 1
    assert out == ""
    assert f"{tmp_path} cannot be written to. Name another folder" in err


def test_picture_that_cannot_be_replaced_leaves_nothing_behind(with_picture, tmp_path):
    (tmp_path / "constraint-set.png").mkdir()
    code, _, err = with_picture()
    assert code == 1
    assert err.startswith(f"neverworse demo: error: {tmp_path / 'constraint-set.png'}: ")
    assert [path.name for path in tmp_path.iterdir()] == ["constraint-set.png"]


@pytest.mark.parametrize(
    ("called", "said"),
    [(".venv/bin/neverworse", ".venv/bin/neverworse"), ("pytest", "neverworse")],
)
def test_the_next_command_can_be_typed_where_the_demo_was_run(
    demo, monkeypatch, tmp_path, called, said
):
    monkeypatch.setattr(sys, "argv", [called, "demo"])
    last = demo()[1].splitlines()[-1]
    path = (tmp_path / "patients.csv").as_posix()
    assert last == f"  {said} fit {path} --target diagnosis --id patient"


def test_without_matplotlib(with_picture, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = with_picture(out=tmp_path / "new")
    assert code == 0
    assert err == ""
    table(out)
    assert 'Run in a clone of neverworse: pip install ".[plots]"\n' in out
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["patients.csv"]


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_text_is_wrapped_to_the_terminal(demo, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    out = demo()[1]
    certificate = out[out.index("Never worse:") : out.index("No picture")]
    widths = [len(line) for line in certificate.splitlines()]
    assert min(columns, 88) - 15 <= max(widths) < min(columns, 89)


def test_no_arguments_print_help(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: neverworse")
    assert "demo" in out


def test_version(capsys):
    assert main(["--version"]) == 0
    first, python, *others = capsys.readouterr().out.splitlines()
    assert first == f"neverworse {neverworse.__version__}"
    assert python.startswith(f"Python {sys.version_info.major}.{sys.version_info.minor}.")
    assert f"numpy {np.__version__}" in others
    assert f"scikit-learn {sklearn.__version__}" in others


def test_interrupted(monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("neverworse.cli.demo.hide_labels", interrupt)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "neverworse demo: stopped\n"


def test_a_reader_that_stops_reading_is_no_error(tmp_path):
    script = (
        "import os, sys; from neverworse.cli import main\n"
        "reader, writer = os.pipe(); os.close(reader); os.dup2(writer, 1)\n"
        f"sys.exit(main(['demo', '--out', {str(tmp_path)!r}]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == 141
    assert result.stderr == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a device that is full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_that_is_full(tmp_path, monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "w") as full:  # noqa: PTH123
        pipes = {"stdout": full, "stderr": subprocess.PIPE, "capture_output": False}
        ran = run_command("demo", cwd=tmp_path, **pipes)
    assert (ran.returncode, ran.stderr) == (1, "neverworse demo: error: No space left on device\n")


def test_runs_as_a_module(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "neverworse", "--version"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert result.stdout.startswith(f"neverworse {neverworse.__version__}\nPython ")


def test_table_is_one_that_fit_takes(demo, tmp_path, capsys):
    code, out, _ = demo(out=tmp_path)
    assert code == 0
    words = shlex.split(out.splitlines()[-1])[1:]
    words += ["--out", str(tmp_path / "out"), "--no-curves", "--candidates", "none"]
    assert main([*words, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["data"]
    assert (data["n_rows"], data["n_labeled"]) == (569, 40)
    kinds = {column["name"]: column["kind"] for column in data["columns"]}
    assert (kinds["patient"], kinds["clinic"], kinds["seen"]) == ("id", "category", "date")
