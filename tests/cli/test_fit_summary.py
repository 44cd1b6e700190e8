"""What is printed after a fit, in words that agree with its numbers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from neverworse.cli.fit import summary
from tests.study.report import studies

PATHS = [Path("out/model.skops")]


@pytest.mark.parametrize("make", [studies.binary, studies.nothing_improved, studies.three_classes])
def test_what_to_do_comes_first_and_fits_the_first_lines(make):
    study = make()
    lines = "\n".join(summary(study, PATHS)).splitlines()
    assert lines[0].startswith(("Use the ", "Stay with "))
    assert lines[1].startswith("How good    On held-out rows it is wrong ")
    labels = [line[:12].strip() for line in lines[: lines.index("")] if line[:12].strip()]
    why = ["Why"] if study.verdict.reasons else []
    expected = ["How good", "Certain", "Confident", "Undecided", *why, "Could help"]
    assert [label for label in labels[1:] if label != "Caution"] == expected
    assert max(map(len, lines)) <= 90


def test_how_to_label_names_the_folder():
    study, path = studies.binary(), Path("my results/model.skops")
    command = "neverworse label 'my results' --next 20"
    assert study.model.name == "projected"
    assert command in "\n".join(summary(study, [path]))
    decided = dataclasses.replace(study.ladder[-1], found=False)
    study = dataclasses.replace(study, ladder=(*study.ladder[:-1], decided))
    assert command not in "\n".join(summary(study, [path]))


def test_percentages_are_not_torn_apart():
    verdict = dataclasses.replace(studies.binary().verdict, quality="word " * 12 + "12.3 % 45.6 %")
    study = dataclasses.replace(studies.binary(), verdict=verdict)
    assert not [
        line for line in "\n".join(summary(study, PATHS)).splitlines() if line.endswith("3")
    ]
    assert "12.3 %" in "\n".join(summary(study, PATHS))


def test_methods_that_failed_are_said():
    base = studies.binary()
    comparison = dataclasses.replace(base.comparison, failures={"TSVM": "It takes more rows."})
    said = "\n".join(summary(dataclasses.replace(base, comparison=comparison), PATHS))
    assert "Left out, because its fit failed: TSVM. It takes more rows." in said


@pytest.mark.parametrize(("n", "words"), [(1, "1 more column:"), (3, "3 more columns:")])
def test_columns_that_are_left_out(n, words):
    study = studies.binary()
    columns = (study.data.columns[0],) * (40 + n)
    data = dataclasses.replace(study.data, columns=columns)
    said = "\n".join(summary(dataclasses.replace(study, data=data), PATHS))
    assert f"... and {words} see the report" in said
