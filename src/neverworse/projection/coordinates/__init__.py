"""Coordinates of the weights: one protocol, three implementations.

Few columns: the Gram matrix is factored (`gram`). Fewer rows than columns: their kernel is
(`kernel`). Too many of both: nothing is, and linear systems are solved by conjugate gradients
(`matrix_free`).
"""

from __future__ import annotations

import numpy as np

from neverworse._typing import Mask, Vector
from neverworse.projection.coordinates.base import EPS, Coordinates, Points, Weights
from neverworse.projection.coordinates.gram import GramCoordinates, whiten
from neverworse.projection.coordinates.kernel import applies, row_space, whiten_row_space
from neverworse.projection.coordinates.matrix_free import weight_coordinates
from neverworse.projection.coordinates.moments import column_moments, is_few_rows
from neverworse.rows import Rows

__all__ = [
    "EPS",
    "LARGEST_GRAM",
    "Coordinates",
    "GramCoordinates",
    "Points",
    "Weights",
    "choose_coordinates",
    "whiten",
]

LARGEST_GRAM = 5000  # columns up to which an n_features × n_features matrix is made


def choose_coordinates(
    rows: Rows, weights: Vector | None, alpha: float, fit_intercept: bool, also: Mask | None
) -> Coordinates:
    """Return coordinates for the loss of these rows.

    Parameters
    ----------
    rows, weights
        Rows and their weights (ones if None).
    alpha : float
        Ridge penalty.
    fit_intercept : bool
    also : boolean array of shape (n_rows,) or None
        Rows without a weight in the loss on which the supervised weights may depend.
    """
    used = np.ones(rows.n_rows, bool) if weights is None else weights > 0.0
    used = used if also is None else used | also
    if applies(rows, int(np.count_nonzero(used))):
        space = row_space(rows, weights, fit_intercept, also)
        # Without penalty, eigenvalues that can hardly be told from zero count as much as others.
        if not (space.doubtful and alpha == 0.0 and is_few_rows(rows, weights)):
            return whiten_row_space(space, weights, alpha, fit_intercept)
    elif rows.n_columns > LARGEST_GRAM:
        sums = column_moments(rows, weights, centre=fit_intercept)
        return weight_coordinates(sums, weights, alpha, fit_intercept)
    return whiten(rows, weights, alpha, fit_intercept)
