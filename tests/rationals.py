"""Rational numbers in arrays, and labels within bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np


class Rationals:
    """Arrays of integers over one denominator: exact as Fractions are, and much faster."""

    def __init__(self, numerators, denominator=1):
        self.n, self.d = np.asarray(numerators, dtype=object), denominator

    @classmethod
    def of(cls, values):
        """Return exactly these floating point numbers, or this Fraction or integer."""
        if isinstance(values, Rationals):
            return values
        if isinstance(values, int | Fraction):
            return cls(values.numerator, values.denominator)
        array = np.asarray(values, dtype=float)
        ratios = [value.as_integer_ratio() for value in array.ravel().tolist()]
        denominator = max((d for _, d in ratios), default=1)  # they are powers of two
        numerators = np.array([n * (denominator // d) for n, d in ratios], dtype=object)
        return cls(numerators.reshape(array.shape), denominator)

    def __add__(self, other):
        (a, b), denominator = aligned(self, other)
        return Rationals(a + b, denominator)

    def __sub__(self, other):
        return self + -Rationals.of(other)

    def __neg__(self):
        return Rationals(-self.n, self.d)

    def __mul__(self, other):
        other = Rationals.of(other)
        return Rationals(self.n * other.n, self.d * other.d)

    def __matmul__(self, other):
        return Rationals(self.n @ other.n, self.d * other.d)

    def __getitem__(self, key):
        return Rationals(self.n[key], self.d)

    def sum(self, axis=None):
        return Rationals(self.n.sum(axis=axis), self.d)

    def fraction(self):
        """Return a single number as a Fraction."""
        return Fraction(self.n.item(), self.d)

    def floats(self):
        return np.asarray(self.n / self.d, dtype=float)


def aligned(*numbers):
    """Return arrays of integers, and the denominator that they have in common."""
    numbers = [Rationals.of(number) for number in numbers]
    denominator = math.lcm(*(number.d for number in numbers))
    return [number.n * (denominator // number.d) for number in numbers], denominator


# Labels


def label_ranges(y, n_classes, bounds=None):
    """Lower and upper bound of the share of every class in every row.

    Parameters
    ----------
    y : array of int
        Codes of the classes, -1 where unlabeled.
    n_classes : int
    bounds : array of shape (n, 2) or (n, n_classes, 2), optional
        As `label_bounds`; NaN where nothing is known.

    Returns
    -------
    lower, upper : Rationals of shape (n, n_classes)
    """
    y, n = np.asarray(y), len(y)
    given = np.full((n, n_classes, 2), np.nan)
    if bounds is not None:
        bounds = np.asarray(bounds, dtype=float)
        given[:, -1 if bounds.ndim == 2 else slice(None)] = bounds
    given = np.where(np.isnan(given), [0.0, 1.0], given)
    given[y >= 0] = np.eye(n_classes)[y[y >= 0]][:, :, None]
    found = Rationals.of(given)
    lower, upper = found[:, :, 0], found[:, :, 1]
    if n_classes == 2:  # the second share says it all
        lower.n[:, 0], upper.n[:, 0] = found.d - upper.n[:, 1], found.d - lower.n[:, 1]
    return lower, upper


def fill(t, lower, upper, one=1.0):
    """Return the labels within bounds that minimise label·t, shares adding up to one.

    All are arrays with a row for each label, of floating point numbers or of integers over `one`.
    """
    order = np.argsort(t, axis=1, kind="stable")
    widths = np.take_along_axis(upper - lower, order, axis=1)
    steps = np.empty_like(widths)
    np.put_along_axis(steps, order, spent((one - lower.sum(axis=1))[:, None], widths), axis=1)
    return lower + steps


def spent(room, widths):
    """Return how much of each width, one after the other, there is room for."""
    before = np.cumsum(widths, axis=-1) - widths
    return np.minimum(np.maximum(room - before, 0), widths)


def nearest_shares(x, lower, upper):
    """Return the labels within bounds that are nearest to x, shares adding up to one.

    What is subtracted from all shares of a row solves a piecewise linear equation, between two of
    its kinks.
    """
    (x, lower, upper), one = aligned(x, lower, upper)
    kinks = np.sort(np.hstack([x - upper, x - lower]), axis=1)
    totals = np.clip(x[:, None] - kinks[:, :, None], lower[:, None], upper[:, None]).sum(axis=2)
    last = (totals >= one).sum(axis=1)[:, None] - 1
    left, above = (np.take_along_axis(a, last, axis=1) for a in (kinks, totals))
    # As many shares move between this kink and the next; none if the total is right already.
    moving = np.maximum(((x - upper <= left) & (left < x - lower)).sum(axis=1), 1).tolist()
    common = math.lcm(*moving)
    parts = np.array([common // m for m in moving], dtype=object)[:, None]
    less = common * left + parts * (above - one)
    return Rationals(np.clip(common * x - less, common * lower, common * upper), common * one)
