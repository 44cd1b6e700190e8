"""Totals of the soft labels over all rows that are known: what a class prior says.

In the dual, totals are one more coordinate μ per class: it is added to every score, has no
quadratic term, and costs the largest M·μ over totals M in their intervals.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize

from neverworse._typing import Matrix, Vector
from neverworse.projection.label_sets import LabelSet

if TYPE_CHECKING:
    from neverworse.projection.solver.line_search import Slope

MOST_STEPS = 500
SINGULAR = 1e-11  # what makes a matrix with elements of size one invertible


@dataclass(frozen=True)
class Totals:
    """Intervals for Σ s_j q_j over the unlabeled rows, one for each class.

    Attributes
    ----------
    low, high : arrays of shape (n_classes,)
    """

    low: Vector
    high: Vector

    def scaled(self, factor: float) -> Totals:
        """Return the interval of `factor` times the total."""
        return Totals(factor * self.low, factor * self.high)

    def project(self, total: Vector) -> Vector:
        """Return the totals in the intervals that are nearest to the given ones."""
        return np.clip(total, self.low, self.high)

    def support(self, multiplier: Vector) -> float:
        """Return the largest M·μ."""
        return float(np.sum(np.maximum(self.low * multiplier, self.high * multiplier)))

    def inner(self, total: Vector) -> Vector:
        """Return which totals are strictly inside their interval, as zeros and ones."""
        return ((total > self.low) & (total < self.high)).astype(np.float64)

    def gap(self, multiplier: Vector, total: Vector) -> float:
        """Return what totals add to a duality gap.

        A multiplier without need costs something, and so do totals that are not allowed.
        """
        allowed = self.project(total)
        off = total - allowed
        excess = self.support(multiplier) - float(multiplier @ allowed)
        return excess + float(np.sum(np.abs(multiplier * off) + 0.5 * off**2))


class _AnsweredError(Exception):
    """Raised to end the search when the question is answered."""


def reachable(weights: Vector, shape: LabelSet, totals: Totals, missed: float) -> bool | None:
    """Return whether some labels of several classes have totals Σ ω q in their intervals.

    Of all such labels, those nearest to the middle of their sets are sought through the dual: the
    allowed labels nearest to middle - λ, with a multiplier λ for each class. Either these meet the
    totals for some λ, or λ becomes ever larger, and shows that no labels do: whatever λ is, totals
    are missed by -(Σ ω max_q -q·λ + max_M M·λ) / max |λ_k| or more, all together.

    Parameters
    ----------
    weights : array of shape (n_rows,)
        ω, positive.
    shape : LabelSet
    totals : Totals
    missed : float
        Totals count as met if they are missed, all together, by this share of the sum of weights.

    Returns
    -------
    bool or None
        None if it cannot be told.
    """
    n_classes = len(totals.low)
    whole = float(weights.sum())
    low, high = totals.low / whole, totals.high / whole
    omega = weights / whole
    middle = shape.project(np.full((n_classes, len(weights)), 0.5))
    answer: bool | None = None

    def negative_dual(both: Vector) -> tuple[float, Vector]:
        nonlocal answer
        above, below = both.reshape(2, n_classes)
        multiplier = above - below
        q = shape.project(middle - multiplier[:, None])
        total = q @ omega
        if np.abs(total - np.clip(total, low, high)).sum() <= missed:
            answer = True
            raise _AnsweredError
        terms = float(above @ high - below @ low)
        bound = terms + float(omega @ shape.support(np.broadcast_to(multiplier[:, None], q.shape)))
        if bound < -missed * float(np.abs(multiplier).max()):
            answer = False
            raise _AnsweredError
        square = float(omega @ ((q - middle) ** 2).sum(axis=0))
        value = 0.5 * square + float(multiplier @ total) - terms
        return -value, np.concatenate([high - total, total - low])

    start = np.zeros(2 * n_classes)
    options = {"maxiter": MOST_STEPS, "ftol": 0.0, "gtol": 0.0}
    with suppress(_AnsweredError):
        optimize.minimize(
            negative_dual,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * len(start),
            options=options,
        )
    return answer


@dataclass(frozen=True)
class Balance:
    """The part of the augmented Lagrangian that belongs to the multiplier μ of the totals.

    Attributes
    ----------
    totals : Totals
    centre, multiplier : arrays of shape (n_classes,)
        Where the proximal terms of the totals M and of μ are centred.
    """

    totals: Totals
    centre: Vector
    multiplier: Vector

    @classmethod
    def start(cls, totals: Totals, z: Matrix, primal: Matrix) -> Balance:
        """Return the first one, for a point and totals that are the last coordinates of these."""
        return cls(totals, totals.project(primal[:, -1]), z[:, -1].copy())

    def next(self, z: Matrix, sigma: float) -> Balance:
        """Return the one that is centred at a point."""
        return Balance(self.totals, self._total(z[:, -1], sigma), z[:, -1].copy())

    @staticmethod
    def _proximal(sigma: float) -> float:
        """Return the curvature of the proximal term: small, but not against σ.

        A shift of all classes changes nothing else, and must not make the Newton matrix singular.
        """
        return 1.0 / sigma + SINGULAR * sigma

    def _total(self, mu: Vector, sigma: float) -> Vector:
        return self.totals.project(self.centre + sigma * mu)

    def gradient(self, z: Matrix, primal: Matrix, sigma: float) -> Vector:
        mu = z[:, -1]
        near = self._proximal(sigma) * (mu - self.multiplier)
        return near + self._total(mu, sigma) - primal[:, -1]

    def curvature(self, z: Matrix, sigma: float) -> Vector:
        return self._proximal(sigma) + sigma * self.totals.inner(self._total(z[:, -1], sigma))

    def add_to(self, slope: Slope, z: Matrix, step: Matrix, sigma: float) -> None:
        """Replace the quadratic term of μ in the slope by what holds here."""
        mu, along = z[:, -1], step[:, -1]
        slope.quadratic += float(along @ along) * (self._proximal(sigma) - 1.0)
        total = self._total(mu, sigma)
        slope.more = lambda length: float(along @ (self._total(mu + length * along, sigma) - total))
