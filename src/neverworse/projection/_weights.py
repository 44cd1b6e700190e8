"""The weights of a linear function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse._typing import Vector


@dataclass(frozen=True)
class Weights:
    """A linear function of the features: coef·x + intercept."""

    coef: Vector
    intercept: float = 0.0

    def __add__(self, other: Weights) -> Weights:
        return Weights(self.coef + other.coef, self.intercept + other.intercept)

    def __sub__(self, other: Weights) -> Weights:
        return Weights(self.coef - other.coef, self.intercept - other.intercept)

    def scaled(self, factor: float) -> Weights:
        """Return `factor` times this function."""
        return Weights(factor * self.coef, factor * self.intercept)

    def snapped(self) -> Weights:
        """Return the nearest function whose intercept less 0.5 is a floating point number.

        Classifiers store that number as their ``intercept_``; adding 0.5 again is then exact.
        """
        return Weights(self.coef, (self.intercept - 0.5) + 0.5)

    @property
    def is_zero(self) -> bool:
        """Whether the function is zero everywhere."""
        return not (np.any(self.coef) or self.intercept)
