"""Which coordinates suit a number of rows and columns."""

from __future__ import annotations

import numpy as np

from neverworse._typing import Mask, Vector
from neverworse.projection.coordinates.gram import Whitening, whiten
from neverworse.projection.coordinates.kernel import (
    RowSpaceWhitening,
    applies,
    row_space,
    whiten_row_space,
)
from neverworse.projection.coordinates.matrix_free import WeightSpace, weight_space
from neverworse.projection.coordinates.null_space import is_few_rows
from neverworse.rows import Rows

LARGEST_GRAM = 5000  # columns up to which a matrix of columns by columns is made

Coordinates = Whitening | RowSpaceWhitening | WeightSpace


def choose_coordinates(
    rows: Rows, weights: Vector | None, alpha: float, fit_intercept: bool, also: Mask | None
) -> Coordinates:
    """Return coordinates for the loss of these rows.

    Few columns: the Gram matrix is factored. Fewer rows than columns: their kernel is. Too many of
    both: nothing is, and linear systems are solved by conjugate gradients.

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
        return whiten(rows, weights, alpha, fit_intercept)
    if rows.n_columns > LARGEST_GRAM:
        return weight_space(rows, weights, alpha, fit_intercept)
    return whiten(rows, weights, alpha, fit_intercept)
