"""How far to go along a Newton step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from neverworse._typing import Indices, Matrix, Vector
from neverworse.projection.label_sets import LabelSet
from neverworse.rows._threads import map_in_threads

FEW = 4  # it pays to look at one in so many rows only
BLOCK = 2**15  # numbers in arrays of a block of rows: a handful of them stay in cache


def blocks(x: Matrix) -> list[slice]:
    """Return slices of the rows (the last axis) of about `BLOCK` numbers each, at least one."""
    n = x.shape[1]
    step = max(1, BLOCK * n // max(x.size, 1))
    return [slice(lo, lo + step) for lo in range(0, max(n, 1), step)]


class Slope:
    """The derivative of the augmented Lagrangian along a step; it increases.

    The soft labels at length a are the allowed ones nearest to q - σ (t + a · change).

    Parameters
    ----------
    shape : LabelSet
    q, t, change : arrays
    sigma : float
        The number σ.
    weights : array of shape (n_rows,)
        In the derivative, soft labels are multiplied with weights · change.
    soft : array
        The soft labels at length 0.
    """

    def __init__(
        self,
        shape: LabelSet,
        q: Matrix,
        t: Matrix,
        change: Matrix,
        sigma: float,
        weights: Vector,
        soft: Matrix,
    ) -> None:
        self._shape = shape
        self._q = q
        self._t = t
        self._change = change
        self._sigma = sigma
        self._weights = weights
        self._soft = soft
        self._between: tuple[Slope, Indices] | None = None
        self._found: tuple[float, Indices, Matrix] | None = None
        self.at_zero = 0.0
        self.quadratic = 0.0
        self.more: Callable[[float], float] | None = None

    def __call__(self, length: float) -> float:
        """Return the derivative at some length."""
        value = self.at_zero + length * self.quadratic
        if length != 0.0:
            value -= self._labels_part(length)
        return value if self.more is None else value + self.more(length)

    def labels(self, length: float) -> tuple[Indices, Matrix]:
        """Return the rows whose labels at some length differ from those at 0, and these labels."""
        if self._found is None or self._found[0] != length:
            self._labels_part(length)
        assert self._found is not None
        return self._found[1:]

    def _labels_part(self, length: float) -> float:
        """Return by how much Σ w·q differs from that at length 0.

        All points with the same nearest label form a convex set. So labels that are the same at
        both ends of the step are the same all along, and only the others are looked at.
        """
        if self._between is not None and length < 1.0:
            between, chosen = self._between
            total, rows, labels = between._evaluate(length)
            rows = chosen[rows]
        else:
            total, rows, labels = self._evaluate(length)
        if length == 1.0 and FEW * len(rows) < len(self._weights):
            between = Slope(
                self._shape.at(rows),
                self._q[:, rows],
                self._t[:, rows],
                self._change[:, rows],
                self._sigma,
                self._weights[rows],
                self._soft[:, rows],
            )
            self._between = between, rows
        self._found = length, rows, labels
        return total

    def _evaluate(self, length: float) -> tuple[float, Indices, Matrix]:
        """Return by how much Σ w·q differs from that at 0; the rows that do, and their labels."""

        def part(block: slice) -> tuple[float, Indices, Matrix]:
            change, soft = self._change[:, block], self._soft[:, block]
            at = length * change
            at += self._t[:, block]
            at *= -self._sigma
            at += self._q[:, block]
            q = self._shape.at(block).project(at)
            rows = rows_that_differ(q, soft)
            labels = q[:, rows]
            products = ((labels - soft[:, rows]) * change[:, rows]).sum(axis=0)
            return float(self._weights[block][rows] @ products), rows + block.start, labels

        parts = map_in_threads(part, blocks(self._change))
        totals, rows, labels = zip(*parts, strict=True)
        return sum(totals), np.concatenate(rows), np.concatenate(labels, axis=1)


def rows_that_differ(a: Matrix, b: Matrix) -> Indices:
    """Return the rows in which labels are not the same."""
    return np.flatnonzero((a != b).any(axis=0))


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
