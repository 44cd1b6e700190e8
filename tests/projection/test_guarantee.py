"""Theorem 1, for the weights that are returned, against the exact worst labeling."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exact import check_certificate
from tests.problems import (
    CONSTRAINT_PENALTIES,
    KINDS,
    PENALTIES,
    distances,
    make_problem,
    with_cancelling_duplicates,
)

N_PROBLEMS = 25  # of each kind, each in all distances; `make fuzz` tries many more


def _check(clf, problem):
    check_certificate(clf, problem.exact(clf))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_never_worse_for_the_exact_worst_labeling(kind):
    rng = np.random.default_rng(list(kind.encode()))
    improved = unfinished = 0
    for _ in range(N_PROBLEMS):
        problem = make_problem(kind, rng)
        for distance in distances(rng, problem.X.shape[1]):
            clf = problem.fit(distance=distance)
            _check(clf, problem)
            improved += clf.certificate_.guaranteed_improvement > 0
            unfinished += not clf.certificate_.converged
    assert improved > 0  # the guarantee would be empty if nothing ever changed
    assert unfinished == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("constraint_alpha", CONSTRAINT_PENALTIES)
@pytest.mark.parametrize("alpha", PENALTIES)
def test_never_worse_for_all_pairs_of_penalties(alpha, constraint_alpha):
    rng = np.random.default_rng(3)
    penalties = {"alpha": alpha, "constraint_alpha": constraint_alpha}
    improved = 0
    for kind in KINDS:
        problem = make_problem(kind, rng)
        for distance in distances(rng, problem.X.shape[1]):
            clf = problem.fit(distance=distance, **penalties)
            _check(clf, problem)
            improved += clf.certificate_.guaranteed_improvement > 0
    assert improved > 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("large", [1e4, 1e16])
def test_never_worse_for_sparse_rows_with_entries_that_cancel(large):
    rng = np.random.default_rng(8)
    for _ in range(100):
        problem = make_problem("gaussian", rng)
        X = with_cancelling_duplicates(problem.X, rng, large)
        clf = replace(problem, X=X).fit()
        _check(clf, replace(problem, X=X.toarray()))


@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32 - 1),
    max_iter=st.integers(1, 6),
    solver=st.sampled_from(["exact", "lbfgs"]),
)
@settings(max_examples=200, deadline=None)
def test_early_stopping_stays_certified(kind, seed, max_iter, solver):
    rng = np.random.default_rng(seed)
    problem = make_problem(kind, rng)
    for distance in ("all", "unlabeled"):
        _check(problem.fit(distance=distance, max_iter=max_iter, solver=solver), problem)


@pytest.mark.parametrize("kind", KINDS)
def test_no_time_at_all_stays_certified(kind):
    problem = make_problem(kind, np.random.default_rng(5))
    clf = problem.fit(max_time=0.0)
    _check(clf, problem)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_random_labelings_lie_between_the_extremes(seed):
    rng = np.random.default_rng(seed)
    problem = make_problem("gaussian", rng)
    clf = problem.fit(constraint_alpha=0.0)
    certificate = clf.certificate_
    s = problem.weights_or(np.ones(len(problem.y)))
    f = problem.X @ clf.coef_[0] + clf.intercept_[0] + 0.5
    g = problem.X @ clf.supervised_.coef_[0] + clf.supervised_.intercept_[0] + 0.5
    for _ in range(20):
        labels = np.where(problem.unlabeled, rng.integers(0, 2, len(f)), problem.y)
        difference = s @ (f - labels) ** 2 - s @ (g - labels) ** 2
        slack = 1e-12 * (s @ f**2 + s @ g**2 + s.sum())
        assert certificate.best_case - slack <= difference <= certificate.worst_case + slack
