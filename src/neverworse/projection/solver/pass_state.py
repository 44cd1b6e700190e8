"""What a pass over all rows at a dual point leaves of every chunk, and what it adds up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse._typing import AnyArray, Indices, Mask, Scalars, Vector
from neverworse.projection.labels import Changes, Corners, RowLabels, soft_labels
from neverworse.projection.solver.line_search import blocks


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


def sums_of(state: HingePass) -> PassSums:
    """Return what the pass added up."""
    assert state.sums is not None
    return state.sums


def corners_of(state: HingePass) -> Corners:
    """Return the corners that the scores push soft labels into."""
    return state.corners


def soft_of(state: HingePass) -> Corners:
    """Return the corners of the soft labels that the dual point belongs to."""
    assert state.soft is not None
    return state.soft


def slices_of(t: Vector) -> list[slice]:
    n = t.shape[-1]
    return [slice(block.start, min(block.stop, n)) for block in blocks(t)]


def differ(a: Vector, b: Vector) -> Mask:
    return np.asarray(np.atleast_2d(a != b).any(axis=0))


def is_within(state: HingePass, labels: RowLabels, block: slice, width: float) -> Mask:
    return (state.margin(block) <= width) & (labels.hinge[block] > 0.0)


def rows_within(state: HingePass, labels: RowLabels, width: float) -> Indices:
    found = [
        block.start + np.flatnonzero(is_within(state, labels, block, width))
        for block in slices_of(state.t)
    ]
    return np.concatenate(found)


def rows_near(state: HingePass, labels: RowLabels, width: float, changes: Changes) -> Indices:
    """Return rows at most so far from their kink, and those that have left their corner."""
    if state.soft is None:
        return rows_within(state, labels, width)
    found = []
    for block in slices_of(state.t):
        q = soft_labels(state.soft, changes, block)
        left = differ(q, state.corners.labels(block)) & (labels.hinge[block] > 0.0)
        found.append(block.start + np.flatnonzero(is_within(state, labels, block, width) | left))
    return np.concatenate(found)


def count_within(state: HingePass, labels: RowLabels, width: float) -> int:
    """Return how many rows are at most so far from their kink."""
    return sum(
        int(np.count_nonzero(is_within(state, labels, block, width)))
        for block in slices_of(state.t)
    )
