"""The finite Newton method for the squared hinge loss of linear scores.

S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast solution of large scale
linear SVMs", Journal of Machine Learning Research 6 (2005), 341-361.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from neverworse._budget import Budget
from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.projection import EPS, Weights
from neverworse.rows import Rows, single_threaded_blas

# Where rounding errors end the descent, it has converged if so little was left to gain.
NEGLIGIBLE_GAIN = 1e-8
# A step may be so short that it lowers the objective by less than a rounding error, and still bring
# a row into the margin that makes room for the next one. How many such steps are taken in a row:
MAX_IDLE_STEPS = 30
# The line search stops when the slope has fallen to this fraction.
SLOPE_REDUCTION = 1e-6


@dataclass(frozen=True)
class Design:
    """Scores as a linear function of parameters: the weights, and an intercept behind them.

    The parameters refer to centred rows, which makes the intercept nearly independent of the
    weights. The penalty is that of the weights of the rows as they are: centring does not change
    it, because rows are centred only if the intercept is not penalised.
    """

    rows: Rows  # perhaps shifted
    centre: Vector  # (n_columns,): subtracted from the rows, by algebra
    idle: Indices  # columns in which no row differs from the centre: exactly zero once centred
    penalty: Vector  # (n_parameters,): the penalty is ½ Σ penalty · parameter²
    fit_intercept: bool
    # (n_rows,): rows without weight, whose scores are of no interest and may be anything
    absent: Mask | None

    def scores(self, parameters: Vector) -> Vector:
        """Return the scores of all rows; zero for rows without weight."""
        weights = self.weights(parameters)
        scores: Vector = self.rows.scores(weights.coef, weights.intercept)[0]
        if self.absent is not None:
            scores[self.absent] = 0.0
        return scores

    def adjoint(self, slope: Vector) -> Vector:
        """Return the derivative by the parameters, given that by the scores."""
        return self.gather(self.rows.weighted_sum(slope), float(slope.sum()))

    def gather(self, weighted_sum: Vector, total: float) -> Vector:
        """Return the sum over centred rows, given the sum over rows and that of the weights."""
        if not self.fit_intercept:
            return weighted_sum
        centred = weighted_sum - total * self.centre
        centred[self.idle] = 0.0
        return np.append(centred, total)

    def weights(self, parameters: Vector) -> Weights:
        """Return the weights for rows that are neither shifted nor centred."""
        if not self.fit_intercept:
            return Weights(parameters[None], np.zeros(1))
        coef = parameters[None, :-1]
        intercept = parameters[-1] - coef @ self.centre
        shift = self.rows.shift
        return Weights(coef, intercept if shift is None else intercept - coef @ shift)

    def parameters(self, weights: Weights) -> Vector:
        """Return the parameters that belong to weights."""
        if not self.fit_intercept:
            return weights.coef[0]
        origin = self.centre if self.rows.shift is None else self.centre + self.rows.shift
        return np.append(weights.coef[0], weights.intercept + weights.coef @ origin)

    def take(self, indices: Indices) -> Matrix:
        """Return some of the centred rows, with a one for the intercept behind them."""
        taken = self.rows.take(indices)
        if not self.fit_intercept:
            return taken
        taken -= self.centre
        taken[:, self.idle] = 0.0
        return np.column_stack([taken, np.ones(len(taken))])

    def with_rows(self, rows: Rows) -> Design:
        """Return the same for some of the rows, all of which have a weight."""
        return replace(self, rows=rows, absent=None)


@dataclass(frozen=True)
class Margins:
    """Scores, as their distances from 1 and from -1.

    Where the penalty is tiny next to the squares of the columns, rows may be so close to the margin
    that the difference is less than the rounding error of a score; and yet this difference, times
    the row, is what balances the penalty. Distances have digits for it, scores have not.
    """

    up: Vector  # (n_rows,): 1 - score: how much is missing to the margin of positive rows
    down: Vector  # (n_rows,): 1 + score: how much is missing to the margin of negative rows

    @classmethod
    def of(cls, scores: Vector) -> Margins:
        """Return the margins of scores."""
        return cls(1.0 - scores, 1.0 + scores)

    def moved(self, length: float, change: Vector) -> Margins:
        """Return the margins once the scores have changed."""
        moved = length * change
        return Margins(self.up - moved, self.down + moved)

    @property
    def scores(self) -> Vector:
        """The scores."""
        return 0.5 * (self.down - self.up)


@dataclass(frozen=True)
class Hinges:
    r"""The loss of scores f, each with a margin above, below, or on both sides.

    .. math:: \frac12 \sum_i p_i \max(0, 1 - f_i)^2 + n_i \max(0, 1 + f_i)^2
    """

    # positive, negative: (n_rows,): the weights p and n. A row with a known label has one of them,
    # and no weight if both are zero; a row with a soft label has both
    positive: Vector
    negative: Vector

    def value(self, margins: Margins) -> float:
        """Return the loss."""
        up, down = np.maximum(margins.up, 0.0), np.maximum(margins.down, 0.0)
        # A row without weight may have a score whose square overflows: multiply one by one.
        loss = np.vdot(self.positive * up, up) + np.vdot(self.negative * down, down)
        return 0.5 * float(loss)

    def slope(self, margins: Margins) -> Vector:
        """Return the derivative of the loss, for each score."""
        up, slope = np.maximum(margins.up, 0.0), np.maximum(margins.down, 0.0)
        up *= self.positive
        slope *= self.negative
        slope -= up
        return slope

    def curvature(self, margins: Margins) -> Vector:
        """Return the second derivative of the loss, for each score; zero beyond the margin."""
        return self.positive * (margins.up > 0.0) + self.negative * (margins.down > 0.0)


@dataclass(frozen=True)
class LocalModel:
    """The quadratic function that the objective is, as long as no row crosses its margin."""

    parameters: Vector  # (n_parameters,): where this is
    penalty: Vector  # (n_parameters,)
    # slope, curvature: (n_rows,): first and second derivative of the loss by each score
    slope: Vector
    curvature: Vector
    gradient: Vector  # (n_parameters,): first derivative of the objective

    @classmethod
    def at(cls, parameters: Vector, margins: Margins, design: Design, hinges: Hinges) -> LocalModel:
        """Return the model of the objective at some parameters and their margins."""
        slope, curvature = hinges.slope(margins), hinges.curvature(margins)
        gradient = design.adjoint(slope) + design.penalty * parameters
        return cls(parameters, design.penalty, slope, curvature, gradient)

    @cached_property
    def active(self) -> Indices:
        """The rows within their margin."""
        return np.flatnonzero(self.curvature > 0.0)


class System(Protocol):
    """Solves for Newton steps, and remembers what helps with the next one.

    Columns whose scales differ by many orders of magnitude are brought to one scale, which changes
    the way to the solution and not the solution.
    """

    def step(self, model: LocalModel) -> Vector:
        """Return the way to the minimum of the model."""

    def fresh(self) -> System:
        """Return the system as it was in the beginning, when all rows had curvature."""


@dataclass(frozen=True)
class Solution:
    """Where the solver ended."""

    parameters: Vector  # see `Design`
    margins: Margins  # of all rows
    value: float  # of the objective
    converged: bool = False


@single_threaded_blas()
def minimise(
    design: Design,
    hinges: Hinges,
    system: System,
    budget: Budget,
    tol: float,
    start: Solution | None = None,
    stage: str | None = None,
) -> Solution:
    """Minimise the loss of the hinges plus the penalty of the design.

    On each set of rows within the margin the objective is quadratic. A step goes towards its
    minimum, as far as the objective decreases; it is the last one if the set stays the same. This
    happens after a finite number of steps, and a handful in practice.

    The system may come from an earlier call for the same design, the start from other hinges. It
    ends when a step promises less than `tol` of the objective. Steps are reported if they have a
    name, `stage`.
    """
    n_rows = design.rows.n_rows
    if start is None:
        parameters, margins = np.zeros(len(design.penalty)), Margins.of(np.zeros(n_rows))
    else:
        parameters, margins = start.parameters, start.margins
    value = objective(design, hinges, parameters, margins)
    idle = 0
    while True:
        model = LocalModel.at(parameters, margins, design, hinges)
        step = system.step(model)
        promise = -0.5 * float(model.gradient @ step)
        if stage is not None:
            budget.report(stage, n_rows, promise, value)
        if abs(promise) <= tol * value:
            return Solution(parameters, margins, value, True)
        if not budget.spend():
            return Solution(parameters, margins, value)
        change = design.scores(step)
        length = _length(design, hinges, parameters, margins, step, change)
        moved = parameters + length * step, margins.moved(length, change)
        lower = objective(design, hinges, *moved)
        idle = 0 if lower < value else idle + 1
        if idle > MAX_IDLE_STEPS or not lower <= value * (1.0 + 8.0 * EPS):
            return Solution(parameters, margins, value, abs(promise) <= NEGLIGIBLE_GAIN * value)
        (parameters, margins), value = moved, lower


def objective(design: Design, hinges: Hinges, parameters: Vector, margins: Margins) -> float:
    """Return the loss of the margins plus the penalty of the parameters."""
    penalty = 0.5 * float(np.vdot(design.penalty * parameters, parameters))
    return penalty + hinges.value(margins)


def _length(
    design: Design,
    hinges: Hinges,
    parameters: Vector,
    margins: Margins,
    step: Vector,
    change: Vector,
) -> float:
    """Return how far to go: to the zero of the derivative, which is piecewise linear.

    Newton's method finds it in finitely many iterations, inside a bracket that shrinks.
    """
    penalised = design.penalty * step
    constant, linear = float(penalised @ parameters), float(penalised @ step)

    def derivatives(length: float) -> tuple[float, float]:
        at = margins.moved(length, change)
        first = constant + length * linear + float(np.vdot(hinges.slope(at), change))
        return first, linear + float(np.vdot(hinges.curvature(at) * change, change))

    steepest = abs(constant + float(np.vdot(hinges.slope(margins), change)))
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(100):
        first, second = derivatives(length)
        if abs(first) <= SLOPE_REDUCTION * steepest:
            break
        low, high = (length, high) if first < 0.0 else (low, length)
        length = length - first / second if second > 0.0 else np.inf
        if not low < length < high:
            length = 0.5 * (low + high) if high < np.inf else 2.0 * low
    return length
