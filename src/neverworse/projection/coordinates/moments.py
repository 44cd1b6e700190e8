"""Second moments of weighted rows, centred without losing digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

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
class ColumnMoments:
    """Weighted sums over rows, for columns measured from their mean.

    Attributes
    ----------
    rows : Rows
        The rows that were summed, shifted where that was needed for accuracy.
    total : float
        Sum of the weights.
    mean : array of shape (n_columns,)
        Weighted mean of `rows` (after their shift); zeros where nothing was centred.
    raw : array of shape (n_columns,)
        Weighted sum of squares of `rows`: the size of what was added up.
    varies : boolean array of shape (n_columns,)
        False for columns that say nothing: constant with an intercept, zero without.
    spread : array of shape (n_columns,)
        Weighted sum of (x - mean)².
    """

    rows: Rows
    total: float
    mean: Vector
    raw: Vector
    varies: Mask
    spread: Vector


@dataclass(frozen=True)
class Moments(ColumnMoments):
    """The same, with all products of columns.

    Attributes
    ----------
    gram : array of shape (n_columns, n_columns)
        Weighted sum of (x - mean)(x - mean)'.
    """

    gram: Matrix


def moments(rows: Rows, weights: Vector | None, centre: bool) -> Moments:
    """Add up the second moments of `rows`, about their weighted mean if `centre`."""
    gram: Matrix = np.empty((0, 0))

    def add_up(rows: Rows) -> ColumnMoments:
        nonlocal gram
        gram, sums = rows.gram(weights)
        if not np.isfinite(gram).all():
            raise NonFiniteError("the Gram matrix of the rows is not finite")
        found = _sums(rows, weights, sums, np.diag(gram).copy(), centre)
        if centre and found.total > 0:
            gram -= found.total * np.outer(found.mean, found.mean)
            found = replace(found, spread=np.diag(gram))
        return found

    sums = _accurate(add_up, rows, weights, centre)
    if not sums.varies.all():
        gram = np.where(np.outer(sums.varies, sums.varies), gram, 0.0)
    return Moments(sums.rows, sums.total, sums.mean, sums.raw, sums.varies, sums.spread, gram)


def column_moments(rows: Rows, weights: Vector | None, centre: bool) -> ColumnMoments:
    """Do the same for every column alone: no matrix of columns by columns is made."""
    ones = np.ones(rows.n_rows) if weights is None else weights

    def add_up(rows: Rows) -> ColumnMoments:
        raw = rows.squares(weights)
        found = _sums(rows, weights, rows.weighted_sum(ones), raw, centre)
        return replace(found, spread=np.maximum(raw - found.total * found.mean**2, 0.0))

    return _accurate(add_up, rows, weights, centre)


def _accurate(
    add_up: Callable[[Rows], ColumnMoments], rows: Rows, weights: Vector | None, centre: bool
) -> ColumnMoments:
    """Add up once more, of shifted rows, where centring has cost too many digits."""
    result = add_up(rows)
    if not centre:
        return result
    doubtful = np.flatnonzero(result.spread <= CANCELLATION * result.raw)
    if not doubtful.size:
        return result
    varies = result.varies.copy()
    low, high = rows.ranges(doubtful, weights)
    varies[doubtful] = low < high
    if varies[doubtful].any() and rows.shift is None:
        result = add_up(rows.shifted(result.mean))
    # Beside rows of much larger weight, others may be lost in the rounding of the mean.
    varies &= result.spread > 0.0
    return replace(result, varies=varies, spread=np.where(varies, result.spread, 0.0))


def _sums(
    rows: Rows, weights: Vector | None, sums: Vector, raw: Vector, centre: bool
) -> ColumnMoments:
    if not (np.isfinite(sums).all() and (raw < LARGEST_SQUARE).all()):
        raise NonFiniteError("the squares of the rows are not finite, or too large")
    tiny = np.flatnonzero(raw < SMALLEST_SQUARE)
    if rows.shift is None and tiny.size:
        low, high = rows.ranges(tiny, weights)
        for j in tiny[(low <= high) & ((low < 0.0) | (high > 0.0))].tolist():
            raise ValueError(
                f"The values of column {j} of X (or the sample weights) are so small that weighted "
                "squares vanish in floating point. Rescale the column, for example with "
                "sklearn.preprocessing.StandardScaler."
            )
    total = float(rows.n_rows if weights is None else weights.sum())
    mean = sums / total if centre and total > 0 else np.zeros(rows.n_columns)
    return ColumnMoments(rows, total, mean, raw, raw > 0, raw)
