"""Where the boundary should keep away from unlabeled rows, and where it should not."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from neverworse import audit
from neverworse.methods import NullCategoryNoiseModel
from tests.methods.null_category.problems import fixed, make


def compare(problems, **options):
    """Return mean errors, with unlabeled rows and without."""
    scores = []
    for X, y, truth in problems:
        clf = NullCategoryNoiseModel(**options).fit(X, y)
        assert clf.converged_
        scores.append([1 - clf.score(X, truth), 1 - clf.supervised_.score(X, truth)])
    return np.mean(scores, axis=0)


def two_clusters(seed, classes_are_clusters, n=80):
    """Rows in two clusters, whose classes are the clusters, or cut both of them in two."""
    rng = np.random.default_rng(seed)
    cluster = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + [4, 0] * cluster[:, None]
    truth = cluster if classes_are_clusters else (X[:, 1] > 0).astype(int)
    return X, np.where(np.arange(n) < (6 if classes_are_clusters else 12), truth, -1), truth


def test_it_helps_where_classes_are_clusters():
    problems = [two_clusters(seed, classes_are_clusters=True) for seed in range(4)]
    ours, supervised = compare(problems)
    assert ours < 0.04  # the best boundary has 0.023
    assert ours < 0.6 * supervised


def test_it_harms_where_classes_cut_clusters():
    problems = [two_clusters(seed, classes_are_clusters=False) for seed in range(4)]
    ours, supervised = compare(problems)
    assert ours > 1.2 * supervised


def test_two_moons():
    problems = []
    for seed in range(8):
        X, truth = make_moons(160, noise=0.1, random_state=seed)
        chosen = [np.flatnonzero(truth == k)[:6] for k in (0, 1)]
        y = np.full(160, -1)
        y[np.concatenate(chosen)] = np.repeat([0, 1], 6)
        problems.append((X, y, truth))
    kernel = ConstantKernel(10.0) * RBF(0.3)
    ours, supervised = compare(problems, kernel=kernel, optimize=False)
    assert ours < 0.7 * supervised


def test_boundary_moves_out_of_a_dense_region():
    """Supervised, it lies in the middle between two labels; a cluster there belongs to one side."""
    cluster = np.linspace(0.4, 0.9, 30)
    X = np.r_[-1.0, 1.0, cluster][:, None]
    y = np.r_[0, 1, np.full(30, -1)]
    clf = fixed(10.0, 1.0, width=2.0).fit(X, y)
    T = np.linspace(-1.0, 1.0, 2001)[:, None]
    boundary, supervised = (
        T[np.argmax(model.decision_function(T) > 0.0), 0] for model in (clf, clf.supervised_)
    )
    assert supervised == pytest.approx(0.0, abs=2e-3)
    assert -0.5 < boundary < -0.05


def test_the_audit_sees_both():
    X, y, truth = two_clusters(5, classes_are_clusters=False)
    clf = NullCategoryNoiseModel().fit(X, y)
    found = audit(clf, clf.supervised_, X, y)
    assert found.best_case < 0.0 < found.worst_case
    known = audit(clf, clf.supervised_, X, truth)
    assert 0.0 < known.worst_case <= found.worst_case


# The supervised counterpart


def test_no_unlabeled_rows():
    X, y, _ = make(n=30, n_labeled=30)
    clf = NullCategoryNoiseModel().fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), clf.supervised_.predict_proba(X))
    assert clf.kernel_ == clf.supervised_.kernel_
    assert not hasattr(clf.supervised_, "supervised_")


def test_supervised_is_the_fit_to_labeled_rows():
    X, y, _ = make()
    clf = NullCategoryNoiseModel().fit(X, y)
    alone = NullCategoryNoiseModel().fit(X[:12], y[:12])
    np.testing.assert_array_equal(clf.supervised_.predict_proba(X), alone.predict_proba(X))
    assert np.abs(clf.predict_proba(X) - alone.predict_proba(X)).max() > 0.05


def test_without_a_null_category_unlabeled_rows_say_nothing():
    X, y, _ = make()
    clf = fixed(width=0.0).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), clf.supervised_.predict_proba(X), rtol=1e-5)
    assert clf.log_marginal_likelihood_ == pytest.approx(
        clf.supervised_.log_marginal_likelihood_, rel=1e-6
    )
    # It starts where the labeled rows lead to.
    assert clf.n_iter_ == 1 < clf.supervised_.n_iter_


def test_rates_pull_unlabeled_rows_to_the_class_that_is_rarely_labeled():
    X, y, _ = make()
    even = fixed().fit(X, y).predict_proba(X)[12:, 1].mean()
    second = fixed(unlabeled_rates=(0.1, 0.9)).fit(X, y).predict_proba(X)[12:, 1].mean()
    first = fixed(unlabeled_rates=(0.9, 0.1)).fit(X, y).predict_proba(X)[12:, 1].mean()
    assert first < even - 0.01
    assert second > even + 0.01
