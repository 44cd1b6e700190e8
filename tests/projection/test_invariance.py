"""What must not change the answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neverworse import ProjectedLeastSquaresClassifier
from tests.problems import Problem, make_problem

DISTANCES = ["all", "labeled", "unlabeled", "euclidean"]


def _problem(seed):
    rng = np.random.default_rng(seed)
    problem = make_problem("gaussian", rng)
    # Away from degenerate sizes, so that the answer is unique in every distance.
    X = rng.normal(size=(60, problem.X.shape[1]))
    y = np.where(np.arange(60) < 20, np.arange(60) % 2, -1)
    weights = rng.uniform(0.5, 2.0, 60) if problem.weights is not None else None
    settings_ = {**problem.settings, "tol": 1e-13}
    return Problem(X + 0.5 * (np.arange(60) % 2)[:, None], y, weights, settings_), rng


def _scores(clf, X):
    return clf.decision_function(X)


@given(seed=st.integers(0, 2**32 - 1), distance=st.sampled_from(DISTANCES))
@settings(max_examples=50, deadline=None)
def test_row_order(seed, distance):
    problem, rng = _problem(seed)
    order = rng.permutation(len(problem.y))
    weights = None if problem.weights is None else problem.weights[order]
    shuffled = Problem(problem.X[order], problem.y[order], weights, problem.settings)
    a, b = problem.fit(distance=distance), shuffled.fit(distance=distance)
    np.testing.assert_allclose(_scores(a, problem.X), _scores(b, problem.X), atol=1e-6)
    assert a.certificate_.worst_case == pytest.approx(b.certificate_.worst_case, rel=1e-6, abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_invertible_linear_maps_of_the_features(seed):
    problem, rng = _problem(seed)
    d = problem.X.shape[1]
    A = rng.normal(size=(d, d)) + 3 * np.eye(d)
    kwargs = {"alpha": 0.0, "constraint_alpha": 0.0}
    a = problem.fit(**kwargs)
    b = Problem(problem.X @ A, problem.y, problem.weights, problem.settings).fit(**kwargs)
    np.testing.assert_allclose(_scores(a, problem.X), _scores(b, problem.X @ A), atol=1e-6)


@given(seed=st.integers(0, 2**32 - 1), distance=st.sampled_from(DISTANCES))
@settings(max_examples=50, deadline=None)
def test_splitting_a_row_into_two_of_half_the_weight(seed, distance):
    problem, rng = _problem(seed)
    n = len(problem.y)
    weights = problem.weights_or(np.ones(n)).copy()
    chosen = np.unique(rng.integers(0, n, 10))
    if problem.settings["alpha"] == "loo":  # leaves out one of two copies of a labeled row
        chosen = chosen[problem.unlabeled[chosen]]
    weights[chosen] /= 2
    split = Problem(
        np.vstack([problem.X, problem.X[chosen]]),
        np.r_[problem.y, problem.y[chosen]],
        np.r_[weights, weights[chosen]],
        problem.settings,
    )
    a, b = problem.fit(distance=distance), split.fit(distance=distance)
    np.testing.assert_allclose(_scores(a, problem.X), _scores(b, problem.X), atol=1e-6)
    assert a.certificate_.worst_case == pytest.approx(b.certificate_.worst_case, rel=1e-6, abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1), distance=st.sampled_from(DISTANCES))
@settings(max_examples=50, deadline=None)
def test_class_names(seed, distance):
    # Swapping the order of the names turns every score s into 1 - s. That needs an intercept.
    problem, _ = _problem(seed)
    names = np.array(["healthy", "ill"], dtype=object)
    swapped = np.array(["zz healthy", "ill"], dtype=object)
    y = problem.y
    kwargs = {"fit_intercept": True, "distance": distance}
    clf = ProjectedLeastSquaresClassifier(**{**problem.settings, **kwargs})
    fits = []
    for labels in (names, swapped):
        named = np.where(y == -1, None, labels[np.maximum(y, 0)])
        fits.append(clf.__class__(**clf.get_params()).fit(problem.X, named, problem.weights))
    a, b = fits
    np.testing.assert_allclose(_scores(a, problem.X), -_scores(b, problem.X), atol=1e-6)
    if distance == "all":
        # Inside of the constraint set the distance, a square, is zero but for rounding errors.
        atol = 1e-4 if a.certificate_.reason == "inside" else 1e-5
        np.testing.assert_allclose(a.soft_labels_, 1 - b.soft_labels_, atol=atol)


def test_scaling_columns_by_powers_of_two_changes_no_prediction_bit_by_much():
    problem, rng = _problem(0)
    scale = 2.0 ** rng.integers(-40, 40, problem.X.shape[1])
    kwargs = {"alpha": 0.0, "constraint_alpha": 0.0, "fit_intercept": True}
    a = problem.fit(**kwargs)
    b = Problem(problem.X * scale, problem.y, problem.weights, problem.settings).fit(**kwargs)
    np.testing.assert_allclose(a.coef_, b.coef_ * scale, rtol=1e-9)
