r"""Soft labels by accelerated projected gradients, where very many columns leave no factors.

Half the squared distance is a convex function of the soft labels, whose gradient in the labels of
row j is :math:`\omega_j t_j`. Its curvature is at most that of the identity in the weights of the
loss, whatever the rows are: the loss on all rows contains that on any one of them. So a step by
:math:`-t_j` (times the weight in the loss over that of the hinge), and then to the nearest allowed
label, never does harm, and with a penalty of the size of typical eigenvalues curvatures are not
far below one. Momentum, dropped whenever it points uphill, does the rest.

Every gradient takes a linear system, whose solution changes as little as the labels do: a few steps
of conjugate gradients, see `_row_system`. Newton's method needs fewer steps, but with several
classes most rows have labels between corners, which change their faces all along its steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from neverworse._typing import Matrix, Vector
from neverworse.projection.coordinates.matrix_free import WeightSpace
from neverworse.projection.coordinates.row_system import RowSystem
from neverworse.projection.problem import Projection, Solution
from neverworse.projection.solver.budget import Budget
from neverworse.projection.solver.hinges import StreamedHinges
from neverworse.projection.solver.metric import MatrixFree
from neverworse.projection.solver.newton import EXACT, DualSolution, duality_gap, minimise, paired

MOST_STEPS = 2000
START = 1e-3  # error of the first gradient, as a share of the labels
INEXACT = 0.3  # error of a gradient, as a share of the last step
POLISH = 0.01  # the same, at the end
MOST_MOMENTUM = 0.96  # more would suit curvatures below a thousandth, and shake all others
CHECK = 10  # steps from one exact look at the value and the residual to the next


@dataclass(frozen=True)
class Point:
    """Soft labels with the solution of their linear system; all of it is affine in the labels.

    Attributes
    ----------
    q : array of shape (n_rows, n_classes)
        Soft labels.
    y, residual : arrays of shape (n_rows, n_classes)
        Solution of the linear system of the labels, and its residual.
    t : array of shape (n_rows, n_classes)
        Scores; zero for rows without a hinge.
    """

    q: Matrix
    y: Matrix
    residual: Matrix
    t: Matrix

    def beyond(self, other: Point, length: float) -> Point:
        """Return the point on the line from another one through this, so much farther."""
        if length == 0.0:
            return self
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
    space : WeightSpace
        Its coordinates, with a penalty.
    budget : Budget
    """

    def __init__(self, problem: Projection, space: WeightSpace, budget: Budget) -> None:
        self._problem = problem
        self._space = space
        self._budget = budget
        linear = np.atleast_2d(problem.linear)
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

    @property
    def applies(self) -> bool:
        """Whether systems are solved so fast that many steps are no worse than Newton's few."""
        return self._system.is_well_conditioned and not self._budget.exhausted

    def run(self, q: Vector, tol: float) -> tuple[Vector, Vector]:
        """Start from soft labels `q`; return the dual point and the labels at the end.

        Parameters
        ----------
        q : array of shape (n_rows,) or (n_classes, n_rows)
        tol : float
            Duality gap at the end, relative to the value.
        """
        tall = np.ascontiguousarray(np.atleast_2d(q).T) * self._hinge
        step = START * self._length(tall)
        here = before = self._at(tall, self._nowhere(tall), step)
        momentum, value = 1.0, 0.0
        for k in range(MOST_STEPS):
            if k % CHECK == 0:
                here, before = self._refreshed(here, before)
                value = self._value(here)
            gap = self._gap(here)
            if self._is_enough(gap, value, tol):  # is it, where the scores are more accurate?
                here = self._at(here.q, here, POLISH * step)
                gap, value = self._gap(here), self._value(here)
            self._budget.report("labels", len(self._omega), gap, value)
            if self._is_enough(gap, value, tol) or not self._budget.spend():
                break
            after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = here.beyond(before, min((momentum - 1.0) / after, MOST_MOMENTUM))
            momentum = after
            moved = self._nearest(ahead)
            if float(np.vdot(self._omega * (ahead.q - moved), moved - here.q)) > 0.0:
                momentum = 1.0  # uphill
            step = self._length(moved - ahead.q)
            before, here = here, self._at(moved, ahead, INEXACT * step)
        return self._dual(here), self._labels(here)

    def _is_enough(self, gap: float, value: float, tol: float) -> bool:
        floor = self._problem.floor
        return gap <= max(tol * value, floor) or value <= floor

    def _nowhere(self, like: Matrix) -> Point:
        """Return labels of zero, whose system is not solved."""
        nothing = np.zeros_like(like)
        return Point(nothing, nothing, self._constant, nothing)

    def _length(self, change: Matrix) -> float:
        """Return the length of a change of labels, in the units of the linear system."""
        return float(np.linalg.norm(self._system.root * self._ratio * change))

    def _refreshed(self, here: Point, before: Point) -> tuple[Point, Point]:
        """Free two points of the rounding errors of the way there.

        Both residuals change by the same: momentum would make much of a difference.
        """
        system = self._system
        right = self._constant + system.alpha * system.root * self._ratio * here.q
        change = system.residual(right, here.y) - here.residual
        return (
            replace(here, residual=here.residual + change),
            replace(before, residual=before.residual + change),
        )

    def _at(self, q: Matrix, near: Point, error: float) -> Point:
        """Return the point of labels near others, with scores that are off by so much at most."""
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

    def _nearest(self, point: Point) -> Matrix:
        """Return the allowed labels nearest to where the gradient leads."""
        aim = point.q - np.divide(
            point.t, self._ratio, out=np.zeros_like(point.t), where=self._hinge
        )
        return np.ascontiguousarray(np.atleast_2d(self._allowed(aim)).T) * self._hinge

    def _allowed(self, x: Matrix) -> Vector:
        return self._problem.shape.project(self._flat(x))

    def _flat(self, x: Matrix) -> Vector:
        """Return an array as the shapes of labels expect it: with the rows last."""
        return x.T if self._problem.linear.ndim > 1 else x[:, 0]

    def _gap(self, point: Point) -> float:
        return duality_gap(
            self._flat(point.t), self._flat(point.q), self._problem.weights, self._problem.shape
        )

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

    def _dual(self, point: Point) -> Vector:
        z = np.concatenate([self._coef(point).T / self._space.unit, self._intercepts(point.q)], 1)
        return z if self._problem.linear.ndim > 1 else z[0]

    def _labels(self, point: Point) -> Vector:
        """Return the labels as the other solver has them: allowed ones, for all rows."""
        return self._allowed(np.where(self._hinge, point.q, 0.0))


FIRST_SIGMA = 10.0  # of σ where systems are solved iteratively: a larger one takes more steps
FINER = 0.5  # gap of the soft labels, as a share of the gap that is wanted in the end


def solve_matrix_free(
    problem: Projection, space: WeightSpace, tol: float, budget: Budget
) -> Solution:
    """Minimise by projected gradients, or by Newton's method with conjugate gradients.

    With a penalty, and totals that are not restricted, the former leave nothing to do but to check.
    """
    hinges, metric = StreamedHinges(space, problem.weights), MatrixFree(space, budget)
    z: Vector = np.zeros_like(problem.linear)
    q = problem.shape.project(problem.start.at())
    if space.alpha > 0.0 and problem.totals is None:
        descent = LabelDescent(problem, space, budget)
        if descent.applies:
            z, q = descent.run(q, FINER * tol)
            solution = _checked(problem, hinges, metric, z, q, tol)
            budget.report("labels", len(problem.weights), solution.gap, solution.value)
            if solution.is_optimal(tol, problem.floor) or budget.exhausted:
                return _of_unlabeled(problem, solution)
            z, q = solution.z, solution.q
    solution = minimise(
        hinges,
        problem.linear,
        z,
        q,
        shape=problem.shape,
        totals=problem.totals,
        tol=tol,
        floor=problem.floor,
        budget=budget,
        sigma=FIRST_SIGMA * max(1.0, len(problem.linear) / 2 if problem.linear.ndim > 1 else 1.0),
        metric=metric,
    )
    return _of_unlabeled(problem, solution)


def _of_unlabeled(problem: Projection, solution: DualSolution) -> Solution:
    q = solution.q[..., problem.start.labels.unlabeled]
    return Solution(solution.z, q, solution.gap, solution.value)


def _checked(
    problem: Projection,
    hinges: StreamedHinges,
    metric: MatrixFree,
    z: Vector,
    q: Vector,
    tol: float,
) -> DualSolution:
    """Return soft labels with their exact point, near `z`, and gap."""
    pulled = hinges.adjoint(problem.weights * q) - problem.linear
    error = EXACT * max(tol * metric.half_square(z, pulled, None), problem.floor)
    return paired(hinges, problem.shape, None, z, q, pulled, metric, error)
