"""Confidence intervals for the sizes of classes: every probability as a fraction."""

from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from neverworse.estimators import _class_prior
from neverworse.estimators._class_prior import count_interval, count_intervals

LEVELS = (0.01, 0.5, 0.9371, 0.95, 0.999)


@cache
def _probabilities(n_rows, n_labeled, total):
    """P(X = x) for x = 0 ... n_labeled, if `total` of all rows are positive."""
    ways = [comb(total, x) * comb(n_rows - total, n_labeled - x) for x in range(n_labeled + 1)]
    return [Fraction(way, comb(n_rows, n_labeled)) for way in ways]


def _brute_force(n_rows, n_labeled, x, level):
    """Both tests, for every total there is."""
    bound = (1 - Fraction(level)) / 2
    kept = []
    for total in range(x, n_rows - n_labeled + x + 1):
        p = _probabilities(n_rows, n_labeled, total)
        if sum(p[: x + 1]) > bound and sum(p[x:]) > bound:
            kept.append(total - x)
    assert kept == list(range(kept[0], kept[-1] + 1))
    return kept[0], kept[-1]


def _small_tables(largest):
    for n_rows in range(1, largest + 1):
        for n_labeled in range(n_rows + 1):
            for x in range(n_labeled + 1):
                yield n_rows, n_labeled, x


@pytest.mark.parametrize("level", [0.01, 0.5371, 0.9371, 0.9973])
def test_equals_brute_force(level):
    for table in _small_tables(16):
        assert count_interval(*table, level) == _brute_force(*table, level)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_ties_are_kept(level):
    """Probabilities such as 1/20 are the bound itself: rounding must not narrow the interval."""
    for table in _small_tables(14):
        lower, upper = count_interval(*table, level)
        exact = _brute_force(*table, level)
        wider = _brute_force(*table, level + 1e-8)
        assert wider[0] <= lower <= exact[0] <= exact[1] <= upper <= wider[1]


@given(st.integers(1, 60), st.data())
@settings(deadline=None, max_examples=50)
def test_equals_brute_force_for_random_tables(n_rows, data):
    n_labeled = data.draw(st.integers(0, n_rows))
    x = data.draw(st.integers(0, n_labeled))
    level = data.draw(st.floats(0.001, 0.9999))
    lower, upper = count_interval(n_rows, n_labeled, x, level)
    exact, wider = (_brute_force(n_rows, n_labeled, x, v) for v in (level, level + 1e-6))
    assert wider[0] <= lower <= exact[0] <= exact[1] <= upper <= wider[1]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_rows", [1, 2, 7, 20])
def test_exact_coverage_whatever_the_truth(level, n_rows):
    for n_labeled in range(n_rows + 1):
        intervals = [count_interval(n_rows, n_labeled, x, level) for x in range(n_labeled + 1)]
        for total in range(n_rows + 1):
            p = _probabilities(n_rows, n_labeled, total)
            covered = sum(
                p[x] for x, (low, high) in enumerate(intervals) if low <= total - x <= high
            )
            assert covered >= Fraction(level)


def _compositions(total, parts):
    if parts == 1:
        return [(total,)]
    return [(k, *rest) for k in range(total + 1) for rest in _compositions(total - k, parts - 1)]


@pytest.mark.parametrize("level", [0.01, 0.6, 0.95])
@pytest.mark.parametrize(("n_rows", "n_classes"), [(9, 2), (9, 3), (6, 4)])
def test_exact_simultaneous_coverage_whatever_the_truth(level, n_rows, n_classes):
    for n_labeled in range(n_rows + 1):
        intervals = {
            counts: count_intervals(n_rows, n_labeled, counts, level)
            for counts in _compositions(n_labeled, n_classes)
        }
        for truth in _compositions(n_rows, n_classes):
            covered = Fraction(0)
            for counts, found in intervals.items():
                unlabeled = np.subtract(truth, counts)
                if (found[:, 0] <= unlabeled).all() and (unlabeled <= found[:, 1]).all():
                    ways = np.prod([comb(t, c) for t, c in zip(truth, counts, strict=True)])
                    covered += Fraction(int(ways), comb(n_rows, n_labeled))
            assert covered >= Fraction(level)


@pytest.mark.parametrize("level", [0.001, 0.5, 0.95])
@pytest.mark.parametrize(("n_rows", "n_classes"), [(12, 2), (10, 3), (8, 4), (7, 5)])
def test_sizes_that_add_up_are_left(level, n_rows, n_classes, monkeypatch):
    monkeypatch.setattr(_class_prior, "count_interval", cache(count_interval))
    for n_labeled in range(n_rows + 1):
        for counts in _compositions(n_labeled, n_classes):
            lower, upper = count_intervals(n_rows, n_labeled, counts, level).T
            assert (lower >= 0).all()
            assert (lower <= upper).all()
            assert lower.sum() <= n_rows - n_labeled <= upper.sum()
            for k in range(n_classes):  # nothing is left to tighten: both ends can be reached
                assert upper[k] + lower.sum() - lower[k] <= n_rows - n_labeled
                assert lower[k] + upper.sum() - upper[k] >= n_rows - n_labeled


def test_sizes_that_must_add_up_tell_more():
    """One row is left, and by the other intervals it is of no other class."""
    alone = [count_interval(30, 29, x, 1 - 0.5 / 3) for x in (27, 1, 1)]
    assert alone == [(0, 1), (0, 0), (0, 0)]
    assert count_intervals(30, 29, [27, 1, 1], 0.5).tolist() == [[1, 1], [0, 0], [0, 0]]


def _n_misses(truth, n_labeled, n_draws, monkeypatch):
    monkeypatch.setattr(_class_prior, "count_interval", cache(count_interval))
    rng = np.random.default_rng(0)
    n_misses = 0
    for drawn in rng.multivariate_hypergeometric(truth, n_labeled, size=n_draws):
        lower, upper = count_intervals(sum(truth), n_labeled, drawn.tolist()).T
        unlabeled = truth - drawn
        n_misses += not np.all((lower <= unlabeled) & (unlabeled <= upper))
    return n_misses


@pytest.mark.parametrize(
    "truth", [(4960, 40), (4100, 900), (2500, 2500), (2500, 1500, 900, 100)], ids=str
)
def test_coverage_of_a_realistic_population(truth, monkeypatch):
    # No more than 5 %, but for what chance adds once in a thousand times.
    assert _n_misses(truth, 120, 2000, monkeypatch) <= binom.ppf(0.999, 2000, 0.05)


@pytest.mark.parametrize("table", [(50, 10, 3), (5000, 120, 7), (10**6, 500, 500), (300, 299, 5)])
def test_nested_in_level(table):
    intervals = [
        count_interval(*table, level) for level in (0.01, 0.3, 0.8, 0.95, 0.999, 1 - 1e-12)
    ]
    for (low, high), (lower, higher) in pairwise(intervals):
        assert lower <= low <= high <= higher


@pytest.mark.parametrize("table", [(50, 10, 3), (5000, 120, 7), (10**7, 5000, 10), (40, 1, 1)])
@pytest.mark.parametrize("level", LEVELS)
def test_classes_can_be_swapped(table, level):
    n_rows, n_labeled, x = table
    lower, upper = count_interval(n_rows, n_labeled, x, level)
    unlabeled = n_rows - n_labeled
    swapped = count_interval(n_rows, n_labeled, n_labeled - x, level)
    assert swapped == (unlabeled - upper, unlabeled - lower)
    both = count_intervals(n_rows, n_labeled, [n_labeled - x, x], level)
    assert both.tolist() == [list(swapped), [lower, upper]]
    assert np.issubdtype(both.dtype, np.integer)


def test_four_classes_in_any_order():
    found = count_intervals(5000, 60, [30, 20, 10, 0])
    order = [2, 0, 3, 1]
    permuted = count_intervals(5000, 60, [[30, 20, 10, 0][k] for k in order])
    np.testing.assert_array_equal(permuted, found[order])


def test_shrinks_to_a_point_as_labels_become_complete():
    widths = []
    for n_labeled in (10, 100, 500, 900, 990, 1000):
        lower, upper = count_interval(1000, n_labeled, n_labeled * 3 // 10)
        widths.append(upper - lower)
    assert widths == sorted(widths, reverse=True)
    assert count_interval(1000, 1000, 300) == (0, 0)
    assert count_intervals(1000, 1000, [300, 200, 500]).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("n_labeled", [0, 1, 10, 100])
def test_nothing_seen_and_nothing_else_seen(n_labeled):
    unlabeled = 1000 - n_labeled
    lower, upper = count_interval(1000, n_labeled, 0)
    assert lower == 0
    assert count_interval(1000, n_labeled, n_labeled) == (unlabeled - upper, unlabeled)
    if n_labeled == 0:
        assert upper == unlabeled


def test_narrower_than_without_an_end_of_the_population():
    """Totals, as shares of the population, beside the interval of Clopper and Pearson."""
    for n_rows, (n_labeled, x) in product((300, 3000), ((50, 20), (150, 3), (290, 100))):
        lower, upper = count_interval(n_rows, n_labeled, x)
        infinite = binomtest(x, n_labeled).proportion_ci(0.95, "exact")
        # A total is a whole number: the share it stands for ends up to one row further.
        assert (lower + x + 1) / n_rows >= infinite.low
        assert (upper + x - 1) / n_rows <= infinite.high
        assert (upper - lower) / n_rows < infinite.high - infinite.low


def _precise(x, others, count, rest):
    """P(X <= x) of a table with these cells, with forty digits."""
    n_rows, n_labeled, total = x + others + count + rest, x + others, x + count
    with mpmath.workdps(40):
        term = mpmath.binomial(total, x) * mpmath.binomial(n_rows - total, others)
        term /= mpmath.binomial(n_rows, n_labeled)
        tail = mpmath.mpf(0)
        for k in range(x, -1, -1):
            tail += term
            if term < tail * mpmath.mpf(10) ** -25:
                break
            term *= mpmath.mpf(k) * (rest - x + k)
            term /= mpmath.mpf(total - k + 1) * (n_labeled - k + 1)
        return float(tail)


@pytest.mark.parametrize(
    ("n_labeled", "x"),
    [(100, 30), (10**6, 0), (10**6, 17), (5 * 10**6, 2 * 10**6), (9_999_000, 99)],
)
def test_ends_are_right_for_ten_million_rows(n_labeled, x):
    n_rows, bound = 10**7, 0.025
    unlabeled, others = n_rows - n_labeled, n_labeled - x
    lower, upper = count_interval(n_rows, n_labeled, x)
    assert _precise(x, others, upper, unlabeled - upper) > bound
    assert upper == unlabeled or _precise(x, others, upper + 1, unlabeled - upper - 1) <= bound
    assert _precise(others, x, unlabeled - lower, lower) > bound
    assert lower == 0 or _precise(others, x, unlabeled - lower + 1, lower - 1) <= bound
