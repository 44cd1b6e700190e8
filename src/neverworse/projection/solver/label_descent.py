r"""Soft labels by accelerated projected gradients, where very many columns leave no factors.

Half the squared distance is a convex function of the soft labels, whose gradient in the labels of
row j is :math:`\omega_j t_j`. Its curvature is at most that of the identity in the weights of the
loss, whatever the rows are: the loss on all rows contains that on any one of them. So a step by
:math:`-t_j` (times the weight in the loss over that of the hinge), and then to the nearest allowed
label, never does harm, and with a penalty of the size of typical eigenvalues curvatures are not
far below one. Momentum, dropped whenever it points uphill, does the rest.

Every gradient takes a linear system, whose solution changes as little as the labels do: a few steps
of conjugate gradients, see `row_system`. Newton's method needs fewer steps, but with several
classes most rows have labels between corners, which change their faces all along its steps.

The last function is the gradient descent of Krijthe and Loog, by L-BFGS-B: a slow reference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
from scipy import optimize

from neverworse._accelerated_gradient import accelerated_gradient
from neverworse._budget import Budget
from neverworse._conjugate_gradients import conjugate_gradients
from neverworse._typing import Matrix, Vector
from neverworse.projection.coordinates.matrix_free import MatrixFreeCoordinates
from neverworse.projection.label_sets import Box, Curvature
from neverworse.projection.solver.newton import (
    ROUGH,
    DualSolution,
    Iterate,
    Metric,
    Newton,
    duality_gap,
    half_square,
    is_optimal,
    minimise,
)
from neverworse.projection.solver.problem import Projection, StreamedHinges
from neverworse.projection.solver.row_system import RowSystem
from neverworse.projection.totals import Totals

MAX_STEPS = 2000
START = 1e-3  # error of the first gradient, as a share of the labels
INEXACT = 0.3  # error of a gradient, as a share of the last step
POLISH = 0.01  # the same, at the end
MAX_MOMENTUM = 0.96  # more would suit curvatures below a thousandth, and shake all others
CHECK = 10  # steps from one exact look at the value and the residual to the next


@dataclass
class Point:
    """Soft labels with the solution of their linear system; all of it is affine in the labels."""

    q: Matrix  # (n_rows, n_classes): soft labels
    # (n_rows, n_classes): solution of the linear system of the labels, and its residual
    y: Matrix
    residual: Matrix
    t: Matrix  # (n_rows, n_classes): scores; zero for rows without a hinge

    def copy_from(self, other: Point) -> None:
        """Become another point."""
        self.q, self.y, self.residual, self.t = other.q, other.y, other.residual, other.t

    def beyond(self, other: Point, length: float) -> Point:
        """Return the point on the line from another one through this, farther by `length`."""
        return Point(
            self.q + length * (self.q - other.q),
            self.y + length * (self.y - other.y),
            self.residual + length * (self.residual - other.residual),
            self.t + length * (self.t - other.t),
        )


class LabelDescent:
    """Minimises the distance over soft labels.

    Parameters
    ----------
    problem : Projection
        Without totals.
    space : MatrixFreeCoordinates
        Its coordinates, with a penalty.
    budget : Budget
    """

    def __init__(self, problem: Projection, space: MatrixFreeCoordinates, budget: Budget) -> None:
        self._problem = problem
        self._space = space
        self._budget = budget
        linear = problem.linear
        self._system = RowSystem(space, len(linear), budget)
        self._omega = problem.weights[:, None]
        seen = space.weights[:, None] > 0.0
        # Weights of the hinges in units of those in the loss, and one over their roots.
        self._ratio = np.divide(
            self._omega, space.weights[:, None], out=np.zeros_like(self._omega), where=seen
        )
        self._unroot = np.divide(1.0, self._system.root, out=np.zeros_like(self._omega), where=seen)
        self._hinge = self._omega > 0.0
        d = len(space.unit)
        self._linear = np.ascontiguousarray((linear[:, :d] / space.unit).T)
        self._linear_shift = linear[:, d:]  # of the intercept, if there is one
        self._constant = self._system.products(self._linear)  # what all right-hand sides contain
        self._n_steps, self._moved, self._value_near = 0, 0.0, 0.0

    @property
    def applies(self) -> bool:
        """Whether systems are solved so fast that many steps are no worse than Newton's few."""
        return self._system.is_well_conditioned and not self._budget.exhausted

    def run(self, q: Matrix, tol: float) -> tuple[Matrix, Matrix]:
        """Start from soft labels `q`; return the dual point and the labels at the end.

        Parameters
        ----------
        q : array of shape (n_classes, n_rows)
        tol : float
            Duality gap at the end, relative to the value.
        """
        tall = np.ascontiguousarray(q.T) * self._hinge
        self._moved = START * self._length(tall)
        self._last = self._at(tall, self._nowhere(tall), self._moved)
        end = accelerated_gradient(
            self._last,
            step=self._step,
            extrapolate=Point.beyond,
            uphill=self._uphill,
            stop=partial(self._stop, tol=tol),
            max_momentum=MAX_MOMENTUM,
        )
        return self._dual(end), self._labels(end)

    def _step(self, ahead: Point) -> Point:
        """Return the point of the allowed labels nearest to where the gradient leads."""
        aim = ahead.q - np.divide(
            ahead.t, self._ratio, out=np.zeros_like(ahead.t), where=self._hinge
        )
        moved = np.ascontiguousarray(self._problem.shape.project(aim.T).T) * self._hinge
        self._moved = self._length(moved - ahead.q)
        return self._at(moved, ahead, INEXACT * self._moved)

    def _uphill(self, ahead: Point, new: Point, here: Point) -> bool:
        return float(np.vdot(self._omega * (ahead.q - new.q), new.q - here.q)) > 0.0

    def _stop(self, here: Point, tol: float) -> bool:
        """Make the point more accurate now and then; say whether it is good enough."""
        if self._n_steps % CHECK == 0:
            self._refresh(here)
            self._value_near = self._value(here)
        gap, value, floor = self._gap(here), self._value_near, self._problem.floor
        if is_optimal(gap, value, tol, floor):  # is it, where the scores are more accurate?
            here.copy_from(self._at(here.q, here, POLISH * self._moved))
            gap, value = self._gap(here), self._value(here)
        self._budget.report("labels", len(self._omega), gap, value)
        self._n_steps += 1
        self._last, self._value_near = here, value
        done = is_optimal(gap, value, tol, floor) or self._n_steps > MAX_STEPS
        return done or not self._budget.spend()

    def _nowhere(self, like: Matrix) -> Point:
        """Return labels of zero, whose system is not solved."""
        nothing = np.zeros_like(like)
        return Point(nothing, nothing, self._constant, nothing)

    def _length(self, change: Matrix) -> float:
        """Return the length of a change of labels, in the units of the linear system."""
        return float(np.linalg.norm(self._system.root * self._ratio * change))

    def _refresh(self, here: Point) -> None:
        """Free a point, and the one before it, of the rounding errors of the way there.

        Both residuals change by the same: momentum would make much of a difference.
        """
        system = self._system
        right = self._constant + system.alpha * system.root * self._ratio * here.q
        change = system.residual(right, here.y) - here.residual
        here.residual = here.residual + change
        if self._last is not here:
            self._last.residual = self._last.residual + change

    def _at(self, q: Matrix, near: Point, error: float) -> Point:
        """Return the point of labels near others, with scores that are off by `error` at most."""
        system = self._system
        change = system.root * self._ratio * (q - near.q)
        residual = near.residual + system.alpha * change
        y, residual = system.solve(near.y, residual, error)
        t = self._ratio * q - self._unroot * y
        t += self._intercepts(q) @ self._space.shifts
        t *= self._hinge
        return Point(q, y, residual, t)

    def _intercepts(self, q: Matrix) -> Matrix:
        """Return the coordinates of the intercepts, of shape (n_classes, 1) (or 0, without)."""
        total = (self._omega * q).sum(axis=0)[:, None]
        return total * self._space.shifts - self._linear_shift

    def _gap(self, point: Point) -> float:
        return duality_gap(point.t.T, point.q.T, self._problem.weights, self._problem.shape)

    def _coef(self, point: Point) -> Matrix:
        """Return the weights, of shape (n_columns, n_classes)."""
        coef = self._system.combine(point.y)
        coef -= self._linear
        coef /= self._system.alpha
        return coef

    def _value(self, point: Point) -> float:
        """Return half the squared distance."""
        system, shift = self._system, self._intercepts(point.q)
        scored = system.root * self._ratio * point.q - point.y
        coef = self._coef(point)
        squares = np.vdot(scored, scored) + system.alpha * np.vdot(coef, coef)
        return 0.5 * float(squares + np.vdot(shift, shift))

    def _dual(self, point: Point) -> Matrix:
        coef = self._coef(point).T / self._space.unit
        return np.concatenate([coef, self._intercepts(point.q)], axis=1)

    def _labels(self, point: Point) -> Matrix:
        """Return the labels as the other solver has them: allowed ones, for all rows."""
        return self._problem.shape.project(np.where(self._hinge, point.q, 0.0).T)


FIRST_SIGMA = 10.0  # of σ where systems are solved iteratively: a larger one takes more steps
FINER = 0.5  # gap of the soft labels, as a share of the gap that is wanted in the end
FORCING = (0.1, 0.5)  # relative accuracy of iterated Newton steps: finest, and coarsest
SMALLEST = 0.01  # of the squared length of a gradient that its inverse image has at least, about


class MatrixFree(Metric):
    """The metric of weights: products by passes over the rows, systems by conjugate gradients.

    Parameters
    ----------
    space : MatrixFreeCoordinates
    budget : Budget
        Ends iterations, and is told about them.
    """

    def __init__(self, space: MatrixFreeCoordinates, budget: Budget) -> None:
        self._space = space
        self._budget = budget

    def matvec(self, z: Matrix) -> Matrix:
        return self._space.matvec(z)

    def solve(self, p: Matrix, near: Matrix, error: float) -> tuple[Matrix, float]:
        solved = self._space.solve(p, error, near, self._stop)
        self._budget.n_passes += solved.n_products
        return solved.x, self._space.half_error(solved.residual)

    def half_square(self, z: Matrix, p: Matrix, totals: Totals | None) -> float:
        """See `Metric`; far from the solution, where z does not belong to p, by the length of p."""
        if totals is not None:
            z, p = z[:, :-1], p[:, :-1]
        return max(0.5 * float(np.vdot(z, p)), SMALLEST * half_square(p, None))

    def step(
        self,
        newton: Newton,
        at: Iterate,
        curve: Matrix,
        sigma: float,
        gradient: Matrix,
        accuracy: float,  # noqa: ARG002
        reduction: float,
    ) -> Matrix:
        weights = newton.hinges.weights
        curvature = Curvature.of(newton.shape, at.soft, weights, sigma)
        finest, coarsest = FORCING
        target = min(max(reduction, finest), coarsest) * float(np.linalg.norm(gradient))
        solved = conjugate_gradients(
            lambda z: self._space.curved(curvature, curve, z),
            -gradient,
            lambda residual: float(np.linalg.norm(residual)) <= target,
            stop=self._stop,
        )
        self._budget.n_passes += solved.n_products
        self._budget.report("Newton step", len(weights))
        return solved.x

    def _stop(self) -> bool:
        return self._budget.exhausted


def solve_matrix_free(problem: Projection, tol: float, budget: Budget) -> DualSolution:
    """Minimise by projected gradients, or by Newton's method with conjugate gradients.

    With a penalty, and totals that are not restricted, the former leave nothing to do but to check.

    Parameters
    ----------
    problem : Projection
        In coordinates that are not whitened.
    tol, budget
        See `working_set.solve`.
    """
    space = cast("MatrixFreeCoordinates", problem.coordinates)
    hinges, metric = StreamedHinges(space, problem.weights), MatrixFree(space, budget)
    shape, totals, floor = problem.shape, problem.totals, problem.floor
    z: Matrix = np.zeros_like(problem.linear)
    q = shape.project(problem.start())
    if space.alpha > 0.0 and totals is None:
        descent = LabelDescent(problem, space, budget)
        if descent.applies:
            z, q = descent.run(q, FINER * tol)
            primal = hinges.adjoint(problem.weights * q) - problem.linear
            error = ROUGH * max(tol * metric.half_square(z, primal, None), floor)
            newton = Newton(hinges, problem.linear, shape, totals, floor, budget, metric)
            solution = newton.paired(z, q, primal, error)
            budget.report("labels", len(problem.weights), solution.gap, solution.value)
            if solution.is_optimal(tol, floor) or budget.exhausted:
                return replace(solution, q=q[:, problem.unlabeled])
            z = solution.z
    solution = minimise(
        hinges,
        problem.linear,
        z,
        q,
        shape=shape,
        totals=totals,
        tol=tol,
        floor=floor,
        budget=budget,
        sigma=FIRST_SIGMA,
        metric=metric,
    )
    return replace(solution, q=solution.q[:, problem.unlabeled])


def solve_lbfgs(problem: Projection, tol: float, budget: Budget) -> DualSolution:
    """Minimise ½‖Σ s_j q_j k_j - l‖² over soft labels in [0, 1] by projected gradients.

    This is the gradient descent that Krijthe and Loog describe, started as they do from a half for
    every soft label, and here run on until the duality gap is closed or no progress is made.

    Parameters
    ----------
    problem : Projection
        In whitened coordinates, for labels of one number.
    tol, budget
        See `working_set.solve`.
    """
    used = np.flatnonzero(problem.weights)
    hinges = StreamedHinges(problem.coordinates, problem.weights).load(used)
    s = hinges.weights
    best = DualSolution(np.empty((1, 0)), np.full((1, len(s)), 0.5), np.inf, np.inf)

    def value_and_gradient(labels: Vector) -> tuple[float, Vector]:
        nonlocal best
        budget.spend()
        q = labels[None].copy()
        z = hinges.adjoint(s * q) - problem.linear
        t = hinges.scores(z)
        value = half_square(z, None)
        solution = DualSolution(z, q, duality_gap(t, q, s, Box()), value)
        if solution.gap < best.gap:
            best = solution
        return value, s * t[0]

    def stop(_: Vector) -> None:
        if budget.exhausted or best.is_optimal(tol, problem.floor):
            raise StopIteration

    gap = np.inf
    while True:  # its line search may give up early; another start from there may not
        optimize.minimize(
            value_and_gradient,
            best.q[0],
            jac=True,
            method="L-BFGS-B",
            bounds=optimize.Bounds(0.0, 1.0),
            callback=stop,
            options={"maxiter": 10**6, "maxfun": 10**7, "ftol": 0.0, "gtol": 0.0, "maxcor": 20},
        )
        if budget.exhausted or best.is_optimal(tol, problem.floor) or best.gap >= 0.9 * gap:
            q = np.zeros((1, len(problem.weights)))
            q[:, used] = best.q
            return replace(best, q=q[:, problem.unlabeled])
        gap = best.gap
