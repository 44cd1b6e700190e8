"""The supervised and the projected model side by side: scores, weights, learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse._words import change
from neverworse.estimators import ProjectedLeastSquaresClassifier, class_scores
from neverworse.model_selection import (
    LearningCurve,
    labeled_learning_curve,
    unlabeled_learning_curve,
)
from neverworse.rows import Rows, as_rows
from neverworse.study._fit import TableFit
from neverworse.study._held_out import Sample, brier_scores, draw_sample, mean_over_folds
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
    row_names: pa.Array  # ids of the unlabeled rows, or their numbers

    @classmethod
    def of(cls, fit: TableFit) -> ScoredRows:
        soft = np.asarray(fit.classifier.soft_labels_)
        return cls(
            fit.target.class_names,
            fit.target.codes,
            class_scores(fit.classifier.supervised_, fit.features),
            class_scores(fit.classifier, fit.features),
            np.column_stack([1.0 - soft, soft]) if soft.ndim == 1 else soft,
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
        """Count the scores."""
        return tuple(self._scores(k) for k in _shown(self.classes, positive))

    def _scores(self, k: int) -> Scores:
        both = np.stack([self.supervised[:, k], self.projected[:, k]])
        # A few far-off rows must not squeeze all others into one bin.
        low, high = np.quantile(both, [0.002, 0.998])
        edges = np.linspace(min(low, -0.05), max(high, 1.05), N_BINS + 1)
        both = np.clip(both, edges[0], edges[-1])  # rows beyond count for the outermost bins
        others = self.classes[1 - k] if len(self.classes) == 2 else "other classes"
        own = self.codes == k
        groups = []
        for name, rows in [
            (self.classes[k], own),
            (others, ~own & ~self.unlabeled),
            ("unlabeled", self.unlabeled),
        ]:
            counts = (tuple(np.histogram(scores[rows], edges)[0].tolist()) for scores in both)
            groups.append(ScoreGroup(name, int(rows.sum()), *counts))
        return Scores(self.classes[k], tuple(edges.tolist()), tuple(groups))

    def changes(self) -> Changes:
        first, second = self.predictions
        changed = np.flatnonzero(first != second)
        before = self.supervised[self.unlabeled][changed, second[changed]]
        after = self.projected[self.unlabeled][changed, second[changed]]
        soft = self.soft_labels[changed, second[changed]]
        order = np.argsort(-np.abs(after - before), kind="stable")[:MOST_CHANGED]
        rows = tuple(
            ChangedRow(
                str(self.row_names[int(changed[k])]),
                self.classes[first[changed[k]]],
                self.classes[second[changed[k]]],
                float(before[k]),
                float(after[k]),
                float(soft[k]),
            )
            for k in order
        )
        return Changes(len(changed), len(first), rows)


def _shown(classes: Sequence[str], positive: int | None) -> Sequence[int]:
    """Return the classes to speak of: of two, the positive one says everything."""
    if len(classes) > 2:
        return range(len(classes))
    return [1 if positive is None else positive]


class Predicted:
    """Classes that were predicted, as a classifier of these rows."""

    def __init__(self, codes: Indices, n_classes: int) -> None:
        self.codes, self.classes_ = codes, np.arange(n_classes)

    def predict(self, X: Any) -> Indices:  # noqa: ARG002
        return self.codes


def coefficients(fit: TableFit) -> tuple[tuple[Coefficient, ...], tuple[Coefficient, ...]]:
    """Return the weights of all features of a linear model, and the intercepts.

    A weight is what the score gains with one more unit of the feature: a year, a kilogram, or being
    at a level of a category instead of the most frequent one. Times the standard deviation of the
    feature, weights of different features can be compared. The intercept is the score where all
    features are 0: in original units, or if each is counted in standard deviations from its mean,
    which is the score at the mean of all rows. Of two classes, all are those of the positive one,
    which is the second unless it is given.
    """
    classifier, preparation = fit.classifier, fit.model.preparation_
    if classifier.kernel != "linear":
        return (), ()
    classes = fit.target.class_names
    two = len(classes) == 2
    means, deviations = _moments(fit.features)
    units, offsets = preparation.units(), preparation.offsets()
    named = list(
        zip(preparation.get_feature_names_out().tolist(), preparation.feature_columns_, strict=True)
    )
    models = classifier.supervised_, classifier
    at_zero, at_mean = (
        [class_scores(model, place[None])[0] for model in models]
        for place in (-offsets / units, means)
    )
    # Scores of two classes add up to 1, and the model has those of the second.
    of_models = [np.vstack([-m.coef_, m.coef_]) if two else m.coef_ for m in models]
    weights, intercepts = [], []
    for k in _shown(classes, fit.positive):
        before, after = (of_classes[k] for of_classes in of_models)
        values = before / units, after / units, before * deviations, after * deviations
        weights += [
            Coefficient(*words, classes[k], *map(float, of_feature))
            for words, *of_feature in zip(named, *values, strict=True)
        ]
        scores = (float(of_classes[k]) for of_classes in (*at_zero, *at_mean))
        intercepts.append(Coefficient("intercept", "", classes[k], *scores))
    return tuple(weights), tuple(intercepts)


def _moments(features: Matrix | Rows) -> tuple[Vector, Vector]:
    """Return the means and the standard deviations of the features, without a copy of them."""
    rows = features if isinstance(features, Rows) else as_rows(features)
    mean = rows.weighted_sum(np.ones(rows.n_rows)) / rows.n_rows
    return mean, np.sqrt(np.maximum(rows.squares() / rows.n_rows - mean**2, 0.0))


RowKind = Literal["unlabeled", "labeled"]

# Of all rows; the last step doubles them, which is what the report mentions.
SHARES: dict[RowKind, list[float]] = {
    "unlabeled": [1 / 16, 1 / 2, 1.0],
    "labeled": [1 / 4, 1 / 2, 1.0],
}
# Unlabeled rows in each fit: where labeled ones grow, time is better spent on repeats.
MOST_UNLABELED: dict[RowKind, int] = {"unlabeled": 20_000, "labeled": 2_000}
# Folds of one repeat share most training rows with those of the next: more of them take time, and
# make intervals hardly narrower.
MOST_REPEATS = 2


def learning_curve(
    rows: RowKind,
    projected: ProjectedLeastSquaresClassifier,
    X: Any,
    y: Vector,
    *,
    sample_weight: Vector | None = None,
    seed: int = 0,
) -> Curve:
    """Return the test error over growing subsets of the unlabeled or of the labeled rows.

    Of many unlabeled rows some are drawn: fewer, if X has many columns or classes. `ValueError`,
    with a message for people, if a class has one label only, or there are too few rows.
    """
    shares, most = np.array(SHARES[rows]), MOST_UNLABELED[rows]
    n_fits = float(shares.sum()) if rows == "unlabeled" else float(len(shares))
    sample = draw_sample(X, y, sample_weight, most, seed, fits_per_split=n_fits)
    if rows == "unlabeled":
        # With fewer rows than features, any weights fit: that says nothing about more rows.
        enough = shares * sample.n_unlabeled + sample.n_labeled >= sample.X.shape[1]
        enough[-2:] = True
        settings = _settings(sample, seed) | {"unlabeled_sizes": shares[enough]}
        found = unlabeled_learning_curve(projected, sample.X, sample.y, **settings)
    else:
        settings = _settings(sample, seed) | {"labeled_sizes": shares}
        found = labeled_learning_curve(projected, sample.X, sample.y, **settings)
    return _curve(found, sample)


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
        losses = {"error": each.predict(X) != y, "loss": brier_scores(codes, class_scores(each, X))}
        for kind, values in losses.items():
            found[f"{name} {kind}"] = float(np.average(values, weights=sample_weight))
    return found


def _curve(curve: LearningCurve, sample: Sample) -> Curve:
    if len(curve.sizes) < 2:
        raise ValueError(f"There are too few {curve.rows} rows.")

    def estimates(name: str, most: float) -> tuple[Estimate, ...]:
        return tuple(
            mean_over_folds(values, sample.test_share, least=0.0, most=most)
            for values in curve.test_scores[name]
        )

    errors = curve.test_scores[f"{PROJECTED} error"]
    step = mean_over_folds(errors[-1] - errors[-2], sample.test_share)
    before, after = curve.sizes[-2:]
    conclusion = {
        -1: f"More {curve.rows} rows are worth collecting: they still lower the error.",
        0: f"It is unclear whether more {curve.rows} rows would lower the error.",
        1: f"More {curve.rows} rows have not helped here: the error went up.",
    }[step.sign]
    return Curve(
        curve.rows,
        tuple(curve.sizes.tolist()),
        round(float(curve.n_others.mean())),
        curve.n_repeats,
        tuple(
            CurveLine(name, estimates(f"{name} error", 1.0), estimates(f"{name} loss", np.inf))
            for name in (SUPERVISED, PROJECTED)
        ),
        step,
        f"From {before:,} to {after:,} {curve.rows} rows, the error of the projected model on "
        f"held-out rows {change(step)}. {conclusion}",
    )
