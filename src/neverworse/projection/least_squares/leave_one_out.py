"""How the least squares fit to all other rows scores every row, in closed form."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import numpy as np

from neverworse._typing import Indices, Matrix, Vector
from neverworse.projection.coordinates.base import MOST_ROWS, suited
from neverworse.projection.coordinates.kernel import RowSpace, row_space
from neverworse.projection.least_squares.leave_one_out_fit import (
    Fit,
    LeftOut,
    Measure,
    add_up,
    doubtful_rows,
)
from neverworse.rows import Rows, single_threaded_blas


@single_threaded_blas()
def leave_one_out(
    rows: Rows,
    target: Matrix,
    weights: Vector | None,
    alphas: Vector,
    measure: Measure,
    fit_intercept: bool = True,
    one_unit: bool = False,
) -> Any:
    r"""Add up what the scores of rows are worth, each by the fit without that row.

    The fit without row i minimises (and is the shortest one of many, if the penalty is zero)

    .. math:: \sum_{j \ne i} s_j (x_j \cdot w + b - y_j)^2 + \alpha \lVert w \rVert^2

    It need not be made: with the error :math:`e_i` of the fit to all rows and the leverage
    :math:`h_i`, the derivative of its score for row i by :math:`y_i`, the error without row i is
    :math:`e_i / (1 - h_i)`. One decomposition serves all penalties. Where :math:`1 - h_i` has no
    digits left, other formulas take its place: "Leave-one-out" in docs/mathematics.md has them all.

    Parameters
    ----------
    rows : Rows
    target : array of shape (n_classes, n_rows)
    weights : array of shape (n_rows,) or None
        Not negative, not all zero; ones if None. Rows without weight play no part.
    alphas : array of shape (n_alphas,)
        Ridge penalties, not negative, in any order; the intercept is not penalised.
    measure : callable
        See `Measure`. A score is NaN only for a row that alone has weight, with an intercept:
        nothing is left to fit.
    fit_intercept : bool
    one_unit : bool
        Whether all columns are in the same unit, as features of a kernel are. Then eigenvalues of
        the products of rows do, if these are no more than columns and all penalties are positive.

    Returns
    -------
    sum of what `measure` returns, in the order of the rows
    """
    if not np.all(np.greater_equal(alphas, 0.0)):
        raise ValueError(f"alphas must not be negative, got {list(alphas)}.")
    if weights is None:
        weights = np.ones(rows.n_rows)
    if not weights.any():
        raise ValueError("weights must not all be zero: give some row a positive weight.")
    alphas = np.asarray(alphas, dtype=np.float64)
    n_used = int(np.count_nonzero(weights))
    kind = suited(rows, n_used)
    if kind == "kernel" or (one_unit and n_used <= rows.n_columns and (alphas > 0.0).all()):
        space = row_space(rows, weights, fit_intercept)
        target, weights = target[:, space.used], weights[space.used]
        centre = np.average(target, axis=1, weights=weights) if fit_intercept else np.zeros(1)
        errors = leave_one_out_by_kernel(space, target - centre[:, None], alphas, fit_intercept)
        return measure(target - errors, target, weights)
    if kind == "matrix-free":
        raise ValueError(
            f"Leave-one-out takes an (n_features, n_features) or (n_rows, n_rows) matrix: X has "
            f"{rows.n_columns:,} columns and more than {MOST_ROWS:,} labeled rows. Set alpha "
            "yourself, or choose it by cross-validation."
        )
    fit = Fit(rows, target, weights, alphas, fit_intercept)
    known = LeftOut(target, weights, *_corrections(fit))
    read = fit.moments.rows
    return read.fold(add_up, operator.add, fit.decomposed, measure, known=[known])


def _corrections(fit: Fit) -> tuple[Indices, Vector]:
    """Return rows whose leverage is too close to one, and their errors by other fits."""
    none = np.empty(0, dtype=np.intp)
    if fit.decomposed.interpolates:
        return none, np.empty((len(fit.alphas), len(fit.targets), 0))
    # The smallest penalty leaves the largest leverage.
    smallest = replace(fit.decomposed, alphas=fit.alphas.min(keepdims=True, initial=np.inf))
    known = LeftOut(fit.targets, fit.weights, none, np.empty((1, len(fit.targets), 0)))
    found = fit.moments.rows.fold(doubtful_rows, operator.add, smallest, fit.doubt, known=[known])
    doubtful = np.concatenate(found)
    errors = np.empty((len(fit.alphas), len(fit.targets), len(doubtful)))
    alone = fit.are_alone(doubtful)
    errors[:, :, alone] = fit.errors_of_alone(doubtful[alone])
    for k in np.flatnonzero(~alone):
        i = doubtful[[k]]
        errors[:, :, [k]] = fit.without(i).errors_outside(i)
    return doubtful, errors


INSIDE = 1e-8  # a row with so small a share in the directions that no row fits is in none of them


def leave_one_out_by_kernel(
    space: RowSpace, residual: Vector, alphas: Vector, fit_intercept: bool
) -> Vector:
    """Return the errors of all rows of the space, each by the fit to all others.

    A fit leaves the share α / (λ + α) of every eigenvector, so that nothing cancels. The space is
    that of the rows with a weight, the residual are targets less their mean. The result has the
    shape (n_alphas, n_targets, n_used).
    """
    left, root = space.left, space.root
    weighted = residual * root
    along = weighted @ left
    rest = weighted - along @ left.T
    one = root / np.linalg.norm(root) if fit_intercept else np.zeros(len(root))
    # The share in N, as what all others leave: a rounding error where nothing is left.
    share = 1.0 - np.einsum("ik,ik->i", left, left) - one**2
    share = np.where(share > INSIDE, share, 0.0)
    rest = np.where(share > 0.0, rest - (rest @ one)[:, None] * one, 0.0)
    errors = np.empty((len(alphas), *residual.shape))
    for error, alpha in zip(errors, alphas, strict=True):
        damping = 1.0 / (space.values + alpha)
        above, below = (along * damping) @ left.T, (left**2) @ damping
        fitted = (share > 0.0) & (alpha == 0.0)
        factor = np.where(fitted, 0.0, alpha if alpha > 0.0 else 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):  # the only row: 0 / 0
            error[:] = (factor * above + rest) / (factor * below + share) / root
    return errors
