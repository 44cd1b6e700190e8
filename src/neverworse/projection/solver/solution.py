"""What the dual solver returns."""

from __future__ import annotations

from dataclasses import dataclass

from neverworse._typing import Vector
from neverworse.projection.solver.newton import is_optimal


@dataclass(frozen=True)
class Solution:
    """A dual point with the soft labels that prove how good it is, wherever these are.

    Attributes
    ----------
    z, gap, value
        See `DualSolution`.
    q : array of shape (n_unlabeled,) or (n_classes, n_unlabeled)
        Soft labels of the unlabeled rows.
    """

    z: Vector
    q: Vector
    gap: float
    value: float

    def is_optimal(self, tol: float, floor: float) -> bool:
        """See `DualSolution`."""
        return is_optimal(self.gap, self.value, tol, floor)
