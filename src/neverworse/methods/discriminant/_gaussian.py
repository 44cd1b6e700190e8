"""Gaussian classes with a common covariance: parameters, scores, densities and likelihood.

With rows measured from a centre c and the precision P = Σ⁻¹, the joint density of a row x and the
class k is

    log p(x, k) = β_k + h_k·(x - c) - ½ (x - c)'P(x - c) + const ,
    h_k = P μ_k ,   β_k = log π_k - ½ μ_k'P μ_k ,

linear in x apart from a term that all classes share, whose sum needs only the scatter matrix.

Directions in which rows do not vary within their classes are left out, as in scikit-learn's
`LinearDiscriminantAnalysis`: the density is that of the coordinates of the rows in all others.

*Class sums* are arrays of shape (n_classes, 1 + n_columns): for each class the weight of its rows,
and the weighted sum of these rows, measured from the centre of all; a soft label counts for every
class by its share. Maximum likelihood depends on them and on the scatter matrix of all rows only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._typing import Matrix, Vector
from neverworse.projection import Labels, Moments, TrainingRows, Weights, moments

# A variance within the classes counts as zero up to this share of the total variance: it cannot be
# told from rounding errors.
SMALLEST_VARIANCE = 1e-10
SMALLEST_RCOND = 1e-13  # a reciprocal condition number that leaves no digits
# Columns whose sum of squares exceeds that about their mean by more than this factor are shifted,
# because inverting their covariance would magnify the lost digits.
MAX_OFFSET_RATIO = 1e4


class SingularCovarianceError(ValueError):
    """A covariance has no inverse."""

    def __init__(self) -> None:
        super().__init__(
            "The covariance within the classes has no inverse: labeled rows do not vary within "
            "their classes, or hardly so, compared with all rows. Label more rows, or pass alpha > "
            "0, which is added to all variances: scale the columns first, for example with "
            "sklearn.preprocessing.StandardScaler."
        )


@dataclass(frozen=True)
class Subspace:
    """Directions in which classes are compared."""

    basis: Matrix  # (n_columns, rank): V: the coordinates of a row x are V'x
    inverse: Matrix  # (n_columns, rank): U with V'U = I: the row with the coordinates z is Uz
    log_volume: float  # log det V'V, from densities of the coordinates to those of the rows

    @classmethod
    def of(cls, covariance: Matrix, total_variances: Vector) -> Subspace:
        """Find the directions that vary within the classes, relative to the total variances."""
        used = np.flatnonzero(total_variances)
        if not used.size:
            raise SingularCovarianceError
        scale = np.sqrt(total_variances[used])
        scaled = covariance[np.ix_(used, used)] / np.outer(scale, scale)
        variances, directions = linalg.eigh(scaled)
        kept = variances > SMALLEST_VARIANCE
        if not kept.any():
            raise SingularCovarianceError
        # If nothing is left out, columns remain columns.
        directions = np.eye(len(used)) if kept.all() else directions[:, kept]
        basis, inverse = (np.zeros((len(covariance), directions.shape[1])) for _ in range(2))
        basis[used] = directions / scale[:, None]
        inverse[used] = directions * scale[:, None]
        triangle = np.linalg.qr(basis, mode="r")
        log_volume = 2.0 * float(np.log(np.abs(np.diag(triangle))).sum())
        return cls(basis, inverse, log_volume)


@dataclass(frozen=True)
class Precision:
    """The inverse of a covariance in a subspace."""

    matrix: Matrix  # (n_columns, n_columns): V (V'ΣV)⁻¹ V', the inverse in the subspace
    log_det: float  # logarithm of the determinant of the covariance in the subspace
    size: float  # norm of the inverse in units of the variances: how errors of the covariance grow

    @classmethod
    def of(cls, covariance: Matrix, space: Subspace) -> Precision:
        basis = space.basis
        # Sizes of the terms of the products, of which rounding errors are a fraction.
        sizes = np.sqrt(np.sum((np.abs(covariance) @ np.abs(basis)) * np.abs(basis), axis=0))
        units = np.outer(sizes, sizes)
        scaled = (basis.T @ covariance @ basis) / units
        factor, failed = lapack.dpotrf(scaled, lower=1, clean=1)
        if failed:
            raise SingularCovarianceError
        inverse, _ = lapack.dpotri(factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        rcond = 1.0 / (np.abs(scaled).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max())
        if not rcond > SMALLEST_RCOND:
            raise SingularCovarianceError
        log_det = 2.0 * float(np.log(np.diag(factor) * sizes).sum()) - space.log_volume
        matrix = basis @ (inverse / units) @ basis.T
        return cls((matrix + matrix.T) / 2.0, log_det, float(np.linalg.norm(inverse)))


@dataclass(frozen=True)
class GaussianClasses:
    """Classes whose rows are Gaussian with a mean of their own and one covariance."""

    priors: Vector  # (n_classes,): probabilities of the classes
    means: Matrix  # (n_classes, n_columns): means of the classes, measured from `centre`
    covariance: Matrix  # (n_columns, n_columns)
    centre: Vector  # (n_columns,): near the rows, which may be far from zero
    space: Subspace

    @cached_property
    def precision(self) -> Precision:
        return Precision.of(self.covariance, self.space)

    @cached_property
    def linear(self) -> Matrix:
        """The linear scores (β, h) of the classes, of shape (n_classes, 1 + n_columns)."""
        slopes = self.means @ self.precision.matrix
        constants = np.log(self.priors) - 0.5 * np.sum(slopes * self.means, axis=1)
        return np.column_stack([constants, slopes])

    @property
    def constant(self) -> float:
        """The constant of all log densities: -½ log det(2πΣ)."""
        return -0.5 * (self.space.basis.shape[1] * math.log(2.0 * math.pi) + self.precision.log_det)

    def about(self, centre: Vector) -> GaussianClasses:
        """Return the same classes, measured from another centre."""
        return replace(self, means=self.means + (self.centre - centre), centre=centre)

    def stored(self) -> GaussianClasses:
        """Return the classes whose means, measured from zero, are floating point numbers."""
        return replace(self, means=(self.means + self.centre) - self.centre)


def uncentred(linear: Matrix, centre: Vector) -> Weights:
    """Return linear functions of rows that are measured from a centre, as ones of the rows."""
    coef = linear[:, 1:]
    return Weights(coef, linear[:, 0] - coef @ centre)


def mean_diagonal(matrix: Matrix) -> Matrix:
    """Return the multiple of the identity with the same trace."""
    return np.diag(np.full(len(matrix), np.trace(matrix) / len(matrix)))


@dataclass(frozen=True)
class Family:
    """Which Gaussian classes are fitted, by which penalised log-likelihood.

    With the total weight N and the scatter W within classes, it is largest for Σ = W/N + αI (or the
    mean of its diagonal, if Σ is spherical).
    """

    spherical: bool  # whether Σ is a multiple of the identity
    alpha: float  # penalty
    priors: Vector | None  # (n_classes,): fixed probabilities of the classes; estimated if None
    space: Subspace | None = None  # if None, all directions with variance within the classes


@dataclass(frozen=True)
class Sample:
    """Weighted rows, some of a known class, and the likelihood of Gaussian classes on them."""

    moments: Moments  # of all rows about their mean, the centre
    labels: Labels
    family: Family
    free: Vector  # (n_rows,): weights of the unlabeled rows; zero for the labeled ones

    @classmethod
    def of(cls, training: TrainingRows, family: Family) -> Sample:
        """Add up the rows."""
        rows, labels = training.rows, training.labels
        weights = np.ones(rows.n_rows) if labels.weights is None else labels.weights
        sums = moments(rows, weights, centre=True)
        far = sums.raw > MAX_OFFSET_RATIO * np.diag(sums.gram)
        if rows.shift is None and np.any(far, where=sums.varies):
            sums = moments(rows.shifted(sums.mean), weights, centre=True)
        return cls(sums, labels, family, np.where(labels.unlabeled, weights, 0.0))

    @cached_property
    def known(self) -> Matrix:
        """Class sums of the labeled rows."""
        target = self.labels.target
        target = target if len(target) > 1 else np.concatenate([1.0 - target, target])
        return self.sums(target * self.labels.weights_where(~self.labels.unlabeled))

    def sums(self, weights: Matrix) -> Matrix:
        """Return the class sums for weights of shape (n_classes, n_rows)."""
        return self._centred(self.moments.rows.weighted_sum(weights), weights.sum(axis=1))

    def all_sums(self, soft_labels: Matrix) -> Matrix:
        """Return the class sums of all rows for soft labels of shape (n_classes, n_rows)."""
        return self.known + self.sums(self.free * soft_labels)

    def scores(self, linear: Matrix) -> Matrix:
        """Return linear functions of the rows, measured from the centre."""
        weights = uncentred(linear, self.moments.centre)
        return self.moments.rows.scores(weights.coef, weights.intercept)

    def scores_and_sums(
        self, linear: Matrix, weigh: Callable[[Vector, slice], Vector]
    ) -> tuple[Matrix, Matrix]:
        """Return the scores t and the class sums for the weights weigh(t), in one pass."""
        weights = uncentred(linear, self.moments.centre)
        rows = self.moments.rows
        t, summed, total = rows.scores_and_sum(weights.coef, weights.intercept, weigh)
        return t, self._centred(summed, np.asarray(total))

    def _centred(self, summed: Matrix, total: Vector) -> Matrix:
        centred = summed - total[:, None] * self.moments.mean
        centred[:, ~self.moments.varies] = 0.0  # nothing but rounding errors
        return np.column_stack([total, centred])

    def most_likely(self, sums: Matrix) -> GaussianClasses:
        """Return the classes of maximum penalised likelihood, for class sums of all rows."""
        counts, summed = sums[:, 0], sums[:, 1:]
        halves, family = summed / np.sqrt(counts)[:, None], self.family
        scatter, total, centre = self.moments.gram, self.moments.total, self.moments.centre
        covariance = (scatter - halves.T @ halves) / total
        if family.spherical:
            covariance = mean_diagonal(covariance)
        if family.alpha > 0.0:
            covariance[np.diag_indices_from(covariance)] += family.alpha
        priors = counts / counts.sum() if family.priors is None else family.priors
        space = family.space
        if space is None:
            # Spherical, all columns have one unit: none is small on its own.
            least = np.diag(mean_diagonal(scatter) if family.spherical else scatter) / total
            space = Subspace.of(covariance, np.maximum(least, np.diag(covariance)))
        return GaussianClasses(priors, summed / counts[:, None], covariance, centre, space)

    def log_likelihood(self, model: GaussianClasses, sums: Matrix) -> float:
        """Return the penalised log-likelihood of classes, for class sums of all rows."""
        return float(np.vdot(model.linear, sums)) + self.shared(model)

    def shared(self, model: GaussianClasses) -> float:
        """Return the part of the penalised log-likelihood that labels have no influence on."""
        precision = model.precision.matrix
        penalty = self.family.alpha * float(np.trace(precision))
        spread = float(np.vdot(precision, self.moments.gram))
        return self.moments.total * (model.constant - 0.5 * penalty) - 0.5 * spread
