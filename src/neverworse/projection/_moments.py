"""Second moments of weighted rows, centred without losing digits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse._typing import Mask, Matrix, Vector
from neverworse.rows import Rows

# A centred sum of squares below this fraction of the raw one has lost half of its digits to
# cancellation: shift the rows and add up again.
CANCELLATION = 1e-8
# Sums of squares beyond these leave too little room for what is computed from them.
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-200, 1e200


class NonFiniteError(ValueError):
    """The rows hold NaN or infinity (or numbers whose squares are too large)."""


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows, for columns measured from their mean.

    Attributes
    ----------
    rows : Rows
        The rows that were summed, shifted where that was needed for accuracy.
    total : float
        Sum of the weights.
    mean : array of shape (n_columns,)
        Weighted mean of `rows` (after their shift); zeros where nothing was centred.
    gram : array of shape (n_columns, n_columns)
        Weighted sum of (x - mean)(x - mean)'.
    raw : array of shape (n_columns,)
        Weighted sum of squares of `rows`: the size of what was added up.
    varies : boolean array of shape (n_columns,)
        False for columns that say nothing: constant with an intercept, zero without.
    """

    rows: Rows
    total: float
    mean: Vector
    gram: Matrix
    raw: Vector
    varies: Mask


def moments(rows: Rows, weights: Vector | None, centre: bool) -> Moments:
    """Add up the second moments of `rows`, about their weighted mean if `centre`."""
    total = float(rows.n_rows if weights is None else weights.sum())
    result = _sums(rows, weights, total, centre)
    if not centre:
        return result
    doubtful = np.flatnonzero(np.diag(result.gram) <= CANCELLATION * result.raw)
    if not doubtful.size:
        return result
    varies = result.varies.copy()
    low, high = rows.ranges(doubtful, weights)
    varies[doubtful] = low < high
    if varies[doubtful].any() and rows.shift is None:
        result = _sums(rows.shifted(result.mean), weights, total, centre)
    gram = np.where(np.outer(varies, varies), result.gram, 0.0)
    return Moments(result.rows, total, result.mean, gram, result.raw, varies)


def _sums(rows: Rows, weights: Vector | None, total: float, centre: bool) -> Moments:
    gram, sums = rows.gram(weights)
    raw = np.diag(gram).copy()
    if not (np.isfinite(gram).all() and np.isfinite(sums).all() and (raw < LARGEST_SQUARE).all()):
        raise NonFiniteError("the Gram matrix of the rows is not finite, or too large")
    tiny = np.flatnonzero(raw < SMALLEST_SQUARE)
    if rows.shift is None and tiny.size:
        low, high = rows.ranges(tiny, weights)
        for j in tiny[(low <= high) & ((low < 0.0) | (high > 0.0))].tolist():
            raise ValueError(
                f"The values of column {j} of X (or the sample weights) are so small that weighted "
                "squares vanish in floating point. Rescale the column, for example with "
                "sklearn.preprocessing.StandardScaler."
            )
    mean = np.zeros(rows.n_columns)
    if centre and total > 0:
        mean = sums / total
        gram -= total * np.outer(mean, mean)
    return Moments(rows, total, mean, gram, raw, raw > 0)
