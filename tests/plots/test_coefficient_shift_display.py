"""The picture of coefficients has those that moved most, in the right order and place."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from neverworse import (
    LeastSquaresClassifier,
    ProjectedLeastSquaresClassifier,
    ProjectedLeastSquaresRegressor,
)
from neverworse.plots import CoefficientShiftDisplay

mpl.use("Agg")

import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def problem(n_classes=2, n_features=30):
    rng = np.random.default_rng(0)
    y = np.arange(300) % n_classes
    X = rng.normal(size=(300, n_features)) + 0.4 * y[:, None]
    names = np.array(["low", "middle", "high"])[:n_classes][y].astype(object)
    names[60:] = None
    return X, names


def points(display, label):
    (line,) = [line for line in display.ax_.lines if line.get_label() == label]
    return line.get_xdata(), line.get_ydata()


def ticks(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_features_that_moved_most_are_drawn():
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(*problem())
    display = CoefficientShiftDisplay.from_estimator(clf, max_features=7)
    before, after = clf.supervised_.coef_[0], clf.coef_[0]
    order = sorted(range(30), key=lambda k: -abs(after[k] - before[k]))[:7]
    assert ticks(display) == [f"x{k + 1}" for k in order]
    assert points(display, "supervised")[0].tolist() == before[order].tolist()
    assert points(display, "projected")[0].tolist() == after[order].tolist()
    assert points(display, "projected")[1].tolist() == list(range(7))
    bottom, top = display.ax_.get_ylim()
    assert bottom > top  # the first one is at the top
    assert "class middle" in display.ax_.get_xlabel()
    assert "7 of 30 features" in display.ax_.get_xlabel()
    assert len(ticks(CoefficientShiftDisplay.from_estimator(clf))) == 20
    display = CoefficientShiftDisplay.from_estimator(clf, max_features=None)
    assert len(ticks(display)) == 30
    assert "features" not in display.ax_.get_xlabel()


def test_one_class_of_several():
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(*problem(3))
    shifts = np.abs(clf.coef_ - clf.supervised_.coef_).max(axis=1)
    display = CoefficientShiftDisplay.from_estimator(clf)
    assert display.class_name == clf.classes_[shifts.argmax()]
    row = list(clf.classes_).index("low")
    display = CoefficientShiftDisplay.from_estimator(clf, target_class="low")
    assert (display.projected == clf.coef_[row]).all()
    assert (display.supervised == clf.supervised_.coef_[row]).all()
    with pytest.raises(ValueError, match="'tall' must be one of"):
        CoefficientShiftDisplay.from_estimator(clf, target_class="tall")


def test_two_classes_have_one_score():
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(*problem())
    display = CoefficientShiftDisplay.from_estimator(clf, target_class="middle")
    assert display.class_name == "middle"
    with pytest.raises(ValueError, match=r"'low' must be one of \['middle'\].*one score"):
        CoefficientShiftDisplay.from_estimator(clf, target_class="low")


def test_names_of_features():
    X, y = problem(n_features=2)
    table = pd.DataFrame(X, columns=["age", "a name that is much longer than what fits on a page"])
    clf = ProjectedLeastSquaresClassifier(alpha=0.0)
    display = CoefficientShiftDisplay.from_estimator(clf.fit(table, y))
    assert set(display.feature_names) == set(table.columns)
    assert max(map(len, ticks(display))) == 32
    pipeline = make_pipeline(StandardScaler(), PolynomialFeatures(include_bias=False), clf)
    display = CoefficientShiftDisplay.from_estimator(pipeline.fit(table[["age"]], y))
    assert display.feature_names == ["age", "age^2"]
    nameless = make_pipeline(FunctionTransformer(np.abs), "passthrough", clf).fit(X, y)
    assert CoefficientShiftDisplay.from_estimator(nameless).feature_names == ["x1", "x2"]


def test_regressions_have_no_class():
    X, y = problem()
    target = np.array([np.nan if label is None else len(label) for label in y], dtype=float)
    model = ProjectedLeastSquaresRegressor("labeled").fit(X, target)
    display = CoefficientShiftDisplay.from_estimator(model)
    assert display.class_name is None
    assert display.ax_.get_xlabel().startswith("coefficient\n")
    assert (display.projected == np.ravel(model.coef_)).all()


def test_own_axes():
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(*problem())
    figure, ax = plt.subplots()
    display = CoefficientShiftDisplay.from_estimator(clf, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure


def test_wrong_input_is_explained():
    X, y = problem()
    with pytest.raises(NotFittedError):
        CoefficientShiftDisplay.from_estimator(ProjectedLeastSquaresClassifier(alpha=0.0))
    with pytest.raises(NotFittedError):
        CoefficientShiftDisplay.from_estimator(
            make_pipeline(StandardScaler(), ProjectedLeastSquaresClassifier(alpha=0.0))
        )
    with pytest.raises(TypeError, match="but got a LeastSquaresClassifier"):
        CoefficientShiftDisplay.from_estimator(LeastSquaresClassifier().fit(X, y))
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    with pytest.raises(ValueError, match="max_features=0"):
        CoefficientShiftDisplay.from_estimator(clf, max_features=0)


def test_missing_matplotlib_is_explained(monkeypatch):
    display = CoefficientShiftDisplay(np.zeros(1), np.ones(1), ["a"])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        display.plot()
