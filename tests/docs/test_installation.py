"""What people are told to install: it is in no index, so that only a clone will do."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "benchmarks").rglob("*.md"),
    *(ROOT / "src").rglob("*.py"),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_installed_from_an_index_under_the_name_of_this_package(path):
    text = " ".join(path.read_text("utf-8").split())
    assert re.findall(r"install [^`.]{0,20}neverworse(?:\\?\[|[\s`\"']|$)", text) == []
    assert "neverworse[" not in text


def test_extras_that_are_named_exist():
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )
    text = "\n".join(path.read_text("utf-8") for path in FILES)
    named = {each for found in re.findall(r'\s"\.\[([\w,]+)\]"', text) for each in found.split(",")}
    named |= set(re.findall(r"\binstall\('(\w+)'", text))
    assert {"plots", "tables", "paper", "parquet", "dask"} <= named <= extras
