"""Modules of the folder `benchmarks`, which is no package."""

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


# They measure processes as Linux and macOS do; Windows has no such module.
collect_ignore_glob = [] if importlib.util.find_spec("resource") else ["test_*.py"]


@pytest.fixture
def load(monkeypatch):
    """Import a module of the folder; all of them are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for path in FOLDER.glob("*.py"):
        sys.modules.pop(path.stem, None)
