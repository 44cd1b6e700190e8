"""Table 1 as Markdown and LaTeX."""

import re

import numpy as np
import pandas as pd
import pytest

from neverworse.experiments import _analysis
from neverworse.experiments._analysis import compare_table, published, signed_rank
from neverworse.experiments.report import table_files
from tests.experiments import runs


@pytest.fixture(scope="module")
def as_published():
    """The published table, as if we had measured it."""
    cells = [
        {
            "dataset": dataset,
            "method": method,
            "repeats": 20,
            "p_less": 1.0,
            "p_greater": 1.0,
            **cell,
        }
        for dataset, row in published()["table"].items()
        for method, cell in row.items()
    ]
    return compare_table(pd.DataFrame(cells))


def rows(markdown):
    found = re.findall(r"^\| (.*) \|$", markdown, re.M)
    return [row.split(" | ") for row in found if not row.startswith("---")]


def test_the_published_table_looks_as_published(as_published):
    text = table_files(as_published, "bonferroni")["table1.md"]
    by_name = {row[0]: row for row in rows(text)[1:18]}
    assert by_name["Diabetes"][1:5] == [
        "0.31 ± 0.02",
        "<u>0.34 ± 0.01</u>",
        "**0.30 ± 0.02**",
        "**0.31 ± 0.02**",
    ]
    assert [cell.strip() for cell in by_name["Win / draw / loss"]] == [
        "Win / draw / loss",
        "",
        "9 / 5 / 2",
        "13 / 3 / 0",
        "10 / 6 / 0",
        "",
        "5 / 8 / 3",
    ]
    assert [row[-1] for row in _analysis.wins(as_published)] == ["none"] * 4


def test_latex(as_published):
    text = table_files(as_published, "holm")["table1.tex"]
    assert r"Diabetes & 0.31 $\pm$ 0.02 & \underline{0.34 $\pm$ 0.01} & \textbf{0.30" in text
    assert "Holm" in text
    body = text[text.index("Dataset") : text.index(r"\bottomrule")]
    lines = [line for line in body.splitlines() if line != r"\midrule"]
    assert len(lines) == 18
    assert all(line.count("&") == 6 and line.endswith(r" \\") for line in lines)
    assert text.count("{") == text.count("}")
    assert text.isascii()


def test_measured_numbers_are_in_the_table():
    cells = runs.small().summaries["table"]
    text = table_files(cells, "bonferroni")["table1.md"]
    for cell in cells.to_dict(orient="records"):
        assert f"{cell['mean']:.2f} ± {cell['sd']:.2f}" in text
    assert "2 repeats" in text


def test_a_single_repeat_has_no_deviation():
    cells = runs.small(("table",), 1).summaries["table"]
    for text in table_files(cells, "holm").values():
        assert "nan" not in text.lower().replace("nan ", "")
        assert "over 1 repeat" in text
        assert f" {cells['mean'].iloc[0]:.2f} " in text
        assert "±" not in text
        assert r"\pm" not in text
    assert "single repeat" in _analysis.agreement_sentence(cells)


def test_differences_are_named(as_published):
    cells = as_published.copy()
    chosen = (cells["dataset"] == "Sonar") & (cells["method"] == "TSVM")
    cells.loc[chosen, "mark"] = ""
    cells.loc[chosen, "mean"] = 0.20
    cells = compare_table(cells[["dataset", "method", "mean", "sd", "repeats", "mark"]])
    assert _analysis.agreement_sentence(cells) == (
        "95 of 96 cells of Table 1 are within three standard errors of the published ones; not "
        "those of Sonar (TSVM)."
    )
    (total,) = (row for row in _analysis.wins(cells) if row[0] == "TSVM")
    assert total[1:3] == ["5 / 9 / 2", "5 / 8 / 3"]
    assert total[3] == "Sonar (ours: no different, published: worse)"


def test_too_few_repeats_for_tests(as_published):
    n = _analysis.MIN_REPEATS
    best = [signed_rank(-np.ones(k), "less") for k in (n - 1, n)]
    assert best[1] <= 0.05 / 64 < best[0]
    assert not _analysis.too_few_repeats(as_published)
    said = _analysis.too_few_repeats(as_published.assign(repeats=n - 1))
    assert f"With fewer than {n} repeats and the 64 tests of the paper" in said


def test_different_numbers_of_repeats():
    measured = pd.DataFrame({"dataset": ["A", "A", "B"], "repeat": [0, 1, 0]})
    assert _analysis.n_repeats(measured) == "1 to 2 repeats"
