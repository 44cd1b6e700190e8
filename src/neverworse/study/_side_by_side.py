"""The supervised and the projected model side by side: scores, weights, learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse._words import change, decimal, points, signed
from neverworse.estimators import ProjectedLeastSquaresClassifier, class_scores, stored_weights
from neverworse.model_selection import (
    LearningCurve,
    labeled_learning_curve,
    unlabeled_learning_curve,
)
from neverworse.rows import Rows, as_rows
from neverworse.study._fit import TableFit
from neverworse.study._held_out import Mean, Sample, brier_scores, draw_sample
from neverworse.study._methods import PROJECTED, SUPERVISED
from neverworse.study._study import (
    ChangedRow,
    Changes,
    Coefficient,
    Curve,
    CurveLine,
    Estimate,
    ScoreGroup,
    Scores,
)
from neverworse.tables import TablePreparation

N_BINS = 40
MOST_CHANGED = 500


@dataclass(frozen=True)
class ScoredRows:
    """Scores of both models on all rows of a table: 1 for rows of the class, 0 for all others."""

    classes: Sequence[str]
    codes: Vector  # the classes of labeled rows, NaN where there is no label
    supervised: Matrix  # n_rows x n_classes
    projected: Matrix
    soft_labels: Matrix  # imputed labels of the unlabeled rows
    row_names: Sequence[str]  # ids of the unlabeled rows, or their numbers

    @classmethod
    def of(cls, fit: TableFit) -> ScoredRows:
        return cls(
            fit.target.class_names,
            fit.target.codes,
            class_scores(fit.classifier.supervised_, fit.features),
            class_scores(fit.classifier, fit.features),
            _both_classes(np.asarray(fit.classifier.soft_labels_)),
            fit.row_names,
        )

    @cached_property
    def unlabeled(self) -> Mask:
        return np.isnan(self.codes)

    @cached_property
    def predictions(self) -> tuple[Indices, Indices]:
        """The classes that the supervised and the projected model give to the unlabeled rows."""
        first, second = (
            np.argmax(scores[self.unlabeled], axis=1)
            for scores in (self.supervised, self.projected)
        )
        return first, second

    def scores(self, positive: int | None = None) -> tuple[Scores, ...]:
        """Count the scores; of two classes those of the positive one say everything."""
        only = [1 if positive is None else positive]
        shown = only if len(self.classes) == 2 else range(len(self.classes))
        return tuple(self._scores(k) for k in shown)

    def _scores(self, k: int) -> Scores:
        before, after = self.supervised[:, k], self.projected[:, k]
        # A few far-off rows must not squeeze all others into one bin.
        low, high = np.quantile(np.concatenate([before, after]), [0.002, 0.998])
        edges = np.linspace(min(low, -0.05), max(high, 1.05), N_BINS + 1)
        others = self.classes[1 - k] if len(self.classes) == 2 else "other classes"
        own = self.codes == k
        groups = []
        for name, rows in [
            (self.classes[k], own),
            (others, ~own & ~self.unlabeled),
            ("unlabeled", self.unlabeled),
        ]:
            counts = (_counts(scores[rows], edges) for scores in (before, after))
            groups.append(ScoreGroup(name, int(rows.sum()), *counts))
        return Scores(self.classes[k], tuple(edges.tolist()), tuple(groups))

    def changes(self) -> Changes:
        first, second = self.predictions
        n_classes = len(self.classes)
        counts = np.bincount(first * n_classes + second, minlength=n_classes**2)
        changed = np.flatnonzero(first != second)
        before = self.supervised[self.unlabeled][changed, second[changed]]
        after = self.projected[self.unlabeled][changed, second[changed]]
        soft = self.soft_labels[changed, second[changed]]
        order = np.argsort(-np.abs(after - before), kind="stable")[:MOST_CHANGED]
        rows = tuple(
            ChangedRow(
                str(self.row_names[changed[k]]),
                self.classes[first[changed[k]]],
                self.classes[second[changed[k]]],
                float(before[k]),
                float(after[k]),
                float(soft[k]),
            )
            for k in order
        )
        table = counts.reshape(n_classes, n_classes).tolist()
        return Changes(len(changed), len(first), tuple(map(tuple, table)), rows)


class Predicted:
    """Classes that were predicted, as a classifier of these rows."""

    def __init__(self, codes: Indices, n_classes: int) -> None:
        self.codes, self.classes_ = codes, np.arange(n_classes)

    def predict(self, X: Any) -> Indices:  # noqa: ARG002
        return self.codes


def _both_classes(second: AnyArray) -> Matrix:
    return np.column_stack([1.0 - second, second]) if second.ndim == 1 else second


def _counts(values: Vector, edges: Vector) -> tuple[int, ...]:
    """Count values between edges; those beyond count for the first and the last bin."""
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return tuple(int(count) for count in counts)


def coefficients(
    classifier: ProjectedLeastSquaresClassifier,
    preparation: TablePreparation,
    features: Matrix | Rows,
    classes: Sequence[str],
    positive: int | None = None,
) -> tuple[tuple[Coefficient, ...], tuple[Coefficient, ...]]:
    """Return the weights of all features, and the intercepts.

    A weight is what the score gains with one more unit of the feature: a year, a kilogram, or being
    at a level of a category instead of the most frequent one. Times the standard deviation of the
    feature, weights of different features can be compared. The intercept is the score where all
    features are 0: in original units, or if each is counted in standard deviations from its mean,
    which is the score at the mean of all rows. Of two classes, all are those of the positive one,
    which is the second unless it is given.
    """
    two = len(classes) == 2
    shown = [1 if positive is None else positive] if two else list(range(len(classes)))
    means, deviations = _moments(features)
    units, offsets = preparation.units(), preparation.offsets()
    named = list(
        zip(preparation.get_feature_names_out().tolist(), preparation.feature_columns_, strict=True)
    )
    weights, intercepts = [], []
    for k in shown:
        # Scores of two classes add up to 1, and the model has those of the second.
        row, sign, base = (0, 2.0 * k - 1.0, 1.0 - k) if two else (k, 1.0, 0.0)
        models = classifier.supervised_, classifier
        before, after = (sign * model.coef_[row] for model in models)
        values = before / units, after / units, before * deviations, after * deviations
        weights += [
            Coefficient(*words, classes[k], *map(float, of_feature))
            for words, *of_feature in zip(named, *values, strict=True)
        ]
        constants = [base + sign * stored_weights(model).intercept[row] for model in models]
        at_zero, at_mean = (
            [
                float(constant + weight @ place)
                for constant, weight in zip(constants, (before, after), strict=True)
            ]
            for place in (-offsets / units, means)
        )
        intercepts.append(Coefficient("intercept", "", classes[k], *at_zero, *at_mean))
    return tuple(weights), tuple(intercepts)


def _moments(features: Matrix | Rows) -> tuple[Vector, Vector]:
    """Return the means and the standard deviations of the features, without a copy of them."""
    rows = features if isinstance(features, Rows) else as_rows(features)
    mean = rows.weighted_sum(np.ones(rows.n_rows)) / rows.n_rows
    return mean, np.sqrt(np.maximum(rows.squares() / rows.n_rows - mean**2, 0.0))


# Of all rows; the last step doubles them, which is what the report mentions.
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
) -> dict[str, float]:
    """Return errors and losses of the projected model and of the supervised one inside of it."""
    found = {}
    codes = np.searchsorted(model.classes_, y)
    for name, each in ((SUPERVISED, model.supervised_), (PROJECTED, model)):
        losses = {
            "error": each.predict(X) != y,
            "loss": brier_scores(codes, class_scores(each, X)),
        }
        for kind, values in losses.items():
            found[f"{name} {kind}"] = float(np.average(values, weights=sample_weight))
    return found


def _curve(curve: LearningCurve, sample: Sample, rows: str, more_words: str = "") -> Curve:
    lines = tuple(
        CurveLine(
            method,
            *(
                tuple(
                    Mean.over_folds(of_size, sample.test_share).estimate(least=0.0, most=most)
                    for of_size in curve.test_scores[f"{method} {kind}"]
                )
                for kind, most in (("error", 1.0), ("loss", np.inf))
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
    if error == Estimate(0.0, 0.0, 0.0):
        return (
            f"{start}the error of the projected model did not change in any fold: nothing here "
            f"suggests that more {rows} would help."
        )
    return (
        f"{start}the error of the projected model on held-out rows {change(error)}; its squared "
        f"loss per row changed by {signed(decimal(loss.value, 4))} (±{decimal(loss.margin, 4)}). "
        f"{_conclusion(error, loss, rows)}"
    )


def _conclusion(error: Estimate, loss: Estimate, rows: str) -> str:
    if error.sign < 0:
        return f"More {rows} are worth collecting: they still lower the error."
    if error.sign > 0:
        return f"More {rows} have not helped here: the error went up."
    lower, higher = points(max(0.0, -error.low)), points(max(0.0, error.high))
    unclear = (
        f"it is unclear whether more {rows} would lower the error: this doubling may have lowered "
        f"it by up to {lower} points, or raised it by up to {higher}."
    )
    if loss.sign < 0:
        return f"More {rows} still lower the loss, but {unclear}"
    return unclear[0].upper() + unclear[1:]
