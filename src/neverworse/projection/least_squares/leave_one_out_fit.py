"""The least squares fit to all rows, and what it says of the fits without one of them.

Passes over the rows add up what each is worth, wherever the rows are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.projection.coordinates.moments import Moments, moments
from neverworse.rows import Rows, Standard, map_in_threads, reduce_rows

# ``measure(scores, target, weights)``: what is added up, of some rows. Scores have the shape
# (n_alphas, n_targets, n_rows) and targets that of (n_targets, n_rows). Can be pickled.
Measure = Callable[[Vector, Matrix, Vector], Any]
# Where rows are interpolated, there is a formula at no cost for all that is smaller than this.
CLOSE = 1e-2


@dataclass(frozen=True)
class LeftOut:
    """What passes know about rows.

    Attributes
    ----------
    target : array of shape (n_targets, n_rows)
    weights : array of shape (n_rows,)
    corrected : array of int
        Rows whose errors were found in another way, in increasing order.
    errors : array of shape (n_alphas, n_targets, n_corrected)
        Their errors.
    start : int
        Which of all rows is the first of these.
    """

    target: Matrix
    weights: Vector
    corrected: Indices
    errors: Vector
    start: int = 0

    def at(self, rows: slice) -> LeftOut:
        """Return the same for some of the rows."""
        lo, hi = np.searchsorted(self.corrected, [rows.start, rows.stop])
        return LeftOut(
            self.target[:, rows],
            self.weights[rows],
            self.corrected[lo:hi] - rows.start,
            self.errors[..., lo:hi],
            self.start + rows.start,
        )


@dataclass(frozen=True)
class Decomposed:
    """A fit as passes need it; letters as in `leave_one_out`.

    Attributes
    ----------
    varies : boolean array of shape (n_columns,)
        Columns in which rows differ.
    mean : array of shape (n_columns,)
        Of the rows.
    means : array of shape (n_targets,)
        Of the targets.
    basis : array of shape (n_varying, rank)
        Turns centred rows into z.
    eigenvalues : array of shape (rank,)
    projected : array of shape (n_targets, rank)
        The vectors c.
    total : float
        Sum of the weights; infinite without intercept, which then has no part in h.
    alphas : array of shape (n_alphas,)
    interpolates : bool
        Whether there are no more rows than weights to fit.
    """

    varies: Mask
    mean: Vector
    means: Vector
    basis: Matrix
    eigenvalues: Vector
    projected: Matrix
    total: float
    alphas: Vector
    interpolates: bool

    @property
    def damping(self) -> Matrix:
        """1 / (λ + α), of shape (rank, n_alphas)."""
        return 1.0 / (self.eigenvalues[:, None] + self.alphas)

    @property
    def kept(self) -> Matrix:
        """λ / (λ + α), of shape (rank, n_alphas)."""
        return self.eigenvalues[:, None] * self.damping

    def z(self, block: Matrix) -> Matrix:
        """Return z of rows as they are."""
        z: Matrix = (block - self.mean)[:, self.varies] @ self.basis
        return z

    def scores(self, factors: Matrix, z: Matrix) -> Vector:
        """Return Σ c_k f_k z_k for factors f, of shape (n_alphas, n_targets, n_rows)."""
        shape = (len(self.alphas), len(self.projected))
        coefs = (factors.T[:, None, :] * self.projected).reshape(np.prod(shape), len(factors))
        return (coefs @ z.T).reshape(*shape, len(z))

    def left(self, z: Matrix, weights: Vector) -> Matrix:
        """Return 1 - h, of shape (n_alphas, n_rows)."""
        leverage: Matrix = (weights[:, None] * z**2) @ self.kept
        return 1.0 - weights / self.total - leverage.T

    def errors(self, block: Matrix, target: Matrix, weights: Vector) -> Vector:
        """Return e / (1 - h), of shape (n_alphas, n_targets, n_rows)."""
        z = self.z(block)
        left = self.left(z, weights)[:, None]
        errors: Vector = target - self.means[:, None] - self.scores(self.kept, z)
        with np.errstate(divide="ignore", invalid="ignore"):  # where zero, that is corrected
            errors /= left
            if self.interpolates:  # with α cancelled; 0 / 0 for the only row
                cancelled = self.scores(self.damping, z)
                cancelled /= ((weights[:, None] * z**2) @ self.damping).T[:, None]
                errors = np.where(left <= CLOSE, cancelled, errors)
        return errors


def doubtful_rows(rows: Rows, fit: Decomposed, doubt: float, known: LeftOut) -> list[Indices]:
    """Return the rows for which 1 - h is too small for some penalty."""

    def part(blocks: list[slice]) -> list[Indices]:
        found = []
        for block in blocks:
            own = known.at(block)
            used = np.flatnonzero(own.weights)
            z = fit.z(rows.block(block.start, block.stop)[used])
            left = fit.left(z, own.weights[used]).min(axis=0, initial=1.0)
            found.append(own.start + used[left <= doubt])
        return found

    return reduce(operator.add, map_in_threads(part, _parts(rows)), [])


def add_up(rows: Rows, fit: Decomposed, measure: Measure, known: LeftOut) -> Any:
    """Return the sum of a measure over the rows with a weight, each scored by all others."""
    no_scores = np.empty((len(fit.alphas), len(known.target), 0))
    nothing = measure(no_scores, known.target[:, :0], known.weights[:0])

    def part(blocks: list[slice]) -> Any:
        found = nothing
        for block in blocks:
            own = known.at(block)
            used = np.flatnonzero(own.weights)
            target, weights = own.target[:, used], own.weights[used]
            errors = fit.errors(rows.block(block.start, block.stop)[used], target, weights)
            errors[..., np.searchsorted(used, own.corrected)] = own.errors
            found = found + measure(target - errors, target, weights)
        return found

    return reduce(operator.add, map_in_threads(part, _parts(rows)), nothing)


def _parts(rows: Rows) -> list[list[slice]]:
    """Return what threads share, each part in blocks."""
    step = rows.block_rows
    return [
        [slice(lo, min(lo + step, stop)) for lo in range(start, stop, step)]
        for start, stop in rows.parts()
    ]


EPS = float(np.finfo(np.float64).eps)
# Singular values that differ by no more than this factor are all known to twelve digits.
EVEN = 1e4
# One minus the leverage, which errors are divided by, is trusted if it is this many times larger
# than rounding errors: never below the first of these bounds, and always beyond the second.
TRUSTED = 1e5
DOUBTFUL = (1e-6, 1e-4)


def _are_independent(rows: Matrix) -> Mask:
    """Say which rows are no combination of the others (of zero rows, none is)."""
    # Neither the lengths of the rows nor those of the columns matter, so they shall not.
    for axis in (0, 1):
        length = np.sqrt(np.sum(rows**2, axis=axis, keepdims=True))
        rows = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    if not rows.size:
        return np.zeros(len(rows), dtype=bool)
    left, singular, _ = linalg.svd(rows, full_matrices=False, check_finite=False)
    left = left[:, singular > max(rows.shape) * EPS * singular[0]]
    return np.sum(left**2, axis=1) > 1.0 - DOUBTFUL[0]


@dataclass(frozen=True)
class _Coordinates:
    """Coordinates in which weighted, centred rows are orthonormal.

    Attributes
    ----------
    basis : array of shape (n_columns, rank)
        Eigenvectors of the Gram matrix, divided by the roots of their eigenvalues: times rows.
    shortest : array of shape (n_columns, rank)
        The same for other rows, which may differ where these do not.
    eigenvalues : array of shape (rank,)
    condition : float
        By how much rounding errors have grown.
    """

    basis: Matrix
    shortest: Matrix
    eigenvalues: Vector
    condition: float


@dataclass(frozen=True)
class Fit:
    """Least squares for some targets and some penalties; letters as in `leave_one_out`."""

    rows: Rows
    targets: Matrix
    weights: Vector
    alphas: Vector
    fit_intercept: bool

    def without(self, indices: Indices | np.intp) -> Fit:
        """Return the fit without some rows."""
        weights = self.weights.copy()
        weights[indices] = 0.0
        return replace(self, weights=weights)

    def errors_of_alone(self, indices: Indices) -> Vector:
        """Return the errors of rows that are alone, each by the fit without it."""
        if not indices.size:
            return np.empty((len(self.alphas), len(self.targets), 0))
        rest = self.without(indices)
        errors = rest.errors_outside(indices)
        z, outside = rest.split(indices)
        noise = np.diag(1.0 / np.sqrt(self.weights[indices]))
        common = np.full((len(z), int(self.fit_intercept)), 1.0 / np.sqrt(rest.moments.total))
        for alpha, kept, error in zip(self.alphas, rest.decomposed.kept.T, errors, strict=True):
            # M = factor @ factor' = triangle' @ triangle
            shared = np.column_stack([z * np.sqrt(kept), common, noise])
            factor = np.column_stack([outside, np.sqrt(alpha) * shared])
            triangle = linalg.qr(factor.T, mode="r", check_finite=False)[0][: len(z)]
            inverse = linalg.solve_triangular(triangle, np.eye(len(z)))
            error[:] = (error @ inverse) @ inverse.T / np.sum(inverse**2, axis=1)
        return errors

    def errors_outside(self, indices: Indices) -> Vector:
        """Return e of rows that have no weight."""
        z, _ = self.split(indices)
        fit = self.decomposed
        errors: Vector = (self.targets[:, indices] - fit.means[:, None]) - fit.scores(fit.kept, z)
        return errors

    def split(self, indices: Indices) -> tuple[Matrix, Matrix]:
        """Return z of rows that have no weight, and their components where no other row differs."""
        taken = self._taken(indices)
        idle, varying = taken[:, ~self.moments.varies], taken[:, self.columns]
        z = varying @ self.coordinates.shortest
        if len(self.coordinates.eigenvalues) == len(self.columns):
            return z, idle
        varying -= (z * self.coordinates.eigenvalues) @ self.coordinates.shortest.T
        return z, np.column_stack([idle, varying])

    def are_alone(self, doubtful: Indices) -> Mask:
        """Say of which rows it is certain that they are alone."""
        if not doubtful.size:
            return np.zeros(0, dtype=bool)
        others = self.weights.copy()
        others[doubtful] = 0.0
        # Columns in which all others are equal; without intercept, equal to zero.
        lowest, highest = self.rows.ranges(self.columns, others)
        equal = lowest == highest if self.fit_intercept else (lowest == 0.0) & (highest == 0.0)
        own = np.flatnonzero(equal)
        return _are_independent(self.rows.take(doubtful)[:, self.columns[own]] - lowest[own])

    @cached_property
    def moments(self) -> Moments:
        """The weighted mean of the rows, and the columns in which they differ."""
        return moments(self.rows, self.weights, centre=self.fit_intercept)

    @cached_property
    def columns(self) -> Indices:
        """Columns in which rows differ: what rounding leaves of others is no information."""
        return np.flatnonzero(self.moments.varies)

    @cached_property
    def means(self) -> Vector:
        """The means of the targets; zeros without intercept."""
        if not self.fit_intercept:
            return np.zeros(len(self.targets))
        return np.average(self.targets, axis=1, weights=self.weights)

    @cached_property
    def decomposed(self) -> Decomposed:
        """What passes over rows need."""
        triangle, crossed = self._triangle
        coordinates = self.coordinates
        return Decomposed(
            varies=self.moments.varies,
            mean=self.moments.mean,
            means=self.means,
            basis=coordinates.basis,
            eigenvalues=coordinates.eigenvalues,
            projected=crossed.T @ triangle @ coordinates.basis,
            total=self.moments.total if self.fit_intercept else np.inf,
            alphas=self.alphas,
            interpolates=self.interpolates,
        )

    @cached_property
    def rounding(self) -> float:
        """The relative error of orthogonal factors, which grows with both sides of the matrix."""
        return 8.0 * EPS * max(len(self.columns), float(np.sqrt(self.rows.n_rows)))

    @property
    def interpolates(self) -> bool:
        """Whether there are no more rows than weights to fit."""
        n_fitted = len(self.coordinates.eigenvalues) + self.fit_intercept
        return int(np.count_nonzero(self.weights)) <= n_fitted

    @property
    def doubt(self) -> float:
        """How small 1 - h can be without doubt."""
        smallest, largest = DOUBTFUL
        return min(max(TRUSTED * self.rounding * self.coordinates.condition, smallest), largest)

    @cached_property
    def coordinates(self) -> _Coordinates:
        """The eigenvectors, found without squaring the condition number of the rows."""
        if not self.columns.size:
            empty = np.zeros((0, 0))
            return _Coordinates(empty, empty, np.zeros(0), 1.0)
        triangle, _ = self._triangle
        _, singular, right = linalg.svd(triangle, full_matrices=False, check_finite=False)
        if len(right) < len(self.columns) or EVEN * singular[-1] < singular[0]:
            return self._uneven_coordinates(triangle)
        basis = right.T / singular
        return _Coordinates(basis, basis, singular**2, float(singular[0] / singular[-1]))

    def _uneven_coordinates(self, triangle: Matrix) -> _Coordinates:
        """Find the eigenvectors of rows whose columns have any scale, or depend on each other.

        Which directions there are is decided for columns of equal length: it must not depend on
        their scales. But the penalty is one of the columns as they are. One-sided Jacobi rotations
        find their singular values, each to full accuracy, from the factor of full rank.
        """
        length = np.sqrt(np.sum(triangle**2, axis=0))
        _, singular, right = linalg.svd(triangle / length, full_matrices=False, check_finite=False)
        # What floating point cannot know: the rounding of the data, measured against their spread.
        noise = np.max(np.sqrt(self.moments.raw[self.columns]) / length, initial=1.0)
        rank = max(1, int(np.sum(singular > self.rounding * noise * singular[0])))
        condition = float(singular[0] / singular[rank - 1])
        singular, right = singular[:rank, None], right[:rank]
        # 2: rows and columns of any scale; 0: with singular vectors on this side.
        uneven, vectors, rotation, scale, _, failed = lapack.dgejsv(
            (singular * right * length).T, joba=2, jobu=0, jobv=0
        )
        if failed:
            raise linalg.LinAlgError("the singular values of the rows were not found")
        uneven *= scale[0] / scale[1]
        # The eigenvectors have entries that are small beside others, and known less well. This
        # product has not; it differs only in directions in which no row does.
        basis = (right / singular / length).T @ rotation
        shortest = basis if rank == len(length) else vectors / uneven
        return _Coordinates(basis, shortest, uneven**2, condition)

    @cached_property
    def _triangle(self) -> tuple[Matrix, Matrix]:
        """R with R'R = weighted, centred Gram matrix, and r with R'r = products with the targets.

        By orthogonal factors of the rows, bordered by their targets.
        """
        width = len(self.columns)
        standard = Standard(self.columns, self.moments.mean[self.columns], np.ones(width))
        residuals = self.targets - self.means[:, None]
        bordered = reduce_rows([self.moments.rows.triangle(standard, self.weights, residuals)])
        return bordered[:width, :width], bordered[:width, width:]

    def _taken(self, indices: Indices) -> Matrix:
        """Return rows less their mean, without rounding where all rows with weight are equal."""
        like_all = self.moments.rows.take(np.flatnonzero(self.weights)[:1])
        taken: Matrix = self.moments.rows.take(indices)
        taken -= np.where(self.moments.varies, self.moments.mean, like_all)
        return taken
