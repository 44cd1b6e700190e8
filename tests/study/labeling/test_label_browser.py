"""The page to label on in a real browser: clicks, keys, narrow and wide, and how fast it is."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import uvicorn

from neverworse.study.labeling._server import LabelingPage, listening
from tests.study.labeling import asked
from tests.study.labeling.browser import BROWSER, Browser

pytestmark = pytest.mark.skipif(
    BROWSER is None or sys.platform == "win32", reason="there is no Chromium, or no pipes to it"
)
ROW = "document.getElementById('asked').dataset.row"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@contextmanager
def serving(labeling, suggested=()):
    """Serve the page, and yield its address."""
    with listening() as at:
        port = at.getsockname()[1]
        page = LabelingPage(labeling, suggested, "secret", port)
        config = uvicorn.Config(page, log_level="error", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [at]})
        thread.start()
        yield f"http://127.0.0.1:{port}/secret/"
        server.should_exit = True
        thread.join()


@pytest.fixture
def served(made, opening):
    """What is labeled, the classes of all rows, and the address of the page."""
    labeling = opening()
    with serving(labeling, labeling.suggested(2)) as address:
        yield labeling, made[3], address


def answered(browser, act):
    """Do something, and return how long the next row took."""
    before = browser.value(ROW)
    start = time.perf_counter()
    act()
    browser.wait(f"{ROW} !== {before!r}")
    return time.perf_counter() - start


def test_clicks_and_keys_lead_to_a_decision(browser, served):
    labeling, truth, address = served
    names = labeling.target.class_names
    browser.messages.clear()
    browser.open(address)
    first = browser.value(ROW)
    code = names.index(truth[int(first) - 1])
    answered(browser, lambda: browser.click(f"button[data-code='{code}']"))
    assert labeling.answers == {int(first): code}
    assert browser.value("document.activeElement.tagName") == "H2"
    assert browser.value("document.getElementById('message').textContent").startswith(
        f"Row {first}: "
    )
    second = browser.value(ROW)
    answered(browser, lambda: browser.press("s"))
    assert browser.value(ROW) != second
    answered(browser, lambda: browser.press("u"))
    assert browser.value(ROW) == first
    assert labeling.answers == {}
    while labeling.standing().verdict == "undecided":
        code = names.index(truth[int(browser.value(ROW)) - 1])
        answered(browser, lambda: browser.press(str(code + 1)))  # noqa: B023
    assert browser.value("document.getElementById('decision').textContent").startswith("Decided:")
    assert browser.messages == []


@contextmanager
def serving_random_rows(n, study, folder):
    """Serve the page for a table of n rows, on half of which two random models differ."""
    rng = np.random.default_rng(0)
    names = np.array(asked.CLASSES)
    table = pa.table(
        {
            "mail": np.arange(n).astype(str),
            **{f"x{k}": rng.normal(size=n) for k in range(8)},
            "kind": pa.array([*asked.CLASSES, *[None] * (n - 2)], pa.string()),
        }
    )
    predicted = {
        name: names[rng.integers(0, 2, n - 2)] for name in ("prediction", "supervised_prediction")
    }
    folder.mkdir()
    pyarrow.csv.write_csv(pa.table(predicted), folder / "predictions.csv")
    labeling = asked.opened(folder, study, table)
    with serving(labeling) as address:
        yield labeling, address


def test_the_next_of_a_million_rows_is_there_at_once(browser, made, tmp_path):
    with (
        serving_random_rows(1_000_000, made[1], tmp_path / "many") as many,
        serving_random_rows(1_000, made[1], tmp_path / "few") as few,
    ):
        seconds = {}
        for _ in range(4):  # in turn, so that whatever else runs slows both down
            for labeling, address in (many, few):
                browser.open(address)
                seconds.setdefault(labeling, []).extend(
                    answered(browser, lambda key=key: browser.press(key)) for key in "1221"
                )
        assert all(len(labeling.answers) == 16 for labeling in seconds)
    of_many, of_few = (np.median(seconds[labeling]) for labeling, _ in (many, few))
    # On a busy computer a thousand rows take as long.
    assert of_many < max(0.1, 3.0 * of_few)


def test_the_keyboard_alone_reaches_every_button(browser, served):
    labeling, _, address = served
    browser.open(address)
    reached = set()
    for _ in range(6):
        browser.press("Tab")
        reached.add(browser.value("document.activeElement.dataset.action"))
        if browser.value("document.activeElement.dataset.action") == "answer":
            break
    assert "answer" in reached
    answered(browser, lambda: browser.press("Enter"))
    assert len(labeling.answers) == 1


def test_a_key_that_is_held_down_answers_once(browser, served):
    labeling, _, address = served
    browser.open(address)
    answered(browser, lambda: browser.press("1"))
    browser.press("1", autoRepeat=True)
    browser.press("1", modifiers=2)
    time.sleep(0.2)
    assert len(labeling.answers) == 1


@pytest.mark.parametrize("width", [320, 390, 1100])
@pytest.mark.parametrize("dark", [False, True])
def test_narrow_and_wide_light_and_dark(browser, served, width, dark):
    browser.resize(width, 800, dark=dark)
    browser.open(served[2])
    sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.value(sideways) <= 0
    ground = browser.value("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")
    # The buttons can be seen though the row has many columns.
    box = "document.querySelector('.choices button').getBoundingClientRect()"
    assert browser.value(f"{box}.bottom <= innerHeight && {box}.top >= 0")
    assert browser.value(f"{box}.height >= 44 - 1")


def test_a_program_that_has_ended_is_told_of(browser, opening):
    labeling = opening()
    with serving(labeling) as address:
        browser.open(address)
    browser.press("1")
    browser.wait("document.getElementById('message').textContent.includes('does not answer')")
    assert labeling.answers == {}
