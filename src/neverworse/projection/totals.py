"""Totals of the soft labels over all rows that are known: what a class prior says.

In the dual, totals are one more coordinate μ per class: it is added to every score, has no
quadratic term, and costs the largest M·μ over totals M in their intervals.

The largest -Σ ω_j q_j·t_j over soft labels whose totals Σ ω_j q_j are restricted is a linear
program. Any multiplier of the totals gives an upper bound of it, and the best multiplier gives the
maximum itself. Whoever uses it evaluates the bound, so nothing rests on how accurate the multiplier
is but the last digits of tightness.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize, sparse

from neverworse._typing import Matrix, Vector
from neverworse.projection.label_sets import LabelSet

SINGULAR = 1e-11  # what makes a matrix with elements of size one invertible


@dataclass(frozen=True)
class Totals:
    """Intervals for Σ s_j q_j over the unlabeled rows, one for each class."""

    # (n_classes,)
    low: Vector
    high: Vector

    def scaled(self, factor: float) -> Totals:
        return Totals(factor * self.low, factor * self.high)

    def project(self, total: Vector) -> Vector:
        return np.clip(total, self.low, self.high)

    def support(self, multiplier: Vector) -> float:
        """Return the largest M·μ."""
        return float(np.sum(np.maximum(self.low * multiplier, self.high * multiplier)))

    def inner(self, total: Vector) -> Vector:
        """Return which totals are strictly inside their interval, as zeros and ones."""
        return ((total > self.low) & (total < self.high)).astype(np.float64)

    def gap(self, multiplier: Vector, total: Vector) -> float:
        """Return what a multiplier without need, and totals that are not allowed, add to a gap."""
        allowed = self.project(total)
        off = total - allowed
        excess = self.support(multiplier) - float(multiplier @ allowed)
        return excess + float(np.sum(np.abs(multiplier * off) + 0.5 * off**2))


@dataclass(frozen=True)
class Balance:
    """The part of the augmented Lagrangian that belongs to the multiplier μ of the totals."""

    totals: Totals
    # (n_classes,): where the proximal terms of the totals M and of μ are centred
    centre: Vector
    multiplier: Vector

    def next(self, z: Matrix, sigma: float) -> Balance:
        return Balance(self.totals, self._total(z[:, -1], sigma), z[:, -1].copy())

    @staticmethod
    def _proximal(sigma: float) -> float:
        """Return the curvature of the proximal term: small, but not against σ.

        A shift of all classes changes nothing else, and must not make the Newton matrix singular.
        """
        return 1.0 / sigma + SINGULAR * sigma

    def _total(self, mu: Vector, sigma: float) -> Vector:
        return self.totals.project(self.centre + sigma * mu)

    def gradient(self, z: Matrix, primal: Matrix, sigma: float) -> Vector:
        mu = z[:, -1]
        near = self._proximal(sigma) * (mu - self.multiplier)
        return near + self._total(mu, sigma) - primal[:, -1]

    def curvature(self, z: Matrix, sigma: float) -> Vector:
        return self._proximal(sigma) + sigma * self.totals.inner(self._total(z[:, -1], sigma))

    def along(
        self, z: Matrix, step: Matrix, sigma: float
    ) -> tuple[float, Callable[[float], float]]:
        """Return what holds along a step instead of μ²/2: curvature, and the rest of the slope."""
        mu, along = z[:, -1], step[:, -1]
        total = self._total(mu, sigma)

        def rest(length: float) -> float:
            return float(along @ (self._total(mu + length * along, sigma) - total))

        return float(along @ along) * (self._proximal(sigma) - 1.0), rest


PATIENCE = 8  # rounds after which more rows take part
MOST_ROUNDS = 12  # where classes tie in most rows, the bound may stay a little loose
FIRST_ROWS = 2000  # in the first linear program, where there are many rows
TIGHT = 1e-13  # what rows outside of a linear program may add to the bound, relative to its size


def best_multiplier(t: Matrix, weights: Vector, shape: LabelSet, totals: Totals) -> Vector:
    """Return the multiplier with the lowest bound, of shape (n_classes,).

    The totals are those of Σ ω q; a weight ω is zero for rows that play no part.
    """
    used = np.flatnonzero(weights > 0.0)
    t, weights = t[:, used], weights[used]
    if shape.is_coupled:
        return _of_classes(t, weights, shape.at(used), totals)
    return np.array([_of_one(t[0], weights, float(totals.low[0]), float(totals.high[0]))])


def _of_one(t: Vector, weights: Vector, low: float, high: float) -> float:
    """Return the multiplier for labels of one number, by sorting."""
    order = np.argsort(t, kind="stable")
    t, filled = t[order], np.cumsum(weights[order])
    negative, not_positive = (int(np.searchsorted(t, 0.0, side=side)) for side in ("left", "right"))
    # Labels are 1 where t < 0. If that is too much or too little, up to the total that is allowed.
    if negative and filled[negative - 1] > high:
        total = high
    elif (filled[not_positive - 1] if not_positive else 0.0) < low:
        total = low
    else:
        return 0.0
    return -float(t[min(int(np.searchsorted(filled, total)), len(t) - 1)])


def _of_classes(t: Matrix, weights: Vector, shape: LabelSet, totals: Totals) -> Vector:
    """Minimise the bound over multipliers, in boxes around the best one so far.

    In each box a linear program of few rows is solved, all others in the corner that they have now.
    Corners are no better than the best labels, so its value is not above the bound; where it is
    the same, no multiplier in the box is better. A box of half the margin of the nearest row that
    takes no part is exact. Larger ones are tried as long as they are, too. If that takes many
    rounds, more rows take part.
    """
    if shape.is_uniform:  # rows with the same scores are one row
        t, which = np.unique(t, axis=1, return_inverse=True)
        weights = np.bincount(which.ravel(), weights).astype(np.float64)
    n_classes, n = t.shape
    # The bound is linear between ties of classes, so that it is lowest where chains of ties lead
    # from every class to one whose multiplier is zero: none need be farther away than this.
    farthest = 2.0 * n_classes * (float(np.abs(t).max(initial=0.0)) or 1.0)
    best, n_rows, radius = np.zeros(n_classes), n, farthest
    if n > 2 * FIRST_ROWS:
        random = np.random.default_rng(0)  # only the path depends on it, not the result
        chosen = np.sort(random.choice(n, FIRST_ROWS, replace=False))
        factor = float(weights.sum() / weights[chosen].sum())
        args = t[:, chosen], factor * weights[chosen], shape.at(chosen), totals
        best += _solve(*args, best, np.zeros(n_classes), farthest)
        n_rows, radius = 2 * FIRST_ROWS, 0.0
    size = float(weights @ np.abs(t).max(axis=0))

    def bound(multiplier: Vector) -> float:
        return float(weights @ shape.support(t + multiplier[:, None])) + totals.support(multiplier)

    value, rounds = bound(best), 0
    while True:
        shifted = t + best[:, None]
        corner, margin = shape.minimizer(shifted), shape.margin(shifted)
        nearest = np.sort(np.argpartition(margin, n_rows - 1)[:n_rows])
        radius = min(max(radius, 0.5 * float(margin[nearest].max(initial=0.0))), farthest)
        if n_rows == n:
            radius = farthest
        others = weights.copy()
        others[nearest] = 0.0
        args = t[:, nearest], weights[nearest], shape.at(nearest), totals
        step = _solve(*args, best, corner @ others, radius)
        shifted += step[:, None]
        found = bound(best + step)
        lost = others @ (np.einsum("ki,ki->i", corner, shifted) + shape.support(shifted))
        if found < value:
            best, value = best + step, found
        if n_rows == n:
            return best
        exact = lost <= TIGHT * size
        if exact and (np.abs(step).max() < 0.999 * radius or radius == farthest):
            return best
        radius *= 10.0 if exact else 0.03
        rounds += 1
        if rounds == MOST_ROUNDS:
            return best
        if rounds % PATIENCE == 0:
            n_rows = min(2 * n_rows, n)


def _solve(
    t: Matrix,
    weights: Vector,
    shape: LabelSet,
    totals: Totals,
    centre: Vector,
    known: Vector,
    radius: float,
) -> Vector:
    """Return the step to the best multiplier in a box, by the linear program over some rows.

    That a multiplier is not farther than `radius` from the centre is the same as to allow that
    totals are missed, at this price: min Σ ω q·(t + λ) - λ·M + radius · |Σ ω q + known - M|, where
    λ is the centre, and `known` are the totals of the other rows.
    """
    n_classes, n = t.shape
    scale = float(weights.sum())
    size = float(np.abs(t).max(initial=0.0)) or 1.0
    caps = np.broadcast_to(shape.upper(t), t.shape)
    # Of the unknowns q, M, too much and too little.
    none = np.zeros(2 * n_classes)
    cost = (weights * (t + centre[:, None])).ravel() / scale, -centre, none + radius
    low = np.zeros(n_classes * n), totals.low / scale, none
    high = caps.ravel(), totals.high / scale, none + np.inf
    each, one_total = sparse.eye_array(n_classes), weights[None, :] / scale
    add_up = sparse.kron(np.ones((1, n_classes)), sparse.eye_array(n))
    total = [sparse.kron(each, one_total), -each, -each, each]
    found = optimize.linprog(
        np.concatenate(cost) / size,
        A_eq=sparse.block_array([total, [add_up, None, None, None]]),
        b_eq=np.concatenate([-known / scale, np.ones(n)]),
        bounds=np.column_stack([np.concatenate(low), np.concatenate(high)]),
        method="highs",
    )
    if found.status != 0:  # no step: the multiplier at the centre gives a bound as well
        return np.zeros(n_classes)
    return -size * found.eqlin.marginals[:n_classes]
