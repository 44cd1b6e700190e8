"""The finite Newton method of Keerthi and DeCoste for the squared hinge loss of linear scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._budget import Budget
from neverworse._iterations import conjugate_gradients
from neverworse._typing import Indices, Matrix, Vector
from neverworse.projection import EPS, Weights
from neverworse.rows import N_PARTS, Rows, SparseRows, map_in_threads, single_threaded_blas

# The Gram matrix is updated if fewer rows than this share of the active ones have changed. A step
# is solved with the last factor if these are at most this share of the columns, up to this error.
MAX_CHANGED_SHARE, MAX_CORRECTED_SHARE, MAX_ERROR = 0.5, 0.06, 1e-8
# Below this reciprocal condition number (columns of equal length), rows are factored instead of
# their Gram matrix, unless they have more numbers than this.
MIN_RCOND, MAX_QR_SIZE = 1e-10, 2**22
MAX_ACTIVE_SHARE = 0.7  # up to which a sparse matrix is reduced to the active rows
# Relative residual of conjugate gradients, for the first few steps and for all others.
FIRST_ACCURACY, ACCURACY, N_FIRST = 0.03, 1e-4, 3
# Where rounding errors end the descent, it has converged if so little was left to gain.
NEGLIGIBLE_GAIN = 1e-8
MAX_IDLE_STEPS = 30  # in a row that lower the objective by less than a rounding error
SLOPE_REDUCTION = 1e-6  # to which the line search lowers the slope


@dataclass(frozen=True)
class Design:
    """Scores as a linear function of parameters: the weights of centred rows, and an intercept.

    Rows are centred only if the intercept has no penalty, so that the penalty stays the same.
    """

    rows: Rows  # perhaps shifted
    centre: Vector  # (n_columns,): subtracted from the rows, by algebra
    idle: Indices  # columns in which no row differs from the centre: exactly zero once centred
    penalty: Vector  # (n_parameters,): the penalty is ½ Σ penalty · parameter²

    def scores(self, parameters: Vector) -> Vector:
        """Return the scores of all rows."""
        weights = self.weights(parameters)
        return self.rows.scores(weights.coef, weights.intercept)[0]

    def gather(self, weighted_sum: Vector, total: float) -> Vector:
        """Return the sum over centred rows, given the sum over rows and that of the weights."""
        centred = weighted_sum - total * self.centre
        centred[self.idle] = 0.0
        return np.append(centred, total)[: len(self.penalty)]

    def gram(self, indices: Indices, weights: Vector) -> Matrix:
        """Return the weighted sum of xx' over some of the centred rows."""
        root = np.sqrt(weights)

        def part(blocks: list[slice]) -> Matrix:
            total = np.zeros((len(self.penalty), len(self.penalty)))
            for these in blocks:
                block = self.take(indices[these]) * root[these, None]
                total += block.T @ block
            return total

        size = self.rows.block_rows
        blocks = [slice(lo, lo + size) for lo in range(0, max(len(indices), 1), size)]
        n_parts = min(N_PARTS, len(blocks))  # a matrix for each; there may be many blocks
        parts = map_in_threads(part, [blocks[k::n_parts] for k in range(n_parts)])
        return sum(parts[1:], parts[0])

    def take(self, indices: Indices) -> Matrix:
        """Return some of the centred rows, with a one for the intercept behind them."""
        taken = self.rows.take(indices)
        taken -= self.centre
        taken[:, self.idle] = 0.0
        if len(self.penalty) > taken.shape[1]:
            taken = np.column_stack([taken, np.ones(len(taken))])
        return taken

    @property
    def _origin(self) -> Vector:
        return self.centre if self.rows.shift is None else self.centre + self.rows.shift

    def weights(self, parameters: Vector) -> Weights:
        """Return the weights for rows that are neither shifted nor centred."""
        coef, intercept = np.split(np.atleast_2d(parameters), [self.rows.n_columns], axis=1)
        return Weights(coef, intercept.sum(axis=1) - coef @ self._origin)

    def parameters(self, weights: Weights) -> Vector:
        """Return the parameters that belong to weights."""
        intercept = weights.intercept + weights.coef @ self._origin
        return np.append(weights.coef[0], intercept)[: len(self.penalty)]


@dataclass(frozen=True)
class Solution:
    """Where the solver is, or has ended: parameters with their scores.

    Scores are stored as slacks, which may be less than the rounding errors of the scores.
    """

    parameters: Vector  # see `Design`
    up: Vector  # (n_rows,): 1 - score, the slack of a positive label
    down: Vector  # (n_rows,): 1 + score, the slack of a negative label
    value: float = float("nan")  # of the objective
    converged: bool = False

    @classmethod
    def of(cls, parameters: Vector, scores: Vector) -> Solution:
        return cls(parameters, 1.0 - scores, 1.0 + scores)

    def moved(self, length: float, step: Vector, change: Vector) -> Solution:
        moved = length * change
        return Solution(self.parameters + length * step, self.up - moved, self.down + moved)

    @property
    def scores(self) -> Vector:
        return 0.5 * (self.down - self.up)


@dataclass(frozen=True)
class LocalModel:
    """The quadratic function that the objective is, as long as no row crosses its margin."""

    design: Design
    parameters: Vector  # (n_parameters,): where this is
    slope: Vector  # (n_rows,): derivative of the loss with respect to each score
    curvature: Vector  # (n_rows,): second derivative
    gradient: Vector  # (n_parameters,): of the objective

    @cached_property
    def active(self) -> Indices:
        """The rows within their margin."""
        return np.flatnonzero(self.curvature > 0.0)


@dataclass(frozen=True)
class Objective:
    """The loss ½ Σ p max(0, 1 - f)² + n max(0, 1 + f)² of the scores f, and the penalty."""

    design: Design
    positive: Vector  # (n_rows,): p. A known label has one of the two costs, a soft label both
    negative: Vector  # (n_rows,): n

    def value(self, at: Solution) -> float:
        up, down = np.maximum(at.up, 0.0), np.maximum(at.down, 0.0)
        loss = np.vdot(self.positive * up, up) + np.vdot(self.negative * down, down)
        penalty = np.vdot(self.design.penalty * at.parameters, at.parameters)
        return 0.5 * float(loss + penalty)

    def model(self, at: Solution) -> LocalModel:
        design, slope = self.design, self._slope(at)
        gradient = design.gather(design.rows.weighted_sum(slope), float(slope.sum()))
        gradient += design.penalty * at.parameters
        return LocalModel(design, at.parameters, slope, self._curvature(at), gradient)

    def minimum_along(self, step: Vector, start: Solution) -> Solution:
        """Find the zero of the piecewise linear derivative along a step, by bracketed Newton."""
        change, penalised = self.design.scores(step), self.design.penalty * step
        constant, linear = float(penalised @ start.parameters), float(penalised @ step)
        steepest = abs(constant + float(np.vdot(self._slope(start), change)))
        low, high, length = 0.0, np.inf, 1.0
        for _ in range(100):
            at = start.moved(length, step, change)
            first = constant + length * linear + float(np.vdot(self._slope(at), change))
            if abs(first) <= SLOPE_REDUCTION * steepest:
                break
            second = linear + float(np.vdot(self._curvature(at) * change, change))
            low, high = (length, high) if first < 0.0 else (low, length)
            length = length - first / second if second > 0.0 else np.inf
            if not low < length < high:
                length = 0.5 * (low + high) if high < np.inf else 2.0 * low
        at = start.moved(length, step, change)
        return replace(at, value=self.value(at))

    def _slope(self, at: Solution) -> Vector:
        """Return the derivative of the loss, for each score."""
        up, down = np.maximum(at.up, 0.0), np.maximum(at.down, 0.0)
        return self.negative * down - self.positive * up

    def _curvature(self, at: Solution) -> Vector:
        """Return the second derivative of the loss, for each score; zero beyond the margin."""
        return self.positive * (at.up > 0.0) + self.negative * (at.down > 0.0)


@single_threaded_blas()
def minimise(
    objective: Objective,
    system: System,
    budget: Budget,
    tol: float,
    start: Solution | None = None,
    stage: str | None = None,
) -> Solution:
    """Minimise the objective, until a step promises less than `tol` of it.

    A step goes towards the minimum of the quadratic function that the objective is on the rows
    within the margin, as far as it decreases. Steps are reported if they have a name, `stage`.
    """
    n_rows = objective.design.rows.n_rows
    if start is None:
        start = Solution.of(np.zeros(len(objective.design.penalty)), np.zeros(n_rows))
    at = replace(start, value=objective.value(start), converged=False)
    idle = 0
    while True:
        model = objective.model(at)
        step = system.step(model)
        promise = -0.5 * float(model.gradient @ step)
        if stage is not None:
            budget.report(stage, n_rows, promise, at.value)
        if abs(promise) <= tol * at.value:
            return replace(at, converged=True)
        if not budget.spend():
            return at
        moved = objective.minimum_along(step, at)
        idle = 0 if moved.value < at.value else idle + 1
        if idle > MAX_IDLE_STEPS or not moved.value <= at.value * (1.0 + 8.0 * EPS):
            return replace(at, converged=abs(promise) <= NEGLIGIBLE_GAIN * at.value)
        at = moved


class GramSystem:
    """Solves for Newton steps with the Gram matrix of the rows with curvature, and its factor.

    Few rows enter or leave the margin in a step. As long as these are much fewer than the columns,
    the solution is corrected for them; beyond, the matrix is updated and factored again.
    """

    def __init__(self, gram: Matrix, curvature: Vector) -> None:
        self._gram, self._curvature = gram, curvature
        self._factor: tuple[Vector, _Factor] | None = None  # of this penalty

    def step(self, model: LocalModel) -> Vector:
        penalty, difference = model.design.penalty, model.curvature - self._curvature
        changed = np.flatnonzero(difference)
        if self._factor is not None and np.array_equal(penalty, self._factor[0]):
            step = self._corrected(model, self._factor[1], changed, difference[changed])
            if step is not None:
                return step
        if len(changed) < MAX_CHANGED_SHARE * len(model.active):
            for sign in (1.0, -1.0):
                these = changed[sign * difference[changed] > 0.0]
                gram = model.design.gram(these, np.abs(difference[these]))
                self._gram = self._gram + sign * gram
        else:
            self._gram = model.design.gram(model.active, model.curvature[model.active])
        self._curvature = model.curvature
        factor = _Factor(self._gram + np.diag(penalty), penalty)
        self._factor = penalty, factor
        if factor.is_accurate or len(model.active) * len(penalty) > MAX_QR_SIZE:
            return factor.solve(-model.gradient)
        return _orthogonal_step(model, factor.scale)

    def _corrected(
        self, model: LocalModel, factor: _Factor, changed: Indices, weights: Vector
    ) -> Vector | None:
        """Solve with the factor of another set of rows, by Woodbury's formula, if that is exact."""
        gradient = model.gradient
        if not factor.is_accurate or len(changed) > MAX_CORRECTED_SHARE * len(gradient):
            return None
        rows = model.design.take(changed)
        solved, step = factor.solve(rows.T), factor.solve(-gradient)
        inner = np.diag(1.0 / weights) + rows @ solved
        step -= solved @ linalg.lstsq(inner, rows @ step, check_finite=False)[0]
        residual = self._gram @ step + rows.T @ (weights * (rows @ step))
        residual += model.design.penalty * step + gradient
        error = np.linalg.norm(factor.scale * residual)
        return step if error <= MAX_ERROR * np.linalg.norm(factor.scale * gradient) else None


class _Factor:
    """A triangular factor of a matrix, which it overwrites, with columns of equal length."""

    def __init__(self, matrix: Matrix, smallest: Vector) -> None:
        diagonal = np.maximum(np.diag(matrix), smallest)
        diagonal[diagonal == 0.0] = 1.0  # the intercept, where no row has curvature
        self.scale = 1.0 / np.sqrt(diagonal)
        matrix *= np.outer(self.scale, self.scale)
        # Dependent columns make the matrix singular if the penalty is lost in rounding errors. A
        # multiple of the identity of their size is added.
        added, failed = 0.0, True
        while failed:
            matrix[np.diag_indices_from(matrix)] = 1.0 + added
            self._triangle, failed = lapack.dpotrf(matrix, lower=0)
            added = max(10.0 * added, len(matrix) * EPS)
        rcond, _ = lapack.dpocon(self._triangle, np.abs(matrix).sum(axis=0).max(), uplo="U")
        self.is_accurate = rcond > MIN_RCOND

    def solve(self, right: Vector) -> Vector:
        solution, _ = lapack.dpotrs(self._triangle, (self.scale * right.T).T, lower=0)
        return (self.scale * solution.T).T


def _orthogonal_step(model: LocalModel, scale: Vector) -> Vector:
    """Solve as a least squares problem, which does not square the condition number."""
    root = np.sqrt(model.curvature[model.active])
    block = model.design.take(model.active) * root[:, None]
    penalties = np.sqrt(model.design.penalty)
    matrix = np.vstack([block, np.diag(penalties)]) * scale
    target = np.concatenate([-model.slope[model.active] / root, -penalties * model.parameters])
    solution = linalg.lstsq(matrix, target, cond=EPS, lapack_driver="gelsy", check_finite=False)[0]
    return scale * solution


@dataclass
class ConjugateSystem:
    """The same by conjugate gradients, preconditioned with the diagonal: no matrix is formed."""

    n_steps: int = 0

    def step(self, model: LocalModel) -> Vector:
        self.n_steps += 1
        accuracy = FIRST_ACCURACY if self.n_steps <= N_FIRST else ACCURACY
        design, curvature = model.design, model.curvature
        most = MAX_ACTIVE_SHARE * design.rows.n_rows
        if isinstance(design.rows, SparseRows) and len(model.active) <= most:
            design = replace(design, rows=design.rows.some(model.active))
            curvature = curvature[model.active]
        centre, total = design.centre, float(curvature.sum())
        squares = design.rows.squares(curvature)
        squares -= centre * (2.0 * design.rows.weighted_sum(curvature) - total * centre)
        diagonal = np.append(np.maximum(squares, 0.0), total)[: len(design.penalty)]
        diagonal += design.penalty
        diagonal[diagonal == 0.0] = 1.0  # the intercept, where no row has curvature

        def product(direction: Vector) -> Vector:
            weights = design.weights(direction)
            _, summed, total = design.rows.scores_and_sum(
                weights.coef, weights.intercept, lambda scores, rows: curvature[rows] * scores
            )
            return design.gather(summed[0], float(total[0])) + design.penalty * direction

        def square(residual: Vector) -> float:
            return float(residual @ (residual / diagonal))

        smallest = accuracy**2 * square(model.gradient)
        return conjugate_gradients(
            product,
            -model.gradient,
            lambda residual: square(residual) <= smallest,
            precondition=lambda residual: residual / diagonal,
        ).x


System = GramSystem | ConjugateSystem
