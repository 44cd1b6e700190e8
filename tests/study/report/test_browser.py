"""The report in a real browser: no errors, tables that work, and no scrolling sideways."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from neverworse.pages import digest
from neverworse.study.report import page
from tests.study.report import studies

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")

# Uses the tables as a reader would, and says what it saw.
USE = """
const seen = {};
try {
  const box = document.querySelector("#SECTION .sortable");
  const table = box.querySelector("table");
  const rows = () => Array.from(table.tBodies[0].rows);
  const column = (k) => rows().map((row) => {
    const number = row.cells[k].querySelector("data");
    return number ? Number(number.value) : row.cells[k].textContent;
  });
  const heading = table.tHead.rows[0].cells[COLUMN];
  const button = heading.querySelector("button");
  seen.before = column(COLUMN);
  button.click();
  seen.first = [heading.getAttribute("aria-sort"), column(COLUMN)];
  button.click();
  seen.second = [heading.getAttribute("aria-sort"), column(COLUMN)];
  const input = box.previousElementSibling.querySelector("input");
  if (input) {
    input.value = "FILTER";
    input.dispatchEvent(new Event("input"));
    seen.filtered = rows().filter((row) => !row.hidden).map((row) => row.cells[0].textContent);
    seen.count = input.nextElementSibling.textContent;
  }
  seen.width = window.innerWidth;
  seen.sideways = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  seen.buttons = document.querySelectorAll(".sortable th button").length;
  seen.headings = document.querySelectorAll(".sortable thead th").length;
} catch (error) {
  seen.error = String(error);
}
parent.postMessage(JSON.stringify(seen), "*");
"""
# Says which texts of charts reach beyond their chart.
MEASURE = """
const beyond = [];
for (const chart of document.querySelectorAll("figure.chart svg")) {
  const box = chart.getBoundingClientRect();
  for (const text of chart.querySelectorAll("text")) {
    const own = text.getBoundingClientRect();
    const over = Math.max(box.left - own.left, own.right - box.right, box.top - own.top,
                          own.bottom - box.bottom);
    if (over > 0.5) beyond.push(`${text.textContent}: ${over.toFixed(1)} pixels`);
  }
}
const enhanced = document.documentElement.className;
parent.postMessage(JSON.stringify({beyond, enhanced, width: window.innerWidth}), "*");
"""
# A window has a smallest width, a frame has none.
FRAMES = """<!DOCTYPE html><body><script>
const seen = [];
addEventListener("message", (event) => {
  seen.push(JSON.parse(event.data));
  document.documentElement.dataset.seen = JSON.stringify(seen);
});
</script>{}</body>
"""
FRAME = '<iframe src="report.html" width="{}" height="800" frameborder="0"></iframe>'


def opened(content, folder, name="report.html"):
    """Return the page after its script ran, and what the console said."""
    path = Path(folder) / name
    path.write_text(content, "utf-8")
    ran = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={folder}/profile",
            "--virtual-time-budget=5000",
            "--enable-logging=stderr",
            "--v=0",
            "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return ran.stdout, [line for line in ran.stderr.splitlines() if ":CONSOLE" in line]


def used(study, folder, section, column, word, *, width=1200):
    """Return what somebody saw who used a table, and what the console said."""
    use = USE.replace("SECTION", section).replace("COLUMN", str(column)).replace("FILTER", word)
    (seen,), said = ran_in(study, folder, use, width)
    return seen, said


def ran_in(study, folder, use, *widths):
    """Return what a script found in the page, at each width, and what the console said."""
    content = page(study)
    script = re.search(r"<script>(.*)</script>", content, re.S)[1]
    content = content.replace(script, script + use).replace(digest(script), digest(script + use))
    (folder / "report.html").write_text(content, "utf-8")
    frames = FRAMES.replace("{}", "".join(map(FRAME.format, widths)))
    dom, said = opened(frames, folder, "frame.html")
    seen = json.loads(unescape(re.search(r'data-seen="([^"]*)"', dom)[1]))
    return sorted(seen, key=lambda each: widths.index(each["width"])), said


@pytest.mark.parametrize("width", [1200, 390])
def test_tables_sort_and_filter(width, tmp_path):
    study = studies.not_guaranteed()
    seen, said = used(study, tmp_path, "changes", 5, "BENIGN", width=width)
    assert said == []
    shifts = [each.projected_score - each.supervised_score for each in study.changes.rows]
    assert seen["before"] == shifts
    assert seen["first"] == ["descending", sorted(shifts, reverse=True)]
    assert seen["second"] == ["ascending", sorted(shifts)]
    assert len(seen["filtered"]) == study.changes.n_changed  # changed from or to benign
    assert seen["count"] == f"{study.changes.n_changed} of {study.changes.n_changed} rows"
    assert seen["buttons"] == seen["headings"] > 20
    assert (seen["width"], seen["sideways"]) == (width, 0)


@pytest.mark.parametrize("name", studies.ALL)
def test_the_console_stays_empty_and_no_label_reaches_beyond_its_chart(name, tmp_path):
    seen, said = ran_in(studies.ALL[name](), tmp_path, MEASURE, 1280, 400)
    assert said == []
    good = {"beyond": [], "enhanced": "enhanced"}
    assert seen == [{**good, "width": 1280}, {**good, "width": 400}]


def test_the_table_of_methods_is_not_cut_in_a_window_of_1200_pixels(tmp_path):
    script = """
    const scroll = document.querySelector("#comparison .scroll");
    const hidden = scroll.scrollWidth - scroll.clientWidth;
    parent.postMessage(JSON.stringify({hidden, width: window.innerWidth}), "*");
    """
    seen, said = ran_in(studies.binary(), tmp_path, script, 1200)
    assert (seen, said) == ([{"hidden": 0, "width": 1200}], [])


def test_words_are_sorted_from_the_first_and_numbers_in_them_as_numbers(tmp_path):
    study = studies.not_guaranteed()
    rows = study.changes.rows
    seen, said = used(study, tmp_path, "changes", 0, rows[7].row.lower())
    assert said == []
    names = sorted(each.row for each in rows)
    assert seen["first"] == ["ascending", names]
    assert seen["second"] == ["descending", names[::-1]]
    assert seen["filtered"] == [rows[7].row]
    assert seen["count"] == f"1 of {len(names)} rows"


def test_names_from_outside_neither_run_nor_widen_the_page(tmp_path):
    seen, said = used(studies.nasty(), tmp_path, "coefficients", 0, "emoji", width=390)
    assert said == []
    assert (seen["width"], seen["sideways"]) == (390, 0)
    assert set(seen["filtered"]) == {studies.NASTY[3]}


def test_what_is_not_of_the_page_does_not_run(tmp_path):
    foreign = "<script>document.title = 'foreign'</script><p style='color: red'>x</p>"
    dom, said = opened(page(studies.bare()).replace("</main>", f"{foreign}</main>"), tmp_path)
    assert "<title>diagnosis" in dom
    assert len(said) == 2
    assert all("Content Security Policy" in line for line in said)
