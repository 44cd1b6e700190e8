"""What to do with a table: which model to use, why, and what could give a better one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from neverworse._words import change, count, percent, quoted
from neverworse.study._methods import OURS, PROJECTED, STACKED, SUPERVISED
from neverworse.study._study import (
    Changes,
    Comparison,
    Curve,
    DataFacts,
    Estimate,
    ModelFacts,
    Numbers,
    Verdict,
    VerdictKind,
)

Guarantee = Literal["improved", "same", "none"]

FEW_LABELS = 10  # of a class; fewer say next to nothing about it


def decide(
    guarantee: Guarantee,
    loss_difference: Estimate | None,
    error_difference: Estimate | None,
    better: str | None = None,
    confident: bool = False,
) -> VerdictKind:
    """Return the verdict that follows from what is proved and what held-out rows show.

    Differences are those of the projected model from the supervised one on held-out rows, None if
    not known. The rules, of which the first that applies decides:

    1. Another method that is clearly better than all our models on held-out rows is to be used.
    2. If the labels show with confidence that the stacked model is better, it is to be used, unless
       the projected model is clearly better than the supervised one on held-out rows.
    3. If nothing could be improved for certain, the projected model is the supervised one.
    4. If the projected model is clearly worse on held-out rows, in squared loss or in error, the
       supervised one is to be used.
    5. If the certificate guarantees an improvement, or the projected model is clearly better on
       held-out rows, it is to be used.
    6. Otherwise nothing speaks for either.
    """
    if better is not None:
        return "another method"
    signs = [each.sign for each in (loss_difference, error_difference) if each is not None]
    is_better = min(signs, default=0) < 0 and max(signs) <= 0
    if confident and not is_better:
        return "stacked"
    if guarantee == "same":
        return "nothing to gain"
    if max(signs, default=0) > 0:
        return "supervised"
    if guarantee == "improved" or min(signs, default=0) < 0:
        return "projected"
    return "undecided"


@dataclass(frozen=True)
class Evidence:
    """What a verdict is about."""

    guarantee: Guarantee
    penalised: bool  # whether that is about a loss with a ridge penalty
    no_room: bool  # whether nothing could be improved, and not merely nothing that was found
    has_prior: bool  # whether shares of classes were given
    data: DataFacts
    changes: Changes
    comparison: Comparison | None
    better: Sequence[str]  # methods that are clearly better than our own, the best first
    labeled_curve: Curve | None
    confident: bool = False  # whether the stacked model is better than the supervised one
    kernel: str = ""  # why the models are linear or not, in words
    telling: Sequence[str] = ()  # columns whose values say which class a labeled row has
    # In the file; as long as there is none, what is recommended counts, at a threshold of 0.5.
    model: ModelFacts | None = None

    @property
    def kind(self) -> VerdictKind:
        loss = error = None
        if self.comparison is not None:
            facts = self.comparison.of(PROJECTED)
            loss, error = facts.loss_difference, facts.error_difference
        better = next(iter(self.better), None)
        return decide(self.guarantee, loss, error, better, self._is_confident())

    def _is_confident(self) -> bool:
        """Whether the stacked model is better with confidence, and nothing speaks against it."""
        if not self.confident or self.comparison is None or STACKED in self.comparison.failures:
            return False
        facts = self.comparison.of(STACKED)
        differences = facts.error_difference, facts.brier_difference
        return not any(each is not None and each.sign > 0 for each in differences)


def verdict_of(evidence: Evidence) -> Verdict:
    """Return what to do, and why, in plain words."""
    kind = evidence.kind
    recommended = {
        "projected": PROJECTED,
        "stacked": STACKED,
        "another method": next(iter(evidence.better), ""),
    }
    model = recommended.get(kind, SUPERVISED)
    numbers = None
    if evidence.comparison is not None:
        numbers = evidence.comparison.of(model).numbers
        if evidence.model is not None:
            numbers = evidence.model.numbers(evidence.comparison)
    return Verdict(
        kind,
        model,
        _headline(kind, model, evidence),
        None if numbers is None else _quality(model, numbers, evidence),
        (*_reasons(kind, model, evidence), *([evidence.kernel] if evidence.kernel else [])),
        tuple(_cautions(kind, numbers, evidence)),
        tuple(_advice(kind, evidence)),
    )


def _headline(kind: VerdictKind, model: str, evidence: Evidence) -> str:
    if kind == "another method":
        return f"Use {model}: it is clearly better on held-out rows. It comes without a guarantee."
    if kind == "stacked":
        return (
            "Use the stacked model: with 95 % confidence, its Brier score on the unlabeled rows is "
            "lower."
        )
    if kind == "nothing to gain":
        if not evidence.no_room:
            return "Use the supervised model: no guaranteed improvement was found."
        return "Use the supervised model: the unlabeled rows cannot improve it."
    if kind == "supervised":
        return "Use the supervised model: the projected one is clearly worse on held-out rows."
    if kind == "undecided":
        return "Stay with the supervised model: nothing shows that the projected one is better."
    if _is_clearly_better(evidence.comparison):
        return "Use the projected model: it is clearly better on held-out rows."
    loss = f"{'penalised ' if evidence.penalised else ''}squared error"
    if not evidence.changes.n_changed:
        return (
            f"Use the projected model: its {loss} is certain to be lower, though it predicts the "
            "same classes."
        )
    return f"Use the projected model: its {loss} is certain to be lower."


def _is_clearly_better(comparison: Comparison | None) -> bool:
    if comparison is None:
        return False
    facts = comparison.of(PROJECTED)
    differences = facts.loss_difference, facts.error_difference
    return any(each is not None and each.sign < 0 for each in differences)


def _reasons(kind: VerdictKind, model: str, evidence: Evidence) -> Iterator[str]:
    comparison = evidence.comparison
    if comparison is not None and kind == "another method":
        yield _against_both(model, comparison)
    elif comparison is not None and kind != "nothing to gain":
        yield _held_out(STACKED if kind == "stacked" else PROJECTED, comparison)
    if evidence.guarantee != "same" and kind != "stacked":
        n_changed = evidence.changes.n_changed
        yield (
            "The projected model predicts another class than the supervised one for "
            f"{f'{n_changed:,}' if n_changed else 'none'} of the "
            f"{count(evidence.changes.n_unlabeled, 'unlabeled row')}."
        )


def _held_out(model: str, comparison: Comparison) -> str:
    """Say how a model of ours does against the supervised one."""
    facts = comparison.of(model)
    error, loss = facts.error_difference, facts.loss_difference
    assert error is not None
    words = f"On held-out rows, the {model} model's error {_step(error)}."
    if loss is not None and loss.sign and loss.sign != error.sign:
        way = "lower" if loss.sign < 0 else "higher"
        ends = sorted(map(abs, (loss.low, loss.high)))
        words += (
            f" Its squared loss per row is clearly {way}, by {abs(loss.value):.4f} (95 % interval "
            f"{ends[0]:.4f} to {ends[1]:.4f})."
        )
    return words


def _step(error: Estimate) -> str:
    """Say how large a difference of errors is, and whether chance may explain it."""
    if error == Estimate(0.0, 0.0, 0.0):
        return "is that of the supervised one in every fold"
    way = {-1: ": clearly lower", 1: ": clearly higher", 0: ", which chance may explain"}
    by, none = "differs from the supervised one's by", "is on average that of the supervised one"
    words = change(error, by, none)
    return words if words.startswith(none) else words + way[error.sign]


def _against_both(model: str, comparison: Comparison) -> str:
    """Say how another method does against the supervised and the projected model."""
    facts = comparison.of(model)
    both = " and ".join(
        f"{percent(comparison.of(each).numbers.error.value)} ({each})"
        for each in (SUPERVISED, PROJECTED)
    )
    error, brier = facts.error_difference, facts.brier_difference
    assert error is not None
    words = f"The errors of the other two are {both}. Its own {_step(error)}."
    if brier is not None and brier.sign < 0:
        mine, other = facts.numbers.brier, comparison.of(SUPERVISED).numbers.brier
        assert mine is not None
        assert other is not None
        words += (
            f" Its probabilities are clearly closer to the truth: Brier score {mine.value:.3f}, "
            f"supervised {other.value:.3f}."
        )
    return words


def _quality(recommended: str, numbers: Numbers, evidence: Evidence) -> str:
    """Say how good the model in the file is, beside no model at all."""
    comparison, model = evidence.comparison, evidence.model
    assert comparison is not None
    at = more = ""
    it = "it"
    if model is not None:
        it = "it" if model.name == recommended else f"the model in the file, {model.name},"
        if model.has_threshold and model.decision is not None:
            rule = f"--threshold {model.decision.rule}"
            at = f", with {rule},"
            if model.decision.numbers is None:
                at, more = ", at a threshold of 0.5,", f" How it does with {rule} was not tested."
    error = numbers.error
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
    return words + more


def _cautions(kind: VerdictKind, numbers: Numbers | None, evidence: Evidence) -> Iterator[str]:
    comparison = evidence.comparison
    rarest = min(evidence.data.classes, key=lambda each: each.n_labeled)
    if evidence.telling:
        yield (
            f"The values of {quoted(evidence.telling)} determine the class of every labeled row. "
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
    auc, has_threshold = numbers.auc, evidence.model is not None and evidence.model.has_threshold
    if numbers.error.high < comparison.baseline.error.value:
        return
    words = f"Its error is not clearly lower than that of always predicting {comparison.majority!r}"
    if auc is None:
        yield f"{words}."
    elif auc.low <= 0.5:
        yield (
            f"{words}, and it does not rank rows clearly better than chance (AUC {auc.value:.2f}, "
            f"95 % interval {auc.low:.2f} to {auc.high:.2f}): nothing shows that these columns can "
            "tell the classes apart."
        )
    else:
        words += (
            f", but it ranks rows better than chance (AUC {auc.value:.2f}, 95 % interval "
            f"{auc.low:.2f} to {auc.high:.2f})."
        )
        if len(evidence.data.classes) == 2 and not has_threshold:
            words += (
                " Another threshold would find more rows of the rarer class, at the price of "
                "false alarms: --threshold."
            )
        yield words


def _advice(kind: VerdictKind, evidence: Evidence) -> Iterator[str]:
    if kind == "another method":
        return  # the learning curve is about our own models
    yield from _more_labels(evidence)
    if kind == "stacked" or (kind == "projected" and evidence.changes.n_changed):
        return
    comparison = evidence.comparison
    if comparison is not None:
        n_others = sum(each.method not in (*OURS, STACKED) for each in comparison.methods)
        yield (
            "Another family of models: none of those in the comparison is clearly better."
            if n_others > 1
            else "Another family of models: --compare tries several on the same folds."
        )
    if not evidence.has_prior:
        yield (
            "A known share of a class among the unlabeled rows: --prior "
            f"{evidence.data.positive or evidence.data.classes[0].name}=LOW..HIGH leaves more room "
            "for an improvement."
        )


def _more_labels(evidence: Evidence) -> Iterator[str]:
    """Say what more labels would do, by the last doubling of the learning curve."""
    curve = evidence.labeled_curve
    if curve is None or curve.error_step is None or curve.loss_step is None:
        return
    before, after = (curve.lines[-1].error[k].value for k in (-2, -1))
    step = f"from {curve.sizes[-2]:,} to {curve.sizes[-1]:,} of them, "
    if curve.error_step.sign < 0:
        # A power law, of which these are two points, has fallen by the same factor.
        expected = after**2 / before
        yield (
            f"More labels: {step}the error on held-out rows fell from {percent(before)} to "
            f"{percent(after)}. About {evidence.data.n_labeled:,} more may bring it to "
            f"{percent(expected)}."
        )
    elif curve.loss_step.sign < 0:
        yield (
            f"More labels: {step}the squared loss clearly fell, though not the error, which "
            f"{change(curve.error_step)}."
        )
    else:
        same = curve.error_step == Estimate(0.0, 0.0, 0.0)
        moved = "did not change in any fold" if same else change(curve.error_step)
        yield f"More labels: perhaps. {step.capitalize()}the error on held-out rows {moved}."
