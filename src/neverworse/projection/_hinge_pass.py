"""One pass over all rows at a dual point: what it leaves of every chunk, and what it adds up.

Scores, and the corners that they push soft labels into, stay where the rows are. What comes back
are sums, counts, and the few rows near a kink.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Scalars, Vector
from neverworse.projection._line_search import blocks
from neverworse.projection._row_labels import Changes, Corners, RowLabels, soft_labels
from neverworse.projection._sampling import is_chosen
from neverworse.rows import Rows
from neverworse.rows._threads import map_in_threads
from neverworse.rows._weigh import RowWeigh


@dataclass(frozen=True)
class Band:
    """Which rows are copied out during a pass, because they will probably be asked for.

    Attributes
    ----------
    width : float
        Rows at most so far from their kink; none if zero.
    share : float
        So large a sample of these.
    """

    width: float = 0.0
    share: float = 1.0


@dataclass(frozen=True)
class RowNumbers:
    """The number of the first of some rows, among all rows."""

    first: int = 0

    def at(self, rows: slice) -> RowNumbers:
        """Return the same for some of the rows."""
        return RowNumbers(self.first + rows.start)


@dataclass(frozen=True)
class Copied:
    """Rows that were copied out during a pass.

    Attributes
    ----------
    indices : array of int
        In increasing order.
    rows : array of shape (n, n_columns)
        Of any floating-point type.
    """

    indices: Indices
    rows: AnyArray


@dataclass(frozen=True)
class PassSums:
    """What a pass adds up.

    Attributes
    ----------
    summed : array like z
        Σ s q x, for labels q in the corner of their scores.
    total : float or array of shape (n_classes,)
        Σ s q.
    along, square : float
        Σ s q·t and Σ s t·t.
    near : int
        How many rows are very near their kink.
    gap : float
        Σ s (q·t + max(-q·t)) for the labels q that the dual point belongs to.
    soft_total : float or array of shape (n_classes,)
        Σ s q of these.
    n_left, farthest : int, float
        How many rows have left the corner of their label, and how far they are from a kink at most.
    """

    summed: Vector
    total: Scalars
    along: float
    square: float
    near: int
    gap: float
    soft_total: Scalars
    n_left: int
    farthest: float

    def __add__(self, other: PassSums) -> PassSums:
        return PassSums(
            self.summed + other.summed,
            self.total + other.total,
            self.along + other.along,
            self.square + other.square,
            self.near + other.near,
            self.gap + other.gap,
            self.soft_total + other.soft_total,
            self.n_left + other.n_left,
            max(self.farthest, other.farthest),
        )


@dataclass(frozen=True)
class HingePass:
    """What a pass leaves of some rows.

    Attributes
    ----------
    t : array of shape (n_rows,) or (n_classes, n_rows)
        Scores; zero for rows without a hinge.
    margins : array of shape (n_rows,) or None
        How far they are from their kink; None where that is the size of t.
    corners : Corners
        Where they push soft labels.
    soft : Corners or None
        Where soft labels were that the dual point belongs to, but for a few changes.
    sums : PassSums or None
        None while they are being added up.
    copied : Copied or None
    """

    t: Vector
    margins: Vector | None
    corners: Corners
    soft: Corners | None
    sums: PassSums | None = None
    copied: Copied | None = None

    def margin(self, rows: slice) -> Vector:
        """Return how far some rows are from their kink."""
        return np.abs(self.t[rows]) if self.margins is None else self.margins[rows]


@dataclass(frozen=True)
class Undecided:
    """Rows near their kink.

    Attributes
    ----------
    indices : array of int
    corner, soft : arrays of shape (n,) or (n_classes, n)
        Labels of the pass, and those that its dual point belongs to (the same if there are none).
    rows : array of shape (n, n_columns) or None
        Copies, if there are any.
    """

    indices: Indices
    corner: Vector
    soft: Vector
    rows: AnyArray | None

    def at(self, chosen: Mask) -> Undecided:
        """Return some of these rows."""
        rows = None if self.rows is None else self.rows[chosen]
        corner, soft = self.corner[..., chosen], self.soft[..., chosen]
        return Undecided(self.indices[chosen], corner, soft, rows)


def hinge_pass(
    rows: Rows,
    coef: Vector,
    intercept: Scalars,
    near: float,
    band: Band,
    seed: int,
    changes: Changes,
    numbers: RowNumbers,
    labels: RowLabels,
    before: HingePass | Corners | None = None,
) -> HingePass:
    """Make a pass over some rows.

    Parameters
    ----------
    rows : Rows
    coef, intercept
        The dual point, as a linear function of rows.
    near : float
        Rows up to this far from their kink are counted.
    band : Band
        Which rows to copy.
    seed : int
        Of the sample.
    changes : Changes
        Where labels that the dual point belongs to are no corners.
    numbers : RowNumbers
    labels : RowLabels
    before : HingePass, Corners or None
        Where they are; None if the dual point belongs to no labels.
    """
    t, summed, total = rows.scores_and_sum(coef, intercept, RowWeigh(_weighted_corners, (labels,)))
    t[..., labels.without_hinge] = 0.0
    shape = labels.shape
    soft = before.corners if isinstance(before, HingePass) else before
    # Margins of several classes take sorting; of one number they are its size.
    margins = shape.margin(t) if t.ndim > 1 else None
    state = HingePass(t, margins, Corners.of(shape, t), soft)

    def part(block: slice) -> _BlockSums:
        return _block_sums(state, labels.at(block), changes, block)

    parts = map_in_threads(part, _slices(t))
    sums = PassSums(
        summed=summed,
        total=total,
        along=float(sum(found.along for found in parts)),
        square=float(sum(found.square for found in parts)),
        near=count_within(state, labels, near),
        gap=float(sum(found.gap for found in parts)),
        soft_total=sum((found.total for found in parts), np.zeros(coef.shape[:-1])),
        n_left=sum(found.n_left for found in parts),
        farthest=max(found.farthest for found in parts),
    )
    copied = None
    if band.width > 0.0:
        chosen = _rows_near(state, labels, band.width, changes)
        chosen = chosen[is_chosen(chosen + numbers.first, band.share, seed)]
        copied = Copied(chosen, _narrow(rows.take(chosen)))
    return replace(state, sums=sums, copied=copied)


def sums_of(state: HingePass) -> PassSums:
    """Return what the pass added up."""
    assert state.sums is not None
    return state.sums


def count_within(state: HingePass, labels: RowLabels, width: float) -> int:
    """Return how many rows are at most so far from their kink."""
    return sum(
        int(np.count_nonzero(_within(state, labels, block, width))) for block in _slices(state.t)
    )


def counts_within(state: HingePass, labels: RowLabels, widths: list[float]) -> list[int]:
    """Return the same for several widths."""
    return [count_within(state, labels, width) for width in widths]


def undecided_rows(
    rows: Rows,
    width: float,
    share: float,
    seed: int,
    changes: Changes,
    numbers: RowNumbers,
    state: HingePass,
    labels: RowLabels,
) -> Undecided:
    """Return what `undecided` does, with the rows."""
    found = undecided(state, labels, width, share, seed, changes, numbers)
    return replace(found, rows=_narrow(rows.take(found.indices)))


def undecided(
    state: HingePass,
    labels: RowLabels,
    width: float,
    share: float,
    seed: int,
    changes: Changes,
    numbers: RowNumbers,
) -> Undecided:
    """Return a sample of the rows near their kink, and of those that have left their corner.

    Parameters
    ----------
    state, labels
        Of some rows.
    width : float
        How far from their kink at most.
    share : float
    seed : int
    changes : Changes
        See `hinge_pass`.
    numbers : RowNumbers
    """
    found = _rows_near(state, labels, width, changes)
    return _described(state, changes, found[is_chosen(found + numbers.first, share, seed)], None)


def nearest(
    state: HingePass, labels: RowLabels, width: float, changes: Changes, most: int
) -> Undecided:
    """Return the rows nearest to their kink, at most so many."""
    found = _rows_within(state, labels, width)
    if len(found) > most:
        margin = state.margin(slice(None))[found]
        found = np.sort(found[np.argpartition(margin, most)[:most]])
    return _described(state, changes, found, None)


def undecided_copies(
    state: HingePass,
    width: float,
    share: float,
    seed: int,
    changes: Changes,
    numbers: RowNumbers,
) -> Undecided:
    """Return what `undecided` does, of rows of which there are copies."""
    assert state.copied is not None
    copied = state.copied.indices
    described = _described(state, changes, copied, state.copied.rows)
    chosen = state.margin(slice(None))[copied] <= width
    chosen |= _differ(described.soft, described.corner)
    return described.at(chosen & is_chosen(copied + numbers.first, share, seed))


def corners_of(state: HingePass) -> Corners:
    """Return the corners that the scores push soft labels into."""
    return state.corners


def soft_of(state: HingePass) -> Corners:
    """Return the corners of the soft labels that the dual point belongs to."""
    assert state.soft is not None
    return state.soft


def _weighted_corners(t: Vector, labels: RowLabels) -> Vector:
    return labels.hinge * labels.shape.extreme(t)


def _slices(t: Vector) -> list[slice]:
    n = t.shape[-1]
    return [slice(block.start, min(block.stop, n)) for block in blocks(t)]


class _BlockSums(NamedTuple):
    """What is added up over a block: see `PassSums`."""

    along: float
    square: float
    gap: float
    total: Vector
    n_left: int
    farthest: float


def _block_sums(state: HingePass, labels: RowLabels, changes: Changes, block: slice) -> _BlockSums:
    t, s = state.t[..., block], labels.hinge
    support = labels.shape.support(t)
    along = -float(s @ support)
    square = float(_dot(t, t) @ s)
    if state.soft is None:
        return _BlockSums(along, square, 0.0, np.zeros(t.shape[:-1]), 0, 0.0)
    q = soft_labels(state.soft, changes, block)
    gap = float(s @ (_dot(q, t) + support))
    left = _differ(q, state.corners.labels(block)) & (s > 0.0)
    farthest = float(state.margin(block)[left].max(initial=0.0))
    return _BlockSums(along, square, gap, q @ s, int(np.count_nonzero(left)), farthest)


def _differ(a: Vector, b: Vector) -> Mask:
    return np.asarray(np.atleast_2d(a != b).any(axis=0))


def _dot(a: Vector, b: Vector) -> Vector:
    product: Vector = a * b
    return product if product.ndim == 1 else product.sum(axis=0)


def _within(state: HingePass, labels: RowLabels, block: slice, width: float) -> Mask:
    return (state.margin(block) <= width) & (labels.hinge[block] > 0.0)


def _rows_within(state: HingePass, labels: RowLabels, width: float) -> Indices:
    found = [
        block.start + np.flatnonzero(_within(state, labels, block, width))
        for block in _slices(state.t)
    ]
    return np.concatenate(found)


def _rows_near(state: HingePass, labels: RowLabels, width: float, changes: Changes) -> Indices:
    """Return rows at most so far from their kink, and those that have left their corner."""
    if state.soft is None:
        return _rows_within(state, labels, width)
    found = []
    for block in _slices(state.t):
        q = soft_labels(state.soft, changes, block)
        left = _differ(q, state.corners.labels(block)) & (labels.hinge[block] > 0.0)
        found.append(block.start + np.flatnonzero(_within(state, labels, block, width) | left))
    return np.concatenate(found)


def _narrow(rows: Matrix) -> AnyArray:
    """Return rows in half the memory, if that loses nothing."""
    with np.errstate(over="ignore"):
        narrow = rows.astype(np.float32)
    return narrow if (narrow == rows).all() else rows


def _described(
    state: HingePass, changes: Changes, indices: Indices, rows: AnyArray | None
) -> Undecided:
    corner = state.corners.labels(indices)
    soft = corner
    if state.soft is not None:
        soft = state.soft.labels(indices)
        changed = np.searchsorted(changes.indices, indices)
        inside = changed < len(changes.indices)
        inside[inside] = changes.indices[changed[inside]] == indices[inside]
        soft[..., inside] = changes.values[..., changed[inside]]
    return Undecided(indices, corner, soft, rows)
