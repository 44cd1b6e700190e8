"""Samples of rows that depend on nothing but the numbers of the rows."""

from itertools import pairwise

import numpy as np
import pytest

from neverworse.projection.solver import sampling
from neverworse.projection.solver.sampling import draw, is_chosen, sample_sizes

N = 100_000
ROWS = np.arange(N)
SHARES = [1e-3, 0.01, 0.1, 0.5, 0.9, 0.999]


@pytest.mark.parametrize("seed", [0, 1, 7, 2**31 + 5])
@pytest.mark.parametrize("share", SHARES)
def test_share(share, seed):
    n_chosen = np.count_nonzero(is_chosen(ROWS, share, seed))
    assert abs(n_chosen - share * N) < 6.0 * np.sqrt(N * share * (1.0 - share))


def test_nothing_and_everything():
    assert not is_chosen(ROWS, 0.0, 3).any()
    assert is_chosen(ROWS, 1.0, 3).all()
    assert is_chosen(ROWS[:0], 0.5, 3).shape == (0,)


def test_larger_samples_contain_smaller_ones():
    chosen = [is_chosen(ROWS, share, 5) for share in [*SHARES, 1.0]]
    for few, many in pairwise(chosen):
        assert (few <= many).all()
        assert few.sum() < many.sum()


def test_chunks_choose_by_themselves():
    edges = [0, 1, 17, 60_000, 60_000, N]
    parts = [is_chosen(np.arange(lo, hi), 0.3, 2) for lo, hi in pairwise(edges)]
    np.testing.assert_array_equal(np.concatenate(parts), is_chosen(ROWS, 0.3, 2))


def test_seeds_and_rows_are_independent():
    a, b = is_chosen(ROWS, 0.5, 1), is_chosen(ROWS, 0.5, 2)
    spread = 6.0 * np.sqrt(N * 0.25 * 0.75)
    assert abs(np.count_nonzero(a & b) - N / 4) < spread
    for step in (1, 2, 3, 8, 1000):  # no pattern along the rows
        assert abs(np.count_nonzero(a[step:] & a[:-step]) - N / 4) < spread


@pytest.fixture
def weights():
    return np.random.default_rng(0).integers(0, 3, N).astype(np.float64)


@pytest.mark.parametrize("size", [1, 2, 50, 2000, 60_000])
def test_draw(size, weights):
    chosen = draw(weights, size)
    assert len(chosen) == size
    assert (np.diff(chosen) > 0).all()
    assert (weights[chosen] > 0.0).all()


def test_smaller_draws_are_part_of_larger_ones(weights):
    draws = [draw(weights, size) for size in (1, 30, 2000, 2001, 50_000)]
    for few, many in pairwise(draws):
        assert np.isin(few, many).all()


def test_draw_does_not_depend_on_how_rows_are_gone_through(weights, monkeypatch):
    expected = draw(weights, 777)
    monkeypatch.setattr(sampling, "CHUNK", 1000)
    np.testing.assert_array_equal(draw(weights, 777), expected)


def test_all_rows_are_drawn_if_there_are_no_more(weights):
    every = np.flatnonzero(weights)
    for size in (len(every), len(every) + 1, 10 * N):
        np.testing.assert_array_equal(draw(weights, size), every)


def test_rows_are_drawn_evenly():
    times = np.zeros(100)
    for seed in range(1000):
        times[draw(np.ones(100), 10, seed)] += 1
    assert np.abs(times - 100.0).max() < 5.0 * np.sqrt(90.0)


@pytest.mark.parametrize(
    ("n_classes", "rank", "n_unlabeled", "sizes"),
    [
        (1, 10, 4000, []),
        (1, 10, 4001, [2000]),
        (1, 10, 90_000, [2000]),  # the second one would be about as large
        (1, 100, 200_000, [4000, 10_000]),
        (1, 100, 10_000_000, [4000, 20_000]),
        (3, 10, 6000, []),
        (3, 10, 6001, [2000]),
        (3, 100, 36_000, []),
        (3, 100, 10_000_000, [12_000, 60_000]),
    ],
)
def test_sizes(n_classes, rank, n_unlabeled, sizes):
    assert sample_sizes(n_classes, rank, n_unlabeled) == sizes
