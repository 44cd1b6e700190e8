"""Exact linear dependencies of columns, told from nearly exact ones by one pass over the rows.

One-hot columns add up to one, and duplicates differ by nothing. The Gram matrix shows which
directions may be such, but squares the singular values: one of 1e-8 looks like one of zero. The
scores of the few directions in question tell.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from neverworse._typing import Indices, Matrix, Vector
from neverworse.projection.coordinates.kernel import EPS, HIGH
from neverworse.projection.coordinates.moments import ColumnMoments, Moments, column_moments
from neverworse.rows import Rows

# Gram matrices are good enough as long as their condition number (columns brought to equal length,
# null space left out) leaves eight digits. Beyond, orthogonal factors of the rows themselves.
WELL_CONDITIONED = 1e-8
# Eigenvalues that are kept are so many times the rounding errors of the Gram matrix.
CLEAR = 1e3


def rounding(sums: Moments, active: Indices, scale: Vector) -> float:
    """Return up to which share of the largest a singular value may be nothing but rounding.

    Parameters
    ----------
    sums : Moments
    active : array of int
        Columns in which rows differ.
    scale : array of shape (n_active,)
        What brings them to equal length.
    """
    size = max(len(active), np.sqrt(sums.rows.n_rows))  # errors of sums grow with both
    return float(8 * size * EPS * _noise(sums, active, scale))


def _noise(sums: Moments, active: Indices, scale: Vector) -> float:
    """Return what floating point cannot know: the data's rounding, measured against the spread."""
    return float(np.sqrt(np.max(sums.raw[active] * scale**2, initial=1.0)))


def split_null_space(
    sums: Moments, weights: Vector | None, active: Indices, scale: Vector, gram: Matrix
) -> tuple[Matrix, Matrix] | None:
    """Return a whitened basis of the rows' range and their null space, if these are far apart.

    With A for the centred rows, their columns scaled to equal length: eigenvectors of A'A give a
    basis T of the range with T'A'AT = I, and candidates V for the null space. An eigenvector of
    the Gram matrix has an error of `lost` / λ in the direction of an eigenvalue λ, and a score of
    `lost` / √λ: too much to be told from a small singular value. But the pass that computes the
    scores AV also gives A'AV, and V - TT'A'AV has the scores (I - ATT'A')AV: those outside of the
    range of AT. What is left of an exact dependency is the rounding of AV itself, and what is left
    of another one is its singular value.

    Parameters
    ----------
    sums : Moments
    weights : array of shape (n_rows,) or None
    active, scale
        See `rounding`.
    gram : array of shape (n_active, n_active)
        The scaled Gram matrix A'A.

    Returns
    -------
    basis : array of shape (n_active, rank)
    null_space : array of shape (n_active, n_active - rank)
        Both of scaled columns. Or None, where only the rows themselves can tell.
    """
    values, vectors = linalg.eigh(gram, check_finite=False)
    share = rounding(sums, active, scale)
    lost = share * _noise(sums, active, scale) * values[-1]  # centring subtracts squares
    n_null = int(np.sum(values <= lost))
    clear = max(WELL_CONDITIONED * values[-1], CLEAR * lost)
    if not n_null or n_null == len(values) or values[n_null] <= clear:
        return None
    basis = vectors[:, n_null:] / np.sqrt(values[n_null:])
    candidates = vectors[:, :n_null]
    directions = np.zeros((n_null, sums.rows.n_columns))
    directions[:, active] = (scale[:, None] * candidates).T
    squares, products = sums.rows.spread_along(directions, sums.mean, weights)
    in_range = (products[:, active] * scale) @ basis
    outside = linalg.eigvalsh(squares - in_range @ in_range.T)
    if outside[-1] > share**2 * values[-1]:
        return None
    return basis, candidates - basis @ in_range.T


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
