"""The confident step is what it is said to be: safe, unbiased, and the best of what is allowed."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from neverworse.evidence.confident_step import (
    Direction,
    Evidence,
    best_direction,
    best_weights,
    joint_direction,
)


def corner(k, n):
    """All points of a grid in a ≥ 0, Σa ≤ 1."""
    return [np.array(p) / n for p in product(range(n + 1), repeat=k) if sum(p) <= n]


def evidence_of(values, gram, n_unlabeled=200):
    names = [f"candidate {k}" for k in range(values.shape[1])]
    return Evidence(names, values, np.zeros_like(values), gram, n_unlabeled)


def some(k, seed, signal=0.05, n=80):
    """Numbers of rows, and mean products of candidates."""
    rng = np.random.default_rng(seed)
    t = rng.normal(size=(50, k)) @ rng.normal(size=(k, k)) * 0.3
    return evidence_of(signal + 0.15 * rng.normal(size=(n, k)), t.T @ t / 50)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_weights_are_the_best_of_all_blends(k, seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(k, k))
    gram, b = root @ root.T, rng.normal(size=k)
    found = best_weights(gram, b)
    assert (found >= 0).all()
    assert found.sum() <= 1 + 1e-12
    values = [a @ gram @ a - 2 * b @ a for a in [found, *corner(k, 30)]]
    assert values[0] <= min(values) + 1e-6


@pytest.mark.parametrize(("b", "low"), [(0.05, 0.001), (0.05, 0.03), (0.05, 0.049), (0.4, 0.3)])
def test_the_step_has_the_largest_proved_improvement(b, low):
    direction = Direction(np.array([0.3, 0.7]), 0.1, b, low)
    grid = np.linspace(0.0, 1.0, 5001)
    worst = grid**2 * 0.1 - 2 * grid * low
    assert direction.step == pytest.approx(grid[np.argmin(worst)], abs=3e-4)
    assert direction.change(low) == pytest.approx(worst.min(), abs=1e-8)
    assert direction.change(b) < direction.change(low) < 0.0


def test_without_a_positive_bound_there_is_no_step():
    for low in (0.0, -0.01):
        direction = Direction(np.ones(1), 0.1, 0.05, low)
        assert direction.step == direction.change(0.05) == 0.0


@pytest.mark.parametrize("seed", range(6))
def test_best_is_the_best_of_all_single_ones(seed):
    evidence = some(4, seed)
    mean = evidence.products.mean(axis=0)
    bounds = mean - stats.t.ppf(1 - 0.05 / 4, 79) * np.sqrt(
        evidence.products.var(axis=0, ddof=1) * (1 / 80 + 1 / 200)
    )
    np.testing.assert_allclose(evidence.lower_bounds, bounds, rtol=1e-9)
    found = best_direction(evidence)
    singles = [Direction(np.ones(1), evidence.gram[k, k], mean[k], bounds[k]) for k in range(4)]
    assert found.change(found.low) == pytest.approx(min(one.change(one.low) for one in singles))


def test_the_estimate_of_a_blend_has_no_bias_however_its_weights_are_chosen():
    """Expectation over all samples of four rows, by enumeration."""
    values = np.array([[0.3, -0.2], [-0.1, 0.4], [-0.25, -0.1]])
    gram, b = np.array([[0.2, 0.05], [0.05, 0.1]]), values.mean(axis=0)
    errors = [
        (found := joint_direction(evidence_of(values[list(rows)], gram))).b - found.weights @ b
        for rows in product(range(3), repeat=4)
    ]
    assert np.mean(errors) == pytest.approx(0.0, abs=1e-15)
    assert np.ptp(errors) > 0.01


def test_a_blend_of_candidates_that_say_nothing_is_rarely_moved_to():
    rng = np.random.default_rng(0)
    moved = 0
    for _ in range(150):
        t = 0.1 * rng.normal(size=(460, 4)) * rng.uniform(size=(460, 1))
        error = (rng.random(460) < 0.3) - 0.3
        evidence = evidence_of(t[:60] * error[:60, None], t[60:].T @ t[60:] / 400, 400)
        moved += joint_direction(evidence).step > 0.0
    assert moved <= 13  # of 150; more than 5 % are expected to reach that once in 30 cases


def test_a_blend_beats_each_of_two_halves():
    """Two candidates that are right on half of the rows each are better together."""
    rng = np.random.default_rng(0)
    first = rng.random(2000) < 0.5
    t = 0.3 * np.column_stack([first, ~first])
    d = t * (0.12 + 0.05 * rng.normal(size=(2000, 1)))
    evidence = evidence_of(d[:200], t.T @ t / 2000, 1800)
    both, one = joint_direction(evidence), best_direction(evidence)
    np.testing.assert_allclose(both.weights, [0.5, 0.5], atol=0.1)
    assert both.change(both.low) < one.change(one.low) < 0.0


@pytest.mark.parametrize("combine", ["best", "joint"])
def test_candidates_that_equal_the_baseline_have_no_step(combine):
    zeros = np.zeros((20, 2))
    gram = np.zeros((2, 2))
    found = Evidence(["a", "b"], zeros, zeros, gram, 50, combine=combine, control_variate=True)
    assert found.steps.tolist() == [0.0, 0.0]


def test_copies_of_a_candidate_change_nothing_for_a_blend():
    single = some(1, 0, signal=0.1)
    copies = evidence_of(np.repeat(single.products, 3, axis=1), np.full((3, 3), single.gram[0, 0]))
    one, many = (joint_direction(evidence) for evidence in (single, copies))
    assert (many.step, many.low) == pytest.approx((one.step, one.low))
    assert one.step > 0.0


def test_a_blend_of_one_candidate_is_that_candidate():
    evidence = some(1, 0, signal=0.1)
    both, one = joint_direction(evidence), best_direction(evidence)
    assert (both.b, both.low, both.step) == pytest.approx((one.b, one.low, one.step))


@pytest.mark.parametrize("find", [best_direction, joint_direction])
def test_weights_of_rows_count_as_in_a_ratio_of_means(find):
    """Doubling all weights changes nothing; a row of weight two counts as two such rows."""
    rng = np.random.default_rng(0)
    d, s = rng.normal(size=(50, 1)), rng.integers(1, 4, 50).astype(float)
    gram = np.eye(1)
    ones = [find(Evidence(["a"], d, d**2, gram, 0, w)) for w in (s, 2 * s)]
    assert ones[0].b == pytest.approx(np.average(d[:, 0], weights=s))
    assert (ones[0].b, ones[0].low) == pytest.approx((ones[1].b, ones[1].low))
    draws = [
        np.average(d[rows, 0], weights=s[rows]) for rows in rng.integers(0, 50, size=(4000, 50))
    ]
    quantile = stats.t.ppf(0.95, 49)
    assert (ones[0].b - ones[0].low) / quantile == pytest.approx(np.std(draws), rel=0.1)


def test_control_variates_are_unbiased_and_tighter():
    """Means of unlabeled rows are hit with the promised error, which is smaller."""
    rng = np.random.default_rng(0)
    errors, sizes = [], []
    for _ in range(400):
        squares = rng.normal(size=(230, 1)) ** 2
        d = 0.7 * squares + 0.5 * rng.normal(size=(230, 1)) + 0.1
        gram = squares[30:].mean(axis=0)[:, None]
        found = [
            Evidence(["a"], d[:30], squares[:30], gram, 200, control_variate=control)
            for control in (False, True)
        ]
        errors.append([(each.estimates[0] - d[30:].mean()) ** 2 for each in found])
        sizes.append([((each.estimates - each.lower_bounds) ** 2)[0] for each in found])
    quantiles = stats.t.ppf(0.95, [29, 28])
    errors, sizes = np.mean(errors, axis=0), np.mean(sizes, axis=0) / quantiles**2
    np.testing.assert_allclose(errors, sizes, rtol=0.25)
    assert errors[1] < 0.6 * errors[0]
