"""Certificates against exact rational arithmetic, for problems made to break them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from tests.exact import (
    Restricted,
    as_fractions,
    check_certificate,
    check_supervised_loss,
    exact_probabilities,
    with_bounds,
    with_classes,
    with_shares,
)
from tests.problems import KINDS, distances, make_problem, with_cancelling_duplicates

MOST_ROWS = 14  # rational numbers are slow
SPANS = (1.0, 3.0, 10.0, 20.0, 40.0)  # of weights, as powers of ten up and down


def attack(seed):
    """Fit one hostile problem; compare every bound of its certificate with the exact number."""
    rng = np.random.default_rng(seed)
    kind, twist = KINDS[rng.integers(len(KINDS))], TWISTS[rng.integers(len(TWISTS))]
    problem = _cut(make_problem(kind, rng), rng)
    problem = Restricted(problem.X, problem.y, problem.weights, problem.settings, 2)
    problem = twist(problem, rng)
    choices = distances(rng, problem.X.shape[1])
    distance = choices[rng.choice(5, p=[0.5, 0.1, 0.2, 0.1, 0.1])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = problem.fit(distance=distance, max_iter=_some_limit(rng))
    if hasattr(problem.X, "toarray"):
        problem = replace(problem, X=problem.X.toarray())
    try:
        _check(clf, problem)
    except AssertionError as wrong:
        name = distance if isinstance(distance, str) else "user's matrix"
        about = f"{kind}, {twist.__name__}, distance {name}, {problem.settings}"
        return (
            f"{about}: {wrong or 'a number is outside of its bound'}; {clf.certificate_.to_dict()}"
        )
    return None


def _check(clf, problem):
    certificate, exact = clf.certificate_, problem.exact(clf)
    if problem.shares is None:
        check_certificate(certificate, *exact.extremes())
        worst, best = exact_probabilities(
            clf, problem.X, problem.y, problem.weights, problem.bounds
        )
        assert worst <= certificate.probability_worst_case
        assert best >= certificate.probability_best_case
    elif problem.n_classes == 2:
        low, high = as_fractions(problem.shares[1])
        check_certificate(certificate, *exact.extremes_of_two_classes(low, high))
    else:
        check_certificate(certificate, *exact.extremes_with_shares(as_fractions(problem.shares)))
    check_supervised_loss(clf, problem.X, problem.y, problem.weights, problem.bounds)


def _some_limit(rng):
    """Stop some fits early: they are certified all the same."""
    return int(rng.integers(1, 5)) if rng.random() < 0.1 else 3000


def _cut(problem, rng):
    """Drop some rows of a long problem, labeled ones of two classes not."""
    if len(problem.y) <= MOST_ROWS:
        return problem
    order = rng.permutation(len(problem.y))
    counts = problem.weights_or(np.ones(len(order)))[order] > 0.0
    first = [order[np.flatnonzero(counts & (problem.y[order] == k))[0]] for k in (0, 1)]
    kept = np.r_[first, np.setdiff1d(order, first, assume_unique=True)[: MOST_ROWS - 2]]
    weights = None if problem.weights is None else problem.weights[kept]
    return replace(problem, X=problem.X[kept], y=problem.y[kept], weights=weights)


# What is done to a problem


def plain(problem, rng):
    return problem


def wide_weights(problem, rng):
    span = SPANS[rng.integers(len(SPANS))]
    n = len(problem.y)
    powers = rng.uniform(-span, span, n)
    if rng.random() < 0.5:
        powers = span * rng.integers(-1, 2, n).astype(float)
    return replace(problem, weights=10.0**powers)


def near_ties(problem, rng):
    """Rows that differ in their last digits, or next to nothing."""
    X = np.array(problem.X, dtype=float)
    copied = rng.integers(0, len(X), len(X))
    moved = rng.random(len(X)) < 0.7
    moved[problem.y != -1] = False
    size = 10.0 ** rng.integers(-18, -6)
    X[moved] = X[copied[moved]] * (1.0 + size * rng.normal(size=(int(moved.sum()), X.shape[1])))
    return replace(problem, X=X)


def other_units(problem, rng):
    X = np.array(problem.X, dtype=float) * 10.0 ** rng.integers(-30, 31)
    return replace(problem, X=X)


def narrow_bounds(problem, rng):
    """Rows of large weight near each other, with bounds around a line, next to nothing apart."""
    weight = 10.0 ** rng.integers(8, 31)
    near, slope = weight**-0.5 * 10.0 ** rng.uniform(-1, 1), rng.normal() * 2
    width = 10.0 ** rng.uniform(-17, -8)
    X = np.array([[0.0], [0.0], [-near], [near], [1.0]]) + (
        rng.normal() if rng.random() < 0.2 else 0
    )
    y, s = np.array([0, 1, -1, -1, -1]), np.array([1.0, 1.0, weight, weight, 1.0])
    bounds = np.full((5, 2), np.nan)
    part = rng.random(2)
    at = 0.5 + slope * (X[2:4, 0] - X[0, 0])
    bounds[2:4] = np.column_stack([at - part * width, at + (1 - part) * width]).clip(0.0, 1.0)
    return Restricted(X, y, s, {"alpha": [0.0, "loo"][rng.integers(2)]}, 2, bounds)


def some_bounds(problem, rng):
    return with_bounds(problem, rng)


def classes(problem, rng):
    return with_classes(problem, rng, int(rng.integers(3, 5)))


def classes_with_bounds(problem, rng):
    return with_bounds(classes(problem, rng), rng)


def classes_with_wide_weights(problem, rng):
    return wide_weights(classes(problem, rng), rng)


def prior(problem, rng):
    return with_shares(problem, rng)


def prior_and_bounds(problem, rng):
    return with_shares(with_bounds(problem, rng), rng)


def prior_of_classes(problem, rng):
    return with_shares(classes(problem, rng), rng)


def duplicate_entries(problem, rng):
    large = 10.0 ** rng.integers(2, 18)
    X = np.array(problem.X, dtype=float)
    return replace(problem, X=with_cancelling_duplicates(X, rng, large))


TWISTS = (
    plain,
    plain,
    wide_weights,
    near_ties,
    other_units,
    narrow_bounds,
    some_bounds,
    classes,
    classes_with_bounds,
    classes_with_wide_weights,
    prior,
    prior_and_bounds,
    prior_of_classes,
    duplicate_entries,
)
