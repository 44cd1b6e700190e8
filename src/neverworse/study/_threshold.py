"""Where the line between two classes is drawn, and by what rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from neverworse._typing import Mask, Vector

Kind = Literal["fixed", "balanced", "f1", "cost"]

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
