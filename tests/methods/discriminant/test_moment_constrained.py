import numpy as np
import pytest
from scipy.linalg import sqrtm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from neverworse.methods import (
    LinearDiscriminantClassifier,
    MomentConstrainedDiscriminantAnalysis,
    NearestMeanClassifier,
)

from .samples import make


def total(clf, shares):
    """Mean and covariance of all rows together, as the classes have them."""
    mean = shares @ clf.means_
    apart = clf.means_ - mean
    return mean, clf.covariance_ + (apart.T * shares) @ apart


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_moments_are_those_of_all_rows(n_classes, alpha, weighted):
    X, y, _ = make(200, 3, n_classes, 40)
    s = np.linspace(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    clf = MomentConstrainedDiscriminantAnalysis(alpha=alpha).fit(X, y, s)
    mean, covariance = total(clf, clf.priors_)
    np.testing.assert_allclose(mean, np.average(X, axis=0, weights=s), atol=1e-12)
    expected = np.cov(X.T, aweights=s, ddof=0) + alpha * np.eye(3)
    np.testing.assert_allclose(covariance, expected, atol=1e-10)
    # The supervised classifier satisfies this for the labeled rows, and not for all.
    of_labeled = total(clf.supervised_, clf.priors_)[1]
    assert np.abs(of_labeled - expected).max() > 0.05


def test_it_is_discriminant_analysis_of_labeled_rows_that_were_moved():
    X, y, _ = make(200, 3, 3, 40)
    known = X[y >= 0]
    before, after = np.cov(known.T, ddof=0), np.cov(X.T, ddof=0)
    matrix = sqrtm(after @ np.linalg.inv(before))
    moved = (known - known.mean(axis=0)) @ np.real(matrix).T + X.mean(axis=0)
    reference = LinearDiscriminantAnalysis(solver="lsqr").fit(moved, y[y >= 0])
    clf = MomentConstrainedDiscriminantAnalysis().fit(X, y)
    np.testing.assert_allclose(clf.means_, reference.means_, atol=1e-9)
    np.testing.assert_allclose(clf.covariance_, reference.covariance_, atol=1e-9)
    np.testing.assert_allclose(clf.predict_proba(X), reference.predict_proba(X), atol=1e-9)


def test_one_column_by_hand():
    # Labeled: mean 3, variance 5 (1 within the classes, 4 between). All: mean 4, variance 20.
    labeled = np.array([[0.0], [2.0], [4.0], [6.0]])
    unlabeled = np.array([[5.0 - np.sqrt(33.0)], [5.0 + np.sqrt(33.0)]] * 2)
    X = np.r_[labeled, unlabeled]
    assert X.mean() == pytest.approx(4.0)
    assert X.var() == pytest.approx(20.0)
    y = [0, 0, 1, 1, -1, -1, -1, -1]
    clf = MomentConstrainedDiscriminantAnalysis().fit(X, y)  # twice as wide
    np.testing.assert_allclose(clf.means_.ravel(), [0.0, 8.0], atol=1e-12)
    np.testing.assert_allclose(clf.covariance_, [[4.0]])
    np.testing.assert_allclose(clf.decision_function([[4.0], [5.0]]), [0.0, 2.0], atol=1e-12)


def test_it_does_not_depend_on_the_coordinates():
    X, y, _ = make(200, 3, 2, 30)
    A = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, -1.0], [0.3, 0.0, 50.0]])
    clf = MomentConstrainedDiscriminantAnalysis()
    first = clf.fit(X, y).decision_function(X)
    second = clf.fit(X @ A + 7.0, y).decision_function(X @ A + 7.0)
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_nearest_mean_is_shifted(n_classes):
    X, y, _ = make(200, 3, n_classes, 20)
    clf = MomentConstrainedDiscriminantAnalysis(covariance="spherical", priors="uniform")
    clf.fit(X, y)
    shift = X.mean(axis=0) - X[y >= 0].mean(axis=0)
    supervised = NearestMeanClassifier().fit(X, y)
    np.testing.assert_allclose(clf.means_, supervised.means_ + shift, atol=1e-12)
    np.testing.assert_array_equal(clf.covariance_, supervised.covariance_)
    nearest = ((X[:, None] - clf.means_) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(clf.predict(X), nearest)
    shares = np.bincount(y[y >= 0]) / np.sum(y >= 0)
    np.testing.assert_allclose(shares @ clf.means_, X.mean(axis=0), atol=1e-12)


def test_directions_that_are_left_out_are_left_alone():
    X, y, _ = make(200, 3, 2, 30)
    dependent = np.c_[X, X @ [1.0, -2.0, 0.5], np.full(len(X), 5.0)]
    clf = MomentConstrainedDiscriminantAnalysis().fit(dependent, y)
    assert clf.rank_ == 3
    assert np.isfinite(clf.coef_).all()
    reference = MomentConstrainedDiscriminantAnalysis().fit(X, y)
    np.testing.assert_allclose(
        clf.decision_function(dependent), reference.decision_function(X), atol=1e-6
    )


def test_classes_that_were_moved_are_not_the_supervised_ones():
    X, y, _ = make()
    clf = MomentConstrainedDiscriminantAnalysis().fit(X, y)
    supervised = LinearDiscriminantClassifier().fit(X, y)
    np.testing.assert_array_equal(clf.supervised_.coef_, supervised.coef_)
    assert np.abs(clf.coef_ - supervised.coef_).max() > 1e-3


def test_unlabeled_rows_on_a_line_far_out_are_an_error_with_words():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(8, 2)), 1e9 * np.array([[1.0, 1.0], [-1.0, -1.0]])])
    clf = MomentConstrainedDiscriminantAnalysis()
    with pytest.raises(ValueError, match=r"covariance within the classes has no inverse.*alpha"):
        clf.fit(X, [0, 1] * 4 + [-1] * 2)
    assert not hasattr(clf, "coef_")
