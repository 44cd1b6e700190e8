"""Passes over rows that are left out one by one: sums over rows, wherever these are."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.rows import Rows
from neverworse.rows._threads import map_in_threads

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
