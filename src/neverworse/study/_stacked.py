"""The stacked model: the supervised one, moved towards candidates as far as labels allow."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from neverworse._typing import AnyArray, Matrix
from neverworse.estimators import DelegatingClassifier
from neverworse.study._fit import TableFit
from neverworse.study._ladder import CandidateFacts, ConfidentFacts
from neverworse.study._methods import (
    CANDIDATES,
    SUPERVISED,
    fitted,
    reason_of,
    standard_methods,
)
from neverworse.study._sample import LEVEL, USUAL_FOLDS, Progress, Sample, draw_sample, silent
from neverworse.study._settings import FitSettings
from neverworse.tables import TableError, nearest

MOST_UNLABELED = 5_000  # in each fit; self-learning takes a second with four times as many
NONE = "none"


@dataclass(frozen=True)
class Stacked:
    """The supervised model, moved towards a candidate as far as the labels allow."""

    facts: ConfidentFacts | None  # None if that could not be found out
    why_not: str = ""
    model: Any = None  # fitted; the supervised model itself, if nothing is shown to be better
    method: Any = None  # the same with a given step, to be fitted to other rows

    @property
    def has_moved(self) -> bool:
        """Whether some candidate is shown to be better."""
        return self.facts is not None and self.facts.chosen is not None


def candidates_named(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of candidates as they are written here; case and hyphens are free.

    Raises
    ------
    ValueError
        If there is no such candidate. The message is meant for people.
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
        return Stacked(None, "it was not asked for (--candidates none).")
    if settings.class_weight:
        return Stacked(None, "with --class-weight, scores are no probabilities to be compared.")
    used = fit.target.labeled if fit.weights is None else fit.target.labeled & (fit.weights > 0.0)
    if used.sum() < FEWEST_LABELS:
        return Stacked(
            None,
            f"it takes {FEWEST_LABELS} labeled rows at least, and there are {used.sum():,}. Label "
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
    chosen = facts.chosen
    if chosen is None:
        return Stacked(facts, "", stacking.model_, SteppedClassifier(baseline))
    # Of the candidate, what predicts: the model file knows no other part of it.
    stacking.model_.candidates = [(name, _core(each)) for name, each in stacking.model_.candidates]
    method = SteppedClassifier(baseline, methods[chosen.name], chosen.step)
    return Stacked(facts, "", stacking.model_, method)


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


class SteppedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A baseline whose probabilities are moved towards those of a candidate by a given step.

    Parameters
    ----------
    baseline : classifier
    candidate : classifier or None
        None: the baseline is not moved.
    step : float
        0 is the baseline, 1 the candidate.
    """

    guarantee = "not worse in Brier score on the unlabeled rows, with 95 % confidence"
    classes_: AnyArray

    def __init__(self, baseline: Any, candidate: Any = None, step: float = 0.0) -> None:
        self.baseline = baseline
        self.candidate = candidate
        self.step = step

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit baseline and candidate to labeled and unlabeled rows."""
        self.baseline_ = fitted(self.baseline, X, y, sample_weight)
        if self.candidate is not None:
            self.candidate_ = fitted(self.candidate, X, y, sample_weight)
        self.classes_ = self.baseline_.classes_
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """Return the moved probabilities."""
        shares: Matrix = self.baseline_.predict_proba(X)
        if self.candidate is not None:
            shares = shares + self.step * (self.candidate_.predict_proba(X) - shares)
        return shares

    def predict(self, X: Any) -> AnyArray:
        """Return the class with the largest probability."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
