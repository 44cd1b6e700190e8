"""What the certificate says, in numbers, words and HTML."""

import dataclasses
import json
from html.parser import HTMLParser

import numpy as np
import pytest

from neverworse import ICLSClassifier, ProjectedLeastSquaresClassifier
from neverworse.projection._loss import loss_difference
from neverworse.projection._training import Labels


def _data(n_labeled=12, n=200, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    X = rng.normal(size=(n, 5)) + 0.7 * truth[:, None]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def _certificate(n_labeled=12, **kwargs):
    X, y, _ = _data(n_labeled)
    return ProjectedLeastSquaresClassifier(**kwargs).fit(X, y).certificate_


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


def test_labels_are_counted_in_words_that_agree():
    certificate = dataclasses.replace(_certificate(), n_zero=1, n_one=0, n_fractional=1)
    assert "labels 1 is 0, 0 are 1 and 1 lies between." in certificate.summary()
    several = dataclasses.replace(certificate.assumptions, task="multiclass")
    text = dataclasses.replace(certificate, n_one=1, assumptions=several).summary()
    assert "labels 1 is of one class and 1 is shared by several." in text
    bounded = dataclasses.replace(certificate.assumptions, n_bounded=2)
    text = dataclasses.replace(certificate, n_one=2, assumptions=bounded).summary()
    assert "1 is at the lower bound, 2 are at the upper bound and 1 lies between." in text


def test_inside():
    X, _, truth = _data()
    y = truth.copy()
    y[150:] = -1
    certificate = ProjectedLeastSquaresClassifier(alpha=1e4).fit(X, y).certificate_
    assert certificate.reason == ""  # shrunk so far that no labeling reproduces it
    certificate = ProjectedLeastSquaresClassifier().fit(X / 10, y).certificate_
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
    clf = ICLSClassifier().fit(X, y)
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
        certificate = ICLSClassifier().fit(X, y).certificate_
        if not certificate.holds:
            text = certificate.summary()
            assert text.startswith("Not guaranteed")
            assert f"{certificate.worst_case:.4g} higher" in text
            return
    pytest.fail("ICLS was never worse in the worst case on 50 data sets")


def test_transductive_is_about_the_unlabeled_rows():
    X, y, _ = _data()
    clf = ProjectedLeastSquaresClassifier("unlabeled").fit(X, y)
    U = X[y == -1]
    f, g = clf.decision_function(U), clf.supervised_.decision_function(U)
    worst = (f < g) - 0.5
    difference = np.sum((f - worst) ** 2) - np.sum((g - worst) ** 2)
    assert clf.certificate_.worst_case == pytest.approx(difference, rel=1e-9)
    assert clf.certificate_.rows == "unlabeled"
    assert "on the 188 unlabeled rows" in clf.certificate_.summary()


def test_penalised_loss_is_named():
    certificate = _certificate(constraint_alpha=1.0)
    assert certificate.holds
    assert "penalised squared loss" in certificate.summary()


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
    certificate = ICLSClassifier().fit(X, y).certificate_  # reproduces the scores of labeled rows
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
        found = loss_difference(f - g, g, Labels(y, unlabeled.astype(float)), s)
        at_zero, at_one = f**2 - g**2, (f - 1) ** 2 - (g - 1) ** 2
        known = np.where(y == 1, at_one, at_zero)
        worst = s @ np.where(unlabeled, np.maximum(at_zero, at_one), known)
        best = s @ np.where(unlabeled, np.minimum(at_zero, at_one), known)
        assert found.worst == pytest.approx(worst, rel=1e-10, abs=1e-10)
        assert found.best == pytest.approx(best, rel=1e-10, abs=1e-10)
        assert abs(found.worst - worst) <= 10 * found.rounding + 1e-9 * abs(worst)
