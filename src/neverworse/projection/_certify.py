"""Evaluate weights as they will be stored; step back until they are never worse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse._typing import Scalars
from neverworse.projection._geometry import Geometry
from neverworse.projection._loss import LossDifference, loss_difference
from neverworse.projection._weights import Weights
from neverworse.projection._whitening import EPS


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
        t = np.zeros_like(geometry.scores)
        if not step.is_zero:
            t = geometry.whitening.rows.scores(step.coef, step.intercept)
        difference = loss_difference(
            t, geometry.scores, geometry.training.labels, geometry.weights, multiplier
        )
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
