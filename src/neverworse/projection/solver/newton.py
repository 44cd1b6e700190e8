r"""Minimise a convex, piecewise quadratic function exactly.

.. math:: f(z) = \tfrac12 \lVert z \rVert^2 + l \cdot z + \sum_j s_j \max_{q_j} (-q_j \cdot t_j),
          \qquad t_j = k_j \cdot z ,

with soft labels :math:`q_j` in [0, 1] or, for several classes (then z has a row for each), in the
simplex. A proximal term :math:`-\lVert q_j - \bar q_j \rVert^2 / 2\sigma` makes it smooth, with
:math:`q_j` the allowed label nearest to :math:`\bar q_j - \sigma t_j`: the augmented Lagrangian.
Its minimum over z takes a few Newton steps, whose matrix is the identity plus σ times a Gram matrix
of the rows whose label is not in a corner. Then :math:`\bar q \leftarrow q`, σ grows, and the
corners of all other rows, after that the exact minimum, are found in finitely many steps. Where z
is too long for the larger σ, the first step goes towards zero, which needs no system.

If the totals of the labels are restricted, the last coordinate of z is their multiplier μ: it has
no quadratic term, but the support function of the interval of totals M, smoothed in the same way,
and a proximal term of its own, about :math:`(\mu - \bar\mu)^2 / 2\sigma`.

In coordinates that are not whitened, the quadratic part is :math:`\tfrac12 z'Mz`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse._budget import Budget
from neverworse._iterations import conjugate_gradients
from neverworse._typing import Matrix
from neverworse.projection.coordinates.matrix_free import MatrixFreeCoordinates
from neverworse.projection.label_sets import Curvature, LabelSet
from neverworse.projection.labels import rows_that_differ
from neverworse.projection.solver.newton_system import ROUGH, NewtonSystem, Step, line_search
from neverworse.projection.solver.problem import DualSolution, Hinges, duality_gap, half_square
from neverworse.projection.totals import Balance, Totals
from neverworse.rows import blocks, map_in_threads

FIRST_SIGMA = 100.0  # t is a difference of scores of 0/1 targets: a hundredth is a small one
SIGMA_GROWTH = 5.0  # of σ, after each update of the soft labels that took at most ...
EASY_STEPS = 4  # ... this many Newton steps
SLOW_GAP_SHARE = 0.5  # an update of the soft labels that leaves more of the gap than this is slow
PATIENCE = 10  # Newton steps without a smaller gradient, and slow updates in a row, at most
# What floating point numbers allow: σ for labels of one number and of coupled classes, ...
LARGEST_SIGMA = (1e17, 1e13)
FINEST = 1e-12  # ... the relative accuracy of a gradient, ...
STALLED = 1e-9  # ... and that beyond which a gradient that does not shrink never will


@dataclass
class Iterate:
    """A dual point, and what follows from it."""

    z: Matrix  # (n_classes, rank)
    scores: Matrix  # (n_classes, n): t_j = k_j·z; of coupled classes, less the smallest
    product: Matrix  # Mz
    soft: Matrix  # soft labels
    primal: Matrix  # Σ s_j q_j k_j - l of these
    balance: Balance | None  # where the multiplier of the totals is, if these are restricted


@dataclass(frozen=True)
class Descent:
    """How Newton's method ended for one centre and σ."""

    steps: int
    # Of the gradient, and of z
    norm: float
    size: float
    value: float  # half the squared distance
    noisy: bool  # whether rounding errors allow no more


@dataclass(frozen=True)
class Newton:
    """Newton's method for the augmented Lagrangian of some rows."""

    hinges: Hinges
    linear: Matrix  # the vector l
    shape: LabelSet  # where the soft labels of these rows lie
    totals: Totals | None  # restriction of the totals, in the units of the last coordinate
    floor: float  # a value of at most this counts as zero
    budget: Budget  # Newton steps and time

    # The quadratic part ½ z'Mz of the dual; here that of whitened coordinates, where M = 1. In
    # others, M turns points z into their gradient Mz.

    def matvec(self, z: Matrix) -> Matrix:
        """Return Mz."""
        return z

    def solve(self, p: Matrix, near: Matrix, error: float) -> tuple[Matrix, float]:  # noqa: ARG002
        """Return z with Mz = p, from a guess; and what that adds to the gap, at most `error`."""
        return p, 0.0

    def half_square(self, z: Matrix, p: Matrix) -> float:  # noqa: ARG002
        """Return ½ z·p, where p is about Mz, without the multiplier of totals."""
        return half_square(p, self.totals)

    def step(
        self, at: Iterate, curve: Matrix, sigma: float, gradient: Matrix, accuracy: float
    ) -> Matrix:
        """Return a Newton step, to a relative accuracy of the system that is enough (or better).

        `curve` is the diagonal of M (where M is no diagonal, only that of the multiplier counts).
        """
        del accuracy
        free = np.flatnonzero(self.shape.is_free(at.soft) & (self.hinges.weights > 0.0))
        if not free.size:
            return -gradient / curve
        inner = self.shape.at(free).inner(at.soft[:, free])
        system = NewtonSystem(self.hinges, free, inner, curve, sigma, self.shape.is_coupled)
        return system.solve(-gradient)

    def start(self, z: Matrix, q: Matrix) -> Iterate:
        """Return where to start: at a dual point, with soft labels that need not belong to it."""
        primal = self._primal(q)
        balance = None
        if self.totals is not None:
            balance = Balance(self.totals, self.totals.project(primal[:, -1]), z[:, -1].copy())
        return Iterate(z, self.hinges.scores(z), self.matvec(z), q, primal, balance)

    def descend(self, at: Iterate, centre: Matrix, sigma: float, accuracy: float) -> Descent:
        """Minimise the smoothed function, in place, to an accuracy relative to the length of z.

        The proximal terms are centred at labels that need not be allowed ones.
        """
        hinges, budget = self.hinges, self.budget
        if self.shape.is_coupled:  # only differences count, and small ones keep more digits
            at.scores -= at.scores.min(axis=0)
        soft = _nearest(self.shape, centre, sigma, at.scores)
        changed = rows_that_differ(soft, at.soft)
        change = soft[:, changed] - at.soft[:, changed]
        at.primal, at.soft = at.primal + hinges.adjoint_some(changed, change), soft
        begins, steps, noisy, smallest, since = True, 0, False, np.inf, 0
        while True:
            gradient = at.product - at.primal
            if at.balance is not None:
                gradient[:, -1] = at.balance.gradient(at.z, at.primal, sigma)
            value = self.half_square(at.z, at.primal)
            size = float(np.sqrt(2.0 * max(value, self.floor)))
            norm = float(np.linalg.norm(gradient))
            smallest, since = (norm, steps) if norm < 0.9 * smallest else (smallest, since)
            noisy = noisy or steps > since + (PATIENCE if norm > STALLED * size else 1)
            if noisy or budget.exhausted or norm <= accuracy * size:
                at.primal = self._primal(at.soft)  # free of the rounding errors of the updates
                return Descent(steps, norm, size, value, noisy)
            if begins and _is_mostly_along(gradient, at.z):
                step, change, rise = -at.z, -at.scores, -at.product
            else:
                budget.spend()
                steps += 1
                curve = np.ones(at.z.shape)
                if at.balance is not None:
                    curve[:, -1] = at.balance.curvature(at.z, sigma)
                step = self.step(at, curve, sigma, gradient, accuracy * size / norm)
                change, rise = hinges.scores(step), self.matvec(step)
            quadratic, more = float(np.vdot(step, rise)), None
            if at.balance is not None:
                curvature, more = at.balance.along(at.z, step, sigma)
                quadratic += curvature
            scores = (centre, at.scores, change, at.soft)
            slopes, begins = (float(np.vdot(gradient, step)), quadratic, more), False
            found = line_search(Step(self.shape, *scores, sigma, hinges.weights, *slopes))
            noisy = found.length == 0.0  # floating point sees no descent any more
            rows, soft = found.rows, at.soft
            at.primal = at.primal + hinges.adjoint_some(rows, found.labels - soft[:, rows])
            soft[:, rows] = found.labels
            at.z, at.product = at.z + found.length * step, at.product + found.length * rise
            change *= found.length
            at.scores += change

    def paired(self, z: Matrix, q: Matrix, primal: Matrix, error: float) -> DualSolution:
        """Return the point that belongs to soft labels q, and how far the pair is from optimal.

        z is a guess of it (and the multiplier of the totals, which is kept), `primal` is
        Σ s_j q_j k_j - l, and `error` is what the inexactness of the point may add to the gap.
        """
        totals, hinges = self.totals, self.hinges
        point, inexact = self.solve(primal, z, error)
        value = self.half_square(point, primal)
        gap = inexact
        if totals is not None:
            point = np.column_stack([point[:, :-1], z[:, -1]])
            gap += totals.gap(point[:, -1], primal[:, -1])
        gap += duality_gap(hinges.scores(point), q, hinges.weights, self.shape)
        return DualSolution(point, q, gap, value)

    def minimise(
        self, z: Matrix, q: Matrix, tol: float, enough: float, sigma: float
    ) -> DualSolution:
        """Minimise f from the dual point `z` and the soft labels `q`, to a relative gap of `tol`.

        A gap that hardly shrinks any more is closed to `enough` only. A larger first σ is faster
        from a good start, slower from a poor one. When the budget ends, the best pair so far is
        returned.
        """
        floor, budget = self.floor, self.budget
        # Sums of all classes have curvature 1 beside σ: their ratio must leave digits.
        largest = LARGEST_SIGMA[self.shape.is_coupled]
        sigma *= max(1.0, len(q) / 2)  # scores are the smaller the more classes there are
        at, centre = self.start(z, q), q
        accuracy, patience = 0.1, PATIENCE
        best: DualSolution | None = None
        while True:
            done = self.descend(at, centre, sigma, accuracy)
            error = ROUGH * max(tol * done.value, floor)
            solution = self.paired(at.z, at.soft, at.primal, error)
            slow = best is not None and solution.gap > SLOW_GAP_SHARE * best.gap
            if best is None or solution.gap < best.gap or solution.value <= floor:
                best = solution
            patience = patience - 1 if slow else PATIENCE
            budget.report("working set", len(self.hinges.weights), best.gap, best.value)
            reached = best.is_optimal(max(tol, enough) if slow else tol, floor)
            if reached or budget.exhausted or not patience:
                return best
            centre, at.product = at.soft, self.matvec(at.z)
            if at.balance is not None:
                at.balance = at.balance.next(at.z, sigma)
            if done.noisy:
                sigma = max(sigma / SIGMA_GROWTH**2, FIRST_SIGMA)
            elif done.steps <= EASY_STEPS:
                growth = SIGMA_GROWTH**2 if slow and done.steps <= 1 else SIGMA_GROWTH
                sigma = min(growth * sigma, largest)
            deserved = 0.1 * solution.gap / max(solution.value, floor)
            accuracy = max(min(0.1 * accuracy if slow else accuracy, deserved), FINEST)

    def _primal(self, q: Matrix) -> Matrix:
        return self.hinges.adjoint(self.hinges.weights * q) - self.linear


FORCING = (0.1, 0.5)  # relative accuracy of iterated Newton steps: finest, and coarsest
SMALLEST = 0.01  # of the squared length of a gradient that its inverse image has at least, about


@dataclass(frozen=True)
class MatrixFreeNewton(Newton):
    """The same in weights: products by passes over the rows, systems by conjugate gradients."""

    space: MatrixFreeCoordinates

    def matvec(self, z: Matrix) -> Matrix:
        return self.space.matvec(z)

    def solve(self, p: Matrix, near: Matrix, error: float) -> tuple[Matrix, float]:
        solved = self.space.solve(p, error, near, lambda: self.budget.exhausted)
        self.budget.n_passes += solved.n_products
        return solved.x, self.space.half_error(solved.residual)

    def half_square(self, z: Matrix, p: Matrix) -> float:
        """See `Newton`; far from the solution, where z does not belong to p, by the length of p."""
        if self.totals is not None:
            z, p = z[:, :-1], p[:, :-1]
        return max(0.5 * float(np.vdot(z, p)), SMALLEST * half_square(p, None))

    def step(
        self, at: Iterate, curve: Matrix, sigma: float, gradient: Matrix, accuracy: float
    ) -> Matrix:
        weights = self.hinges.weights
        curvature = Curvature.of(self.shape, at.soft, weights, sigma)
        target = float(np.clip(accuracy, *FORCING) * np.linalg.norm(gradient))
        solved = conjugate_gradients(
            lambda z: self.space.curved(curvature, curve, z),
            -gradient,
            lambda residual: float(np.linalg.norm(residual)) <= target,
            stop=lambda: self.budget.exhausted,
        )
        self.budget.n_passes += solved.n_products
        self.budget.report("Newton step", len(weights))
        return solved.x


def _is_mostly_along(gradient: Matrix, z: Matrix) -> bool:
    """Whether the gradient points along z, at an angle of less than 45 degrees."""
    along, lengths = np.vdot(gradient, z), np.linalg.norm(gradient) * np.linalg.norm(z)
    return bool(along > np.sqrt(0.5) * lengths)


def _nearest(shape: LabelSet, q: Matrix, sigma: float, t: Matrix) -> Matrix:
    """Return the allowed labels nearest to q - σt."""
    soft = np.empty_like(t)

    def part(rows: slice) -> None:
        soft[:, rows] = shape.at(rows).project(q[:, rows] - sigma * t[:, rows])

    map_in_threads(part, blocks(t))
    return soft
