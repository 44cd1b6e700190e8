"""Moments of a likelihood times a Gaussian, against numerical integration."""

import numpy as np
import pytest

from neverworse.methods._null_category_inference import NullCategoryNoise
from tests.methods.null_category.problems import integrated


@pytest.mark.parametrize("sign", [1, -1, 0])
@pytest.mark.parametrize("width", [0.0, 1.0, 6.0])
@pytest.mark.parametrize("variance", [1e-3, 1.0, 400.0])
@pytest.mark.parametrize("mean", [0.0, 0.4, -3.0, 12.0, -200.0])
@pytest.mark.parametrize("rates", [None, np.array([0.9, 0.2])])
def test_moments(sign, width, variance, mean, rates):
    noise = NullCategoryNoise(width, rates)
    found, first, second = noise.evidence(np.array([sign]), np.array([mean]), np.array([variance]))
    log_z, tilted_mean, tilted_variance = integrated(sign, width, mean, variance, rates)
    assert found[0] == pytest.approx(log_z, rel=1e-10, abs=1e-10)
    moved = mean + variance * first[0]
    assert abs(moved - tilted_mean) <= 1e-10 * (abs(tilted_mean) + np.sqrt(variance))
    left = variance + variance**2 * second[0]
    assert left == pytest.approx(tilted_variance, rel=1e-9, abs=1e-10)


def test_moments_far_out_keep_their_digits():
    """At a distance x from a class, the latent value is pulled there, as asymptotics say."""
    noise = NullCategoryNoise(0.0)
    for x in (1e2, 1e4, 1e8):
        log_z, first, second = noise.evidence(np.array([1]), np.array([-x]), np.array([0.0]))
        assert first[0] == pytest.approx(x + 1 / x - 2 / x**3, rel=1e-10)
        assert second[0] == pytest.approx(-1 + 1 / x**2, rel=1e-7)
        assert np.isfinite(log_z[0])


def test_extreme_latent_values_are_no_problem():
    mean = np.array([-1e150, -1e10, -50.0, 50.0, 1e10, 1e150])
    noise = NullCategoryNoise(1.0)
    for sign in (-1, 0, 1):
        _, first, second = noise.evidence(np.full(6, sign), mean, np.ones(6))
        assert np.isfinite(first).all()
        assert np.isfinite(second).all()
    np.testing.assert_array_equal(np.sign(noise.log_odds(mean, np.ones(6))), np.sign(mean))


def test_categories_sum_to_one():
    """What an unlabeled row cannot be is the null category."""
    f = np.linspace(-5, 5, 21)
    noise, nothing = NullCategoryNoise(2.0), np.zeros(21)
    either, plus, minus = (
        np.exp(noise.evidence(np.full(21, sign), f, nothing)[0]) for sign in (0, 1, -1)
    )
    np.testing.assert_allclose(either, plus + minus, rtol=1e-13)
    assert either[10] == either.min()
    shared = np.exp(NullCategoryNoise(0.0).evidence(nothing, f, nothing)[0])
    np.testing.assert_allclose(shared, 1.0, rtol=1e-13)
