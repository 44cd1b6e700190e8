"""Coordinates in which the quadratic part of the loss is the identity, by the Gram matrix.

For rows E with weights S and a penalty α that leaves the intercept alone, the loss has the second
derivative 2H with H = E'SE + αP. Everything downstream works in coordinates z with v = Tz and
T'HT = I: any conditioning and any scale of the features ends here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from neverworse._typing import Indices, Matrix, Vector
from neverworse.projection.coordinates.base import Points, WhitenedCoordinates
from neverworse.projection.coordinates.moments import NonFiniteError, factor
from neverworse.rows import Rows

BLOCK_COLUMNS = 100  # of a basis at once: fewer are slower, more leave less to save


@dataclass(frozen=True)
class GramCoordinates(WhitenedCoordinates):
    """A basis T of the weights with T'HT = I."""

    rows: Rows
    mean: Vector
    basis: Matrix  # (n_columns, rank): T, without its row for the intercept
    offset: Vector
    column_norms: Vector
    idle: Indices  # columns in which no row differs from the mean: exactly zero once centred

    whitens_copies = True

    def coef(self, z: Matrix) -> Matrix:
        return z @ self.basis.T

    def adjoint_coef(self, gradient: Matrix) -> Matrix:
        return gradient @ self.basis

    def adjoint(self, weighted_sum: Matrix, total: Vector) -> Matrix:
        centred = np.multiply(total[:, None], -self.mean)
        centred += weighted_sum
        centred[:, self.idle] = 0.0
        whitened = np.multiply(total[:, None], self.offset)
        for columns, height in self._blocks:
            whitened[:, columns] += centred[:, :height] @ self.basis[:height, columns]
        return whitened

    @cached_property
    def _blocks(self) -> list[tuple[slice, int]]:
        """Columns of the basis, and how many of its rows they need: a triangle has zeros below."""
        found = [slice(lo, lo + BLOCK_COLUMNS) for lo in range(0, self.rank, BLOCK_COLUMNS)]
        used = (np.flatnonzero(self.basis[:, columns].any(axis=1)) for columns in found)
        return [
            (columns, rows[-1] + 1) for columns, rows in zip(found, used, strict=True) if rows.size
        ]

    def with_total(self, size: float) -> GramCoordinates:
        basis = np.column_stack([self.basis, np.zeros(len(self.basis))])
        return replace(self, basis=basis, offset=np.append(self.offset, size))

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
