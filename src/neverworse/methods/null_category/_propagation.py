"""Expectation propagation for a Gaussian prior of low rank, and the null category noise model.

The latent values are h = L'g, where g ~ N(0, I) has as many entries as L has rows. Every likelihood
is replaced by a site exp(-½ τ h² + ν h), such that taking one site out and the likelihood in leaves
the moments of its latent value as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, special
from sklearn.utils import gen_even_slices

from neverworse._typing import Matrix, Vector
from neverworse.rows import map_in_threads

# All sites move at once, by a part of the way that shrinks where steps turn around, and grows again
# where they do not. (How far the moments are off says little: they may be more so on a good way.)
SHRINK, GROW, SMALLEST = 0.5, 1.2, 0.01
# Rows of a block at least, and the number of blocks at most, in passes over L.
BLOCK, MAX_BLOCKS = 2048, 32
TINY = float(np.finfo(np.float64).tiny)
# Left of this, u plus its hazard is computed by a continued fraction with this number of terms;
# to the right, the two do not cancel.
TAIL, TERMS = -3.0, 60


@dataclass(frozen=True)
class Evidence:
    """Normalisers Z of likelihoods times Gaussians N(m, v): log Z and its derivatives over m."""

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
    """The Gaussian posterior N(centre, (RR')⁻¹) of g."""

    centre: Vector  # (m,)
    inverse_root: Matrix  # (m, m): R⁻¹, lower triangular

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
    """Where expectation propagation ended."""

    posterior: Posterior
    sites: Sites
    log_evidence: float  # approximate logarithm of the marginal likelihood
    # by how much moments differ at most if a likelihood replaces its site: of means in units of the
    # standard deviation, of variances relative to them
    residual: float
    n_iter: int
    converged: bool


def propagate(
    factor: Matrix, likelihood: Likelihood, start: Sites, tol: float, max_iter: int
) -> Approximation:
    """Move the sites until they fit to the likelihoods.

    A site never has a negative precision: where a likelihood widens the distribution of its latent
    value, only the mean is matched, and the variance stays. That keeps every step well defined. L'L
    is the prior covariance, for L of shape (m, n), and `tol` the largest residual.
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


@dataclass(frozen=True)
class NullCategoryNoise:
    r"""Likelihood of labels with a null category between the classes.

    With the normal distribution function Φ and a latent value f,

    .. math:: p(+ | f) = \Phi(f - a/2), \qquad p(- | f) = \Phi(-f - a/2),

    and the rest belongs to the null category, from which no row ever comes. If a row of the class
    ± is unlabeled with the probability :math:`\gamma_\pm`, an unlabeled row has the likelihood
    :math:`\gamma_+ p(+ | f) + \gamma_- p(- | f)`, and a labeled one
    :math:`(1 - \gamma_\pm) p(\pm | f)`.
    """

    width: float  # a, the width of the null category
    # the probabilities of rows of the first class (-) and of the second one (+) to be unlabeled.
    # None: they are equal, and left out
    rates: tuple[float, float] | None = None

    def evidence(self, sign: Vector, mean: Vector, variance: Vector) -> Evidence:
        """Return the normaliser for latent values distributed as N(mean, variance).

        `sign` is 1 or -1 for rows of the two classes, 0 for unlabeled rows.
        """
        scale = np.sqrt(1.0 + variance)
        plus, minus = self._arguments(mean, scale)
        log_plus, log_minus = special.log_ndtr(plus), special.log_ndtr(minus)
        known = np.where(sign > 0, plus, minus)
        hazard = _hazard(known)
        log_known = np.where(sign > 0, log_plus, log_minus)
        if self.rates is not None:
            labeled, unlabeled = np.log1p(-np.array(self.rates)), np.log(self.rates)
            log_known = log_known + np.where(sign > 0, labeled[1], labeled[0])
            log_plus, log_minus = log_plus + unlabeled[1], log_minus + unlabeled[0]
        # An unlabeled row may be of either class: a mixture of the two.
        share = special.expit(log_plus - log_minus), special.expit(log_minus - log_plus)
        hazards = _hazard(plus), _hazard(minus)
        mixed = share[0] * hazards[0] - share[1] * hazards[1]
        bent = share[0] * share[1] * (hazards[0] + hazards[1]) ** 2
        for p, h, u in zip(share, hazards, (plus, minus), strict=True):
            bent = bent - p * h * _excess(u, h)
        either = sign == 0
        return Evidence(
            np.where(either, np.logaddexp(log_plus, log_minus), log_known),
            np.where(either, mixed, sign * hazard) / scale,
            np.where(either, bent, -hazard * _excess(known, hazard)) / scale**2,
        )

    def log_odds(self, mean: Vector, variance: Vector) -> Vector:
        """Return log p(+) - log p(-) for latent values distributed as N(mean, variance).

        The null category does not occur, so these are the odds of the two classes.
        """
        plus, minus = self._arguments(mean, np.sqrt(1.0 + variance))
        odds: Vector = special.log_ndtr(plus) - special.log_ndtr(minus)
        return odds

    def _arguments(self, mean: Vector, scale: Vector) -> tuple[Vector, Vector]:
        return (mean - 0.5 * self.width) / scale, (-mean - 0.5 * self.width) / scale


def checked_rates(rates: Any) -> tuple[float, float] | None:
    """Return the parameter `unlabeled_rates` of a classifier, or say what is wrong with it."""
    if rates is None:
        return None
    try:
        first, second = (float(rate) for rate in rates)
    except (TypeError, ValueError):
        first = second = np.nan
    if not (0.0 < first < 1.0 and 0.0 < second < 1.0):
        raise ValueError(
            f"unlabeled_rates={rates!r} are not two numbers between 0 and 1: the probabilities of "
            "rows of the first and of the second class to be unlabeled."
        )
    return first, second


def _hazard(u: Vector) -> Vector:
    """Return the normal density over the normal distribution function at u."""
    hazard: Vector = np.sqrt(2.0 / np.pi) / special.erfcx(-u / np.sqrt(2.0))
    return hazard


def _excess(u: Vector, hazard: Vector) -> Vector:
    """Return u + hazard, of which nothing but rounding errors would be left in the far tail."""
    excess: Vector = u + hazard
    tail = u < TAIL
    if tail.any():
        x = -u[tail]
        fraction = x
        for k in range(TERMS, 1, -1):
            fraction = x + k / fraction
        excess[tail] = 1.0 / fraction
    return excess
