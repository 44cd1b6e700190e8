"""Totals of the soft labels over all rows that are known: what a class prior says."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from neverworse._typing import Scalars, Vector
from neverworse.projection.label_sets import Simplex


@dataclass(frozen=True)
class Totals:
    """An interval for Σ s_j q_j over the unlabeled rows (one for each class, if several).

    In the dual this is one more coordinate μ per class: it is added to every score, has no
    quadratic term, and costs the largest M·μ over totals M in the interval.

    Attributes
    ----------
    low, high : float, or array of shape (n_classes,)
    """

    low: Scalars
    high: Scalars

    def scaled(self, factor: float) -> Totals:
        """Return the interval of `factor` times the total."""
        return Totals(factor * self.low, factor * self.high)

    def project(self, total: Scalars) -> Scalars:
        """Return the total in the interval that is nearest to the given one."""
        return np.clip(total, self.low, self.high)

    def support(self, multiplier: Scalars) -> float:
        """Return the largest M·μ."""
        return float(np.sum(np.maximum(self.low * multiplier, self.high * multiplier)))

    def inner(self, total: Scalars) -> Vector:
        """Return which totals are strictly inside their interval, as zeros and ones."""
        return np.asarray((total > self.low) & (total < self.high), dtype=np.float64)


MOST_STEPS = 500


class _AnsweredError(Exception):
    """Raised to end the search when the question is answered."""


def reachable(weights: Vector, shape: Simplex, totals: Totals, missed: float) -> bool | None:
    """Return whether some labels of several classes have totals Σ ω q in their intervals.

    Of all such labels, those nearest to the middle of their sets are sought through the dual: the
    allowed labels nearest to middle - λ, with a multiplier λ for each class. Either these meet the
    totals for some λ, or λ becomes ever larger, and shows that no labels do: whatever λ is, totals
    are missed by -(Σ ω max_q -q·λ + max_M M·λ) / max |λ_k| or more, all together.

    Parameters
    ----------
    weights : array of shape (n_rows,)
        ω, positive.
    shape : Simplex
    totals : Totals
    missed : float
        Totals count as met if they are missed, all together, by this share of the sum of weights.

    Returns
    -------
    bool or None
        None if it cannot be told.
    """
    n_classes = len(np.atleast_1d(totals.low))
    whole = float(weights.sum())
    low, high = np.asarray(totals.low) / whole, np.asarray(totals.high) / whole
    omega = weights / whole
    middle = shape.middle((n_classes, len(weights)))
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
