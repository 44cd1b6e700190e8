"""``neverworse completion``, as shells use it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys

import pytest

from neverworse.cli import COMMANDS, main
from neverworse.cli._options import EXPERIMENTS

# What bash does when somebody presses the tabulator key after these words.
PRESS = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
function=$(complete -p neverworse | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
$function neverworse "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """Path of the script for a shell."""
    folder = tmp_path_factory.mktemp("scripts")

    def write(shell):
        path = folder / shell
        with path.open("w") as file, contextlib.redirect_stdout(file):
            assert main(["completion", shell]) == 0
        return path

    return write


@pytest.fixture(scope="module")
def press(script):
    """What bash offers for the last of the words."""
    if sys.platform == "win32":
        pytest.skip("bash may be that of another system, with other paths")
    path = script("bash")

    def complete(*words, cwd=None):
        result = subprocess.run(
            ["bash", "-c", PRESS, "bash", str(path), "neverworse", *words],
            capture_output=True,
            text=True,
            cwd=cwd,
        )
        assert result.stderr == ""
        return set(result.stdout.split())

    return complete


def test_commands(press):
    assert press("") >= COMMANDS.keys()
    assert press("rep") >= {"reproduce"}
    assert "demo" not in press("rep")


def test_options(press):
    assert press("demo", "--") == {"--help", "--out", "--seed"}
    assert press("reproduce", "--da") == {"--data-home", "--datasets"}
    assert press("reproduce", "--protocol", "") == {"code", "text"}


def test_names_of_experiments(press):
    assert press("reproduce", "") == {*EXPERIMENTS, "all"}
    assert press("reproduce", "curves", "ta") == {"table"}


def test_folders(press, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "readme.txt").touch()
    assert press("demo", "--out", "re", cwd=tmp_path) == {"results"}


@pytest.mark.parametrize(
    "words", [("fit",), ("predict",), ("predict", "model.skops"), ("audit",), ("predict", "--out")]
)
def test_files(press, tmp_path, words):
    (tmp_path / "readings.csv").touch()
    (tmp_path / "model.skops").touch()
    assert press(*words, "read", cwd=tmp_path) == {"readings.csv"}


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_scripts_of_other_shells(script, shell):
    path = script(shell)
    text = path.read_text()
    assert all(command in text for command in COMMANDS)
    assert "robustness" in text
    if shutil.which(shell):
        assert subprocess.run([shell, "-n", str(path)]).returncode == 0


def test_without_the_library(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert 'pip install ".[tables]"' in said.err
