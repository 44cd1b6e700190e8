"""Gaussian classes with a common covariance: parameters, scores and densities.

With rows measured from a centre c and the precision P = Σ⁻¹, the logarithm of the joint density of
a row x and the class k is

    log p(x, k) = β_k + h_k·(x - c) - ½ (x - c)'P(x - c) + const ,
    h_k = P μ_k ,   β_k = log π_k - ½ μ_k'P μ_k ,

linear in x but for a term that all classes share. So everything that compares classes needs linear
scores only, and sums of the shared term need the scatter matrix of the rows only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from neverworse._typing import Matrix, Vector
from neverworse.methods.discriminant._subspace import Precision, Subspace, invert
from neverworse.projection import Weights
from neverworse.rows import Rows


@dataclass(frozen=True)
class GaussianClasses:
    """Classes whose rows are Gaussian with a mean of their own and one covariance.

    Attributes
    ----------
    priors : array of shape (n_classes,)
        Probabilities of the classes.
    means : array of shape (n_classes, n_columns)
        Means of the classes, measured from `centre`.
    covariance : array of shape (n_columns, n_columns)
    centre : array of shape (n_columns,)
        Near the rows, so that no digits are lost where these are far from zero.
    space : Subspace
        Directions to which densities are restricted.
    """

    priors: Vector
    means: Matrix
    covariance: Matrix
    centre: Vector
    space: Subspace

    @cached_property
    def precision(self) -> Precision:
        """The inverse of the covariance."""
        return Precision.of(self.covariance, self.space)

    @cached_property
    def linear(self) -> Matrix:
        """What tells the classes apart: (β, h), of shape (n_classes, 1 + n_columns)."""
        slopes = self.means @ self.precision.matrix
        constants = np.log(self.priors) - 0.5 * np.sum(slopes * self.means, axis=1)
        return np.column_stack([constants, slopes])

    @property
    def constant(self) -> float:
        """What all rows and classes share: -½ log det(2πΣ)."""
        return -0.5 * (self.space.rank * math.log(2.0 * math.pi) + self.precision.log_det)

    def about(self, centre: Vector) -> GaussianClasses:
        """Return the same classes, measured from another centre."""
        return replace(self, means=self.means + (self.centre - centre), centre=centre)

    def stored(self) -> GaussianClasses:
        """Return the classes whose means, measured from zero, are floating point numbers."""
        return replace(self, means=(self.means + self.centre) - self.centre)

    def between(self, other: GaussianClasses, share: float) -> GaussianClasses:
        """Return classes on the way to others with the same centre and subspace.

        Their log density is `share` times that of the others plus the rest of this one's, and a
        constant. The log-likelihood is concave along this way, whatever the labels.
        """
        rest, basis, inverse = 1.0 - share, self.space.basis, self.space.inverse
        core = rest * self.precision.core + share * other.precision.core
        covariance, _, _ = invert(core, np.sqrt(np.diag(core)))
        slopes = rest * self.means @ basis @ self.precision.core
        slopes += share * other.means @ basis @ other.precision.core
        priors = np.exp(rest * np.log(self.priors) + share * np.log(other.priors))
        return replace(
            self,
            priors=priors / priors.sum(),
            means=slopes @ covariance @ inverse.T,
            covariance=inverse @ covariance @ inverse.T,
        )

    def log_joint(self, rows: Rows) -> Matrix:
        """Return log p(x, k) for every class and every row, of shape (n_classes, n_rows)."""
        rows = rows.shifted(self.centre)
        shared = np.empty(rows.n_rows)
        for start in range(0, rows.n_rows, rows.block_rows):
            stop = min(start + rows.block_rows, rows.n_rows)
            block = rows.block(start, stop)
            shared[start:stop] = np.einsum("ij,ij->i", block @ self.precision.matrix, block)
        weights = uncentred(self.linear, self.centre)
        joint = rows.scores(weights.coef, weights.intercept)
        joint += self.constant - 0.5 * shared
        return joint


def uncentred(linear: Matrix, centre: Vector) -> Weights:
    """Return linear functions of rows that are measured from a centre, as ones of the rows."""
    coef = linear[:, 1:]
    return Weights(coef, linear[:, 0] - coef @ centre)
