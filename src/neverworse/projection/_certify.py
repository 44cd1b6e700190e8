"""Evaluate weights as they will be stored; step back until they are never worse."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np

from neverworse._typing import Scalars, Vector
from neverworse.projection._geometry import Geometry
from neverworse.projection._loss import (
    LossDifference,
    Shifts,
    difference_parts,
    shifts_of,
    sum_of_parts,
)
from neverworse.projection._row_labels import RowLabels
from neverworse.projection._start import Scored
from neverworse.projection._weights import Weights
from neverworse.projection._whitening import EPS
from neverworse.rows import Rows


@dataclass(frozen=True)
class Evaluated:
    """Weights, their loss less that of the supervised ones, and a bound of its rounding error."""

    weights: Weights
    difference: LossDifference
    bound: float

    @property
    def is_never_worse(self) -> bool:
        """Whether that is proved in spite of rounding errors."""
        return self.difference.worst + self.bound <= 0.0


class Certifier:
    """Evaluates steps from the supervised weights.

    Parameters
    ----------
    geometry : Geometry
    threshold : float
        What the estimator subtracts from the intercept before it stores it.
    """

    def __init__(self, geometry: Geometry, threshold: float) -> None:
        self._geometry = geometry
        self._threshold = threshold

    def certified(
        self, direction: Weights, multiplier: Scalars | None, converged: bool
    ) -> Evaluated:
        """Return the weights in that direction that are never worse, where that is promised.

        The worst case along a ray is a parabola through zero, so its lowest point is known. If
        even that cannot be told from zero, the supervised weights themselves are returned.
        """
        full = self.evaluate(direction, multiplier)
        if not self._geometry.guaranteed or (converged and full.is_never_worse):
            return full
        square = float(np.vdot(direction.coef, direction.coef))
        quadratic = full.difference.norm_t**2 + self._geometry.alpha * square
        if quadratic > 0.0:
            length = (quadratic - full.difference.worst) / (2.0 * quadratic)
            if length > 0.0:
                shift = None if multiplier is None else length * multiplier
                part = self.evaluate(direction.scaled(length), shift)
                if part.is_never_worse:
                    return part
        return self.evaluate(direction.scaled(0.0), None)

    def evaluate(self, direction: Weights, multiplier: Scalars | None) -> Evaluated:
        """Return the weights in that direction as they will be stored, and their loss."""
        geometry = self._geometry
        supervised, alpha = geometry.supervised, geometry.alpha
        weights = (supervised + direction).snapped(self._threshold)
        step = weights - supervised
        difference = self._difference(None if step.is_zero else step, multiplier)
        bound = 0.0
        if not step.is_zero:
            bound = difference.rounding + difference.score_error(
                self._score_error(step), self._score_error(supervised)
            )
        if alpha > 0.0:
            both = step.coef + 2.0 * supervised.coef
            size = alpha * float(np.vdot(np.abs(step.coef), np.abs(both)))
            difference = difference.plus(alpha * float(np.vdot(step.coef, both)))
            bound += (both.size + 4) * EPS * size
        return Evaluated(weights, difference, bound)

    def _difference(self, step: Weights | None, multiplier: Scalars | None) -> LossDifference:
        """Return the loss after a step less that before it."""
        geometry = self._geometry
        rows, labels = geometry.whitening.rows, geometry.training.labels
        known = (geometry.placed, geometry.scored)
        shifts = Shifts.none(geometry.supervised.coef)
        if labels.totals is not None:
            t = np.zeros((*shifts.worst.shape, rows.n_rows))
            if step is not None:
                t = rows.scores(step.coef, step.intercept)
            shifts = shifts_of(t, labels, multiplier)
        if step is None:
            also = (geometry.placed,)
            parts = geometry.scored.reduce(_unchanged, operator.add, shifts, also=also)
        else:
            parts = rows.fold(
                evaluate_step, operator.add, step.coef, step.intercept, shifts, kept=known
            )
        return sum_of_parts(parts, labels, shifts)

    def _score_error(self, w: Weights) -> float:
        """Return a bound of the weighted norm of the rounding errors of all scores of w.

        Each score of d terms is off by at most (d + 4) ε Σ|w_k||x_k|; the norm over the rows is
        at most the sum of the norms of the columns. Where the rows are shifted, the intercept and
        the shift only nearly cancel: what was rounded is the size of both.
        """
        geometry = self._geometry
        rows, columns = geometry.whitening.rows, geometry.whitening.column_norms
        total = rows.n_rows if geometry.weights is None else float(geometry.weights.sum())
        if rows.shift is not None:
            columns = columns + np.abs(rows.shift) * np.sqrt(total)
        size = np.abs(w.coef) @ columns + np.abs(w.intercept) * np.sqrt(total)
        return (w.coef.shape[-1] + 4) * EPS * float(np.linalg.norm(size))


def evaluate_step(
    rows: Rows,
    coef: Vector,
    intercept: Scalars,
    shifts: Shifts,
    labels: RowLabels,
    scored: Scored,
) -> list[list[float]]:
    """Return what the loss difference of a step adds up over some rows."""
    return difference_parts(rows.scores(coef, intercept), scored.scores, labels, shifts)


def _unchanged(scored: Scored, labels: RowLabels, shifts: Shifts) -> list[list[float]]:
    return difference_parts(None, scored.scores, labels, shifts)
