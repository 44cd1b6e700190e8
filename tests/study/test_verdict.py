"""The verdict: few rules, at their edges, and the words that go with them."""

from __future__ import annotations

import dataclasses

import pytest

from neverworse.study import _verdict
from neverworse.study._study import DecisionFacts, Estimate
from neverworse.study._verdict import Evidence, decide
from tests.study.report import studies

MINUS = "\N{MINUS SIGN}"
SAME = Estimate(0.0, -0.01, 0.01)
LOWER = Estimate(-0.02, -0.03, -0.001)
HIGHER = Estimate(0.02, 0.001, 0.03)
JUST_NOT_LOWER = Estimate(-0.02, -0.04, 0.0)
JUST_NOT_HIGHER = Estimate(0.02, 0.0, 0.04)


def signs(*differences):
    return [each.sign for each in differences if each is not None]


@pytest.mark.parametrize(
    ("guarantee", "loss", "error", "better", "kind"),
    [
        # Another method that is clearly better comes before everything else.
        ("improved", LOWER, LOWER, "forest", "another method"),
        ("same", SAME, SAME, "forest", "another method"),
        # The same model cannot be better or worse.
        ("same", SAME, SAME, None, "nothing to gain"),
        ("same", None, None, None, "nothing to gain"),
        # Clearly worse in either measure, whatever the certificate says.
        ("improved", HIGHER, SAME, None, "supervised"),
        ("improved", SAME, HIGHER, None, "supervised"),
        ("improved", LOWER, HIGHER, None, "supervised"),
        ("none", HIGHER, LOWER, None, "supervised"),
        ("improved", JUST_NOT_HIGHER, JUST_NOT_HIGHER, None, "projected"),
        # A guarantee is enough, and so is a clear improvement.
        ("improved", SAME, SAME, None, "projected"),
        ("improved", None, None, None, "projected"),
        ("none", LOWER, SAME, None, "projected"),
        ("none", SAME, LOWER, None, "projected"),
        ("none", None, LOWER, None, "projected"),
        # Nothing is clear.
        ("none", SAME, SAME, None, "undecided"),
        ("none", JUST_NOT_LOWER, JUST_NOT_LOWER, None, "undecided"),
        ("none", JUST_NOT_HIGHER, SAME, None, "undecided"),
        ("none", None, None, None, "undecided"),
    ],
)
def test_rules(guarantee, loss, error, better, kind):
    assert decide(guarantee, signs(loss, error), better is not None) == kind


@pytest.mark.parametrize(
    ("guarantee", "loss", "error", "better", "kind"),
    [
        ("same", SAME, SAME, None, "stacked"),
        ("same", None, None, None, "stacked"),
        ("improved", SAME, SAME, None, "stacked"),
        ("improved", JUST_NOT_LOWER, JUST_NOT_LOWER, None, "stacked"),
        ("none", HIGHER, LOWER, None, "stacked"),
        ("none", HIGHER, SAME, None, "stacked"),
        # A projected model that is clearly better, and not worse in any way, stays.
        ("improved", LOWER, SAME, None, "projected"),
        ("none", SAME, LOWER, None, "projected"),
        # What is clearly better than all of ours comes first.
        ("improved", SAME, SAME, "forest", "another method"),
    ],
)
def test_rules_where_the_stacked_model_is_better_with_confidence(
    guarantee, loss, error, better, kind
):
    assert decide(guarantee, signs(loss, error), better is not None, confident=True) == kind


def verdict_of(evidence, in_file=None):
    """By default, the recommended model is in the file."""
    model = dataclasses.replace(studies.binary().model, name=evidence.recommended)
    return _verdict.verdict_of(evidence, in_file or model)


def evidence(**changed):
    study = studies.binary()
    many = tuple(dataclasses.replace(each, n_labeled=30) for each in study.data.classes)
    found = Evidence(
        guarantee="improved",
        penalised=False,
        has_prior=False,
        data=dataclasses.replace(study.data, classes=many),
        changes=dataclasses.replace(study.changes, n_changed=3, n_unlabeled=400),
        comparison=study.comparison,
        better=(),
        labeled_curve=study.labeled_curve,
    )
    return dataclasses.replace(found, **changed)


def compared(projected=None, **of_all):
    """A comparison in which some facts of the projected model, or numbers of all, are others."""
    base = studies.comparison()
    methods = [
        dataclasses.replace(each, numbers=dataclasses.replace(each.numbers, **of_all))
        for each in base.methods
    ]
    methods[1] = dataclasses.replace(methods[1], **(projected or {}))
    return dataclasses.replace(base, methods=tuple(methods))


UNCLEAR = {"error_difference": SAME, "loss_difference": SAME}


def test_each_verdict_names_a_model_and_what_to_do():
    unclear = compared(UNCLEAR)
    for changed, kind, model, words in [
        (
            {"comparison": unclear},
            "projected",
            "projected",
            "its squared error is certain to be lower.",
        ),
        ({}, "projected", "projected", "it is clearly better on held-out rows"),
        (
            {"guarantee": "same"},
            "nothing to gain",
            "supervised",
            "show no certain improvement",
        ),
        (
            {"comparison": compared({"loss_difference": HIGHER})},
            "supervised",
            "supervised",
            "the projected one is clearly worse",
        ),
        ({"better": ("TSVM",)}, "another method", "TSVM", "It comes without a guarantee"),
        (
            {"guarantee": "none", "comparison": unclear},
            "undecided",
            "supervised",
            "nothing shows that the projected one is better",
        ),
    ]:
        found = verdict_of(evidence(**changed))
        assert (found.kind, found.model) == (kind, model)
        assert words in found.headline
        assert found.headline.startswith(("Use", "Stay"))
        assert found.quality.startswith("On held-out rows it is wrong ")


def with_stacked(**changed):
    """A comparison in which the stacked model has some facts of its own."""
    base = compared(UNCLEAR)
    facts = {"method": "stacked", **UNCLEAR, "brier_difference": SAME, "guarantee": "none"}
    stacked = dataclasses.replace(base.methods[2], **facts | changed)
    return dataclasses.replace(base, methods=(*base.methods, stacked))


def test_the_stacked_model_is_said_to_be_likely_and_not_certain():
    found = verdict_of(evidence(comparison=with_stacked(), confident=True, labeled_curve=None))
    assert (found.kind, found.model) == ("stacked", "stacked")
    assert "with 95 % confidence" in found.headline
    assert found.headline.endswith("its Brier score on the unlabeled rows is lower.")
    assert found.reasons[0].startswith("On held-out rows, the stacked model's error is on average")
    assert len(found.reasons) == 1
    assert "may be slightly too good" in found.cautions[0]
    assert found.advice == ()


@pytest.mark.parametrize("measure", ["error_difference", "brier_difference"])
def test_a_stacked_model_that_is_clearly_worse_on_held_out_rows_is_not_used(measure):
    worse = with_stacked(**{measure: HIGHER})
    assert verdict_of(evidence(comparison=worse, confident=True)).kind == "projected"


def test_a_stacked_model_that_could_not_be_compared_is_not_used():
    failed = dataclasses.replace(compared(UNCLEAR), failures={"stacked": "No rows."})
    for comparison in (failed, None):
        found = verdict_of(evidence(comparison=comparison, confident=True))
        assert found.kind == "projected"


def test_the_loss_of_the_guarantee_is_named():
    unclear = evidence(comparison=compared(UNCLEAR), penalised=True)
    assert "its penalised squared error is certain to be lower." in verdict_of(unclear).headline
    same = dataclasses.replace(unclear.changes, n_changed=0)
    found = verdict_of(dataclasses.replace(unclear, changes=same))
    assert "a different class from the supervised one for 0 of the 400" in found.reasons[-1]


def test_a_labeling_that_gives_the_supervised_model_rules_out_certainty_only():
    """The unlabeled rows may well improve the model for the true labels, but not for all."""
    found = verdict_of(evidence(guarantee="same"))
    assert found.headline == (
        "Use the supervised model: the unlabeled rows show no certain improvement."
    )


def test_words_have_the_numbers_and_the_baseline_beside_them():
    found = verdict_of(evidence())
    numbers, baseline = (
        studies.comparison().of("projected").numbers,
        studies.comparison().baseline,
    )
    low, high = (f"{100 * end:.1f}" for end in (numbers.error.low, numbers.error.high))
    assert found.quality.startswith(
        f"On held-out rows it is wrong {100 * numbers.error.value:.1f} % of the time (95 % "
        f"interval {low} % to {high} %); always predicting 'benign' would be wrong "
        f"{100 * baseline.error.value:.1f} % of the time."
    )
    recall = f"It finds {100 * numbers.classes[1].recall.value:.1f} % of the 'malignant' rows"
    assert recall in found.quality
    assert (
        f"{MINUS}2.3 points (95 % interval {MINUS}3.5 to {MINUS}1.1): clearly lower."
        in (found.reasons[0])
    )
    assert (
        "a different class from the supervised one for 3 of the 400 unlabeled" in found.reasons[-1]
    )


def test_no_praise_for_a_model_that_is_no_better_than_always_the_same_answer():
    error = Estimate(0.03, 0.02, 0.041)
    useful = compared(UNCLEAR, error=error, auc=Estimate(0.96, 0.9, 0.98))
    baseline = dataclasses.replace(useful.baseline, error=Estimate(0.0325, 0.02, 0.05))
    useful = dataclasses.replace(useful, baseline=baseline)
    (caution,) = verdict_of(evidence(comparison=useful)).cautions
    assert "not clearly lower than that of always predicting 'benign'" in caution
    assert "it ranks rows better than chance." in caution
    assert "--threshold" in caution
    useless = compared(UNCLEAR, error=error, auc=Estimate(0.55, 0.5, 0.6))
    useless = dataclasses.replace(useless, baseline=baseline)
    (caution,) = verdict_of(evidence(comparison=useless)).cautions
    assert "nothing shows that these columns can tell the classes apart" in caution
    good = compared(UNCLEAR, error=Estimate(0.01, 0.005, 0.0324))
    good = dataclasses.replace(good, baseline=baseline)
    assert verdict_of(evidence(comparison=good)).cautions == ()


def test_few_labels_are_said():
    data = studies.binary().data
    few = tuple(
        dataclasses.replace(c, n_labeled=9 if k else 30) for k, c in enumerate(data.classes)
    )
    found = verdict_of(evidence(data=dataclasses.replace(data, classes=few)))
    assert any(each.startswith("There are only 9 labels of 'malignant'") for each in found.cautions)
    none = verdict_of(evidence(comparison=None, labeled_curve=None))
    assert none.quality is None
    assert none.cautions[0].startswith("This was not tested on held-out rows")
    assert none.kind == "projected"


def test_what_could_help():
    curve = studies.binary().labeled_curve
    falls = dataclasses.replace(curve, error_step=LOWER)
    before, after = (each.value for each in curve.lines[-1].error[-2:])
    (advice,) = verdict_of(evidence(labeled_curve=falls)).advice
    assert advice.startswith("More labels: from 20 to 30 of them, the error on held-out rows fell")
    n_labeled = studies.binary().data.n_labeled
    assert f"{n_labeled} more may bring it to {100 * after**2 / before:.1f} %." in advice
    (advice,) = verdict_of(
        evidence(labeled_curve=dataclasses.replace(curve, error_step=SAME))
    ).advice
    assert "perhaps" in advice
    assert f"did not change on average (95 % interval {MINUS}1.0 to +1.0 points)" in advice
    # The curve is about our own models.
    assert verdict_of(evidence(labeled_curve=falls, better=("TSVM",))).advice == ()
    assert verdict_of(evidence(labeled_curve=None)).advice == ()


@pytest.mark.parametrize("has_prior", [False, True])
def test_what_could_help_where_nothing_can_be_improved(has_prior):
    few = studies.comparison()
    few = dataclasses.replace(few, methods=few.methods[:3])
    for comparison, tries in ((few, True), (studies.comparison(), False)):
        found = verdict_of(
            evidence(
                guarantee="same", comparison=comparison, labeled_curve=None, has_prior=has_prior
            )
        )
        assert any("--compare" in each for each in found.advice) == tries
        assert any("--prior malignant=LOW..HIGH" in each for each in found.advice) != has_prior


def test_columns_that_tell_the_class_are_a_caution():
    verdict = verdict_of(evidence(leaks=("leak",)))
    assert "'leak' determine the class of every labeled row" in verdict.cautions[0]
    assert "--drop" in verdict.cautions[0]
    assert not any("determine the class" in each for each in verdict_of(evidence()).cautions)


def in_file(numbers, name="projected"):
    """The model in the file, with a threshold."""
    decision = DecisionFacts("f1", "malignant", 0.2, False, numbers, ())
    return dataclasses.replace(studies.binary().model, name=name, decision=decision)


def test_the_numbers_are_those_of_the_model_in_the_file_at_its_threshold():
    always = studies.comparison().baseline
    base = studies.comparison().of("projected").numbers
    error = Estimate(0.35, 0.3, 0.43)
    tested = dataclasses.replace(base, error=error, classes=always.classes)
    verdict = verdict_of(evidence(), in_file(tested))
    assert verdict.quality.startswith(
        "On held-out rows, with --threshold f1, it is wrong 35.0 % of the time (95 % interval 30.0"
    )
    recall = always.of("malignant").recall.value
    assert f"It finds {100 * recall:.1f} % of the 'malignant' rows" in verdict.quality
    (caution,) = verdict.cautions
    assert caution.startswith("Its error is not clearly lower than that of always predicting")
    other = verdict_of(evidence(), in_file(tested, "ICLS"))
    assert (
        "with --threshold f1, the model in the file, ICLS, is wrong 35.0 % of the time"
        in other.quality
    )
    assert "threshold" not in verdict_of(evidence()).quality
