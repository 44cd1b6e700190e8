"""What every row would be scored by the least squares fit to all other rows, in closed form."""

from __future__ import annotations

import numpy as np

from neverworse._typing import Indices, Vector
from neverworse.projection._coordinates import LARGEST_GRAM
from neverworse.projection._leave_one_out_fit import Fit
from neverworse.projection._leave_one_out_kernel import leave_one_out_by_kernel
from neverworse.projection._row_space import MOST_ROWS, applies, row_space
from neverworse.projection._supervised import solve_least_squares
from neverworse.rows import Rows
from neverworse.rows._threads import single_threaded_blas


@single_threaded_blas()
def leave_one_out(
    rows: Rows, target: Vector, weights: Vector | None, alphas: Vector, fit_intercept: bool = True
) -> Vector:
    r"""Return the score that the fit without a row gives to that row, for every row and penalty.

    The fit without row i minimises (and is the shortest one of many, if the penalty is zero)

    .. math:: \sum_{j \ne i} s_j (x_j \cdot w + b - y_j)^2 + \alpha \lVert w \rVert^2

    It need not be made: with the error :math:`e_i` of the fit to all rows and the leverage
    :math:`h_i`, the derivative of its score for row i by :math:`y_i`, the error without row i is
    :math:`e_i / (1 - h_i)`. One decomposition serves all penalties. Let :math:`V \Lambda V'` be the
    weighted, centred Gram matrix, :math:`z_i = (x_i - \bar x) V \Lambda^{-1/2}` and
    :math:`c = \sum_i s_i z_i (y_i - \bar y)`. Then

    .. math::
        e_i = y_i - \bar y - \sum_k z_{ik} c_k \frac{\lambda_k}{\lambda_k + \alpha}, \qquad
        h_i = \frac{s_i}{\sum_j s_j} + s_i \sum_k z_{ik}^2 \frac{\lambda_k}{\lambda_k + \alpha}

    where the means and the first term of :math:`h_i` are zero if there is no intercept. Other ways
    are needed where :math:`1 - h_i` is zero but for the penalty, or has no digits left:

    - With no more rows than weights to fit, :math:`\alpha` is a factor of all errors and of all
      :math:`1 - h_i`. It cancels, and what remains holds without penalty as well:

      .. math::
          \frac{e_i}{1 - h_i} = \sum_k \frac{z_{ik} c_k}{\lambda_k + \alpha} \bigg/
          s_i \sum_k \frac{z_{ik}^2}{\lambda_k + \alpha}

    - Otherwise, :math:`1 - h_i` is zero without penalty if row i is alone in some direction, such
      as that of a column which is zero in all other rows. Such rows are taken out all at once. Let
      r be their errors by the fit to the rest, N their components in directions in which the rest
      does not differ, and z and λ what belongs to that fit. With all of them but row i put back,
      the error of row i is :math:`(M^{-1} r)_i / (M^{-1})_{ii}` with

      .. math::
          M = N N' + \alpha \Big(z \Lambda (\Lambda + \alpha I)^{-1} z' + \frac{1}{\sum_{rest} s_j}
          + \operatorname{diag}(1 / s_i)\Big)

    - Rows far from all others, or of far more weight, are left out one by one; there are never
      more of them than weights to fit.

    Parameters
    ----------
    rows : Rows
    target : array of shape (n_rows,) or (n_classes, n_rows)
    weights : array of shape (n_rows,) or None
        Not negative, not all zero; ones if None. Rows without weight play no part in any fit; they
        get the score of the fit to all rows.
    alphas : array of shape (n_alphas,)
        Ridge penalties, not negative, in any order; the intercept is not penalised.
    fit_intercept : bool
        Whether b is fitted, or zero.

    Returns
    -------
    array of shape (n_alphas, n_rows) or (n_alphas, n_classes, n_rows)
        NaN only for a row that alone has weight, with an intercept: nothing is left to fit.

    Notes
    -----
    Rows are read block by block; beside blocks and the result, no array is larger than
    (n_columns, n_columns). Columns may have any scale and be far from zero: errors are about 1e-15
    times the condition number of the centred columns brought to equal length.
    """
    if not np.all(np.greater_equal(alphas, 0.0)):
        raise ValueError(f"alphas must not be negative, got {list(alphas)}.")
    if weights is None:
        weights = np.ones(rows.n_rows)
    if not weights.any():
        raise ValueError("weights must not all be zero: give some row a positive weight.")
    if applies(rows, int(np.count_nonzero(weights))):
        return _by_kernel(rows, target, weights, np.asarray(alphas), fit_intercept)
    if rows.n_columns > LARGEST_GRAM:
        raise ValueError(
            f"Leave-one-out takes a matrix of columns by columns, or of rows by rows: X has "
            f"{rows.n_columns:,} columns and more than {MOST_ROWS:,} labeled rows. Set alpha "
            "yourself, or choose it by cross-validation."
        )
    fit = Fit(rows, np.atleast_2d(target), weights, np.asarray(alphas), fit_intercept)
    errors, left = fit.errors()
    if fit.interpolates:
        for chosen in _pieces(np.flatnonzero(weights), rows.block_rows):
            fit.correct_interpolation(chosen, errors, left)
    else:
        doubtful = np.flatnonzero(left.min(axis=0, initial=1.0) <= fit.doubt)
        alone = fit.are_alone(doubtful)
        errors[:, :, doubtful[alone]] = fit.errors_of_alone(doubtful[alone])
        for i in doubtful[~alone]:
            errors[:, :, [i]] = fit.without(i).errors_outside(np.array([i]))
    for chosen in _pieces(np.flatnonzero(weights == 0), rows.block_rows):
        errors[:, :, chosen] = fit.errors_outside(chosen)
    scores: Vector = fit.targets - errors
    return scores[:, 0] if target.ndim == 1 else scores


def _by_kernel(
    rows: Rows, target: Vector, weights: Vector, alphas: Vector, fit_intercept: bool
) -> Vector:
    """Return the same for fewer rows than columns, from the kernel of the rows."""
    space = row_space(rows, weights, fit_intercept)
    targets = np.atleast_2d(target)
    centre = np.average(targets, axis=1, weights=weights) if fit_intercept else np.zeros(1)
    residual = targets[:, space.used] - centre[:, None]
    scores = np.empty((len(alphas), *targets.shape))
    used = space.used
    errors = leave_one_out_by_kernel(space, residual, alphas, fit_intercept)
    scores[:, :, used] = targets[:, used] - errors
    others = np.flatnonzero(weights == 0)
    for alpha, score in zip(alphas, scores, strict=True):
        if others.size:
            fit = solve_least_squares(
                rows, targets, weights, alpha=float(alpha), fit_intercept=fit_intercept
            )
            score[:, others] = rows.some(others).scores(fit.coef, fit.intercept)
    return scores[:, 0] if target.ndim == 1 else scores


def _pieces(indices: Indices, size: int) -> list[Indices]:
    return [indices[start : start + size] for start in range(0, len(indices), size)]
