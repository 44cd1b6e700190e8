"""The stacked model: how far it moves, when there is none, and what is said about it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from neverworse.evidence import FEWEST_LABELS
from neverworse.rows import as_rows
from neverworse.study import ThresholdRule, _choice, candidates_named
from neverworse.study._choice import choose, stack
from neverworse.study._files import study_from
from neverworse.study._methods import standard_methods
from neverworse.study._verdict import AUDIT, ladder
from neverworse.tables import TableError, load_model, save_model
from tests.study.fits import few_labels, fitted, studied, table

pytestmark = pytest.mark.usefixtures("quick")

LOGISTIC = {"candidates": ("logistic regression",)}


@pytest.fixture(scope="module")
def moved():
    """A fit without a penalty, which has much to learn from logistic regression; its study."""
    fit, settings = fitted(**LOGISTIC)
    return fit, settings, *studied(fit, settings)


def labels_of(n_labeled):
    """The usual table, of which so many rows keep their label."""
    rows = table()
    column = rows.column("class").to_pylist()
    known = [k for k, label in enumerate(column) if label is not None][:n_labeled]
    kept = [label if k in known else None for k, label in enumerate(column)]
    return rows.set_column(rows.column_names.index("class"), "class", [kept])


def test_probabilities_are_moved_by_the_step_that_is_said(moved):
    fit, _, study, _, chosen = moved
    (facts,) = study.confident.candidates
    assert 0.0 < facts.step <= 1.0
    assert (study.verdict.kind, chosen.facts.name) == ("stacked", "stacked")
    free = np.isnan(fit.target.codes)
    candidate = standard_methods(fit.classifier, ["logistic regression"])["logistic regression"]
    c = candidate.fit(fit.features, fit.target.codes).predict_proba(fit.features)[free]
    g = fit.classifier.supervised_.predict_proba(fit.features)[free]
    np.testing.assert_allclose(chosen.probabilities, g + facts.step * (c - g), atol=1e-9)
    np.testing.assert_array_equal(chosen.codes, chosen.probabilities.argmax(axis=1))
    # The change of the Brier score by the step, from the same numbers.
    y = np.array([1.0, 0.0])[:, None]  # of all rows in turn
    after, before = ((y - p[None, :, 1]) ** 2 for p in (chosen.probabilities, g))
    worst = (after - before).max(axis=0).mean()
    assert study.model.audit.worst_case == pytest.approx(worst, rel=1e-6)
    assert study.confident.largest_change < 0.0
    assert study.confident.expected_change < study.confident.largest_change


def test_what_is_said_is_in_the_study_and_comes_back_from_its_file(moved):
    _, _, study, _, chosen = moved
    certain, confident, undecided = study.ladder
    assert certain.words[0] == study.claim
    assert "With 95 % confidence, the Brier score of the stacked model on the" in confident.words[0]
    assert "labels are missing completely at random" in confident.words[1]
    n_differing = np.sum(chosen.codes != chosen.supervised)
    assert undecided.words[0].endswith(f"They differ on {n_differing} of the 110 unlabeled rows.")
    assert undecided.words[-1] == AUDIT
    assert "It is likely better than the supervised one" in " ".join(study.model.words)
    again = study_from(json.loads(json.dumps(study.to_dict())))
    assert (again.ladder, again.confident) == (study.ladder, study.confident)
    assert study.importance.model == "stacked"
    names = [each.method for each in study.comparison.methods]
    assert names == ["supervised", "projected", "ICLS", "stacked"]
    assert study.comparison.of("stacked").guarantee.endswith("with 95 % confidence")


@pytest.mark.parametrize("name", ["random forest", "self-training", "self-learning", "ICLS"])
def test_model_files_of_stacked_models_predict_the_same(name, tmp_path):
    fit, settings = fitted(candidates=(name,), model="stacked")
    stacked = stack(fit, settings)
    if not stacked.has_moved:
        pytest.fail(f"{name} is expected to be better than least squares without a penalty")
    chosen = choose(fit, settings, None, None, stacked)
    compiled = name == "random forest"
    assert chosen.facts.compiled == compiled
    save_model(chosen.model, tmp_path / "m.skops", facts={}, compiled=compiled)
    model = load_model(tmp_path / "m.skops", compiled=compiled).model
    free = np.isnan(fit.target.codes)
    np.testing.assert_allclose(model.predict_proba(table())[free], chosen.probabilities)


def test_without_a_step_the_stacked_model_is_the_supervised_one():
    # The projected model is the supervised one here, so that there is nothing to move towards.
    fit, settings = fitted(alpha=1e6, candidates=("projected",), model="stacked")
    assert fit.model.certificate_.reason
    study, _, chosen = studied(fit, settings)
    assert study.confident.chosen == ()
    assert (study.model.name, study.verdict.model) == ("stacked", "supervised")
    free = np.isnan(fit.target.codes)
    expected = fit.classifier.supervised_.predict_proba(fit.features)[free]
    np.testing.assert_array_equal(chosen.probabilities, expected)
    assert study.model.audit.worst_case == study.model.audit.best_case == 0.0
    assert "It is the supervised one" in " ".join(study.model.words)
    assert study.ladder[1].words[0].startswith("Nothing: 30 labels do not show, with 95 % conf")
    assert not study.ladder[1].found


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"candidates": ()}, "it was turned off (--candidates none)."),
        ({"class_weight": "balanced"}, "with --class-weight, scores are not probabilities"),
        ({"rows": labels_of(FEWEST_LABELS - 1)}, "it needs at least 10 labeled rows, and there"),
        ({"rows": few_labels()}, "it needs at least 10 labeled rows, and there are 2."),
    ],
    ids=["none", "class weight", "nine labels", "two labels"],
)
def test_a_fit_goes_on_without_a_stacked_model_and_says_why(changed, words):
    fit, settings = fitted(**LOGISTIC | changed)
    study, *_ = studied(fit, settings)
    assert study.confident is None
    assert study.ladder[1].words[0].startswith(f"Not known: {words}")
    assert not study.ladder[1].found
    assert study.model.name != "stacked"
    with pytest.raises(TableError, match=r"There is no stacked model: .* Choose another --model"):
        studied(fit, replace(settings, model="stacked"))


def test_ten_labels_are_enough():
    fit, settings = fitted(rows=labels_of(FEWEST_LABELS), **LOGISTIC)
    assert stack(fit, settings).facts.n_labeled == FEWEST_LABELS


def test_rows_of_weight_zero_are_no_labels():
    rows = table()
    known = [label is not None for label in rows.column("class").to_pylist()]
    weights = np.where(np.cumsum(known) <= 9, 1.0, np.where(known, 0.0, 1.0))
    rows = rows.set_column(rows.column_names.index("weight"), "weight", [weights])
    fit, settings = fitted(rows=rows, weight="weight", **LOGISTIC)
    assert "and there are 9." in stack(fit, settings).why_not


def test_a_candidate_that_fails_is_no_reason_to_stop(monkeypatch):
    def fail(*_, **__):
        raise TypeError("No such rows.")

    monkeypatch.setattr("neverworse.study._methods.TunedClassifier.fit", fail)
    found = stack(*fitted(**LOGISTIC))
    assert found.why_not == "No such rows. To choose others: --candidates."


def test_of_large_tables_rows_are_drawn_and_that_is_said(monkeypatch):
    monkeypatch.setattr(_choice, "MOST_UNLABELED", 50)
    fit, settings = fitted(**LOGISTIC)
    here, there = (
        stack(each, settings) for each in (fit, replace(fit, features=as_rows(fit.features)))
    )
    assert here.facts.n_unlabeled == 50
    assert here.facts.is_sample
    words = ladder("", False, here.facts, "", model="x", n_differing=1, n_unlabeled=110)[1].words
    assert "on a random sample of 50 unlabeled rows is lower" in words[0]
    assert there.facts.candidates[0].step == pytest.approx(here.facts.candidates[0].step)


def test_models_of_some_of_the_labels_are_not_compared_with_one_of_all(monkeypatch):
    monkeypatch.setattr("neverworse.study._choice.MOST_LABELED", 20)
    fit, settings = fitted(**LOGISTIC)
    assert stack(fit, settings).why_not.startswith("there are more than 20 labels.")


def test_thresholds_of_stacked_models_are_tested_on_held_out_rows():
    wanted = {"candidates": ("ICLS",), "model": "stacked", "threshold": ThresholdRule("balanced")}
    fit, settings = fitted(**wanted)
    study, _, chosen = studied(fit, settings)
    assert study.confident.chosen
    decision = study.model.decision
    assert decision.numbers is not None
    positive = chosen.probabilities[:, fit.positive] >= decision.threshold
    np.testing.assert_array_equal(chosen.codes == fit.positive, positive)
    assert "before threshold and calibration" in " ".join(study.model.words)


def test_several_classes():
    fit, settings = fitted(3, alpha=1.0, model="stacked", **LOGISTIC)
    study, _, chosen = studied(fit, settings)
    np.testing.assert_allclose(chosen.probabilities.sum(axis=1), 1.0)
    assert study.confident.candidates[0].name == "logistic regression"


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["icls", "Random_Forest"], ("ICLS", "random forest")),
        (["icls", "ICLS"], ("ICLS",)),
        (["None"], ()),
        (["projected"], ("projected",)),
    ],
)
def test_candidates_may_be_spelled_freely(texts, names):
    assert candidates_named(texts) == names


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["forrest"], r"no candidate 'forrest' for --candidates\. Did you mean 'random forest'\?"),
        (["TSVM"], "There is no candidate 'TSVM'"),
        (["supervised"], "There is no candidate 'supervised'"),
        (["none", "ICLS"], "There is no candidate 'none'"),
    ],
)
def test_candidates_that_there_are_not(texts, said):
    with pytest.raises(ValueError, match=said):
        candidates_named(texts)


def test_the_undecided_rung_of_a_supervised_model():
    said = ladder("No.", False, None, "why.", model="supervised", n_differing=0, n_unlabeled=9)[2]
    assert said.words == ("Whether another model is better than the supervised one.", AUDIT)
