"""From rows and their weights to what the solver needs."""

from __future__ import annotations

import numpy as np

from neverworse._typing import Indices, Vector
from neverworse.methods.svm._chosen import squares_of
from neverworse.methods.svm._conjugate_system import ConjugateSystem
from neverworse.methods.svm._design import Design
from neverworse.methods.svm._gram_system import GramSystem
from neverworse.methods.svm._local import System
from neverworse.projection import NonFiniteError
from neverworse.projection.coordinates.moments import CANCELLATION, LARGEST_SQUARE, moments
from neverworse.rows import Rows, SparseRows

# With more columns than this, Newton steps by conjugate gradients are faster than with the matrix.
MOST_COLUMNS, MOST_SPARSE_COLUMNS = 1000, 300


def prepare(
    rows: Rows, weights: Vector, alpha: float, fit_intercept: bool, penalise_intercept: bool
) -> tuple[Design, System]:
    """Check the rows, centre them, and choose how Newton steps are solved for.

    Parameters
    ----------
    rows : Rows
    weights : array of shape (n_rows,)
        The weight of each row in the loss; the curvature at scores of zero.
    alpha : float
        Penalty of the weights, and of the intercept if that is penalised.
    fit_intercept, penalise_intercept : bool
    """
    centred = fit_intercept and not penalise_intercept
    penalty = np.full(rows.n_columns + fit_intercept, alpha)
    if centred:
        penalty[-1] = 0.0
    absent = weights == 0.0 if not weights.all() else None
    most = MOST_SPARSE_COLUMNS if isinstance(rows, SparseRows) else MOST_COLUMNS
    if rows.n_columns > most:
        rows, centre, idle = _centre(rows, weights, centred)
        design = Design(rows, centre, idle, penalty, fit_intercept, absent)
        return design, ConjugateSystem(design)
    sums = moments(rows, weights, centred)
    idle = np.flatnonzero(~sums.varies)
    design = Design(sums.rows, sums.mean, idle, penalty, fit_intercept, absent)
    summed = np.zeros(rows.n_columns) if centred else rows.weighted_sum(weights)
    return design, GramSystem(design, sums.gram, summed, weights)


def _centre(rows: Rows, weights: Vector, centred: bool) -> tuple[Rows, Vector, Indices]:
    """Return the rows (shifted where they are dense and far from zero), mean and idle columns."""
    squares = squares_of(rows, weights)
    if not (squares < LARGEST_SQUARE).all():
        raise NonFiniteError("the squares of the rows are not finite, or too large")
    mean = np.zeros(rows.n_columns)
    empty = np.flatnonzero(squares == 0.0)
    if not centred:
        return rows, mean, empty
    total = float(weights.sum())
    mean = rows.weighted_sum(weights) / total
    left = squares - total * mean**2
    # Most columns of texts are empty: looking at each of them would take longer than the fit.
    doubtful = np.flatnonzero((left <= CANCELLATION * squares) & (squares > 0.0))
    used = weights > 0.0
    constant = [j for j in doubtful.tolist() if np.ptp(rows.column(j)[used]) == 0.0]
    if len(constant) < len(doubtful) and not isinstance(rows, SparseRows):
        rows, mean = rows.shifted(mean), np.zeros(rows.n_columns)
    return rows, mean, np.union1d(empty, constant).astype(np.intp)
