r"""Soft labels by accelerated projected gradients, where very many columns leave no factors.

A step of every label by :math:`-t_j` (times the weight in the loss over that of the hinge), and to
the nearest allowed one, never does harm: "Very many columns" in docs/solver.md says why. Every
gradient takes a linear system. With a penalty α and centred rows A (times the roots of their
weights),

.. math:: (A'A + \alpha) w = p \iff w = (p - A'y) / \alpha, \quad (AA' + \alpha) y = Ap ,

so the unknowns are as many as there are rows, and the kernel AA' enters by its products only. Here
arrays have the rows first, and one column for each class: so sparse rows are fastest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import cast

import numpy as np

from neverworse._budget import Budget
from neverworse._iterations import LowRank, accelerated_gradient, conjugate_gradients, low_rank
from neverworse._typing import Matrix
from neverworse.projection.coordinates.matrix_free import MatrixFreeCoordinates
from neverworse.projection.solver.newton import MatrixFreeNewton
from neverworse.projection.solver.newton_system import ROUGH
from neverworse.projection.solver.problem import (
    DualSolution,
    Projection,
    StreamedHinges,
    duality_gap,
    is_optimal,
)

RANK_PER_CLASS = 10  # directions that are known to the preconditioner: each costs two products
MOST_DIRECTIONS = 200
MOST_NUMBERS = 2 * 10**7  # in these directions
LARGEST_CONDITION = 1000.0  # that a preconditioner may leave
INACCURATE = 1e-5  # relative error of products in single precision, at most
SINGLE = 1e-6  # of a residual: single precision sees no more


class RowSystem:
    """The kernel AA' of weighted, centred rows, and systems with it: a penalty, and no totals."""

    def __init__(self, space: MatrixFreeCoordinates, n_classes: int, budget: Budget) -> None:
        assert space.alpha > 0.0
        assert not space.restricted
        self.space = space
        self.alpha = space.alpha
        self.root = np.sqrt(space.weights)[:, None]
        self._seen = space.weights > 0.0
        self._n_classes = n_classes
        self._budget = budget  # ends iterations, and is told about products: passes over the rows

    def combine(self, y: Matrix) -> Matrix:
        """Return A'y, of shape (n_columns, n_classes)."""
        x = np.ascontiguousarray((self.root * y).T)
        combined = self.space.rows.weighted_sum(x)
        combined -= np.outer(x.sum(axis=1), self.space.mean)
        return combined.T

    def products(self, coef: Matrix) -> Matrix:
        """Return A coef, of shape (n_rows, n_classes)."""
        scores = self.space.rows.scores(np.ascontiguousarray(coef.T), -(self.space.centre @ coef))
        return self._weighted(scores.T)

    def kernel(self, y: Matrix) -> Matrix:
        self._budget.n_passes += 1
        return self.products(self.combine(y))

    def rough_kernel(self, y: Matrix) -> Matrix:
        """Return AA'y, perhaps to single precision where that is faster."""
        product = self._single_kernel(y) if self._single_will_do else None
        if product is None:
            return self.kernel(y)
        self._budget.n_passes += 1
        return product

    @cached_property
    def _single_will_do(self) -> bool:
        """Whether single precision is faster, overflows nowhere, and is not used up by centring."""
        y = np.random.default_rng(0).normal(size=(len(self.root), self._n_classes))
        with np.errstate(over="ignore", invalid="ignore"):
            product = self._single_kernel(y)
        if product is None:
            return False
        exact = self.kernel(y)
        return float(np.linalg.norm(product - exact)) <= INACCURATE * float(np.linalg.norm(exact))

    def _single_kernel(self, y: Matrix) -> Matrix | None:
        product = self.space.rows.single_kernel_product(self.root * y, self.space.mean)
        return None if product is None else self._weighted(product)

    def _weighted(self, scores: Matrix) -> Matrix:
        scores[~self._seen] = 0.0  # rows without a weight may score anything, even infinity
        scores *= self.root
        return scores

    @cached_property
    def directions(self) -> LowRank:
        n = len(self.root)
        most = min(MOST_DIRECTIONS, MOST_NUMBERS // max(n, 1), int(np.count_nonzero(self._seen)))
        rank = min(RANK_PER_CLASS * self._n_classes, most)
        return low_rank(self.rough_kernel, n, rank, self._n_classes, lambda: self._budget.exhausted)

    @property
    def is_well_conditioned(self) -> bool:
        """Whether the directions leave systems that take few products."""
        values = self.directions.values
        return float(values[-1] if len(values) else 0.0) <= LARGEST_CONDITION * self.alpha

    @cached_property
    def precondition(self) -> Callable[[Matrix], Matrix]:
        return self.directions.preconditioner(self.alpha)

    def residual(self, right: Matrix, y: Matrix) -> Matrix:
        """Return u - (AA' + α) y for a right-hand side u."""
        left = right - self.kernel(y)
        left -= self.alpha * y
        return left

    def solve(self, y: Matrix, residual: Matrix, error: float) -> tuple[Matrix, Matrix]:
        """Improve a solution of (AA' + α) y = u up to an error of y; return it, and its residual.

        That is followed, not computed anew: rounding errors of what y changes by stay.
        """
        size = float(np.linalg.norm(residual))
        enough = max(self.alpha * error, SINGLE * size)
        solved = conjugate_gradients(
            lambda x: self.rough_kernel(x) + self.alpha * x,
            residual,
            lambda left: float(np.linalg.norm(left)) <= enough,
            precondition=self.precondition,
            stop=lambda: self._budget.exhausted,
        )
        return y + solved.x, solved.residual


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

    def beyond(self, other: Point, length: float) -> Point:
        """Return the point on the line from another one through this, farther by `length`."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Point(*(here + length * (here - there) for here, there in pairs))


class LabelDescent:
    """Minimises the distance over soft labels, with a penalty and without totals."""

    def __init__(self, problem: Projection, space: MatrixFreeCoordinates, budget: Budget) -> None:
        self._problem = problem
        self._space = space
        self._budget = budget
        linear = problem.linear
        self._system = RowSystem(space, len(linear), budget)
        self._omega = problem.weights[:, None].astype(np.float64)
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
        """Start from soft labels `q`; return dual point and labels at a relative gap of `tol`."""
        tall = np.ascontiguousarray(q.T) * self._hinge
        self._moved = START * self._length(tall)
        nothing = np.zeros_like(tall)
        nowhere = Point(nothing, nothing, self._constant, nothing)  # its system is not solved
        self._last = self._at(tall, nowhere, self._moved)
        end = accelerated_gradient(
            self._last,
            step=self._step,
            extrapolate=Point.beyond,
            uphill=lambda ahead, new, here: (
                float(np.vdot(self._omega * (ahead.q - new.q), new.q - here.q)) > 0.0
            ),
            stop=partial(self._stop, tol=tol),
            max_momentum=MAX_MOMENTUM,
        )
        dual = [self._coef(end).T / self._space.unit, self._intercepts(end.q)]
        # Allowed labels for all rows, as the other solver has them
        labels = self._problem.shape.project(np.where(self._hinge, end.q, 0.0).T)
        return np.concatenate(dual, axis=1), labels

    def _step(self, ahead: Point) -> Point:
        """Return the point of the allowed labels nearest to where the gradient leads."""
        step = np.divide(ahead.t, self._ratio, out=np.zeros_like(ahead.t), where=self._hinge)
        allowed = self._problem.shape.project((ahead.q - step).T)
        moved = np.ascontiguousarray(allowed.T) * self._hinge
        self._moved = self._length(moved - ahead.q)
        return self._at(moved, ahead, INEXACT * self._moved)

    def _stop(self, here: Point, tol: float) -> bool:
        """Make the point more accurate now and then; say whether it is good enough."""
        if self._n_steps % CHECK == 0:
            self._refresh(here)
            self._value_near = self._value(here)
        gap, value, floor = self._gap(here), self._value_near, self._problem.floor
        if is_optimal(gap, value, tol, floor):  # is it, where the scores are more accurate?
            vars(here).update(vars(self._at(here.q, here, POLISH * self._moved)))
            gap, value = self._gap(here), self._value(here)
        self._budget.report("labels", len(self._omega), gap, value)
        self._n_steps += 1
        self._last, self._value_near = here, value
        done = is_optimal(gap, value, tol, floor) or self._n_steps > MAX_STEPS
        return done or not self._budget.spend()

    def _length(self, change: Matrix) -> float:
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
        coef = self._system.combine(point.y)
        coef -= self._linear
        coef /= self._system.alpha
        return coef

    def _value(self, point: Point) -> float:
        system, shift = self._system, self._intercepts(point.q)
        scored = system.root * self._ratio * point.q - point.y
        coef = self._coef(point)
        squares = np.vdot(scored, scored) + system.alpha * np.vdot(coef, coef)
        return 0.5 * float(squares + np.vdot(shift, shift))


FIRST_SIGMA = 10.0  # of σ where systems are solved iteratively: a larger one takes more steps
FINER = 0.5  # gap of the soft labels, as a share of the gap that is wanted in the end


def solve_matrix_free(problem: Projection, tol: float, budget: Budget) -> DualSolution:
    """Minimise by projected gradients, or by Newton's method with conjugate gradients.

    With a penalty, and totals that are not restricted, the former leave nothing to do but to check.
    """
    space = cast("MatrixFreeCoordinates", problem.coordinates)
    hinges = StreamedHinges(space, problem.weights)
    shape, totals, floor = problem.shape, problem.totals, problem.floor
    newton = MatrixFreeNewton(hinges, problem.linear, shape, totals, floor, budget, space)
    z: Matrix = np.zeros_like(problem.linear)
    q = shape.project(problem.start())
    solution = None
    if space.alpha > 0.0 and totals is None:
        descent = LabelDescent(problem, space, budget)
        if descent.applies:
            z, q = descent.run(q, FINER * tol)
            primal = hinges.adjoint(problem.weights * q) - problem.linear
            error = ROUGH * max(tol * newton.half_square(z, primal), floor)
            solution = newton.paired(z, q, primal, error)
            budget.report("labels", len(problem.weights), solution.gap, solution.value)
            z = solution.z
    if solution is None or not (solution.is_optimal(tol, floor) or budget.exhausted):
        solution = newton.minimise(z, q, tol, tol, FIRST_SIGMA)
    return replace(solution, q=solution.q[:, problem.unlabeled])
