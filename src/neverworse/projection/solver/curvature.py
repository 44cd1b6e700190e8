"""The second derivative of smoothed hinges, row by row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neverworse._typing import Mask, Vector
from neverworse.projection.label_sets import Shape, Simplex


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


def curvature_of(shape: Shape, soft: Vector, weights: Vector, sigma: float) -> Curvature:
    """Return the curvature at the nearest labels `soft`."""
    inner = shape.inner(soft) if isinstance(shape, Simplex) else shape.loose(soft)
    return Curvature(inner & (weights > 0.0), sigma * weights)


def weighted_scores(t: Vector, weights: Vector) -> Vector:
    """Return s_j t_j; rows without a weight may score anything, even infinity."""
    return np.multiply(weights, t, out=np.zeros_like(t), where=weights > 0.0)
