"""What Windows does in its own way, as far as it can be had on any system."""

from __future__ import annotations

import argparse
import errno
import io
import os
import subprocess
import sys
from pathlib import Path, PureWindowsPath

import pytest

from neverworse._words import number
from neverworse.cli import label, main
from neverworse.cli._common import CommandError, check_folder, wrapped


def test_without_a_console_errors_do_not_get_into_the_output(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["report", "nowhere"]) == 5
    assert not sys.stderr.isatty()
    assert capsys.readouterr().out == ""


# Nobody reads the standard output of this process any more.
WRITE = f"""
import sys
from neverworse import cli

def complete(_):
    sys.platform = sys.argv[1]
    raise OSError({errno.EINVAL}, "Invalid argument")

cli.complete = complete
sys.exit(cli.main(["completion", "bash"]))
"""


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("win32", (141, "")), ("linux", (1, "neverworse completion: error: Invalid argument\n"))],
)
def test_the_reader_that_has_seen_enough_on_windows(platform, expected):
    words = [sys.executable, "-c", WRITE, platform]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == expected


def test_a_drive_that_is_not_there(monkeypatch):
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    with pytest.raises(CommandError, match=r"is not a folder. Name a folder: --out DIR."):
        check_folder(Path("/results/new"))


def test_a_device_is_no_file_to_write(tmp_path, capsys):
    assert main(["label", str(tmp_path), "--next", "1", "--out", os.devnull]) == 2
    assert "cannot be written. Name a file in a folder" in capsys.readouterr().err
    assert not Path(os.devnull).is_file()


def test_a_result_that_is_open_elsewhere_is_noticed_before_the_fit(tmp_path, monkeypatch, capsys):
    def replace(self, _):
        raise PermissionError(errno.EACCES, "It is open in another program", str(self))

    for name in ("predictions.csv", "study.json"):
        (tmp_path / name).touch()
    monkeypatch.setattr(Path, "replace", replace)
    words = ["fit", "nowhere.csv", "--target", "y", "--out", str(tmp_path)]
    assert main(words) == 1
    said = "predictions.csv: It is open in another program\n"
    assert capsys.readouterr().err.endswith(said)


def test_commands_to_copy_need_no_quotes_that_only_some_shells_know():
    folder, out = PureWindowsPath("work", "results"), PureWindowsPath("work", "to_label.csv")
    said = label._record_command(argparse.Namespace(dir=folder, out=out))
    assert said == "neverworse label work/results --answers work/to_label.csv"


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8", "-0.5 inf “Köln” ☃"),
        ("cp1252", r"-0.5 inf “Köln” \u2603"),
        ("ascii", r"-0.5 inf \u201cK\xf6ln\u201d \u2603"),
    ],
)
@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_numbers_can_be_read_in_every_encoding(monkeypatch, encoding, said, name):
    errors = "strict" if name == "stdout" else "backslashreplace"
    stream = io.TextIOWrapper(io.BytesIO(), encoding, errors)
    monkeypatch.setattr(sys, name, stream)
    words = wrapped(f"{number(-0.5)} {number(float('inf'))} “Köln” ☃")
    monkeypatch.setattr("neverworse.cli.saved.report", lambda _: stream.write(words) and 0)
    assert main(["report", "results"]) == 0
    stream.flush()
    assert stream.buffer.getvalue().decode(encoding) == said
