"""Which Gaussian classes are considered, and which of them is most likely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.methods.discriminant._gaussian import GaussianClasses
from neverworse.methods.discriminant._sample import Sample
from neverworse.methods.discriminant._subspace import Subspace

SAME = 1e-8  # probabilities add up to one but for this


@dataclass(frozen=True)
class Family:
    r"""Gaussian classes, and the penalised likelihood that they are measured by.

    For class sums with the weights :math:`n_k`, the total N and the scatter matrix W within the
    classes, it is

    .. math:: \sum_k n_k \log \pi_k - \tfrac N2 \log \det (2 \pi \Sigma)
              - \tfrac12 \operatorname{tr} \Sigma^{-1} (W + N \alpha I) ,

    largest for the class means, the shares of the classes and Σ = W/N + αI (or, of matrices that
    are a multiple of the identity, for the mean of its diagonal).

    Attributes
    ----------
    spherical : bool
        Whether Σ is a multiple of the identity.
    alpha : float
        Penalty.
    priors : array of shape (n_classes,), or None
        Fixed probabilities of the classes; estimated if None.
    space : Subspace or None
        To which densities are restricted; if None, to the directions in which there is variance.
    """

    spherical: bool
    alpha: float
    priors: Vector | None
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

    def pulled(self, gradient: Matrix) -> Matrix:
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
    if not (given > 0.0).all() or abs(given.sum() - 1.0) > SAME:
        raise ValueError(
            f"priors={given.tolist()} are no probabilities of classes that occur: they have to be "
            "positive, and add up to 1."
        )
    return given / given.sum()
