"""What a fit to a table is told, and where the line between two classes is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from neverworse._typing import Mask, Vector
from neverworse.tables._recognise import DateOrder

Interval = tuple[float, float]
Kind = Literal["fixed", "balanced", "f1", "cost"]

AUTO = "auto"
EQUAL = 1e-12  # values of a rule that differ by less differ by rounding errors


@dataclass(frozen=True)
class ThresholdRule:
    """How the threshold of the positive one of two classes is found.

    Attributes
    ----------
    kind : {"fixed", "balanced", "f1", "cost"}
        It is given; or has the largest balanced accuracy, the largest F1 of the positive class, or
        the smallest cost, on labeled rows that were held out.
    value : float
        The threshold, if it is given.
    miss, alarm : float
        What a missed row of the positive class costs, and what a false alarm does.
    """

    kind: Kind = "fixed"
    value: float = 0.5
    miss: float = 1.0
    alarm: float = 1.0

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

        Parameters
        ----------
        probabilities : array of shape (n_rows,)
            Of the positive class.
        positive : boolean array of shape (n_rows,)
            Which rows are of this class.
        weights : array of shape (n_rows,)
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

    Attributes
    ----------
    target : str
        Column of the labels.
    id : str, optional
        Column that names the rows in results.
    weight : str, optional
        Column of the weights of rows.
    drop, categorical : tuples of str
        See `TablePreparation`.
    columns : mapping of str to mapping
        A plan of how columns are read; see `TablePreparation`.
    decimal : {".", ","}, optional
        What numbers in text have before decimals, as was said or found.
    dates : {"day-first", "month-first"}, optional
        What dates begin with that could be read in two ways.
    markers : tuple of str, optional
        What marks unlabeled rows, besides empty cells. If given, no marker is suspected among the
        classes.
    distance : str
        See `ProjectedLeastSquaresClassifier`.
    alpha : float or "loo"
        Ridge penalty of the supervised model, or chosen on the labeled rows.
    constraint_alpha : float or "same"
        Ridge penalty in the loss of the guarantee, or that of the supervised model.
    prior : mapping of str or None to interval, or "confidence"
        Shares of classes among the unlabeled rows; None stands for the second of two classes.
    class_weight : "balanced", optional
        See `ProjectedLeastSquaresClassifier`.
    positive : str, optional
        The class that precision, recall and the like are about; of two classes, the rarer one if it
        is not given.
    model : str
        Which one is wanted: "auto", or the name of a method.
    threshold : ThresholdRule
        Of the positive class.
    calibrate : bool
        Whether probabilities are to be calibrated.
    """

    target: str
    id: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    decimal: str | None = None
    dates: DateOrder | None = None
    markers: tuple[str, ...] | None = None
    distance: str = "all"
    alpha: float | str = "loo"
    constraint_alpha: float | str = "same"
    prior: Mapping[str | None, Interval] | str = field(default_factory=dict)
    class_weight: str | None = None
    positive: str | None = None
    model: str = AUTO
    threshold: ThresholdRule = field(default_factory=ThresholdRule)
    calibrate: bool = False

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
