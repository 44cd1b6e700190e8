"""The model in the model file: the one that is wanted, fitted to all rows, and audited."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from neverworse import LeastSquaresClassifier, audit
from neverworse.rows import as_rows
from neverworse.study import ThresholdRule
from neverworse.study._choice import Stacked, check_choice, choose
from neverworse.study._files import predictions, study_from
from neverworse.study._methods import METHODS, named, standard_methods
from neverworse.study._verdict import claim
from neverworse.tables import TableError, load_model, save_model
from tests.study.fits import few_labels, fitted, studied, table

pytestmark = pytest.mark.usefixtures("quick")

# Those of the comparison that has no other methods take a second; the others are fitted once.
OTHERS = ["logistic regression", "random forest", "gradient boosting", "self-training"]
NONE = Stacked(None, "it was not asked for.")


@pytest.fixture(scope="module")
def plain():
    """A fit, its settings, its study and its scores."""
    fit, settings = fitted(alpha=0.5)
    return fit, settings, *studied(fit, settings)[:2]


def chosen_for(plain, **settings):
    fit, given, study, _scored = plain
    return choose(fit, replace(given, **settings), study.verdict.model, study.comparison, NONE)


def unlabeled_rows(fit):
    return np.isnan(fit.target.codes)


@pytest.mark.parametrize("name", ["projected", "supervised", "ICLS", "self-learning", *OTHERS])
def test_models_are_those_of_the_method_fitted_to_all_rows(plain, name):
    fit = plain[0]
    found = chosen_for(plain, model=name)
    method = standard_methods(fit.classifier, METHODS)[name]
    by_hand = method.fit(fit.features, fit.target.codes)
    rows = table()
    expected = by_hand.predict(fit.features)
    names = np.array(fit.target.class_names)
    assert found.model.predict(rows).tolist() == names[expected.astype(int)].tolist()
    free = unlabeled_rows(fit)
    np.testing.assert_array_equal(found.codes, expected[free])
    shares = by_hand.predict_proba(fit.features)
    np.testing.assert_allclose(found.model.predict_proba(rows), shares, atol=1e-12)
    np.testing.assert_allclose(found.probabilities, shares[free], atol=1e-12)
    assert found.facts.name == name
    assert found.facts.certified == (name == "projected")
    assert found.facts.words[0] == f"model.skops holds the {name} model."
    assert ("Nothing is proved about it" in " ".join(found.facts.words)) == (name != "projected")


DECIDED = {"calibrate": True, "threshold": ThresholdRule("f1")}


@pytest.mark.parametrize(
    ("name", "decided"),
    [
        *((name, {}) for name in ("projected", "supervised", "ICLS", "random forest")),
        ("projected", DECIDED),
    ],
)
def test_models_survive_their_file(plain, name, decided, tmp_path):
    found = chosen_for(plain, model=name, **decided)
    path = tmp_path / "model.skops"
    save_model(found.model, path, facts={}, compiled=found.facts.compiled)
    assert found.facts.compiled == (name == "random forest")
    if found.facts.compiled:
        with pytest.raises(ValueError, match="--trust-compiled"):
            load_model(path)
    loaded = load_model(path, compiled=found.facts.compiled).model
    rows = table()
    assert loaded.predict(rows).tolist() == found.model.predict(rows).tolist()
    np.testing.assert_array_equal(loaded.predict_proba(rows), found.model.predict_proba(rows))
    before = loaded.supervised().predict_proba(rows)
    np.testing.assert_array_equal(before, plain[0].model.supervised().predict_proba(rows))
    # Whatever is known about each row stays out of the file.
    assert path.stat().st_size < (200_000 if name == "random forest" else 60_000)


def test_auto_follows_the_verdict(plain):
    fit, settings, study, _scored = plain
    for name in ("projected", "supervised", "logistic regression"):
        found = choose(fit, settings, name, study.comparison, NONE)
        assert found.facts.name == name


@pytest.mark.parametrize("name", ["label spreading", "TSVM"])
def test_methods_without_probabilities_are_recommended_but_make_no_file(plain, name):
    fit, settings, study, _scored = plain
    found = choose(fit, settings, name, study.comparison, NONE)
    assert found.facts.name == "projected"
    assert found.facts.words[0] == (
        f"{name} gives no probabilities for new rows, so it has no model file."
    )


def test_what_needs_all_rows_in_memory_is_refused_or_replaced(plain):
    fit, settings, study, _scored = plain
    large = replace(fit, features=as_rows(fit.features))
    with pytest.raises(TableError, match=r"self-training needs all rows in memory \(--memory GB\)"):
        check_choice(large, replace(settings, model="self-training"))
    found = choose(large, settings, "self-training", study.comparison, NONE)
    assert found.facts.name == "projected"
    assert found.facts.words[0].startswith("self-training needs all rows in memory")


@pytest.mark.parametrize(("name", "calibrate"), [("ICLS", True), ("logistic regression", False)])
def test_tables_that_are_not_in_memory_give_the_same_model(plain, name, calibrate):
    fit, settings, study, _scored = plain
    large = replace(fit, features=as_rows(fit.features))
    wanted = replace(settings, model=name, calibrate=calibrate)
    here, there = (
        choose(each, wanted, study.verdict.model, study.comparison, NONE) for each in (fit, large)
    )
    np.testing.assert_allclose(here.probabilities, there.probabilities, atol=1e-8)


def test_models_that_failed_are_refused_with_the_reason(plain):
    fit, settings, study, _scored = plain
    failed = replace(study.comparison, failures={"ICLS": "It has no rows."})
    with pytest.raises(TableError, match=r"ICLS failed: It has no rows. Choose another --model."):
        choose(fit, replace(settings, model="ICLS"), study.verdict.model, failed, NONE)


def test_a_model_that_fails_on_all_rows_is_refused_with_the_reason(plain, monkeypatch):
    def fail(*_):
        raise TypeError("No such rows.\nMore.")

    monkeypatch.setattr("neverworse.study._methods.fitted", fail)
    with pytest.raises(TableError, match=r"^ICLS failed: No such rows. Choose another --model.$"):
        chosen_for(plain, model="ICLS")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("auto", "auto"),
        ("icls", "ICLS"),
        ("Random_Forest", "random forest"),
        ("self training", "self-training"),
    ],
)
def test_names_may_be_spelled_freely(text, name):
    assert named(text) == name


def test_unknown_names_are_refused_with_the_nearest_one():
    with pytest.raises(ValueError, match=r"no model 'forrest'.* Did you mean 'random forest'\?"):
        named("forrest")
    for name in ("xyz", "TSVM", "label spreading"):
        with pytest.raises(ValueError, match="There are 'auto', 'stacked', 'supervised', 'proj"):
            named(name)


@pytest.mark.parametrize(
    ("model", "others"),
    [("auto", []), ("ICLS", []), ("logistic regression", ["logistic regression"])],
)
def test_only_the_method_that_is_wanted_is_compared_besides_ours(model, others):
    study, *_ = studied(*fitted(model=model))
    names = [each.method for each in study.comparison.methods]
    assert names == ["supervised", "projected", "ICLS", *others]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("supervised", {"threshold": ThresholdRule(value=0.2)}),
        ("supervised", {"calibrate": True, "threshold": ThresholdRule("f1")}),
        ("projected", {"threshold": ThresholdRule(value=0.2)}),
        ("self-learning", {"calibrate": True, "threshold": ThresholdRule(value=0.2)}),
    ],
)
def test_a_threshold_alone_changes_no_prediction(plain, name, settings):
    """Both models are asked with the threshold that is in the file."""
    fit, _, _, scored = plain
    found = chosen_for(plain, model=name, **settings)
    table = predictions(found, scored, None)
    changed = np.array(table.column("changed").to_pylist())
    baseline = fit.classifier.supervised_
    shares = baseline.predict_proba(fit.features[unlabeled_rows(fit)])
    positive, threshold = fit.positive, found.facts.decision.threshold
    if not (settings.get("calibrate") and name == "supervised"):
        is_positive = shares[:, positive] >= threshold
        np.testing.assert_array_equal(found.supervised == positive, is_positive)
        assert (found.supervised != scored.predictions[0]).any()
    np.testing.assert_array_equal(changed, found.codes != found.supervised)
    assert not changed.any() or name != "supervised"


# Audits


@pytest.mark.parametrize("name", ["projected", "ICLS", "logistic regression"])
def test_audits_are_about_the_probabilities_of_unlabeled_rows(plain, name):
    fit = plain[0]
    facts = chosen_for(plain, model=name).facts.audit
    free = unlabeled_rows(fit)
    model = standard_methods(fit.classifier, METHODS)[name].fit(fit.features, fit.target.codes)
    by_hand = audit(
        model,
        fit.classifier.supervised_,
        fit.features[free],
        np.full(free.sum(), np.nan),
        response="predict_proba",
        missing_label=np.nan,
    )
    assert facts.response == "predict_proba"
    assert facts.worst_case == pytest.approx(by_hand.worst_case, rel=1e-6)
    assert facts.best_case == pytest.approx(by_hand.best_case, rel=1e-6)
    assert facts.holds == by_hand.holds
    assert facts.words.startswith(by_hand.summary()[:60])
    assert "The candidate is the model in the file" in facts.words


def test_the_audit_of_the_supervised_model_finds_no_difference(plain):
    facts = chosen_for(plain, model="supervised").facts.audit
    assert facts.worst_case == facts.best_case == 0.0
    assert facts.words.startswith("No difference: on these 110 rows")


def test_shares_of_classes_bound_the_audit():
    prior = {"benign": (0.6, 0.7)}
    fit, settings = fitted(rows=few_labels(), alpha=0.5, model="ICLS", prior=prior)
    found = studied(fit, settings)[2]
    before = fit.classifier.supervised_.predict_proba(fit.features)[unlabeled_rows(fit)]
    free, bounded = (
        audit(
            *(found.probabilities, before, None, np.full(len(before), np.nan)),
            response="predict_proba",
            class_prior=given,
        )
        for given in (None, {0: (0.6, 0.7)})
    )
    assert found.facts.audit.worst_case == pytest.approx(bounded.worst_case, rel=1e-6)
    assert bounded.worst_case < 0.9 * free.worst_case


# Thresholds and calibration


def test_what_was_decided_on_is_part_of_the_study(plain):
    fit, _, study, _ = plain
    found = chosen_for(plain, model="projected", threshold=ThresholdRule("balanced"))
    decision = found.facts.decision
    positive = fit.target.class_names[fit.positive]
    assert (decision.rule, decision.positive) == ("balanced", positive)
    p = found.model.predict_proba(table())[:, fit.positive]
    expected = np.where(p >= decision.threshold, fit.positive, 1 - fit.positive)
    assert found.model.predict(table()).tolist() == [fit.target.class_names[k] for k in expected]
    assert f"{positive!r} is predicted where its probability is at least" in decision.words[0]
    words = " ".join(found.facts.words)
    assert "These statements are about its scores, before threshold and calibration." in words
    whole = replace(study, model=found.facts)
    assert study_from(json.loads(json.dumps(whole.to_dict()))).model == found.facts


def test_calibrated_probabilities_of_several_classes_add_up():
    fit, settings = fitted(3, alpha=1.0, model="supervised", calibrate=True)
    _, _, found = studied(fit, settings)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.codes, found.probabilities.argmax(axis=1))
    plain = fit.classifier.supervised_.predict_proba(fit.features)[unlabeled_rows(fit)]
    assert np.abs(plain - found.probabilities).max() > 0.05
    assert found.facts.decision.threshold is None
    assert found.facts.decision.calibrated


def test_one_half_is_what_models_do_anyway(plain):
    assert not plain[1].is_decided
    assert chosen_for(plain, model="projected").facts.decision is None


@pytest.mark.parametrize(
    ("n_classes", "settings", "message"),
    [
        (3, {"threshold": ThresholdRule("f1")}, "for two classes, and there are 3"),
        (
            2,
            {"threshold": ThresholdRule("f1")},
            r"both classes have 1 label. Say which one is positive: --positive malignant",
        ),
        (
            2,
            {"threshold": ThresholdRule("f1"), "positive": "benign"},
            r"tested on held-out labeled rows, .* at least 3 of every class, and 'benign' has",
        ),
        (2, {"calibrate": True}, "--calibrate are tested on held-out labeled rows"),
    ],
)
def test_what_cannot_be_decided_on_is_refused_before_anything_is_compared(
    n_classes, settings, message
):
    fit, given = fitted(n_classes, rows=few_labels(n_classes) if n_classes == 2 else None)
    with pytest.raises(TableError, match=message):
        check_choice(fit, replace(given, **settings))


def test_fewer_labels_than_folds_make_fewer_folds():
    rows = table(n_labeled=40)
    labels = rows.column("class").to_pylist()
    rare = [k for k, label in enumerate(labels) if label == "malignant"][3:]
    labels = [None if k in rare else label for k, label in enumerate(labels)]
    rows = rows.set_column(rows.column_names.index("class"), "class", [labels])
    fit, settings = fitted(rows=rows, alpha=1.0, threshold=ThresholdRule("balanced"))
    study, _, found = studied(fit, settings)
    assert study.comparison.n_folds == 3
    assert found.facts.decision.numbers is not None


def test_methods_have_the_weights_of_classes():
    fit, settings = fitted(alpha=0.5, class_weight="balanced")
    methods = standard_methods(fit.classifier, METHODS)
    assert isinstance(methods["supervised"], LeastSquaresClassifier)
    assert methods["supervised"].class_weight == "balanced"
    assert isinstance(methods["logistic regression"].estimator, LogisticRegression)
    assert methods["logistic regression"].estimator.class_weight == "balanced"
    study = studied(fit, settings)[0]
    assert "labeled rows weighted by class" in study.claim
    assert study.settings["class weight"] == "balanced"
    # Labeled rows are no part of the loss on unlabeled ones.
    fit, _ = fitted(alpha=0.5, class_weight="balanced", distance="unlabeled")
    assert "weighted" not in claim(fit.model.certificate_)
