"""Coordinates for so many columns that no matrix of columns by columns can be made.

They are the weights themselves, about the mean of the rows and in units of their own. The
quadratic part of the loss is not the identity in them, but a matrix M = T'HT that is known by its
products: one pass over the rows each. Linear systems are solved by conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from neverworse._typing import Indices, Matrix, Scalars, Vector
from neverworse.projection.coordinates.conjugate_gradients import Solved, conjugate_gradients
from neverworse.projection.coordinates.gram import EPS, Whitening
from neverworse.projection.coordinates.moments import ColumnMoments, column_moments
from neverworse.projection.label_sets import Curvature, weighted_scores
from neverworse.projection.weights import Weights
from neverworse.rows import Rows
from neverworse.rows._weigh import RowWeigh

# Columns whose sums of squares (with the penalty) differ by no more are left as they are: units of
# their own would give rare columns, which say little, as much room as all others.
EVEN = 1e4
SMALLEST_RESIDUAL = 1e-14  # relative to the right-hand side: rounding errors allow no more


@dataclass(frozen=True)
class WeightSpace:
    """Weights as coordinates, centred at the mean of the rows.

    Attributes
    ----------
    rows : Rows
        The rows (perhaps shifted) that `mean` refers to.
    weights : array of shape (n_rows,)
        Of the rows in the loss.
    alpha : float
        Ridge penalty in the loss.
    mean : array of shape (n_columns,)
        Where the rows are centred.
    unit : array of shape (n_columns,)
        Of the weights.
    shifts : array
        Units of the last coordinates, which shift all scores: the intercept (if there is one), and
        the multiplier of the totals (if these are restricted).
    restricted : bool
        Whether the last coordinate is that multiplier. It is no part of M, in which it has a one.
    column_norms, idle
        See `Whitening`.
    """

    rows: Rows
    weights: Vector
    alpha: float
    mean: Vector
    unit: Vector
    shifts: Vector
    restricted: bool
    column_norms: Vector
    idle: Indices

    takes_rows = False  # they are too long

    @property
    def rank(self) -> int:
        """The number of coordinates."""
        return len(self.unit) + len(self.shifts)

    @property
    def offset(self) -> Vector:
        """What every coordinate adds to all scores of centred rows."""
        return np.concatenate([np.zeros(len(self.unit)), self.shifts])

    def to_weights(self, z: Vector) -> Weights:
        """See `Whitening.to_weights`."""
        d = len(self.unit)
        coef = self.unit * z[..., :d]
        offset = z[..., d:] @ self.shifts - coef @ self.mean
        shift = self.rows.shift
        return Weights(coef, offset if shift is None else offset - coef @ shift)

    def adjoint(self, weighted_sum: Vector, total: Scalars) -> Vector:
        """See `Whitening.adjoint`."""
        total = np.asarray(total)[..., None]
        pulled = np.empty((*weighted_sum.shape[:-1], self.rank))
        centred = pulled[..., : len(self.unit)]  # filled in place: there are many columns
        np.multiply(total, -self.mean, out=centred)
        centred += weighted_sum
        centred *= self._seen
        pulled[..., len(self.unit) :] = total * self.shifts
        return pulled

    @cached_property
    def _seen(self) -> Vector:
        """The units, with zeros for columns in which no row differs."""
        seen = self.unit.copy()
        seen[self.idle] = 0.0
        return seen

    def adjoint_coef(self, gradient: Vector) -> Vector:
        """See `Whitening.adjoint_coef`."""
        nothing = np.zeros((*gradient.shape[:-1], len(self.shifts)))
        return np.concatenate([self.unit * gradient, nothing], axis=-1)

    def with_total(self, size: float) -> WeightSpace:
        """See `Whitening.with_total`."""
        return replace(self, shifts=np.append(self.shifts, size), restricted=True)

    def matvec(self, z: Vector) -> Vector:
        """Return Mz."""
        if self.restricted:
            without = z.copy()
            without[..., -1] = 0.0
            lowered = self._lower(without)
            lowered[..., -1] = z[..., -1]
            return lowered
        return self._lower(z)

    def _lower(self, z: Vector) -> Vector:
        w = self.to_weights(z)
        weigh = RowWeigh(weighted_scores, (self.weights,))
        summed, total = self.rows.score_weighted_sum(w.coef, w.intercept, weigh)
        return self._penalised(self.adjoint(summed, total), w.coef)

    def _penalised(self, pulled: Vector, coef: Vector) -> Vector:
        """Add the gradient of the penalty, in place."""
        if self.alpha > 0.0:
            pulled[..., : len(self.unit)] += (self.alpha * self.unit) * coef
        return pulled

    def solve(
        self,
        p: Vector,
        error: float,
        near: Vector | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Solved:
        """Solve Mz = p until the error of ½ p·z is at most so large."""
        if self.restricted:
            p = p.copy()
            p[..., -1] = 0.0
        least = SMALLEST_RESIDUAL * float(np.linalg.norm(p))

        def enough(residual: Vector) -> bool:
            return self.half_error(residual) <= error or float(np.linalg.norm(residual)) <= least

        if near is not None and self.restricted:
            near = near.copy()
            near[..., -1] = 0.0
        return conjugate_gradients(self.matvec, p, enough, start=near, stop=stop)

    def half_error(self, residual: Vector) -> float:
        """Return a bound of ½ r'M⁻¹r; without penalty, an estimate."""
        d = len(self.unit)
        of_coef, of_shift = residual[..., :d], residual[..., d:]
        if self.alpha > 0.0:
            of_coef = of_coef / (np.sqrt(self.alpha) * self.unit)
        return 0.5 * float(np.vdot(of_coef, of_coef) + np.vdot(of_shift, of_shift))

    def curved(self, curvature: Curvature, curve: Vector, z: Vector) -> Vector:
        """Return (M + Σ_j σ s_j P_j ⊗ k_j k_j') z, in one pass; `curve` is the last diagonal of M.

        Parameters
        ----------
        curvature : Curvature
            σ s_j P_j of every row.
        curve : array like z
            Diagonal of M; what counts is the element of the multiplier, which has no other.
        z : array
        """
        w = self.to_weights(z)
        shift = self.shifts[-1] * z[..., -1] if self.restricted else None
        weigh = RowWeigh(_both, (replace(curvature, shift=shift), self.weights))
        t, summed, total = self.rows.scores_and_sum(w.coef, w.intercept, weigh)
        product = self._penalised(self.adjoint(summed, total), w.coef)
        if shift is not None:  # what M adds up is none of the multiplier's business
            added = (t - shift[..., None]) @ self.weights
            product[..., -1] += curve[..., -1] * z[..., -1] - self.shifts[-1] * added
        return product


def _both(t: Vector, curvature: Curvature, weights: Vector) -> Vector:
    """Return what a product with M and the curvature of the hinges weighs rows with."""
    moved = curvature(t)
    without = t if curvature.shift is None else t - curvature.shift[..., None]
    return moved + weighted_scores(without, weights)


def weight_space(
    rows: Rows, weights: Vector | None, alpha: float, fit_intercept: bool
) -> WeightSpace:
    """Return the weights as coordinates for the loss of these rows."""
    sums = column_moments(rows, weights, centre=fit_intercept)
    return weight_space_of(sums, weights, alpha, fit_intercept)


def weight_space_of(
    sums: ColumnMoments, weights: Vector | None, alpha: float, fit_intercept: bool
) -> WeightSpace:
    """Return the same for rows whose moments are known."""
    idle = np.flatnonzero(~sums.varies)
    s = np.ones(sums.rows.n_rows) if weights is None else weights
    size = sums.spread + alpha
    # Without penalty there may be many solutions. The shortest is wanted, in the units of the data.
    uneven = alpha > 0.0 and float(size.max()) > EVEN * float(size.min())
    unit = 1.0 / np.sqrt(size) if uneven else np.full(len(size), 1.0 / np.sqrt(size.max() or 1.0))
    shifts = np.empty(0)
    if fit_intercept and sums.total > 0.0:
        shifts = np.array([1.0 / np.sqrt(sums.total)])
    return WeightSpace(sums.rows, s, alpha, sums.mean, unit, shifts, False, np.sqrt(sums.raw), idle)


MOST_NUMBERS = 5e7  # in the basis
AT_ONCE = 64  # directions for which linear systems are solved together


def distance_basis(
    space: WeightSpace,
    points: Rows,
    weights: Vector | None,
    with_one: bool,
    name: str,
    stop: Callable[[], bool],
) -> tuple[Whitening, Matrix] | None:
    """Return coordinates in which the distance is Euclidean.

    Parameters
    ----------
    space : WeightSpace
    points : Rows
        D, without shift.
    weights : array of shape (n_points,) or None
        Of the points; ones if None.
    with_one : bool
        Whether points have a one for the intercept.
    name : str
        Of the distance, for a message.
    stop : callable
        Asked after every product; None is returned where it says True.

    Returns
    -------
    whitening : Whitening
    basis : array of shape (rank of `space`, rank)
        In the coordinates of `space`.
    """
    used = np.arange(points.n_rows) if weights is None else np.flatnonzero(weights > 0.0)
    if len(used) * space.rank > MOST_NUMBERS:
        raise ValueError(
            f"distance={name} is measured at {len(used):,} points, and X has "
            f"{space.rows.n_columns:,} columns: too many of both. Use distance='all', fewer "
            "points, or fewer columns (for example by sklearn.decomposition.TruncatedSVD)."
        )
    root = np.ones(len(used)) if weights is None else np.sqrt(weights[used])
    forms = np.empty((len(used), space.rank))
    basis = np.empty_like(forms)
    shift = space.rows.shift
    for lo in range(0, len(used), AT_ONCE):
        these = slice(lo, lo + AT_ONCE)
        taken = points.take(used[these]) if shift is None else points.take(used[these]) - shift
        one = np.ones(len(taken))
        forms[these] = space.adjoint(taken, one) if with_one else space.adjoint_coef(taken)
        forms[these] *= root[these, None]
        basis[these] = space.solve(forms[these], 0.0, stop=stop).x
        if stop():
            return None  # what some of the points say would be another distance
    values, vectors = linalg.eigh(0.5 * (forms @ basis.T + basis @ forms.T))
    largest = float(values.max(initial=0.0))
    kept = values > len(values) * 16 * EPS * largest
    basis = basis.T @ (vectors[:, kept] / np.sqrt(largest))
    d = len(space.unit)
    whitening = Whitening(
        space.rows,
        space.mean,
        space.unit[:, None] * basis[:d],
        space.shifts @ basis[d:],
        space.column_norms,
        space.idle,
    )
    return whitening, basis
