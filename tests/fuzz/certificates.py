"""Certificates and audits in exact rational arithmetic, for problems made to break them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from neverworse import audit
from tests.exact import ExactLosses, check_certificate
from tests.problems import (
    KINDS,
    REGRESSION_KINDS,
    Regression,
    distances,
    make_problem,
    make_regression,
    with_cancelling_duplicates,
)
from tests.rationals import Rationals
from tests.restricted import Restricted, with_bounds, with_classes, with_shares

MOST_ROWS = 14  # a few say as much as many, and sooner
SPANS = (1.0, 3.0, 10.0, 20.0, 40.0)  # of weights, as powers of ten up and down


def attack(seed):
    """Fit one hostile problem; compare every bound of its certificate with the exact number."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.2:
        kind, twist = _one(REGRESSION_KINDS, rng), _one(REGRESSION_TWISTS, rng)
        problem = _cut(make_regression(kind, rng), rng)
    else:
        kind, twist = _one(KINDS, rng), _one(TWISTS, rng)
        problem = _cut(make_problem(kind, rng), rng)
        problem = Restricted(problem.X, problem.y, problem.weights, problem.settings, 2)
    problem = twist(problem, rng)
    choices = distances(rng, problem.X.shape[1])
    distance = choices[rng.choice(5, p=[0.5, 0.1, 0.2, 0.1, 0.1])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"distance": distance, "max_iter": _some_limit(rng)}
        try:
            model = problem.fit(**options)
        except ValueError as refused:  # of rows of which one outweighs all others
            if not str(refused).startswith("Leave-one-out needs"):
                raise
            model = problem.fit(**options, alpha=1.0)
    if hasattr(problem.X, "toarray"):
        problem = replace(problem, X=problem.X.toarray())
    try:
        check_certificate(model, problem.exact(model))
    except AssertionError:
        name = distance if isinstance(distance, str) else "user's matrix"
        about = f"{kind}, {twist.__name__}, distance {name}, {problem.settings}"
        return f"{about}: a number is outside of its bound; {model.certificate_.to_dict()}"
    return None


def audit_of_scores(seed):
    """Audit scores that somebody made up; compare its bounds with the exact numbers."""
    rng = np.random.default_rng(seed)
    problem = make_problem("gaussian", rng)
    problem = Restricted(problem.X, problem.y, problem.weights, {}, 2)
    problem = _one(AUDIT_TWISTS, rng)(_cut(problem, rng), rng)
    n, k = len(problem.y), problem.n_classes
    both = _one(SCORES, rng)(rng, (n, k) if k > 2 else (n, 1))
    given = problem.shares
    if given is not None and k == 2:
        given = tuple(given[1])
    shown = [scores if k > 2 else scores[:, 0] for scores in both]
    options = {"sample_weight": problem.weights, "label_bounds": problem.bounds}
    found = audit(*shown, None, problem.y, class_prior=given, **options)
    s = problem.s()
    kept = s > 0.0
    ends = [bound[kept, -both[0].shape[1] :] for bound in problem.ranges()]
    f, g = (Rationals.of(scores[kept]) for scores in both)
    exact = ExactLosses(f, g, Rationals.of(s[kept]), *ends, shares=problem.shares)
    total = exact.s.sum().fraction()
    (worst, best), ranges = exact.extremes(), (replace(exact, g=f), exact)
    try:
        assert best >= found.best_case_sum
        assert worst <= found.worst_case_sum
        assert best / total >= found.best_case
        assert worst / total <= found.worst_case
        for (low, high), losses in zip(
            (found.candidate_loss, found.baseline_loss), ranges, strict=True
        ):
            least, most = losses.baseline_range()
            assert low <= least / total
            assert most / total <= high
    except AssertionError:
        return f"{both}, {problem}: a number is outside of its bound; {found.to_dict()}"
    return None


def _one(choices, rng):
    return choices[rng.integers(len(choices))]


def _some_limit(rng):
    """Stop some fits early: they are certified all the same."""
    return int(rng.integers(1, 5)) if rng.random() < 0.1 else 3000


def _cut(problem, rng):
    """Drop some rows of a long problem, but not all that are labeled, or of a class."""
    if len(problem.y) <= MOST_ROWS:
        return problem
    order = rng.permutation(len(problem.y))
    counts = (np.ones(len(order)) if problem.weights is None else problem.weights)[order] > 0.0
    y = problem.y[order]
    if isinstance(problem, Regression):
        first = order[np.flatnonzero(counts & ~np.isnan(y))[:2]]
    else:
        first = [order[np.flatnonzero(counts & (y == k))[0]] for k in (0, 1)]
    others = np.setdiff1d(order, first, assume_unique=True)[: MOST_ROWS - len(first)]
    kept = np.r_[first, others]
    parts = {name: part for name, part in vars(problem).items() if isinstance(part, np.ndarray)}
    return replace(problem, **{name: part[kept] for name, part in parts.items()})


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
    moved = (rng.random(len(X)) < 0.7) & problem.unlabeled
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


# What is done to a regression


def narrow_targets(problem, rng):
    """Bounds around the targets that are next to nothing apart, of rows of large weight."""
    n = len(problem.X)
    at = problem.X @ rng.normal(size=problem.X.shape[1])
    width = 10.0 ** rng.uniform(-17, -6) * (1.0 + np.abs(at)) * rng.random((2, n))
    known = ~problem.unlabeled
    lower = np.where(known, problem.lower, at - width[0])
    upper = np.where(known, problem.upper, at + width[1])
    weights = np.where(known, 1.0, 10.0 ** rng.integers(0, 26))
    return replace(problem, lower=lower, upper=upper, weights=weights)


def other_targets(problem, rng):
    """Targets in other units, or far from zero."""
    scale, offset = 10.0 ** rng.integers(-30, 31), rng.choice([0.0, 1e3, 1e9, 1e15])
    lower, upper = scale * (problem.lower + offset), scale * (problem.upper + offset)
    return replace(problem, lower=lower, upper=upper)


REGRESSION_TWISTS = (
    plain,
    wide_weights,
    near_ties,
    other_units,
    narrow_targets,
    other_targets,
    duplicate_entries,
)

# Audits

AUDIT_TWISTS = (
    plain,
    wide_weights,
    some_bounds,
    classes,
    classes_with_bounds,
    classes_with_wide_weights,
    prior,
    prior_and_bounds,
    prior_of_classes,
)


def probabilities(rng, shape):
    return rng.random((2, *shape))


def next_to_equal(rng, shape):
    g = rng.random(shape)
    return g * (1.0 + 10.0 ** rng.integers(-17, -2) * rng.integers(-9, 10, shape)), g


def of_any_size(rng, shape):
    return rng.normal(size=(2, *shape)) * 10.0 ** rng.integers(-170, 99)


def of_many_sizes(rng, shape):
    return rng.normal(size=(2, *shape)) * 10.0 ** rng.uniform(-20, 20, (2, *shape))


SCORES = (probabilities, next_to_equal, of_any_size, of_many_sizes)
