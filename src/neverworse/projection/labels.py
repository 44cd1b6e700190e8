"""What passes know about the labels of rows, and what they find out about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from neverworse._typing import Indices, Vector
from neverworse.projection.label_sets import Shape


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
class Changes:
    """Soft labels of a few rows that are to be replaced.

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
