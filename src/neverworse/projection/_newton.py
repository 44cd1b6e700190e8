r"""Minimise a strongly convex, piecewise quadratic function exactly.

.. math:: f(z) = \tfrac12 \lVert z \rVert^2 + l \cdot z + \sum_j s_j \max(0, -k_j \cdot z)

Each hinge is the largest value of :math:`-q_j t_j` over soft labels :math:`q_j \in [0, 1]`, with
:math:`t_j = k_j \cdot z`. A proximal term :math:`-(q_j - \bar q_j)^2 / 2\sigma` makes it smooth,
with :math:`q_j = \operatorname{clip}(\bar q_j - \sigma t_j)`: the augmented Lagrangian. Its
minimum over z takes a few Newton steps, whose matrix is the identity plus σ times the Gram matrix
of the rows with a soft label strictly between 0 and 1. Then :math:`\bar q \leftarrow q`, σ grows,
and the signs of all :math:`t_j`, after that the exact minimum, are found in finitely many steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from neverworse._typing import Indices, Matrix, Vector
from neverworse.projection._budget import Budget
from neverworse.projection._hinges import Hinges
from neverworse.rows._threads import map_in_threads

FIRST_SIGMA = 100.0  # t is a difference of scores of 0/1 targets: a hundredth is a small one
GROWTH = 5.0  # of σ, after each update of the soft labels that took at most ...
EASY = 4  # ... so many Newton steps
LEAP = 50.0  # growth of σ where such an update leaves most of the gap open
LARGEST_SIGMA = 1e17
MOST_STEPS = 50  # between two updates of the soft labels
SLOW = 0.5  # an update of the soft labels that leaves more of the gap than this is slow, and ...
PATIENCE = 8  # ... after so many of them the solver gives up
PIECE = 2**17  # numbers in a piece of the rows that enter the Newton matrix
FEW = 4  # taking one in so many rows is faster than reading all
CHUNK = 2**16  # rows for which temporary arrays are made
FINEST = 1e-12  # relative accuracy of the Newton steps, at the end
ROWS_PER_COLUMN = 100  # the Newton matrix is close enough when estimated from so many rows, ...
ROUGH = 0.01  # ... as long as steps need not be more accurate than this


@dataclass(frozen=True)
class DualSolution:
    """A dual point with the soft labels that prove how good it is.

    Attributes
    ----------
    z : array of shape (rank,)
        Σ s_j q_j k_j - l: the point that belongs to the soft labels.
    q : array of shape (n,)
        Soft labels.
    gap : float
        Duality gap of the pair, an upper bound of f(z) - min f.
    """

    z: Vector
    q: Vector
    gap: float

    @property
    def value(self) -> float:
        """Half the squared distance, ½‖z‖²: what the soft labels minimise."""
        return 0.5 * float(self.z @ self.z)

    def is_optimal(self, tol: float, floor: float) -> bool:
        """Whether the gap is small against the value, or one of both cannot be told from zero."""
        return self.gap <= max(tol * self.value, floor) or self.value <= floor


def minimise(
    hinges: Hinges,
    linear: Vector,
    z: Vector,
    q: Vector,
    *,
    tol: float,
    floor: float,
    budget: Budget,
    sigma: float = FIRST_SIGMA,
) -> DualSolution:
    """Minimise f, starting from the dual point `z` and the soft labels `q`.

    Parameters
    ----------
    hinges : Hinges
    linear : array of shape (rank,)
        The vector l.
    z, q : arrays
        Where to start.
    tol : float
        Duality gap at the end, relative to the value.
    floor : float
        A value of at most this counts as zero.
    budget : Budget
        Newton steps and time; when they end, the best pair so far is returned.
    sigma : float
        The first σ. Larger is faster from a good start, slower from a poor one.
    """
    s = hinges.weights
    t = hinges.scores(z)
    accuracy, steps, stalled, patience = 0.1, 0, False, PATIENCE
    best: DualSolution | None = None
    soft = q
    point = hinges.pull(s * soft) - linear
    while True:
        before, soft = soft, np.clip(q - sigma * t, 0.0, 1.0)
        point = point + _pull_change(hinges, s * (soft - before))
        gradient = z - point
        enough = accuracy * max(float(np.linalg.norm(point)), np.sqrt(2 * floor))
        stalled = stalled or steps >= MOST_STEPS or budget.exhausted
        if stalled or float(np.linalg.norm(gradient)) <= enough:
            point = hinges.pull(s * soft) - linear  # free of the rounding errors of the updates
            solution = DualSolution(point, soft, duality_gap(hinges.scores(point), soft, s))
            slow = best is not None and solution.gap > SLOW * best.gap
            if best is None or solution.gap < best.gap or solution.value <= floor:
                best = solution
            patience = patience - 1 if slow else PATIENCE
            if best.is_optimal(tol, floor) or budget.exhausted or not patience:
                return best
            q = soft
            if steps <= EASY:
                sigma = min((LEAP if slow and steps <= 1 else GROWTH) * sigma, LARGEST_SIGMA)
            accuracy, steps, stalled = max(0.1 * accuracy, FINEST), 0, False
            continue
        budget.spend()
        steps += 1
        between = np.flatnonzero((soft > 0.0) & (soft < 1.0) & (s > 0.0))
        step = _newton_step(hinges, between, sigma, gradient, rough=accuracy >= ROUGH)
        change = hinges.scores(step)
        length = _line_search(_Slope(z, step, linear, t, change, s, q, sigma))
        stalled = length == 0.0  # floating point sees no descent any more
        z = z + length * step
        t = t + length * change


def duality_gap(t: Vector, q: Vector, s: Vector) -> float:
    """Return Σ s (q t + max(0, -t)): every term says how far a soft label is from its sign."""
    total = 0.0
    for lo in range(0, len(t), CHUNK):  # so that nothing as long as t is made on the way
        rows = slice(lo, lo + CHUNK)
        total += float(s[rows] @ (q[rows] * t[rows] + np.maximum(0.0, -t[rows])))
    return total


def _pull_change(hinges: Hinges, x: Vector) -> Vector:
    """Return Σ x_j k_j, from a few rows where only few have changed."""
    changed = np.flatnonzero(x)
    if FEW * len(changed) < len(x):
        return x[changed] @ hinges.take(changed)
    return hinges.pull(x)


def _newton_step(
    hinges: Hinges, between: Indices, sigma: float, gradient: Vector, rough: bool
) -> Vector:
    """Solve (I + σ Σ s k k') step = -gradient over the rows `between`, or a sample if `rough`."""
    rank, n = hinges.rank, len(between)
    if n == 0:
        return -gradient
    if n < rank:
        rows = hinges.take(between) * np.sqrt(hinges.weights[between])[:, None]
        matrix = sigma * (rows @ rows.T)
        matrix.flat[:: n + 1] += 1.0
        return sigma * (_solve(matrix, rows @ gradient) @ rows) - gradient
    most = ROWS_PER_COLUMN * rank
    factor = 1.0
    if rough and n > most:
        factor = n / most
        between = np.sort(np.random.default_rng(0).choice(between, most, replace=False))

    def gram(piece: Indices) -> Matrix:
        rows = hinges.take(piece) * np.sqrt(hinges.weights[piece])[:, None]
        product: Matrix = rows.T @ rows
        return product

    pieces = np.array_split(between, max(1, len(between) * rank // PIECE))
    matrix = sum(map_in_threads(gram, pieces), np.zeros((rank, rank)))
    matrix *= sigma * factor
    matrix.flat[:: rank + 1] += 1.0
    return -_solve(matrix, gradient)


def _solve(matrix: Vector, right: Vector) -> Vector:
    triangle, _ = lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
    solution: Vector = lapack.dpotrs(triangle, right, lower=1)[0]
    return solution


class _Slope:
    """The derivative of the augmented Lagrangian along a step; it increases."""

    def __init__(
        self,
        z: Vector,
        step: Vector,
        linear: Vector,
        t: Vector,
        change: Vector,
        s: Vector,
        q: Vector,
        sigma: float,
    ) -> None:
        self._constant = float((z + linear) @ step)
        self._quadratic = float(step @ step)
        self._start = q - sigma * t
        self._change = sigma * change
        self._weights = s * change

    def __call__(self, length: float) -> float:
        soft = self._start - length * self._change
        np.clip(soft, 0.0, 1.0, out=soft)
        return self._constant + length * self._quadratic - float(self._weights @ soft)


def _line_search(slope: _Slope) -> float:
    """Return a step length at which most of the slope is gone (0 if there is none to begin with).

    Newton's length is kept when it does. Otherwise the zero of the slope is bracketed and found by
    the Illinois variant of the secant rule.
    """
    at_zero, at_one = slope(0.0), slope(1.0)
    if at_zero >= 0.0:
        return 0.0
    if abs(at_one) <= 0.3 * abs(at_zero):
        return 1.0
    low, f_low, high, f_high = 0.0, at_zero, 1.0, at_one
    while f_high < 0.0 and high < 1e6:
        low, f_low, high = high, f_high, 2.0 * high
        f_high = slope(high)
    side = 0
    for _ in range(30):
        if f_high <= f_low:
            break
        length = low - f_low * (high - low) / (f_high - f_low)
        value = slope(length)
        if abs(value) <= 0.1 * abs(at_zero):
            return length
        if value < 0.0:
            low, f_low = length, value
            f_high *= 0.5 if side < 0 else 1.0
            side = -1
        else:
            high, f_high = length, value
            f_low *= 0.5 if side > 0 else 1.0
            side = 1
    return low or high
