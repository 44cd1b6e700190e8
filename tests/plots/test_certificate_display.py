"""The picture of a certificate says what the certificate says."""

from __future__ import annotations

import sys
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neverworse import (
    LeastSquaresClassifier,
    ProjectedLeastSquaresClassifier,
    ProjectedLeastSquaresRegressor,
    audit,
)
from neverworse.model_selection import StratifiedLabeledKFold
from neverworse.plots import CertificateDisplay

mpl.use("Agg")

import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def problem(n_classes=2, n_labeled=20):
    rng = np.random.default_rng(0)
    y = np.arange(200) % n_classes
    X = rng.normal(size=(200, 5)) + y[:, None]
    return X, np.where(np.arange(200) < n_labeled, y, -1)


def bar(display):
    (patch,) = [p for p in display.ax_.patches if p.get_height() < 0.5]
    return patch.get_x(), patch.get_x() + patch.get_width()


def texts(display):
    return [text.get_text() for text in display.ax_.texts]


def words(number):
    return f"{number:,.4g}"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_bar_is_the_interval(n_classes):
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(*problem(n_classes))
    display = CertificateDisplay.from_estimator(clf)
    certificate = clf.certificate_
    assert bar(display) == pytest.approx((certificate.best_case, certificate.worst_case))
    assert display.verdict == "Never worse than the supervised classifier, whatever the labels"
    assert display.ax_.get_title() == display.verdict
    assert f"at best\n{words(-certificate.best_case)} lower" in texts(display)
    assert f"at worst\n{words(-certificate.worst_case)} lower" in texts(display)
    assert "sum over 200 rows" in display.ax_.get_xlabel()
    assert ("summed over the classes" in display.ax_.get_xlabel()) == (n_classes == 3)
    low, high = certificate.supervised_loss
    assert f"between {words(low)} and {words(high)}" in display.ax_.get_xlabel()
    left, right = display.ax_.get_xlim()
    assert left < certificate.best_case
    assert right > 0.0
    assert display.figure_ is display.ax_.figure


def test_transductive_and_assumptions():
    clf = ProjectedLeastSquaresClassifier("unlabeled", alpha=0.0, class_prior=(0.4, 0.6)).fit(
        *problem()
    )
    display = CertificateDisplay.from_estimator(clf)
    assert "sum over 180 unlabeled rows" in display.ax_.get_xlabel()
    assert display.verdict.endswith("whatever the labels within what is assumed")


def test_no_guarantee():
    X, y = problem()
    certificate = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y).certificate_
    display = CertificateDisplay(replace(certificate, worst_case=7.5)).plot()
    assert display.verdict == "Not guaranteed: it depends on the unknown labels"
    assert "at worst\n7.5 higher" in texts(display)
    worse = replace(certificate, best_case=1.0, worst_case=2.0)
    display = CertificateDisplay(worse).plot()
    assert display.verdict.startswith("Never better than the supervised classifier")
    assert display.ax_.get_xlim()[0] < 0.0


def test_nothing_changed():
    clf = ProjectedLeastSquaresClassifier(alpha=1e6).fit(*problem())
    display = CertificateDisplay.from_estimator(clf)
    assert display.verdict == "The same as the supervised classifier"
    assert "no difference" in texts(display)


def test_audits():
    X, y = problem()
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    found = audit(clf, clf.supervised_, X, y, response="score")
    display = CertificateDisplay(found).plot()
    assert bar(display) == pytest.approx((found.best_case, found.worst_case))
    assert display.verdict == "Never worse than the baseline, whatever the labels"
    assert "mean over 200 rows" in display.ax_.get_xlabel()
    known = audit(clf, clf.supervised_, X[:20], y[:20], response="score")
    display = CertificateDisplay(known)
    assert display.verdict.startswith("Never better than the baseline")
    back = CertificateDisplay(audit(clf.supervised_, clf, X[:20], y[:20], response="score"))
    assert back.verdict.startswith("Never worse than the baseline")
    same = CertificateDisplay(audit(clf, clf, X[:20], y[:20]))
    assert same.verdict == "The same as the baseline"
    same = CertificateDisplay(audit(clf, clf, X, y))
    assert same.verdict == "The same as the baseline"


def test_regressions_pipelines_and_searches():
    X, y = problem()
    target = np.where(y < 0, np.nan, y + 0.5)
    display = CertificateDisplay.from_estimator(
        ProjectedLeastSquaresRegressor((0.5, 1.5)).fit(X, target)
    )
    expected = (
        "Never worse than the supervised regression, whatever the targets within what is assumed"
    )
    assert display.verdict == expected
    pipeline = make_pipeline(StandardScaler(), ProjectedLeastSquaresClassifier(alpha=0.0)).fit(X, y)
    display = CertificateDisplay.from_estimator(pipeline)
    assert display.certificate is pipeline[-1].certificate_
    search = GridSearchCV(pipeline, {}, cv=StratifiedLabeledKFold(3)).fit(X, y)
    display = CertificateDisplay.from_estimator(search)
    assert display.certificate is search.best_estimator_[-1].certificate_


def test_own_axes():
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(*problem())
    figure, ax = plt.subplots()
    display = CertificateDisplay.from_estimator(clf, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure


def test_wrong_input_is_explained():
    X, y = problem()
    with pytest.raises(NotFittedError):
        CertificateDisplay.from_estimator(ProjectedLeastSquaresClassifier(alpha=0.0))
    fitted = LeastSquaresClassifier().fit(X, y)
    with pytest.raises(TypeError, match=r"A LeastSquaresClassifier does not have.*audit"):
        CertificateDisplay.from_estimator(fitted)
    with pytest.raises(TypeError, match=r"LogisticRegression\(\) is no Certificate"):
        CertificateDisplay(LogisticRegression())


def test_missing_matplotlib_is_explained(monkeypatch):
    display = CertificateDisplay(
        ProjectedLeastSquaresClassifier(alpha=0.0).fit(*problem()).certificate_
    )
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"CertificateDisplay.*pip install matplotlib"):
        display.plot()


def test_the_penalty_of_the_loss_is_named():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.where(np.arange(60) < 10, np.arange(60) % 2, -1)
    for alpha in (0.0, 0.25):
        clf = ProjectedLeastSquaresClassifier(alpha=alpha).fit(X, y)
        name = CertificateDisplay.from_estimator(clf).ax_.get_xlabel()
        assert ("sum over 60 rows plus 0.25 ||w||²" in name) == bool(alpha)
