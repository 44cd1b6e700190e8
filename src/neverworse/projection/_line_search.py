"""How far to go along a Newton step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from neverworse._typing import Vector
from neverworse.projection._shapes import Shape


class Slope:
    """The derivative of the augmented Lagrangian along a step; it increases.

    Parameters
    ----------
    shape : Shape
    start, change : arrays
        The soft labels at length a are the allowed ones nearest to start - a · change.
    weights : array
        What the soft labels are multiplied with in the derivative.
    """

    def __init__(self, shape: Shape, start: Vector, change: Vector, weights: Vector) -> None:
        self._shape = shape
        self._start = start
        self._change = change
        self._weights = weights
        self.constant = 0.0
        self.quadratic = 0.0
        self.more: Callable[[float], float] | None = None

    def add_quadratic(self, z: Vector, step: Vector, linear: Vector) -> None:
        """Add the derivative of ½‖z‖² + l·z."""
        self.constant += float(np.vdot(z + linear, step))
        self.quadratic += float(np.vdot(step, step))

    def __call__(self, length: float) -> float:
        soft = self._shape.nearest(self._start - length * self._change)
        value = self.constant + length * self.quadratic - float(np.vdot(self._weights, soft))
        return value if self.more is None else value + self.more(length)


def line_search(slope: Slope) -> float:
    """Return a step length at which most of the slope is gone (0 if there is none to begin with).

    Newton's length is kept when it does. Otherwise the zero of the slope is bracketed and found by
    the Illinois variant of the secant rule.
    """
    at_zero, at_one = slope(0.0), slope(1.0)
    if at_zero >= 0.0:
        return 0.0
    if abs(at_one) <= 0.3 * abs(at_zero):
        return 1.0
    low, f_low, high, f_high = 0.0, at_zero, 1.0, at_one
    while f_high < 0.0 and high < 1e6:
        low, f_low, high = high, f_high, 2.0 * high
        f_high = slope(high)
    side = 0
    for _ in range(30):
        if f_high <= f_low:
            break
        length = low - f_low * (high - low) / (f_high - f_low)
        value = slope(length)
        if abs(value) <= 0.1 * abs(at_zero):
            return length
        if value < 0.0:
            low, f_low = length, value
            f_high *= 0.5 if side < 0 else 1.0
            side = -1
        else:
            high, f_high = length, value
            f_low *= 0.5 if side > 0 else 1.0
            side = 1
    return low or high
