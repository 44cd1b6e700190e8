r"""Minimise a function of the class sums over soft labels.

The soft labels :math:`q_j` of the rows lie in the simplex, and enter the class sums z linearly,

.. math:: z(q) = z_0 + \sum_j s_j \, q_j \otimes (1, x_j - c) ,

so that the derivative of f(z(q)) with respect to :math:`q_{jk}` is :math:`s_j` times a linear score
:math:`t_{jk}` of the row. A step goes from labels :math:`\bar q` to the points of the simplex that
are nearest to :math:`\bar q_j - t_j / L`, where L bounds the curvature of f and adapts to it. Each
starts ahead of where the last one ended, with a momentum that is lost as soon as it leads uphill
(accelerated projected gradients with adaptive restart). One reading of the rows gives the scores
and the change of z; everything else is done without the rows.

For a convex f, the *gap* :math:`\sum_j s_j (q_j \cdot t_j - \min_k t_{jk})` bounds how far f is
above its minimum; where it is zero, the conditions of Karush, Kuhn and Tucker hold.

A. Beck and M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse
problems", SIAM Journal on Imaging Sciences 2 (2009), 183-202.

B. O'Donoghue and E. Candès, "Adaptive restart for accelerated gradient schemes", Foundations of
Computational Mathematics 15 (2015), 715-732.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from neverworse._typing import Matrix, Vector
from neverworse.methods.discriminant._sample import Sample
from neverworse.methods.discriminant._subspace import SingularCovarianceError
from neverworse.projection import Simplex
from neverworse.projection.solver.budget import Budget

EASE = 0.95  # the bound of the curvature becomes smaller by this with each step, ...
FALL = 0.3  # ... or by up to this where a step met much less curvature, and ...
TIGHTEN = 2.0  # ... larger by this where it was none
LARGEST = 1e12  # a bound that has grown by so much never was the problem
# Two values this close, relative to the total weight, cannot be compared, and ...
ROUNDING = 1e-13
PATIENCE = 100  # ... so many steps between them, without a smaller gap, are no progress

# Value and derivative at class sums.
Objective = Callable[[Matrix], tuple[float, Matrix]]


@dataclass(frozen=True)
class Descent:
    """Soft labels, and how good they are.

    Attributes
    ----------
    soft_labels : array of shape (n_classes, n_rows)
        Of labeled rows, anything.
    value : float
    gap : float
    """

    soft_labels: Matrix
    value: float
    gap: float


def descend(
    objective: Objective,
    sample: Sample,
    soft_labels: Matrix,
    enough: Callable[[float, float], bool],
    budget: Budget,
) -> Descent:
    """Minimise, starting from some soft labels.

    Parameters
    ----------
    objective : callable
        A smooth function of the class sums.
    sample : Sample
    soft_labels : array of shape (n_classes, n_rows)
        Where to start; each column in the simplex.
    enough : callable
        Whether a gap is small enough at a value.
    budget : Budget
        Steps and time; when they end, so does the descent.
    """
    here = _Point.at(objective, soft_labels, sample.all_sums(soft_labels))
    ahead, momentum = here, 1.0
    curvature = first = _first_curvature(sample, here)
    rounding, idle, smallest_gap = ROUNDING * sample.total, 0, math.inf
    n_unlabeled = int(np.count_nonzero(sample.free))
    while True:
        step = _Step(sample, ahead, curvature)
        budget.report("soft labels", n_unlabeled, step.gap, abs(ahead.value))
        if enough(step.gap, ahead.value):
            if ahead is here:
                break
            ahead, momentum = here, 1.0  # labels ahead may lie outside of the simplex
            continue
        if not budget.spend():
            break
        new = step.end(objective)
        while not step.fits(new) and curvature < LARGEST * first:
            curvature *= TIGHTEN
            step = _Step(sample, ahead, curvature)
            new = step.end(objective)
        curvature = min(EASE * curvature, max(FALL * curvature, step.curvature_to(new)))
        progress = new.value < here.value - rounding or step.gap < 0.9 * smallest_gap
        smallest_gap = min(smallest_gap, step.gap)
        idle = 0 if progress else idle + 1
        if idle > PATIENCE:
            break
        downhill = float(np.vdot(ahead.slopes, new.sums - here.sums)) <= 0.0
        if new.value <= here.value + rounding:
            here, last = new, here
            if downhill:
                faster = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
                ahead = here.beyond(last, (momentum - 1.0) / faster, objective)
                momentum = faster
                continue
        ahead, momentum = here, 1.0
    gaps = _gaps(here.labels, sample.scores(here.slopes))
    return Descent(here.labels, here.value, float(sample.free @ gaps))


@dataclass(frozen=True)
class _Point:
    """Labels with their class sums, and value and derivative there."""

    labels: Matrix
    sums: Matrix
    value: float
    slopes: Matrix

    @classmethod
    def at(cls, objective: Objective, labels: Matrix, sums: Matrix) -> _Point:
        value, slopes = objective(sums)
        return cls(labels, sums, value, slopes)

    def beyond(self, last: _Point, share: float, objective: Objective) -> _Point:
        """Return a point on the line from the last one through this one.

        Labels there may lie outside of the simplex. If they do so by too much for a likelihood to
        exist, it is this point itself.
        """
        sums = self.sums + share * (self.sums - last.sums)
        if share == 0.0 or np.any(sums[:, 0] <= 0.0):
            return self
        try:
            return _Point.at(objective, self.labels + share * (self.labels - last.labels), sums)
        except SingularCovarianceError:
            return self


class _Step:
    """Where labels are heading, from one reading of the rows.

    Attributes
    ----------
    gap : float
        At the start.
    """

    def __init__(self, sample: Sample, start: _Point, curvature: float) -> None:
        free, simplex, q = sample.free, Simplex(), start.labels
        gaps, squares = np.empty(len(free)), np.empty(len(free))
        self._labels = np.empty_like(q)

        def weigh(t: Matrix, rows: slice) -> Matrix:
            here = q[:, rows]
            nearest = simplex.project(here - t / curvature)
            move = nearest - here
            gaps[rows] = _gaps(here, t)
            squares[rows] = np.sum(move**2, axis=0)
            self._labels[:, rows] = nearest
            weights: Matrix = free[rows] * move
            return weights

        _, change = sample.scores_and_sums(start.slopes, weigh)
        self._start, self._change, self._curvature = start, change, curvature
        self._square = float(free @ squares)
        self.gap = float(free @ gaps)

    def end(self, objective: Objective) -> _Point:
        """Return where the step ends."""
        return _Point.at(objective, self._labels, self._start.sums + self._change)

    def fits(self, end: _Point) -> bool:
        """Whether the curvature up to the end is bounded as assumed.

        By the values, or by the derivatives where values are too close to be compared.
        """
        start = self._start
        along = float(np.vdot(start.slopes, self._change))
        if end.value <= start.value + along + 0.5 * self._curvature * self._square:
            return True
        return self.curvature_to(end) <= self._curvature

    def curvature_to(self, end: _Point) -> float:
        """Return the curvature up to the end."""
        change = float(np.vdot(end.slopes - self._start.slopes, self._change))
        return change / self._square if self._square > 0.0 else 0.0


def _gaps(labels: Matrix, scores: Matrix) -> Vector:
    """Return for every row by how much another label would lower the scores."""
    gaps: Vector = np.sum(labels * scores, axis=0) - scores.min(axis=0)
    return gaps


def _first_curvature(sample: Sample, point: _Point) -> float:
    """Return a bound for which the label that changes most changes by about one."""
    t = sample.scores(point.slopes)[:, sample.free > 0.0]
    largest = float(np.ptp(t, axis=0).max())
    return largest if largest > 0.0 else 1.0
