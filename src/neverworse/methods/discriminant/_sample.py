"""What the likelihood of Gaussian classes needs to know of the rows, and which is most likely.

*Class sums* are arrays of shape (n_classes, 1 + n_columns): for each class the weight of its rows,
and the weighted sum of these rows measured from their common centre. A soft label counts for every
class by its share. Together with the scatter matrix of all rows, on which labels have no influence,
they are all that maximum likelihood depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Mask, Matrix, Vector
from neverworse.methods.discriminant._gaussian import GaussianClasses, Subspace, uncentred
from neverworse.projection import Labels, moments
from neverworse.rows import Rows

# Columns whose sum of squares exceeds that about their mean by more than this factor are shifted:
# inverting their covariance would magnify the digits that are lost.
MAX_OFFSET_RATIO = 1e4
SUM_TOLERANCE = 1e-8  # for probabilities that should add up to one


@dataclass(frozen=True)
class Sample:
    """Weighted rows, some of a known class."""

    rows: Rows  # shifted where that was needed for accuracy
    offset: Vector  # (n_columns,): mean of `rows`, after their shift
    total: float  # sum of the weights
    scatter: Matrix  # (n_columns, n_columns): weighted sum of (x - centre)(x - centre)'
    raw: Vector  # (n_columns,): weighted sum of squares of `rows`: the size of what was added up
    varies: Mask  # (n_columns,): false for constant columns
    known: Matrix  # (n_classes, 1 + n_columns): class sums of the labeled rows
    free: Vector  # (n_rows,): weights of the unlabeled rows; zero for the labeled ones

    @classmethod
    def of(cls, rows: Rows, target: Matrix, weights: Vector, unlabeled: Mask) -> Sample:
        """Add up the rows; the target is one-hot, and anything for unlabeled rows."""
        sums = moments(rows, weights, centre=True)
        far = sums.raw > MAX_OFFSET_RATIO * np.diag(sums.gram)
        if rows.shift is None and np.any(far, where=sums.varies):
            sums = moments(rows.shifted(sums.mean), weights, centre=True)
        free = np.where(unlabeled, weights, 0.0)
        sample = cls(
            sums.rows, sums.mean, sums.total, sums.gram, sums.raw, sums.varies, target, free
        )
        known = sample.sums(target * np.where(unlabeled, 0.0, weights))
        return cls(**{**vars(sample), "known": known})

    @property
    def centre(self) -> Vector:
        """Mean of all rows."""
        shift = self.rows.shift
        return self.offset if shift is None else self.offset + shift

    @property
    def labeled_weight(self) -> float:
        """Sum of the weights of the labeled rows."""
        return float(self.known[:, 0].sum())

    def sums(self, weights: Matrix) -> Matrix:
        """Return the class sums for weights of shape (n_classes, n_rows)."""
        return self._centred(self.rows.weighted_sum(weights), weights.sum(axis=1))

    def all_sums(self, soft_labels: Matrix) -> Matrix:
        """Return the class sums of all rows for soft labels of shape (n_classes, n_rows)."""
        return self.known + self.sums(self.free * soft_labels)

    def scores(self, linear: Matrix) -> Matrix:
        """Return linear functions of the rows, measured from the centre."""
        weights = uncentred(linear, self.centre)
        return self.rows.scores(weights.coef, weights.intercept)

    def scores_and_sums(
        self, linear: Matrix, weigh: Callable[[Vector, slice], Vector]
    ) -> tuple[Matrix, Matrix]:
        """Return the scores t and the class sums for the weights weigh(t), in one pass."""
        weights = uncentred(linear, self.centre)
        t, summed, total = self.rows.scores_and_sum(weights.coef, weights.intercept, weigh)
        return t, self._centred(summed, np.asarray(total))

    def _centred(self, summed: Matrix, total: Vector) -> Matrix:
        centred = summed - total[:, None] * self.offset
        centred[:, ~self.varies] = 0.0  # nothing but rounding errors
        return np.column_stack([total, centred])


def one_hot(labels: Labels) -> Matrix:
    """Return labels as one number for each class, of shape (n_classes, n_rows)."""
    target = labels.target
    return target if len(target) > 1 else np.concatenate([1.0 - target, target])


@dataclass(frozen=True)
class Family:
    r"""Gaussian classes, and the penalised likelihood that they are measured by.

    For class sums with the weights :math:`n_k`, the total N and the scatter matrix W within the
    classes, it is

    .. math:: \sum_k n_k \log \pi_k - \tfrac N2 \log \det (2 \pi \Sigma)
              - \tfrac12 \operatorname{tr} \Sigma^{-1} (W + N \alpha I) ,

    largest for the class means, the shares of the classes and Σ = W/N + αI (or, of matrices that
    are a multiple of the identity, for the mean of its diagonal).
    """

    spherical: bool  # whether Σ is a multiple of the identity
    alpha: float  # penalty
    priors: Vector | None  # (n_classes,): fixed probabilities of the classes; estimated if None
    # to which densities are restricted; if None, to the directions in which there is variance
    space: Subspace | None = None

    def most_likely(self, sums: Matrix, sample: Sample) -> GaussianClasses:
        """Return the classes of maximum penalised likelihood, for class sums of all rows."""
        counts, summed = sums[:, 0], sums[:, 1:]
        means = summed / counts[:, None]
        halves = summed / np.sqrt(counts)[:, None]
        covariance = (sample.scatter - halves.T @ halves) / sample.total
        if self.spherical:
            covariance = np.diag(np.full(len(covariance), np.trace(covariance) / len(covariance)))
        if self.alpha > 0.0:
            covariance[np.diag_indices_from(covariance)] += self.alpha
        priors = counts / counts.sum() if self.priors is None else self.priors
        space = self.space
        if space is None:
            totals = np.diag(sample.scatter) / sample.total
            if self.spherical:  # all columns have one unit: none is small on its own
                totals = np.full(len(totals), totals.mean())
            space = Subspace.of(covariance, np.maximum(totals, np.diag(covariance)))
        return GaussianClasses(priors, means, covariance, sample.centre, space)

    def log_likelihood(self, model: GaussianClasses, sums: Matrix, sample: Sample) -> float:
        """Return the penalised log-likelihood of classes, for class sums of all rows."""
        return float(np.vdot(model.linear, sums)) + self.shared(model, sample)

    def shared(self, model: GaussianClasses, sample: Sample) -> float:
        """Return the part of the penalised log-likelihood that labels have no influence on."""
        precision = model.precision.matrix
        penalty = self.alpha * float(np.trace(precision))
        spread = float(np.vdot(precision, sample.scatter))
        return sample.total * (model.constant - 0.5 * penalty) - 0.5 * spread

    def adjoint(self, gradient: Matrix) -> Matrix:
        """Turn a derivative with respect to Σ into one with respect to W/N."""
        if not self.spherical:
            return gradient
        return np.diag(np.full(len(gradient), np.trace(gradient) / len(gradient)))


def checked_priors(priors: Any, classes: AnyArray) -> Vector | None:
    """Return the parameter `priors` as an array, or None if they are to be estimated."""
    if priors is None:
        return None
    n_classes = len(classes)
    if isinstance(priors, str):
        return np.full(n_classes, 1.0 / n_classes)
    given = np.asarray(priors, dtype=np.float64)
    if given.shape != (n_classes,):
        raise ValueError(
            f"priors has shape {given.shape}, but y has {n_classes} classes "
            f"({', '.join(map(str, classes))}): give one probability for each, in this order."
        )
    if not (given > 0.0).all() or abs(given.sum() - 1.0) > SUM_TOLERANCE:
        raise ValueError(
            f"priors={given.tolist()} are not probabilities of classes that occur: they have to be "
            "positive, and add up to 1."
        )
    return given / given.sum()
