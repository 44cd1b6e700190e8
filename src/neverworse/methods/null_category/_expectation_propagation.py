"""Expectation propagation for a Gaussian prior of low rank, with one likelihood for each row.

The latent values are h = L'g, where g ~ N(0, I) has as many entries as L has rows. Every likelihood
is replaced by a site exp(-½ τ h² + ν h), such that taking one site out and the likelihood in leaves
the moments of its latent value as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from sklearn.utils import gen_even_slices

from neverworse._typing import Matrix, Vector
from neverworse.rows._threads import map_in_threads

# All sites move at once, by a part of the way that shrinks where steps turn around, and grows again
# where they do not. (How far the moments are off says little: they may be more so on a good way.)
SHRINK, GROW, SMALLEST = 0.5, 1.2, 0.01
# Rows of a block at least, and the number of blocks at most, in passes over L.
BLOCK, MAX_BLOCKS = 2048, 32
TINY = float(np.finfo(np.float64).tiny)


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


# From means and variances of the latent values without their sites.
Likelihood = Callable[[Vector, Vector], Evidence]


@dataclass(frozen=True)
class Sites:
    """What stands for the likelihoods: exp(-½ precision h² + shift h) for each row."""

    precision: Vector
    shift: Vector

    @classmethod
    def nothing(cls, n_rows: int) -> Sites:
        """Return sites that say nothing."""
        return cls(np.zeros(n_rows), np.zeros(n_rows))

    def minus(self, other: Sites) -> Sites:
        """Return the step that leads here from other sites."""
        return Sites(self.precision - other.precision, self.shift - other.shift)

    def after(self, step: Sites, part: float) -> Sites:
        """Return the sites after a part of a step."""
        return Sites(self.precision + part * step.precision, self.shift + part * step.shift)

    def turns(self, before: Sites) -> bool:
        """Whether a step leads back where another one came from."""
        return float(self.precision @ before.precision + self.shift @ before.shift) < 0.0


@dataclass(frozen=True)
class Posterior:
    """The Gaussian posterior N(centre, (RR')⁻¹) of g.

    Attributes
    ----------
    centre : array of shape (m,)
    inverse_root : array of shape (m, m)
        R⁻¹, lower triangular.
    """

    centre: Vector
    inverse_root: Matrix

    @classmethod
    def of(cls, sites: Sites, factor: Matrix) -> Posterior:
        """Combine sites with the prior, for L of shape (m, n)."""
        gram = sum(
            map_in_threads(
                lambda rows: (factor[:, rows] * sites.precision[rows]) @ factor[:, rows].T,
                _blocks(factor),
            )
        )
        try:
            root = linalg.cholesky(np.eye(len(factor)) + gram, lower=True, check_finite=False)
        except linalg.LinAlgError:
            # Beside the likelihoods, the prior precision is lost in rounding errors.
            raise ValueError(
                "The variances of the kernel are too large for working precision: the noise has "
                "the variance 1. Choose a kernel with a smaller variance, or, if it is not "
                "stationary, rescale the columns of X."
            ) from None
        inverse, _ = linalg.lapack.dtrtri(root, lower=1)
        return cls(inverse.T @ (inverse @ (factor @ sites.shift)), inverse)

    def latent(self, factor: Matrix) -> tuple[Vector, Vector]:
        """Return means and variances of h = L'g, for L of shape (m, n)."""

        def variance(rows: slice) -> Vector:
            spread = self.inverse_root @ factor[:, rows]
            return np.einsum("ij,ij->j", spread, spread)

        pieces = map_in_threads(variance, _blocks(factor))
        return self.centre @ factor, np.concatenate(pieces)

    def half_log_det(self) -> float:
        """Return half the logarithm of the determinant of RR'."""
        return -float(np.log(np.diag(self.inverse_root)).sum())


@dataclass(frozen=True)
class Approximation:
    """Where expectation propagation ended.

    Attributes
    ----------
    posterior : Posterior
    sites : Sites
    log_evidence : float
        Approximate logarithm of the marginal likelihood.
    residual : float
        By how much moments differ at most if a likelihood replaces its site: of means in units of
        the standard deviation, of variances relative to them.
    n_iter : int
    converged : bool
    """

    posterior: Posterior
    sites: Sites
    log_evidence: float
    residual: float
    n_iter: int
    converged: bool


def propagate(
    factor: Matrix, likelihood: Likelihood, start: Sites, tol: float, max_iter: int
) -> Approximation:
    """Move the sites until they fit to the likelihoods.

    A site never has a negative precision: where a likelihood widens the distribution of its latent
    value, only the mean is matched, and the variance stays. That keeps every step well defined.

    Parameters
    ----------
    factor : array of shape (m, n)
        L, where L'L is the prior covariance.
    likelihood : callable
    start : Sites
    tol : float
        Largest residual.
    max_iter : int
    """
    prior = np.maximum(np.einsum("ij,ij->j", factor, factor), TINY)
    sites, part, before, n_iter = start, 1.0, Sites.nothing(len(prior)), 0
    while True:
        posterior = Posterior.of(sites, factor)
        centre, spread = posterior.latent(factor)
        # Without its own site, no variance is larger than before all sites.
        kept = np.maximum(1.0 - spread * sites.precision, spread / prior)
        mean, variance = (centre - spread * sites.shift) / kept, spread / kept
        evidence = likelihood(mean, variance)
        second = np.minimum(evidence.second, 0.0)
        left = 1.0 + variance * second  # of the variance
        moved = (mean + variance * evidence.first - centre) / np.sqrt(np.maximum(spread, TINY))
        residual = float(max(np.abs(moved).max(), np.abs(left / kept - 1.0).max()))
        if residual <= tol or n_iter == max_iter:
            break
        wanted = Sites(-second / left, (evidence.first - mean * second) / left)
        step = wanted.minus(sites)
        part = max(SHRINK * part, SMALLEST) if step.turns(before) else min(GROW * part, 1.0)
        sites = sites.after(step, part)
        before, n_iter = step, n_iter + 1
    value = _log_evidence(posterior, sites, centre, mean, variance, evidence.log_z)
    return Approximation(posterior, sites, value, residual, n_iter, residual <= tol)


def _log_evidence(
    posterior: Posterior,
    sites: Sites,
    centre: Vector,
    mean: Vector,
    variance: Vector,
    log_z: Vector,
) -> float:
    """Return the logarithm of the integral over all sites, scaled to their likelihoods."""
    precision, shift = sites.precision, sites.shift
    widened = 1.0 + precision * variance
    exponent = (shift**2 * variance + 2.0 * shift * mean - precision * mean**2) / widened
    scales = log_z + 0.5 * (np.log(widened) - exponent)
    return float(scales.sum() + 0.5 * (shift @ centre) - posterior.half_log_det())


def _blocks(factor: Matrix) -> list[slice]:
    n_rows = factor.shape[1]
    return list(gen_even_slices(n_rows, min(max(n_rows // BLOCK, 1), MAX_BLOCKS)))
