"""The kernel of a null category noise model: a default, and the search for its parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy import optimize
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from neverworse._typing import Matrix, Vector
from neverworse.methods._stages import Stages
from neverworse.methods.null_category._active import ActiveRows, sample_rows
from neverworse.methods.null_category._process import Data, Process

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
# When the search has come to an end: gradient, and relative change of the value.
SMALL_GRADIENT, SMALL_CHANGE = 1e-2, 1e-6


def fit_process(
    kernel: Any, data: Data, optimize_kernel: bool, rng: RandomState, stages: Stages
) -> Process:
    """Choose parameters of the kernel and active rows, and find the posterior of all rows.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel or None
        None: `default_kernel`.
    data : Data
    optimize_kernel : bool
    rng : RandomState
        For the sample of rows from which the choices are made.
    stages : Stages
    """
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
    """Return the kernel with the largest marginal likelihood on the way up.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Where the search starts.
    data : Data
    stages : Stages
        Told about every step.
    """
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
