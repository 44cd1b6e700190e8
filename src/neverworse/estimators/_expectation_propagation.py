"""Expectation propagation for a Gaussian process with one likelihood for each row.

The posterior of the latent values f ~ N(0, K) is approximated by a Gaussian: every likelihood is
replaced by a site exp(-½ τ f² + ν f), such that taking one site out and the likelihood in leaves
the moments of its latent value as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._typing import Matrix, Vector
from neverworse.rows._threads import single_threaded_blas

EPS = float(np.finfo(np.float64).eps)
# All sites move at once, by a part of the way that shrinks where that leads away from the fixed
# point, and grows again where it leads there.
SHRINK, GROW, SMALLEST = 0.8, 1.05, 0.02


@dataclass(frozen=True)
class Evidence:
    """Normalisers Z of likelihoods times Gaussians N(m, v), and their derivatives over m.

    Attributes
    ----------
    log_z : array of shape (n,)
        log Z.
    first, second : arrays of shape (n,)
        Its first and second derivative.
    """

    log_z: Vector
    first: Vector
    second: Vector


class Noise(Protocol):
    """Likelihoods of what is known about rows, given their latent values."""

    def evidence(self, sign: Vector, mean: Vector, variance: Vector) -> Evidence:
        """Return normalisers for latent values distributed as N(mean, variance)."""


@dataclass(frozen=True)
class Sites:
    """What stands for the likelihoods: exp(-½ precision f² + shift f) for each row."""

    precision: Vector
    shift: Vector

    @classmethod
    def nothing(cls, n_rows: int) -> Sites:
        """Return sites that say nothing."""
        return cls(np.zeros(n_rows), np.zeros(n_rows))

    def towards(self, other: Sites, part: float) -> Sites:
        """Return sites on the way to others."""
        return Sites(
            self.precision + part * (other.precision - self.precision),
            self.shift + part * (other.shift - self.shift),
        )


@dataclass(frozen=True)
class Posterior:
    """The Gaussian posterior that belongs to sites.

    Attributes
    ----------
    sites : Sites
    mean, variance : arrays of shape (n,)
        Of the latent values.
    root : array of shape (n, rank)
        W, where WW' is the covariance of the latent values.
    half_log_det : float
        Half the logarithm of the determinant of I + K diag(precision).
    """

    sites: Sites
    mean: Vector
    variance: Vector
    root: Matrix
    half_log_det: float

    @classmethod
    def of(cls, sites: Sites, factor: Matrix) -> Posterior:
        """Combine sites with the prior N(0, LL') for a factor L of shape (n, rank)."""
        precision = (factor.T * sites.precision) @ factor
        precision[np.diag_indices_from(precision)] += 1.0
        triangle = linalg.cholesky(precision, lower=True, check_finite=False)
        root = linalg.solve_triangular(triangle, factor.T, lower=True, check_finite=False).T
        variance = np.einsum("ij,ij->i", root, root)
        half_log_det = float(np.log(np.diag(triangle)).sum())
        return cls(sites, root @ (root.T @ sites.shift), variance, root, half_log_det)

    def without_site(self, prior: Vector) -> tuple[Vector, Vector]:
        """Return mean and variance of each latent value if its own site is taken out.

        Parameters
        ----------
        prior : array of shape (n,)
            Prior variances; no other is larger.
        """
        precision = np.maximum(1.0 / self.variance - self.sites.precision, 1.0 / prior)
        return (self.mean / self.variance - self.sites.shift) / precision, 1.0 / precision

    def weights(self) -> Vector:
        """Return K⁻¹ mean: the weights of training rows in the mean of a new one."""
        return self.sites.shift - self.sites.precision * self.mean

    def predict(self, covariance: Matrix, prior: Vector) -> tuple[Vector, Vector]:
        """Return mean and variance of the latent values of new rows.

        Parameters
        ----------
        covariance : array of shape (n_new, n)
            Prior covariances with the training rows.
        prior : array of shape (n_new,)
            Prior variances.
        """
        weighted = covariance * self.sites.precision
        known = np.einsum("ij,ij->i", covariance, weighted)
        regained = weighted @ self.root
        variance = prior - known + np.einsum("ij,ij->i", regained, regained)
        return covariance @ self.weights(), np.clip(variance, 0.0, prior)


@dataclass(frozen=True)
class Approximation:
    """Where expectation propagation ended.

    Attributes
    ----------
    posterior : Posterior
    log_evidence : float
        Approximate logarithm of the marginal likelihood.
    residual : float
        By how much moments differ at most if a likelihood replaces its site: of means in units of
        the standard deviation, of variances relative to them.
    n_iter : int
    converged : bool
    """

    posterior: Posterior
    log_evidence: float
    residual: float
    n_iter: int
    converged: bool


def factorise(K: Matrix) -> Matrix:
    """Return L with LL' = K up to rounding errors, and with as many columns as K has rank."""
    tol = len(K) * EPS * float(K.diagonal().max())
    lower, pivots, rank, _ = lapack.dpstrf(K, lower=1, tol=tol)
    factor = np.empty((len(K), rank))
    factor[pivots - 1] = np.tril(lower)[:, :rank]
    return factor


@single_threaded_blas()  # many small products
def propagate(
    factor: Matrix, sign: Vector, noise: Noise, start: Sites, tol: float, max_iter: int
) -> Approximation:
    """Move the sites until they fit to the likelihoods.

    A site never has a negative precision: where a likelihood widens the distribution of its latent
    value, only the mean is matched, and the variance stays. That keeps every step well defined.

    Parameters
    ----------
    factor : array of shape (n, rank)
        L, where LL' is the prior covariance.
    sign : array of shape (n,)
        What is known about the rows.
    noise : Noise
    start : Sites
    tol : float
        Largest residual.
    max_iter : int
    """
    prior = np.einsum("ij,ij->i", factor, factor)
    posterior = Posterior.of(start, factor)
    part, before, n_iter = 1.0, np.inf, 0
    while True:
        mean, variance = posterior.without_site(prior)
        evidence = noise.evidence(sign, mean, variance)
        second = np.minimum(evidence.second, 0.0)
        residual = _residual(posterior, mean, variance, evidence.first, second)
        if residual <= tol or n_iter == max_iter:
            break
        left = 1.0 + variance * second  # of the variance
        wanted = Sites(-second / left, (evidence.first - mean * second) / left)
        part = max(SHRINK * part, SMALLEST) if residual > before else min(GROW * part, 1.0)
        posterior = Posterior.of(posterior.sites.towards(wanted, part), factor)
        before, n_iter = residual, n_iter + 1
    value = _log_evidence(posterior, mean, variance, evidence.log_z)
    return Approximation(posterior, value, residual, n_iter, residual <= tol)


def _residual(
    posterior: Posterior, mean: Vector, variance: Vector, first: Vector, second: Vector
) -> float:
    """Return by how much the moments differ at most, once likelihoods replace sites."""
    means = (mean + variance * first - posterior.mean) / np.sqrt(posterior.variance)
    variances = (variance + variance**2 * second) / posterior.variance - 1.0
    return float(max(np.abs(means).max(), np.abs(variances).max()))


def _log_evidence(posterior: Posterior, mean: Vector, variance: Vector, log_z: Vector) -> float:
    """Return the logarithm of the integral over all sites, scaled to their likelihoods."""
    precision, shift = posterior.sites.precision, posterior.sites.shift
    widened = 1.0 + precision * variance
    exponent = (shift**2 * variance + 2.0 * shift * mean - precision * mean**2) / widened
    scales = log_z + 0.5 * (np.log(widened) - exponent)
    return float(scales.sum() + 0.5 * (shift @ posterior.mean) - posterior.half_log_det)
