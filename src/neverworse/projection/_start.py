"""Soft labels that would reproduce the supervised scores, allowed or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neverworse._typing import Vector
from neverworse.projection._training import Labels


@dataclass(frozen=True)
class Start:
    """These labels, made for the rows that they are asked for: an array of all is seldom needed.

    Attributes
    ----------
    scores : array of shape (n_rows,) or (n_classes, n_rows)
        Supervised scores.
    labels : Labels
    """

    scores: Vector
    labels: Labels

    def at(self, rows: Any) -> Vector:
        """Return the labels of some rows (a slice, indices or a mask)."""
        width = self.labels.width[rows]
        excess = self.scores[..., rows] - self.labels.target[..., rows]
        return np.divide(excess, width, out=excess, where=width > 0.0)
