"""What is printed after a fit, in words that agree with its numbers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from neverworse.cli._fit_words import summary
from tests.report import studies


@pytest.mark.parametrize(
    ("n_changed", "n_unlabeled", "sentence"),
    [
        (0, 529, "None of 529 unlabeled rows gets another class"),
        (1, 529, "1 of 529 unlabeled rows gets another class"),
        (2, 1529, "2 of 1,529 unlabeled rows get another class"),
        (1, 1, "1 of 1 unlabeled row gets another class"),
    ],
)
def test_changed_classes(n_changed, n_unlabeled, sentence):
    study = studies.binary()
    changes = dataclasses.replace(study.changes, n_changed=n_changed, n_unlabeled=n_unlabeled)
    said = " ".join(summary(dataclasses.replace(study, changes=changes), [Path("out/model.skops")]))
    assert sentence in " ".join(said.split())


@pytest.mark.parametrize(("n", "words"), [(1, "1 more column:"), (3, "3 more columns:")])
def test_columns_that_are_left_out(n, words):
    study = studies.binary()
    columns = (study.data.columns[0],) * (40 + n)
    data = dataclasses.replace(study.data, columns=columns)
    said = "\n".join(summary(dataclasses.replace(study, data=data), [Path("out/model.skops")]))
    assert f"... and {words} see the report" in said
