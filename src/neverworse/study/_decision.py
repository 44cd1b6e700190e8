"""Decision thresholds and calibration, chosen by cross-validation on the labeled rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_curve

from neverworse._typing import Indices, Mask, Vector
from neverworse._words import count
from neverworse.model_selection import StratifiedLabeledKFold
from neverworse.study._fit import FitSettings, TableFit
from neverworse.study._held_out import (
    MAX_UNLABELED,
    HeldOut,
    Sample,
    Truth,
    draw_sample,
    numbers,
)
from neverworse.study._methods import fit_fold
from neverworse.study._study import DecisionFacts, Numbers
from neverworse.tables import DecidedClassifier, TableError, calibrated, calibration_scores

MAX_FOLDS = 5
TIE = 1e-12  # criteria that differ by less are equal but for rounding
MIN_LABELS = 3  # of each class: one is held out, and two are left to be held out in turn


@dataclass(frozen=True)
class ThresholdRule:
    """How the threshold of the positive one of two classes is chosen on held-out labeled rows."""

    kind: Literal["fixed", "balanced", "f1", "cost"] = "fixed"
    value: float = 0.5  # the threshold, if it is given
    miss: float = 1.0  # cost of a missed row of the positive class
    alarm: float = 1.0  # cost of a false alarm

    @classmethod
    def parse(cls, text: str) -> ThresholdRule:
        """Return the rule that an option of the command line means, or raise `ValueError`."""
        with suppress(ValueError):
            if text in ("balanced", "f1"):
                return cls("f1" if text == "f1" else "balanced")
            if text.startswith("cost="):
                miss, alarm = map(float, text.removeprefix("cost=").split(":"))
                if all(0.0 < each < np.inf for each in (miss, alarm)):
                    return cls("cost", miss=miss, alarm=alarm)
            elif 0.0 < float(text) < 1.0:
                return cls(value=float(text))
        raise ValueError(
            "--threshold is a probability between 0 and 1, balanced, f1 or cost=5:1 (both costs "
            f"must be positive), not {text!r}."
        )

    def __str__(self) -> str:
        if self.kind == "cost":
            return f"cost={self.miss:g}:{self.alarm:g}"
        return f"{self.value:g}" if self.kind == "fixed" else self.kind

    def threshold(self, probabilities: Vector, positive: Mask, weights: Vector) -> float:
        """Return the best threshold, half-way between two probabilities or beyond all of them.

        Of equally good thresholds, the middle one is returned.
        """
        if self.kind == "fixed":
            return self.value
        false_rates, true_rates, found = roc_curve(
            positive, probabilities, sample_weight=weights, drop_intermediate=False
        )
        n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
        hits, alarms = n_positive * true_rates, n_negative * false_rates
        costs = self.miss * (n_positive - hits) + self.alarm * alarms
        criterion = {
            "balanced": true_rates - false_rates,
            "f1": 2.0 * hits / (hits + alarms + n_positive),
            "cost": -costs / (self.miss * n_positive + self.alarm * n_negative),
        }[self.kind]
        edges = np.concatenate([[1.0], found[1:], [0.0]])
        upper, lower = edges[:-1], edges[1:]
        thresholds = 0.5 * (upper + lower)
        thresholds = np.where(thresholds > lower, thresholds, upper)  # adjacent numbers
        criterion[0] = criterion[0] if lower[0] < 1.0 else -np.inf  # no threshold is above 1
        best = np.flatnonzero(criterion >= criterion.max() - TIE)
        return float(thresholds[best[(len(best) - 1) // 2]])


@dataclass(frozen=True)
class DecisionSettings:
    """What turns scores into probabilities and classes."""

    rule: ThresholdRule
    positive: int | None  # position of the positive class
    calibrate: bool


def decide(
    method: Any, sample: Sample, rows: Indices, decision: DecisionSettings, seed: int
) -> dict[str, Any]:
    """Return the settings of a `DecidedClassifier`, from some rows of a sample, by position."""
    positive = 1 if decision.positive is None else decision.positive
    threshold = None if decision.rule == ThresholdRule() else decision.rule.value
    sigmoids = None
    if decision.calibrate or decision.rule.kind != "fixed":
        y, scored, tested = sample.y[rows], [], []
        for train, test in _folds(y[~np.isnan(y)], seed).split(rows, y):
            model, X = fit_fold(method, sample, rows[train]), sample.X[rows[test]]
            scored.append(
                calibration_scores(model, X) if decision.calibrate else model.predict_proba(X)
            )
            tested.append(rows[test])
        shares, held_out = np.vstack(scored), np.concatenate(tested)
        codes, weights = sample.y[held_out].astype(np.intp), sample.weights[held_out]
        if decision.calibrate:
            first = int(shares.shape[1] == 1)  # one score is that of the second class
            columns = enumerate(shares.T, first)
            sigmoids = np.array([platt(each, codes == k, weights) for k, each in columns])
            shares = calibrated(shares, sigmoids)
        if decision.rule.kind != "fixed":
            threshold = decision.rule.threshold(shares[:, positive], codes == positive, weights)
    return {"positive": positive, "threshold": threshold, "sigmoids": sigmoids}


def nested_numbers(
    method: Any, sample: Sample, truth: Truth, decision: DecisionSettings, seed: int
) -> Numbers:
    """Return how well a method does with what `decide` chooses in each training fold."""
    splits = list(_folds(truth.codes, seed).split(sample.X, sample.y))
    models = []
    for train, _ in splits:
        settings = decide(method, sample, train, decision, seed)
        models.append(DecidedClassifier(fit_fold(method, sample, train), **settings))
    return numbers(truth, HeldOut.of(models, splits, sample, n_repeats=1))


def _folds(codes: Vector | Indices, seed: int) -> StratifiedLabeledKFold:
    n_folds = min(MAX_FOLDS, int(np.unique(codes, return_counts=True)[1].min()))
    return StratifiedLabeledKFold(n_folds, shuffle=True, random_state=seed, missing_label=np.nan)


def platt(scores: Vector, positive: Mask, weights: Vector) -> tuple[float, float]:
    """Return slope and offset of Platt's sigmoid: logistic regression with targets inside 0 and 1.

    J. Platt, "Probabilistic outputs for support vector machines" (Advances in Large Margin
    Classifiers, 1999). Such a target makes a row a part of both classes.
    """
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    high, low = (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0)
    target = np.where(positive, high, low)
    centre, spread = float(np.mean(scores)), float(np.std(scores)) or 1.0
    z = ((scores - centre) / spread)[:, None]
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(
        np.vstack([z, z]),
        np.repeat([1, 0], len(z)),
        sample_weight=np.concatenate([weights * target, weights * (1.0 - target)]),
    )
    slope = float(model.coef_[0, 0]) / spread
    return slope, float(model.intercept_[0]) - slope * centre


def decision_settings(fit: TableFit, settings: FitSettings) -> DecisionSettings:
    """Return what is to be decided for a table; `TableError` if its labels do not allow it."""
    rule, names = settings.threshold or ThresholdRule(), fit.target.class_names
    counts = fit.target.counts()
    if rule != ThresholdRule():
        if len(names) != 2:
            raise TableError(
                f"--threshold is for two classes, and there are {len(names)}. Leave it out: the "
                "class with the largest probability is predicted."
            )
        if settings.positive is None and rule.kind != "balanced" and counts[0] == counts[1]:
            raise TableError(
                f"--threshold {rule} is about the positive class, and both classes have "
                f"{count(counts[0], 'label')}. Say which one is positive: --positive {names[1]}."
            )
    rarest = int(np.argmin(counts))
    if counts[rarest] < MIN_LABELS:
        raise TableError(
            "--threshold and --calibrate are tested on held-out labeled rows, which takes at least "
            f"{MIN_LABELS} of every class, and {names[rarest]!r} has "
            f"{count(counts[rarest], 'label')}. Label more rows, or leave these options out."
        )
    return DecisionSettings(rule, fit.positive if len(names) == 2 else None, settings.calibrate)


def decision_of(
    method: Any, fit: TableFit, decision: DecisionSettings, seed: int
) -> tuple[dict[str, Any], DecisionFacts]:
    """Return the settings of a `DecidedClassifier` of a method, and what is known about them."""
    try:
        sample = draw_sample(*fit.rows, MAX_UNLABELED, seed, fits_per_split=MAX_FOLDS + 1.0)
        settings = decide(method, sample, np.arange(len(sample.y)), decision, seed)
        truth = Truth.of(sample, fit.target.class_names, fit.positive)
        tested = nested_numbers(method, sample, truth, decision, seed)
    except ValueError as error:  # too few labels with a positive weight
        raise TableError(str(error)) from None
    threshold, positive, words = settings["threshold"], None, []
    if decision.calibrate:
        words.append("Probabilities are calibrated by Platt's sigmoid, fitted to held-out rows.")
    if decision.positive is not None:
        positive = fit.target.class_names[decision.positive]
    if threshold is not None:
        words.append(
            f"{positive!r} is predicted where its probability is at least {threshold:.4g} "
            f"(--threshold {decision.rule})."
        )
    words.append("This is tested on held-out rows, by what each training fold alone would decide.")
    facts = str(decision.rule), positive, threshold, decision.calibrate, tested
    return settings, DecisionFacts(*facts, tuple(words))
