import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from neverworse.methods import EMDiscriminantAnalysis, LinearDiscriminantClassifier

from .samples import log_joint, make, most_likely, responsibilities

OPTIONS = [
    {},
    {"covariance": "spherical"},
    {"alpha": 0.5},
    {"alpha": 0.5, "covariance": "spherical"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_likelihood_never_falls(options, n_classes, weighted):
    X, y, _ = make(200, 3, n_classes, 24)
    s = np.linspace(0.5, 2.0, len(y)) if weighted else None
    clf = EMDiscriminantAnalysis(**options).fit(X, y, s)
    path = clf.log_likelihoods_
    assert clf.converged_
    assert len(path) == clf.n_iter_ + 1 > 3
    assert (np.diff(path) >= -1e-9 * np.abs(path[0])).all()
    assert path[-1] > path[0] + 1.0
    assert clf.log_likelihood_ == path[-1]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("unlabeled_weight", [1.0, 0.3])
def test_the_objective_is_the_one_of_the_docstring(n_classes, alpha, unlabeled_weight):
    X, y, _ = make(150, 3, n_classes, 30)
    s = np.linspace(0.5, 2.0, len(y))
    known = y >= 0
    weights = np.where(known, s, unlabeled_weight * s)
    clf = EMDiscriminantAnalysis(alpha=alpha).fit(X, y, weights)
    joint = log_joint(clf, X)
    terms = np.where(known, joint[np.arange(len(y)), y], logsumexp(joint, axis=1))
    penalty = alpha / 2 * weights.sum() * np.trace(np.linalg.inv(clf.covariance_))
    assert clf.log_likelihood_ == pytest.approx(weights @ terms - penalty, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_end_is_a_fixed_point(n_classes):
    X, y, _ = make(200, 3, n_classes, 24)
    clf = EMDiscriminantAnalysis(tol=1e-14, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(
        responsibilities(clf, y)[y == -1], clf.predict_proba(X[y == -1]), atol=1e-12
    )
    priors, means, covariance = most_likely(X, responsibilities(clf, y))
    np.testing.assert_allclose(clf.priors_, priors, atol=1e-6)
    np.testing.assert_allclose(clf.means_, means, atol=1e-5)
    np.testing.assert_allclose(clf.covariance_, covariance, atol=1e-5)


def test_agrees_with_a_gaussian_mixture_if_labels_weigh_nothing():
    X, y, _ = make(300, 2, 2, 40, shift=2.0)
    unlabeled = y == -1
    s = np.where(unlabeled, 1.0, 1e-9)
    clf = EMDiscriminantAnalysis(tol=1e-13, max_iter=5000).fit(X, y, s)
    supervised = clf.supervised_
    mixture = GaussianMixture(
        2,
        covariance_type="tied",
        weights_init=supervised.priors_,
        means_init=supervised.means_,
        precisions_init=np.linalg.inv(supervised.covariance_),
        tol=1e-13,
        reg_covar=0.0,
        max_iter=5000,
    ).fit(X[unlabeled])
    np.testing.assert_allclose(clf.means_, mixture.means_, atol=1e-5)
    np.testing.assert_allclose(clf.covariance_, mixture.covariances_, atol=1e-5)
    np.testing.assert_allclose(clf.priors_, mixture.weights_, atol=1e-6)


def test_one_step_by_hand():
    # Supervised: means -1 and 1, variance 1, so that the log odds of x are 2 x.
    X = np.array([[-2.0], [0.0], [0.0], [2.0], [1.0]])
    with pytest.warns(ConvergenceWarning, match="not converged after 1 steps"):
        clf = EMDiscriminantAnalysis(max_iter=1).fit(X, [0, 0, 1, 1, -1])
    share = 1 / (1 + np.exp(-2.0))
    mean = (2.0 + share) / (2.0 + share), (-2.0 + (1 - share)) / (2.0 + (1 - share))
    np.testing.assert_allclose(clf.means_.ravel(), mean[::-1])
    np.testing.assert_allclose(clf.priors_, [(3 - share) / 5, (2 + share) / 5])
    assert not clf.converged_


def test_unlabeled_rows_without_weight_change_nothing():
    X, y, _ = make()
    clf = EMDiscriminantAnalysis().fit(X, y, np.where(y >= 0, 1.0, 0.0))
    supervised = LinearDiscriminantClassifier().fit(X, y)
    np.testing.assert_array_equal(clf.coef_, supervised.coef_)
    assert clf.log_likelihood_ == supervised.log_likelihood_


def test_priors_that_are_given_stay():
    X, y, _ = make(n_classes=3)
    clf = EMDiscriminantAnalysis(priors=[0.5, 0.25, 0.25]).fit(X, y)
    assert clf.priors_.tolist() == [0.5, 0.25, 0.25]
    assert (np.diff(clf.log_likelihoods_) >= -1e-9).all()
    estimated = EMDiscriminantAnalysis().fit(X, y)
    assert np.abs(estimated.priors_ - clf.priors_).max() > 0.01
