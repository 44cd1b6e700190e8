"""Tests of significance, against their definitions."""

import numpy as np
import pytest
from scipy import stats

from neverworse.experiments._analysis import reject, signed_rank


def test_smallest_p_value_of_twenty_repeats():
    """All differences of one sign: R's wilcox.test(exact=FALSE) gives 4.75e-5 for distinct ones."""
    p = signed_rank(-np.linspace(0.01, 0.02, 20), "less")
    statistic, mean, variance = 0.0, 20 * 21 / 4, 20 * 21 * 41 / 24
    assert p == pytest.approx(stats.norm.cdf((statistic - mean + 0.5) / np.sqrt(variance)))
    assert p == pytest.approx(4.75e-5, rel=0.01)
    assert signed_rank(-np.linspace(0.01, 0.02, 20), "greater") > 0.999


def test_zeros_are_dropped():
    differences = np.array([0.3, -0.1, 0.2, 0.5, 0.4])
    with_zeros = np.r_[differences, 0.0, 0.0]
    assert signed_rank(with_zeros, "greater") == signed_rank(differences, "greater")
    assert signed_rank(np.zeros(20), "less") == 1.0


def test_bonferroni():
    p = [0.05 / 64, 0.0009, 1e-5]
    assert reject(p, "bonferroni", 64).tolist() == [True, False, True]


def test_holm_against_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.random(6) ** 6
        rejected, order = set(), np.argsort(p)
        for rank, k in enumerate(order):
            if p[k] > 0.05 / (6 - rank):
                break
            rejected.add(k)
        assert set(np.flatnonzero(reject(p, "holm", 6))) == rejected
        assert np.all(reject(p, "holm", 6) >= reject(p, "bonferroni", 6))
