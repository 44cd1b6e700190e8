"""What the supervised and the projected model say about the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse.estimators import class_scores
from neverworse.study._fit import TableFit
from neverworse.study._study import ChangedRow, Changes, ScoreGroup, Scores

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
        """Score all rows that a model was fitted to."""
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
        """Which rows have no label."""
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
        labeled = [(name, self.codes == j) for j, name in enumerate(self.classes)]
        groups = []
        for name, rows in [*labeled, ("unlabeled", self.unlabeled)]:
            counts = (_counts(scores[rows], edges) for scores in (before, after))
            groups.append(ScoreGroup(name, int(rows.sum()), *counts))
        return Scores(self.classes[k], tuple(edges.tolist()), tuple(groups))

    def changes(self) -> Changes:
        """Find the unlabeled rows whose class changed."""
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
        """Return the classes."""
        return self.codes


def _both_classes(second: AnyArray) -> Matrix:
    return np.column_stack([1.0 - second, second]) if second.ndim == 1 else second


def _counts(values: Vector, edges: Vector) -> tuple[int, ...]:
    """Count values between edges; those beyond count for the first and the last bin."""
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return tuple(int(count) for count in counts)
