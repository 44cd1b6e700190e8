"""What is said of a fit: what is proved and what is likely, which model to use, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from neverworse._words import change, count, interval, listed, number, percent, quoted
from neverworse.projection import Certificate
from neverworse.study import _study
from neverworse.study._methods import OURS, PROJECTED, STACKED, SUPERVISED

Guarantee = Literal["improved", "same", "none"]

AUDIT = (
    "A few new labels can decide it, with 95 % confidence and without assumptions about how the "
    "labeled rows were chosen: the sequential audit (docs/evidence.md) draws the rows to label."
)
FEW_LABELS = 10  # of a class; fewer say next to nothing about it


def decide(
    guarantee: Guarantee, signs: Sequence[int], better: bool = False, confident: bool = False
) -> _study.VerdictKind:
    """Return the verdict: the first rule that applies decides.

    Signs are those of clear differences of the projected model from the supervised one on held-out
    rows, in squared loss and in error. `better`: another method is clearly better than all our
    models. `confident`: so is the stacked model than the supervised one, by the labels.
    """
    is_better, is_worse = min(signs, default=0) < 0, max(signs, default=0) > 0
    if better:
        return "another method"
    if confident and (is_worse or not is_better):
        return "stacked"
    if guarantee == "same":
        return "nothing to gain"
    if is_worse:
        return "supervised"
    return "projected" if guarantee == "improved" or is_better else "undecided"


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on."""

    guarantee: Guarantee
    penalised: bool  # whether the guarantee is about a loss with a ridge penalty
    has_prior: bool  # whether shares of classes were given
    data: _study.DataFacts
    changes: _study.Changes
    comparison: _study.Comparison | None
    better: Sequence[str]  # methods that are clearly better than our own, the best first
    labeled_curve: _study.Curve | None
    confident: bool = False  # whether the stacked model is better than the supervised one
    kernel: str = ""  # why the models are linear or not
    leaks: Sequence[str] = ()  # columns that determine the class of every labeled row

    @property
    def kind(self) -> _study.VerdictKind:
        confident = self.confident and max(self._signs(STACKED, "error", "brier"), default=1) <= 0
        return decide(self.guarantee, self.signs, bool(self.better), confident)

    @property
    def recommended(self) -> str:
        """The name of the method to use."""
        better = next(iter(self.better), "")
        models = {"projected": PROJECTED, "stacked": STACKED, "another method": better}
        return models.get(self.kind, SUPERVISED)

    @property
    def signs(self) -> list[int]:
        """Whether the projected model is clearly better or worse on held-out rows: see `decide`."""
        return self._signs(PROJECTED, "loss", "error")

    def _signs(self, name: str, *measures: str) -> list[int]:
        """Return the signs of a method's differences from the supervised one, where known."""
        compared = () if self.comparison is None else self.comparison.methods
        found = (
            getattr(m, f"{k}_difference") for m in compared if m.method == name for k in measures
        )
        return [each.sign for each in found if each is not None]


def verdict_of(evidence: Evidence, in_file: _study.ModelFacts) -> _study.Verdict:
    """Return what to do, and why; how good that is, for the model in the file."""
    kind, model, comparison = evidence.kind, evidence.recommended, evidence.comparison
    numbers = None if comparison is None else in_file.numbers(comparison)
    return _study.Verdict(
        kind,
        model,
        _headline(kind, model, evidence),
        None if numbers is None else _quality(model, in_file, numbers, evidence),
        tuple(_reasons(kind, model, evidence)),
        tuple(_cautions(kind, numbers, evidence)),
        tuple(_advice(kind, evidence)),
    )


def _headline(kind: _study.VerdictKind, model: str, evidence: Evidence) -> str:
    proof = f"its {'penalised ' if evidence.penalised else ''}squared error is certain to be lower"
    is_better = min(evidence.signs, default=0) < 0
    reason = {
        "another method": "it is clearly better on held-out rows. It comes without a guarantee",
        "stacked": "with 95 % confidence, its Brier score on the unlabeled rows is lower",
        "nothing to gain": "the unlabeled rows show no certain improvement",
        "supervised": "the projected one is clearly worse on held-out rows",
        "undecided": "nothing shows that the projected one is better",
        "projected": "it is clearly better on held-out rows" if is_better else proof,
    }[kind]
    what = model if kind == "another method" else f"the {model} model"
    return f"{'Stay with' if kind == 'undecided' else 'Use'} {what}: {reason}."


def _reasons(kind: _study.VerdictKind, model: str, evidence: Evidence) -> Iterator[str]:
    """Yield differences from the supervised model: its error, and what else is clear."""
    if evidence.comparison is not None and kind != "nothing to gain":
        facts = evidence.comparison.of(PROJECTED if model == SUPERVISED else model)
        ways = {-1: "clearly lower", 0: "not a clear difference", 1: "clearly higher"}
        error = facts.error_difference
        assert error is not None
        by, none = "differs from the supervised one's by", "is on average the supervised one's"
        step = change(error, by, none)
        yield f"On held-out rows, the {facts.method} model's error {step}: {ways[error.sign]}."
        others = {"squared loss": facts.loss_difference, "Brier score": facts.brier_difference}
        for measure, found in others.items():
            if found is not None and found.sign not in (0, error.sign):
                difference = interval(found, sign=True)
                yield f"Its {measure} is {ways[found.sign]}, the difference being {difference}."
    if evidence.guarantee != "same" and kind != "stacked":
        yield (
            "The projected model predicts a different class from the supervised one for "
            f"{evidence.changes.n_changed:,} of the "
            f"{count(evidence.changes.n_unlabeled, 'unlabeled row')}."
        )
    if evidence.kernel:
        yield evidence.kernel


def _quality(
    recommended: str, model: _study.ModelFacts, numbers: _study.Numbers, evidence: Evidence
) -> str:
    """Say how good the model in the file is, compared with always predicting one class."""
    comparison, error = evidence.comparison, numbers.error
    assert comparison is not None
    it = "it" if model.name == recommended else f"the model in the file, {model.name},"
    decision = model.decision if model.has_threshold else None
    at = "" if decision is None else f", with --threshold {decision.rule},"
    words = (
        f"On held-out rows{at} {it} is wrong {percent(error.value)} of the time (95 % interval "
        f"{percent(error.low)} to {percent(error.high)}); always predicting "
        f"{comparison.majority!r} would be wrong {percent(comparison.baseline.error.value)} of the "
        "time."
    )
    if numbers.auc is not None:
        words += f" AUC {numbers.auc.value:.2f}."
    found = numbers.of(evidence.data.positive)
    if found is not None:
        words += f" It finds {percent(found.recall.value)} of the {found.name!r} rows"
        if found.precision is not None:
            right = percent(found.precision.value)
            words += f"; of the rows that it calls {found.name!r}, {right} are"
        words += "."
    return words


def _cautions(
    kind: _study.VerdictKind, numbers: _study.Numbers | None, evidence: Evidence
) -> Iterator[str]:
    comparison = evidence.comparison
    rarest = min(evidence.data.classes, key=lambda each: each.n_labeled)
    if evidence.leaks:
        yield (
            f"The values of {quoted(evidence.leaks)} determine the class of every labeled row. "
            "If they were derived from the target, or are known only where it is, the numbers here "
            "are too good to be true, and useless for the unlabeled rows: --drop."
        )
    if comparison is None or numbers is None:
        yield (
            "This was not tested on held-out rows: that takes at least two labeled rows of every "
            f"class, and {rarest.name!r} has {count(rarest.n_labeled, 'label')}."
        )
        return
    if kind == "stacked":
        yield (
            "The blend of the stacked model was chosen with all labels, so its numbers on "
            "held-out rows may be slightly too good."
        )
    if rarest.n_labeled < FEW_LABELS:
        yield (
            f"There are only {count(rarest.n_labeled, 'label')} of {rarest.name!r}: the numbers "
            "for this class are little more than a guess."
        )
    if numbers.error.high >= comparison.baseline.error.value:
        words = (
            f"Its error is not clearly lower than that of always predicting {comparison.majority!r}"
        )
        is_random = numbers.auc is None or numbers.auc.low <= 0.5
        yield (
            f"{words}, and nothing shows that these columns can tell the classes apart."
            if is_random
            else f"{words}, but it ranks rows better than chance. With two classes, another "
            "--threshold finds more rows of the rarer one, at the price of false alarms."
        )


def _advice(kind: _study.VerdictKind, evidence: Evidence) -> Iterator[str]:
    if kind == "another method":
        return  # the learning curve is about our own models
    curve = evidence.labeled_curve
    if curve is not None:
        before, after = (each.value for each in curve.lines[-1].error[-2:])
        step = f"{curve.sizes[-2]:,} to {curve.sizes[-1]:,} of them, the error on held-out rows"
        yield (
            f"More labels: perhaps. From {step} {change(curve.error_step)}."
            if curve.error_step.sign >= 0
            # A power law through the last two points falls by the same factor again.
            else f"More labels: from {step} fell from {percent(before)} to {percent(after)}. About "
            f"{evidence.data.n_labeled:,} more may bring it to {percent(after**2 / before)}."
        )
    if kind == "stacked" or (kind == "projected" and evidence.changes.n_changed):
        return
    methods = () if evidence.comparison is None else evidence.comparison.methods
    if 0 < len(methods) <= len(OURS) + 2:  # the stacked one, and one that was chosen
        yield "Another family of models: --compare tries several on the same folds."
    if not evidence.has_prior:
        name = evidence.data.positive or evidence.data.classes[0].name
        yield (
            f"A known share of a class among the unlabeled rows: --prior {name}=LOW..HIGH leaves "
            "more room for an improvement."
        )


def claim(certificate: Certificate) -> str:
    """Return what is proved, in one sentence for people who know nothing of quadratic losses."""
    unlabeled = f"the {count(certificate.n_unlabeled, 'unlabeled row')}"
    conditions = certificate.assumptions.conditions()
    if certificate.reason == "inside":
        return (
            "The projected model is the supervised one: some classes of the unlabeled rows"
            f"{conditions} would give exactly this model, so no other one is certain to be better."
        )
    if certificate.reason:
        return (
            "The projected model is the supervised one: no improvement was found that is certain "
            f"for all possible classes of the unlabeled rows{conditions}."
        )
    included = ["ridge penalty included"] if certificate.penalty else []
    where = unlabeled
    if certificate.rows == "all":
        where = f"all {certificate.n_labeled + certificate.n_unlabeled:,} rows"
        included += ["labeled rows weighted by class"] if certificate.class_weight else []
    if included:
        where += f", {' and '.join(included)},"
    least, highest = certificate.guaranteed_improvement, certificate.supervised_loss[1]
    share = f" ({100.0 * least / highest:.2g} %)" if 0.0 < highest < np.inf else ""
    start = f"Whatever the true classes of {unlabeled} are"
    how = f"at least {number(least)}{share} lower"
    if not certificate.holds:
        start, how = f"No guarantee: for some classes of {unlabeled}", "higher"
    return (
        f"{start}{conditions}, the projected model's squared error on {where} is {how} than that "
        f"of a model trained on the {certificate.n_labeled:,} labeled rows alone."
    )


def ladder(
    claim: str,
    improved: bool,
    facts: _study.ConfidentFacts | None,
    why_not: str,
    *,
    model: str,
    n_differing: int,
    n_unlabeled: int,
) -> tuple[_study.Rung, ...]:
    """Return what is certain, what is confident, and what is undecided.

    The claim is certain, and `improved` if it is about an improvement. `model` is in the file.
    """
    scores = "This is about scores, not about probabilities or wrong predictions."
    is_open = model == SUPERVISED or n_differing > 0
    undecided = "Whether another model is better than the supervised one."
    if model != SUPERVISED:
        undecided = (
            f"Whether the {model} model makes fewer errors than the supervised one. They "
            f"differ on {n_differing:,} of the {count(n_unlabeled, 'unlabeled row')}."
            if n_differing
            else f"Nothing about errors: the {model} model predicts the same class as the "
            "supervised one for every unlabeled row."
        )
    return (
        _study.Rung("certain", improved, (claim, scores) if improved else (claim,)),
        _study.Rung("confident", bool(facts and facts.chosen), tuple(_confident(facts, why_not))),
        _study.Rung("undecided", is_open, (undecided, AUDIT) if is_open else (undecided,)),
    )


def _confident(facts: _study.ConfidentFacts | None, why_not: str) -> Iterator[str]:
    """Yield what the labels show with confidence, and what that assumes."""
    if facts is None:
        yield f"Not known: {why_not}"
        return
    level = f"{100.0 * facts.level:g} %"
    if not facts.chosen:
        names = listed([each.name for each in facts.candidates])
        yield (
            f"Nothing: {count(facts.n_labeled, 'label')} do not show, with {level} confidence, "
            f"that a step towards {names} lowers the Brier score of the supervised model."
        )
        return
    sample = "a random sample of" if facts.is_sample else "the"
    rest = 1.0 - sum(each.step for each in facts.chosen)
    parts = [("the supervised model", rest), *((each.name, each.step) for each in facts.chosen)]
    blend = listed([f"{percent(step)} {name}" for name, step in parts if step > 0.0])
    yield (
        f"With {level} confidence, the Brier score of the stacked model on {sample} "
        f"{count(facts.n_unlabeled, 'unlabeled row')} is lower than that of the supervised model "
        f"by at least {number(-facts.largest_change, 2)}; the estimate is "
        f"{number(-facts.expected_change, 2)}. Its probabilities are a blend: {blend}."
    )
    yield (
        "Likely, not proved: this holds in large samples, if labels are missing completely at "
        "random, and if the model fitted to all labels does as well as the cross-validated ones."
    )
