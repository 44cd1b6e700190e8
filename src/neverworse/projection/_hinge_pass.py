"""One pass over all rows at a dual point: what it leaves of every chunk, and what it adds up.

Scores, and the corners that they push soft labels into, stay where the rows are. What comes back
are sums, counts, and the few rows near a kink.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from neverworse._typing import Indices, Mask, Matrix, Scalars, Vector
from neverworse.projection._line_search import blocks
from neverworse.projection._row_labels import Changes, Corners, RowLabels, soft_labels
from neverworse.rows import Rows
from neverworse.rows._threads import map_in_threads
from neverworse.rows._weigh import RowWeigh

NEAR = 0.2  # the density of scores at zero is measured up to this fraction of a typical one


@dataclass(frozen=True)
class Band:
    """Which rows are copied out during a pass, because they will probably be asked for.

    Attributes
    ----------
    width : float
        Rows at most so far from their kink; none if zero.
    share : float
        The largest share of all rows that is copied: more are sampled.
    """

    width: float = 0.0
    share: float = 0.0


@dataclass(frozen=True)
class Copied:
    """Rows that were copied out during a pass.

    Attributes
    ----------
    indices : array of int
        In increasing order.
    rows : array of shape (n, n_columns)
    complete : bool
        Whether these are all rows that near, or a sample of them.
    """

    indices: Indices
    rows: Matrix
    complete: bool


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
    near, room : float
        How many scores are near zero, and in how much room: their ratio is the density there.
    gap : float
        Σ s (q·t + max(-q·t)) for the labels q that the dual point belongs to.
    soft_total : float or array of shape (n_classes,)
        Σ s q of these.
    farthest : float
        How far from a kink rows are that have left the corner of their label, at most.
    """

    summed: Vector
    total: Scalars
    along: float
    square: float
    near: float
    room: float
    gap: float
    soft_total: Scalars
    farthest: float

    def __add__(self, other: PassSums) -> PassSums:
        return PassSums(
            self.summed + other.summed,
            self.total + other.total,
            self.along + other.along,
            self.square + other.square,
            self.near + other.near,
            self.room + other.room,
            self.gap + other.gap,
            self.soft_total + other.soft_total,
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
    rows: Matrix | None


def hinge_pass(
    rows: Rows,
    coef: Vector,
    intercept: Scalars,
    band: Band,
    seed: int,
    changes: Changes,
    labels: RowLabels,
    before: HingePass | Corners | None = None,
) -> HingePass:
    """Make a pass over some rows.

    Parameters
    ----------
    rows : Rows
    coef, intercept
        The dual point, as a linear function of rows.
    band : Band
        Which rows to copy.
    seed : int
        For a sample of these.
    changes : Changes
        Where labels that the dual point belongs to are no corners.
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

    def part(block: slice) -> tuple[float, float, float, Vector, float]:
        return _block_sums(state, labels.at(block), changes, block)

    parts = map_in_threads(part, _slices(t))
    square = float(sum(found[1] for found in parts))
    near, room = _density(state, labels, square)
    sums = PassSums(
        summed=summed,
        total=total,
        along=float(sum(found[0] for found in parts)),
        square=square,
        near=near,
        room=room,
        gap=float(sum(found[2] for found in parts)),
        soft_total=sum((found[3] for found in parts), np.zeros(coef.shape[:-1])),
        farthest=max(found[4] for found in parts),
    )
    copied = None
    if band.width > 0.0:
        copied = _copy(rows, state, labels, band, seed)
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


def undecided(
    state: HingePass,
    labels: RowLabels,
    width: float,
    nearest: bool,
    seed: int,
    changes: Changes,
    most: int,
) -> Undecided:
    """Return rows near their kink: `most` of them at most, the nearest ones or any.

    Parameters
    ----------
    state, labels
        Of some rows.
    width : float
        How far from their kink at most.
    nearest : bool
    seed : int
    changes : Changes
        See `hinge_pass`.
    most : int
    """
    found = _rows_within(state, labels, width)
    if len(found) > most and nearest:
        margin = state.margin(slice(None))[found]
        found = np.sort(found[np.argpartition(margin, most)[:most]])
    elif len(found) > most:
        found = _choose(found, most, seed)
    return _described(state, changes, found, None)


def undecided_copies(
    state: HingePass,
    width: float,
    changes: Changes,
) -> Undecided:
    """Return all rows near their kink of which there are copies."""
    assert state.copied is not None
    copied = state.copied.indices
    near = state.margin(slice(None))[copied] <= width
    if near.all():
        return _described(state, changes, copied, state.copied.rows)
    return _described(state, changes, copied[near], state.copied.rows[near])


def is_complete(state: HingePass) -> bool:
    """Return whether all rows near their kink were copied, or a sample of them."""
    assert state.copied is not None
    return state.copied.complete


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


def _block_sums(
    state: HingePass, labels: RowLabels, changes: Changes, block: slice
) -> tuple[float, float, float, Vector, float]:
    """Return Σ s q·t for corners, Σ s t·t, and gap, totals and farthest row of soft labels."""
    t, s = state.t[..., block], labels.hinge
    support = labels.shape.support(t)
    along = -float(s @ support)
    square = float(_dot(t, t) @ s)
    if state.soft is None:
        return along, square, 0.0, np.zeros(t.shape[:-1]), 0.0
    q = soft_labels(state.soft, changes, block)
    gap = float(s @ (_dot(q, t) + support))
    left = np.atleast_2d(q != state.corners.labels(block)).any(axis=0) & (s > 0.0)
    farthest = float(state.margin(block)[left].max(initial=0.0))
    return along, square, gap, q @ s, farthest


def _dot(a: Vector, b: Vector) -> Vector:
    product: Vector = a * b
    return product if product.ndim == 1 else product.sum(axis=0)


def _density(state: HingePass, labels: RowLabels, square: float) -> tuple[float, float]:
    """Return how many scores are near zero, and in how much room."""
    total = float(labels.hinge.sum())
    if square <= 0.0 or total <= 0.0:
        return 0.0, 0.0
    near = NEAR * float(np.sqrt(square / total))
    n_rows = int(np.count_nonzero(labels.hinge))
    return count_within(state, labels, near), 2.0 * near * n_rows


def _within(state: HingePass, labels: RowLabels, block: slice, width: float) -> Mask:
    return (state.margin(block) <= width) & (labels.hinge[block] > 0.0)


def _rows_within(state: HingePass, labels: RowLabels, width: float) -> Indices:
    found = [
        block.start + np.flatnonzero(_within(state, labels, block, width))
        for block in _slices(state.t)
    ]
    return np.concatenate(found)


def _choose(rows: Indices, size: int, seed: int) -> Indices:
    """Return so many of the rows at random, in their order."""
    random = np.random.default_rng([seed, len(rows)])
    return np.sort(random.choice(rows, size, replace=False, shuffle=False))


def _copy(rows: Rows, state: HingePass, labels: RowLabels, band: Band, seed: int) -> Copied:
    near = _rows_within(state, labels, band.width)
    most = int(np.ceil(band.share * rows.n_rows))
    chosen = near if len(near) <= most else _choose(near, most, seed)
    return Copied(chosen, rows.take(chosen), len(near) <= most)


def _described(
    state: HingePass, changes: Changes, indices: Indices, rows: Matrix | None
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
