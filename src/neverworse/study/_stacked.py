"""The stacked model, moved towards candidates as far as labels allow; the ladder of evidence."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from neverworse._words import count, listed, number, percent
from neverworse.estimators import DelegatingClassifier
from neverworse.study._fit import TableFit
from neverworse.study._held_out import LEVEL, USUAL_FOLDS, Progress, Sample, draw_sample, silent
from neverworse.study._methods import (
    CANDIDATES,
    SUPERVISED,
    SteppedClassifier,
    reason_of,
    standard_methods,
)
from neverworse.study._settings import FitSettings
from neverworse.study._study import CandidateFacts, ConfidentFacts, Rung
from neverworse.tables import TableError, nearest

AUDIT = (
    "A few new labels decide it, with 95 % confidence and without assumptions about how the "
    "labeled rows were chosen: the sequential audit (docs/evidence.md) draws the rows to label."
)
MOST_UNLABELED = 5_000  # in each fit; self-learning takes a second with four times as many
NONE = "none"
SMALLEST_PART = 0.0005  # of a blend that is mentioned


@dataclass(frozen=True)
class Stacked:
    """The supervised model, moved towards candidates as far as the labels allow."""

    facts: ConfidentFacts | None  # None if that could not be found out
    why_not: str = ""
    model: Any = None  # fitted; the supervised model itself, if nothing is shown to be better
    method: Any = None  # the same with a given step, to be fitted to other rows

    @property
    def parts(self) -> dict[str, Any]:
        """The methods, by name, that `method` consists of."""
        names = [each.name for each in self.facts.chosen] if self.facts else []
        return dict(zip([SUPERVISED, *names], self.method.parts, strict=True))

    @property
    def has_moved(self) -> bool:
        """Whether some candidate is shown to be better."""
        return self.facts is not None and bool(self.facts.chosen)


def candidates_named(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of candidates as they are written here; case and hyphens are free.

    `ValueError`, with a message for people, if there is no such candidate.
    """
    spelled = {plain(name): name for name in CANDIDATES}
    if [plain(text) for text in texts] == [NONE]:
        return ()
    found = []
    for text in texts:
        name = spelled.get(plain(text))
        if name is None:
            why = "none stands alone" if plain(text) == NONE else f"there is no candidate {text!r}"
            raise ValueError(f"--candidates: {why}. {nearest(text, list(CANDIDATES))}")
        found.append(name)
    return tuple(dict.fromkeys(found))


def plain(name: str) -> str:
    """Return a name without what people may spell freely."""
    return re.sub(r"[\s_-]+", "", name).casefold()


def stack(
    fit: TableFit, settings: FitSettings, *, seed: int = 0, told: Progress = silent
) -> Stacked:
    """Move the supervised model towards the candidates, or say why that cannot be done.

    Of many unlabeled rows some are drawn: everything is then about these.
    """
    from neverworse.evidence import FEWEST_LABELS, SafeStackingClassifier

    if not settings.candidates:
        return Stacked(None, "it was turned off (--candidates none).")
    if settings.class_weight:
        return Stacked(
            None, "with --class-weight, scores are not probabilities that could be compared."
        )
    used = fit.target.labeled if fit.weights is None else fit.target.labeled & (fit.weights > 0.0)
    if used.sum() < FEWEST_LABELS:
        return Stacked(
            None,
            f"it takes at least {FEWEST_LABELS} labeled rows, and there are {used.sum():,}. Label "
            "more rows.",
        )
    told("moving towards candidates", 0.0)
    methods = standard_methods(fit.classifier, (SUPERVISED, *settings.candidates), seed=seed)
    baseline = methods.pop(SUPERVISED)
    try:
        sample = draw_sample(
            *(fit.features, fit.target.codes, fit.weights, MOST_UNLABELED, seed),
            fits_per_split=len(methods),
        )
        if sample.n_labeled < sample.n_labels:
            # A model of some of the labels would be compared with a supervised model of as many.
            return Stacked(
                None,
                f"there are more than {sample.n_labeled:,} labels, too many to fit all candidates "
                "several times. Compare methods on held-out rows: --compare.",
            )
        most = int(np.bincount(sample.y[: sample.n_labeled].astype(np.intp)).max())
        stacking = SafeStackingClassifier(
            baseline,
            list(methods.items()),
            level=LEVEL,
            cv=min(USUAL_FOLDS, most),
            response="predict_proba",
            missing_label=np.nan,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what is tested is what counts
            stacking.fit(sample.X, sample.y, sample.weights)
    except Exception as error:  # of any candidate
        return Stacked(None, f"a fit failed. {reason_of(error)} Choose others: --candidates.")
    told("moving towards candidates", 1.0)
    facts = _facts(stacking.evidence_, sample, len(fit.target.codes))
    model, chosen = stacking.model_, facts.chosen
    if chosen:
        # Of the candidates, what predicts: the model file knows no other part of them.
        model.candidates = [(name, _core(each)) for name, each in model.candidates]
    candidates = [methods[each.name] for each in chosen]
    method = SteppedClassifier(baseline, candidates, [each.step for each in chosen])
    return Stacked(facts, "", model, method)


def check_stacked(stacked: Stacked) -> None:
    """Raise `TableError` if there is no stacked model."""
    if stacked.facts is None:
        raise TableError(f"There is no stacked model: {stacked.why_not} Or choose another --model.")


def _core(model: Any) -> Any:
    while isinstance(model, DelegatingClassifier):
        model = model.estimator_
    return model


def _facts(evidence: Any, sample: Sample, n_rows: int) -> ConfidentFacts:
    weights = None if sample.weights is None else sample.weights[: sample.n_labeled]
    differences = np.average(evidence.differences, axis=0, weights=weights)
    columns = zip(evidence.names, evidence.steps, differences, strict=True)
    return ConfidentFacts(
        tuple(CandidateFacts(name, float(step), float(d)) for name, step, d in columns),
        evidence.level,
        evidence.n_labeled,
        evidence.n_unlabeled,
        sample.n_labels + sample.n_unlabeled < n_rows,
        evidence.expected_change,
        evidence.largest_change,
    )


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

    What is proved is a claim, which may be an improvement. `model` is in the model file, None if it
    is the supervised one; it gives `n_differing` of the unlabeled rows another class than that one.
    """
    certain = [claim]
    if improved:
        certain.append("This is about scores, not about probabilities or wrong predictions.")
    moved = facts is not None and bool(facts.chosen)
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
    if not chosen:
        names = listed([each.name for each in facts.candidates])
        yield (
            f"Nothing: {count(facts.n_labeled, 'label')} do not show, with {level} confidence, "
            f"that a step towards {names} lowers the Brier score of the supervised model."
        )
        return
    where = f"the {count(facts.n_unlabeled, 'unlabeled row')}"
    if facts.is_sample:
        where = f"{facts.n_unlabeled:,} of the unlabeled rows, drawn at random,"
    parts = [("the supervised model", 1.0 - sum(each.step for each in chosen))]
    parts += [(each.name, each.step) for each in chosen]
    blend = listed([f"{percent(step)} {name}" for name, step in parts if step > SMALLEST_PART])
    yield (
        f"With {level} confidence, the Brier score of the stacked model on {where} is lower than "
        f"that of the supervised model by {number(-facts.largest_change, 2)} at least; the "
        f"estimate is {number(-facts.expected_change, 2)}. Its probabilities are a blend: {blend}."
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
                f"Nothing about errors: the {model} model predicts the same class as the "
                "supervised one for every unlabeled row."
            )
            return
        yield (
            f"Whether the {model} model makes fewer errors than the supervised one. They "
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
                f"{', which chance may explain.' if not facts.chosen else '.'}"
            )
        yield words
    yield AUDIT
