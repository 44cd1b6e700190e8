"""Evaluate weights as they will be stored; step back until they are never worse."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from neverworse._typing import Matrix, Vector
from neverworse.projection.certificate.loss import (
    TINY,
    LossDifference,
    Shifts,
    difference_parts,
    difference_sums,
    pieces,
    shifts_of,
    sum_of_parts,
)
from neverworse.projection.coordinates import EPS, Weights
from neverworse.projection.geometry import Geometry
from neverworse.projection.label_sets import Box, Simplex
from neverworse.projection.labels import RowLabels
from neverworse.projection.solver.passes import Scored
from neverworse.rows import Rows


@dataclass(frozen=True)
class Evaluated:
    """Weights, and their loss less that of the supervised ones."""

    weights: Weights
    step: Weights  # less the supervised weights
    difference: LossDifference
    bound: float  # of the rounding error of `difference`
    # Worst and best case for the probabilities nearest to the scores, rounded outwards
    probabilities: tuple[float, float]
    # Bounds of the loss of the supervised weights over all labelings, rounded outwards
    supervised_loss: tuple[float, float]

    @property
    def is_never_worse(self) -> bool:
        """Whether that is proved in spite of rounding errors."""
        return self.difference.worst + self.bound <= 0.0

    def squared_step(self, alpha: float) -> float:
        """Return the squared distance from the supervised weights, in the norm of H."""
        penalised = float(np.vdot(self.step.coef, self.step.coef))
        return self.difference.norm_t**2 + alpha * penalised


class Certifier:
    """Evaluates steps from the supervised weights, as they are stored: less the threshold."""

    def __init__(self, geometry: Geometry, threshold: float) -> None:
        self._geometry = geometry
        self._threshold = threshold

    def certified(
        self, direction: Weights, multiplier: Vector | None, converged: bool
    ) -> Evaluated:
        """Return the weights in that direction that are never worse, where that is promised.

        The worst case along a ray is a parabola through zero, so its lowest point is known. If
        even that cannot be told from zero, the supervised weights themselves are returned.
        """
        full = self.evaluate(direction, multiplier)
        if not self._geometry.guaranteed or (converged and full.is_never_worse):
            return full
        quadratic = full.squared_step(self._geometry.alpha)
        if quadratic > 0.0:
            length = (quadratic - full.difference.worst) / (2.0 * quadratic)
            if length > 0.0:
                shift = None if multiplier is None else length * multiplier
                part = self.evaluate(direction.scaled(length), shift)
                if part.is_never_worse:
                    return part
        return self.evaluate(direction.scaled(0.0), None)

    def evaluate(self, direction: Weights, multiplier: Vector | None) -> Evaluated:
        """Return the weights in that direction as they will be stored, and their loss."""
        geometry = self._geometry
        supervised, alpha = geometry.supervised, geometry.alpha
        weights = (supervised + direction).snapped(self._threshold)
        step, of_baseline = weights - supervised, self._score_error(supervised)
        if step.is_zero:
            difference = self._no_difference()
            loss = self._supervised_loss(difference, of_baseline)
            return Evaluated(weights, step, difference, 0.0, (0.0, 0.0), loss)
        difference, clipped = self._differences(step, multiplier)
        loss = self._supervised_loss(difference, of_baseline)
        of_step = self._score_error(step)
        bound = difference.rounding + difference.score_error(of_step, of_baseline)
        if alpha > 0.0:
            both = step.coef + 2.0 * supervised.coef
            size = alpha * float(np.vdot(np.abs(step.coef), np.abs(both)))
            difference = difference.plus(alpha * float(np.vdot(step.coef, both)))
            bound += (both.size + 4) * EPS * size
        probabilities = self._outwards(clipped, of_step, of_baseline)
        return Evaluated(weights, step, difference, bound, probabilities, loss)

    def _supervised_loss(
        self, difference: LossDifference, of_baseline: float
    ) -> tuple[float, float]:
        """Return bounds of the penalised loss of the supervised weights, rounded outwards."""
        coef, alpha = self._geometry.supervised.coef, self._geometry.alpha
        low, high = difference.baseline_loss(of_baseline)
        penalty = alpha * float(np.vdot(coef, coef))
        bound = (coef.size + 8) * EPS * (penalty + alpha * TINY**2)
        # The last sum is rounded as well.
        least, most = (low + (penalty - bound)), (high + (penalty + bound))
        return max(0.0, least * (1.0 - 2.0 * EPS)), most * (1.0 + 2.0 * EPS)

    def _no_difference(self) -> LossDifference:
        """Return the loss of the supervised weights less itself."""
        geometry = self._geometry
        shifts, kept = self._no_shifts, (geometry.scored, geometry.labels)
        rows = geometry.coordinates.rows
        parts = rows.ask_and_combine(_unchanged, operator.add, kept, shifts)
        return sum_of_parts(parts, geometry.training.labels, shifts)

    @property
    def _no_shifts(self) -> Shifts:
        return Shifts.none(len(self._geometry.supervised.coef))

    def _differences(
        self, step: Weights, multiplier: Vector | None
    ) -> tuple[LossDifference, LossDifference]:
        """Return the loss after a step less that before it: of scores, and of probabilities."""
        geometry = self._geometry
        rows, labels = geometry.coordinates.rows, geometry.training.labels
        shifts = clipped_shifts = self._no_shifts
        if labels.totals is not None:
            t = rows.scores(step.coef, step.intercept)
            shifts = shifts_of(t, labels, multiplier)
            clipped, _ = probability_step(t, geometry.supervised_scores())
            clipped_shifts = shifts_of(clipped, labels, None)
        args, kept = (step.coef, step.intercept), (geometry.labels, geometry.scored)
        both = (shifts, clipped_shifts)
        parts: list[Any] = rows.fold(evaluate_step, operator.add, *args, both, kept=kept)
        of_scores, of_probabilities = map(list, zip(*parts, strict=True))
        return (
            sum_of_parts(of_scores, labels, shifts),
            sum_of_parts(of_probabilities, labels, clipped_shifts),
        )

    def _outwards(
        self, clipped: LossDifference, of_step: float, of_baseline: float
    ) -> tuple[float, float]:
        """Return worst and best case of probabilities with their rounding errors.

        The nearest probability moves no farther than the score, and is rounded itself.
        """
        n_classes = len(self._geometry.supervised.coef)
        rounded = (n_classes + 4) * EPS * np.sqrt(n_classes * self._total_weight())
        error = clipped.score_error(of_step + 2.0 * (of_baseline + rounded), of_baseline + rounded)
        bound = clipped.rounding + error
        return float(clipped.worst + bound), float(clipped.best - bound)

    def _total_weight(self) -> float:
        weights = self._geometry.weights
        return self._geometry.coordinates.rows.n_rows if weights is None else float(weights.sum())

    def _score_error(self, w: Weights) -> float:
        """Return a bound of the weighted norm of the rounding errors of all scores of w.

        Each score of d terms is off by at most (d + 4) ε Σ|w_k||x_k|; the norm over the rows is
        at most the sum of the norms of the columns. Where the rows are shifted, the intercept and
        the shift only nearly cancel: what was rounded is the size of both.
        """
        geometry = self._geometry
        rows, columns = geometry.coordinates.rows, geometry.coordinates.column_norms
        total = self._total_weight()
        if rows.shift is not None:
            columns = columns + np.abs(rows.shift) * np.sqrt(total)
        size = np.abs(w.coef) @ columns + (np.abs(w.intercept) + TINY) * np.sqrt(total)
        return (w.coef.shape[1] + 4) * EPS * float(np.linalg.norm(size))


def evaluate_step(
    rows: Rows,
    coef: Matrix,
    intercept: Vector,
    shifts: tuple[Shifts, Shifts],
    labels: RowLabels,
    scored: Scored,
) -> list[tuple[list[float], list[float]]]:
    """Return what the loss differences of a step add up over some rows."""
    t, parts = rows.scores(coef, intercept), []
    for piece in pieces(t):
        own, step, baseline = labels.at(piece), t[:, piece], scored.scores[:, piece]
        of_scores = difference_sums(step, baseline, own, shifts[0])
        of_probabilities = difference_sums(*probability_step(step, baseline), own, shifts[1])
        parts.append((of_scores, of_probabilities))
    return parts


def probability_step(t: Matrix, baseline: Matrix) -> tuple[Matrix, Matrix]:
    """Return the change of the probabilities nearest to scores, and those before it."""
    nearest = (Box() if len(t) == 1 else Simplex()).project
    before = nearest(baseline)
    return nearest(baseline + t) - before, before


def _unchanged(scored: Scored, labels: RowLabels, shifts: Shifts) -> list[list[float]]:
    return difference_parts(None, scored.scores, labels, shifts)
