"""The loop of working sets: the distance never grows, the gap is exact, the end is the same."""

import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.projection.solver import newton, working_set
from neverworse.projection.solver.problem import half_square, keys_of

N, D = 400, 4


def classes_of(n_classes, n_labeled, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    scores = X @ rng.normal(size=(D, n_classes)) + rng.normal(size=(N, n_classes))
    truth = scores.argmax(axis=1)
    truth[:n_classes] = np.arange(n_classes)
    return X, np.where(np.arange(N) < n_labeled, truth, -1), rng


CASES = {
    "two classes": (2, {}, False),
    "bounds": (2, {}, True),
    "three classes": (3, {}, False),
    "three classes, bounds": (3, {}, True),
    "penalty": (2, {"alpha": 3.0}, False),
    "ICLS": (2, {"distance": "labeled"}, False),
    "transductive": (2, {"distance": "unlabeled"}, False),
    "prior": (2, {"class_prior": (0.3, 0.35)}, False),
    "three classes, prior": (3, {"class_prior": [(0.3, 0.35), (0.0, 1.0), (0.2, 0.4)]}, False),
}
WITHOUT_TOTALS = [name for name in CASES if "prior" not in name]


def fit(case, n_labeled, seed, **more):
    n_classes, parameters, bounded = CASES[case]
    X, y, rng = classes_of(n_classes, n_labeled, seed)
    bounds = None
    if bounded:
        bounds = np.full((N, n_classes, 2), np.nan)
        some = np.flatnonzero((y == -1) & (rng.random(N) < 0.5))
        bounds[some, :, 1] = rng.uniform(0.6, 1.0, (len(some), n_classes))
        bounds = bounds if n_classes > 2 else bounds[:, 1]
    clf = ProjectedLeastSquaresClassifier(**{"alpha": 0.0, "tol": 1e-12, **parameters, **more})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X, y, label_bounds=bounds)


def of_size(monkeypatch, size):
    """Let the first working set have so many rows."""
    monkeypatch.setattr(working_set, "working_set_size", lambda *_: size)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n_labeled", [12, 60])
@pytest.mark.parametrize("size", [1, 7, 60])
def test_working_sets_of_any_size_end_at_the_same_weights(case, n_labeled, size, monkeypatch):
    of_size(monkeypatch, N)
    whole = fit(case, n_labeled, 0)
    of_size(monkeypatch, size)
    parts = fit(case, n_labeled, 0)
    assert parts.certificate_.converged
    scale = np.abs(whole.coef_).max()
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=2e-6 * scale)
    assert parts.certificate_.guaranteed_improvement == pytest.approx(
        whole.certificate_.guaranteed_improvement, rel=1e-8, abs=1e-9
    )


@pytest.mark.parametrize("case", WITHOUT_TOTALS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), n_labeled=st.integers(8, 80), size=st.integers(1, 80))
def test_the_distance_never_grows_from_round_to_round(case, seed, n_labeled, size):
    values = []
    solve = working_set._Loop._solve_working_set

    def watched(loop, state):
        before = half_square(state.primal, None)
        solve(loop, state)
        values.append((before, half_square(state.primal, None), loop.problem.floor))

    with pytest.MonkeyPatch.context() as patch:
        of_size(patch, size)
        patch.setattr(working_set._Loop, "_solve_working_set", watched)
        fit(case, n_labeled, seed)
    for before, after, floor in values:  # none, if the start is the end
        assert after <= before * (1 + 1e-12) + floor


@pytest.mark.parametrize("case", ["two classes", "three classes"])
@pytest.mark.parametrize("n_labeled", [8, 12, 20])
@pytest.mark.parametrize("seed", range(2))
def test_the_gap_is_that_of_the_labels_in_extended_precision(case, n_labeled, seed, monkeypatch):
    """The problem is read off the loop; the gap is computed anew from the labels alone."""
    of_size(monkeypatch, 20)
    seen = []
    run = working_set._Loop.run

    def watched(loop):
        solution = run(loop)
        seen.append((loop, solution))
        return solution

    monkeypatch.setattr(working_set._Loop, "run", watched)
    fit(case, n_labeled, seed, tol=1e-3)
    loop, solution = seen[0]
    rows = np.flatnonzero(loop.problem.weights)
    K = mpmath.matrix(loop.hinges.take(rows))
    with mpmath.workdps(40):
        value = gap = mpmath.mpf(0)
        scores = []
        for labels, linear in zip(solution.q, loop.problem.linear, strict=True):
            q = mpmath.matrix(labels)
            z = K.T * q - mpmath.matrix(linear)
            t = K * z
            value += (z.T * z)[0] / 2
            gap += (q.T * t)[0]
            scores.append(t)
        # One number may be 0 as well as 1; shares of several classes add up to one.
        others = [mpmath.zeros(len(rows), 1)] if len(scores) == 1 else []
        gap -= sum(min(ts) for ts in zip(*scores, *others, strict=True))
    if value > loop.problem.floor:
        assert float(value) == pytest.approx(solution.value, rel=1e-9)
        assert float(gap) == pytest.approx(solution.gap, rel=1e-6, abs=1e-12 * solution.value)


def test_small_problems_begin_with_all_rows_and_go_on_with_few(monkeypatch):
    """Where the second working set would have all rows, only the first steps are made on all."""
    of_size(monkeypatch, N // 4)
    monkeypatch.setattr(working_set, "FEWEST_ROWS", 10)
    solved = []
    minimise = newton.Newton.minimise

    def watched(self, z, q, tol, *more):
        solution = minimise(self, z, q, tol, *more)
        solved.append((q.shape[1], tol))
        return solution

    monkeypatch.setattr(newton.Newton, "minimise", watched)
    clf = fit("three classes", 20, 0, tol=1e-9)
    assert clf.certificate_.duality_gap <= 1e-9
    (n_first, rough), *others = solved
    assert (n_first, rough) == (N - 20, 0.01)
    assert others
    assert all(n < N - 20 for n, _ in others)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_equal_rows_are_one_row_with_their_weight(n_classes, monkeypatch):
    """Copies of some rows, and the same rows once with as much weight, give the same model."""
    of_size(monkeypatch, 20)
    X, _, rng = classes_of(n_classes, 0, 3)
    distinct, labeled = X[:40], np.arange(40, 70)
    truth = rng.integers(0, n_classes, 30)
    truth[:n_classes] = np.arange(n_classes)
    n_copies = rng.integers(1, 60, 40)
    once = (np.vstack([X[labeled], distinct]), np.r_[truth, np.full(40, -1)])
    every = np.repeat(np.arange(40), n_copies)
    many = (np.vstack([X[labeled], distinct[every]]), np.r_[truth, np.full(len(every), -1)])
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, tol=1e-10)
    weighted = clf.fit(*once, sample_weight=np.r_[np.ones(30), n_copies]).coef_
    np.testing.assert_allclose(clf.fit(*many).coef_, weighted, atol=1e-7)


def test_working_sets_of_equal_rows_keep_their_size(monkeypatch):
    """Copies are chosen besides, but the rows that differ are as many in every round."""
    size = 100
    of_size(monkeypatch, size)
    rng = np.random.default_rng(0)
    X = np.repeat(rng.poisson(0.5, (4000, 6)).astype(float), 2, axis=0)
    truth = (X @ rng.normal(size=6) + 2.0 * rng.normal(size=len(X)) > 0.0).astype(int)
    chosen = rng.permutation(len(X))[:25]
    y = np.full(len(X), -1)
    y[chosen] = truth[chosen]
    solved = []
    load = working_set._Loop._load

    def watched(self, indices, *more):
        working = load(self, indices, *more)
        solved.append((len(indices), len(working.hinges.weights)))
        return working

    monkeypatch.setattr(working_set._Loop, "_load", watched)
    # Without growth, which is for rounds that leave too much of the gap: they may never end then
    monkeypatch.setattr(working_set, "LARGEST_GAP_SHARE", 2.0)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, tol=1e-6, max_iter=1000).fit(X, y)
    assert clf.certificate_.converged
    assert len(solved) >= 4
    assert max(n for n, _ in solved[1:]) > 2 * size  # copies are there, ...
    assert max(distinct for _, distinct in solved) < 4 * size  # ... and cost nothing


def test_keys_tell_rows_apart():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -0.0], [np.nextafter(1.0, 2.0), 0.0]])
    keys = keys_of(rows)
    assert keys[0] == keys[2]
    assert len(np.unique(keys)) == 3
    assert len(np.unique(keys_of(rows.astype(np.float32)))) == 2
    few = np.random.default_rng(0).integers(0, 3, (500, 4)).astype(float)
    assert len(np.unique(keys_of(few))) == len(np.unique(few, axis=0))
