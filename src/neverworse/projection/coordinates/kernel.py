"""Fewer rows than columns: everything happens in the space that the rows span.

With the weighted, centred rows A = UΣV', all weights of interest are combinations of rows: the
supervised ones, and those of all soft labels. So the kernel AA' = UΛU', a matrix of rows by rows,
takes the place of the Gram matrix, and the basis V(Λ + α)^(-1/2) is kept as A' times a small
matrix: nothing of the size of a dense X is ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.projection.coordinates import EPS, Points, Result, WhitenedCoordinates
from neverworse.projection.coordinates.gram import Moments, NonFiniteError, column_moments
from neverworse.rows import Rows, map_in_threads

# Eigenvalues of a kernel are known to eight digits if they are so large against the largest.
WELL_CONDITIONED = 1e-8
INSIDE = 1e-8  # a row with so small a share in the directions that no row fits is in none of them


@dataclass(frozen=True)
class RowSpace:
    """Eigenvalues and eigenvectors of the kernel of some rows."""

    sums: Moments  # of all rows, weighted
    rows: Rows  # the rows that span the space
    used: Indices  # which rows these are
    # (n_used,): roots of their weights (ones where they are in the space for its span only)
    root: Vector
    left: Matrix  # (n_used, rank): eigenvectors U
    values: Vector  # (rank,): eigenvalues Λ
    doubtful: bool  # whether more eigenvalues than expected can hardly be told from zero

    def combine(self, x: Matrix) -> Matrix:
        """Return A'x: combinations of rows with these factors."""
        x = x * self.root
        return self.rows.weighted_sum(x) - x.sum(axis=1)[:, None] * self.sums.mean

    def products(self, coef: Matrix) -> Matrix:
        return self.root * self.rows.scores(coef, -(coef @ self.sums.centre))

    def least_squares(self, residual: Matrix, alpha: float, kept: Mask | slice) -> Matrix:
        """Return the coefficients that fit centred targets in the eigenvectors that are kept."""
        left, damping = self.left[:, kept], 1.0 / (self.values[kept] + alpha)
        coef = np.zeros((len(residual), self.rows.n_columns))
        for _ in range(2):  # the second time refines
            error = self.root * residual - self.products(coef)
            # What is outside of the rows' span cannot be fitted; the penalty acts on coef itself.
            along = error @ left
            if alpha > 0.0:
                along -= alpha * (self.products(coef) @ left) / self.values[kept]
            coef = coef + self.combine((along * damping) @ left.T)
        return coef

    def left_out_errors(self, residual: Vector, alphas: Vector, fit_intercept: bool) -> Vector:
        """Return the errors of all rows of the space, each by the least squares fit to all others.

        A fit leaves the share α / (λ + α) of every eigenvector, so that nothing cancels. The space
        is that of the rows with a weight, the residual are targets less their mean. The result has
        the shape (n_alphas, n_targets, n_used).
        """
        left, root = self.left, self.root
        weighted = residual * root
        along = weighted @ left
        rest = weighted - along @ left.T
        one = root / np.linalg.norm(root) if fit_intercept else np.zeros(len(root))
        # The share in N, as what all others leave: a rounding error where nothing is left.
        share = 1.0 - np.einsum("ik,ik->i", left, left) - one**2
        share = np.where(share > INSIDE, share, 0.0)
        rest = np.where(share > 0.0, rest - (rest @ one)[:, None] * one, 0.0)
        errors = np.empty((len(alphas), *residual.shape))
        for error, alpha in zip(errors, alphas, strict=True):
            damping = 1.0 / (self.values + alpha)
            above, below = (along * damping) @ left.T, (left**2) @ damping
            fitted = (share > 0.0) & (alpha == 0.0)
            factor = np.where(fitted, 0.0, alpha if alpha > 0.0 else 1.0)
            with np.errstate(invalid="ignore", divide="ignore"):  # the only row: 0 / 0
                error[:] = (factor * above + rest) / (factor * below + share) / root
        return errors


def row_space(
    rows: Rows, weights: Vector | None, fit_intercept: bool, also: Mask | None = None
) -> RowSpace:
    """Decompose the kernel of the rows with a weight, and of others that `also` marks."""
    sums = column_moments(rows, weights, centre=fit_intercept)
    s = np.ones(rows.n_rows) if weights is None else weights
    chosen = s > 0.0 if also is None else (s > 0.0) | also
    used = np.flatnonzero(chosen)
    spanning = sums.rows if chosen.all() else sums.rows.some(used)
    s = s[used]
    kernel = spanning.kernel(sums.mean)
    if not np.isfinite(kernel).all():
        raise NonFiniteError("the kernel of the rows is not finite")
    largest = float(np.diag(kernel).max(initial=0.0))
    if fit_intercept and sums.total > 0.0:  # once more: what rounding has left of the mean
        at_mean = kernel @ (s / sums.total)
        kernel -= at_mean
        kernel -= (at_mean - at_mean @ (s / sums.total))[:, None]
    root = np.sqrt(np.where(s > 0.0, s, 1.0))
    kernel *= root
    kernel *= root[:, None]
    values, left = linalg.eigh(kernel, overwrite_a=True, check_finite=False)
    top = float(values[-1]) if len(values) else 0.0
    # What floating point cannot know, where centring has cancelled digits as well.
    raw = float(np.max(s, initial=0.0)) * (largest + float(sums.mean @ sums.mean))
    noise = 8.0 * EPS * len(values) * max(top, raw)
    kept = values > noise
    # One eigenvalue is zero because rows are centred. Are the others? The square of a small
    # singular value says little.
    unclear = int(np.count_nonzero(values < WELL_CONDITIONED * top))
    doubtful = unclear > (1 if fit_intercept and bool((s > 0.0).any()) else 0)
    return RowSpace(sums, spanning, used, root, left[:, kept], values[kept], doubtful)


@dataclass(frozen=True)
class KernelCoordinates(WhitenedCoordinates):
    """Coordinates of the span of the rows in which the loss has the identity as quadratic part."""

    space: RowSpace
    rows: Rows
    mean: Vector
    column_norms: Vector
    factor: Matrix  # (n_used, rank): C: the basis is A'C
    whitened: Matrix  # (n_used, rank): the rows in these coordinates
    offset: Vector
    euclidean: Matrix  # (rank, rank): inner products of the basis

    def coef(self, z: Matrix) -> Matrix:
        return self.space.combine(z @ self.factor.T)

    def adjoint_coef(self, gradient: Matrix) -> Matrix:
        return self.space.products(gradient) @ self.factor

    def with_total(self, size: float) -> KernelCoordinates:
        n = len(self.factor)
        return replace(
            self,
            factor=np.column_stack([self.factor, np.zeros(n)]),
            whitened=np.column_stack([self.whitened, np.full(n, size)]),
            offset=np.append(self.offset, size),
            euclidean=np.pad(self.euclidean, (0, 1)),
        )

    def map_taken(
        self, indices: Indices, pieces: Sequence[slice], function: Callable[[slice, Matrix], Result]
    ) -> Iterable[Result]:
        return map_in_threads(lambda piece: function(piece, self._take(indices[piece])), pieces)

    def _take(self, indices: Indices) -> Matrix:
        return self.whitened[np.searchsorted(self.space.used, indices)]

    def rotated(self, rotation: Matrix) -> KernelCoordinates:
        return replace(
            self,
            factor=self.factor @ rotation,
            whitened=self.whitened @ rotation,
            offset=self.offset @ rotation,
            euclidean=rotation.T @ self.euclidean @ rotation,
        )

    def form(self, points: Points) -> Matrix:
        if points.rows is None:
            intercept = self.offset - self.adjoint_coef(self.centre[None])[0]
            return self.euclidean + np.outer(intercept, intercept)
        if points.table_weights is not None:
            indices = np.flatnonzero(points.table_weights)
            return _form(self._take(indices), points.table_weights[indices])
        n = points.rows.n_rows
        whitened = self.adjoint_coef(points.rows.take(np.arange(n)) - self.centre)
        if points.with_one:
            whitened += self.offset
        return _form(whitened, np.ones(n) if points.weights is None else points.weights)


def _form(whitened: Matrix, weights: Vector) -> Matrix:
    return whitened.T @ (weights[:, None] * whitened)


def whiten_row_space(
    space: RowSpace, weights: Vector | None, alpha: float, fit_intercept: bool
) -> KernelCoordinates:
    """Return coordinates of the space in which the loss has the identity as its quadratic part."""
    s = np.ones(len(space.used)) if weights is None else weights[space.used]
    length = np.sqrt(space.values)
    if (s > 0.0).all():
        scale = 1.0 / np.sqrt(space.values + alpha)
        factor, whitened = space.left * (scale / length), space.left * (scale * length)
        euclidean = np.diag(scale**2)
    else:  # some rows are in the space only: the loss does not see all of it alike
        bare = space.left * length / space.root[:, None]
        values, vectors = linalg.eigh(_form(bare, s))
        kept = values > 8.0 * EPS * len(values) * float(values.max(initial=0.0))
        if alpha > 0.0:
            values, kept = np.maximum(values, 0.0), slice(None)
        scaled = vectors[:, kept] / np.sqrt(values[kept] + alpha)
        factor, whitened = (space.left / length) @ scaled, (space.left * length) @ scaled
        euclidean = scaled.T @ scaled
    whitened = whitened / space.root[:, None]
    sums, offset = space.sums, np.zeros(factor.shape[1])
    found = KernelCoordinates(
        space, sums.rows, sums.mean, np.sqrt(sums.raw), factor, whitened, offset, euclidean
    )
    return found.with_intercept(sums.total if fit_intercept else 0.0)
