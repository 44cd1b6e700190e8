"""Singular values of rows that are fewer than their columns, where a dense copy is affordable."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from neverworse._typing import Matrix, Vector
from neverworse.projection.coordinates.kernel import EPS, HIGH
from neverworse.projection.coordinates.moments import ColumnMoments, column_moments
from neverworse.rows import Rows

AFFORDABLE = 1e7  # numbers in a dense copy of the rows


def is_few_rows(rows: Rows, weights: Vector | None) -> bool:
    """Whether rows with a weight are fewer than columns, and fit into memory when dense."""
    n_used = rows.n_rows if weights is None else int(np.count_nonzero(weights))
    fewer = rows.n_columns > HIGH and n_used < rows.n_columns
    return fewer and n_used * rows.n_columns <= AFFORDABLE


def factor_few_rows(
    rows: Rows, weights: Vector | None, alpha: float, fit_intercept: bool, target: Vector | None
) -> tuple[ColumnMoments, Matrix, Vector | None]:
    """Factor the rows themselves. The basis spans them, and has no need to span more.

    Parameters
    ----------
    rows, weights, alpha, fit_intercept, target
        See `neverworse.projection.coordinates.gram.factor`.

    Returns
    -------
    moments : ColumnMoments
    basis : array of shape (n_columns, rank)
        T with T'(A'A + αI)T = I for the weighted, centred rows A.
    solution : array like target, with columns for rows, or None
        The shortest least squares solution for the target.
    """
    sums = column_moments(rows, weights, centre=fit_intercept)
    s = np.ones(rows.n_rows) if weights is None else weights
    used = np.flatnonzero(s > 0.0)
    root = np.sqrt(s[used])
    centred = sums.rows.take(used)
    centred -= sums.mean
    centred[:, ~sums.varies] = 0.0
    centred *= root[:, None]
    left, singular, right = linalg.svd(
        centred, full_matrices=False, overwrite_a=True, check_finite=False
    )
    # What floating point cannot know: the rounding of the factors, and of the data.
    size = max(float(singular.max(initial=0.0)), float(np.sqrt(sums.raw.max(initial=0.0))))
    kept = singular > 8 * np.sqrt(rows.n_columns) * EPS * size
    left, singular, right = left[:, kept], singular[kept], right[kept]
    damped = 1.0 / np.sqrt(singular**2 + alpha)
    basis: Matrix = right.T * damped
    solution = None
    if target is not None:
        solution = ((target[..., used] * root) @ (left * (singular * damped))) @ basis.T
    return sums, basis, solution
