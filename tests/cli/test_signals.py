"""Signals that end the command: it leaves nothing half written, and shells learn which it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from neverworse.cli import main
from neverworse.tables import TableClassifier, save_model
from tests.cli.tables import COMMAND, files_in, flowers, quick

if sys.platform == "win32":
    pytest.skip("Windows has no such signals", allow_module_level=True)

SIGNALS = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130}


def started(*words, cwd, **options):
    # A signal may come between the opening of a file and the block that closes it.
    return subprocess.Popen(
        [*COMMAND[:3], "-W", "ignore::ResourceWarning", *COMMAND[3:], *words],
        cwd=cwd,
        env={**os.environ, "TMPDIR": str(cwd)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **{"preexec_fn": _heed_signals, **options},
    )


def _heed_signals():
    """Undo what nohup does to whoever runs the tests: ignored signals stay ignored."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def wait_for(folder, pattern):
    until = time.monotonic() + 60.0
    while not list(folder.glob(pattern)):
        assert time.monotonic() < until, "it never got there"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_fit_that_is_ended_removes_its_copies(tmp_path, number):
    flowers().to_csv(tmp_path / "t.csv", index=False)
    words = ("--target", "species", "--memory", "1e-7", "--out", "out")
    process = started("fit", "t.csv", *words, cwd=tmp_path)
    wait_for(tmp_path, "neverworse-*/*")
    process.send_signal(number)
    said, complained = process.communicate(timeout=60)
    assert (process.returncode, said) == (SIGNALS[number], "")
    assert complained in ("neverworse fit: stopped\n", "")
    assert files_in(tmp_path) == ["t.csv"]


def test_predictions_that_wait_for_rows(tmp_path):
    table = quick()
    table.to_csv(tmp_path / "t.csv", index=False)
    model = TableClassifier().fit(table.drop(columns="species"), table["species"])
    save_model(model, tmp_path / "model.skops", facts={})
    words = ("predict", "model.skops", "-", "--out", "p.csv")
    header, *rows = (tmp_path / "t.csv").read_text().splitlines(keepends=True)
    with started(*words, cwd=tmp_path, stdin=subprocess.PIPE) as process:
        process.stdin.write(header + "".join(rows) * 3000)
        process.stdin.flush()
        wait_for(tmp_path, "neverworse-*/*")  # a copy of the rows so far
        process.send_signal(signal.SIGHUP)
        process.wait(timeout=60)
    assert process.returncode == SIGNALS[signal.SIGHUP]
    assert files_in(tmp_path) == ["model.skops", "t.csv"]


def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    quick().to_csv(tmp_path / "t.csv", index=False)
    words = ("--target", "species", "--alpha", "1", "--memory", "1e-7", "--out", "out")
    ignored = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731  as nohup does
    process = started("fit", "t.csv", *words, cwd=tmp_path, preexec_fn=ignored)
    wait_for(tmp_path, "neverworse-*/*")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert files_in(tmp_path) == ["out", "t.csv"]


def test_the_handlers_of_others_come_back():
    before = [signal.getsignal(number) for number in SIGNALS]
    assert main(["report", "nowhere"]) != 0
    assert [signal.getsignal(number) for number in SIGNALS] == before
