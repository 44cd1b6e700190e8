"""Totals of the soft labels over all rows that are known: what a class prior says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse._typing import Scalars, Vector


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

    def nearest(self, total: Scalars) -> Scalars:
        """Return the total in the interval that is nearest to the given one."""
        return np.clip(total, self.low, self.high)

    def support(self, multiplier: Scalars) -> float:
        """Return the largest M·μ."""
        return float(np.sum(np.maximum(self.low * multiplier, self.high * multiplier)))

    def inner(self, total: Scalars) -> Vector:
        """Return which totals are strictly inside their interval, as zeros and ones."""
        return np.asarray((total > self.low) & (total < self.high), dtype=np.float64)
