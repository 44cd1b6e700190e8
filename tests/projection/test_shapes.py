"""Sets of soft labels: nearest points, extreme corners and margins, row by row."""

from fractions import Fraction
from itertools import permutations, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from neverworse.projection import Box, Simplex

# Values on which nearest points are not trivial: ties, kinks, and everything between.
GRID = st.one_of(
    st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0]),
    st.floats(-3, 3).map(lambda v: v if abs(v) > 1e-300 else 0.0),
)


def nearest_by_bisection(x, caps):
    """The point of the capped simplex nearest to x, with 150 digits."""
    with mpmath.workdps(150):
        x, caps = [mpmath.mpf(float(v)) for v in x], [mpmath.mpf(float(v)) for v in caps]
        low, high = min(x) - 1, max(x)
        for _ in range(int(mpmath.log(high - low + 1, 2)) + 120):
            at = (low + high) / 2
            total = sum(min(max(v - at, mpmath.mpf(0)), c) for v, c in zip(x, caps, strict=True))
            low, high = (at, high) if total >= 1 else (low, at)
        return np.array(
            [float(min(max(v - low, mpmath.mpf(0)), c)) for v, c in zip(x, caps, strict=True)]
        )


def corners(caps):
    """All corners of the capped simplex, in exact arithmetic: classes filled in any order."""
    caps = [Fraction(float(c)) for c in caps]
    found = set()
    for order in permutations(range(len(caps))):
        label, room = [Fraction(0)] * len(caps), Fraction(1)
        for k in order:
            label[k] = min(caps[k], room)
            room -= label[k]
        found.add(tuple(label))
    return found


def exact_margin(t, caps):
    """The smallest t_k - t_l over classes between which the extreme corner can move a share."""
    t, caps = [Fraction(float(v)) for v in t], [Fraction(float(c)) for c in caps]
    label = min(
        corners([float(c) for c in caps]),
        key=lambda q: sum(a * b for a, b in zip(q, t, strict=True)),
    )
    moves = [
        t[k] - t[other]
        for k, other in product(range(len(t)), repeat=2)
        if k != other and label[k] < caps[k] and label[other] > 0
    ]
    return float(min(moves)) if moves else np.inf


def random_caps(rng, n_classes, n):
    """Caps that leave room, some of them zero or one; whole, dyadic and arbitrary numbers."""
    caps = rng.random((n_classes, n))
    caps[rng.random(caps.shape) < 0.3] = 1.0
    caps[rng.random(caps.shape) < 0.2] = 0.0
    dyadic = rng.random(n) < 0.3
    caps[:, dyadic] = np.round(8 * caps[:, dyadic]) / 8
    short = caps.sum(axis=0) < 1.0
    caps[rng.integers(0, n_classes, n)[short], np.flatnonzero(short)] = 1.0
    return caps


def shapes(n_classes, n, rng):
    yield "plain", Simplex(), np.ones((n_classes, n))
    caps = random_caps(rng, n_classes, n)
    yield "capped", Simplex(caps), caps
    yield "caps of one", Simplex(np.ones((n_classes, n))), np.ones((n_classes, n))


# Nearest points


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("scale", [1e-12, 0.3, 1.0, 30.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, -1e3, 1e5])
def test_nearest_point(n_classes, scale, offset):
    rng = np.random.default_rng(n_classes)
    n = 15
    x = scale * rng.normal(size=(n_classes, n)) + offset
    for name, shape, caps in shapes(n_classes, n, rng):
        got = shape.project(x)
        expected = np.column_stack([nearest_by_bisection(x[:, j], caps[:, j]) for j in range(n)])
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("spread", [1e8, 1e12, 1e16, 1e20, 1e100])
def test_nearest_point_of_huge_values(spread):
    # The solver multiplies scores by numbers up to 1e17.
    rng = np.random.default_rng(0)
    n_classes, n = 4, 60
    x = spread * rng.normal(size=(n_classes, n))
    x[1, ::3] = x[0, ::3] - rng.random(n)[::3]  # near enough to share, where there are digits left
    for name, shape, caps in shapes(n_classes, n, rng):
        got = shape.project(x)
        expected = np.column_stack([nearest_by_bisection(x[:, j], caps[:, j]) for j in range(n)])
        np.testing.assert_allclose(got.sum(axis=0), 1.0, atol=1e-14, err_msg=name)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("at", [0.0, 1.0, -7.0, 1e8, 1e16, -1e16, 1e17, 1e300])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_nearest_point_of_ties(at, n_classes):
    x = np.full((n_classes, 2), at)
    np.testing.assert_allclose(Simplex().project(x), 1.0 / n_classes, rtol=1e-14)
    caps = np.ones((n_classes, 2))
    caps[0] = 0.125
    others = 0.875 / (n_classes - 1)
    expected = np.full((n_classes, 2), others)
    expected[0] = 0.125
    np.testing.assert_allclose(Simplex(caps).project(x), expected, rtol=1e-14)


@given(st.lists(GRID, min_size=2, max_size=6))
@settings(max_examples=150, deadline=None)
def test_nearest_point_has_the_angle_of_a_projection(values):
    # The projection theorem: (x - q)·(v - q) <= 0 for every corner v.
    x = np.array(values)[:, None]
    for caps in (np.ones(len(values)), np.linspace(0.3, 1.0, len(values))):
        if caps.sum() < 1:
            continue
        q = Simplex(caps[:, None]).project(x)[:, 0]
        assert q.sum() == pytest.approx(1.0, abs=1e-14)
        assert (q >= 0).all()
        assert (q <= caps).all()
        for corner in corners(caps):
            assert (x[:, 0] - q) @ (np.array(corner, float) - q) <= 1e-13 * (1 + np.abs(x).max())


def test_plain_and_caps_of_one_agree():
    rng = np.random.default_rng(1)
    x = rng.choice([0.3, 1.0, 5.0], 500) * rng.normal(size=(4, 500))
    capped = Simplex(np.ones((4, 500)))
    np.testing.assert_allclose(Simplex().project(x), capped.project(x), atol=1e-15)
    np.testing.assert_array_equal(Simplex().minimizer(x), capped.minimizer(x))
    np.testing.assert_allclose(Simplex().support(x), capped.support(x), rtol=1e-14)
    np.testing.assert_allclose(Simplex().margin(x), capped.margin(x), rtol=1e-14)


def test_points_of_the_set_stay():
    rng = np.random.default_rng(2)
    caps = random_caps(rng, 4, 300)
    for shape in (Simplex(), Simplex(caps)):
        q = shape.project(rng.normal(size=(4, 300)))
        np.testing.assert_allclose(shape.project(q), q, atol=1e-15)


def test_two_classes_are_a_box():
    rng = np.random.default_rng(3)
    t = np.r_[rng.normal(size=400), 0.0, 0.5, -0.5, 1e-9]
    # A common shift of both scores makes no difference: half of t for one, against it the other.
    both = np.stack([-t / 2, t / 2])
    one = t[None]
    np.testing.assert_allclose(Simplex().project(both + 0.5)[1:], Box().project(one / 2 + 0.5))
    np.testing.assert_array_equal(Simplex().minimizer(both)[1:], Box().minimizer(one))
    np.testing.assert_allclose(Simplex().margin(both), Box().margin(one))
    np.testing.assert_allclose(Simplex().support(both), Box().support(one) + t / 2, atol=1e-15)


# Extreme corners


def test_box_by_brute_force():
    t = np.array([-3.0, -1e-300, -0.0, 0.0, 1e-300, 2.0])
    box = Box()
    found = zip(t, box.minimizer(t[None])[0], box.support(t[None]), strict=True)
    for value, corner, support in found:
        assert corner in (0.0, 1.0)
        assert corner * value == min(0.0, value)
        assert support == max(0.0, -value)
    np.testing.assert_array_equal(box.margin(t[None]), np.abs(t))
    np.testing.assert_array_equal(
        box.project(np.array([[-1.0, 0.0, 0.3, 1.0, 9.0]])), [[0, 0, 0.3, 1, 1]]
    )


def test_the_farthest_label_by_brute_force():
    rng = np.random.default_rng(12)
    width = rng.uniform(0.1, 2.0, 50)
    for shape, corners_of in ((Box(), [[[0.0]], [[1.0]]]), (Simplex(), np.eye(3)[:, :, None])):
        residual = rng.normal(size=(len(corners_of[0]), 50))
        errors = [((residual - width * np.array(q)) ** 2).sum(axis=0) for q in corners_of]
        np.testing.assert_allclose(shape.farthest(residual, width), np.max(errors, axis=0))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("kind", ["random", "ties", "huge", "tiny", "mixed"])
def test_extreme_corner_by_brute_force(n_classes, kind):
    rng = np.random.default_rng(5)
    n = 60
    t = {
        "random": rng.normal(size=(n_classes, n)),
        "ties": rng.integers(-1, 2, (n_classes, n)).astype(float),
        "huge": 1e200 * rng.normal(size=(n_classes, n)),
        "tiny": 1e-200 * rng.normal(size=(n_classes, n)),
        "mixed": rng.normal(size=(n_classes, n)) * 10.0 ** rng.integers(-15, 16, (n_classes, n)),
    }[kind]
    for name, shape, caps in shapes(n_classes, n, rng):
        q, support = shape.minimizer(t), shape.support(t)
        np.testing.assert_allclose(q.sum(axis=0), 1.0, atol=1e-15 * n_classes, err_msg=name)
        assert (q >= 0).all()
        assert (q <= caps + 1e-15).all()
        for j in range(n):
            exact = [Fraction(float(v)) for v in t[:, j]]
            best = min(
                sum(a * b for a, b in zip(c, exact, strict=True)) for c in corners(caps[:, j])
            )
            size = np.abs(t[:, j]).max()
            assert float(best) == pytest.approx(float(q[:, j] @ t[:, j]), abs=1e-14 * size)
            assert support[j] == pytest.approx(-float(best), abs=1e-14 * size)


def test_extreme_corner_of_caps_by_linear_programs():
    rng = np.random.default_rng(6)
    caps, t = random_caps(rng, 6, 40), rng.normal(size=(6, 40))
    support = Simplex(caps).support(t)
    for j in range(40):
        bounds = np.column_stack([np.zeros(6), caps[:, j]])
        found = linprog(t[:, j], A_eq=np.ones((1, 6)), b_eq=[1.0], bounds=bounds, method="highs")
        assert support[j] == pytest.approx(-found.fun, abs=1e-12)


def test_extreme_corners_of_plain_rows_are_whole_labels():
    rng = np.random.default_rng(7)
    t = rng.integers(-2, 3, (4, 500)).astype(float)
    q = Simplex().minimizer(t)
    assert set(np.unique(q)) == {0.0, 1.0}
    np.testing.assert_array_equal(q.sum(axis=0), 1.0)
    np.testing.assert_array_equal(q.argmax(axis=0), t.argmin(axis=0))  # the first of ties


# Margins


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_margin_by_brute_force(n_classes):
    rng = np.random.default_rng(8)
    n = 150
    t = rng.normal(size=(n_classes, n))
    for name, shape, caps in shapes(n_classes, n, rng):
        expected = np.array([exact_margin(t[:, j], caps[:, j]) for j in range(n)])
        np.testing.assert_allclose(shape.margin(t), expected, rtol=1e-12, err_msg=name)


def test_margin_of_ties_is_zero():
    t = np.array([[0.0, 0.0, 5.0], [0.0, 1.0, 5.0], [1.0, 0.0, 5.0]])
    np.testing.assert_array_equal(Simplex().margin(t), 0.0)
    np.testing.assert_array_equal(Simplex(np.ones((3, 3))).margin(t), 0.0)


def test_margin_of_a_single_label_is_infinite():
    caps = np.array([[0.25, 1.0], [0.75, 0.0], [0.0, 0.0]])
    t = np.array([[1.0, -1.0], [0.0, 3.0], [-2.0, 5.0]])
    np.testing.assert_array_equal(Simplex(caps).minimizer(t), caps)
    np.testing.assert_array_equal(Simplex(caps).margin(t), np.inf)


@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 6))
@settings(max_examples=150, deadline=None)
def test_smaller_changes_than_half_the_margin_leave_the_corner(seed, n_classes):
    rng = np.random.default_rng(seed)
    n = 30
    t = rng.normal(size=(n_classes, n)) * 10.0 ** rng.integers(-3, 4, n)
    for name, shape, _ in shapes(n_classes, n, rng):
        margin = np.minimum(shape.margin(t), 1e3)
        change = 0.499 * margin * rng.choice([-1.0, 1.0], t.shape)
        before, after = shape.minimizer(t), shape.minimizer(t + change)
        moves = margin > 1e-9 * np.abs(t).max(axis=0)
        np.testing.assert_allclose(before[:, moves], after[:, moves], atol=1e-15, err_msg=name)
        # And the margin is not too small: some change of more than half of it has an effect.
        for j in range(n):
            if margin[j] == 1e3:
                continue
            k, other = _binding_pair(t[:, j], shape.at([j]), margin[j])
            change = np.zeros(n_classes)
            change[k], change[other] = -0.5001 * margin[j], 0.5001 * margin[j]
            moved = shape.at([j]).minimizer((t[:, j] + change)[:, None])[:, 0]
            if margin[j] > 1e-9 * np.abs(t[:, j]).max():
                assert np.abs(moved - before[:, j]).max() > 1e-6, name


def _binding_pair(t, shape, margin):
    """The classes whose scores differ by the margin: a share could move from one to the other."""
    q = shape.minimizer(t[:, None])[:, 0]
    caps = np.ones(len(t)) if shape.caps is None else shape.caps[:, 0]
    pairs = [
        (abs(t[k] - t[other] - margin), k, other)
        for k, other in permutations(range(len(t)), 2)
        if q[other] > 1e-9 and q[k] < caps[k] - 1e-9
    ]
    return min(pairs)[1:]


def test_most_capped_rows_have_a_margin():
    # Rounding errors of sums of caps must not make corners look as if they could move.
    rng = np.random.default_rng(9)
    caps = rng.uniform(0.3, 0.8, (4, 5000))
    t = rng.normal(size=(4, 5000))
    shape = Simplex(caps)
    assert np.count_nonzero(shape.margin(t) == 0.0) == 0
    assert np.count_nonzero(shape.is_free(shape.minimizer(t))) == 0


# The rest


def test_free_labels_can_move_both_ways():
    q = np.array([[1.0, 0.5, 0.25, 0.2], [0.0, 0.5, 0.75, 0.8], [0.0, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(Simplex().is_free(q), [False, True, True, True])
    caps = np.array([[1.0, 1.0, 0.25, 0.5], [1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    # In the third row, one class is at its cap: the other cannot move alone.
    np.testing.assert_array_equal(Simplex(caps).is_free(q), [False, True, False, True])
    np.testing.assert_array_equal(Box().is_free(np.array([[0.0, 0.5, 1.0]])), [False, True, False])


@pytest.mark.parametrize("rows", [slice(2, 5), np.array([4, 1]), np.arange(6) % 2 == 0])
def test_sets_of_some_rows(rows):
    rng = np.random.default_rng(10)
    caps, x = random_caps(rng, 3, 6), rng.normal(size=(3, 6))
    for shape in (Simplex(caps), Simplex()):
        for name in ("project", "minimizer"):
            whole = getattr(shape, name)(x)
            np.testing.assert_array_equal(getattr(shape.at(rows), name)(x[:, rows]), whole[:, rows])


@pytest.mark.parametrize("shape", [Box(), Simplex(), Simplex(np.ones((3, 0)))])
def test_no_rows(shape):
    x = np.zeros((3 if shape.is_coupled else 1, 0))
    assert shape.project(x).shape == x.shape
    assert shape.minimizer(x).shape == x.shape
    assert shape.support(x).shape == (0,)
    assert shape.margin(x).shape == (0,)


def test_arguments_are_left_alone():
    rng = np.random.default_rng(11)
    x = rng.normal(size=(3, 50))
    for shape in (Simplex(), Simplex(random_caps(rng, 3, 50))):
        before = x.copy(), None if shape.caps is None else shape.caps.copy()
        for name in ("project", "minimizer", "support", "margin"):
            getattr(shape, name)(x)
        np.testing.assert_array_equal(x, before[0])
        if shape.caps is not None:
            np.testing.assert_array_equal(shape.caps, before[1])
