"""Distances between hypotheses, and what they say about which of them to trust."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neverworse._typing import AnyArray, Mask, Matrix, Vector

# Inequalities and equalities hold up to rounding errors of this relative size.
ROUNDING = 1e-12


def root_mean_square(f: AnyArray, g: AnyArray, weights: Vector) -> float:
    """Return the weighted root mean squared difference of two predictions.

    For probabilities, squares are summed over the classes and halved: for two classes, this is the
    difference of the probabilities of one of them.
    """
    squares = (f - g) ** 2
    if squares.ndim > 1:
        squares = 0.5 * squares.sum(axis=1)
    return float(np.sqrt(weights @ squares / weights.sum()))


def disagreement(f: AnyArray, g: AnyArray, weights: Vector) -> float:
    """Return the weighted share of rows on which two predictions are different classes."""
    return float(weights @ (f != g) / weights.sum())


@dataclass(frozen=True)
class Distances:
    """Distances of hypotheses, ordered from simple to complex.

    Attributes
    ----------
    target : array of shape (n_hypotheses,)
        To the targets, on the labeled rows.
    labeled : array of shape (n_hypotheses, n_hypotheses)
        From each other, on the labeled rows.
    unlabeled : array of shape (n_hypotheses, n_hypotheses)
        From each other, on the unlabeled rows.
    """

    target: Vector
    labeled: Matrix
    unlabeled: Matrix

    @cached_property
    def consistent(self) -> Mask:
        """Which hypotheses satisfy the triangle inequality with every simpler one."""
        sums = self.target[:, None] + self.target
        violated: Mask = np.tril(self.unlabeled > (1.0 + ROUNDING) * sums, -1)
        consistent: Mask = ~np.any(violated, axis=1)
        return consistent

    @cached_property
    def adjusted(self) -> Vector:
        """Distances to the targets, times the largest ratio of distances to a simpler hypothesis.

        Where the labeled rows do not tell two hypotheses apart and the unlabeled rows do, nothing
        is known about the more complex one: infinity.
        """
        same = ROUNDING * np.maximum.outer(self.target, self.target)
        seen = self.labeled > same
        ratios = np.ones_like(self.labeled)
        np.divide(self.unlabeled, self.labeled, out=ratios, where=seen)
        ratios[~seen & (self.unlabeled > same)] = np.inf
        ratios = np.tril(ratios, -1)
        ratios[0, 0] = 1.0  # the simplest hypothesis is taken at its word
        factors = ratios.max(axis=1)
        adjusted = np.full_like(self.target, np.inf)
        np.multiply(self.target, factors, out=adjusted, where=np.isfinite(factors))
        return adjusted

    def choose(self, method: str) -> int:
        """Return the position of the hypothesis that a method prefers."""
        if method == "tri":
            return int(np.flatnonzero(self.consistent)[-1])
        return int(np.argmin(self.adjusted))
