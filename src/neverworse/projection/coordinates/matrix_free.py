"""Coordinates for more columns than an n_features × n_features matrix can have.

They are the weights themselves, about the mean of the rows and in units of their own. The
quadratic part of the loss is not the identity in them, but a matrix M = T'HT that is known by its
products: one pass over the rows each. Linear systems are solved by conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from neverworse._iterations import Solved, conjugate_gradients
from neverworse._typing import Indices, Matrix, Vector
from neverworse.projection.coordinates import Coordinates, Points, Weights, visible
from neverworse.projection.coordinates.gram import GramCoordinates, Moments
from neverworse.projection.label_sets import Curvature, weighted_scores
from neverworse.rows import Rows, RowWeigh

# Columns whose sums of squares (with the penalty) differ by no more are left as they are: units of
# their own would give rare columns, which say little, as much room as all others.
EVEN = 1e4
SMALLEST_RESIDUAL = 1e-14  # relative to the right-hand side: rounding errors allow no more
MOST_NUMBERS = 5e7  # in the basis of a distance
AT_ONCE = 64  # directions for which linear systems are solved together


@dataclass(frozen=True)
class MatrixFreeCoordinates(Coordinates):
    """Weights as coordinates, centred at the mean of the rows."""

    rows: Rows
    weights: Vector  # (n_rows,): of the rows in the loss
    alpha: float  # ridge penalty in the loss
    mean: Vector
    unit: Vector  # (n_columns,): of the weights
    # Units of the last coordinates, which shift all scores: the intercept (if there is one), and
    # the multiplier of the totals (if these are restricted)
    shifts: Vector
    # Whether the last coordinate is that multiplier. It is no part of M, in which it has a one
    restricted: bool
    column_norms: Vector
    idle: Indices  # columns in which no row differs from the mean

    @property
    def offset(self) -> Vector:  # type: ignore[override]
        return np.concatenate([np.zeros(len(self.unit)), self.shifts])

    def coef(self, z: Matrix) -> Matrix:
        return self.unit * z[:, : len(self.unit)]

    def point(self, w: Weights) -> Matrix:
        """Return the point z of weights Tz, without restricted totals."""
        shifts = np.multiply.outer(w.intercept + w.coef @ self.centre, 1.0 / self.shifts)
        return np.column_stack([w.coef / self.unit, shifts])

    def adjoint_coef(self, gradient: Matrix) -> Matrix:
        nothing = np.zeros((len(gradient), len(self.shifts)))
        return np.concatenate([self.unit * gradient, nothing], axis=1)

    def adjoint(self, weighted_sum: Matrix, total: Vector) -> Matrix:
        found = np.empty((len(weighted_sum), self.rank))
        centred = found[:, : len(self.unit)]  # filled in place: there are many columns
        np.multiply(total[:, None], -self.mean, out=centred)
        centred += weighted_sum
        centred *= self._seen
        found[:, len(self.unit) :] = total[:, None] * self.shifts
        return found

    @cached_property
    def _seen(self) -> Vector:
        """The units, with zeros for columns in which no row differs."""
        seen = self.unit.copy()
        seen[self.idle] = 0.0
        return seen

    def with_total(self, size: float) -> MatrixFreeCoordinates:
        return replace(self, shifts=np.append(self.shifts, size), restricted=True)

    def matvec(self, z: Matrix) -> Matrix:
        w = self.to_weights(self._unrestricted(z))
        weigh = RowWeigh(weighted_scores, (self.weights,))
        summed, total = self.rows.score_weighted_sum(w.coef, w.intercept, weigh)
        product = self._penalised(self.adjoint(summed, total), w.coef)
        if self.restricted:
            product[:, -1] = z[:, -1]
        return product

    def _penalised(self, product: Matrix, coef: Matrix) -> Matrix:
        if self.alpha > 0.0:
            product[:, : len(self.unit)] += (self.alpha * self.unit) * coef
        return product

    def solve(
        self,
        p: Matrix,
        error: float,
        near: Matrix | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Solved:
        """Solve Mz = p until the error of ½ p·z is at most `error`."""
        right = self._unrestricted(p)
        least = SMALLEST_RESIDUAL * float(np.linalg.norm(right))

        def enough(residual: Matrix) -> bool:
            return self.half_error(residual) <= error or float(np.linalg.norm(residual)) <= least

        start = None if near is None else self._unrestricted(near)
        return conjugate_gradients(self.matvec, right, enough, start=start, stop=stop)

    def _unrestricted(self, z: Matrix) -> Matrix:
        if self.restricted:
            z = z.copy()
            z[:, -1] = 0.0
        return z

    def half_error(self, residual: Matrix) -> float:
        """Return a bound of ½ r'M⁻¹r; without penalty, an estimate."""
        d = len(self.unit)
        of_coef, of_shift = residual[:, :d], residual[:, d:]
        if self.alpha > 0.0:
            of_coef = of_coef / (np.sqrt(self.alpha) * self.unit)
        return 0.5 * float(np.vdot(of_coef, of_coef) + np.vdot(of_shift, of_shift))

    def curved(self, curvature: Curvature, curve: Matrix, z: Matrix) -> Matrix:
        """Return (M + Σ_j σ s_j P_j ⊗ k_j k_j') z, in one pass.

        `curve` is the diagonal of M: what counts is the element of the multiplier, which has no
        other.
        """
        w = self.to_weights(z)
        shift = self.shifts[-1] * z[:, -1] if self.restricted else None
        weigh = RowWeigh(_both, (replace(curvature, shift=shift), self.weights))
        t, summed, total = self.rows.scores_and_sum(w.coef, w.intercept, weigh)
        product = self._penalised(self.adjoint(summed, total), w.coef)
        if shift is not None:  # what M adds up is none of the multiplier's business
            added = (t - shift[:, None]) @ self.weights
            product[:, -1] += curve[:, -1] * z[:, -1] - self.shifts[-1] * added
        return product

    def in_distance(
        self, points: Points, stop: Callable[[], bool]
    ) -> tuple[GramCoordinates, Matrix] | None:
        """See `Coordinates`: those of the directions M⁻¹D', found by conjugate gradients."""
        if points.rows is None:
            raise ValueError(
                f"distance={points.name} takes an (n_features, n_features) matrix, and X has "
                f"{self.rows.n_columns:,} columns. Use distance='all', or fewer columns (for "
                "example by sklearn.decomposition.TruncatedSVD)."
            )
        s = np.ones(points.rows.n_rows) if points.weights is None else points.weights
        used = np.flatnonzero(s > 0.0)
        if len(used) * self.rank > MOST_NUMBERS:
            raise ValueError(
                f"distance={points.name} is measured at {len(used):,} points, and X has "
                f"{self.rows.n_columns:,} columns: too many of both. Use distance='all', fewer "
                "points, or fewer columns (for example by sklearn.decomposition.TruncatedSVD)."
            )
        root, shift = np.sqrt(s[used]), self.rows.shift
        forms = np.empty((len(used), self.rank))
        basis = np.empty_like(forms)
        for lo in range(0, len(used), AT_ONCE):
            these = slice(lo, lo + AT_ONCE)
            taken = points.rows.take(used[these])
            taken = taken if shift is None else taken - shift
            forms[these] = self.apply(taken) if points.with_one else self.adjoint_coef(taken)
            forms[these] *= root[these, None]
            basis[these] = self.solve(forms[these], 0.0, stop=stop).x
            if stop():
                return None  # what some of the points say would be another distance
        _, vectors, largest = visible(0.5 * (forms @ basis.T + basis @ forms.T))
        basis = basis.T @ (vectors / np.sqrt(largest))
        d = len(self.unit)
        parts = self.unit[:, None] * basis[:d], self.shifts @ basis[d:]
        found = GramCoordinates(self.rows, self.mean, *parts, self.column_norms, self.idle)
        return found, basis


def _both(t: Vector, curvature: Curvature, weights: Vector) -> Vector:
    """Return what a product with M and the curvature of the hinges weighs rows with."""
    moved = curvature(t)
    without = t if curvature.shift is None else t - curvature.shift[:, None]
    return moved + weighted_scores(without, weights)


def weight_coordinates(
    sums: Moments, weights: Vector | None, alpha: float, fit_intercept: bool
) -> MatrixFreeCoordinates:
    """Return the weights as coordinates for the loss of rows with these moments."""
    s = np.ones(sums.rows.n_rows) if weights is None else weights
    size = sums.spread + alpha
    # Without penalty there may be many solutions. The shortest is wanted, in the units of the data.
    uneven = alpha > 0.0 and float(size.max()) > EVEN * float(size.min())
    unit = 1.0 / np.sqrt(size) if uneven else np.full(len(size), 1.0 / np.sqrt(size.max() or 1.0))
    shifts = np.full(int(fit_intercept and sums.total > 0.0), 1.0 / np.sqrt(sums.total or 1.0))
    return MatrixFreeCoordinates(
        sums.rows,
        s,
        alpha,
        sums.mean,
        unit,
        shifts,
        restricted=False,
        column_norms=np.sqrt(sums.raw),
        idle=np.flatnonzero(~sums.varies),
    )
