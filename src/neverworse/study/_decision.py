"""Thresholds and calibration, decided on by cross-validation on labeled rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import optimize, special

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse._words import count
from neverworse.model_selection import StratifiedLabeledKFold
from neverworse.study._fit import FitSettings, TableFit
from neverworse.study._held_out import HeldOut, Sample, Truth, draw_sample, fold_words, numbers
from neverworse.study._methods import fit_fold
from neverworse.study._study import Comparison, DecisionFacts, Numbers
from neverworse.tables import DecidedClassifier, TableError, calibrated, calibration_scores

MOST_FOLDS = 5
MOST_UNLABELED = 20_000  # in each of the fits that decide
EQUAL = 1e-12  # values of a rule that differ by less differ by rounding errors
FEWEST_TO_TEST = 3  # labels of each class: one is held out, and two are left to be held out in turn


Kind = Literal["fixed", "balanced", "f1", "cost"]


@dataclass(frozen=True)
class ThresholdRule:
    """How the threshold of the positive one of two classes is found.

    It is given; or it has the largest balanced accuracy, the largest F1 of the positive class, or
    the smallest cost, on labeled rows that were held out.
    """

    kind: Kind = "fixed"
    value: float = 0.5  # the threshold, if it is given
    miss: float = 1.0  # what a missed row of the positive class costs
    alarm: float = 1.0  # what a false alarm does

    @classmethod
    def parse(cls, text: str) -> ThresholdRule:
        """Return the rule that the command line means; `ValueError`, for people, if it is none."""
        if text in ("balanced", "f1"):
            return cls("balanced" if text == "balanced" else "f1")
        costs = text.removeprefix("cost=")
        try:
            if costs == text:
                rule = cls(value=float(text))
            else:
                miss, alarm = map(float, costs.split(":"))
                rule = cls("cost", miss=miss, alarm=alarm)
        except ValueError:
            raise ValueError(
                f"--threshold is a number between 0 and 1, balanced, f1 or cost=5:1, not {text!r}."
            ) from None
        if not 0.0 < rule.value < 1.0:
            raise ValueError(f"--threshold is a probability between 0 and 1, not {text}.")
        if not all(0.0 < cost < float("inf") for cost in (rule.miss, rule.alarm)):
            raise ValueError(f"--threshold: both costs must be positive, but are {costs}.")
        return rule

    def __str__(self) -> str:
        if self.kind == "cost":
            return f"cost={self.miss:g}:{self.alarm:g}"
        return f"{self.value:g}" if self.kind == "fixed" else self.kind

    @property
    def words(self) -> str:
        return {
            "fixed": "as given",
            "balanced": "for the largest balanced accuracy",
            "f1": "for the largest F1",
            "cost": (
                f"for the smallest cost, where a missed row costs {self.miss:g} and a false alarm "
                f"{self.alarm:g}"
            ),
        }[self.kind]

    def threshold(self, probabilities: Vector, positive: Mask, weights: Vector) -> float:
        """Return the threshold for rows that were held out.

        All thresholds half-way between two probabilities are compared, and those that call all
        rows or none positive; of equally good ones the middle one is taken.
        """
        if self.kind == "fixed":
            return self.value
        found, where = np.unique(probabilities, return_inverse=True)
        hits, alarms = (
            # With each next threshold, the rows of one probability less are called positive.
            np.append(np.cumsum(np.bincount(where, chosen * weights, len(found))[::-1])[::-1], 0.0)
            for chosen in (positive, ~positive)
        )
        gain = self._gain(hits, alarms)
        edges = np.concatenate([[0.0], found, [1.0]])
        thresholds = 0.5 * (edges[:-1] + edges[1:])
        thresholds = np.where(thresholds > edges[:-1], thresholds, edges[1:])  # no room between
        # Above a probability of 1 there is no threshold.
        usable = np.append(np.ones(len(found), bool), found[-1] < 1.0)
        best = np.flatnonzero(usable & (gain >= gain[usable].max() - EQUAL))
        return float(thresholds[best[len(best) // 2]])

    def _gain(self, hits: Vector, alarms: Vector) -> Vector:
        """Return what is to be large, for weights of rows that are called positive."""
        n_positive, n_negative = hits[0], alarms[0]
        if self.kind == "balanced":
            return hits / n_positive - alarms / n_negative
        if self.kind == "f1":
            return 2.0 * hits / (hits + alarms + n_positive)
        costs = self.miss * (n_positive - hits) + self.alarm * alarms
        gain: Vector = -costs / (self.miss * n_positive + self.alarm * n_negative)
        return gain


@dataclass(frozen=True)
class Wanted:
    """What is to be decided on."""

    rule: ThresholdRule
    positive: int | None  # position of the positive class
    calibrate: bool

    @property
    def needs_labels(self) -> bool:
        """Whether labeled rows have to be held out."""
        return self.calibrate or self.rule.kind != "fixed"


def decide(method: Any, sample: Sample, rows: Indices, wanted: Wanted, seed: int) -> dict[str, Any]:
    """Return the settings of a `DecidedClassifier`, from some rows of a sample, by position."""
    positive = 1 if wanted.positive is None else wanted.positive
    threshold = None if wanted.rule == ThresholdRule() else wanted.rule.value
    if not wanted.needs_labels:
        return {"positive": positive, "threshold": threshold, "sigmoids": None}
    scores, shares, known = _held_out(method, sample, rows, wanted.calibrate, seed)
    codes = sample.y[known].astype(np.intp)
    weights = np.ones(len(known)) if sample.weights is None else sample.weights[known]
    sigmoids = None
    if wanted.calibrate:
        columns = [1] if scores.shape[1] == 1 else range(scores.shape[1])
        sigmoids = np.array(
            [platt(scores[:, k], codes == column, weights) for k, column in enumerate(columns)]
        )
        shares = calibrated(scores, sigmoids)
    if wanted.rule.kind != "fixed":
        threshold = wanted.rule.threshold(shares[:, positive], codes == positive, weights)
    return {"positive": positive, "threshold": threshold, "sigmoids": sigmoids}


def nested_numbers(
    method: Any, sample: Sample, truth: Truth, wanted: Wanted, seed: int
) -> Numbers | None:
    """Return how well a method does with what `decide` finds, on rows that it has not seen.

    In each fold, thresholds and calibration are decided on by the training rows alone, in a
    cross-validation of their own. With two labels of a class there are too few for that: None.
    """
    counts = np.bincount(truth.codes)
    if wanted.needs_labels and counts.min() < FEWEST_TO_TEST:
        return None
    folds = _folds(truth.codes, seed)
    shares = np.zeros((1, len(truth.codes), len(truth.classes)))
    predictions, places = (np.zeros(shares.shape[:2], dtype=np.intp) for _ in range(2))
    for fold, (train, test) in enumerate(folds.split(sample.X, sample.y)):
        settings = decide(method, sample, train, wanted, seed)
        model = DecidedClassifier(fit_fold(method, sample, train), **settings)
        shares[0, test] = model.predict_proba(sample.X[test])
        predictions[0, test], places[0, test] = model.decide(shares[0, test]), fold
    return numbers(truth, HeldOut(predictions, shares, shares, places))


def _held_out(
    method: Any, sample: Sample, rows: Indices, calibrate: bool, seed: int
) -> tuple[Matrix, Matrix, Indices]:
    """Return scores and probabilities of labeled rows that were held out, and their positions."""
    y = sample.y[rows]
    scores, shares, known = [], [], []
    for train, test in _folds(y[~np.isnan(y)], seed).split(rows, y):
        model = fit_fold(method, sample, rows[train])
        X = sample.X[rows[test]]
        found = calibration_scores(model, X)
        scores.append(found)
        shares.append(found if calibrate else model.predict_proba(X))
        known.append(rows[test])
    return np.vstack(scores), np.vstack(shares), np.concatenate(known)


def _folds(codes: Vector | Indices, seed: int) -> StratifiedLabeledKFold:
    n_folds = min(MOST_FOLDS, int(np.unique(codes, return_counts=True)[1].min()))
    return StratifiedLabeledKFold(n_folds, shuffle=True, random_state=seed, missing_label=np.nan)


def platt(scores: Vector, positive: Mask, weights: Vector) -> tuple[float, float]:
    """Return slope and offset of the logit that fits labels best, by Platt's method.

    Maximum likelihood with targets a little inside of 0 and 1, so that classes which scores
    separate do not get an infinite slope: J. Platt, "Probabilistic outputs for support vector
    machines" (Advances in Large Margin Classifiers, 1999).
    """
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    high, low = (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0)
    target = np.where(positive, high, low)
    # In units of their spread, so that the optimiser knows no others.
    centre, spread = float(np.mean(scores)), float(np.std(scores)) or 1.0
    z = (scores - centre) / spread

    def loss(at: Vector) -> tuple[float, Vector]:
        logits = at[0] * z + at[1]
        excess = weights * (special.expit(logits) - target)
        value = np.sum(weights * (np.logaddexp(0.0, logits) - target * logits))
        return float(value), np.array([excess @ z, excess.sum()])

    start = np.array([0.0, np.log((n_positive + 1.0) / (n_negative + 1.0))])
    slope, offset = optimize.minimize(loss, start, jac=True, method="BFGS").x
    return float(slope / spread), float(offset - slope * centre / spread)


def wanted_of(fit: TableFit, settings: FitSettings) -> Wanted:
    """Return what is to be decided on for a table, after a check that it can be."""
    rule, names = settings.threshold or ThresholdRule(), fit.target.class_names
    if rule != ThresholdRule():
        if len(names) != 2:
            raise TableError(
                f"--threshold is for two classes, and there are {len(names)}. Leave it out: the "
                "class with the largest probability is predicted."
            )
        first, second = fit.target.counts()
        if settings.positive is None and rule.kind != "balanced" and first == second:
            raise TableError(
                f"--threshold {rule} is about the positive class, and both classes have "
                f"{count(first, 'label')}. Say which one is positive: --positive {names[1]}."
            )
    wanted = Wanted(rule, fit.positive if len(names) == 2 else None, settings.calibrate)
    rarest = int(np.argmin(fit.target.counts()))
    if wanted.needs_labels and fit.target.counts()[rarest] < 2:
        asked = "--calibrate" if wanted.calibrate else f"--threshold {rule}"
        raise TableError(
            f"{asked} is decided on held-out labeled rows, which takes at least two of every "
            f"class, and {names[rarest]!r} has {count(fit.target.counts()[rarest], 'label')}. "
            "Label more rows, or give the threshold as a number."
        )
    return wanted


def decision_of(
    name: str,
    method: Any,
    estimator: Any,
    fit: TableFit,
    wanted: Wanted,
    comparison: Comparison | None,
    seed: int,
) -> tuple[dict[str, Any], DecisionFacts]:
    """Decide on threshold and calibration of a method, and test that on rows that it has not seen.

    The estimator is the same method, fitted to all rows; the comparison says what it costs at a
    threshold of 0.5. Returns the settings of a `DecidedClassifier`, and what is known about them.
    """
    if not (wanted.calibrate or hasattr(estimator, "predict_proba")):
        raise TableError(f"{name} has no probabilities for --threshold. Add --calibrate.")
    settings = {"positive": wanted.positive, "threshold": wanted.rule.value, "sigmoids": None}
    numbers, words = None, []
    try:
        sample = draw_sample(*fit.rows, MOST_UNLABELED, seed, fits_per_split=MOST_FOLDS + 1.0)
    except ValueError as error:  # one label of a class, or one of a positive weight
        if wanted.needs_labels:
            raise TableError(str(error)) from None
    else:
        settings = decide(method, sample, np.arange(len(sample.y)), wanted, seed)
        truth = Truth.of(sample, fit.target.class_names, fit.positive)
        numbers = nested_numbers(method, sample, truth, wanted, seed)
        if wanted.needs_labels:
            n_folds = min(MOST_FOLDS, int(np.bincount(truth.codes).min()))
            words = list(fold_words(truth.classes, truth.codes, n_folds))
    positive = None if wanted.positive is None else fit.target.class_names[wanted.positive]
    usual = None
    if comparison is not None and wanted.rule.kind == "cost":
        usual = comparison.of(name).numbers
    return settings, DecisionFacts(
        rule=str(wanted.rule),
        positive=positive,
        threshold=settings["threshold"],
        calibrated=wanted.calibrate,
        numbers=numbers,
        words=(*_words(wanted, positive, settings["threshold"], numbers, usual), *words),
    )


def _words(
    wanted: Wanted,
    positive: str | None,
    threshold: float | None,
    numbers: Numbers | None,
    usual: Numbers | None,
) -> Iterator[str]:
    """Say what was decided on, and how well that does; `usual` is at a threshold of 0.5."""
    rule = wanted.rule
    if wanted.calibrate:
        yield (
            "Probabilities are calibrated by Platt's sigmoid, fitted to labeled rows that were "
            "held out."
        )
    if threshold is not None:
        where = "" if rule.kind == "fixed" else ", on labeled rows that were held out"
        yield (
            f"{positive!r} is predicted where its probability is at least {threshold:.4g}: "
            f"{rule.words}{where}."
        )
    if numbers is None:
        yield (
            "How well this does on other rows was not tested: that takes three labels of every "
            "class."
        )
        return
    found = ["calibration"] if wanted.calibrate else []
    found += ["threshold"] if rule.kind != "fixed" else []
    how = f", with {' and '.join(found)} found in each training fold alone" if found else ""
    yield f"This is tested on held-out rows{how}."
    if rule.kind == "cost" and wanted.positive is not None:
        costs = f"It costs {_cost(rule, wanted.positive, numbers):.3g} per held-out row"
        if usual is not None:
            costs += f"; a threshold of 0.5, {_cost(rule, wanted.positive, usual):.3g}"
        yield f"{costs}."


def _cost(rule: ThresholdRule, positive: int, numbers: Numbers) -> float:
    confusion = np.asarray(numbers.confusion)
    missed = confusion[positive, 1 - positive]
    alarms = confusion[1 - positive, positive]
    return float((rule.miss * missed + rule.alarm * alarms) / confusion.sum())
