"""The examples in the documentation run and print what they say; its links lead somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from urllib.parse import unquote

import matplotlib as mpl
import pytest

mpl.use("Agg")

ROOT = Path(__file__).resolve().parents[2]
WITH_EXAMPLES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_LINKS = [*WITH_EXAMPLES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(
    r"^(?P<fence>`{3,}|~{3,})(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=fence) *$", re.M | re.S
)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^()\s]+)\)|\b(?:src|href)=\"(?P<html>[^\"]+)\"")
SESSIONS = ("python", "pycon")
HEADING = re.compile(r"^#{1,6} +(?P<title>.+?) *$", re.M)


def name(path):
    return path.relative_to(ROOT).as_posix()


def examples(text):
    """The Python sessions of a page, everything else blanked out: line numbers stay right."""
    lines, end = [], 0
    for found in FENCE.finditer(text):
        start, stop = found.span("code")
        lines.append("\n" * text.count("\n", end, start))
        code = found["code"]
        lines.append(code if found["language"].strip() in SESSIONS else "\n" * code.count("\n"))
        end = stop
    return "".join(lines)


def without_code(text):
    """The prose of a page, in which brackets mean links."""
    text = FENCE.sub("", text)
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text, flags=re.S)


def anchors(path):
    """Names of the headings of a page, as GitHub makes them."""
    titles = HEADING.findall(FENCE.sub("", path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=name)
def test_examples_run(path):
    source = examples(path.read_text(encoding="utf-8"))
    test = doctest.DocTestParser().get_doctest(source, {}, name(path), str(path), 0)
    report = []
    results = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append)
    assert not results.failed, "".join(report)


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=name)
def test_all_examples_are_sessions(path):
    """Python that no prompt precedes would never be run."""
    text = path.read_text(encoding="utf-8")
    for block in FENCE.finditer(text):
        if block["language"].strip().startswith("py"):
            assert block["language"].strip() in SESSIONS
            assert block["code"].startswith(">>> "), block["code"]
    assert text.count(">>> ") == examples(text).count(">>> ")


def test_there_are_examples():
    for page in ("README.md", "docs/guide.md"):
        assert ">>> " in examples((ROOT / page).read_text(encoding="utf-8")), page


@pytest.mark.parametrize("path", WITH_LINKS, ids=name)
def test_links_lead_somewhere(path):
    targets = [
        m["target"] or m["html"] for m in LINK.finditer(without_code(path.read_text("utf-8")))
    ]
    for target in targets:
        if re.match(r"[a-z]+:", target):  # of the web, only the form is checked
            assert target.startswith("https://"), target
            continue
        file, _, anchor = unquote(target).partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.is_relative_to(ROOT), target
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target
