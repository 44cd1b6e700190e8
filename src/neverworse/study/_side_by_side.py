"""The supervised and the projected model side by side: scores, weights, learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from neverworse import model_selection
from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse._words import change
from neverworse.estimators import ProjectedLeastSquaresClassifier, class_scores
from neverworse.rows import Rows, as_rows
from neverworse.study._fit import TableFit
from neverworse.study._held_out import (
    MAX_UNLABELED,
    Sample,
    brier_scores,
    draw_sample,
    mean_over_folds,
)
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
        """Return histograms of the scores, for each class that is shown."""
        found = []
        for k in _shown(self.classes, positive):
            both = np.stack([self.supervised[:, k], self.projected[:, k]])
            # A few outliers must not squeeze all other rows into one bin.
            low, high = np.quantile(both, [0.002, 0.998])
            edges = np.linspace(min(low, -0.05), max(high, 1.05), N_BINS + 1)
            both = np.clip(both, edges[0], edges[-1])  # outliers are in the outermost bins
            others = self.classes[1 - k] if len(self.classes) == 2 else "other classes"
            own, groups = self.codes == k, []
            for name, rows in [
                (self.classes[k], own),
                (others, ~own & ~self.unlabeled),
                ("unlabeled", self.unlabeled),
            ]:
                counts = (tuple(np.histogram(scores[rows], edges)[0].tolist()) for scores in both)
                groups.append(ScoreGroup(name, int(rows.sum()), *counts))
            found.append(Scores(self.classes[k], tuple(edges.tolist()), tuple(groups)))
        return tuple(found)

    def changes(self) -> Changes:
        """Return the unlabeled rows whose predicted class changed, largest changes first."""
        first, second = self.predictions
        changed = np.flatnonzero(first != second)
        before, after = (
            scores[self.unlabeled][changed, second[changed]]
            for scores in (self.supervised, self.projected)
        )
        order = np.argsort(-np.abs(after - before), kind="stable")[:MOST_CHANGED]
        rows = tuple(
            ChangedRow(
                str(self.row_names[int(row)]),
                self.classes[first[row]],
                self.classes[second[row]],
                float(before[k]),
                float(after[k]),
                float(self.soft_labels[row, second[row]]),
            )
            for k, row in zip(order, changed[order], strict=True)
        )
        return Changes(len(changed), len(first), rows)


def _shown(classes: Sequence[str], positive: int | None) -> Sequence[int]:
    """Return the classes that are shown: of two, the positive one is enough."""
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
    """Return the weights and the intercepts of a linear model.

    The intercept is the score where all features are 0; the scaled one, where all are at their
    means.
    """
    classifier, preparation = fit.classifier, fit.model.preparation_
    if classifier.kernel != "linear":
        return (), ()
    classes = fit.target.class_names
    two = len(classes) == 2
    rows = fit.features if isinstance(fit.features, Rows) else as_rows(fit.features)
    means = rows.weighted_sum(np.ones(rows.n_rows)) / rows.n_rows
    deviations = np.sqrt(np.maximum(rows.squares() / rows.n_rows - means**2, 0.0))
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


RowKind = Literal["unlabeled", "labeled"]

SHARES = [1 / 4, 1 / 2, 1.0]  # of all rows: each step doubles them
# Unlabeled rows in each fit: where labeled ones grow, time is better spent on repeats.
MOST_UNLABELED: dict[RowKind, int] = {"unlabeled": MAX_UNLABELED, "labeled": 2_000}
MOST_REPEATS = 2  # more take time and hardly narrow the intervals: their training rows overlap


def learning_curve(
    rows: RowKind,
    projected: ProjectedLeastSquaresClassifier,
    X: Any,
    y: Vector,
    sample_weight: Vector | None = None,
    *,
    seed: int = 0,
) -> Curve:
    """Return test errors over growing subsets of rows; `ValueError` if there are too few."""
    n_fits = float(len(SHARES))
    sample = draw_sample(X, y, sample_weight, MOST_UNLABELED[rows], seed, fits_per_split=n_fits)
    found = model_selection.learning_curve(
        projected,
        sample.X,
        sample.y,
        rows=rows,
        sizes=SHARES,
        cv=sample.n_folds,
        n_repeats=min(MOST_REPEATS, sample.n_repeats),
        scoring=_both_models,
        sample_weight=sample.weights,
        missing_label=np.nan,
        random_state=seed,
    )
    return _curve(found, sample)


def _both_models(
    model: ProjectedLeastSquaresClassifier, X: Any, y: Vector, sample_weight: Vector | None = None
) -> dict[str, float]:
    """Return errors and losses of the projected model and of its supervised baseline."""
    found, codes = {}, np.searchsorted(model.classes_, y)
    for name, each in ((SUPERVISED, model.supervised_), (PROJECTED, model)):
        losses = {"error": each.predict(X) != y, "loss": brier_scores(codes, class_scores(each, X))}
        for kind, values in losses.items():
            found[f"{name} {kind}"] = float(np.average(values, weights=sample_weight))
    return found


def _curve(curve: Any, sample: Sample) -> Curve:
    if len(curve.sizes) < 2:
        raise ValueError(f"There are too few {curve.rows} rows.")

    def estimates(name: str, most: float) -> tuple[Estimate, ...]:
        scores, share, limits = curve.test_scores[name], sample.test_share, (0.0, most)
        return tuple(mean_over_folds(values, share, limits=limits) for values in scores)

    errors = curve.test_scores[f"{PROJECTED} error"]
    step = mean_over_folds(errors[-1] - errors[-2], sample.test_share)
    before, after = curve.sizes[-2:]
    conclusion = {
        -1: f"More {curve.rows} rows are worth collecting: they still lower the error.",
        0: f"It is unclear whether more {curve.rows} rows would lower the error.",
        1: f"More {curve.rows} rows have not helped here: the error went up.",
    }[step.sign]
    return Curve(
        rows=curve.rows,
        sizes=tuple(curve.sizes.tolist()),
        n_other=round(float(curve.n_others.mean())),
        n_repeats=curve.n_repeats,
        lines=tuple(
            CurveLine(name, estimates(f"{name} error", 1.0), estimates(f"{name} loss", np.inf))
            for name in (SUPERVISED, PROJECTED)
        ),
        error_step=step,
        words=f"From {before:,} to {after:,} {curve.rows} rows, the error of the projected model "
        f"on held-out rows {change(step)}. {conclusion}",
    )
