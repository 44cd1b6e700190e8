"""Least squares on labeled rows: the supervised weights."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from neverworse._typing import Mask, Matrix, Vector
from neverworse.projection.coordinates import Weights, suited
from neverworse.projection.coordinates.gram import (
    CentredFactor,
    Moments,
    column_moments,
    factor,
    factor_rows,
    is_few_rows,
    moments,
)
from neverworse.projection.coordinates.kernel import row_space
from neverworse.projection.coordinates.matrix_free import weight_coordinates
from neverworse.projection.label_sets import weighted_scores
from neverworse.rows import Rows, RowWeigh, single_threaded_blas


@single_threaded_blas()
def solve_least_squares(
    rows: Rows,
    target: Matrix,
    weights: Vector | None = None,
    *,
    alpha: float = 0.0,
    fit_intercept: bool = True,
    rcond: float | None = None,
    one_unit: bool = False,
) -> Weights:
    r"""Minimise the penalised weighted squared error on all rows with a weight.

    .. math:: \sum_i s_i (x_i \cdot w + b - y_i)^2 + \alpha \lVert w \rVert^2

    With `rcond`, directions of the features whose singular value in the centred (penalised) Gram
    matrix is at most `rcond` times the largest are left out; the result then depends on the scales
    of the columns. Without, the solution is exact, and the shortest one where there are many.
    `one_unit` says that all columns are in the same unit, as features of a kernel are. Otherwise
    they are brought to equal length, and those that are almost zero would get enormous weights.
    """
    centre = np.zeros(len(target))
    if fit_intercept:
        centre = np.average(target, axis=1, weights=weights)
    residual = target - centre[:, None]
    loss = (weights, alpha, fit_intercept)
    coef, sums = _coefficients(rows, residual, *loss, rcond, one_unit)
    return Weights(coef, centre - coef @ sums.centre)


def _coefficients(
    rows: Rows,
    residual: Matrix,
    weights: Vector | None,
    alpha: float,
    fit_intercept: bool,
    rcond: float | None,
    one_unit: bool,
) -> tuple[Matrix, Moments]:
    """Return the coefficients for centred targets, and the moments of the rows."""
    n_used = rows.n_rows if weights is None else int(np.count_nonzero(weights))
    by_rows = one_unit and alpha == 0.0 and rcond is None and n_used <= rows.n_columns
    kind = "Gram" if by_rows else suited(rows, n_used)
    if kind == "kernel":
        space = row_space(rows, weights, fit_intercept)
        if alpha > 0.0 or rcond is not None or not (space.doubtful and is_few_rows(rows, weights)):
            kept: Mask | slice = slice(None)
            if rcond is not None:
                largest = float(space.values.max(initial=0.0))
                kept = space.values + alpha > rcond * (largest + alpha)
            return space.least_squares(residual[:, space.used], alpha, kept), space.sums
    if kind == "matrix-free":
        if rcond is not None:
            raise ValueError(
                f"rcond takes an (n_features, n_features) matrix, and X has {rows.n_columns:,} "
                "columns. Use alpha instead, which makes weights short as well."
            )
        sums = column_moments(rows, weights, centre=fit_intercept)
        free = weight_coordinates(sums, weights, alpha, fit_intercept)
        right = free.adjoint_coef(_cross(sums, residual, weights))
        return free.coef(free.solve(right, 0.0).x), sums
    if rcond is not None:
        sums = moments(rows, weights, centre=fit_intercept)
        values, vectors = linalg.eigh(sums.gram + alpha * np.eye(rows.n_columns))
        seen = values > rcond * max(values[-1], 0.0)
        values, vectors = values[seen], vectors[:, seen]
        return ((_cross(sums, residual, weights) @ vectors) / values) @ vectors.T, sums
    factored = factor_rows if by_rows else factor
    centred = factored(rows, weights, alpha, fit_intercept, residual)
    if centred.solution is not None:
        return centred.solution, centred.moments
    return _normal_equations(centred, residual, weights, alpha), centred.moments


def _normal_equations(
    centred: CentredFactor, residual: Matrix, weights: Vector | None, alpha: float
) -> Matrix:
    """Solve, then refine once: as accurate as orthogonal factors where this is chosen."""
    sums, basis = centred.moments, centred.basis
    coef = (_cross(sums, residual, weights) @ basis) @ basis.T
    error = RowWeigh(_weighted_error, (residual, weights))
    summed, total = sums.rows.score_weighted_sum(coef, -(coef @ sums.centre), error)
    gradient = _centred(sums, summed, total) - alpha * coef
    return coef + (gradient @ basis) @ basis.T


def _cross(sums: Moments, residual: Matrix, weights: Vector | None) -> Matrix:
    """Return Σ s (x - mean) r over the rows, for columns that vary."""
    weighted = residual if weights is None else weighted_scores(residual, weights)
    return _centred(sums, sums.rows.weighted_sum(weighted), weighted.sum(axis=1))


def _centred(sums: Moments, summed: Matrix, total: Vector) -> Matrix:
    """Return Σ r (x - mean), given Σ r x and Σ r, for columns that vary."""
    return np.where(sums.varies, summed - total[:, None] * sums.mean, 0.0)


def _weighted_error(scores: Matrix, residual: Matrix, weights: Vector | None) -> Matrix:
    error = residual - scores
    return error if weights is None else weighted_scores(error, weights)
