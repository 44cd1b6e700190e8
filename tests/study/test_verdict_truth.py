"""Verdicts on tables whose missing labels are known: no verdict speaks against them."""

from __future__ import annotations

import csv
from functools import cache

import pytest
from scipy import stats

from neverworse.cli import main
from neverworse.study import read_study
from tests.study.fits import quickly
from tests.tables.messy import TABLES

READABLE = [name for name, table in TABLES.items() if not table.refused]


@pytest.fixture(scope="module")
def verdict_on(tmp_path_factory):
    """A function: the study of a table, and whether either model is right on each unlabeled row."""

    @cache
    def fitted(name, *options):
        table, folder = TABLES[name], tmp_path_factory.mktemp(name)
        (folder / "t.csv").write_bytes(table.csv)
        words = ["fit", str(folder / "t.csv"), "--target", table.target]
        words += ["--out", str(folder / "out"), "--quiet", "--no-curves"]
        with quickly(report=False):
            assert main([*words, *table.options, *options]) == 0
        with (folder / "out" / "predictions.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        truth = [table.truth[int(row["row"]) - 1] for row in rows]
        right = [
            [row[model] == true for row, true in zip(rows, truth, strict=True)]
            for model in ("prediction", "supervised_prediction")
        ]
        return read_study(folder / "out"), *right

    return fitted


def is_clearly_worse(chosen, other):
    """Whether the true classes say so: a sign test of the rows that one model alone has right."""
    lost = sum(b and not a for a, b in zip(chosen, other, strict=True))
    won = sum(a and not b for a, b in zip(chosen, other, strict=True))
    return lost + won > 0 and stats.binomtest(lost, lost + won, alternative="greater").pvalue < 0.05


def error_of(right):
    return 1.0 - sum(right) / len(right)


@pytest.mark.parametrize("name", READABLE)
def test_the_recommended_model_is_not_clearly_worse_by_the_truth(name, verdict_on):
    study, chosen, supervised = verdict_on(name)
    assert not is_clearly_worse(chosen, supervised)
    if study.verdict.kind == "nothing to gain":
        assert study.changes.n_changed == 0
    # Where nothing is said to have been learned, there is little, by the truth as well.
    if "can tell the classes apart" in " ".join(study.verdict.cautions):
        assert error_of(chosen) > 0.7 * study.comparison.baseline.error.value


def test_the_true_error_is_nearly_always_in_the_interval_that_is_told(verdict_on):
    misses = []
    for name in READABLE:
        study, chosen, _ = verdict_on(name)
        told = study.comparison.of(study.verdict.model).numbers.error
        if not told.low <= error_of(chosen) <= told.high:
            misses.append(name)
    # Of 25 intervals at 95 %, more than four miss with a probability below 1 %.
    assert len(misses) <= 4, misses


def test_rare_classes_are_not_praised_for_their_absence(verdict_on):
    study, *_ = verdict_on("fraud", "--candidates", "none")
    (caution,) = study.verdict.cautions
    assert "not clearly lower than that of always predicting 'ok'" in caution
    assert "--threshold" in caution
    assert "always predicting 'ok' would be wrong" in study.verdict.quality
    assert study.data.positive == "fraud"


def test_another_family_is_recommended_where_the_truth_is_not_linear(verdict_on):
    study, chosen, supervised = verdict_on("rings", "--compare", "--candidates", "none")
    assert study.verdict.kind == "another method"
    assert error_of(chosen) < error_of(supervised) - 0.2


@pytest.mark.parametrize("name", ["rings", "fraud"])
def test_the_stacked_model_is_recommended_where_a_candidate_knows_more(name, verdict_on):
    study, chosen, supervised = verdict_on(name)
    assert (study.verdict.kind, study.model.name) == ("stacked", "stacked")
    assert error_of(chosen) < 0.5 * error_of(supervised)
    assert study.ladder[1].found


def test_no_family_is_recommended_where_there_is_nothing_to_find(verdict_on):
    study, *_ = verdict_on("noise", "--compare")
    assert study.verdict.kind == "nothing to gain"
    assert (
        "nothing shows that these columns can tell the classes apart" in study.verdict.cautions[0]
    )
