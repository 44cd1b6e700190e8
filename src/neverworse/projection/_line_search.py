"""How far to go along a Newton step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from neverworse._typing import Vector
from neverworse.projection._shapes import Shape

FEW = 4  # it pays to look at one in so many rows only


class Slope:
    """The derivative of the augmented Lagrangian along a step; it increases.

    Parameters
    ----------
    shape : Shape
    start, change : arrays
        The soft labels at length a are the allowed ones nearest to start - a · change.
    weights : array
        What the soft labels are multiplied with in the derivative.
    soft : array
        The soft labels at length 0.
    """

    def __init__(
        self, shape: Shape, start: Vector, change: Vector, weights: Vector, soft: Vector
    ) -> None:
        self._shape = shape
        self._start = start
        self._change = change
        self._weights = weights
        self._soft = soft
        self._between: Slope | None = None
        self.constant = 0.0
        self.quadratic = 0.0
        self.more: Callable[[float], float] | None = None

    def add_quadratic(self, z: Vector, step: Vector, linear: Vector) -> None:
        """Add the derivative of ½‖z‖² + l·z."""
        self.constant += float(np.vdot(z + linear, step))
        self.quadratic += float(np.vdot(step, step))

    def __call__(self, length: float) -> float:
        """Return the derivative at some length."""
        value = self.constant + length * self.quadratic - self._labels_part(length)
        return value if self.more is None else value + self.more(length)

    def _labels_part(self, length: float) -> float:
        """Return Σ w·q.

        All points with the same nearest label form a convex set. So labels that are the same at
        both ends of the step are the same all along, and only the others are looked at.
        """
        if length == 0.0:
            return float(np.vdot(self._weights, self._soft))
        if self._between is not None and length < 1.0:
            return self._fixed + self._between._labels_part(length)
        soft = self._shape.nearest(self._start - length * self._change)
        if length == 1.0:
            self._look_between(soft)
        return float(np.vdot(self._weights, soft))

    def _look_between(self, soft_at_one: Vector) -> None:
        differs = soft_at_one != self._soft
        moving = np.flatnonzero(differs if differs.ndim == 1 else differs.any(axis=0))
        if FEW * len(moving) < len(self._start.T):
            parts = (a[..., moving] for a in (self._start, self._change, self._weights, self._soft))
            self._between = Slope(self._shape.at(moving), *parts)
            everything = float(np.vdot(self._weights, self._soft))
            self._fixed = everything - self._between._labels_part(0.0)


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
