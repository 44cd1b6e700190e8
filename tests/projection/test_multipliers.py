"""The multiplier of restricted totals attains the optimum of the linear program; none beats it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neverworse.projection import Box, Simplex, Totals
from neverworse.projection import totals as totals_module
from neverworse.projection.totals import best_multiplier
from tests.exact import share_program


def bound(t, weights, shape, totals, multiplier):
    """The upper bound of -Σ ω q·t that a multiplier gives."""
    shift = multiplier[:, None]
    return float(weights @ shape.support(t + shift)) + totals.support(multiplier)


def size_of(t, weights):
    """What a sum of ω q·t is made of: what its accuracy is measured against."""
    return float(weights @ np.abs(t).max(axis=0))


def largest(t, weights, shape, totals):
    """The largest -Σ ω q·t itself, by a linear program."""
    if len(t) == 1:  # a box is the simplex of two classes, of which the first has no score
        both = np.concatenate([np.zeros_like(t), t])
        low, high = np.append(0.0, totals.low), np.append(weights.sum(), totals.high)
        return -share_program(both, weights, np.zeros_like(both), np.ones_like(both), low, high)[0]
    upper = np.ones_like(t) if shape.caps is None else shape.caps
    program = t, weights, np.zeros_like(t), upper, totals.low, totals.high
    return -share_program(*program)[0]


def random_caps(rng, n_classes, n):
    caps = rng.uniform(0.2, 1.0, (n_classes, n))
    caps[rng.random(caps.shape) < 0.2] = 0.0
    caps[rng.random(caps.shape) < 0.3] = 1.0
    short = caps.sum(axis=0) < 1.0
    caps[:, short] = 1.0
    return caps


def random_totals(rng, t, weights, shape, room):
    """An interval around the totals of random labels, so that it can be met."""
    labels = sum(shape.minimizer(rng.normal(size=t.shape)) for _ in range(5)) / 5
    totals = labels @ weights
    spread = room * weights.sum() * rng.random((2, *totals.shape))
    return Totals(np.maximum(totals - spread[0], 0.0), totals + spread[1])


def make(kind, seed, n=25, n_classes=4):
    rng = np.random.default_rng(seed)
    weights = rng.choice([np.ones(n), rng.uniform(0.1, 3.0, n)])
    if kind == "box":
        t, shape = rng.normal(size=(1, n)), Box()
    else:
        t = rng.normal(size=(n_classes, n))
        shape = Simplex(random_caps(rng, n_classes, n) if kind == "capped" else None)
    return rng, t, weights, shape


KINDS = ["box", "simplex", "capped"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("room", [0.0, 1e-3, 0.05, 1.0])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_attains_the_optimum(kind, room, scale):
    for seed in range(8):
        rng, t, weights, shape = make(kind, seed)
        t = scale * t
        totals = random_totals(rng, t, weights, shape, room)
        multiplier = best_multiplier(t, weights, shape, totals)
        got = bound(t, weights, shape, totals, multiplier)
        expected = largest(t, weights, shape, totals)
        assert got == pytest.approx(expected, abs=1e-9 * size_of(t, weights))


@pytest.mark.parametrize("kind", KINDS[1:])  # labels of one number take no linear program
@pytest.mark.parametrize("room", [0.0, 0.01, 0.1])
def test_attains_the_optimum_of_many_rows(kind, room, monkeypatch):
    # So many that only the rows near their kink take part in a linear program.
    monkeypatch.setattr(totals_module, "FIRST_ROWS", 500)
    rng, t, weights, shape = make(kind, 1, n=1500, n_classes=3)
    totals = random_totals(rng, t, weights, shape, room)
    multiplier = best_multiplier(t, weights, shape, totals)
    got = bound(t, weights, shape, totals, multiplier)
    size = size_of(t, weights)
    assert got == pytest.approx(largest(t, weights, shape, totals), abs=1e-9 * size)


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        ("simplex", "ties"),
        ("simplex", "one class"),
        ("simplex", "rare class"),
        ("simplex", "heavy rows"),
        ("simplex", "just possible"),
        ("capped", "ties"),
        ("capped", "heavy rows"),
        ("capped", "just possible"),
    ],
)
def test_many_rows_of_an_unusual_kind(kind, case):
    rng, t, weights, shape = make(kind, 2, n=5000, n_classes=3)
    if case == "ties":
        t = np.round(t)
    elif case == "heavy rows":
        weights = weights * np.where(rng.random(5000) < 0.002, 1e4, 1.0)
    totals, whole = random_totals(rng, t, weights, shape, 0.01), weights.sum()
    if case == "one class":
        totals = Totals(np.array([0.0, 0.0, whole]), np.array([0.0, 0.0, whole]))
    elif case == "rare class":
        totals = Totals(np.zeros(3), np.array([1e-4 * whole, whole, whole]))
    elif case == "just possible":  # as much of the first class as caps allow, then of the second
        extreme = shape.minimizer(np.array([[0.0], [1.0], [2.0]]) + np.zeros_like(t)) @ weights
        totals = Totals(extreme, extreme)
    multiplier = best_multiplier(t, weights, shape, totals)
    got = bound(t, weights, shape, totals, multiplier)
    expected = largest(t, weights, shape, totals)
    assert got == pytest.approx(expected, abs=1e-8 * size_of(t, weights))


@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(KINDS))
@settings(max_examples=60, deadline=None)
def test_every_multiplier_is_an_upper_bound(seed, kind):
    rng, t, weights, shape = make(kind, seed, n=12, n_classes=3)
    totals = random_totals(rng, t, weights, shape, rng.choice([0.0, 0.1]))
    best = bound(t, weights, shape, totals, best_multiplier(t, weights, shape, totals))
    labels = sum(shape.minimizer(rng.normal(size=t.shape)) for _ in range(3)) / 3
    own = Totals(labels @ weights, labels @ weights)
    value = -float(np.sum(weights * labels * t))
    for size in (1e-3, 1.0, 100.0):
        other = size * rng.normal(size=len(t))
        assert bound(t, weights, shape, totals, other) >= best - 1e-9
        assert bound(t, weights, shape, own, other) >= value - 1e-9  # of labels that are allowed
    at_own = best_multiplier(t, weights, shape, own)
    assert bound(t, weights, shape, own, at_own) >= value - 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_no_multiplier_where_the_totals_restrict_nothing(kind):
    _, t, weights, shape = make(kind, 3)
    totals = Totals(np.zeros(len(t)), np.full(len(t), weights.sum()))
    np.testing.assert_array_equal(best_multiplier(t, weights, shape, totals), 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_weight_play_no_part(kind):
    rng, t, weights, shape = make(kind, 4)
    absent = rng.random(len(weights)) < 0.3
    weights = np.where(absent, 0.0, weights)
    totals = random_totals(rng, t, weights, shape, 0.0)
    here = best_multiplier(t[:, ~absent], weights[~absent], shape.at(~absent), totals)
    wild = np.where(absent, 1e6 * t, t)
    np.testing.assert_allclose(best_multiplier(wild, weights, shape, totals), here, atol=1e-12)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_all_or_nothing(share):
    t, weights = np.array([[-2.0, 1.0, 3.0]]), np.array([1.0, 2.0, 0.5])
    total = np.array([share * 3.5])
    totals = Totals(total, total)
    multiplier = best_multiplier(t, weights, Box(), totals)
    value = -share * float(t[0] @ weights)
    assert bound(t, weights, Box(), totals, multiplier) == pytest.approx(value, abs=1e-14)


def test_box_with_bounds_that_only_just_bind():
    # One label of three is 1 freely; at most 0.75 or at least 1.5 is what is asked for.
    t, weights = np.array([[-1.0, 0.5, 2.0]]), np.ones(3)
    for low, high, value in [(0.0, 0.75, 0.75), (1.5, 3.0, 1.0 - 0.25), (0.0, 1.0, 1.0)]:
        totals = Totals(np.array([low]), np.array([high]))
        multiplier = best_multiplier(t, weights, Box(), totals)
        assert bound(t, weights, Box(), totals, multiplier) == pytest.approx(value, abs=1e-15)
