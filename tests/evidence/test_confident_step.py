"""The confident step is what it is said to be: a minimax step, and a projection."""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, special, stats

from neverworse.evidence.confident_step import (
    OutOfFold,
    best_step,
    joint_step,
    lower_bounds,
    worst_case,
)


def problem(k, seed, signal=1.0):
    """Estimates with a covariance, and the products of candidates."""
    rng = np.random.default_rng(seed)
    t = rng.normal(size=(50, k)) @ rng.normal(size=(k, k)) * 0.3
    gram = t.T @ t / 50
    d = rng.normal(size=(80, k)) * 0.15
    return signal * rng.uniform(-0.1, 0.4, k) * np.diag(gram), d.T @ d / 80**2, gram


def corner(k, n):
    """All points of a grid in a ≥ 0, Σa ≤ 1."""
    return [np.array(p) / n for p in product(range(n + 1), repeat=k) if sum(p) <= n]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_joint_steps_have_the_smallest_worst_case(k, seed):
    b, v, gram = problem(k, seed, signal=3.0)
    kappa = np.sqrt(stats.chi2.ppf(0.95, k))
    steps = joint_step(b, v, gram, 0.05)
    assert (steps >= 0).all()
    assert steps.sum() <= 1 + 1e-12
    found = worst_case(steps, b, v, gram, kappa)
    grid = min(worst_case(a, b, v, gram, kappa) for a in corner(k, 30))
    assert found <= grid + 1e-7
    assert found <= 0.0


def test_joint_steps_are_zero_exactly_where_nothing_improves():
    for seed in range(20):
        b, v, gram = problem(3, seed, signal=0.3)
        steps = joint_step(b, v, gram, 0.05)
        kappa = np.sqrt(stats.chi2.ppf(0.95, 3))
        grid = min(worst_case(a / 100, b, v, gram, kappa) for a in corner(3, 20))
        assert steps.any() or grid > -1e-9


@pytest.mark.parametrize("seed", range(5))
def test_joint_steps_inside_their_bounds_are_the_projection_onto_the_ellipsoid(seed):
    """The nearest point to zero, in the norm of G, of the image of the confidence ellipsoid."""
    k = 2
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(k, k))
    gram = root @ root.T + 2 * np.eye(k)
    b, v = gram @ rng.uniform(0.2, 0.4, k), 1e-3 * np.eye(k)
    steps = joint_step(b, v, gram, 0.05)
    assert (steps > 0).all()
    assert steps.sum() < 1
    radius = np.sqrt(special.chdtri(k, 0.05))
    inverse = np.linalg.inv(gram)

    def norm(angle):
        inside = b + radius * np.sqrt(1e-3) * np.array([np.cos(angle), np.sin(angle)])
        return inside @ inverse @ inside

    angles = np.linspace(0, 2 * np.pi, 2001)
    start = angles[np.argmin([norm(a) for a in angles])]
    angle = optimize.minimize_scalar(norm, bracket=(start - 1e-2, start + 1e-2), tol=1e-12).x
    nearest = inverse @ (b + radius * np.sqrt(1e-3) * np.array([np.cos(angle), np.sin(angle)]))
    np.testing.assert_allclose(steps, nearest, rtol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_best_step_is_the_best_of_all_single_ones(seed):
    b, v, gram = problem(4, seed, signal=3.0)
    quantile = stats.t.ppf(1 - 0.05 / 4, 30)
    steps = best_step(b, v, gram, 30, 0.05)
    assert np.count_nonzero(steps) <= 1
    found = worst_case(steps, b, v, gram, quantile)
    grid = [a * np.eye(4)[i] for i in range(4) for a in np.linspace(0, 1, 501)]
    assert found <= min(worst_case(a, b, v, gram, quantile) for a in grid) + 1e-12
    np.testing.assert_allclose(
        lower_bounds(b, v, 30, 0.05), b - quantile * np.sqrt(np.diag(v)), rtol=1e-9
    )


def test_candidates_that_equal_the_baseline_have_no_step():
    for step in (
        best_step(np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), 9, 0.05),
        joint_step(np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), 0.05),
    ):
        assert step.tolist() == [0.0, 0.0]


def test_copies_of_a_candidate_change_little():
    b, v, gram = np.array([0.05]), np.array([[1e-4]]), np.array([[0.1]])
    ones = np.ones((3, 3))
    steps = joint_step(np.repeat(b, 3), v[0, 0] * ones, gram[0, 0] * ones, 0.05)
    assert steps.sum() <= joint_step(b, v, gram, 0.05)[0] + 1e-9
    assert steps.sum() > 0


def test_estimates_are_means_with_the_error_of_both_samples():
    rng = np.random.default_rng(0)
    d = rng.normal(size=(40, 2))
    b, v, df = OutOfFold(["a", "b"], d, np.eye(2), 160).estimate()
    np.testing.assert_allclose(b, d.mean(axis=0))
    np.testing.assert_allclose(v, np.cov(d.T) * (1 / 40 + 1 / 160))
    assert df == 39


def test_weights_are_those_of_a_ratio_of_means():
    """Doubling all weights changes nothing; the variance is that of the linearised ratio."""
    rng = np.random.default_rng(0)
    d, s = rng.normal(size=(50, 1)), rng.uniform(0.5, 2, 50)
    found = [OutOfFold(["a"], d, np.eye(1), 0, w).estimate() for w in (s, 2 * s)]
    np.testing.assert_allclose(found[0][0], np.average(d[:, 0], weights=s))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other)
    draws = [
        np.average(d[rows, 0], weights=s[rows]) for rows in rng.integers(0, 50, size=(4000, 50))
    ]
    np.testing.assert_allclose(np.sqrt(found[0][1][0, 0]), np.std(draws), rtol=0.1)


def test_control_variates_are_unbiased_and_tighter():
    """Means of unlabeled rows are hit with the promised error, which is smaller."""
    rng = np.random.default_rng(0)
    errors, sizes = [], []
    for _ in range(400):
        control = rng.normal(size=(230, 1))
        d = 0.7 * control + 0.5 * rng.normal(size=(230, 1)) + 0.1
        plain = OutOfFold(["a"], d[:30], np.eye(1), 200).estimate()
        mean = control[30:].mean(axis=0)
        better = OutOfFold(["a"], d[:30], np.eye(1), 200, None, control[:30], mean).estimate()
        truth = d[30:].mean()
        errors.append([(plain[0][0] - truth) ** 2, (better[0][0] - truth) ** 2])
        sizes.append([plain[1][0, 0], better[1][0, 0]])
    errors, sizes = np.mean(errors, axis=0), np.mean(sizes, axis=0)
    np.testing.assert_allclose(errors, sizes, rtol=0.2)
    assert errors[1] < 0.6 * errors[0]
