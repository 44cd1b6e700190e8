"""Coordinates in which the quadratic part of the loss is the identity, by the Gram matrix.

For rows E with weights S and a penalty α that leaves the intercept alone, the loss has the second
derivative 2H with H = E'SE + αP. Everything downstream works in coordinates z with v = Tz and
T'HT = I: any conditioning and any scale of the features ends here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.projection.coordinates.base import Coordinates, Points, Result
from neverworse.projection.coordinates.moments import NonFiniteError, factor
from neverworse.rows import Rows


@dataclass(frozen=True)
class GramCoordinates(Coordinates):
    """A basis T of the weights with T'HT = I.

    Attributes
    ----------
    basis : array of shape (n_columns, rank)
        T, without its row for the intercept.
    idle : array of int
        Columns in which no row differs from the mean: exactly zero once centred.
    rows, mean, offset, column_norms
        See `Coordinates`.
    """

    rows: Rows
    mean: Vector
    basis: Matrix
    offset: Vector
    column_norms: Vector
    idle: Indices

    whitens_copies = True

    def coef(self, z: Matrix) -> Matrix:
        return z @ self.basis.T

    def adjoint_coef(self, gradient: Matrix) -> Matrix:
        return gradient @ self.basis

    def adjoint(self, weighted_sum: Matrix, total: Vector) -> Matrix:
        centred = weighted_sum - total[:, None] * self.mean
        centred[:, self.idle] = 0.0
        return centred @ self.basis + total[:, None] * self.offset

    def with_total(self, size: float) -> GramCoordinates:
        basis = np.column_stack([self.basis, np.zeros(len(self.basis))])
        return replace(self, basis=basis, offset=np.append(self.offset, size))

    def map_taken(
        self,
        indices: Indices,
        pieces: Sequence[slice],
        function: Callable[[slice, Matrix], Result],
    ) -> Iterable[Result]:
        return self.rows.map_taken(
            indices, pieces, lambda piece, taken: function(piece, self.apply(taken))
        )

    def apply(self, copies: AnyArray) -> Matrix:
        """See `Coordinates`: T'(x - mean, 1). Changes copies of double precision."""
        copies = copies.astype(np.float64, copy=False)
        copies -= self.mean
        copies[:, self.idle] = 0.0
        whitened: Matrix = copies @ self.basis
        whitened += self.offset
        return whitened

    def rotated(self, rotation: Matrix) -> GramCoordinates:
        return replace(self, basis=self.basis @ rotation, offset=self.offset @ rotation)

    def form(self, points: Points) -> Matrix:
        if points.rows is None:
            basis = self.to_weights(np.eye(self.rank))
            columns = np.column_stack([basis.coef, basis.intercept])
            return columns @ columns.T
        gram, sums = points.rows.shifted(self.centre).gram(points.weights)
        if not np.isfinite(gram).all():
            raise NonFiniteError("the Gram matrix of the points is not finite")
        form = self.basis.T @ gram @ self.basis
        if points.with_one:
            cross = np.outer(sums @ self.basis, self.offset)
            total = points.rows.n_rows if points.weights is None else points.weights.sum()
            form += cross + cross.T + total * np.outer(self.offset, self.offset)
        return form


def whiten(
    rows: Rows, weights: Vector | None, alpha: float, fit_intercept: bool
) -> GramCoordinates:
    """Return coordinates in which the loss of these rows has the identity as its quadratic part."""
    centred = factor(rows, weights, alpha, fit_intercept)
    sums, basis = centred.moments, centred.basis
    idle = np.flatnonzero(~sums.varies)
    offset = np.zeros(basis.shape[1])
    found = GramCoordinates(sums.rows, sums.mean, basis, offset, np.sqrt(sums.raw), idle)
    if not fit_intercept or sums.total <= 0.0:
        return found
    return found.with_total(1.0 / np.sqrt(sums.total))
