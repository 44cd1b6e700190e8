"""What a fit to a table is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from neverworse._typing import Mask, Vector
from neverworse.tables import DateOrder

Interval = tuple[float, float]
Kind = Literal["fixed", "balanced", "f1", "cost"]

AUTO = "auto"
USUAL_CANDIDATES = ("ICLS", "self-learning", "logistic regression", "random forest")
EQUAL = 1e-12  # values of a rule that differ by less differ by rounding errors


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

    def __str__(self) -> str:
        """Return it as the command line has it."""
        if self.kind == "cost":
            return f"cost={self.miss:g}:{self.alarm:g}"
        return f"{self.value:g}" if self.kind == "fixed" else self.kind

    @property
    def words(self) -> str:
        """What the threshold is for."""
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
class FitSettings:
    """What a fit to a table is told.

    Columns are treated as `TablePreparation` is told; distance, penalties and class weight are
    those of `ProjectedLeastSquaresClassifier`.
    """

    target: str  # column of the labels
    id: str | None = None  # column that names the rows in results
    weight: str | None = None  # column of the weights of rows
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # how they are read
    decimal: str | None = None  # what numbers in text have before decimals, as said or found
    dates: DateOrder | None = None  # what dates begin with that could be read in two ways
    # What marks unlabeled rows, besides empty cells; if given, no class is suspected to be one.
    markers: tuple[str, ...] | None = None
    distance: str = "all"
    alpha: float | str = "loo"
    constraint_alpha: float | str = "same"
    # Shares of classes among the unlabeled rows, or "confidence"; None is the second of two.
    prior: Mapping[str | None, Interval] | str = field(default_factory=dict)
    class_weight: str | None = None
    kernel: str = "linear"  # or "rbf", "laplacian", or "auto": linear or rbf by leave-one-out
    # The class that precision, recall and the like are about; if None, the rarer one of two.
    positive: str | None = None
    model: str = AUTO  # or the name of a method
    candidates: tuple[str, ...] = USUAL_CANDIDATES  # of the confident step; none: it is left out
    threshold: ThresholdRule = field(default_factory=ThresholdRule)  # of the positive class
    calibrate: bool = False  # whether probabilities are to be calibrated

    @property
    def reading(self) -> dict[str, Any]:
        """What `TablePreparation` is told."""
        return {
            "categorical": list(self.categorical),
            "drop": list(self.drop),
            "columns": {name: dict(entry) for name, entry in self.columns.items()},
            "decimal": self.decimal,
            "dates": self.dates,
        }

    @property
    def text(self) -> frozenset[str]:
        """Columns that hold names, whatever they look like."""
        return frozenset({self.target, *self.categorical, *([] if self.id is None else [self.id])})
