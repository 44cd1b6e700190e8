"""Weights of rows, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from neverworse._typing import Vector

# Squares of scores and narrow bounds are multiplied by weights; beyond these, products leave the
# range of floating point numbers.
SMALLEST, LARGEST = 1e-50, 1e50


def checked_weights(sample_weight: Any, n_rows: int) -> Vector:
    """Return weights as an array of shape (n_rows,): not negative, and none beyond use.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,), number or None
    n_rows : int
    """
    weights: Vector = _check_sample_weight(
        sample_weight,
        np.broadcast_to(0.0, (n_rows, 1)),
        dtype=np.float64,
        ensure_non_negative=True,
    )
    rows = np.flatnonzero(((weights > 0.0) & (weights < SMALLEST)) | (weights > LARGEST))
    if rows.size:
        raise ValueError(
            f"sample_weight is {weights[rows[0]]:.3g} in row {rows[0]}, but positive weights have "
            f"to lie between {SMALLEST:.0e} and {LARGEST:.0e}: products with others leave the "
            "range of floating point numbers. Rescale the weights, or set negligible ones to zero."
        )
    return weights
