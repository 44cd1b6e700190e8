"""All kinds of pages under axe-core, wide and narrow, light and dark: `make check-pages` runs it.

It needs Chromium, and axe-core, which npm puts into the folder build/axe. The pages of the site are
those that `make docs` wrote.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from neverworse.study import page
from tests.experiments import runs
from tests.experiments.report.test_page import content
from tests.study.labeling import asked
from tests.study.labeling.browser import BROWSER, Browser
from tests.study.labeling.test_label_browser import serving
from tests.study.report import studies

BUILD = Path(__file__).parents[2] / "build"
AXE = BUILD / "axe" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [
    pytest.mark.skipif(
        BROWSER is None or sys.platform == "win32", reason="there is no Chromium, or no pipes to it"
    ),
    pytest.mark.skipif(not AXE.exists(), reason="there is no axe-core, which npm installs"),
]
SITE = [
    "index.html",
    "guide.html",
    "mathematics.html",
    "api.html",
    "reference/neverworse.ProjectedLeastSquaresClassifier.html",
    "gallery/index.html",
    "gallery/plot_does_it_help.html",
    "search.html",
    "the-geometry.html",
]
LOOKS = [(width, dark) for width in (1280, 390) for dark in (False, True)]
FIND = """axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => violations
  .filter(({impact}) => ["serious", "critical"].includes(impact))
  .map(({id, nodes}) => `${id}: ${nodes.map(({html}) => html.slice(0, 200)).join("; ")}`))"""
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


def check(browser, address):
    """Assert that a page has no serious finding, and does not scroll sideways, in every look."""
    found = {}
    for width, dark in LOOKS:
        browser.resize(width, 900, dark=dark)
        browser.open(address)
        browser.value(f"{AXE.read_text('utf-8')}; true")
        answer = browser.call(
            "Runtime.evaluate", expression=FIND, awaitPromise=True, returnByValue=True
        )
        found[width, dark] = answer["result"]["value"], browser.value(SIDEWAYS)
    assert found == dict.fromkeys(LOOKS, ([], 0))


@pytest.mark.parametrize("name", SITE)
def test_the_site(browser, name):
    path = BUILD / "site" / name
    assert path.exists(), f"there is no {path}: make docs writes it"
    check(browser, path.as_uri())


@pytest.mark.parametrize("name", studies.ALL)
def test_the_report_of_a_fit(browser, tmp_path, name):
    path = tmp_path / "report.html"
    path.write_text(page(studies.ALL[name]()), "utf-8")
    check(browser, path.as_uri())


def test_the_report_of_a_reproduction(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(content(runs.small()), "utf-8")
    check(browser, path.as_uri())


def test_the_page_to_label_on(browser, tmp_path):
    table, _ = asked.mails()
    labeling = asked.opened(tmp_path, asked.results(tmp_path, table), table)
    with serving(labeling, labeling.suggested(2)) as address:
        check(browser, address)


def test_findings_are_found(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<html lang='en'><title>x</title><p style='color: #eee'>pale</p>", "utf-8")
    with pytest.raises(AssertionError, match="color-contrast"):
        check(browser, path.as_uri())
