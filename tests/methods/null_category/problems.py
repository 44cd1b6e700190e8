"""Rows, and likelihoods by quadrature, for the null category noise model."""

import numpy as np
from scipy import special
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from neverworse.methods import NullCategoryNoiseModel

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def make(n=60, n_labeled=12, seed=0):
    """Labeled rows first, of both classes in turn."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + [3, 0] * truth[:, None]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def fixed(variance=10.0, length=1.5, **options):
    """A model with a given kernel."""
    kernel = ConstantKernel(variance) * RBF(length)
    return NullCategoryNoiseModel(kernel, optimize=False, **options)


def log_likelihood(f, sign, width, rates=None):
    plus, minus = special.log_ndtr(f - width / 2), special.log_ndtr(-f - width / 2)
    if rates is not None and sign == 0:
        plus, minus = plus + np.log(rates[1]), minus + np.log(rates[0])
    elif rates is not None:
        plus, minus = plus + np.log1p(-rates[1]), minus + np.log1p(-rates[0])
    return {1: plus, -1: minus, 0: np.logaddexp(plus, minus)}[sign]


def integrated(sign, width, mean, variance, rates=None):
    """Return log Z, mean and variance by quadrature, wherever the product is not negligible."""

    def log_product(f):
        density = -0.5 * (f - mean) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
        return log_likelihood(f, sign, width, rates) + density

    reach = 12 * np.sqrt(variance) + abs(mean) + width
    grid = np.linspace(mean - reach, mean + reach, 50_001)
    values = log_product(grid)
    top, centre = values.max(), grid[values.argmax()]
    inside = np.flatnonzero(values > top - 60)
    edges = np.linspace(grid[max(inside[0] - 1, 0)], grid[min(inside[-1] + 1, 50_000)], 101)
    half = np.diff(edges)[:, None] / 2
    f = edges[:-1, None] + half * (1 + NODES)
    mass = half * WEIGHTS * np.exp(log_product(f) - top)
    z = mass.sum()
    first = (mass * (f - centre)).sum() / z
    second = (mass * (f - centre - first) ** 2).sum() / z
    return np.log(z) + top, centre + first, second


def exact_posterior(K, signs, width):
    """Return the log marginal likelihood and the posterior mean of three rows by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(50)
    g = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij")).reshape(3, -1)
    mass = np.einsum("i,j,k->ijk", weights, weights, weights).ravel() / weights.sum() ** 3
    f = np.linalg.cholesky(K) @ g
    logs = [log_likelihood(values, sign, width) for values, sign in zip(f, signs, strict=True)]
    mass = mass * np.exp(sum(logs))
    return np.log(mass.sum()), (f * mass).sum(axis=1) / mass.sum()


def sampled_posterior(K, signs, width, n_samples=12_000):
    """Return latent values from the posterior, by elliptical slice sampling."""
    rng = np.random.default_rng(0)
    prior = rng.normal(size=(n_samples, len(K))) @ np.linalg.cholesky(K + 1e-9 * np.eye(len(K))).T
    known = signs != 0

    def log_posterior(f):
        unknown = f[~known]
        either = special.ndtr(unknown - width / 2) + special.ndtr(-unknown - width / 2)
        return special.log_ndtr(signs[known] * f[known] - width / 2).sum() + np.log(either).sum()

    f = np.zeros(len(K))
    samples, height = [], log_posterior(f)
    for other in prior:
        level, angle = height + np.log(rng.uniform()), rng.uniform(0, 2 * np.pi)
        low, high = angle - 2 * np.pi, angle
        new = f * np.cos(angle) + other * np.sin(angle)
        while (height := log_posterior(new)) < level:
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = rng.uniform(low, high)
            new = f * np.cos(angle) + other * np.sin(angle)
        f = new
        samples.append(f)
    return np.array(samples[n_samples // 10 :])
