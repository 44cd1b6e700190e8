"""Where the soft labels of a row may lie: between 0 and 1, or in the simplex of several classes.

Arrays of labels have the rows last: shape (n_rows,) for one number per row, (n_classes, n_rows) for
several classes. A *shape* knows, for every row, the set of labels; scores t enter with the sign of
the dual, so that the extreme label of a row minimises q·t.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from neverworse._typing import Indices, Mask, Matrix, Vector


class LabelSet(Protocol):
    """The sets in which soft labels lie, row by row."""

    @property
    def is_uniform(self) -> bool:
        """Whether all rows have the same set."""

    def at(self, rows: Any) -> LabelSet:
        """Return the sets of some rows (a slice, indices or a mask)."""

    def project(self, x: Vector) -> Vector:
        """Return the point of each set that is nearest to x."""

    def minimizer(self, t: Vector) -> Vector:
        """Return the corner of each set with the smallest q·t."""

    def support(self, t: Vector) -> Vector:
        """Return the largest -q·t for each row."""

    def margin(self, t: Vector) -> Vector:
        """Return by how much scores may change before another corner becomes the extreme one."""

    def middle(self, size: tuple[int, ...]) -> Vector:
        """Return a label in the middle of each set, as an array of the given shape."""

    def is_free(self, q: Vector) -> Mask:
        """Return which rows have a label that may move a little in some direction and back."""


@dataclass(frozen=True)
class Box:
    """One number between 0 and 1 for each row."""

    is_uniform = True

    def at(self, rows: Any) -> Box:  # noqa: ARG002
        """See `LabelSet`."""
        return self

    def project(self, x: Vector) -> Vector:
        """See `LabelSet`."""
        return np.clip(x, 0.0, 1.0)

    def minimizer(self, t: Vector) -> Vector:
        """See `LabelSet`."""
        return (t < 0.0).astype(np.float64)

    def support(self, t: Vector) -> Vector:
        """See `LabelSet`."""
        return np.maximum(0.0, -t)

    def margin(self, t: Vector) -> Vector:
        """See `LabelSet`."""
        return np.abs(t)

    def middle(self, size: tuple[int, ...]) -> Vector:
        """See `LabelSet`."""
        return np.full(size, 0.5)

    def is_free(self, q: Vector) -> Mask:
        """See `LabelSet`."""
        return (q > 0.0) & (q < 1.0)


@dataclass(frozen=True)
class Simplex:
    """Shares of several classes that add up to one, each at most its cap.

    Attributes
    ----------
    caps : array of shape (n_classes, n_rows), or None
        Largest share of each class, between 0 and 1; ones if None. They add up to at least one.
    """

    caps: Matrix | None = None

    @property
    def is_uniform(self) -> bool:
        """See `LabelSet`."""
        return self.caps is None

    def at(self, rows: Any) -> Simplex:
        """See `LabelSet`."""
        return self if self.caps is None else Simplex(self.caps[:, rows])

    def project(self, x: Vector) -> Vector:
        """See `LabelSet`; most rows are far from all but one corner, and take no sorting."""
        if self.caps is not None:
            return _nearest_capped(x, self.caps)
        x = x - x.max(axis=0)  # top - 1 may be top
        q, contested = _indicator(x > -1.0)
        if contested.size:
            q[:, contested] = _nearest_in_simplex(x[:, contested])
        return q

    def minimizer(self, t: Vector) -> Vector:
        """See `LabelSet`."""
        if self.caps is None:
            q, tied = _indicator(t == t.min(axis=0))
            if tied.size:
                q[:, tied] = np.eye(len(t))[:, t[:, tied].argmin(axis=0)]
            return q
        return _fill(t, self.caps)[0]

    def support(self, t: Vector) -> Vector:
        """See `LabelSet`."""
        if self.caps is None:
            smallest: Vector = -t.min(axis=0)
            return smallest
        return -np.einsum("ki,ki->i", self.minimizer(t), t)

    def margin(self, t: Vector) -> Vector:
        """See `LabelSet`."""
        if self.caps is None:
            two = np.partition(t, 1, axis=0)[:2]
            return two[1] - two[0]
        return _margin_capped(t, self.minimizer(t), self.caps)

    def middle(self, size: tuple[int, ...]) -> Vector:
        """See `LabelSet`."""
        return self.project(np.zeros(size))

    def is_free(self, q: Vector) -> Mask:
        """See `LabelSet`."""
        return np.count_nonzero(self.inner(q), axis=0) > 1

    def inner(self, q: Vector) -> Mask:
        """Return which shares are neither zero nor at their cap."""
        return (q > 0.0) & (q < (1.0 if self.caps is None else self.caps))


def _indicator(chosen: Mask) -> tuple[Matrix, Indices]:
    """Return the choice as zeros and ones, and the columns with more than one chosen class."""
    return chosen.astype(np.float64), np.flatnonzero(chosen.sum(axis=0, dtype=np.int16) > 1)


def _fill(t: Matrix, caps: Matrix) -> tuple[Matrix, Indices]:
    """Fill classes up to their caps in the order of t; return the shares and the last class.

    A class is either full, with its cap to the last digit, or takes what is left.
    """
    order = t.argsort(axis=0, kind="stable")
    caps = np.take_along_axis(caps, order, axis=0)
    before = np.zeros_like(caps)
    np.cumsum(caps[:-1], axis=0, out=before[1:])
    filled = np.clip(1.0 - before, 0.0, caps)
    last = len(t) - 1 - (filled[::-1] > 0.0).argmax(axis=0)
    q = np.empty_like(caps)
    np.put_along_axis(q, order, filled, axis=0)
    return q, order[last, np.arange(t.shape[1])]


def _nearest_in_simplex(x: Matrix) -> Matrix:
    """Subtract from each column what makes its positive part add up to one."""
    down = np.sort(x, axis=0)[::-1]
    ranks = np.arange(1, len(x) + 1)[:, None]
    excess = (np.cumsum(down, axis=0) - 1.0) / ranks
    last = np.count_nonzero(down > excess, axis=0) - 1
    return np.maximum(x - excess[last, np.arange(x.shape[1])], 0.0)


def _nearest_capped(x: Matrix, caps: Matrix) -> Matrix:
    """Subtract from each column what makes it, clipped to its caps, add up to one.

    Let class m be the last that gets a share when classes are filled in the order of x. Classes
    before it alone do not add up to one, so what is subtracted is at most x_m; with it they do,
    each full if x_m - 1 is subtracted. So all that counts is how x differs from x_m, by up to one:
    no digits are lost however large x is.
    """
    q, last = _fill(-x, caps)
    columns = np.arange(x.shape[1])
    x = np.clip(x - x[last, columns], -1.0, 1.0)
    # Filled classes are the nearest point if no class comes near enough to share with the last.
    at = -q[last, columns]
    settled = np.where(q > 0.0, x - at >= q, (x <= at) | (caps == 0.0))
    settled[last, columns] = True
    contested = np.flatnonzero(~settled.all(axis=0))
    if contested.size:
        q[:, contested] = _share_capped(x[:, contested], caps[:, contested])
    return q


def _share_capped(x: Matrix, caps: Matrix) -> Matrix:
    """Subtract what makes each column add up to one.

    The sum is a piecewise linear, decreasing function of what is subtracted. Its kinks are sorted,
    and the piece in which it is one is found by bisection, for all columns at once.
    """
    n_classes, n = x.shape
    kinks = np.sort(np.concatenate([x, x - caps]), axis=0)
    columns = np.arange(n)

    def total(at: Vector) -> Vector:
        summed: Vector = np.clip(x - at, 0.0, caps).sum(axis=0)
        return summed

    low, high = np.zeros(n, np.intp), np.full(n, 2 * n_classes - 1)  # sum >= 1 and sum <= 1 there
    while np.any(high - low > 1):
        middle = (low + high) // 2
        above = total(kinks[middle, columns]) >= 1.0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    left, right = kinks[low, columns], kinks[high, columns]
    at_left, at_right = total(left), total(right)
    fall = at_left - at_right
    share = np.divide(at_left - 1.0, fall, out=np.zeros(n), where=fall > 0.0)
    return np.clip(x - (left + np.clip(share, 0.0, 1.0) * (right - left)), 0.0, caps)


def _margin_capped(t: Matrix, q: Matrix, caps: Matrix) -> Vector:
    """Return the smallest t_k - t_l over pairs where some share can move from class l to k."""
    rising = np.where(q < caps, t, np.inf)
    falling = np.where(q > 0.0, t, -np.inf)
    first_up, first_down = rising.argmin(axis=0), falling.argmax(axis=0)
    columns = np.arange(t.shape[1])
    up, down = rising[first_up, columns], falling[first_down, columns]
    same = first_up == first_down  # no share moves from a class to itself
    rising[first_up, columns] = np.inf
    falling[first_down, columns] = -np.inf
    other = np.minimum(rising.min(axis=0) - down, up - falling.max(axis=0))
    return np.maximum(np.where(same, other, up - down), 0.0)


@dataclass(frozen=True)
class Curvature:
    """σ s_j P_j of every row, where P_j is the derivative of its nearest label.

    The label of a row moves within the classes in which its share is inside its range: what moves
    into one class leaves the others.

    Attributes
    ----------
    inner : boolean array of shape (n_rows,) or (n_classes, n_rows)
        Which labels are inside.
    weights : array of shape (n_rows,)
        σ s.
    shift : array or None
        What the scores contain that is none of the other terms' business, see `WeightSpace`.
    """

    inner: Mask
    weights: Vector
    shift: Vector | None = None

    def at(self, rows: Any) -> Curvature:
        """Return the same for some rows."""
        return replace(self, inner=self.inner[..., rows], weights=self.weights[rows])

    def __call__(self, t: Vector) -> Vector:
        """Return σ s_j P_j t_j for every row."""
        moved: Vector = np.where(self.inner, t, 0.0)
        if moved.ndim > 1:
            count = np.maximum(np.count_nonzero(self.inner, axis=0), 1)
            moved = np.where(self.inner, moved - moved.sum(axis=0) / count, 0.0)
        return self.weights * moved


def curvature_of(shape: LabelSet, soft: Vector, weights: Vector, sigma: float) -> Curvature:
    """Return the curvature at the nearest labels `soft`."""
    inner = shape.inner(soft) if isinstance(shape, Simplex) else shape.is_free(soft)
    return Curvature(inner & (weights > 0.0), sigma * weights)


def weighted_scores(t: Vector, weights: Vector) -> Vector:
    """Return s_j t_j; rows without a weight may score anything, even infinity."""
    return np.multiply(weights, t, out=np.zeros_like(t), where=weights > 0.0)
