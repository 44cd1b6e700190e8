"""The reference has every public name, and every name has an example."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import neverworse

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
BLOCK = re.compile(r"currentmodule:: (\S+)\n(.*?)```", re.S)
LISTED = [
    (room, name)
    for room, block in BLOCK.findall(PAGE.read_text("utf-8"))
    for name in re.findall(r"^   (\w+)$", block, re.M)
]
# What these rooms share with others, and promise to nobody else. (Rooms that are not tested below
# share more than they promise.)
SHARED = {
    "FITTED_PARTS",
    "__version__",
    "data_folders",
    "default_candidates",
    "moved",
    "user_cache",
}


def test_no_name_is_listed_twice():
    assert len(LISTED) == len(set(LISTED)) > 70


@pytest.mark.parametrize("room", ["", "methods", "model_selection", "plots", "datasets"])
def test_the_reference_has_all_names(room):
    home = f"neverworse.{room}".rstrip(".")
    named = {name for where, name in LISTED if where in (home, "neverworse.evidence")}
    assert set(import_module(home).__all__) - SHARED <= named


@pytest.mark.parametrize(("room", "name"), LISTED)
def test_every_name_exists_and_has_an_example(room, name):
    found = getattr(import_module(room), name)
    if inspect.isclass(found) or callable(found):
        assert ">>> " in inspect.getdoc(found)


@pytest.mark.parametrize(
    "name",
    sorted(
        n for n in neverworse.__all__ if "\nParameters\n" in inspect.getdoc(getattr(neverworse, n))
    ),
)
def test_parameters_are_documented_in_the_order_of_the_signature(name):
    documented = getattr(neverworse, name)
    section = inspect.getdoc(documented).partition("Parameters\n")[2].partition("\n\n")[0]
    found = [
        each
        for line in re.findall(r"(?m)^(\w\S*(?:, \S+)*) :", section)
        for each in line.split(", ")
    ]
    known = list(inspect.signature(documented).parameters)
    assert set(found) & set(known)
    assert [each for each in found if each in known] == [each for each in known if each in found]
