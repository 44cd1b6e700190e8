"""Gaussian processes of which a few active rows carry all that rows have in common.

Given the active rows Z, the latent values of all others are taken to be independent. With the
Cholesky factor CC' = k(Z, Z), they are f = L'g + e, where g ~ N(0, I), L = C⁻¹ k(Z, X), and e is
independent noise with what is left of the prior variances. Where all rows are active, e is zero
and nothing is approximated. Memory and time grow linearly with the number of other rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy import linalg, optimize
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils import gen_batches

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.methods._base import Stages
from neverworse.methods.null_category._propagation import (
    Approximation,
    Evidence,
    NullCategoryNoise,
    Sites,
    propagate,
)

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
class ActiveRows:
    """Rows that others depend on."""

    kernel: Any
    rows: Matrix  # (m, n_features): Z
    triangle: Matrix  # (m, m): C, lower triangular

    @classmethod
    def of(cls, kernel: Any, rows: Matrix) -> ActiveRows:
        """Factorise the covariance of rows that `choose_active` has found."""
        covariance = _finite(kernel(rows, rows))
        try:
            triangle = linalg.cholesky(covariance, lower=True, check_finite=False)
        except linalg.LinAlgError:
            raise ValueError(
                "The kernel's covariance of rows is not positive definite in floating point: rows "
                "are too much alike for it. Choose a kernel with a shorter length scale or with "
                "white noise, or rescale the columns of X."
            ) from None
        return cls(kernel, rows, triangle)

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
    noise: NullCategoryNoise
    max_active: int  # number of active rows at most
    # tol, max_iter: of expectation propagation
    tol: float
    max_iter: int

    def take(self, rows: Any) -> Data:
        """Return a part of the rows."""
        return replace(self, X=self.X[rows], sign=self.sign[rows])

    def active(self, kernel: Any) -> ActiveRows:
        """Choose active rows."""
        return ActiveRows.of(
            kernel, self.X[choose_active(kernel, self.X, self.sign != 0.0, self.max_active)]
        )

    def process(self, active: ActiveRows, start: Sites | None = None) -> Process:
        """Find the posterior, starting from where the labeled rows alone lead to.

        There may be several fixed points.
        """
        factor, own = active.factor(self.X)
        if start is None:
            start = Sites.nothing(len(self.X))
            labeled = np.flatnonzero(self.sign)
            if len(labeled) < len(self.X):
                alone = self._propagate(
                    factor[:, labeled],
                    own[labeled],
                    self.sign[labeled],
                    Sites.nothing(len(labeled)),
                ).sites
                start.precision[labeled], start.shift[labeled] = alone.precision, alone.shift
        return Process(active, self._propagate(factor, own, self.sign, start))

    def _propagate(self, factor: Matrix, own: Vector, sign: Vector, start: Sites) -> Approximation:
        # The variance that is a row's own acts as noise, and makes its likelihood flatter.
        def likelihood(mean: Vector, variance: Vector) -> Evidence:
            return self.noise.evidence(sign, mean, variance + own)

        return propagate(factor, likelihood, start, self.tol, self.max_iter)


def choose_active(kernel: Any, X: Matrix, labeled: Mask, max_active: int) -> Indices:
    """Choose rows one by one: always the one about which those before say the least.

    That is the one with the largest prior variance, given the latent values of those before it; of
    equals, the first. The first half comes from the labeled rows, as far as there are enough: what
    they say about f shall not be blurred. There are fewer than `max_active` if these say it all.
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
            "The kernel has no covariance between rows, so that labels say nothing about other "
            "rows. Choose another kernel, for example RBF()."
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


def _finite(values: Any) -> Any:
    if not np.isfinite(values).all():
        raise ValueError(
            "The kernel has values that are not finite. Rescale the columns of X, for example "
            "with sklearn.preprocessing.StandardScaler, or choose another kernel."
        )
    return values


def fit_process(
    kernel: Any, data: Data, optimize_kernel: bool, rng: RandomState, stages: Stages
) -> Process:
    """Choose parameters of the kernel and active rows, and find the posterior of all rows."""
    sample = data.take(sample_rows(data.sign != 0.0, max(SAMPLE, data.max_active), rng))
    if kernel is None:
        kernel = default_kernel(sample.X)
    if optimize_kernel and len(kernel.theta):
        kernel = search(kernel, sample, stages)
    found = data.process(sample.active(kernel))
    stages.report("expectation propagation", found.approximation.n_iter, len(data.X))
    return found


def default_kernel(X: Matrix) -> Any:
    """Return a Gaussian kernel whose length starts at the median distance of different rows."""
    size = float(np.abs(X).max())
    length = 1.0
    if size > 0.0:  # squares of very large or small features would not be finite, or zero
        distances = pdist(X / size)
        if distances.any():
            length = size * float(np.median(distances[distances > 0.0]))
    numbers = np.finfo(np.float64)
    if not RANGE * numbers.tiny < length < numbers.max / RANGE:
        raise ValueError(
            f"Rows of X have a median distance of {length:.2g}, too close to the limits of "
            "floating point numbers. Rescale the columns of X, for example with "
            "sklearn.preprocessing.StandardScaler."
        )
    rows_differ = ConstantKernel(VARIANCE, "fixed") * RBF(length, (length / RANGE, length * RANGE))
    return rows_differ + ConstantKernel(BIAS, "fixed")


def search(kernel: Any, data: Data, stages: Stages) -> Any:
    """Return the kernel with the largest marginal likelihood on the way up."""
    seen: list[tuple[float, Any]] = []

    def loss(theta: Vector) -> tuple[float, Vector]:
        found, gradient = likelihood_and_gradient(kernel.clone_with_theta(theta), data)
        value = found.approximation.log_evidence
        seen.append((value, found.active.kernel))
        stage = f"log marginal likelihood {value:.6g}"
        stages.report(stage, found.approximation.n_iter, len(data.X))
        return -value, -gradient

    def stop(_: Vector) -> None:
        if stages.stopped:
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
    """Return the posterior, and the gradient of the marginal likelihood for the active rows.

    The gradient is over the logarithms of the kernel's parameters.
    """
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
