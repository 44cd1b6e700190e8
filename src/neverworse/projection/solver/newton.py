r"""Minimise a convex, piecewise quadratic function exactly.

.. math:: f(z) = \tfrac12 \lVert z \rVert^2 + l \cdot z + \sum_j s_j \max_{q_j} (-q_j \cdot t_j),
          \qquad t_j = k_j \cdot z ,

with soft labels :math:`q_j` in [0, 1] or, for several classes (then z has a row for each), in the
simplex. A proximal term :math:`-\lVert q_j - \bar q_j \rVert^2 / 2\sigma` makes it smooth, with
:math:`q_j` the allowed label nearest to :math:`\bar q_j - \sigma t_j`: the augmented Lagrangian.
Its minimum over z takes a few Newton steps, whose matrix is the identity plus σ times a Gram matrix
of the rows whose label is not in a corner. Then :math:`\bar q \leftarrow q`, σ grows, and the
corners of all other rows, after that the exact minimum, are found in finitely many steps.

If the totals of the labels are restricted, the last coordinate of z is their multiplier μ: it has
no quadratic term, but the support function of the interval of totals M, smoothed in the same way,
and a proximal term of its own, about :math:`(\mu - \bar\mu)^2 / 2\sigma`.

In coordinates that are not whitened the quadratic part is :math:`\tfrac12 z'Mz`, see `Metric`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse._budget import Budget
from neverworse._typing import Matrix, Vector
from neverworse.projection.label_sets import LabelSet
from neverworse.projection.solver.newton_system import (
    Slope,
    line_search,
    newton_step,
    rows_that_differ,
)
from neverworse.projection.solver.problem import Hinges
from neverworse.projection.totals import Balance, Totals
from neverworse.rows import blocks, map_in_threads

FIRST_SIGMA = 100.0  # t is a difference of scores of 0/1 targets: a hundredth is a small one
GROWTH = 5.0  # of σ, after each update of the soft labels that took at most ...
EASY = 4  # ... this many Newton steps
SLOW = 0.5  # an update of the soft labels that leaves more of the gap than this is slow
PATIENCE = 10  # Newton steps without a smaller gradient, and slow updates in a row, at most
ROUGH = 0.01  # relative accuracy down to which a sample of the rows may stand for all
# What floating point numbers allow: σ for labels of one number and of coupled classes, ...
LARGEST_SIGMA = (1e17, 1e13)
FINEST = 1e-12  # ... the relative accuracy of a gradient, ...
FINE = 1e-9  # ... and that beyond which a gradient that does not shrink never will


@dataclass(frozen=True)
class DualSolution:
    """A dual point with the soft labels that prove how good it is.

    Attributes
    ----------
    z : array of shape (n_classes, rank)
        Σ s_j q_j k_j - l (times the inverse of M, if that is not the identity): the point that
        belongs to the soft labels. Its last coordinate is the multiplier of the totals, if these
        are restricted.
    q : array of shape (n_classes, n)
        Soft labels.
    gap : float
        Duality gap of the pair, an upper bound of f(z) - min f.
    value : float
        Half the squared distance, ½‖z‖² (without the multiplier): what the soft labels minimise.
    """

    z: Matrix
    q: Matrix
    gap: float
    value: float

    def is_optimal(self, tol: float, floor: float) -> bool:
        """Whether the gap is small against the value, or one of both cannot be told from zero."""
        return is_optimal(self.gap, self.value, tol, floor)


def is_optimal(gap: float, value: float, tol: float, floor: float) -> bool:
    """Whether a gap is small against the value, or one of both cannot be told from zero."""
    return gap <= max(tol * value, floor) or value <= floor


def half_square(z: Matrix, totals: Totals | None) -> float:
    """Return ½‖z‖², without the multiplier of the totals if there is one."""
    direction = z if totals is None else z[:, :-1]
    return 0.5 * float(np.vdot(direction, direction))


class Metric:
    """The quadratic part ½ z'Mz of the dual; here that of whitened coordinates, the identity.

    In others M turns points z into their gradient Mz, and points differ from gradients.
    """

    def matvec(self, z: Matrix) -> Matrix:
        """Return Mz."""
        return z

    def solve(self, p: Matrix, near: Matrix, error: float) -> tuple[Matrix, float]:  # noqa: ARG002
        """Return z with Mz = p, and what its inexactness adds to the duality gap.

        Parameters
        ----------
        p : array
        near : array
            A guess.
        error : float
            How large the second may be.
        """
        return p, 0.0

    def half_square(self, z: Matrix, p: Matrix, totals: Totals | None) -> float:  # noqa: ARG002
        """Return ½ z·p, where p is about Mz, without the multiplier of totals."""
        return half_square(p, totals)

    def step(
        self,
        newton: Newton,
        at: Iterate,
        curve: Matrix,
        sigma: float,
        gradient: Matrix,
        accuracy: float,
        reduction: float,  # noqa: ARG002
    ) -> Matrix:
        """Return a Newton step.

        Parameters
        ----------
        newton, at
            The problem, and where it is.
        curve : array
            Diagonal of M (only that of the multiplier counts where M is no diagonal).
        sigma : float
        gradient : array
        accuracy : float
            Relative size of the gradient to reach in the end.
        reduction : float
            By which factor the gradient has to shrink for that.
        """
        hinges, rough = newton.hinges, accuracy >= ROUGH
        return newton_step(hinges, newton.shape, at.soft, curve, sigma, gradient, rough)


@dataclass
class Iterate:
    """A dual point, and what follows from it.

    Attributes
    ----------
    z : array of shape (n_classes, rank)
    scores : array of shape (n_classes, n)
        t_j = k_j·z
    product : array like z
        Mz
    soft : array like the scores
        Soft labels.
    primal : array like z
        Σ s_j q_j k_j - l of these.
    balance : Balance or None
        Where the multiplier of the totals is, if these are restricted.
    """

    z: Matrix
    scores: Matrix
    product: Matrix
    soft: Matrix
    primal: Matrix
    balance: Balance | None


class Newton:
    """Newton's method for the augmented Lagrangian of some rows.

    Parameters
    ----------
    hinges : Hinges
    linear : array like z
        The vector l.
    shape : LabelSet
        Where the soft labels of these rows lie.
    totals : Totals, optional
        Restriction of the totals, in the units of the last coordinate.
    floor : float
        A value of at most this counts as zero.
    budget : Budget
        Newton steps and time.
    metric : Metric, optional
        The quadratic part; the identity if not given.
    """

    def __init__(
        self,
        hinges: Hinges,
        linear: Matrix,
        shape: LabelSet,
        totals: Totals | None,
        floor: float,
        budget: Budget,
        metric: Metric | None = None,
    ) -> None:
        self.hinges = hinges
        self.linear = linear
        self.shape = shape
        self.totals = totals
        self.floor = floor
        self.budget = budget
        self.metric = Metric() if metric is None else metric

    def start(self, z: Matrix, q: Matrix) -> Iterate:
        """Return where to start: at a dual point, with soft labels that need not belong to it."""
        primal = self._primal(q)
        balance = None if self.totals is None else Balance.start(self.totals, z, primal)
        return Iterate(z, self.hinges.scores(z), self.metric.matvec(z), q, primal, balance)

    def descend(self, at: Iterate, centre: Matrix, sigma: float, accuracy: float) -> Descent:
        """Minimise the smoothed function with this centre and σ, in place.

        Parameters
        ----------
        at : Iterate
            Where to start, and where it ends.
        centre : array
            Where the proximal terms of the labels are centred; need not be allowed labels.
        sigma : float
        accuracy : float
            Of the gradient, relative to the length of z.
        """
        hinges, budget = self.hinges, self.budget
        soft = _nearest(self.shape, centre, sigma, at.scores)
        changed = rows_that_differ(soft, at.soft)
        change = soft[:, changed] - at.soft[:, changed]
        at.primal, at.soft = at.primal + hinges.adjoint_some(changed, change), soft
        steps, noisy, smallest, since = 0, False, np.inf, 0
        while True:
            gradient = at.product - at.primal
            if at.balance is not None:
                gradient[:, -1] = at.balance.gradient(at.z, at.primal, sigma)
            value = self.metric.half_square(at.z, at.primal, self.totals)
            size = float(np.sqrt(2.0 * max(value, self.floor)))
            norm = float(np.linalg.norm(gradient))
            smallest, since = (norm, steps) if norm < 0.9 * smallest else (smallest, since)
            noisy = noisy or steps > since + (PATIENCE if norm > FINE * size else 1)
            if noisy or budget.exhausted or norm <= accuracy * size:
                at.primal = self._primal(at.soft)  # free of the rounding errors of the updates
                return Descent(steps, norm, size, value, noisy)
            budget.spend()
            steps += 1
            curve = np.ones(at.z.shape)
            if at.balance is not None:
                curve[:, -1] = at.balance.curvature(at.z, sigma)
            step = self.metric.step(
                self, at, curve, sigma, gradient, accuracy, reduction=accuracy * size / norm
            )
            change, rise = hinges.scores(step), self.metric.matvec(step)
            slope = Slope(self.shape, centre, at.scores, change, sigma, hinges.weights, at.soft)
            slope.at_zero = float(np.vdot(gradient, step))
            slope.quadratic = float(np.vdot(step, rise))
            if at.balance is not None:
                curvature, slope.more = at.balance.along(at.z, step, sigma)
                slope.quadratic += curvature
            length = line_search(slope)
            noisy = length == 0.0  # floating point sees no descent any more
            rows, labels = slope.labels(length)
            soft = at.soft
            at.primal = at.primal + hinges.adjoint_some(rows, labels - soft[:, rows])
            soft[:, rows] = labels
            at.z, at.product = at.z + length * step, at.product + length * rise
            change *= length
            at.scores += change

    def paired(self, z: Matrix, q: Matrix, primal: Matrix, error: float) -> DualSolution:
        """Return the point that belongs to soft labels, and how far the pair is from optimal.

        Parameters
        ----------
        z : array
            A guess of the point (and the multiplier of the totals, which is kept).
        q : array
            Soft labels.
        primal : array
            Σ s_j q_j k_j - l.
        error : float
            What the inexactness of the point may add to the gap.
        """
        totals, hinges = self.totals, self.hinges
        point, inexact = self.metric.solve(primal, z, error)
        value = self.metric.half_square(point, primal, totals)
        gap = inexact
        if totals is not None:
            point = np.column_stack([point[:, :-1], z[:, -1]])
            gap += totals.gap(point[:, -1], primal[:, -1])
        gap += duality_gap(hinges.scores(point), q, hinges.weights, self.shape)
        return DualSolution(point, q, gap, value)

    def recentre(self, at: Iterate, sigma: float) -> Matrix:
        """Return the soft labels as a new centre, and move that of the totals."""
        at.product = self.metric.matvec(at.z)
        if at.balance is not None:
            at.balance = at.balance.next(at.z, sigma)
        return at.soft

    def _primal(self, q: Matrix) -> Matrix:
        return self.hinges.adjoint(self.hinges.weights * q) - self.linear


@dataclass(frozen=True)
class Descent:
    """How Newton's method ended for one centre and σ.

    Attributes
    ----------
    steps : int
    norm, size : float
        Of the gradient, and of z.
    value : float
        Half the squared distance.
    noisy : bool
        Whether rounding errors allow no more.
    """

    steps: int
    norm: float
    size: float
    value: float
    noisy: bool


def minimise(
    hinges: Hinges,
    linear: Matrix,
    z: Matrix,
    q: Matrix,
    *,
    shape: LabelSet,
    totals: Totals | None,
    tol: float,
    floor: float,
    budget: Budget,
    sigma: float = FIRST_SIGMA,
    metric: Metric | None = None,
) -> DualSolution:
    """Minimise f, starting from the dual point `z` and the soft labels `q`.

    Parameters
    ----------
    hinges, linear, shape, totals, floor, budget, metric
        See `Newton`. When the budget ends, the best pair so far is returned.
    z, q : arrays
        Where to start.
    tol : float
        Duality gap at the end, relative to the value.
    sigma : float
        The first σ, for two classes. Larger is faster from a good start, slower from a poor one.
    """
    newton = Newton(hinges, linear, shape, totals, floor, budget, metric)
    # Two classes that cannot be improved against each other tie in all rows, and restricted totals
    # tie rows as well: then a large σ amplifies rounding errors instead of finding corners.
    degenerate = shape.is_coupled or totals is not None
    # Sums of all classes have curvature 1 beside σ: their ratio must leave digits.
    largest = LARGEST_SIGMA[shape.is_coupled]
    sigma *= max(1.0, len(q) / 2)  # scores are the smaller the more classes there are
    at, centre = newton.start(z, q), q
    accuracy, patience = 0.1, PATIENCE
    best: DualSolution | None = None
    while True:
        done = newton.descend(at, centre, sigma, accuracy)
        error = ROUGH * max(tol * done.value, floor)
        solution = newton.paired(at.z, at.soft, at.primal, error)
        slow = best is not None and solution.gap > SLOW * best.gap
        if best is None or solution.gap < best.gap or solution.value <= floor:
            best = solution
        patience = patience - 1 if slow else PATIENCE
        budget.report("working set", len(hinges.weights), best.gap, best.value)
        if best.is_optimal(tol, floor) or budget.exhausted or not patience:
            return best
        centre = newton.recentre(at, sigma)
        if done.noisy and degenerate and done.norm > 10.0 * FINEST * done.size:
            sigma = max(sigma / GROWTH**2, FIRST_SIGMA)
        elif done.steps <= EASY:
            sigma = min((GROWTH**2 if slow and done.steps <= 1 else GROWTH) * sigma, largest)
        enough = 0.1 * solution.gap / max(solution.value, floor)
        accuracy = max(min(0.1 * accuracy if slow else accuracy, enough), FINEST)


def duality_gap(t: Matrix, q: Matrix, s: Vector, shape: LabelSet) -> float:
    """Return Σ s (q·t + max(-q·t)): every term says how far a soft label is from its corner."""
    total = 0.0
    for rows in blocks(t):  # so that nothing as long as t is made on the way
        at = (q[:, rows] * t[:, rows]).sum(axis=0)
        total += float(s[rows] @ (at + shape.at(rows).support(t[:, rows])))
    return total


def _nearest(shape: LabelSet, q: Matrix, sigma: float, t: Matrix) -> Matrix:
    """Return the allowed labels nearest to q - σt."""
    soft = np.empty_like(t)

    def part(rows: slice) -> None:
        soft[:, rows] = shape.at(rows).project(q[:, rows] - sigma * t[:, rows])

    map_in_threads(part, blocks(t))
    return soft
