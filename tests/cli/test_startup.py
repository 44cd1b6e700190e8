"""Help is printed at once: nothing heavy is imported before it is needed."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest

import neverworse
from neverworse.cli import COMMANDS

HEAVY = {"matplotlib", "numpy", "pandas", "pyarrow", "scipy", "shtab", "sklearn", "skops"}
# Arguments are those of neverworse; the last line says what it imported.
RUN = """
import json, sys
from neverworse.cli import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def run(code, *arguments):
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return result.stdout.splitlines()


@pytest.mark.parametrize(
    "arguments", [("--help",), ("--version",), (), *((name, "--help") for name in COMMANDS)]
)
def test_help_imports_nothing_heavy(arguments):
    *said, last = run(RUN, *arguments)
    code, imported = json.loads(last)
    assert code == 0
    assert said
    assert not HEAVY & set(imported)


def test_importing_the_package_imports_nothing_heavy():
    imported = run("import sys, neverworse; print(*sys.modules)")[0].split()
    assert not HEAVY & {name.partition(".")[0] for name in imported}


@pytest.mark.parametrize("name", neverworse.__all__)
def test_every_public_name_is_found(name):
    assert getattr(neverworse, name) is getattr(neverworse, name)
    assert name in dir(neverworse)


def test_all_of_them_at_once():
    names = {}
    exec("from neverworse import *", names)  # what a user types
    assert set(neverworse.__all__) <= set(names)


def test_rooms_are_found_without_importing_them_by_name():
    rooms = ["datasets", "estimators", "methods", "model_selection", "plots", "rows"]
    names = ", ".join(f"neverworse.{room}.__name__" for room in rooms)
    said = run(f"import neverworse; print({names})")
    assert said[0].split() == [f"neverworse.{room}" for room in rooms]
    assert set(rooms) <= set(dir(neverworse))


def test_a_name_that_does_not_exist():
    with pytest.raises(AttributeError, match="module 'neverworse' has no attribute 'nonsense'"):
        _ = neverworse.nonsense
    assert not hasattr(neverworse, "__wrapped__")  # doctest and inspect ask


def test_a_pickle_is_read_by_a_process_that_has_imported_nothing(tmp_path):
    path = tmp_path / "classifier.pickle"
    path.write_bytes(pickle.dumps(neverworse.ProjectedLeastSquaresClassifier(alpha=3.0)))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).alpha)"
    assert run(code, str(path)) == ["3.0"]
