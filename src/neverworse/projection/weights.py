"""The weights of a linear function, or of one for each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse._typing import Scalars, Vector


@dataclass(frozen=True)
class Weights:
    """A linear function of the features: coef·x + intercept.

    For several classes `coef` has one row and `intercept` one number for each of them.
    """

    coef: Vector
    intercept: Scalars = 0.0

    def __add__(self, other: Weights) -> Weights:
        return Weights(self.coef + other.coef, self.intercept + other.intercept)

    def __sub__(self, other: Weights) -> Weights:
        return Weights(self.coef - other.coef, self.intercept - other.intercept)

    def scaled(self, factor: float) -> Weights:
        """Return `factor` times this function."""
        return Weights(factor * self.coef, factor * self.intercept)

    def snapped(self, stored_less: float) -> Weights:
        """Return the nearest function whose intercept less that number is a floating point number.

        Classifiers store the intercept less 0.5 as their ``intercept_``; adding 0.5 again is then
        exact.
        """
        return Weights(self.coef, (self.intercept - stored_less) + stored_less)

    @property
    def is_zero(self) -> bool:
        """Whether the function is zero everywhere."""
        return not (np.any(self.coef) or np.any(self.intercept))
