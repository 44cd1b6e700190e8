"""report.html: one page, nothing else, and the numbers that were measured."""

import functools
import re
from html.parser import HTMLParser

import pandas as pd
import pytest

from neverworse.experiments import Reproduction
from neverworse.experiments._analysis import compare_table, guarantee_sentences, published
from neverworse.experiments._reproduction import Plan
from neverworse.experiments.report import circumstances, draw, write_report
from tests.experiments import runs

VOID = {"meta", "link", "img"}


class Page(HTMLParser):
    """Elements, links, images and the cells of tables; complains about what is not closed."""

    def __init__(self, content):
        super().__init__()
        self.open, self.images, self.tables, self.addresses, self.ids = [], [], [], [], []
        self.text = ""
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "img":
            self.images.append(attributes)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if "id" in attributes:
            self.ids.append(attributes["id"])
        self.addresses += [attributes[key] for key in ("src", "href") if key in attributes]
        assert tag not in ("iframe", "object")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open or "script" in self.open:
            return
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data

    def table(self, *head):
        (found,) = [table for table in self.tables if tuple(table[0][: len(head)]) == head]
        return found[1:]


def page(reproduction, **made):
    return Page(content(reproduction, **made))


@functools.cache
def page_of(make):
    return page(make())


def content(reproduction, **made):
    return write_report(reproduction, draw(reproduction), circumstances(reproduction, **made))


@pytest.fixture(scope="module")
def small_page():
    return page(runs.small(), command="neverworse reproduce <all> & more", took="3 seconds")


def test_the_page_needs_nothing_else(small_page):
    for address in small_page.addresses:
        assert address.startswith(("data:", "#")), address[:80]
    for address in small_page.addresses:
        assert not address.startswith("#") or address[1:] in small_page.ids
    css = re.search(r"<style>(.*)</style>", content(runs.small(("table",), 1)), re.S)[1]
    assert "@import" not in css
    assert "url(" not in css
    assert "prefers-color-scheme: dark" in css
    assert "@media print" in css


def test_images_say_what_they_show(small_page):
    assert len(small_page.images) == 2
    for image in small_page.images:
        assert "loss on" in image["alt"]
        assert len(image["alt"]) > 80


def test_headline_and_circumstances(small_page):
    text = small_page.text
    assert "The guarantee holds." in text
    for sentence in guarantee_sentences(runs.small().guarantees):
        assert sentence in text
    assert "2 of 2 resamplings" in text
    assert "20 of 20 folds" in text
    assert "alpha=0.0, constraint_alpha=0.0" in text
    assert "neverworse reproduce <all> & more" in text  # escaped, and then read again
    assert "3 seconds" in text
    assert "2 repeats (published: 100) on WDBC" in text
    for correction in ("Folds", "Pseudo-inverse", "Projection", "Random numbers", "TSVM"):
        assert correction in text[text.index("what follows differs from what was published") :]
    assert published()["source"] in text


def test_numbers_beside_the_published_ones(small_page):
    cells = runs.small().summaries["table"].set_index("method")
    rows = small_page.table("dataset", "method", "mean")
    assert len(rows) == 6
    for dataset, method, mean, sd, mark, theirs, _, _, difference, z, agrees in rows:
        cell = cells.loc[method]
        assert (dataset, mark, agrees) == ("WDBC", cell["mark"], str(cell["agrees"]))
        found = [
            float(text.replace("\N{MINUS SIGN}", "-")) for text in (mean, sd, theirs, difference, z)
        ]
        expected = cell[["mean", "sd", "published", "difference", "z"]]
        assert found == pytest.approx(expected.to_list(), rel=6e-3)


def test_counts_of_the_robustness_experiment(small_page):
    summary = runs.small().summaries["robustness"].set_index(["rows", "method"])
    tables = [table for table in small_page.tables if table[0][1:3] == ["Self-Learning", "ICLS"]]
    for rows, table in zip(("training", "test"), tables, strict=True):
        for name, cell in zip(table[0][1:], table[1][1:], strict=True):
            assert cell.startswith(f"{summary.loc[(rows, name), 'higher']} of 2; ")
        assert table[-1][0] == "All"


def test_a_violation_is_not_hidden():
    found = runs.small(("table",), 1)
    worse = {"robustness": {"fits": 2, "higher": 1, "higher_than_supervised": 2}}
    broken = Reproduction(found.plan, found.correction, found.measurements, found.summaries, worse)
    text = page(broken).text
    assert "The guarantee is violated." in text
    assert "1 of 2 resamplings" in text
    assert "whose weights may differ from those: 0 of 2; in the published run, 1507" in text


def test_a_higher_loss_than_that_of_other_weights_is_told_but_no_violation():
    found = runs.small(("table",), 1)
    counts = {"fits": 20, "higher": 0, "higher_than_supervised": 1}
    text = page(
        Reproduction(
            found.plan,
            found.correction,
            found.measurements,
            found.summaries,
            {"table": counts},
        )
    ).text
    assert "The guarantee holds." in text
    assert "20 of 20 folds" in text
    assert "whose weights may differ from those: 19 of 20; in the published run, 3106" in text


@pytest.mark.parametrize("make", [runs.timing, runs.curves, lambda: runs.small(("table",), 1)])
def test_parts_of_the_paper(make):
    read = page_of(make)
    assert "nan" not in re.findall(r"\b\w+\b", read.text.lower().replace("returns nan", ""))
    assert len(read.tables) >= 1


def test_timing_beside_the_published_one():
    read = page_of(runs.timing)
    assert "Projection took 84 times" in " ".join(read.text.split())
    rows = read.table("method", "n unlabeled", "ratio")
    summary = runs.timing().summaries["timing"].set_index(["method", "n_unlabeled"])
    (row,) = [row for row in rows if row[:2] == ["Projection", "1024"]]
    assert float(row[2]) == pytest.approx(summary.loc[("Projection", 1024), "ratio"], rel=6e-3)
    assert rows[-1][:2] == ["TSVM", "2048"]


def test_ends_of_the_learning_curves_are_beside_the_words_of_the_paper():
    read = page_of(runs.curves)
    assert "SPECT: the error of ICLS is lower than that of Supervised" in read.text
    rows = read.table("dataset", "measure", "method", "n unlabeled", "mean")
    measured = runs.curves().measurements["curves"]
    errors = measured.groupby(["method", "n_unlabeled"])["error"].mean()["ICLS"]
    (row,) = [row for row in rows if row[1:3] == ["error", "ICLS"]]
    assert (int(row[3]), int(row[6])) == (errors.index[-1], errors.idxmin())
    assert float(row[4]) == pytest.approx(errors.iloc[-1], rel=6e-3)
    assert float(row[7]) == pytest.approx(errors.min(), rel=6e-3)


def test_the_known_exception_is_explained():
    cells = pd.DataFrame(
        [
            {"dataset": "Mammography", "method": name, **cell, "repeats": 20}
            for name, cell in published()["table"]["Mammography"].items()
        ]
    ).assign(p_less=1.0, p_greater=1.0)
    cells.loc[0, "mean"] = 0.27
    measured = pd.DataFrame({"dataset": ["Mammography"], "repeat": [0]})
    found = Reproduction(
        Plan(("table",), ("Mammography",)),
        "bonferroni",
        {"table": measured},
        {"table": compare_table(cells)},
        {},
    )
    text = page(found).text
    assert "Mammography is a known exception" in text
    assert "a supervised error of 0.301" in text
