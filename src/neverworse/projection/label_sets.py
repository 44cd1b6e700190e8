"""Where the soft labels of a row may lie: between 0 and 1, or in the simplex of several classes.

Arrays of labels have shape (n_classes, n_rows), with n_classes = 1 for one number in [0, 1]. A
label set knows, for every row, which labels are allowed; scores t enter with the sign of the dual,
so that the best corner of a row minimises q·t.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neverworse._typing import Indices, Mask, Matrix, Vector


class LabelSet:
    """The sets in which soft labels lie, row by row: here one number between 0 and 1 for each."""

    is_uniform = True  # whether all rows have the same set
    is_coupled = False  # whether the numbers of a row add up to one: what one gains, others lose

    def at(self, rows: Any) -> LabelSet:  # noqa: ARG002
        """Return the sets of some rows (a slice, indices or a mask)."""
        return self

    def project(self, x: Matrix) -> Matrix:
        """Return the point of each set that is nearest to x."""
        return np.clip(x, 0.0, 1.0)

    def minimizer(self, t: Matrix) -> Matrix:
        """Return the corner of each set with the smallest q·t."""
        return (t < 0.0).astype(np.float64)

    def support(self, t: Matrix) -> Vector:
        """Return the largest -q·t for each row."""
        return np.clip(-t[0], 0.0, np.inf)  # much faster than `maximum`

    def margin(self, t: Matrix) -> Vector:
        """Return by how much scores may change before another corner becomes the best one."""
        return np.abs(t[0])

    def farthest(self, residual: Matrix, width: Vector) -> Vector:
        """Return an upper bound of |residual - width · q|² over each set, attained in corners."""
        return np.maximum(np.abs(residual[0]), np.abs(residual[0] - width)) ** 2

    def upper(self, q: Matrix) -> Matrix | float:  # noqa: ARG002
        """Return the largest number that each of the labels q may be."""
        return 1.0

    def inner(self, q: Matrix) -> Mask:
        """Return which numbers are strictly between their ends."""
        return (q > 0.0) & (q < self.upper(q))

    def is_free(self, q: Matrix) -> Mask:
        """Return which rows have a label that may move a little in some direction and back."""
        return self.inner(q)[0]


Box = LabelSet


@dataclass(frozen=True)
class Simplex(LabelSet):
    """Shares of several classes that add up to one, each at most its cap."""

    # (n_classes, n_rows): largest share of each class, between 0 and 1; ones if None. They add up
    # to at least one
    caps: Matrix | None = None

    is_coupled = True

    @property
    def is_uniform(self) -> bool:  # type: ignore[override]
        return self.caps is None

    def at(self, rows: Any) -> Simplex:
        return self if self.caps is None else Simplex(self.caps[:, rows])

    def project(self, x: Matrix) -> Matrix:
        if self.caps is not None:
            return _nearest_capped(x, self.caps)
        # Most rows are far from all but one corner, and take no sorting.
        x = x - x.max(axis=0)  # top - 1 may be top
        q, contested = _indicator(x > -1.0)
        if contested.size:
            # `take` keeps the rows of an array together, which indices do not.
            q[:, contested] = _nearest_in_simplex(x.take(contested, axis=1))
        return q

    def minimizer(self, t: Matrix) -> Matrix:
        if self.caps is not None:
            return _fill(t, self.caps)[0]
        q, tied = _indicator(t == t.min(axis=0))
        if tied.size:
            q[:, tied] = np.eye(len(t))[:, t[:, tied].argmin(axis=0)]
        return q

    def support(self, t: Matrix) -> Vector:
        if self.caps is not None:
            return -np.einsum("ki,ki->i", self.minimizer(t), t)
        return -t.min(axis=0)

    def margin(self, t: Matrix) -> Vector:
        if self.caps is not None:
            return _margin_capped(t, self.minimizer(t), self.caps)
        first, second = t[0], np.full(t.shape[1], np.inf)
        for other in t[1:]:
            second = np.minimum(second, np.maximum(first, other))
            first = np.minimum(first, other)
        return second - first

    def farthest(self, residual: Matrix, width: Vector) -> Vector:
        # Exact in a corner with a whole label, an upper bound in others.
        square: Vector = (residual**2).sum(axis=0)
        return square + 2.0 * width * self.support(residual) + width**2

    def upper(self, q: Matrix) -> Matrix | float:  # noqa: ARG002
        return 1.0 if self.caps is None else self.caps

    def is_free(self, q: Matrix) -> Mask:
        return self.inner(q).sum(axis=0) > 1


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
    """Subtract from each column what makes its positive part add up to one.

    The largest number of each column is zero: no class below -1 has a share. Of the others, those
    that would get less than nothing are left out until there are none (Michelot, JOTA 50, 1986).
    """
    shared, n_before = x > -1.0, -1
    while (n_shared := int(np.count_nonzero(shared))) != n_before:
        excess = np.where(shared, x, 0.0).sum(axis=0) - 1.0
        excess /= shared.sum(axis=0, dtype=np.int16)
        shared, n_before = shared & (x > excess), n_shared
    return np.maximum(x - excess, 0.0)


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
        return np.clip(x - at, 0.0, caps).sum(axis=0)

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

    The label of a row moves within the classes in which its share is inside its range. If sets are
    coupled, what moves into one class leaves the others.
    """

    inner: Mask  # (n_classes, n_rows): which labels are inside
    weights: Vector  # (n_rows,): σ s
    is_coupled: bool
    # (n_classes,): what the scores contain that is none of the other terms' business, see
    # `MatrixFreeCoordinates`
    shift: Vector | None = None

    @classmethod
    def of(cls, shape: LabelSet, soft: Matrix, weights: Vector, sigma: float) -> Curvature:
        return cls(shape.inner(soft) & (weights > 0.0), sigma * weights, shape.is_coupled)

    def at(self, rows: Any) -> Curvature:
        return replace(self, inner=self.inner[:, rows], weights=self.weights[rows])

    def __call__(self, t: Matrix) -> Matrix:
        """Return σ s_j P_j t_j for every row."""
        moved: Matrix = np.where(self.inner, t, 0.0)
        if self.is_coupled:
            count = np.maximum(self.inner.sum(axis=0), 1)
            moved = np.where(self.inner, moved - moved.sum(axis=0) / count, 0.0)
        return self.weights * moved


def weighted_scores(t: Matrix, weights: Vector) -> Matrix:
    """Return s_j t_j; rows without a weight may score anything, even infinity."""
    return np.multiply(weights, t, out=np.zeros_like(t), where=weights > 0.0)


def sparsify_labels(rows: Matrix, weights: Vector, shape: LabelSet, q: Matrix) -> Matrix:
    """Return soft labels with the same Σ s_j q_j k_j, of which few are shared by two classes.

    Where two classes cannot be improved against each other, they tie in all rows. Then many labels
    may share them in many ways, with the same weights: Σ s_j q_j k_j is all that counts. Of r + 1
    rows, some combination leaves it as it is; moving along it until a label is whole leaves one row
    less that is shared, and so on, down to r rows for each pair of classes. The rows k have the
    shape (n, r).
    """
    inner = shape.inner(q) & (weights > 0.0)
    shared = np.flatnonzero(np.count_nonzero(inner, axis=0) == 2)
    q = q.copy()
    first = inner[:, shared].argmax(axis=0)
    second = len(q) - 1 - inner[::-1, shared].argmax(axis=0)
    pair = len(q) * first + second
    for code in np.unique(pair):
        these = shared[pair == code]
        if len(these) > rows.shape[1]:
            weighted = rows[these] * weights[these, None]
            _share_two(weighted, shape, q, these, *divmod(int(code), len(q)))
    return q


def _share_two(weighted: Matrix, shape: LabelSet, q: Matrix, rows: Indices, a: int, b: int) -> None:
    """Change q in rows that share the classes a and b."""
    mine = q[a, rows]
    q[a, rows] = q[b, rows] = 0.0
    both = 1.0 - q[:, rows].sum(axis=0)
    caps = np.broadcast_to(shape.upper(q), q.shape)
    most = caps[b, rows]
    low, high = np.maximum(0.0, both - most), np.minimum(both, caps[a, rows])
    moved = _few_inside(np.clip(mine - low, 0.0, high - low), high - low, weighted)
    q[a, rows] = np.where(moved == high - low, high, low + moved)
    q[b, rows] = np.minimum(both - q[a, rows], most)


def _few_inside(x: Vector, high: Vector, rows: Matrix) -> Vector:
    """Return x' with rows'x' = rows'x and 0 <= x' <= high, of which few are strictly between.

    In many blocks of at most twice as many rows as columns at once.
    """
    x, rank = x.copy(), rows.shape[1]
    inside = np.flatnonzero((x > 0.0) & (x < high))
    while len(inside) > rank:
        size = min(2 * rank, len(inside))
        n_blocks = len(inside) // size
        blocks = inside[: n_blocks * size].reshape(n_blocks, size)
        x[blocks] = _moved(x[blocks], high[blocks], rows[blocks])
        inside = inside[(x[inside] > 0.0) & (x[inside] < high[inside])]
    return x


def _moved(x: Matrix, high: Matrix, rows: Matrix) -> Matrix:
    """Move along null vectors until all but `rank` labels of each block are at an end."""
    n_blocks, size, rank = rows.shape
    null = np.linalg.qr(rows, mode="complete")[0][:, :, rank:]
    block = np.arange(n_blocks)
    for _ in range(size - rank):
        along = null[:, :, 0]
        room = np.where(along > 0.0, high - x, x)
        moves = along != 0.0
        length = np.divide(room, np.abs(along), out=np.full_like(x, np.inf), where=moves)
        first = length.argmin(axis=1)
        x = np.clip(x + length[block, first, None] * along, 0.0, high)
        x[block, first] = np.where(along[block, first] > 0.0, high[block, first], 0.0)
        # What remains of the null vectors leaves this label alone.
        at = null[block, first]
        pivot = np.abs(at).argmax(axis=1)
        null = null - null[block, :, pivot][:, :, None] * (at / at[block, pivot, None])[:, None, :]
        null[block, :, pivot] = null[:, :, 0]
        null[block, first] = 0.0
        null = null[:, :, 1:]
    return x
