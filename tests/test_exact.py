"""What certificates are compared with is right itself: against Fractions, one label at a time."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.exact import check_certificate
from tests.problems import make_problem, make_regression
from tests.rationals import Rationals, aligned, label_ranges, nearest_shares
from tests.restricted import Restricted, with_classes, with_shares


def fractions(values):
    array = np.asarray(values, dtype=float)
    return np.array([Fraction(v) for v in array.ravel().tolist()], object).reshape(array.shape)


def values(numbers):
    """Rationals as Fractions."""
    found = [Fraction(n, numbers.d) for n in numbers.n.ravel().tolist()]
    return np.array(found, object).reshape(numbers.n.shape)


@pytest.mark.parametrize("size", [1.0, 1e-300, 1e200])
def test_rationals_are_fractions(size):
    rng = np.random.default_rng(0)
    a, b = size * rng.normal(size=(4, 3)), 10.0 ** rng.uniform(-30, 30, (4, 3))
    x, y = Rationals.of(a), Rationals.of(b)
    exact_a, exact_b = fractions(a), fractions(b)
    for found, expected in (
        (x + y, exact_a + exact_b),
        (x - y, exact_a - exact_b),
        (x * y * Fraction(1, 3), exact_a * exact_b * Fraction(1, 3)),
        (x @ Rationals.of(b.T), exact_a @ exact_b.T),
        (x.sum(axis=1), exact_a.sum(axis=1)),
        (x[1:, 0], exact_a[1:, 0]),
    ):
        assert (values(found) == expected).all()
    np.testing.assert_array_equal(x.floats(), a)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_nearest_shares_are_a_projection(n_classes):
    rng = np.random.default_rng(n_classes)
    y, x = np.full(50, -1), 3.0 * rng.normal(size=(50, n_classes))
    lower, upper = label_ranges(y, n_classes)
    found = values(nearest_shares(Rationals.of(x), lower, upper))
    assert (found.sum(axis=1) == 1).all()
    assert (found >= 0).all()
    # All shares that are positive have lost the same, and others would have had to lose less.
    for row, share in zip(fractions(x), found, strict=True):
        less = {a - b for a, b in zip(row, share, strict=True) if b > 0}
        assert len(less) == 1
        assert all(a <= min(less) for a, b in zip(row, share, strict=True) if b == 0)


def small_problem(rng, n_classes):
    """Few unlabeled rows, and a fit that moves."""
    problem = make_problem("gaussian", rng)
    kept = np.r_[np.flatnonzero(problem.y >= 0)[:8], np.flatnonzero(problem.y == -1)[:4]]
    kept = np.union1d(kept, [np.flatnonzero(problem.y == k)[0] for k in (0, 1)])
    problem = Restricted(problem.X[kept], problem.y[kept], None, {"alpha": 0.1}, 2)
    return problem if n_classes == 2 else with_classes(problem, rng, n_classes)


def losses(clf, problem, labels, clip=False):
    """Loss of the classifier and of its baseline for these labels, in Fractions."""
    hot = np.array(labels)[:, None] if problem.n_classes == 2 else np.eye(problem.n_classes)[labels]
    found = []
    for model in (clf, clf.supervised_):
        E = fractions(np.column_stack([problem.X, np.ones(len(labels))]))
        w = fractions(np.column_stack([model.coef_, model.intercept_]))
        w[:, -1] += Fraction(1, 2)
        scores = E @ w.T
        penalty = Fraction(clf.supervised_.alpha_) * (w[:, :-1] ** 2).sum()
        if clip:
            scores, penalty = np.clip(scores, 0, 1), 0
        found.append(((scores - hot.astype(int)) ** 2).sum() + penalty)
    return found


@pytest.mark.parametrize("n_classes", [2, 3])
def test_extremes_are_those_of_all_labelings(n_classes):
    rng = np.random.default_rng(n_classes)
    for _ in range(5):
        problem = small_problem(rng, n_classes)
        clf = problem.fit(constraint_alpha="same")
        exact, unknown = problem.exact(clf), np.flatnonzero(problem.unlabeled)
        after, before, clipped = [], [], []
        for codes in product(range(n_classes), repeat=len(unknown)):
            labels = problem.y.copy()
            labels[unknown] = codes
            one, other = losses(clf, problem, labels)
            after.append(one)
            before.append(other)
            if n_classes == 2:
                one, other = losses(clf, problem, labels, clip=True)
                clipped.append(one - other)
        differences = [a - b for a, b in zip(after, before, strict=True)]
        assert exact.extremes() == (max(differences), min(differences))
        least, most = exact.baseline_range()
        assert least <= min(before)  # soft labels may be nearer
        assert most == max(before)
        if n_classes == 2:
            assert exact.clipped().extremes() == (max(clipped), min(clipped))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_leave_less(n_classes):
    rng = np.random.default_rng(5)
    for _ in range(10):
        problem = with_shares(small_problem(rng, n_classes), rng)
        clf = problem.fit()
        exact = problem.exact(clf)
        worst, best = exact.extremes()
        outer = replace(exact, shares=None).extremes()
        anything = replace(exact, shares=np.tile([0.0, 1.0], (n_classes, 1))).extremes()
        assert outer[1] <= best <= worst <= outer[0]
        np.testing.assert_allclose(np.array(anything, float), np.array(outer, float), atol=1e-12)


@pytest.mark.parametrize("name", ["worst_case", "best_case", "probability_worst_case"])
def test_a_certificate_that_is_wrong_in_the_tenth_digit_is_found(name):
    n_moved = 0
    for seed in range(20):
        problem = make_problem("gaussian", np.random.default_rng(seed))
        clf = problem.fit(alpha=0.0)
        certificate = clf.certificate_
        if certificate.reason:
            continue
        n_moved += 1
        check_certificate(clf, problem.exact(clf))
        less = 1e-10 * (1.0 + abs(getattr(certificate, name)))
        wrong = getattr(certificate, name) + (less if name == "best_case" else -less)
        clf.certificate_ = replace(certificate, **{name: wrong})
        with pytest.raises(AssertionError):
            check_certificate(clf, problem.exact(clf))
    assert n_moved > 5


def test_regressions_by_their_ends():
    rng = np.random.default_rng(3)
    for _ in range(10):
        problem = make_regression("own bounds", rng)
        reg = problem.fit()
        worst = best = Fraction(0)
        E = fractions(np.column_stack([problem.X, np.ones(len(problem.X))]))
        f, g = (E @ fractions([*m.coef_, m.intercept_]) for m in (reg, reg.supervised_))
        weights = np.ones(len(E)) if problem.weights is None else problem.weights
        ends = fractions(problem.lower), fractions(problem.upper)
        for a, b, low, high, s in zip(f, g, *ends, fractions(weights), strict=True):
            both = [s * ((a - y) ** 2 - (b - y) ** 2) for y in (low, high)]
            worst, best = worst + max(both), best + min(both)
        penalty = Fraction(reg.constraint_alpha) * sum(
            sign * (fractions(m.coef_) ** 2).sum() for sign, m in ((1, reg), (-1, reg.supervised_))
        )
        assert problem.exact(reg).extremes() == (worst + penalty, best + penalty)


def test_numbers_of_several_denominators_are_aligned():
    (a, b, c), one = aligned(Fraction(1, 3), 0.25, 2)
    assert (a, b, c, one) == (4, 3, 24, 12)
