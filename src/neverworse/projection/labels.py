"""What passes know about the labels of rows, and what they find out about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Indices, Vector
from neverworse.projection.label_sets import Box, Shape


@dataclass(frozen=True)
class RowLabels:
    """What is known about the labels of some rows.

    Attributes
    ----------
    target, width, shape
        See `Labels`.
    weights : array of shape (n_rows,) or None
        Of the rows in the loss; ones if None.
    hinge : array of shape (n_rows,)
        Weights of the unlabeled rows, times the range of their label; zero for all others.
    """

    target: Vector
    width: Vector
    weights: Vector | None
    hinge: Vector
    shape: Shape

    def at(self, rows: slice) -> RowLabels:
        """Return the same for some of the rows."""
        return RowLabels(
            self.target[..., rows],
            self.width[rows],
            None if self.weights is None else self.weights[rows],
            self.hinge[rows],
            self.shape.at(rows),
        )

    @cached_property
    def without_hinge(self) -> Indices:
        """Rows whose label is known, or does not count."""
        return np.flatnonzero(self.hinge == 0.0)


@dataclass(frozen=True)
class RowStart:
    """Soft labels that would reproduce supervised scores, allowed or not.

    Made for the rows that they are asked for: an array of all is seldom needed.

    Attributes
    ----------
    scores, target, width : arrays
        Supervised scores, and see `Labels`.
    """

    scores: Vector
    target: Vector
    width: Vector

    def at(self, rows: Any) -> Vector:
        """Return the soft labels of some rows (a slice, indices or a mask)."""
        width = self.width[rows]
        excess = self.scores[..., rows] - self.target[..., rows]
        return np.divide(excess, width, out=excess, where=width > 0.0)


@dataclass(frozen=True)
class Corners:
    """Soft labels in a corner of their sets, in as few bytes as that takes.

    Attributes
    ----------
    codes : array of shape (n_rows,), or (n_classes, n_rows)
        Whether the label is one; the class that has it all; or, with caps, the shares themselves.
    n_classes : int
        Zero for labels of one number.
    """

    codes: AnyArray
    n_classes: int

    @classmethod
    def of(cls, shape: Shape, t: Vector) -> Corners:
        """Return the extreme labels for scores t."""
        if isinstance(shape, Box):
            return cls(t < 0.0, 0)
        if getattr(shape, "caps", None) is not None:
            return cls(shape.extreme(t), len(t))
        return cls(t.argmin(axis=0).astype(np.min_scalar_type(len(t) - 1)), len(t))

    def at(self, rows: slice) -> Corners:
        """Return those of some rows."""
        return Corners(self.codes[..., rows], self.n_classes)

    def labels(self, rows: Any = slice(None)) -> Vector:
        """Return the labels of some rows (a slice or indices) as numbers."""
        codes = self.codes[..., rows]
        if codes.ndim == 1 and self.n_classes:
            return (np.arange(self.n_classes)[:, None] == codes).astype(np.float64)
        return codes.astype(np.float64)


@dataclass(frozen=True)
class Changes:
    """Soft labels of a few rows that are not, or not known to be, in a corner.

    Attributes
    ----------
    indices : array of int
        These rows, in increasing order.
    values : array of shape (n,) or (n_classes, n)
        Their soft labels.
    """

    indices: Indices
    values: Vector

    @classmethod
    def none(cls, like: Vector) -> Changes:
        """Return no changes of labels like those of a dual point: one number, or several."""
        return cls(np.empty(0, np.intp), np.empty((*like.shape[:-1], 0)))

    def at(self, rows: slice) -> Changes:
        """Return those of some rows."""
        lo, hi = np.searchsorted(self.indices, [rows.start, rows.stop])
        return Changes(self.indices[lo:hi] - rows.start, self.values[..., lo:hi])

    def apply(self, q: Vector) -> Vector:
        """Make the changes in place; return the labels."""
        q[..., self.indices] = self.values
        return q


def soft_labels(corners: Corners, changes: Changes, rows: slice) -> Vector:
    """Return the soft labels of some rows: those of a corner, but for a few changes."""
    return changes.at(rows).apply(corners.labels(rows))


def split_labels(shape: Shape, q: Vector) -> tuple[Corners, Changes]:
    """Return soft labels as corners and changes."""
    corners = Corners.of(shape, -q) if getattr(shape, "caps", None) is None else Corners(q, len(q))
    if isinstance(shape, Box):
        corners = Corners(q == 1.0, 0)
    differs = np.atleast_2d(corners.labels() != q).any(axis=0)
    rows = np.flatnonzero(differs)
    return corners, Changes(rows, q[..., rows])
