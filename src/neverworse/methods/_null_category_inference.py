"""Expectation propagation for Gaussian processes of which a few active rows carry the rest.

Given the active rows Z, the latent values of all others are taken to be independent. With the
Cholesky factor CC' = k(Z, Z), they are f = L'g + e, where g ~ N(0, I), L = C⁻¹ k(Z, X), and e is
independent noise with what is left of the prior variances. Where all rows are active, e is zero
and nothing is approximated. Memory and time grow linearly with the number of other rows.

Every likelihood is replaced by a site exp(-½ τ h² + ν h) of h = L'g, such that taking one site out
and the likelihood in leaves the moments of its latent value as they are. Sites are arrays of shape
(2, n): the precisions τ and the shifts ν.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy import linalg, optimize
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils import gen_batches

from neverworse._budget import Budget
from neverworse._typing import Indices, Mask, Matrix, Vector

# All sites move at once, by a part of the way that shrinks where steps turn around, and grows again
# where they do not. (How far the moments are off says little: they may be more so on a good way.)
SHRINK, GROW, SMALLEST = 0.5, 1.2, 0.01
TINY = float(np.finfo(np.float64).tiny)
# Variance, relative to the largest one, at which a row has nothing to add to the active ones.
NEGLIGIBLE = 1e-10
# Rows whose covariances with the active ones are computed at once.
BATCH = 4096
# Rows that parameters and active rows are chosen from, unless more rows than that may be active.
SAMPLE = 1000
# Prior variances of the default kernel: of what differs between rows, and of what all rows have in
# common. The noise has the variance 1.
VARIANCE, BIAS = 10.0, 1.0
# How far, as a factor, the length scale of the default kernel may go from where it starts.
RANGE = 100.0
# Step of the differences that give the gradient over logarithms of kernel parameters. The exact
# gradient is known only where no site is kept from a negative precision; elsewhere the formula was
# measured to be off by a factor of up to five.
STEP = 1e-3
# When the search ends: gradient, and relative change of the value.
SMALL_GRADIENT, SMALL_CHANGE = 1e-2, 1e-6


@dataclass(frozen=True)
class Evidence:
    """Normalisers Z of likelihoods times Gaussians N(m, v): log Z and its derivatives over m."""

    log_z: Vector
    first: Vector
    second: Vector


# From labels (1, -1, or 0 where unlabeled), and means and variances without the sites of the rows.
Likelihood = Callable[[Vector, Vector, Vector], Evidence]


@dataclass(frozen=True)
class Posterior:
    """The Gaussian posterior N(centre, (RR')⁻¹) of g."""

    centre: Vector  # (m,)
    inverse_root: Matrix  # (m, m): R⁻¹, lower triangular

    @classmethod
    def of(cls, sites: Matrix, factor: Matrix) -> Posterior:
        """Combine sites with the prior, for L of shape (m, n)."""
        precision, shift = sites
        gram = (factor * precision) @ factor.T
        root = _cholesky(np.eye(len(factor)) + gram)
        inverse, _ = linalg.lapack.dtrtri(root, lower=1)
        return cls(inverse.T @ (inverse @ (factor @ shift)), inverse)

    def latent(self, factor: Matrix) -> tuple[Vector, Vector]:
        """Return means and variances of h = L'g, for L of shape (m, n)."""
        spread = self.inverse_root @ factor
        return self.centre @ factor, np.einsum("ij,ij->j", spread, spread)


@dataclass(frozen=True)
class Approximation:
    """Where expectation propagation ended."""

    posterior: Posterior
    sites: Matrix
    log_evidence: float  # approximate logarithm of the marginal likelihood
    # by how much moments differ at most if a likelihood replaces its site: of means in units of the
    # standard deviation, of variances relative to them
    residual: float
    n_iter: int
    converged: bool


def propagate(
    factor: Matrix,
    likelihood: Callable[[Vector, Vector], Evidence],
    start: Matrix,
    tol: float,
    max_iter: int,
) -> Approximation:
    """Move the sites until they fit to the likelihoods.

    A site never has a negative precision: where a likelihood widens the distribution of its latent
    value, only the mean is matched, and the variance stays. That keeps every step well defined. L'L
    is the prior covariance, for L of shape (m, n), and `tol` the largest residual.
    """
    prior = np.maximum(np.einsum("ij,ij->j", factor, factor), TINY)
    sites, part, before, n_iter = start, 1.0, np.zeros_like(start), 0
    while True:
        posterior, (precision, shift) = Posterior.of(sites, factor), sites
        centre, spread = posterior.latent(factor)
        # Without its own site, no variance is larger than before all sites.
        kept = np.maximum(1.0 - spread * precision, spread / prior)
        mean, variance = (centre - spread * shift) / kept, spread / kept
        evidence = likelihood(mean, variance)
        second = np.minimum(evidence.second, 0.0)
        left = 1.0 + variance * second  # of the variance
        moved = (mean + variance * evidence.first - centre) / np.sqrt(np.maximum(spread, TINY))
        residual = float(max(np.abs(moved).max(), np.abs(left / kept - 1.0).max()))
        if residual <= tol or n_iter == max_iter:
            break
        step = np.stack([-second, evidence.first - mean * second]) / left - sites
        turns = np.vdot(step, before) < 0.0
        part = max(SHRINK * part, SMALLEST) if turns else min(GROW * part, 1.0)
        sites, before, n_iter = sites + part * step, step, n_iter + 1
    # The logarithm of the integral over all sites, scaled to their likelihoods.
    widened = 1.0 + precision * variance
    exponent = (shift**2 * variance + 2.0 * shift * mean - precision * mean**2) / widened
    scales = evidence.log_z + 0.5 * (np.log(widened) - exponent)
    half_log_det = -np.log(np.diag(posterior.inverse_root)).sum()
    value = float(scales.sum() + 0.5 * (shift @ centre) - half_log_det)
    return Approximation(posterior, sites, value, residual, n_iter, residual <= tol)


@dataclass(frozen=True)
class ActiveRows:
    """Rows that others depend on."""

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
        own = _finite(self.kernel.diag(X)) - np.einsum("ij,ij->j", factor, factor)
        return factor, np.maximum(own, 0.0)


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
    """Rows with what is known about their labels, and how to propagate it."""

    X: Matrix  # (n, n_features)
    sign: Vector  # (n,): 1 and -1 for rows of the two classes, 0 for unlabeled rows
    likelihood: Likelihood
    max_active: int  # number of active rows at most
    # tol, max_iter: of expectation propagation
    tol: float
    max_iter: int

    def take(self, rows: Any) -> Data:
        return replace(self, X=self.X[rows], sign=self.sign[rows])

    def active(self, kernel: Any) -> ActiveRows:
        chosen = choose_active(kernel, self.X, self.sign != 0.0, self.max_active)
        return ActiveRows.of(kernel, self.X[chosen])

    def process(self, active: ActiveRows, start: Matrix | None = None) -> Process:
        """Find the posterior: of several fixed points, the one near that of the labeled rows."""
        factor, own = active.factor(self.X)
        if start is None:
            start, labeled = np.zeros((2, len(self.X))), np.flatnonzero(self.sign)
            if len(labeled) < len(self.X):
                start[:, labeled] = self._propagate(
                    factor[:, labeled], own[labeled], self.sign[labeled], start[:, labeled]
                ).sites
        return Process(active, self._propagate(factor, own, self.sign, start))

    def _propagate(self, factor: Matrix, own: Vector, sign: Vector, start: Matrix) -> Approximation:
        # The variance that is a row's own acts as noise, and makes its likelihood flatter.
        def likelihood(mean: Vector, variance: Vector) -> Evidence:
            return self.likelihood(sign, mean, variance + own)

        return propagate(factor, likelihood, start, self.tol, self.max_iter)


def choose_active(kernel: Any, X: Matrix, labeled: Mask, max_active: int) -> Indices:
    """Choose rows one by one: always the one with the largest variance, given those before it.

    The first half comes from the labeled rows, if there are enough, so that their likelihoods are
    exact. There are fewer than `max_active` if no variance is left.
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
        # White noise is in the variance of a row, but in no covariance with others.
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
    known, unknown = np.flatnonzero(labeled), np.flatnonzero(~labeled)
    n_known = min(len(known), max(size // 2, size - len(unknown)))
    parts = [
        rng.choice(rows, number, replace=False) if number < len(rows) else rows
        for rows, number in ((known, n_known), (unknown, size - n_known))
    ]
    return np.sort(np.concatenate(parts))


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
    kernel: Any, data: Data, optimize_kernel: bool, rng: RandomState, budget: Budget
) -> Process:
    """Choose parameters of the kernel and active rows, and find the posterior of all rows."""
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
    # Squares of very large or very small features would overflow, or vanish.
    size = float(np.abs(X).max()) or 1.0
    distances = pdist(X / size)
    length = size * float(np.median(distances[distances > 0.0])) if distances.any() else 1.0
    rows_differ = ConstantKernel(VARIANCE, "fixed") * RBF(length, (length / RANGE, length * RANGE))
    return rows_differ + ConstantKernel(BIAS, "fixed")


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
        moved = theta.copy()
        moved[j] += step
        active = ActiveRows.of(kernel.clone_with_theta(moved), found.active.rows)
        near = data.process(active, found.approximation.sites)
        change = near.approximation.log_evidence - found.approximation.log_evidence
        gradient[j] = change / step
    return found, gradient
