"""Expectation propagation for Gaussian processes with a null category and a few active rows.

Given a few active rows Z (inducing points), the latent values of all others are taken to be
independent. With the Cholesky factor CC' = k(Z, Z), they are f = L'g + e, where g ~ N(0, I),
L = C⁻¹ k(Z, X), and e is independent noise with the rest of the prior variances.

Expectation propagation replaces every likelihood by a site exp(-½ τ h² + ν h) of h = L'g, such that
replacing one site by its likelihood changes neither mean nor variance of the latent value. Sites
are arrays of shape (2, n): the precisions τ and the shifts ν.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, special
from sklearn.utils import gen_batches

from neverworse._typing import Indices, Mask, Matrix, Vector

# All sites move at once, by a damping factor that shrinks where steps turn around, and grows again
# where they do not.
SHRINK, GROW, SMALLEST = 0.5, 1.2, 0.01
TINY = float(np.finfo(np.float64).tiny)
NEGLIGIBLE = 1e-10  # variance, relative to the largest one, that is not worth an active row
LABELED_FIRST = 100.0  # factor of the variances of labeled rows where active rows are chosen
BATCH = 4096  # rows whose covariances with the active ones are computed at once
MAX_NEGATIVE = 1e-6  # rounding error of a variance, relative to the largest one
NOT_POSITIVE = (
    "A covariance is not positive definite in floating point: the kernel's variance is too large "
    "compared with that of the noise, 1, or rows are too similar. Choose a kernel with a smaller "
    "variance or a shorter length scale, or rescale the columns of X."
)
# Below this, u plus its hazard is computed by a continued fraction with this number of terms.
TAIL, TERMS = -3.0, 60


class Evidence(NamedTuple):
    """Normalisers Z of likelihoods times Gaussians N(m, v): log Z and its derivatives over m."""

    log_z: Vector
    first: Vector
    second: Vector


def evidence(width: float, sign: Vector, mean: Vector, variance: Vector) -> Evidence:
    """Return the normalisers for the signs of rows and latent values N(mean, variance)."""
    scale = np.sqrt(1.0 + variance)
    u = _arguments(width, mean, scale)
    excluded = sign == np.array([[1.0], [-1.0]])
    log_p = np.where(excluded, -np.inf, special.log_ndtr(u))
    share = special.expit(log_p - log_p[::-1])
    # The normal density over the normal distribution function.
    hazard = np.sqrt(2.0 / np.pi) / special.erfcx(-u / np.sqrt(2.0))
    first = share[1] * hazard[1] - share[0] * hazard[0]
    second = share[0] * share[1] * hazard.sum(axis=0) ** 2
    second -= np.sum(share * hazard * _excess(u, hazard), axis=0)
    return Evidence(np.logaddexp(*log_p), first / scale, second / scale**2)


def log_odds(width: float, mean: Vector, variance: Vector) -> Vector:
    """Return log p(+) - log p(-) for latent values distributed as N(mean, variance)."""
    minus, plus = special.log_ndtr(_arguments(width, mean, np.sqrt(1.0 + variance)))
    return plus - minus


def _arguments(width: float, mean: Vector, scale: Vector) -> Matrix:
    return (np.stack([-mean, mean]) - 0.5 * width) / scale


def _excess(u: Vector, hazard: Vector) -> Vector:
    """Return u + hazard, without the cancellation in the far tail."""
    excess: Vector = u + hazard
    tail = u < TAIL
    fraction = x = -u[tail]
    for k in range(TERMS, 1, -1):
        fraction = x + k / fraction
    excess[tail] = 1.0 / fraction
    return excess


@dataclass(frozen=True)
class Posterior:
    """The Gaussian posterior N(centre, (RR')⁻¹) of g, where expectation propagation ended."""

    centre: Vector  # (m,)
    inverse_root: Matrix  # (m, m): R⁻¹, lower triangular
    sites: Matrix
    log_evidence: float = float("nan")  # approximate logarithm of the marginal likelihood
    residual: float = float("inf")  # largest change of a moment if a likelihood replaces its site
    n_iter: int = 0

    @classmethod
    def of(cls, sites: Matrix, factor: Matrix) -> Posterior:
        """Combine sites with the prior, for L of shape (m, n)."""
        precision, shift = sites
        root = _cholesky(np.eye(len(factor)) + (factor * precision) @ factor.T)
        inverse, _ = linalg.lapack.dtrtri(root, lower=1)
        return cls(inverse.T @ (inverse @ (factor @ shift)), inverse, sites)

    def latent(self, factor: Matrix) -> tuple[Vector, Vector]:
        """Return means and variances of h = L'g, for L of shape (m, n)."""
        return self.centre @ factor, _squared_norms(self.inverse_root @ factor)


def propagate(
    factor: Matrix,
    likelihood: Callable[[Vector, Vector], Evidence],
    start: Matrix,
    tol: float,
    max_iter: int,
) -> Posterior:
    """Move the sites until they match the likelihoods, for L of shape (m, n).

    A site never has a negative precision: where a likelihood widens the distribution of its latent
    value, only the mean is matched, and the variance stays. That keeps every step well defined.
    """
    prior = np.maximum(_squared_norms(factor), TINY)
    sites, part, before, n_iter = start, 1.0, np.zeros_like(start), 0
    while True:
        posterior, (precision, shift) = Posterior.of(sites, factor), sites
        centre, spread = posterior.latent(factor)
        # Without its own site, no variance is larger than in the prior.
        kept = np.maximum(1.0 - spread * precision, spread / prior)
        mean, variance = (centre - spread * shift) / kept, spread / kept
        found = likelihood(mean, variance)
        second = np.minimum(found.second, 0.0)
        left = 1.0 + variance * second  # of the variance
        moved = (mean + variance * found.first - centre) / np.sqrt(np.maximum(spread, TINY))
        residual = float(max(np.abs(moved).max(), np.abs(left / kept - 1.0).max()))
        if residual <= tol or n_iter == max_iter:
            break
        step = np.stack([-second, found.first - mean * second]) / left - sites
        turns = np.vdot(step, before) < 0.0
        part = max(SHRINK * part, SMALLEST) if turns else min(GROW * part, 1.0)
        sites, before, n_iter = sites + part * step, step, n_iter + 1
    # The logarithm of the integral over all sites, scaled to their likelihoods.
    widened = 1.0 + precision * variance
    exponent = (shift**2 * variance + 2.0 * shift * mean - precision * mean**2) / widened
    scales = found.log_z + 0.5 * (np.log(widened) - exponent)
    half_log_det = -np.log(np.diag(posterior.inverse_root)).sum()
    value = float(scales.sum() + 0.5 * (shift @ centre) - half_log_det)
    return replace(posterior, log_evidence=value, residual=residual, n_iter=n_iter)


@dataclass(frozen=True)
class ActiveRows:
    """The active rows Z, with the Cholesky factor of their covariance."""

    kernel: Any
    rows: Matrix  # (m, n_features): Z
    triangle: Matrix  # (m, m): C, lower triangular

    @classmethod
    def of(cls, kernel: Any, X: Matrix, labeled: Mask, max_active: int) -> ActiveRows:
        """Choose rows one by one: the one with the largest variance, given those before it."""
        scale = np.where(labeled, np.sqrt(LABELED_FIRST), 1.0)
        covariance = _finite(kernel(X, X)) * np.outer(scale, scale)
        smallest = NEGLIGIBLE * covariance.diagonal().max()
        _, order, rank, _ = linalg.lapack.dpstrf(covariance, tol=smallest, lower=1)
        if smallest == 0.0:
            raise ValueError(
                "The kernel has no covariance between rows, so that there is nothing to learn from "
                "labels. Choose another kernel, for example RBF()."
            )
        rows = X[order[: min(rank, max_active)] - 1]
        return cls(kernel, rows, _cholesky(kernel(rows, rows)))

    def factor(self, X: Matrix) -> tuple[Matrix, Vector]:
        """Return L of shape (m, n), and the variances of e."""
        factor = np.empty((len(self.rows), len(X)))
        for batch in gen_batches(len(X), BATCH):
            shared = _finite(self.kernel(self.rows, X[batch]))
            factor[:, batch] = linalg.solve_triangular(
                self.triangle, shared, lower=True, check_finite=False
            )
        variances = _finite(self.kernel.diag(X))
        own = variances - _squared_norms(factor)
        if own.min() < -MAX_NEGATIVE * variances.max():
            raise ValueError(NOT_POSITIVE)
        return factor, np.maximum(own, 0.0)


def sample_rows(labeled: Mask, size: int, rng: np.random.RandomState) -> Indices:
    """Return positions of a random sample of rows: labeled ones first, up to half of it."""
    if len(labeled) <= size:
        return np.arange(len(labeled))
    unknown, known = (rng.permutation(np.flatnonzero(labeled == which)) for which in (0, 1))
    n_known = min(len(known), max(size // 2, size - len(unknown)))
    return np.sort(np.concatenate([known[:n_known], unknown[: size - n_known]]))


def _squared_norms(matrix: Matrix) -> Vector:
    """Return the squared norms of the columns."""
    return np.einsum("ij,ij->j", matrix, matrix)


def _cholesky(matrix: Matrix) -> Matrix:
    try:
        return linalg.cholesky(matrix, lower=True, check_finite=False)
    except linalg.LinAlgError:
        raise ValueError(NOT_POSITIVE) from None


def _finite(values: Any) -> Any:
    if not np.isfinite(values).all():
        raise ValueError(
            "The kernel has values that are not finite. Rescale the columns of X, for example "
            "with sklearn.preprocessing.StandardScaler, or choose another kernel."
        )
    return values
