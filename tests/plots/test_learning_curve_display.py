"""The picture of a learning curve has the numbers of the curve."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.model_selection import learning_curve
from neverworse.plots import UnlabeledLearningCurveDisplay

mpl.use("Agg")

import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 6)) + 0.5 * y[:, None]
    y[50:] = -1
    return X, y


CLASSIFIER = ProjectedLeastSquaresClassifier()
QUICK = {"n_repeats": 1, "cv": 3, "random_state": 0}


@pytest.mark.parametrize("kind", ["unlabeled", "labeled"])
def test_line_is_the_mean_of_the_curve(rows, kind):
    display = UnlabeledLearningCurveDisplay.from_estimator(CLASSIFIER, *rows, rows=kind, **QUICK)
    curve = learning_curve(CLASSIFIER, *rows, rows=kind, **QUICK)
    assert (display.curve.test_scores == curve.test_scores).all()
    line = display.line_
    assert line.get_xdata().tolist() == curve.sizes.tolist()
    assert line.get_ydata() == pytest.approx(curve.test_scores.mean(axis=1))
    assert display.ax_.get_xlabel() == f"{kind} training rows"
    assert display.ax_.get_ylabel() == "Score on held-out rows"
    assert display.ax_.get_xscale() == "log"
    ticks = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert ticks == [str(size) for size in curve.sizes]
    (band,) = display.ax_.collections
    top = curve.test_scores[-1].mean() + curve.test_scores[-1].std()
    assert (curve.sizes[-1], pytest.approx(top)) in [tuple(v) for v in band.get_paths()[0].vertices]


def test_two_estimators_in_one_picture(rows):
    make = UnlabeledLearningCurveDisplay.from_estimator
    first = make(make_pipeline(StandardScaler(), CLASSIFIER), *rows, **QUICK)
    second = make(LeastSquaresClassifier(), *rows, **QUICK, ax=first.ax_)
    assert second.ax_ is first.ax_
    # Without unlabeled rows the supervised classifier has the same score whatever their number.
    assert (second.curve.test_scores == second.curve.test_scores[0]).all()
    names = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert names == ["ProjectedLeastSquaresClassifier", "LeastSquaresClassifier"]
    assert first.line_.get_color() != second.line_.get_color()


def test_names_and_signs_of_scores(rows):
    display = UnlabeledLearningCurveDisplay.from_estimator(
        CLASSIFIER, *rows, scoring="neg_brier_score", negate_score=True, **QUICK
    )
    assert display.ax_.get_ylabel() == "Brier score on held-out rows"
    assert (display.line_.get_ydata() > 0).all()


def test_few_sizes_and_own_axes(rows):
    display = UnlabeledLearningCurveDisplay.from_estimator(
        CLASSIFIER, *rows, sizes=[0, 150], **QUICK
    )
    assert display.ax_.get_xscale() == "linear"
    assert display.line_.get_xdata().tolist() == [0, 150]
    _, ax = plt.subplots()
    assert display.plot(ax=ax).ax_ is ax


def test_wrong_input_is_explained(rows):
    make = UnlabeledLearningCurveDisplay.from_estimator
    with pytest.raises(ValueError, match="rows='all' must be"):
        make(CLASSIFIER, *rows, rows="all")
    with pytest.raises(ValueError, match="must be one score"):
        make(CLASSIFIER, *rows, scoring=["accuracy", "roc_auc"], **QUICK)


def test_missing_matplotlib_is_explained(rows, monkeypatch):
    display = UnlabeledLearningCurveDisplay(curve=None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        display.plot()


def test_the_package_does_not_import_matplotlib():
    code = "import neverworse.plots, sys; raise SystemExit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
