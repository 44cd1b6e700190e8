import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from neverworse import Certificate
from neverworse.methods import ContrastivePessimisticDiscriminantAnalysis, LikelihoodCertificate

from .samples import log_joint, make, most_likely, responsibilities

OPTIONS = [
    {},
    {"covariance": "spherical"},
    {"alpha": 0.5},
    {"priors": "uniform"},
    {"covariance": "spherical", "priors": "uniform", "alpha": 0.2},
]


def gains(clf, X, y, weights=None):
    """How much more likely each row is than for the supervised parameters, for each class.

    With the change of the penalty, which labels have no influence on.
    """
    s = np.ones(len(X)) if weights is None else weights
    gain = log_joint(clf, X) - log_joint(clf.supervised_, X)
    traces = [np.trace(np.linalg.inv(m.covariance_)) for m in (clf, clf.supervised_)]
    return s[:, None] * gain, -clf.alpha / 2 * s.sum() * (traces[0] - traces[1])


def extremes(clf, X, y, weights=None):
    """Worst and best case over all labelings, row by row."""
    gain, penalty = gains(clf, X, y, weights)
    known = gain[y >= 0, y[y >= 0]].sum() + penalty
    free = gain[y < 0]
    return -known - free.min(axis=1).sum(), -known - free.max(axis=1).sum()


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_never_less_likely(options, n_classes, weighted):
    X, y, _ = make(120, 3, n_classes, 24)
    s = np.linspace(0.5, 2.0, len(y)) if weighted else None
    clf = ContrastivePessimisticDiscriminantAnalysis(**options).fit(X, y, s)
    certificate = clf.certificate_
    worst, best = extremes(clf, X, y, s)
    assert certificate.holds
    assert certificate.converged
    assert clf.converged_
    assert certificate.guaranteed_improvement > 0.01
    assert certificate.worst_case == pytest.approx(worst, rel=1e-8, abs=1e-8)
    assert certificate.best_case == pytest.approx(best, rel=1e-8, abs=1e-8)
    assert certificate.worst_case >= worst
    assert certificate.best_case <= best
    assert 0.0 <= certificate.duality_gap <= 1e-6
    assert certificate.n_labeled == 24
    assert certificate.n_unlabeled == 96


def brute_force(clf, X, y):
    """The largest and the smallest difference of losses over all hard labelings, one by one."""
    n_classes, unlabeled = len(clf.classes_), np.flatnonzero(y < 0)
    gain, penalty = gains(clf, X, y)
    labels, differences = y.copy(), []
    for labeling in itertools.product(range(n_classes), repeat=len(unlabeled)):
        labels[unlabeled] = labeling
        differences.append(-gain[np.arange(len(y)), labels].sum() - penalty)
    return max(differences), min(differences)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_classes=st.integers(2, 3),
    n_unlabeled=st.integers(1, 6),
    d=st.integers(1, 3),
    alpha=st.sampled_from([0.0, 0.0, 0.3]),
    spread=st.sampled_from([0.5, 3.0, 30.0]),
    offset=st.sampled_from([0.0, 1e3, -1e6]),
    max_iter=st.sampled_from([1, 3, None]),
)
def test_every_labeling_one_by_one(
    seed, n_classes, n_unlabeled, d, alpha, spread, offset, max_iter
):
    rng = np.random.default_rng(seed)
    n_labeled = n_classes * (d + 2)
    y = np.r_[np.arange(n_labeled) % n_classes, np.full(n_unlabeled, -1)]
    X = rng.normal(size=(len(y), d)) + y[:, None]
    X[n_labeled:] = spread * rng.normal(size=(n_unlabeled, d))
    X += offset
    clf = ContrastivePessimisticDiscriminantAnalysis(
        alpha=alpha, max_iter=max_iter, max_time=5.0, priors=None if seed % 2 else "uniform"
    ).fit(X, y)
    worst, best = brute_force(clf, X, y)
    certificate = clf.certificate_
    assert certificate.holds
    # What the test computes from the parameters has rounding errors of its own.
    allowance = 1e-9 * (1.0 + abs(offset)) * (1.0 + abs(worst) + abs(best))
    assert worst <= certificate.worst_case + allowance
    assert best >= certificate.best_case - allowance
    assert certificate.worst_case - worst <= certificate.rounding_bound * 2 + allowance


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_soft_labels_and_parameters_are_a_saddle_point(n_classes, alpha):
    X, y, _ = make(100, 3, n_classes, 24)
    clf = ContrastivePessimisticDiscriminantAnalysis(alpha=alpha, tol=1e-9).fit(X, y)
    shares = responsibilities(clf, y)
    # The parameters are the best ones for the soft labels ...
    priors, means, covariance = most_likely(X, shares, alpha)
    np.testing.assert_allclose(clf.priors_, priors, atol=1e-12)
    np.testing.assert_allclose(clf.means_, means, atol=1e-11)
    np.testing.assert_allclose(clf.covariance_, covariance, atol=1e-11)
    # ... and the soft labels the worst ones for the parameters.
    gain, penalty = gains(clf, X, y)
    value = np.vdot(shares, gain) + penalty
    assert clf.certificate_.guaranteed_improvement == pytest.approx(value, rel=1e-8)
    least = gain[y < 0].min(axis=1, keepdims=True)
    slack = np.where(shares[y < 0] > 1e-6, gain[y < 0] - least, 0.0)
    np.testing.assert_allclose(slack, 0.0, atol=1e-3)


def test_no_other_parameters_guarantee_more():
    X, y, _ = make(80, 2, 2, 16)
    clf = ContrastivePessimisticDiscriminantAnalysis(tol=1e-9).fit(X, y)
    supervised = log_joint(clf.supervised_, X)
    rng = np.random.default_rng(0)

    def guaranteed(priors, means, covariance):
        precision = np.linalg.inv(covariance)
        apart = X[:, None] - means
        joint = np.log(priors) - 0.5 * np.einsum("nki,ij,nkj->nk", apart, precision, apart)
        gain = joint - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1] - supervised
        return gain[y >= 0, y[y >= 0]].sum() + gain[y < 0].min(axis=1).sum()

    best = guaranteed(clf.priors_, clf.means_, clf.covariance_)
    assert best == pytest.approx(clf.certificate_.guaranteed_improvement, rel=1e-6)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(50):
            twist = np.eye(2) + size * rng.normal(size=(2, 2))
            priors = clf.priors_ * np.exp(size * rng.normal(size=2))
            other = guaranteed(
                priors / priors.sum(),
                clf.means_ + size * rng.normal(size=(2, 2)),
                twist @ clf.covariance_ @ twist.T,
            )
            assert other <= best + 1e-6


def test_one_unlabeled_row_by_hand():
    # Supervised: means -1 and 1, variance 1. The unlabeled row lies in the middle, so that its
    # most pessimistic label is a half; then the means are ±4/5 and the variance is 21/25.
    X = np.array([[-2.0], [0.0], [0.0], [2.0], [0.0]])
    clf = ContrastivePessimisticDiscriminantAnalysis(tol=1e-12).fit(X, [0, 0, 1, 1, -1])
    np.testing.assert_allclose(clf.soft_labels_, [0.5], atol=1e-9)
    np.testing.assert_allclose(clf.means_.ravel(), [-0.8, 0.8], atol=1e-9)
    np.testing.assert_allclose(clf.covariance_, [[8 / 5 - 0.64]], atol=1e-9)
    variance = 0.96
    before = -0.5 * (4 * 1.0 + 1.0)
    after = -2.5 * np.log(variance) - 2.5
    assert clf.certificate_.guaranteed_improvement == pytest.approx(after - before, rel=1e-6)


# Stopped early, and rounding errors


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_stopped_early_is_certified(seed, n_classes):
    X, y, _ = make(300, 4, n_classes, 8 * n_classes, seed)
    full = ContrastivePessimisticDiscriminantAnalysis().fit(X, y).certificate_
    for limit in ({"max_iter": 1}, {"max_iter": 3}, {"max_time": 0.0}):
        clf = ContrastivePessimisticDiscriminantAnalysis(**limit).fit(X, y)
        certificate = clf.certificate_
        assert certificate.holds
        assert certificate.stopped_early is not certificate.converged
        assert extremes(clf, X, y)[0] <= certificate.worst_case + 1e-9
        if certificate.reason:
            np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)
        assert certificate.guaranteed_improvement <= full.guaranteed_improvement * (1 + 1e-5)


def test_copies_of_the_labeled_rows_leave_nothing_to_improve():
    X, y, _ = make(30, 2, 2, 30)
    both = np.r_[X, X]
    clf = ContrastivePessimisticDiscriminantAnalysis().fit(both, np.r_[y, np.full(30, -1)])
    certificate = clf.certificate_
    assert certificate.holds
    assert certificate.reason == "rounding"
    assert certificate.worst_case == certificate.best_case == 0.0
    np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)
    assert "smaller than the rounding errors" in certificate.summary()


def exact_joint(model, X):
    """Joint densities of the parameters, digit by digit."""
    mp.dps = 60
    covariance = mp.matrix(model.covariance_.tolist())
    precision, half = covariance**-1, mp.log(mp.det(2 * mp.pi * covariance)) / 2
    found = []
    for row in X:
        terms = []
        for prior, mean in zip(model.priors_, model.means_, strict=True):
            apart = mp.matrix([mp.mpf(a) - mp.mpf(b) for a, b in zip(row, mean, strict=True)])
            terms.append(mp.log(prior) - (apart.T * precision * apart)[0] / 2 - half)
        found.append(terms)
    return found


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
@pytest.mark.parametrize("thin", [1.0, 1e-3])
def test_the_rounding_bound_covers_the_rounding_errors(offset, thin):
    X, y, _ = make(60, 3, 2, 14)
    X[:, 2] = X[:, 0] + thin * X[:, 2]  # nearly dependent
    X = X + offset
    clf = ContrastivePessimisticDiscriminantAnalysis().fit(X, y)
    worst = least = most = mp.mpf(0)
    for ours, theirs, code in zip(
        *(exact_joint(m, X) for m in (clf, clf.supervised_)), y, strict=True
    ):
        losses = [b - a for a, b in zip(ours, theirs, strict=True)]
        worst += losses[code] if code >= 0 else max(losses)
        least -= theirs[code] if code >= 0 else max(theirs)
        most -= theirs[code] if code >= 0 else min(theirs)
    certificate = clf.certificate_
    low, high = certificate.supervised_loss
    assert low <= least
    assert most <= high
    assert worst <= certificate.worst_case
    assert worst >= certificate.worst_case - 2 * certificate.rounding_bound
    assert certificate.rounding_bound < 0.5 * certificate.guaranteed_improvement
    assert thin < 1.0 or certificate.rounding_bound < 1e-4


# The certificate as an object


def test_the_certificate_has_the_form_of_that_of_the_projection():
    X, y, _ = make()
    certificate = ContrastivePessimisticDiscriminantAnalysis(alpha=0.5).fit(X, y).certificate_
    assert isinstance(certificate, LikelihoodCertificate)
    assert isinstance(certificate, Certificate)
    values = json.loads(json.dumps(certificate.to_dict()))
    assert values["holds"] is True
    assert values["worst_case"] == certificate.worst_case
    assert values["guaranteed_improvement"] == -certificate.worst_case
    assert values["penalty"] == 0.5
    assert values["distance"] == "likelihood"
    assert values["summary"] == certificate.summary() == str(certificate)
    page = certificate._repr_html_()
    assert "Never worse" in page
    assert "guaranteed improvement" in page
    low, high = certificate.supervised_loss
    assert low < high


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_words_of_the_certificate(n_classes):
    X, y, _ = make(n_classes=n_classes)
    text = ContrastivePessimisticDiscriminantAnalysis().fit(X, y).certificate_.summary()
    assert text.startswith("Never worse: whatever the true labels of the 96 unlabeled rows, the ")
    assert "the negative log-likelihood on all 120 training rows is lower than that of the " in text
    assert "No other parameters guarantee more: relative duality gap" in text
    assert ("shared by several" in text) == (n_classes == 3)
    assert "projection" not in text
    penalised = ContrastivePessimisticDiscriminantAnalysis(alpha=1.0).fit(X, y).certificate_
    assert "the penalised negative log-likelihood" in penalised.summary()
    early = ContrastivePessimisticDiscriminantAnalysis(max_iter=1, tol=1e-12).fit(X, y)
    assert "was stopped early, at a relative duality gap" in early.certificate_.summary()


def test_supervised_loss_is_bounded_over_all_labelings():
    X, y, _ = make()
    clf = ContrastivePessimisticDiscriminantAnalysis().fit(X, y)
    loss = -log_joint(clf.supervised_, X)
    known = loss[y >= 0, y[y >= 0]].sum()
    low, high = known + loss[y < 0].min(axis=1).sum(), known + loss[y < 0].max(axis=1).sum()
    np.testing.assert_allclose(clf.certificate_.supervised_loss, [low, high], rtol=1e-10)


def test_counts_of_soft_labels():
    X, y, _ = make(n_classes=2)
    clf = ContrastivePessimisticDiscriminantAnalysis().fit(X, y)
    q, certificate = clf.soft_labels_, clf.certificate_
    assert certificate.n_zero == np.sum(q == 0.0)
    assert certificate.n_one == np.sum(q == 1.0)
    assert certificate.n_fractional == np.sum((q > 0.0) & (q < 1.0))


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_no_unlabeled_rows(offset):
    X, y, _ = make(n_labeled=120)
    X = X + offset
    clf = ContrastivePessimisticDiscriminantAnalysis().fit(X, y)
    certificate = clf.certificate_
    assert certificate.reason == "no unlabeled rows"
    assert certificate.holds
    assert certificate.worst_case == certificate.best_case == 0.0
    low, high = certificate.supervised_loss
    loss = -sum(terms[code] for terms, code in zip(exact_joint(clf, X), y, strict=True))
    assert low <= loss <= high
    assert high - low < 1e-6 * abs(high)
    assert certificate.summary().startswith("There are no unlabeled rows")
