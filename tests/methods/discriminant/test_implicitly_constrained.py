from functools import partial

import numpy as np
import pytest
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from neverworse.methods import ImplicitlyConstrainedDiscriminantAnalysis
from neverworse.methods.discriminant._gaussian import Family, Sample
from neverworse.methods.discriminant._soft_labels import labeled_loss

from .samples import make, most_likely, one_hot, responsibilities, training

FAMILIES = [
    Family(False, 0.0, None),
    Family(True, 0.0, None),
    Family(False, 0.5, None),
    Family(True, 0.5, np.array([0.2, 0.5, 0.3])),
    Family(False, 0.0, np.array([0.2, 0.5, 0.3])),
]


def labeled_log_likelihood(X, y, shares, alpha=0.0, weights=None):
    """The objective, written down plainly: labeled rows under the parameters of all rows."""
    s = np.ones(len(X)) if weights is None else weights
    priors, means, covariance = most_likely(X, shares, alpha, s)
    precision = np.linalg.inv(covariance)
    known = y >= 0
    apart = X[known] - means[y[known]]
    terms = (
        np.log(priors)[y[known]]
        - 0.5 * np.einsum("ij,jk,ik->i", apart, precision, apart)
        - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    )
    return s[known] @ (terms - alpha / 2 * np.trace(precision))


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_derivative_is_that_of_finite_differences(family):
    X, y, _ = make(40, 3, 3, 15)
    s = np.linspace(0.5, 2.0, len(y))
    target, known = one_hot(y, 3).T, y >= 0
    labeled = Sample.of(training(X[known], target[:, known], s[known], known[known]), family)
    sample = Sample.of(training(X, target, s, known), family)
    supervised = labeled.most_likely(labeled.known).about(sample.moments.centre)
    loss = partial(labeled_loss, supervised=supervised, sample=sample)
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), len(y)).T
    slopes = sample.scores(loss(sample.all_sums(q))[1]) * sample.free
    for _ in range(5):  # directions in which shares still add up to one
        step = rng.normal(size=q.shape)
        step -= step.mean(axis=0)
        ends = [loss(sample.all_sums(q + h * step))[0] for h in (1e-5, -1e-5)]
        assert np.vdot(slopes, step) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_and_parameters_are_those_of_the_soft_labels(n_classes, alpha, weighted):
    X, y, _ = make(100, 3, n_classes, 24)
    s = np.linspace(0.5, 2.0, len(y)) if weighted else None
    clf = ImplicitlyConstrainedDiscriminantAnalysis(alpha=alpha).fit(X, y, s)
    shares = responsibilities(clf, y)
    assert shares.min() >= 0.0
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
    priors, means, covariance = most_likely(X, shares, alpha, s)
    np.testing.assert_allclose(clf.priors_, priors, atol=1e-12)
    np.testing.assert_allclose(clf.means_, means, atol=1e-11)
    np.testing.assert_allclose(clf.covariance_, covariance, atol=1e-11)
    expected = labeled_log_likelihood(X, y, shares, alpha, s)
    assert clf.log_likelihood_ == pytest.approx(expected, rel=1e-10)
    assert clf.log_likelihood_ < clf.supervised_.log_likelihood_


@pytest.mark.parametrize("options", [{}, {"covariance": "spherical"}, {"alpha": 0.5}], ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_conditions_of_karush_kuhn_and_tucker(options, n_classes):
    X, y, _ = make(80, 3, n_classes, 24)
    clf = ImplicitlyConstrainedDiscriminantAnalysis(tol=1e-9, **options).fit(X, y)
    assert clf.converged_
    shares, alpha = responsibilities(clf, y), options.get("alpha", 0.0)
    spherical = "covariance" in options

    def loss(shares):
        if not spherical:
            return -labeled_log_likelihood(X, y, shares, alpha)
        priors, means, covariance = most_likely(X, shares)
        variance = np.trace(covariance) / 3
        known = y >= 0
        square = ((X[known] - means[y[known]]) ** 2).sum(axis=1)
        terms = np.log(priors)[y[known]] - 1.5 * np.log(2 * np.pi * variance)
        return -np.sum(terms - square / (2 * variance))

    # Moving a little share from a class that has some to another does not lower the loss.
    h, here = 1e-6, loss(shares)
    moved = 0
    for j in np.flatnonzero(y < 0):
        for k in np.flatnonzero(shares[j] > h):
            for other in range(n_classes):
                if other != k:
                    shares[j, k] -= h
                    shares[j, other] += h
                    assert loss(shares) >= here - 1e-4 * h
                    shares[j, k] += h
                    shares[j, other] -= h
                    moved += 1
    assert moved >= np.sum(y < 0)


def test_one_unlabeled_row_by_a_fine_grid():
    X = np.array([[-2.0], [0.0], [1.0], [3.0], [2.5]])
    y = np.array([0, 0, 1, 1, -1])
    clf = ImplicitlyConstrainedDiscriminantAnalysis(tol=1e-12).fit(X, y)

    def loss(q):
        return -labeled_log_likelihood(X, y, np.r_[one_hot(y[:4], 2), [[1 - q, q]]])

    best = optimize.minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    grid = [loss(q) for q in np.linspace(0, 1, 1001)]
    assert min(grid) >= best.fun - 1e-9
    np.testing.assert_allclose(clf.soft_labels_, [best.x], atol=1e-5)
    assert clf.log_likelihood_ == pytest.approx(-best.fun, rel=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_random_labels_are_better(n_classes):
    X, y, truth = make(60, 2, n_classes, 15)
    clf = ImplicitlyConstrainedDiscriminantAnalysis().fit(X, y)
    rng = np.random.default_rng(1)
    others = [one_hot(truth, n_classes)]
    for _ in range(200):
        q = one_hot(y, n_classes)
        q[y < 0] = rng.dirichlet(np.full(n_classes, 0.3), np.sum(y < 0))
        others.append(q)
    assert clf.log_likelihood_ > max(labeled_log_likelihood(X, y, q) for q in others)


def test_stopped_early():
    X, y, _ = make(n_classes=3)
    with pytest.warns(ConvergenceWarning, match="has not converged after 2 steps"):
        clf = ImplicitlyConstrainedDiscriminantAnalysis(max_iter=2).fit(X, y)
    assert clf.n_iter_ == 2
    assert not clf.converged_
    assert (
        clf.log_likelihood_ < ImplicitlyConstrainedDiscriminantAnalysis().fit(X, y).log_likelihood_
    )
