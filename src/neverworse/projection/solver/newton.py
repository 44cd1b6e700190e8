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

In coordinates that are not whitened the quadratic part is :math:`\tfrac12 z'Mz`, see `_metric`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse._typing import Indices, Vector
from neverworse.projection.label_sets import LabelSet
from neverworse.projection.solver.budget import Budget
from neverworse.projection.solver.hinges import Hinges
from neverworse.projection.solver.line_search import Slope, blocks, line_search, rows_that_differ
from neverworse.projection.solver.metric import Identity, Metric, StepRequest
from neverworse.projection.totals import Balance, Totals
from neverworse.rows._threads import map_in_threads

FIRST_SIGMA = 100.0  # t is a difference of scores of 0/1 targets: a hundredth is a small one
GROWTH = 5.0  # of σ, after each update of the soft labels that took at most ...
EASY = 4  # ... so many Newton steps
LEAP = 50.0  # growth of σ where such an update leaves most of the gap open
LARGEST_SIGMA = (1e17, 1e13)  # for labels of one number, and of several classes
MOST_STEPS = 50  # between two updates of the soft labels, and ...
IDLE = 10  # ... so many without a smaller gradient, or just one below ...
FINE = 1e-9  # ... this relative accuracy: rounding errors allow no more
SLOW = 0.5  # an update of the soft labels that leaves more of the gap than this is slow, and ...
PATIENCE = 8  # ... after so many of them the solver gives up
CHUNK = 2**16  # rows for which temporary arrays are made
INNER = 0.1  # relative accuracy of the Newton steps, as a fraction of the relative gap
FINEST = 1e-12  # relative accuracy of the Newton steps, at the end
NOISE = 1e-11  # rounding errors that leave more than this of the gradient ask for a smaller σ
EXACT = 0.01  # the point of the soft labels is found to this share of the gap that is wanted


@dataclass(frozen=True)
class DualSolution:
    """A dual point with the soft labels that prove how good it is.

    Attributes
    ----------
    z : array of shape (rank,) or (n_classes, rank)
        Σ s_j q_j k_j - l (times the inverse of M, if that is not the identity): the point that
        belongs to the soft labels. Its last coordinate is the multiplier of the totals, if these
        are restricted.
    q : array of shape (n,) or (n_classes, n)
        Soft labels.
    gap : float
        Duality gap of the pair, an upper bound of f(z) - min f.
    value : float
        Half the squared distance, ½‖z‖² (without the multiplier): what the soft labels minimise.
    """

    z: Vector
    q: Vector
    gap: float
    value: float

    def is_optimal(self, tol: float, floor: float) -> bool:
        """Whether the gap is small against the value, or one of both cannot be told from zero."""
        return is_optimal(self.gap, self.value, tol, floor)


def is_optimal(gap: float, value: float, tol: float, floor: float) -> bool:
    """Whether a gap is small against the value, or one of both cannot be told from zero."""
    return gap <= max(tol * value, floor) or value <= floor


@dataclass
class Iterate:
    """A dual point, and what follows from it.

    Attributes
    ----------
    z : array of shape (rank,) or (n_classes, rank)
    scores : array of shape (n,) or (n_classes, n)
        t_j = k_j·z
    lowered : array like z
        Mz
    soft : array like the scores
        Soft labels.
    pulled : array like z
        Σ s_j q_j k_j - l of these.
    balance : Balance or None
        Where the multiplier of the totals is, if these are restricted.
    """

    z: Vector
    scores: Vector
    lowered: Vector
    soft: Vector
    pulled: Vector
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
        linear: Vector,
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
        self.metric = Identity() if metric is None else metric

    def start(self, z: Vector, q: Vector) -> Iterate:
        """Return where to start: at a dual point, with soft labels that need not belong to it."""
        pulled = self._pull(q)
        balance = None if self.totals is None else Balance.start(self.totals, z, pulled)
        return Iterate(z, self.hinges.scores(z), self.metric.matvec(z), q, pulled, balance)

    def descend(self, at: Iterate, centre: Vector, sigma: float, accuracy: float) -> Descent:
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
        self._relabel(at, rows_that_differ(soft, at.soft), soft)
        steps, noisy, smallest, since = 0, False, np.inf, 0
        while True:
            gradient = at.lowered - at.pulled
            if at.balance is not None:
                gradient[..., -1] = at.balance.gradient(at.z, at.pulled, sigma)
            value = self.metric.half_square(at.z, at.pulled, self.totals)
            size = float(np.sqrt(2.0 * max(value, self.floor)))
            norm = float(np.linalg.norm(gradient))
            smallest, since = (norm, steps) if norm < 0.9 * smallest else (smallest, since)
            noisy = noisy or steps > since + (IDLE if norm > FINE * size else 1)
            if noisy or steps >= MOST_STEPS or budget.exhausted or norm <= accuracy * size:
                at.pulled = self._pull(at.soft)  # free of the rounding errors of the updates
                return Descent(steps, norm, size, value, noisy)
            budget.spend()
            steps += 1
            curve = np.ones(at.z.shape)
            if at.balance is not None:
                curve[..., -1] = at.balance.curvature(at.z, sigma)
            wanted = accuracy * size / norm
            step = self.metric.step(
                StepRequest(hinges, self.shape, at.soft, curve, sigma, gradient, accuracy, wanted)
            )
            change, rise = hinges.scores(step), self.metric.matvec(step)
            slope = Slope(self.shape, centre, at.scores, change, sigma, hinges.weights, at.soft)
            slope.at_zero = float(np.vdot(gradient, step))
            slope.quadratic = float(np.vdot(step, rise))
            if at.balance is not None:
                at.balance.add_to(slope, at.z, step, sigma)
            length = line_search(slope)
            noisy = length == 0.0  # floating point sees no descent any more
            rows, labels = slope.labels(length)
            soft = at.soft
            at.pulled = at.pulled + hinges.adjoint_some(rows, labels - soft[..., rows])
            soft[..., rows] = labels
            at.z, at.lowered = at.z + length * step, at.lowered + length * rise
            change *= length
            at.scores += change

    def paired(self, at: Iterate, error: float) -> DualSolution:
        """Return the dual point that belongs to the soft labels, see `paired`."""
        return paired(
            self.hinges, self.shape, self.totals, at.z, at.soft, at.pulled, self.metric, error
        )

    def recentre(self, at: Iterate, sigma: float) -> Vector:
        """Return the soft labels as a new centre, and move that of the totals."""
        at.lowered = self.metric.matvec(at.z)
        if at.balance is not None:
            at.balance = at.balance.next(at.z, sigma)
        return at.soft

    def _pull(self, q: Vector) -> Vector:
        return self.hinges.adjoint(self.hinges.weights * q) - self.linear

    def _relabel(self, at: Iterate, rows: Indices, soft: Vector) -> None:
        change = soft[..., rows] - at.soft[..., rows]
        at.pulled = at.pulled + self.hinges.adjoint_some(rows, change)
        at.soft = soft


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
    linear: Vector,
    z: Vector,
    q: Vector,
    *,
    shape: LabelSet,
    totals: Totals | None,
    tol: float,
    floor: float,
    budget: Budget,
    sigma: float | None = None,
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
    sigma : float, optional
        The first σ. Larger is faster from a good start, slower from a poor one.
    """
    newton = Newton(hinges, linear, shape, totals, floor, budget, metric)
    # Two classes that cannot be improved against each other tie in all rows, and restricted totals
    # tie rows as well: then a large σ amplifies rounding errors instead of finding corners.
    degenerate = q.ndim > 1 or totals is not None
    # Sums of all classes have curvature 1 beside σ: their ratio must leave digits.
    largest = LARGEST_SIGMA[q.ndim - 1]
    if sigma is None:  # with several classes, scores are the smaller the more there are
        sigma = FIRST_SIGMA * max(1.0, len(q) / 2 if q.ndim > 1 else 1.0)
    at, centre = newton.start(z, q), q
    accuracy, patience = 0.1, PATIENCE
    best: DualSolution | None = None
    while True:
        done = newton.descend(at, centre, sigma, accuracy)
        solution = newton.paired(at, EXACT * max(tol * done.value, floor))
        slow = best is not None and solution.gap > SLOW * best.gap
        if best is None or solution.gap < best.gap or solution.value <= floor:
            best = solution
        patience = patience - 1 if slow else PATIENCE
        budget.report("working set", len(hinges.weights), best.gap, best.value)
        if best.is_optimal(tol, floor) or budget.exhausted or not patience:
            return best
        centre = newton.recentre(at, sigma)
        if done.noisy and degenerate and done.norm > NOISE * done.size:
            sigma = max(sigma / LEAP, FIRST_SIGMA)
        elif done.steps <= EASY:
            sigma = min((LEAP if slow and done.steps <= 1 else GROWTH) * sigma, largest)
        enough = INNER * solution.gap / max(solution.value, floor)
        accuracy = max(min(0.1 * accuracy if slow else accuracy, enough), FINEST)


def duality_gap(t: Vector, q: Vector, s: Vector, shape: LabelSet) -> float:
    """Return Σ s (q·t + max(-q·t)): every term says how far a soft label is from its corner."""
    total = 0.0
    for lo in range(0, len(s), CHUNK):  # so that nothing as long as t is made on the way
        rows = slice(lo, lo + CHUNK)
        at = (q[..., rows] * t[..., rows]).reshape(-1, len(s[rows])).sum(axis=0)
        total += float(s[rows] @ (at + shape.at(rows).support(t[..., rows])))
    return total


def paired(
    hinges: Hinges,
    shape: LabelSet,
    totals: Totals | None,
    z: Vector,
    q: Vector,
    pulled: Vector,
    metric: Metric,
    error: float,
) -> DualSolution:
    """Return the point that belongs to the soft labels, and how far the pair is from optimal.

    Parameters
    ----------
    hinges, shape, totals
    z : array
        A guess of the point (and the multiplier of the totals, which is kept).
    q : array
        Soft labels.
    pulled : array
        Σ s_j q_j k_j - l.
    metric : Metric
    error : float
        What the inexactness of the point may add to the gap.
    """
    point, inexact = metric.solve(pulled, z, error)
    value = metric.half_square(point, pulled, totals)
    if totals is not None:
        point = point.copy()
        point[..., -1] = z[..., -1]
    gap = duality_gap(hinges.scores(point), q, hinges.weights, shape) + inexact
    if totals is not None:
        gap += totals_gap(totals, point[..., -1], pulled[..., -1])
    return DualSolution(point, q, gap, value)


def totals_gap(totals: Totals, mu: Vector, total: Vector) -> float:
    """Return what totals add to the gap: a multiplier without need, and totals not allowed."""
    allowed = totals.project(total)
    off = total - allowed
    excess = totals.support(mu) - float(np.sum(mu * allowed))
    return excess + float(np.sum(np.abs(mu * off) + 0.5 * off**2))


def _nearest(shape: LabelSet, q: Vector, sigma: float, t: Vector) -> Vector:
    """Return the allowed labels nearest to q - σt."""
    soft = np.empty_like(t)

    def part(rows: slice) -> None:
        soft[..., rows] = shape.at(rows).project(q[..., rows] - sigma * t[..., rows])

    map_in_threads(part, blocks(t))
    return soft
