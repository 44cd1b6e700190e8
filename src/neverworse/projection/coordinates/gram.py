"""Coordinates in which the quadratic part of the loss is the identity.

For rows E with weights S and a penalty α that leaves the intercept alone, the loss has the second
derivative 2H with H = E'SE + αP. Everything downstream works in coordinates z with v = Tz and
T'HT = I: any conditioning and any scale of the features ends here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._typing import Indices, Mask, Matrix, Scalars, Vector
from neverworse.projection.coordinates.moments import (
    ColumnMoments,
    Moments,
    NonFiniteError,
    moments,
)
from neverworse.projection.coordinates.null_space import (
    WELL_CONDITIONED,
    factor_few_rows,
    is_few_rows,
    rounding,
    split_null_space,
)
from neverworse.projection.weights import Weights
from neverworse.rows import Rows
from neverworse.rows._triangle import Standard, reduce_rows

EPS = float(np.finfo(np.float64).eps)

Result = TypeVar("Result")


@dataclass(frozen=True)
class Whitening:
    """A basis T of the weights with T'HT = I, in coordinates centred at the mean of the rows.

    Attributes
    ----------
    rows : Rows
        The rows (perhaps shifted) that `mean` refers to.
    mean : array of shape (n_columns,)
        Where the rows are centred.
    basis : array of shape (n_columns, rank)
        T, without its row for the intercept.
    offset : array of shape (rank,)
        The row of T for the intercept of the centred rows.
    column_norms : array of shape (n_columns,)
        Weighted Euclidean norms of the columns of `rows`, not centred: what rounding errors of
        scores are measured by.
    idle : array of int
        Columns in which no row differs from the mean: exactly zero once centred.
    """

    rows: Rows
    mean: Vector
    basis: Matrix
    offset: Vector
    column_norms: Vector
    idle: Indices

    takes_rows = True  # copies of rows are all that is needed to whiten them

    @property
    def rank(self) -> int:
        """The number of coordinates."""
        return len(self.offset)

    @property
    def shifts(self) -> Mask:
        """Which coordinates shift all scores, and do nothing else."""
        shifts: Mask = ~np.any(self.basis, axis=0)
        return shifts

    def take(self, indices: Indices) -> Matrix:
        """Return the rows with these indices in whitened coordinates."""
        return self.apply(self.rows.take(indices))

    def map_taken(
        self,
        indices: Indices,
        pieces: Sequence[slice],
        function: Callable[[slice, Matrix], Result],
    ) -> Iterable[Result]:
        """Apply a function to pieces of the whitened rows with these indices, see `Rows`."""
        return self.rows.map_taken(
            indices, pieces, lambda piece, taken: function(piece, self.apply(taken))
        )

    def apply(self, taken: Matrix) -> Matrix:
        """Return rows that were taken in whitened coordinates: T'(x - mean, 1). Changes `taken`."""
        taken -= self.mean
        taken[:, self.idle] = 0.0
        whitened: Matrix = taken @ self.basis
        whitened += self.offset
        return whitened

    def adjoint(self, weighted_sum: Vector, total: Scalars) -> Vector:
        """Return T'E'x in whitened coordinates, given E'x and the sum of x."""
        total = np.asarray(total)[..., None]
        centred = weighted_sum - total * self.mean
        centred[..., self.idle] = 0.0
        pulled: Vector = centred @ self.basis + total * self.offset
        return pulled

    def adjoint_coef(self, gradient: Vector) -> Vector:
        """Return T'(gradient, 0): a vector over the coefficients alone, in whitened coordinates."""
        return gradient @ self.basis

    def to_weights(self, z: Vector) -> Weights:
        """Return the weights Tz, for unshifted and uncentred features."""
        coef = z @ self.basis.T
        offset = z @ self.offset - coef @ self.mean
        shift = self.rows.shift
        return Weights(coef, offset if shift is None else offset - coef @ shift)

    def with_total(self, size: float) -> Whitening:
        """Return the coordinates with one more, which adds `size` times itself to every score."""
        basis = np.column_stack([self.basis, np.zeros(len(self.basis))])
        return replace(self, basis=basis, offset=np.append(self.offset, size))

    def rotated(self, rotation: Matrix) -> Whitening:
        """Return the coordinates with basis T @ rotation."""
        return replace(self, basis=self.basis @ rotation, offset=self.offset @ rotation)

    def quadratic_form(self, points: Rows, weights: Vector | None, with_one: bool) -> Matrix:
        """Return T'(Σ s x x')T over the points x = (point - mean, 1) (or 0 for the 1)."""
        shift = self.mean if self.rows.shift is None else self.mean + self.rows.shift
        gram, sums = points.shifted(shift).gram(weights)
        if not np.isfinite(gram).all():
            raise NonFiniteError("the Gram matrix of the points is not finite")
        form = self.basis.T @ gram @ self.basis
        if with_one:
            cross = np.outer(sums @ self.basis, self.offset)
            total = points.n_rows if weights is None else weights.sum()
            form += cross + cross.T + total * np.outer(self.offset, self.offset)
        return form


@dataclass(frozen=True)
class CentredFactor:
    """A triangular or orthogonal factor of the centred, penalised Gram matrix.

    Attributes
    ----------
    moments : ColumnMoments
    basis : array of shape (n_columns, rank)
        T with T'(gram + αI)T = I; its columns are orthogonal to `null_space`.
    null_space : array of shape (n_columns, nullity)
        Directions in which no row differs.
    solution : array of shape (n_columns,) or (n_targets, n_columns), or None
        The least squares solution for the target, if one was given and the orthogonal factor
        was needed.
    """

    moments: ColumnMoments
    basis: Matrix
    null_space: Matrix
    solution: Vector | None = None

    def minimum_norm(self, coef: Vector) -> Vector:
        """Return the shortest weights that score all rows as `coef` does."""
        if not self.null_space.size:
            return coef
        # Subtracting a combination of null vectors, row by row, keeps the digits of small weights
        # of large features; an orthogonal projection would not.
        return coef - self.null_space @ np.linalg.lstsq(self.null_space, coef, rcond=None)[0]


def factor(
    rows: Rows,
    weights: Vector | None,
    alpha: float,
    fit_intercept: bool,
    target: Vector | None = None,
) -> CentredFactor:
    """Factor the centred Gram matrix of the rows plus α times the identity.

    Parameters
    ----------
    rows, weights
        Rows and their weights (ones if None).
    alpha : float
        Ridge penalty.
    fit_intercept : bool
        Whether to centre the rows.
    target : array of shape (n_rows,) or (n_targets, n_rows), optional
        Centred right-hand side. Solved for only where the rows are too ill-conditioned for the
        Gram matrix, because there it must be part of the factorisation.
    """
    # The penalty acts outside of the rows' span as well, where rows without weight may be.
    whole = alpha == 0.0 or weights is None or bool((weights > 0.0).all())
    if whole and is_few_rows(rows, weights):
        thin, basis, solution = factor_few_rows(rows, weights, alpha, fit_intercept, target)
        return CentredFactor(thin, basis, np.zeros((rows.n_columns, 0)), solution)
    sums = moments(rows, weights, centre=fit_intercept)
    varying = _factor_varying(sums, weights, alpha, target)
    idle = np.flatnonzero(~sums.varies)
    if alpha == 0.0 or not idle.size:
        return varying
    # Columns in which no row differs carry no information, but the penalty acts on their weights.
    alone = np.zeros((rows.n_columns, len(idle)))
    alone[idle, np.arange(len(idle))] = 1.0 / np.sqrt(alpha)
    return replace(varying, basis=np.column_stack([varying.basis, alone]))


def _factor_varying(
    sums: Moments, weights: Vector | None, alpha: float, target: Vector | None
) -> CentredFactor:
    """Factor the part of the Gram matrix that belongs to columns in which rows differ."""
    d = sums.rows.n_columns
    active = np.flatnonzero(sums.varies)
    if not active.size:
        empty = np.zeros((d, 0))
        solution = None if target is None else np.zeros((*target.shape[:-1], d))
        return CentredFactor(sums, empty, empty, solution)
    spread = np.diag(sums.gram)[active] + alpha
    scale = 1.0 / np.sqrt(spread)
    gram = sums.gram[np.ix_(active, active)] * np.outer(scale, scale)
    gram[np.diag_indices_from(gram)] = 1.0
    triangle, failed = lapack.dpotrf(gram, lower=0, clean=1)
    if not failed:
        rcond, _ = lapack.dpocon(triangle, np.abs(gram).sum(axis=0).max(), uplo="U")
        if rcond > WELL_CONDITIONED:
            inverse, _ = lapack.dtrtri(triangle, lower=0)
            basis = np.zeros((d, len(active)))
            basis[active] = scale[:, None] * inverse
            return CentredFactor(sums, basis, np.zeros((d, 0)))
    found = split_null_space(sums, weights, active, scale, gram) if alpha == 0.0 else None
    if found is not None:
        return _of_scaled(sums, active, scale, *found)
    return _orthogonal(sums, weights, alpha, active, scale, target)


def _orthogonal(
    sums: Moments,
    weights: Vector | None,
    alpha: float,
    active: Indices,
    scale: Vector,
    target: Vector | None,
) -> CentredFactor:
    """Factor ill-conditioned or rank-deficient rows without squaring their condition number."""
    d, k = sums.rows.n_columns, len(active)
    triangle = _triangle(sums, weights, alpha, active, scale, target)
    left, singular, right = linalg.svd(triangle[:k, :k], lapack_driver="gesvd")
    rank = int(np.sum(singular > rounding(sums, active, scale) * singular[0]))
    centred = _of_scaled(sums, active, scale, right[:rank].T / singular[:rank], right[rank:].T)
    if target is None:
        return centred
    solution = (triangle[:k, k:].T @ left[:, :rank]) @ centred.basis.T
    return replace(centred, solution=solution.reshape((*target.shape[:-1], d)))


def _of_scaled(
    sums: Moments, active: Indices, scale: Vector, basis: Matrix, null_space: Matrix
) -> CentredFactor:
    """Return the factor that has this basis and this null space for columns of equal length."""
    whole = [np.zeros((sums.rows.n_columns, part.shape[1])) for part in (basis, null_space)]
    for part, scaled in zip(whole, (basis, null_space), strict=True):
        part[active] = scale[:, None] * scaled
    bare = CentredFactor(sums, *whole)
    return replace(bare, basis=bare.minimum_norm(bare.basis))


def _triangle(
    sums: Moments,
    weights: Vector | None,
    alpha: float,
    active: Indices,
    scale: Vector,
    target: Vector | None,
) -> Matrix:
    """Return R with R'R = scaled, centred Gram matrix (bordered by the target), by rows."""
    rows, k = sums.rows, len(active)
    targets = np.zeros((0, rows.n_rows)) if target is None else np.atleast_2d(target)
    standard = Standard(active, sums.mean[active], scale)
    penalty = np.zeros((k, k + len(targets)))
    penalty[:, :k] = np.diag(np.sqrt(alpha) * scale)
    return reduce_rows([rows.triangle(standard, weights, targets), penalty])


def whiten(rows: Rows, weights: Vector | None, alpha: float, fit_intercept: bool) -> Whitening:
    """Return coordinates in which the loss of these rows has the identity as its quadratic part."""
    centred = factor(rows, weights, alpha, fit_intercept)
    sums, basis = centred.moments, centred.basis
    offset = np.zeros(basis.shape[1])
    if fit_intercept and sums.total > 0:
        basis = np.column_stack([basis, np.zeros(len(basis))])
        offset = np.append(offset, 1.0 / np.sqrt(sums.total))
    idle = np.flatnonzero(~sums.varies)
    return Whitening(sums.rows, sums.mean, basis, offset, np.sqrt(sums.raw), idle)
