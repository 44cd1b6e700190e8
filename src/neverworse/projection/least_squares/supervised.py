"""Least squares on labeled rows: the supervised weights."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from neverworse._typing import Mask, Scalars, Vector
from neverworse.projection.coordinates.choice import LARGEST_GRAM
from neverworse.projection.coordinates.gram import CentredFactor, factor
from neverworse.projection.coordinates.kernel import RowSpace, applies, row_space
from neverworse.projection.coordinates.matrix_free import weight_space_of
from neverworse.projection.coordinates.moments import (
    ColumnMoments,
    Moments,
    column_moments,
    moments,
)
from neverworse.projection.coordinates.null_space import is_few_rows
from neverworse.projection.weights import Weights
from neverworse.rows import Rows
from neverworse.rows._threads import single_threaded_blas
from neverworse.rows._weigh import RowWeigh


@single_threaded_blas()
def solve_least_squares(
    rows: Rows,
    target: Vector,
    weights: Vector | None = None,
    *,
    alpha: float = 0.0,
    fit_intercept: bool = True,
    rcond: float | None = None,
) -> Weights:
    r"""Minimise the penalised weighted squared error on all rows with a weight.

    .. math:: \sum_i s_i (x_i \cdot w + b - y_i)^2 + \alpha \lVert w \rVert^2

    Parameters
    ----------
    rows : Rows
    target : array of shape (n_rows,), or (n_targets, n_rows) for several at once
    weights : array of shape (n_rows,), optional
        Not negative; ones if not given.
    alpha : float
        Ridge penalty; the intercept is not penalised.
    fit_intercept : bool
        Whether b is fitted, or zero.
    rcond : float, optional
        If given, directions of the features whose singular value in the centred (penalised) Gram
        matrix is at most `rcond` times the largest are left out. The result then depends on the
        scales of the columns. If not given, the solution is exact, and the shortest one where
        there are many.
    """
    centre: Scalars = 0.0
    if fit_intercept:
        centre = np.average(target, axis=-1, weights=weights)
    residual = target - np.asarray(centre)[..., None]
    n_used = rows.n_rows if weights is None else int(np.count_nonzero(weights))
    coef: Vector | None = None
    sums: ColumnMoments
    if applies(rows, n_used):
        space = row_space(rows, weights, fit_intercept)
        sums = space.sums
        if alpha > 0.0 or rcond is not None or not (space.doubtful and is_few_rows(rows, weights)):
            coef = _in_row_space(space, residual, alpha, rcond)
    elif rows.n_columns > LARGEST_GRAM:
        coef, sums = _matrix_free(rows, residual, weights, alpha, fit_intercept, rcond)
    if coef is not None:
        return Weights(coef, centre + _intercept(sums, coef))
    if rcond is not None:
        second = moments(rows, weights, centre=fit_intercept)
        sums, coef = second, _truncated(second, residual, weights, alpha, rcond)
    else:
        centred = factor(rows, weights, alpha, fit_intercept, target=residual)
        sums = centred.moments
        if centred.solution is not None:
            coef = centred.solution
        else:
            coef = _normal_equations(centred, residual, weights, alpha)
    return Weights(coef, centre + _intercept(sums, coef))


def _in_row_space(space: RowSpace, residual: Vector, alpha: float, rcond: float | None) -> Vector:
    """Solve by the kernel of the rows, whose eigenvalues are those of the Gram matrix."""
    kept: Mask | slice = slice(None)
    if rcond is not None:
        kept = space.values + alpha > rcond * (float(space.values.max(initial=0.0)) + alpha)
    return space.least_squares(residual[..., space.used], alpha, kept)


def _matrix_free(
    rows: Rows,
    residual: Vector,
    weights: Vector | None,
    alpha: float,
    fit_intercept: bool,
    rcond: float | None,
) -> tuple[Vector, ColumnMoments]:
    """Solve by conjugate gradients."""
    if rcond is not None:
        raise ValueError(
            f"rcond takes a matrix of columns by columns, and X has {rows.n_columns:,} columns. "
            "Use alpha instead, which makes weights short as well."
        )
    sums = column_moments(rows, weights, centre=fit_intercept)
    space = weight_space_of(sums, weights, alpha, fit_intercept)
    right = space.adjoint_coef(_cross(sums, residual, weights))
    return space.to_weights(space.solve(right, 0.0).x).coef, sums


def _normal_equations(
    centred: CentredFactor, residual: Vector, weights: Vector | None, alpha: float
) -> Vector:
    """Solve, then refine once: as accurate as orthogonal factors where this is chosen."""
    sums, basis = centred.moments, centred.basis
    coef = (_cross(sums, residual, weights) @ basis) @ basis.T
    error = RowWeigh(_weighted_error, (residual, weights))
    summed, total = sums.rows.score_weighted_sum(coef, _intercept(sums, coef), error)
    gradient = _centred(sums, summed, total) - alpha * coef
    refined: Vector = coef + (gradient @ basis) @ basis.T
    return refined


def _intercept(sums: ColumnMoments, coef: Vector) -> Scalars:
    """Return the intercept with which `coef` scores the mean of the rows as zero."""
    at_mean: Scalars = coef @ sums.mean
    return -at_mean if sums.rows.shift is None else -at_mean - coef @ sums.rows.shift


def _truncated(
    sums: Moments, residual: Vector, weights: Vector | None, alpha: float, rcond: float
) -> Vector:
    values, vectors = linalg.eigh(sums.gram + alpha * np.eye(len(sums.gram)))
    kept = values > rcond * max(values[-1], 0.0)
    vectors = vectors[:, kept]
    coef: Vector = ((_cross(sums, residual, weights) @ vectors) / values[kept]) @ vectors.T
    return coef


def _cross(sums: ColumnMoments, residual: Vector, weights: Vector | None) -> Vector:
    """Return Σ s (x - mean) r over the rows, for columns that vary."""
    weighted = residual
    if weights is not None:  # rows without a weight may score anything, even infinity
        weighted = np.multiply(weights, residual, out=np.zeros_like(residual), where=weights > 0.0)
    return _centred(sums, sums.rows.weighted_sum(weighted), weighted.sum(axis=-1))


def _centred(sums: ColumnMoments, summed: Vector, total: Scalars) -> Vector:
    """Return Σ r (x - mean), given Σ r x and Σ r, for columns that vary."""
    return np.where(sums.varies, summed - np.asarray(total)[..., None] * sums.mean, 0.0)


def _weighted_error(scores: Vector, residual: Vector, weights: Vector | None) -> Vector:
    error = residual - scores
    if weights is None:
        return error
    return np.multiply(weights, error, out=np.zeros_like(error), where=weights > 0.0)
