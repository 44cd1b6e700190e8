"""Null category noise, and expectation propagation with a few active rows (inducing points).

Given the active rows Z, the latent values of all others are taken to be independent. With the
Cholesky factor CC' = k(Z, Z), they are f = L'g + e, where g ~ N(0, I), L = C⁻¹ k(Z, X), and e is
independent noise with the rest of the prior variances: zero for active rows.

Every likelihood is replaced by a site exp(-½ τ h² + ν h) of h = L'g, such that replacing one site
by its likelihood changes neither mean nor variance of the latent value. Sites are arrays of shape
(2, n): the precisions τ and the shifts ν.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy import linalg, optimize, special
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils import check_random_state, gen_batches

from neverworse._budget import Budget
from neverworse._typing import Indices, Mask, Matrix, Vector

# Below this, u plus its hazard is computed by a continued fraction with this number of terms.
TAIL, TERMS = -3.0, 60
# All sites move at once, by a damping factor that shrinks where steps turn around, and grows again
# where they do not.
SHRINK, GROW, SMALLEST = 0.5, 1.2, 0.01
TINY = float(np.finfo(np.float64).tiny)
NEGLIGIBLE = 1e-10  # variance, relative to the largest one, that is not worth an active row
BATCH = 4096  # rows whose covariances with the active ones are computed at once
SAMPLE = 1000  # rows that kernel and active rows are chosen from, unless `max_active` is larger
VARIANCE, BIAS = 10.0, 1.0  # prior variances of the default kernel; the noise has the variance 1
RANGE = 100.0  # factor by which the length scale of the default kernel may change
# Step of finite differences for the gradient over logarithms of kernel parameters. (The analytic
# gradient is wrong where a site would have a negative precision.)
STEP = 1e-3
SMALL_GRADIENT, SMALL_CHANGE = 1e-2, 1e-6  # where the search for kernel parameters ends


@dataclass(frozen=True)
class NullCategoryNoise:
    """Likelihood of labels and of unlabeled rows, as in `NullCategoryNoiseModel`."""

    width: float  # a, the width of the null category
    rates: Vector | None = None  # the parameter `unlabeled_rates`

    def evidence(
        self, sign: Vector, mean: Vector, variance: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Return log Z for latent values N(m, v) with the normaliser Z, and derivatives over m.

        `sign` is 1 or -1 for rows of the two classes, 0 for unlabeled rows.
        """
        scale, known, unknown = np.sqrt(1.0 + variance), np.zeros(2), np.zeros(2)
        if self.rates is not None:
            known, unknown = np.log1p(-self.rates), np.log(self.rates)
        own = np.where(sign == np.array([[-1.0], [1.0]]), known[:, None], -np.inf)
        u = self._arguments(mean, scale)
        log_p = special.log_ndtr(u) + np.where(sign == 0.0, unknown[:, None], own)
        share = special.expit(log_p - log_p[::-1])
        # The normal density over the normal distribution function.
        hazard = np.sqrt(2.0 / np.pi) / special.erfcx(-u / np.sqrt(2.0))
        first = share[1] * hazard[1] - share[0] * hazard[0]
        second = share[0] * share[1] * hazard.sum(axis=0) ** 2
        second -= np.sum(share * hazard * _excess(u, hazard), axis=0)
        return np.logaddexp(*log_p), first / scale, second / scale**2

    def log_odds(self, mean: Vector, variance: Vector) -> Vector:
        """Return log p(+) - log p(-) for latent values distributed as N(mean, variance)."""
        minus, plus = special.log_ndtr(self._arguments(mean, np.sqrt(1.0 + variance)))
        return plus - minus

    def _arguments(self, mean: Vector, scale: Vector) -> Matrix:
        return (np.stack([-mean, mean]) - 0.5 * self.width) / scale


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
    """The Gaussian posterior N(centre, (RR')⁻¹) of g."""

    centre: Vector  # (m,)
    inverse_root: Matrix  # (m, m): R⁻¹, lower triangular

    def latent(self, factor: Matrix) -> tuple[Vector, Vector]:
        """Return means and variances of h = L'g, for L of shape (m, n)."""
        return self.centre @ factor, _squared_norms(self.inverse_root @ factor)


@dataclass(frozen=True)
class Approximation:
    """Where expectation propagation ended."""

    posterior: Posterior
    sites: Matrix
    log_evidence: float  # approximate logarithm of the marginal likelihood
    residual: float  # largest change of a moment if a likelihood replaces its site; see `tol`
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class ActiveRows:
    """The active rows Z, with the Cholesky factor of their covariance."""

    kernel: Any
    rows: Matrix  # (m, n_features): Z
    triangle: Matrix  # (m, m): C, lower triangular

    @classmethod
    def of(cls, kernel: Any, rows: Matrix) -> ActiveRows:
        """Factorise the covariance of rows that `choose_active` has found."""
        return cls(kernel, rows, _cholesky(_finite(kernel(rows, rows))))

    def factor(self, X: Matrix) -> tuple[Matrix, Vector]:
        """Return L of shape (m, n), and the variances of e."""
        factor = np.empty((len(self.rows), len(X)))
        for batch in gen_batches(len(X), BATCH):
            shared = _finite(self.kernel(self.rows, X[batch]))
            factor[:, batch] = linalg.solve_triangular(
                self.triangle, shared, lower=True, check_finite=False
            )
        return factor, np.maximum(_finite(self.kernel.diag(X)) - _squared_norms(factor), 0.0)


@dataclass(frozen=True)
class Process:
    """A Gaussian process with its posterior."""

    active: ActiveRows
    approximation: Approximation

    def latent(self, X: Matrix) -> tuple[Vector, Vector]:
        """Return posterior means and variances of f."""
        factor, own = self.active.factor(X)
        mean, variance = self.approximation.posterior.latent(factor)
        return mean, variance + own


@dataclass(frozen=True)
class Data:
    """Rows with their labels, and the settings of expectation propagation."""

    X: Matrix  # (n, n_features)
    sign: Vector  # (n,): 1 and -1 for rows of the two classes, 0 for unlabeled rows
    noise: NullCategoryNoise
    max_active: int
    tol: float
    max_iter: int

    def take(self, rows: Any) -> Data:
        return replace(self, X=self.X[rows], sign=self.sign[rows])

    def active(self, kernel: Any) -> ActiveRows:
        chosen = choose_active(kernel, self.X, self.sign != 0.0, self.max_active)
        return ActiveRows.of(kernel, self.X[chosen])

    def process(self, active: ActiveRows, start: Matrix | None = None) -> Process:
        """Find the posterior; there may be several, so start from that of the labeled rows."""
        factor, own = active.factor(self.X)
        if start is None:
            start, labeled = np.zeros((2, len(self.X))), np.flatnonzero(self.sign)
            if len(labeled) < len(self.X):
                alone = self.take(labeled)
                found = alone.propagate(factor[:, labeled], own[labeled], start[:, labeled])
                start[:, labeled] = found.sites
        return Process(active, self.propagate(factor, own, start))

    def propagate(self, factor: Matrix, own: Vector, start: Matrix) -> Approximation:
        """Move the sites until they match the likelihoods, for L, the variances of e, and sites.

        A site never has a negative precision: where a likelihood widens the distribution of its
        latent value, only the mean is matched, and the variance stays. That keeps every step well
        defined.
        """
        prior = np.maximum(_squared_norms(factor), TINY)
        sites, part, before, n_iter = start, 1.0, np.zeros_like(start), 0
        while True:
            precision, shift = sites
            root = _cholesky(np.eye(len(factor)) + (factor * precision) @ factor.T)
            inverse, _ = linalg.lapack.dtrtri(root, lower=1)
            posterior = Posterior(inverse.T @ (inverse @ (factor @ shift)), inverse)
            centre, spread = posterior.latent(factor)
            # Without its own site, no variance is larger than in the prior.
            kept = np.maximum(1.0 - spread * precision, spread / prior)
            mean, variance = (centre - spread * shift) / kept, spread / kept
            # The variance of e acts as additional noise.
            log_z, first, second = self.noise.evidence(self.sign, mean, variance + own)
            second = np.minimum(second, 0.0)
            left = 1.0 + variance * second  # of the variance
            moved = (mean + variance * first - centre) / np.sqrt(np.maximum(spread, TINY))
            residual = float(max(np.abs(moved).max(), np.abs(left / kept - 1.0).max()))
            if residual <= self.tol or n_iter == self.max_iter:
                break
            step = np.stack([-second, first - mean * second]) / left - sites
            turns = np.vdot(step, before) < 0.0
            part = max(SHRINK * part, SMALLEST) if turns else min(GROW * part, 1.0)
            sites, before, n_iter = sites + part * step, step, n_iter + 1
        # The logarithm of the integral over all sites, scaled to their likelihoods.
        widened = 1.0 + precision * variance
        exponent = (shift**2 * variance + 2.0 * shift * mean - precision * mean**2) / widened
        scales = log_z + 0.5 * (np.log(widened) - exponent)
        half_log_det = -np.log(np.diag(inverse)).sum()
        value = float(scales.sum() + 0.5 * (shift @ centre) - half_log_det)
        return Approximation(posterior, sites, value, residual, n_iter, residual <= self.tol)


def choose_active(kernel: Any, X: Matrix, labeled: Mask, max_active: int) -> Indices:
    """Choose rows one by one: always the one with the largest variance, given those before it.

    The first half are labeled rows, if there are enough. Ends early if no variance is left.
    """
    left = _finite(kernel.diag(X)).copy()
    smallest = NEGLIGIBLE * float(left.max())
    factor = np.empty((min(max_active, len(X)), len(X)))
    active: list[int] = []
    for k in range(len(factor)):
        among = np.where(labeled, left, 0.0) if k < (max_active + 1) // 2 else left
        if among.max() <= smallest:
            among = left
        row = int(among.argmax())
        if left[row] <= smallest:
            break
        m = len(active)
        covariance = _finite(kernel(X[row : row + 1], X)[0]) - factor[:m, row] @ factor[:m]
        # A white kernel adds to variances, but to no covariance.
        common, left[row] = covariance[row], 0.0
        if common > smallest:
            factor[m] = covariance / np.sqrt(common)
            left = np.maximum(left - factor[m] ** 2, 0.0)
            active.append(row)
    if not active:
        raise ValueError(
            "The kernel has no covariance between rows, so that there is nothing to learn from "
            "labels. Choose another kernel, for example RBF()."
        )
    return np.array(active, dtype=np.intp)


def sample_rows(labeled: Mask, size: int, rng: RandomState) -> Indices:
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
        raise ValueError(
            "A covariance is not positive definite in floating point: the kernel's variance is too "
            "large compared with that of the noise, 1, or rows are too similar. Choose a kernel "
            "with a smaller variance or a shorter length scale, or rescale the columns of X."
        ) from None


def _finite(values: Any) -> Any:
    if not np.isfinite(values).all():
        raise ValueError(
            "The kernel has values that are not finite. Rescale the columns of X, for example "
            "with sklearn.preprocessing.StandardScaler, or choose another kernel."
        )
    return values


def fit_process(
    kernel: Any, data: Data, optimize_kernel: bool, random_state: Any, budget: Budget
) -> Process:
    """Choose kernel parameters and active rows, and find the posterior of all rows."""
    rng = check_random_state(random_state)
    sample = data.take(sample_rows(data.sign != 0.0, max(SAMPLE, data.max_active), rng))
    kernel = default_kernel(sample.X) if kernel is None else clone(kernel)
    if optimize_kernel and len(kernel.theta):
        kernel = search(kernel, sample, budget)
    found = data.process(sample.active(kernel))
    budget.n_iter = found.approximation.n_iter
    budget.report("expectation propagation", len(data.X))
    return found


def default_kernel(X: Matrix) -> Any:
    """Return a Gaussian kernel whose length starts at the median distance of different rows."""
    size = float(np.abs(X).max()) or 1.0  # without it, squares might overflow or vanish
    distances = pdist(X / size)
    length = size * float(np.median(distances[distances > 0.0])) if distances.any() else 1.0
    smooth = ConstantKernel(VARIANCE, "fixed") * RBF(length, (length / RANGE, length * RANGE))
    return smooth + ConstantKernel(BIAS, "fixed")


def search(kernel: Any, data: Data, budget: Budget) -> Any:
    """Return the kernel with the largest marginal likelihood of those tried."""
    seen: list[tuple[float, Any]] = []

    def loss(theta: Vector) -> tuple[float, Vector]:
        found, gradient = likelihood_and_gradient(kernel.clone_with_theta(theta), data)
        value = found.approximation.log_evidence
        seen.append((value, found.active.kernel))
        budget.n_iter = found.approximation.n_iter
        budget.report(f"log marginal likelihood {value:.6g}", len(data.X))
        return -value, -gradient

    def stop(_: Vector) -> None:
        if budget.exhausted:
            raise StopIteration

    optimize.minimize(
        loss,
        kernel.theta,
        jac=True,
        method="L-BFGS-B",
        bounds=kernel.bounds,
        callback=stop,
        options={"gtol": SMALL_GRADIENT, "ftol": SMALL_CHANGE},
    )
    return max(seen, key=lambda pair: pair[0])[1]


def likelihood_and_gradient(kernel: Any, data: Data) -> tuple[Process, Vector]:
    """Return the posterior, and the gradient of the marginal likelihood over `kernel.theta`."""
    found = data.process(data.active(kernel))
    theta, gradient = kernel.theta, np.empty(len(kernel.theta))
    for j, upper in enumerate(kernel.bounds[:, 1]):
        step = STEP if theta[j] + STEP <= upper else -STEP
        moved = kernel.clone_with_theta(theta + step * np.eye(len(theta))[j])
        active = ActiveRows.of(moved, found.active.rows)
        near = data.process(active, found.approximation.sites)
        change = near.approximation.log_evidence - found.approximation.log_evidence
        gradient[j] = change / step
    return found, gradient


# What a fitted model consists of.
PARTS = (ActiveRows, Approximation, NullCategoryNoise, Posterior, Process)
