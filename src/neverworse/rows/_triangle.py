"""Triangular factors of rows, for columns whose Gram matrix has lost too many digits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from neverworse._typing import Indices, Matrix, Vector


@dataclass(frozen=True)
class Standard:
    """How rows are standardised before they are factored.

    Attributes
    ----------
    columns : array of int
        The columns that take part.
    mean, scale : array of shape (n_columns,)
        Of these columns: what is subtracted, and then multiplied.
    """

    columns: Indices
    mean: Vector
    scale: Vector

    def bordered(self, block: Matrix, weights: Vector | None, targets: Matrix) -> Matrix:
        """Return standardised rows beside their targets, times the root of their weights."""
        k = len(self.columns)
        rows = np.empty((len(block), k + len(targets)))
        rows[:, :k] = (block[:, self.columns] - self.mean) * self.scale
        rows[:, k:] = targets.T
        if weights is not None:
            rows *= np.sqrt(weights)[:, None]
        return rows


def reduce_rows(pieces: list[Matrix]) -> Matrix:
    """Return R with R'R = the sum of all A'A, at most as many rows as columns."""
    rows = np.vstack(pieces)
    if not len(rows):
        return rows
    triangle: Matrix = linalg.qr(rows, mode="r", overwrite_a=True, check_finite=False)[0]
    return triangle[: rows.shape[1]]
