"""What the dual solver returns."""

from __future__ import annotations

from dataclasses import dataclass

from neverworse._typing import Vector
from neverworse.projection.solver.imputed import Imputed
from neverworse.projection.solver.newton import is_optimal


@dataclass(frozen=True)
class Solution:
    """A dual point with the soft labels that prove how good it is, wherever these are.

    Attributes
    ----------
    z, gap, value
        See `DualSolution`.
    imputed : Imputed
        Soft labels of all rows.
    """

    z: Vector
    imputed: Imputed
    gap: float
    value: float

    def is_optimal(self, tol: float, floor: float) -> bool:
        """See `DualSolution`."""
        return is_optimal(self.gap, self.value, tol, floor)
