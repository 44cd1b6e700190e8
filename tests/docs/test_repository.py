"""What stands in several files of the repository is the same in all of them."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import neverworse

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = re.findall(r"^([a-z][\w-]*):(?!=)", (ROOT / "Makefile").read_text("utf-8"), re.M)


def jobs(path):
    return yaml.safe_load(path.read_text("utf-8"))["jobs"]


def test_there_are_workflows():
    assert {path.stem for path in WORKFLOWS} == {"tests", "docs", "nightly", "release"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_only_call_make(path):
    steps = [step for job in jobs(path).values() for step in job["steps"]]
    runs = [step["run"] for step in steps if "run" in step]
    for run in runs:
        assert re.fullmatch(r"make( \w+=\S+)* [\w-]+( \w+=\S+)*", run), run
        assert set(run.split()) & set(TARGETS), run
    for step in steps:
        assert "run" in step or re.fullmatch(r"[\w.-]+/[\w.-]+@(v\d+|release/v1)", step["uses"])


def test_workflows_may_write_nothing_but_what_a_job_asks_for():
    for path in WORKFLOWS:
        assert yaml.safe_load(path.read_text("utf-8"))["permissions"] == {"contents": "read"}
        for job in jobs(path).values():
            assert set(job.get("permissions", {})) <= {"pages", "id-token"}


def test_all_supported_versions_of_python_are_tested_on_three_systems():
    matrix = jobs(ROOT / ".github/workflows/tests.yml")["test"]["strategy"]["matrix"]
    named = [each for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert matrix["python"] == [each.rsplit(" ", 1)[1] for each in named]
    assert PROJECT["requires-python"] == f">={matrix['python'][0]}"
    assert [each.split("-")[0] for each in matrix["os"]] == ["ubuntu", "macos", "windows"]


def test_the_oldest_versions_that_are_tested_are_those_that_are_asked_for():
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"], *(each for name in extras for each in extras[name])]
    at_least = dict(
        re.fullmatch(r"([\w.-]+)(?:\[.*\])?>=([\d.]+)", each).groups()
        for each in asked
        if not each.startswith("neverworse[")
    )
    pinned = dict(
        re.findall(r"^([\w.-]+)==([\d.]+)", (ROOT / "constraints-oldest.txt").read_text(), re.M)
    )
    needed = {re.split(r"[>\[]", each)[0] for each in PROJECT["dependencies"] + extras["test"]}
    for name in ("dask", "label", "paper", "parquet", "plots", "tables"):
        needed |= {re.split(r"[>\[]", each)[0] for each in extras[name]}
    needed.remove("neverworse")
    assert set(pinned) - {"pyparsing"} == needed
    for name in needed:
        assert (pinned[name] + ".0.0").startswith(at_least[name] + "."), name


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == neverworse.__version__
    assert PROJECT["dynamic"] == ["version"]
    released = re.findall(r"^## (\d\S*) - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert released[0] == (neverworse.__version__, str(citation["date-released"]))


def test_badges_say_what_is_true():
    badges = ROOT / "docs" / "images" / "badges"
    shown = {
        path.stem: re.search(r"<title>(.*)</title>", path.read_text("utf-8"))[1]
        for path in badges.glob("*.svg")
    }
    for name, title in shown.items():
        words = re.findall(r"<text .*>(.*)</text>", (badges / f"{name}.svg").read_text("utf-8"))
        assert ": ".join(words) == title
    matrix = jobs(ROOT / ".github/workflows/tests.yml")["test"]["strategy"]["matrix"]
    systems = {"ubuntu-latest": "Linux", "macos-latest": "macOS", "windows-latest": "Windows"}
    assert shown == {
        "version": f"version: {neverworse.__version__}",
        "python": f"Python: {' | '.join(matrix['python'])}",
        "tests": f"CI: {' | '.join(systems[each] for each in matrix['os'])}",
        "licence": f"licence: {PROJECT['license']}",
    }
