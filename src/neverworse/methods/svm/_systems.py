"""How Newton steps are solved for: with a Gram matrix, or by conjugate gradients."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._conjugate_gradients import conjugate_gradients
from neverworse._typing import Indices, Matrix, Vector
from neverworse.methods._base import column_squares
from neverworse.methods.svm._newton import Design, LocalModel, System
from neverworse.projection import CANCELLATION, EPS, LARGEST_SQUARE, NonFiniteError, moments
from neverworse.rows import N_PARTS, SMALL, Rows, SparseRows, as_rows, map_in_threads

# With more columns than this, Newton steps by conjugate gradients are faster than with the matrix.
MAX_COLUMNS, MAX_SPARSE_COLUMNS = 1000, 300
# The Gram matrix is corrected where that takes fewer rows than to add it up again.
MAX_CHANGED_SHARE = 0.5
# A factor of the Gram matrix is good enough as long as its condition number (columns brought to
# equal length) leaves some digits. Beyond, orthogonal factors of the rows, unless there are many.
MIN_RCOND = 1e-10
MAX_QR_SIZE = 2**22
# A sparse matrix is cut down to the rows with curvature if at most this share has it.
MAX_ACTIVE_SHARE = 0.7
# Conjugate gradients stop when the residual has fallen to this fraction. Steps beyond the
# first few are nearly at the optimum, where an inexact one would only be taken again.
FIRST_ACCURACY, ACCURACY, N_FIRST = 0.03, 1e-4, 3


def prepare(
    rows: Rows, weights: Vector, alpha: float, fit_intercept: bool, penalise_intercept: bool
) -> tuple[Design, System]:
    """Check the rows, centre them, and choose how Newton steps are solved for.

    The weights are those of the loss: the curvature at scores of zero.
    """
    centred = fit_intercept and not penalise_intercept
    penalty = np.full(rows.n_columns + fit_intercept, alpha)
    if centred:
        penalty[-1] = 0.0
    absent = weights == 0.0 if not weights.all() else None
    most = MAX_SPARSE_COLUMNS if isinstance(rows, SparseRows) else MAX_COLUMNS
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
    squares = column_squares(rows, weights)
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


class GramSystem:
    """Keeps the Gram matrix of the rows with curvature, corrected for those that change.

    `gram` and `sums` are Σ h x x' and Σ h x over the centred rows x, with the curvatures h.
    """

    def __init__(self, design: Design, gram: Matrix, sums: Vector, curvature: Vector) -> None:
        self._design = design
        self._start = gram, sums, curvature
        self._gram, self._sums, self._curvature = gram, sums, curvature
        self._penalty = design.penalty
        self._factor: _Factor | None = None

    def fresh(self) -> GramSystem:
        """See `System.fresh`."""
        return GramSystem(self._design, *self._start)

    def step(self, model: LocalModel) -> Vector:
        """See `System.step`."""
        self._update(model)
        if self._factor is None or not np.array_equal(model.penalty, self._penalty):
            self._factor = _Factor(self._matrix(model.penalty), model.penalty)
            self._penalty = model.penalty
        factor = self._factor
        if factor.is_accurate or len(model.active) * len(model.penalty) > MAX_QR_SIZE:
            return factor.solve(-model.gradient)
        return _orthogonal_step(self._design, model, factor.scale)

    def _update(self, model: LocalModel) -> None:
        changed = np.flatnonzero(model.curvature != self._curvature)
        if not changed.size:
            return
        if len(changed) < MAX_CHANGED_SHARE * len(model.active):
            difference = model.curvature[changed] - self._curvature[changed]
            for sign in (1.0, -1.0):
                these = sign * difference > 0.0
                gram, sums = self._moments(changed[these], abs(difference[these]))
                self._gram, self._sums = self._gram + sign * gram, self._sums + sign * sums
        else:
            self._gram, self._sums = self._moments(model.active, model.curvature[model.active])
        self._curvature, self._factor = model.curvature, None

    def _moments(self, indices: Indices, weights: Vector) -> tuple[Matrix, Vector]:
        """Return the sums over some of the centred rows."""
        gram, sums = gram_of(self._design.rows, indices, weights)
        centre, total = self._design.centre, float(weights.sum())
        cross = np.outer(sums - 0.5 * total * centre, centre)
        return gram - cross - cross.T, sums - total * centre

    def _matrix(self, penalty: Vector) -> Matrix:
        """Return the second derivative of the objective."""
        design, d = self._design, self._design.rows.n_columns
        if not design.fit_intercept:
            return self._gram + np.diag(penalty)
        matrix = np.empty((d + 1, d + 1))
        matrix[:d, :d] = self._gram
        matrix[:d, d] = matrix[d, :d] = self._sums
        matrix[design.idle] = matrix[:, design.idle] = 0.0
        matrix[d, d] = self._curvature.sum()
        matrix[np.diag_indices_from(matrix)] += penalty
        return matrix


class _Factor:
    """A triangular factor of a positive definite matrix, with columns brought to one scale.

    The matrix is overwritten. Its diagonal is at least `smallest`, up to rounding errors.
    """

    def __init__(self, matrix: Matrix, smallest: Vector) -> None:
        diagonal = np.maximum(np.diag(matrix), smallest)
        diagonal[diagonal == 0.0] = 1.0  # the intercept, where no row has curvature
        self.scale = 1.0 / np.sqrt(diagonal)
        matrix *= np.outer(self.scale, self.scale)
        # Where floating point does not see the penalty, columns that depend on each other make the
        # matrix singular, or worse. What is added is not more than its rounding errors.
        added, failed = 0.0, True
        while failed:
            matrix[np.diag_indices_from(matrix)] = 1.0 + added
            self._triangle, failed = lapack.dpotrf(matrix, lower=0)
            added = max(10.0 * added, len(matrix) * EPS)
        rcond, _ = lapack.dpocon(self._triangle, np.abs(matrix).sum(axis=0).max(), uplo="U")
        self.is_accurate = rcond > MIN_RCOND

    def solve(self, right: Vector) -> Vector:
        """Solve the linear system."""
        solution, _ = lapack.dpotrs(self._triangle, self.scale * right, lower=0)
        solved: Vector = self.scale * solution
        return solved


def _orthogonal_step(design: Design, model: LocalModel, scale: Vector) -> Vector:
    """Solve as a least squares problem, which does not square the condition number.

    The step brings each active row to its margin, and the parameters to zero, as far as possible.
    """
    root = np.sqrt(model.curvature[model.active])
    block = design.take(model.active) * root[:, None]
    penalties = np.sqrt(model.penalty)
    matrix = np.vstack([block, np.diag(penalties)]) * scale
    target = np.concatenate([-model.slope[model.active] / root, -penalties * model.parameters])
    solution = linalg.lstsq(matrix, target, cond=EPS, lapack_driver="gelsy", check_finite=False)[0]
    step: Vector = scale * solution
    return step


class ConjugateSystem:
    """Multiplies with the second derivative of the objective, and never forms it."""

    def __init__(self, design: Design) -> None:
        self._design = design
        self._n_steps = 0

    def fresh(self) -> ConjugateSystem:
        """See `System.fresh`."""
        return ConjugateSystem(self._design)

    def step(self, model: LocalModel) -> Vector:
        """See `System.step`; preconditioned with the diagonal."""
        self._n_steps += 1
        accuracy = FIRST_ACCURACY if self._n_steps <= N_FIRST else ACCURACY
        design, curvature = self._active(model)
        inverse = 1.0 / _diagonal(design, curvature, model.penalty)

        def product(direction: Vector) -> Vector:
            weights = design.weights(direction)
            _, summed, total = design.rows.scores_and_sum(
                weights.coef, weights.intercept, lambda scores, rows: curvature[rows] * scores
            )
            return design.gather(summed[0], float(total[0])) + model.penalty * direction

        def square(residual: Vector) -> float:
            return float(residual @ (inverse * residual))

        smallest = accuracy**2 * square(model.gradient)
        return conjugate_gradients(
            product,
            -model.gradient,
            lambda residual: square(residual) <= smallest,
            precondition=lambda residual: inverse * residual,
        ).x

    def _active(self, model: LocalModel) -> tuple[Design, Vector]:
        """Leave out rows without curvature, if that is worth a copy of the others."""
        design, active = self._design, model.active
        most = MAX_ACTIVE_SHARE * design.rows.n_rows
        if not isinstance(design.rows, SparseRows) or len(active) > most:
            return design, model.curvature
        return design.with_rows(choose(design.rows, active)), model.curvature[active]


def _diagonal(design: Design, curvature: Vector, penalty: Vector) -> Vector:
    """Return the diagonal of the second derivative of the objective."""
    diagonal = column_squares(design.rows, curvature)
    if design.fit_intercept:
        total, centre = float(curvature.sum()), design.centre
        sums = design.rows.weighted_sum(curvature)
        diagonal = diagonal - centre * (2.0 * sums - total * centre)
        diagonal = np.append(np.maximum(diagonal, 0.0), total)
    diagonal = diagonal + penalty
    diagonal[diagonal == 0.0] = 1.0  # the intercept, where no row has curvature
    return diagonal


def choose(rows: Rows, indices: Indices) -> Rows:
    """Return a copy of some rows (which are not shifted), sparse if they are."""
    if isinstance(rows, SparseRows):
        return SparseRows(rows._X[indices])
    return as_rows(rows.take(indices))


def gram_of(rows: Rows, indices: Indices, weights: Vector) -> tuple[Matrix, Vector]:
    """Return E'SE and E's for some rows and their weights, which are not negative."""
    if isinstance(rows, SparseRows) and rows.shift is None:
        return choose(rows, indices).gram(weights)
    d, step = rows.n_columns, rows.block_rows

    def part(chosen: Indices) -> tuple[Matrix, Vector]:
        gram, total = np.zeros((d, d)), np.zeros(d)
        for lo in range(0, len(chosen), step):
            these = chosen[lo : lo + step]
            block = rows.take(indices[these])
            total += weights[these] @ block
            block *= np.sqrt(weights[these])[:, None]
            gram += block.T @ block
        return gram, total

    n_parts = N_PARTS if len(indices) * d >= SMALL else 1
    parts = map_in_threads(part, np.array_split(np.arange(len(indices)), n_parts))
    return sum((p[0] for p in parts), np.zeros((d, d))), sum((p[1] for p in parts), np.zeros(d))
