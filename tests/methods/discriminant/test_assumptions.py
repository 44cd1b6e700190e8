"""Where the assumptions of a method hold it is better than the supervised one; elsewhere, worse."""

import numpy as np
import pytest

from neverworse.methods import (
    ContrastivePessimisticDiscriminantAnalysis,
    EMDiscriminantAnalysis,
    ImplicitlyConstrainedDiscriminantAnalysis,
    LinearDiscriminantClassifier,
    MomentConstrainedDiscriminantAnalysis,
)

from .samples import SEMI, log_joint

SEEDS = range(15)
semi_supervised = pytest.mark.parametrize("classifier", SEMI)


def gaussian_classes(seed, n=600, d=4, n_labeled=12, apart=3.0):
    """What discriminant analysis assumes, and few labels."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    X = rng.normal(size=(n, d))
    X[:, 0] += apart * truth
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def clusters_across_classes(seed, n=600, n_labeled=8):
    """Two clusters far apart that have nothing to do with the classes, which overlap."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    X = rng.normal(size=(n, 2))
    X[:, 0] += 1.5 * truth
    X[:, 1] += 20.0 * rng.integers(0, 2, n)
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def clusters_within_a_class(seed, n=600, n_labeled=20):
    """The first class has a second cluster, far from the other class, that has no labels."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    far = (np.arange(n) >= n_labeled) & (rng.random(n) < 0.3)
    truth[far] = 0
    X = rng.normal(size=(n, 2))
    X[:, 0] += np.where(far, -8.0, 2.5 * truth)
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def compare(classifier, make):
    """Errors and mean losses on the unlabeled rows: supervised, and with these rows."""
    errors, losses = [], []
    for seed in SEEDS:
        X, y, truth = make(seed)
        clf = classifier.fit(X, y)
        new, labels = X[y < 0], truth[y < 0]
        pair = clf.supervised_, clf
        errors.append([np.mean(model.predict(new) != labels) for model in pair])
        joint = [log_joint(model, new) for model in pair]
        losses.append([-log[np.arange(len(labels)), labels].mean() for log in joint])
    return np.array(errors).T, np.array(losses).T


@semi_supervised
def test_gaussian_classes_become_more_likely(classifier):
    _, (before, after) = compare(classifier(), gaussian_classes)
    assert np.mean(after < before) > 0.9
    assert after.mean() < before.mean() - 1.0


@pytest.mark.parametrize(
    "classifier",
    [
        EMDiscriminantAnalysis(),
        ImplicitlyConstrainedDiscriminantAnalysis(),
        ContrastivePessimisticDiscriminantAnalysis(),
    ],
    ids=lambda clf: type(clf).__name__,
)
def test_fewer_errors_with_gaussian_classes(classifier):
    (before, after), _ = compare(classifier, gaussian_classes)
    assert np.mean(after <= before) >= 0.8
    assert after.mean() < before.mean() - 0.005


@pytest.mark.parametrize("options", [{}, {"covariance": "spherical", "priors": "uniform"}])
def test_fewer_errors_with_moment_constraints_where_the_threshold_is_badly_known(options):
    classifier = MomentConstrainedDiscriminantAnalysis(**options)
    (before, after), _ = compare(classifier, lambda seed: gaussian_classes(seed, 600, 1, 6))
    assert after.mean() < before.mean() - 0.005


def test_expectation_maximisation_reaches_the_best_error_of_far_gaussians():
    for seed in SEEDS:
        X, y, truth = gaussian_classes(seed, 600, 2, 6, apart=6.0)
        clf = EMDiscriminantAnalysis().fit(X, y)
        oracle = LinearDiscriminantClassifier().fit(X, truth)
        assert abs(clf.score(X, truth) - oracle.score(X, truth)) <= 2 / 600


def test_expectation_maximisation_is_worse_where_clusters_are_not_classes():
    (before, after), (less, more) = compare(EMDiscriminantAnalysis(), clusters_across_classes)
    assert after.mean() > before.mean() + 0.03
    assert after.max() > 0.45  # as good as guessing
    assert np.mean(more > less + 1.0) > 0.3  # in likelihood of rows with their true classes too


@semi_supervised
def test_more_errors_where_a_class_has_a_second_cluster(classifier):
    (before, after), _ = compare(classifier(), clusters_within_a_class)
    assert after.mean() > before.mean() + 0.02
    assert np.mean(after > before) > 0.8


@pytest.mark.parametrize(
    "make", [gaussian_classes, clusters_across_classes, clusters_within_a_class]
)
def test_pessimism_is_never_less_likely_whether_assumptions_hold_or_not(make):
    for seed in SEEDS:
        X, y, truth = make(seed)
        clf = ContrastivePessimisticDiscriminantAnalysis().fit(X, y)
        rows = np.arange(len(y))
        ours = log_joint(clf, X)[rows, truth].sum()
        theirs = log_joint(clf.supervised_, X)[rows, truth].sum()
        certificate = clf.certificate_
        assert certificate.holds
        assert ours - theirs >= certificate.guaranteed_improvement > 0.0
        assert ours - theirs <= -certificate.best_case
