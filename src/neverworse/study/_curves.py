"""Learning curves of the supervised and the projected model, and what follows from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from neverworse._typing import Vector
from neverworse._words import points
from neverworse.estimators import ProjectedLeastSquaresClassifier, class_scores, has_class_scores
from neverworse.model_selection import (
    LearningCurve,
    labeled_learning_curve,
    unlabeled_learning_curve,
)
from neverworse.study._methods import PROJECTED, SUPERVISED
from neverworse.study._sample import Mean, Sample, draw_sample
from neverworse.study._study import Curve, CurveLine, Estimate

# Of all rows; the last step is twice as many, which is what people are told about.
UNLABELED_SHARES = np.array([1 / 16, 1 / 2, 1])
LABELED_SHARES = np.array([1 / 4, 1 / 2, 1])
# Folds of one repeat share most training rows with those of the next: more of them take time, and
# make intervals hardly narrower.
MOST_REPEATS = 2


def unlabeled_curve(
    projected: ProjectedLeastSquaresClassifier,
    X: Any,
    y: Vector,
    *,
    sample_weight: Vector | None = None,
    max_unlabeled: int = 20_000,
    seed: int = 0,
) -> Curve:
    """Return the test error over growing subsets of the unlabeled rows.

    The largest has `max_unlabeled` rows, or fewer if X has many columns or classes. `ValueError`,
    with a message for people, if a class has one label only or there are no unlabeled rows.
    """
    shares = UNLABELED_SHARES
    sample = draw_sample(
        X, y, sample_weight, max_unlabeled, seed, fits_per_split=float(shares.sum())
    )
    if not sample.n_unlabeled:
        raise ValueError("There are no unlabeled rows, so that there is no curve over them.")
    # With fewer rows than features, any weights fit: that says nothing about more rows.
    n_labeled = len(sample.y) - sample.n_unlabeled
    enough = shares * sample.n_unlabeled + n_labeled >= sample.X.shape[1]
    enough[-2:] = True
    curve = unlabeled_learning_curve(
        projected, sample.X, sample.y, unlabeled_sizes=shares[enough], **_settings(sample, seed)
    )
    n_all = int(np.count_nonzero(np.isnan(y)))
    stops = ""
    if sample.n_unlabeled < n_all:
        stops = f" The curve stops at {sample.n_unlabeled:,} of the {n_all:,} unlabeled rows."
    return _curve(curve, sample, "unlabeled rows", stops)


def labeled_curve(
    projected: ProjectedLeastSquaresClassifier,
    X: Any,
    y: Vector,
    *,
    sample_weight: Vector | None = None,
    max_unlabeled: int = 2_000,
    seed: int = 0,
) -> Curve:
    """Return the test error over growing subsets of the labeled rows.

    At every size, `max_unlabeled` rows without a label train at most: time is better spent on
    repeats. `ValueError`, with a message for people, if a class has one label only.
    """
    shares = LABELED_SHARES
    sample = draw_sample(
        X, y, sample_weight, max_unlabeled, seed, fits_per_split=float(len(shares))
    )
    curve = labeled_learning_curve(
        projected, sample.X, sample.y, labeled_sizes=shares, **_settings(sample, seed)
    )
    return _curve(curve, sample, "labels")


def _settings(sample: Sample, seed: int) -> dict[str, Any]:
    return {
        "cv": sample.n_folds,
        "n_repeats": min(MOST_REPEATS, sample.n_repeats),
        "scoring": _both_models,
        "sample_weight": sample.weights,
        "missing_label": np.nan,
        "random_state": seed,
    }


def _both_models(
    model: ProjectedLeastSquaresClassifier, X: Any, y: Vector, sample_weight: Vector | None = None
) -> dict[str, float | None]:
    """Return errors and losses of the projected model and of the supervised one inside of it."""
    scores: dict[str, float | None] = {}
    for name, each in ((SUPERVISED, model.supervised_), (PROJECTED, model)):
        scores[f"{name} error"], scores[f"{name} loss"] = error_and_loss(each, X, y, sample_weight)
    return scores


def error_and_loss(
    model: Any, X: Any, y: Vector, weights: Vector | None
) -> tuple[float, float | None]:
    """Return error rate and mean quadratic loss on test rows.

    The loss is that of scores for targets 0 and 1, summed over more than two classes; None if the
    model has no such scores.
    """
    error = float(np.average(model.predict(X) != y, weights=weights))
    if not has_class_scores(model):
        return error, None
    squares = (class_scores(model, X) - (y[:, None] == model.classes_)) ** 2
    # The two columns of two classes say the same thing twice.
    losses = squares[:, 1] if squares.shape[1] == 2 else squares.sum(axis=1)
    return error, float(np.average(losses, weights=weights))


def _curve(curve: LearningCurve, sample: Sample, rows: str, more_words: str = "") -> Curve:
    lines = tuple(
        CurveLine(
            method,
            *(
                tuple(
                    Mean.over_folds(of_size, sample.test_share).estimate()
                    for of_size in curve.test_scores[f"{method} {kind}"]
                )
                for kind in ("error", "loss")
            ),
        )
        for method in (SUPERVISED, PROJECTED)
    )
    error = loss = None
    if len(curve.sizes) > 1:
        error, loss = (
            Mean.over_folds(scores[-1] - scores[-2], sample.test_share).estimate()
            for scores in (curve.test_scores[f"{PROJECTED} {kind}"] for kind in ("error", "loss"))
        )
    return Curve(
        curve.rows,
        tuple(curve.sizes.tolist()),
        round(float(curve.n_others.mean())),
        curve.n_repeats,
        lines,
        error,
        loss,
        _step_words(curve, error, loss, rows) + more_words,
    )


def _step_words(
    curve: LearningCurve, error: Estimate | None, loss: Estimate | None, rows: str
) -> str:
    """Say what the last step of the curve, to all rows from half of them, has brought."""
    if error is None or loss is None:
        return f"There are too few {rows} for a curve."
    before, after = curve.sizes[-2:]
    start = f"From {before:,} to {after:,} {rows}, "
    if error.value == error.low == error.high == 0.0:
        return (
            f"{start}the error of the projected model did not change on any held-out fold: nothing "
            f"here says that more {rows} would help."
        )
    change = (
        f"the error of the projected model on held-out rows changed by "
        f"{points(error.value, sign=True)} (±{points(error.margin)}) percentage points, and its "
        f"squared loss per row by {loss.value:+.4f} (±{loss.margin:.4f}). "
    )
    return start + change + _conclusion(error, loss, rows)


def _conclusion(error: Estimate, loss: Estimate, rows: str) -> str:
    if error.sign < 0:
        return f"More {rows} are worth collecting: they still lower the error."
    if error.sign > 0:
        return f"More {rows} have not helped here: the error went up."
    lower, higher = points(max(0.0, -error.low)), points(max(0.0, error.high))
    unclear = (
        f"whether more {rows} would lower the error cannot be told from chance: this doubling may "
        f"have lowered it by up to {lower} points, or raised it by up to {higher}."
    )
    if loss.sign < 0:
        return f"More {rows} still lower the loss, but {unclear}"
    return unclear[0].upper() + unclear[1:]
