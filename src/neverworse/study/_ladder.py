"""The ladder of evidence of a fit: what is certain, what is confident, and what is undecided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from neverworse._words import count, listed, number, percent

AUDIT = (
    "A few new labels decide it, with 95 % confidence and without assumptions about how rows came "
    "by the labels at hand: the sequential audit (docs/evidence.md) draws the rows to label."
)


@dataclass(frozen=True)
class CandidateFacts:
    """A candidate of the confident step."""

    name: str
    step: float  # how far the supervised model was moved towards it: 1 is the candidate itself
    difference: float  # out-of-fold Brier score less that of the supervised model


@dataclass(frozen=True)
class ConfidentFacts:
    """How far labels allow to move the supervised model towards candidates."""

    candidates: tuple[CandidateFacts, ...]
    level: float
    n_labeled: int
    n_unlabeled: int  # that the statement is about
    is_sample: bool  # whether these were drawn from more of them
    expected_change: float  # of the Brier score, by the step
    largest_change: float  # its upper confidence bound: never positive

    @property
    def chosen(self) -> CandidateFacts | None:
        """The candidate that the model was moved towards, if it was."""
        return next((each for each in self.candidates if each.step > 0.0), None)


@dataclass(frozen=True)
class Rung:
    """A rung of the ladder of evidence: what is known with a certain strength."""

    strength: Literal["certain", "confident", "undecided"]
    found: bool  # whether something is certain, confident or undecided, or nothing is
    words: tuple[str, ...]


def ladder(
    claim: str,
    improved: bool,
    facts: ConfidentFacts | None,
    why_not: str,
    *,
    model: str | None,
    n_differing: int,
    n_unlabeled: int,
) -> tuple[Rung, ...]:
    """Return what is certain, what is confident, and what is undecided.

    Parameters
    ----------
    claim : str
        What is proved, in a sentence.
    improved : bool
        Whether that is an improvement.
    facts : ConfidentFacts or None
    why_not : str
        Why there are none, if there are none.
    model : str or None
        That is in the model file; None if it is the supervised one.
    n_differing, n_unlabeled : int
        Unlabeled rows: those that it gives another class than the supervised one, and all of them.
    """
    certain = [claim]
    if improved:
        certain.append("It is about scores, not about probabilities or wrong classes.")
    moved = facts is not None and facts.chosen is not None
    undecided = tuple(_undecided(facts, model, n_differing, n_unlabeled))
    return (
        Rung("certain", improved, tuple(certain)),
        Rung("confident", moved, tuple(confident_words(facts, why_not))),
        Rung("undecided", undecided[-1] == AUDIT, undecided),
    )


def confident_words(facts: ConfidentFacts | None, why_not: str = "") -> Iterator[str]:
    """Yield what the labels show with confidence, and what that takes for granted."""
    if facts is None:
        yield f"Not known: {why_not}"
        return
    chosen, level = facts.chosen, f"{100.0 * facts.level:g} %"
    if chosen is None:
        names = listed([each.name for each in facts.candidates])
        yield (
            f"Nothing: {count(facts.n_labeled, 'label')} do not show, with {level} confidence, "
            f"that a step towards {names} lowers the Brier score of the supervised model."
        )
        return
    where = f"the {count(facts.n_unlabeled, 'unlabeled row')}"
    if facts.is_sample:
        where = f"{facts.n_unlabeled:,} of the unlabeled rows, drawn at random,"
    way = f"{percent(chosen.step)} of the way" if chosen.step < 1.0 else "all the way"
    yield (
        f"With {level} confidence, the Brier score of the stacked model on {where} is lower than "
        f"that of the supervised model by {number(-facts.largest_change, 2)} at least; the "
        f"estimate is {number(-facts.expected_change, 2)}. Its probabilities go {way} from "
        f"those of the supervised model to those of {chosen.name}."
    )
    yield (
        "Likely, not proved: this holds in large samples, if labels are missing completely at "
        "random, and if what holds for models that have not seen a fold holds for those that have "
        "seen all labels."
    )


def _undecided(
    facts: ConfidentFacts | None, model: str | None, n_differing: int, n_unlabeled: int
) -> Iterator[str]:
    if model is not None:
        if not n_differing:
            yield (
                f"Nothing about wrong classes: the {model} model gives every unlabeled row the "
                "class that the supervised one gives it."
            )
            return
        yield (
            f"Whether the {model} model gives fewer wrong classes than the supervised one. They "
            f"differ on {n_differing:,} of the {count(n_unlabeled, 'unlabeled row')}. To label "
            "some of these: neverworse label."
        )
    elif facts is None:
        yield "Whether another model is better than the supervised one."
    else:
        best = min(facts.candidates, key=lambda each: each.difference)
        words = "Whether a candidate is better than the supervised model all the same."
        if best.difference < 0.0:
            words += (
                f" On labels that it had not seen, the Brier score of {best.name} is "
                f"{number(-best.difference, 2)} lower"
                f"{', which chance may explain.' if facts.chosen is None else '.'}"
            )
        yield words
    yield AUDIT
