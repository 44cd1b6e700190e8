"""What the certificate says, in numbers, words and HTML."""

import dataclasses
import json
from html.parser import HTMLParser

import numpy as np
import pytest

from neverworse import (
    ICLSClassifier,
    ProjectedLeastSquaresClassifier,
    ProjectedLeastSquaresRegressor,
    audit,
)
from neverworse.projection.certificate.certify import loss_difference
from neverworse.projection.labels import Labels


def _data(n_labeled=12, n=200, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    X = rng.normal(size=(n, 5)) + 0.7 * truth[:, None]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def _certificate(n_labeled=12, **kwargs):
    X, y, _ = _data(n_labeled)
    return ProjectedLeastSquaresClassifier(**{"alpha": 0.0, **kwargs}).fit(X, y).certificate_


def test_never_worse():
    certificate = _certificate()
    assert certificate.holds
    assert certificate.guaranteed_improvement == -certificate.worst_case > 0
    assert certificate.best_case < certificate.worst_case
    assert certificate.n_labeled == 12
    assert certificate.n_unlabeled == 188
    counts = certificate.n_zero, certificate.n_one, certificate.n_fractional
    assert sum(counts) == 188
    assert 0 < certificate.n_fractional <= 6  # at most one for each weight
    text = certificate.summary()
    assert text.startswith("Never worse: whatever the true labels of the 188 unlabeled rows")
    assert f"{certificate.guaranteed_improvement:.4g}" in text


def test_a_summary_can_be_printed_in_the_code_page_of_windows():
    small = dataclasses.replace(_certificate(), worst_case=-3e-5, supervised_loss=(0.0, np.inf))
    assert "at least 3e-5 and" in small.summary()
    assert "between 0 and inf" in small.summary()
    small.summary().encode("cp1252")


def test_labels_are_counted_in_words_that_agree():
    certificate = dataclasses.replace(_certificate(), n_zero=1, n_one=0, n_fractional=1)
    assert "Imputed labels: 1 zero, 0 ones, 1 fractional." in certificate.summary()
    several = dataclasses.replace(certificate.assumptions, task="multiclass")
    text = dataclasses.replace(certificate, n_one=1, assumptions=several).summary()
    assert "Imputed labels: 1 of one class, 1 shared by several." in text
    bounded = dataclasses.replace(certificate.assumptions, n_bounded=2)
    text = dataclasses.replace(certificate, n_one=2, assumptions=bounded).summary()
    assert "1 at their lower bound, 2 at their upper bound, 1 between." in text


def test_inside():
    X, _, truth = _data()
    y = truth.copy()
    y[150:] = -1
    certificate = ProjectedLeastSquaresClassifier(alpha=1e4, constraint_alpha=0.0).fit(X, y)
    assert certificate.certificate_.reason == ""  # shrunk so far that no labeling reproduces it
    certificate = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y).certificate_
    assert certificate.reason == "inside"
    assert certificate.worst_case == certificate.best_case == 0.0
    assert certificate.holds
    assert "lies in the constraint set" in certificate.summary()


def test_no_unlabeled_rows():
    X, _, truth = _data()
    for distance in ("all", "labeled", "unlabeled", "euclidean"):
        certificate = ProjectedLeastSquaresClassifier(distance).fit(X, truth).certificate_
        assert certificate.reason == "no unlabeled rows"
        assert certificate.holds
        assert certificate.n_unlabeled == 0
        assert certificate.summary().startswith("There are no unlabeled rows")


def test_stopped_early():
    certificate = _certificate(max_time=0.0)
    assert certificate.holds
    assert not certificate.converged
    assert "stopped" in certificate.summary()


def test_icls_promises_nothing_and_says_what_is_true():
    X, y, _ = _data()
    clf = ICLSClassifier(alpha=0.0).fit(X, y)
    certificate = clf.certificate_
    assert certificate.distance == "labeled"
    f, g = clf.decision_function(X), clf.supervised_.decision_function(X)
    worst = np.where(y == -1, f < g, y) - 0.5
    difference = np.sum((f - worst) ** 2) - np.sum((g - worst) ** 2)
    assert certificate.worst_case == pytest.approx(difference, rel=1e-9, abs=1e-9)
    assert certificate.holds == (difference <= 0)


def test_not_guaranteed_in_words():
    for seed in range(50):
        X, y, _ = _data(8, seed=seed)
        certificate = ICLSClassifier(alpha=0.0).fit(X, y).certificate_
        if not certificate.holds:
            text = certificate.summary()
            assert text.startswith("Not guaranteed")
            assert f"{certificate.worst_case:.4g} higher" in text
            return
    pytest.fail("ICLS was never worse in the worst case on 50 data sets")


def test_transductive_is_about_the_unlabeled_rows():
    X, y, _ = _data()
    clf = ProjectedLeastSquaresClassifier("unlabeled", alpha=0.0).fit(X, y)
    U = X[y == -1]
    f, g = clf.decision_function(U), clf.supervised_.decision_function(U)
    worst = (f < g) - 0.5
    difference = np.sum((f - worst) ** 2) - np.sum((g - worst) ** 2)
    assert clf.certificate_.worst_case == pytest.approx(difference, rel=1e-9)
    assert clf.certificate_.rows == "unlabeled"
    assert "on the 188 unlabeled rows" in clf.certificate_.summary()


def test_the_loss_is_that_of_the_baseline_by_default():
    clf = ProjectedLeastSquaresClassifier()
    assert (clf.alpha, clf.constraint_alpha) == ("loo", "same")
    X, y, _ = _data()
    X[50:] *= 4.0  # scores that leave [0, 1] are what can be improved
    certificate = clf.fit(X, y).certificate_
    assert not certificate.reason
    assert certificate.penalty == certificate.supervised_penalty == clf.supervised_.alpha_ > 0.0
    assert certificate.penalty_share == 0.0
    assert f"plus the ridge penalty {certificate.penalty:.4g} ||w||²" in certificate.summary()
    assert "owed to the penalty" not in certificate.summary()


@pytest.mark.parametrize("distance", ["all", "unlabeled"])
@pytest.mark.parametrize(("alpha", "constraint_alpha"), [(0.5, 0.0), (0.0, 5.0), (0.1, 0.1)])
def test_penalty_share_is_what_no_unlabeled_row_contributes(distance, alpha, constraint_alpha):
    X, y, _ = _data()
    clf = ProjectedLeastSquaresClassifier(
        distance, alpha=alpha, constraint_alpha=constraint_alpha, tol=1e-12
    ).fit(X, y)
    certificate = clf.certificate_
    assert certificate.guaranteed_improvement > 0.0
    # Soft labels reproduce the projected weights, so the squared distance is a sum over rows.
    U = X[y == -1]
    f, g = clf.decision_function(U) + 0.5, clf.supervised_.decision_function(U) + 0.5
    of_rows = float((clf.soft_labels_ - g) @ (f - g))
    assert (1.0 - certificate.penalty_share) * certificate.guaranteed_improvement == pytest.approx(
        of_rows, rel=1e-6
    )
    said = f"{round(100 * certificate.penalty_share)} % of the guaranteed improvement is owed to"
    assert (said in certificate.summary()) == bool(certificate.penalty_share)


def test_dropping_the_penalty_alone_is_no_merit_of_unlabeled_rows():
    X, y, _ = _data(150)
    clf = ProjectedLeastSquaresClassifier(alpha=1e3, constraint_alpha=0.0).fit(X, y)
    certificate = clf.certificate_
    assert certificate.guaranteed_improvement > 0.5
    assert certificate.penalty_share > 0.9
    assert "which this loss drops" in certificate.summary()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kwargs", [{}, {"distance": "labeled"}, {"class_prior": "confidence"}])
def test_probabilities_are_audited(n_classes, kwargs):
    X, y, _ = _data(15)
    y = np.where(y == -1, -1, np.arange(len(y)) % n_classes)
    prior = kwargs.get("class_prior")
    s = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if prior is None else None
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, **kwargs).fit(X, y, sample_weight=s)
    found = audit(
        clf, clf.supervised_, X, y, response="predict_proba", sample_weight=s, class_prior=prior
    )
    certificate = clf.certificate_
    assert certificate.probability_worst_case == pytest.approx(found.worst_case_sum, rel=1e-8)
    assert certificate.probability_best_case == pytest.approx(found.best_case_sum, rel=1e-8)
    assert certificate.probability_worst_case > certificate.worst_case
    assert "For probabilities (scores" in certificate.summary()


def test_no_probabilities_in_a_regression():
    X, y, _ = _data()
    y = np.where(y == -1, np.nan, 3.0 * y)
    certificate = ProjectedLeastSquaresRegressor((0, 3), alpha=0.0).fit(X, y).certificate_
    assert certificate.guaranteed_improvement > 0.0
    assert certificate.probability_worst_case is None
    assert "robabilities" not in certificate.summary()


def test_supervised_loss_brackets_the_true_one():
    X, y, truth = _data()
    clf = ProjectedLeastSquaresClassifier().fit(X, y)
    low, high = clf.certificate_.supervised_loss
    loss = np.sum((clf.supervised_.decision_function(X) + 0.5 - truth) ** 2)
    assert low <= loss <= high


@pytest.mark.parametrize("kwargs", [{}, {"distance": "labeled"}, {"max_time": 0.0}])
def test_json_round_trip(kwargs):
    certificate = _certificate(**kwargs)
    again = json.loads(json.dumps(certificate.to_dict()))
    assert again["worst_case"] == certificate.worst_case
    assert again["holds"] == certificate.holds
    assert again["summary"] == certificate.summary() == str(certificate)


@pytest.mark.parametrize("kwargs", [{}, {"distance": "labeled"}, {"max_time": 0.0}])
def test_html_is_well_formed(kwargs):
    class Checker(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.text = [], []

        def handle_starttag(self, tag, attrs):
            self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

        def handle_data(self, data):
            self.text.append(data)

    certificate = _certificate(**kwargs)
    checker = Checker()
    checker.feed(certificate._repr_html_())
    checker.close()
    assert not checker.open
    assert certificate.summary() in checker.text


def test_a_distance_of_zero_leaves_no_gap():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 30)) + 3.0, np.where(np.arange(60) < 10, np.arange(60) % 2, -1)
    # Reproduces the scores of labeled rows.
    certificate = ICLSClassifier(alpha=0.0).fit(X, y).certificate_
    assert certificate.converged
    assert not certificate.reason
    assert certificate.duality_gap == 0.0


def test_loss_difference_of_any_two_scores():
    rng = np.random.default_rng(0)
    for n in (1, 7, 100_000):
        f, g = rng.normal(size=n), rng.normal(size=n)
        unlabeled = rng.random(n) < 0.5
        y = np.where(unlabeled, 0.0, rng.integers(0, 2, n))
        s = rng.uniform(0, 2, n)
        found = loss_difference((f - g)[None], g[None], Labels(y[None], unlabeled.astype(float)), s)
        at_zero, at_one = f**2 - g**2, (f - 1) ** 2 - (g - 1) ** 2
        known = np.where(y == 1, at_one, at_zero)
        worst = s @ np.where(unlabeled, np.maximum(at_zero, at_one), known)
        best = s @ np.where(unlabeled, np.minimum(at_zero, at_one), known)
        assert found.worst == pytest.approx(worst, rel=1e-10, abs=1e-10)
        assert found.best == pytest.approx(best, rel=1e-10, abs=1e-10)
        assert abs(found.worst - worst) <= 10 * found.rounding + 1e-9 * abs(worst)
