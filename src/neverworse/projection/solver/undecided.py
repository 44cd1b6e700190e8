"""Rows near their kink, of those that a pass has seen."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse.projection.labels import Changes, RowLabels
from neverworse.projection.solver.pass_state import (
    HingePass,
    count_within,
    differ,
    rows_near,
    rows_within,
)
from neverworse.projection.solver.sampling import is_chosen
from neverworse.rows import Rows


@dataclass(frozen=True)
class RowNumbers:
    """The number of the first of some rows, among all rows."""

    first: int = 0

    def at(self, rows: slice) -> RowNumbers:
        """Return the same for some of the rows."""
        return RowNumbers(self.first + rows.start)


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


def counts_within(state: HingePass, labels: RowLabels, widths: list[float]) -> list[int]:
    """Return the same for several widths."""
    return [count_within(state, labels, width) for width in widths]


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
    found = rows_near(state, labels, width, changes)
    return _described(state, changes, found[is_chosen(found + numbers.first, share, seed)], None)


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
    return replace(found, rows=narrow(rows.take(found.indices)))


def nearest(
    state: HingePass, labels: RowLabels, width: float, changes: Changes, most: int
) -> Undecided:
    """Return the rows nearest to their kink, at most so many."""
    found = rows_within(state, labels, width)
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
    chosen |= differ(described.soft, described.corner)
    return described.at(chosen & is_chosen(copied + numbers.first, share, seed))


def narrow(rows: Matrix) -> AnyArray:
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
