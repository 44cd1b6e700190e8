"""E-processes are what they are said to be: by enumeration of all orders, in rationals."""

from fractions import Fraction
from functools import cache
from itertools import permutations
from math import comb, log, prod

import numpy as np
import pytest
from scipy import integrate, special

from neverworse.evidence.comparisons import BrierComparison, ErrorComparison

LOG_20 = log(20.0)


def without_replacement(m, unit=1.0):
    """A comparison of m rows on which two classifiers differ."""
    codes = np.zeros(m, int), np.ones(m, int)
    return ErrorComparison(*codes, 0.05, (), 2 if unit == 1.0 else 3, range(m))


def with_replacement(total, n):
    """A comparison after n draws of numbers with a sum."""
    probabilities = np.array([[1.0, 0.0]])
    process = BrierComparison(probabilities, probabilities[:, ::-1], 0.05, (), "seed")
    process._total, process.n_counted = total, n
    return process


def falling(n, k):
    return prod(n - i for i in range(k))


def evidence_above(m, null, k, t):
    """E by its closed form, in rationals: uniform over all sums that are larger; None: infinite."""
    top = Fraction(
        sum(falling(s, k) * falling(m - s, t - k) for s in range(null + 1, m + 1)), m - null
    )
    bottom = falling(null, k) * falling(m - null, t - k)
    if not top:
        return Fraction(0)
    return top / bottom if bottom else None


def sequences_of(m, total, t):
    """All counts of ones among t of m numbers with a sum, with their probabilities."""
    return {
        k: Fraction(comb(total, k) * comb(m - total, t - k), comb(m, t))
        for k in range(max(0, t - (m - total)), min(total, t) + 1)
    }


@cache
def observed(m, unit, numbers):
    process = without_replacement(m, unit)
    for x in numbers:
        process._observe(x)
    return process


@pytest.mark.parametrize("m", range(1, 13))
def test_evidence_equals_its_closed_form_for_all_sequences(m):
    null = -(-m // 2) - 1
    for t in range(1, m + 1):
        for k in range(t + 1):
            expected = evidence_above(m, null, k, t)
            ones, zeros = (1,) * k, (0,) * (t - k)
            for numbers in (ones + zeros, zeros + ones):
                found = np.exp(observed(m, 1.0, numbers)._log_e(null, above=True))
                assert found == pytest.approx(np.inf if expected is None else float(expected))


@pytest.mark.parametrize("m", range(1, 13))
def test_evidence_is_expected_not_to_exceed_one_whenever_the_null_is_true(m):
    null = -(-m // 2) - 1
    for total in range(null + 1):
        for t in range(1, m + 1):
            chances = sequences_of(m, total, t)
            values = {k: evidence_above(m, null, k, t) for k in chances}
            assert None not in values.values()  # infinite evidence is impossible
            assert sum(p * values[k] for k, p in chances.items()) <= 1


@pytest.mark.parametrize("m", range(2, 13))
def test_evidence_is_a_supermartingale_step_by_step(m):
    null = -(-m // 2) - 1
    for total in range(null + 1):
        for t in range(m):
            for k in sequences_of(m, total, t):
                now = evidence_above(m, null, k, t)
                chance = Fraction(total - k, m - t)  # that the next number is 1
                ahead = sum(
                    p * evidence_above(m, null, k + x, t + 1)
                    for p, x in ((chance, 1), (1 - chance, 0))
                    if p
                )
                assert ahead <= now


def ever(m, total, wrong):
    """The probability that something is ever true, over all orders, by recursion in rationals."""

    def chance(k, t, numbers):
        if wrong(numbers):
            return Fraction(1)
        if t == m:
            return Fraction(0)
        p = Fraction(total - k, m - t)
        found = p * chance(k + 1, t + 1, (*numbers, 1)) if p else Fraction(0)
        if p < 1:
            found += (1 - p) * chance(k, t + 1, (*numbers, 0))
        return found

    return chance(0, 0, ())


@pytest.mark.parametrize("m", range(1, 13))
def test_evidence_against_every_sum_is_expected_not_to_exceed_one(m):
    """The interval holds the sums against which this evidence is small."""

    def likelihood(total, k, t):
        return Fraction(falling(total, k) * falling(m - total, t - k))

    def against(total, k, t):
        mean = sum(likelihood(s, k, t) for s in range(m + 1)) / (m + 1)
        return mean / likelihood(total, k, t)

    for t in range(1, m + 1):
        for total in range(m + 1):
            chances = sequences_of(m, total, t)
            assert sum(p * against(total, k, t) for k, p in chances.items()) <= 1
        for k in range(t + 1):
            process = observed(m, 1.0, (1,) * k + (0,) * (t - k))
            possible = range(k, m - (t - k) + 1)
            kept = [s for s in possible if against(s, k, t) < 20]
            # The running intersection may be narrower.
            assert kept[0] <= process._low <= process._high <= kept[-1]


@pytest.mark.parametrize("m", [4, 7, 9])
def test_interval_ever_misses_the_sum_with_at_most_its_probability(m):
    for total in range(m + 1):

        def misses(numbers):
            process = observed(m, 1.0, numbers)
            return not process._low <= total <= process._high  # noqa: B023

        assert ever(m, total, misses) <= Fraction(1, 20)


@pytest.mark.parametrize("m", [5, 8, 9])
def test_a_wrong_verdict_is_ever_reached_with_at_most_its_probability(m):
    null = -(-m // 2) - 1

    def above(numbers):
        return observed(m, 1.0, numbers)._log_e(null, above=True) >= LOG_20

    def below(numbers):
        return observed(m, 1.0, numbers)._log_e(null + 1, above=False) >= LOG_20

    for total in range(m + 1):
        assert ever(m, total, above if total <= null else below) <= Fraction(1, 20)


@pytest.mark.parametrize("population", [(1, 1, 0.5, 0, 0), (0.5, 0.5, 0, 0, 1, 0.5), (0.5,) * 4])
def test_numbers_of_one_half_keep_evidence_below_one_on_average(population):
    m, total = len(population), sum(population)
    orders = set(permutations(population))  # each as often as the others
    for t in range(1, m + 1):
        processes = [observed(m, 0.5, order[:t]) for order in orders]
        for null in np.arange(total, m, 0.5):  # the sum is not above any of these
            assert np.mean([np.exp(p._log_e(null, above=True)) for p in processes]) <= 1 + 1e-12
        for null in np.arange(0.5, total + 0.25, 0.5):
            assert np.mean([np.exp(p._log_e(null, above=False)) for p in processes]) <= 1 + 1e-12
    for process in processes:  # all numbers are known
        assert process._low == process._high == total


def test_mixture_is_the_integral_over_a_beta_prior():
    for total, n, mean in [(3, 5, 0.2), (0, 4, 0.7), (2.5, 6, 0.5)]:

        def weighed(p, total=total, n=n):
            return p ** (total - 0.5) * (1 - p) ** (n - total - 0.5) / special.beta(0.5, 0.5)

        top = integrate.quad(weighed, 0, 1, limit=200)[0]
        expected = top / (mean**total * (1 - mean) ** (n - total))
        assert np.exp(with_replacement(total, n)._log_e(mean)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.83])
def test_evidence_against_the_true_mean_is_one_on_average(mean):
    for n in (1, 4, 15):
        chances = [comb(n, k) * mean**k * (1 - mean) ** (n - k) for k in range(n + 1)]
        values = [np.exp(with_replacement(k, n)._log_e(mean)) for k in range(n + 1)]
        assert np.dot(chances, values) == pytest.approx(1.0)


def test_bounds_are_where_the_evidence_is_just_enough():
    process = with_replacement(14.5, 20)
    process._update()
    assert process._low < 14.5 / 20 < process._high
    for bound in (process._low, process._high):
        assert process._log_e(bound) == pytest.approx(LOG_20)
    for n in (3, 0):
        process = with_replacement(0, n)
        process._update()
        assert process._low == 0.0
        assert (process._high == 1.0) is (n == 0)


def test_interval_never_widens_and_ends_at_the_truth():
    rng = np.random.default_rng(0)
    numbers = rng.permutation([1] * 30 + [0] * 20)
    process = without_replacement(50)
    widths = []
    for x in numbers:
        process._observe(x)
        widths.append(process._high - process._low)
    assert (np.diff(widths) <= 0).all()
    assert process._low == process._high == 30


def test_large_populations_stay_finite():
    process = without_replacement(100_000)
    for x in [1, 1, 0] * 40:
        process._observe(x)
    assert 0 < process._log_e(49_999, above=True) < np.inf
    assert 45_000 < process._low < 66_666 < process._high < 85_000
