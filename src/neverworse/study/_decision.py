"""Thresholds and calibration, decided on by cross-validation on labeled rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.model_selection import StratifiedLabeledKFold
from neverworse.study._comparison import fit_fold
from neverworse.study._numbers import HeldOut, Truth, numbers
from neverworse.study._sample import Sample
from neverworse.study._study import Numbers
from neverworse.study._threshold import ThresholdRule
from neverworse.tables import DecidedClassifier, calibrated, calibration_scores

MOST_FOLDS = 5
FEWEST_TO_TEST = 3  # labels of each class: one is held out, and two are left to be held out in turn


@dataclass(frozen=True)
class Wanted:
    """What is to be decided on.

    Attributes
    ----------
    rule : ThresholdRule
    positive : int or None
        Position of the positive class.
    calibrate : bool
    """

    rule: ThresholdRule
    positive: int | None
    calibrate: bool

    @property
    def anything(self) -> bool:
        """Whether the classes or probabilities are to be others than those of the method."""
        return self.calibrate or self.rule != ThresholdRule()

    @property
    def needs_labels(self) -> bool:
        """Whether labeled rows have to be held out."""
        return self.calibrate or self.rule.kind != "fixed"


def decide(method: Any, sample: Sample, rows: Indices, wanted: Wanted, seed: int) -> dict[str, Any]:
    """Return the settings of a `DecidedClassifier`, from some rows of a sample.

    Parameters
    ----------
    method : classifier
        Unfitted.
    sample : Sample
    rows : array
        Positions of the rows to decide by, labeled and unlabeled.
    wanted : Wanted
    seed : int
        Of the folds.
    """
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
    method: Any,
    sample: Sample,
    truth: Truth,
    wanted: Wanted,
    seed: int,
    progress: Callable[[float], None],
) -> Numbers | None:
    """Return how well a method does with what `decide` finds, on rows that it has not seen.

    In each fold, thresholds and calibration are decided on by the training rows alone, in a
    cross-validation of their own. With two labels of a class there are too few for that: None.
    """
    counts = np.bincount(truth.codes)
    if wanted.needs_labels and counts.min() < FEWEST_TO_TEST:
        return None
    n_folds = min(MOST_FOLDS, int(counts.min()))
    folds = StratifiedLabeledKFold(n_folds, shuffle=True, random_state=seed, missing_label=np.nan)
    shares = np.zeros((1, len(truth.codes), len(truth.classes)))
    predictions, places = (np.zeros(shares.shape[:2], dtype=np.intp) for _ in range(2))
    for fold, (train, test) in enumerate(folds.split(sample.X, sample.y)):
        settings = decide(method, sample, train, wanted, seed)
        model = DecidedClassifier(fit_fold(method, sample, train), **settings)
        shares[0, test] = model.predict_proba(sample.X[test])
        predictions[0, test], places[0, test] = model.decide(shares[0, test]), fold
        progress((fold + 1) / n_folds)
    return numbers(truth, HeldOut(predictions, shares, shares, places))


def _held_out(
    method: Any, sample: Sample, rows: Indices, calibrate: bool, seed: int
) -> tuple[Matrix, Matrix, Indices]:
    """Return scores and probabilities of labeled rows that were held out, and their positions."""
    y = sample.y[rows]
    counts = np.unique(y[~np.isnan(y)], return_counts=True)[1]
    folds = StratifiedLabeledKFold(
        min(MOST_FOLDS, int(counts.min())), shuffle=True, random_state=seed, missing_label=np.nan
    )
    scores, shares, known = [], [], []
    for train, test in folds.split(rows, y):
        model = fit_fold(method, sample, rows[train])
        X = sample.X[rows[test]]
        found = calibration_scores(model, X)
        scores.append(found)
        shares.append(found if calibrate else model.predict_proba(X))
        known.append(rows[test])
    return np.vstack(scores), np.vstack(shares), np.concatenate(known)


def platt(scores: Vector, positive: Mask, weights: Vector) -> tuple[float, float]:
    """Return slope and offset of the logit that fits labels best, by Platt's method.

    Maximum likelihood with targets a little inside of 0 and 1, so that classes which scores
    separate do not get an infinite slope: J. Platt, "Probabilistic outputs for support vector
    machines" (Advances in Large Margin Classifiers, 1999).

    Parameters
    ----------
    scores : array of shape (n_rows,)
        Of rows that were held out.
    positive : boolean array of shape (n_rows,)
    weights : array of shape (n_rows,)
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
