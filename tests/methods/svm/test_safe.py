"""The safe machine: the worst case over separators, and what it is worth."""

import itertools

import numpy as np
import pytest

from neverworse.methods import L2SVMClassifier, SafeSVMClassifier, TransductiveSVMClassifier
from neverworse.methods.svm._safe import gains, safest_labels
from tests.methods.svm.problems import clusters, errors, make, rare_class, raw_units


def improvements(labels, separators, supervised, weights, risk):
    """Return what labels gain over the supervised ones in total, for each separator."""
    return gains(labels, separators, supervised, risk) @ weights


def safe(**options):
    return SafeSVMClassifier(**{"n_samples": 10, "random_state": 0, **options})


# The worst case


def worst(labels, separators, supervised, weights, risk):
    """Return the smallest of: rows gained less risk times rows lost, by counting them."""
    values = []
    for truth in separators:
        rows = list(zip(labels, truth, supervised, weights, strict=True))
        gained = sum(s for mine, t, theirs, s in rows if mine == t != theirs)
        lost = sum(s for mine, t, theirs, s in rows if mine != t == theirs)
        values.append(gained - risk * lost)
    return min(values)


@pytest.mark.parametrize("risk", [0.0, 1.0, 3.0])
def test_improvements_are_gains_less_losses(risk):
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels, supervised = rng.random((2, 9)) < 0.5
        separators, weights = rng.random((3, 9)) < 0.5, rng.random(9)
        found = improvements(labels, separators, supervised, weights, risk)
        assert found.min() == pytest.approx(worst(labels, separators, supervised, weights, risk))


def test_supervised_labels_improve_nothing():
    rng = np.random.default_rng(1)
    supervised, separators = rng.random(20) < 0.5, rng.random((4, 20)) < 0.5
    found = improvements(supervised, separators, supervised, np.ones(20), 3.0)
    np.testing.assert_array_equal(found, 0.0)


def test_single_separator_is_followed():
    rng = np.random.default_rng(2)
    supervised, separator = rng.random(30) < 0.5, rng.random(30) < 0.5
    weights, order = np.ones(30), rng.normal(size=30)
    found = safest_labels(separator[None], supervised, weights, 3.0, order)
    np.testing.assert_array_equal(found, separator)


def test_separators_that_contradict_each_other_leave_nothing_to_gain():
    supervised = np.zeros(10, bool)
    separators = np.array([[True] * 5 + [False] * 5, [False] * 5 + [True] * 5])
    found = safest_labels(separators, supervised, np.ones(10), 3.0, np.zeros(10))
    assert improvements(found, separators, supervised, np.ones(10), 3.0).min() <= 0.0


def test_what_all_separators_say_is_followed():
    supervised = np.zeros(10, bool)
    separators = np.array([[True] * 4 + [True] * 3 + [False] * 3, [True] * 4 + [False] * 6])
    found = safest_labels(separators, supervised, np.ones(10), 3.0, np.zeros(10))
    assert found[:4].all()
    assert improvements(found, separators, supervised, np.ones(10), 3.0).min() == 4.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_separators", [1, 2, 3])
def test_labels_are_as_good_as_the_best_of_all_but_for_rounding(weighted, n_separators):
    rng = np.random.default_rng(3)
    every = np.array(list(itertools.product([False, True], repeat=9)))
    exact = 0
    for _ in range(30):
        supervised, separators = rng.random(9) < 0.5, rng.random((n_separators, 9)) < 0.5
        weights = rng.random(9) if weighted else np.ones(9)
        found = safest_labels(separators, supervised, weights, 2.0, rng.normal(size=9))
        value = improvements(found, separators, supervised, weights, 2.0).min()
        best = max(improvements(x, separators, supervised, weights, 2.0).min() for x in every)
        assert value <= best + 1e-9
        # One row for each separator is rounded, and costs at most the risk plus the gain.
        assert value >= best - n_separators * 3.0 * weights.max()
        exact += value > best - 1e-9
    assert exact >= 10


# The classifier


def test_attributes_follow_from_each_other():
    X, y, _ = make(n=150, d=6, n_labeled=10)
    clf = safe(n_separators=4, n_samples=20).fit(X, y)
    U = X[y < 0]
    supervised = clf.supervised_.predict(U)
    assert clf.candidates_.shape == (4, 140)
    assert np.all(np.diff(clf.candidate_objectives_) >= 0.0)
    value = worst(clf.labels_, clf.candidates_, supervised, np.full(140, 1 / 140), 3.0)
    assert clf.worst_case_improvement_ == pytest.approx(max(0.0, value), abs=1e-12)
    weights = np.where(y < 0, 1.0 / 140.0, 1.0 / 10.0)
    for labels, found in zip(clf.candidates_, clf.candidate_objectives_, strict=True):
        assert abs(np.mean(labels == 1) - 0.5) <= 0.05 + 1 / 140
        filled = y.copy()
        filled[y < 0] = labels
        minimum = L2SVMClassifier(0.1).fit(X, filled, weights).objective_
        assert minimum * (1.0 - 1e-9) <= found <= 1.01 * minimum


def test_other_rows_are_scored_by_a_machine_for_the_labels():
    X, y, _ = clusters(3, n=200, gap=5.0)
    clf = safe().fit(X, y)
    assert clf.worst_case_improvement_ > 0.0
    filled = y.copy()
    filled[y < 0] = clf.labels_
    scale = np.where(y < 0, 1.0 / 196.0, 1.0 / 4.0)
    machine = L2SVMClassifier(0.1).fit(X, filled, scale)
    np.testing.assert_allclose(clf.coef_, machine.coef_, rtol=1e-6)
    np.testing.assert_allclose(clf.intercept_, machine.intercept_, rtol=1e-6, atol=1e-9)


def test_supervised_machine_is_kept_where_nothing_is_gained():
    kept = 0
    for seed in range(5):
        X, y, _ = make(n=60, d=10, n_labeled=12, seed=seed)
        clf = safe(n_samples=20, risk=100.0).fit(X, y)
        if clf.worst_case_improvement_ == 0.0:
            kept += 1
            np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)
            np.testing.assert_array_equal(clf.labels_, clf.supervised_.predict(X[y < 0]))
    assert kept >= 3


def test_safe_if_one_of_the_separators_is_right():
    """Whatever candidate is the truth, no more rows are lost than a third of those gained."""
    for seed in range(5):
        X, y, _ = make(n=100, d=5, n_labeled=10, seed=seed)
        clf = safe(n_separators=5).fit(X, y)
        supervised = clf.supervised_.predict(X[y < 0])
        for truth in clf.candidates_:
            assert np.mean(clf.labels_ == truth) >= np.mean(supervised == truth)


def test_better_than_supervised_where_classes_are_clusters():
    supervised, chosen = errors(safe(), lambda seed: clusters(seed, d=3, gap=5.0))
    assert chosen < 0.7 * supervised


def test_more_careful_than_the_transductive_machine():
    supervised, chosen = errors(safe(), raw_units, 4)
    assert chosen < supervised + 0.01
    assert errors(TransductiveSVMClassifier(), raw_units, 4)[1] > chosen + 0.02


def test_worse_than_supervised_where_no_separator_is_right():
    found = []
    for seed in range(10):
        X, y, truth = rare_class(seed)
        clf = safe().fit(X, y)
        predicted = clf.supervised_.predict(X[y < 0])
        found.append([np.mean(labels != truth[y < 0]) for labels in (predicted, clf.labels_)])
    supervised, chosen = np.mean(found, axis=0)
    assert chosen > supervised + 0.1


def test_random_state():
    X, y, _ = make(n=150, d=6, n_labeled=10)
    first, again, other = (safe(random_state=seed).fit(X, y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.coef_, again.coef_)
    np.testing.assert_array_equal(first.candidates_, again.candidates_)
    assert not np.array_equal(first.candidates_, other.candidates_)


@pytest.mark.parametrize("n_unlabeled", [1, 2, 3])
@pytest.mark.parametrize("fraction", [None, 0.0, 0.5, 1.0])
def test_few_unlabeled_rows(n_unlabeled, fraction):
    X, y, _ = make(n=10 + n_unlabeled, n_labeled=10)
    clf = safe(positive_fraction=fraction).fit(X, y)
    assert clf.labels_.shape == (n_unlabeled,)
    assert np.isfinite(clf.coef_).all()
    assert clf.converged_


def test_single_separator_wanted():
    X, y, _ = make(n=100, n_labeled=10)
    clf = safe(n_separators=1).fit(X, y)
    assert clf.candidates_.shape == (1, 90)
    np.testing.assert_array_equal(clf.labels_, clf.candidates_[0])


def test_no_unlabeled_rows():
    X, y, _ = make(n_labeled=120)
    clf = safe().fit(X, y)
    np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)
    np.testing.assert_allclose(clf.coef_, L2SVMClassifier(0.1, scaling="mean").fit(X, y).coef_)
    assert clf.labels_.shape == (0,)
    assert clf.candidates_.shape == (0, 0)
    assert clf.worst_case_improvement_ == 0.0


def test_weight_zero_is_as_good_as_absent():
    X, y, _ = make(n_labeled=20)
    s = np.ones(120)
    s[[0, 1, 50, 119]] = 0.0
    clf = safe().fit(X, y, s)
    kept = s > 0.0
    reference = safe().fit(X[kept], y[kept])
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-6)
    assert clf.labels_.shape == (100,)
    np.testing.assert_array_equal(clf.labels_[kept[y < 0]], reference.labels_)
