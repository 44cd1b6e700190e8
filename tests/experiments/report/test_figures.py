"""The figures of the paper."""

import io

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from neverworse.experiments import report as figures
from neverworse.experiments.report import STYLES, render
from tests.experiments import runs


@pytest.fixture(scope="module")
def drawings():
    return figures.draw(runs.small())


def test_there_are_figures_of_what_was_run(drawings):
    assert list(drawings) == ["figure1", "robustness-test"]
    assert list(figures.draw(runs.timing())) == ["timing"]
    assert figures.draw(runs.only(runs.small(), "table")) == {}


@pytest.mark.parametrize("rows", ["training", "test"])
def test_points_of_the_robustness_figure_are_ratios(drawings, rows):
    measured = runs.small().measurements["robustness"]
    axes = drawings["figure1" if rows == "training" else "robustness-test"].figure.axes
    assert [ax.get_title() for ax in axes] == list(figures.ROBUSTNESS_METHODS)
    wide = measured.pivot(index="repeat", columns="method", values=f"{rows}_loss")
    for ax in axes:
        method = ax.get_title()
        ratio = wide[method] / wide["SVM" if method == "TSVM" else "Supervised"]
        points, line = ax.lines
        assert points.get_color() == STYLES[method]["color"]
        np.testing.assert_allclose(np.sort(points.get_ydata()), np.sort(ratio))
        assert list(line.get_ydata()) == [1.0, 1.0]


def test_points_that_are_cut_off_are_counted():
    measured = runs.small().measurements["robustness"].copy()
    chosen = (measured["method"] == "TSVM") & (measured["repeat"] == 1)
    measured.loc[chosen, "training_loss"] *= 1e6
    drawing = robustness(measured)
    assert "Above 5 and cut off: 1 of 8 points" in drawing.description
    assert "Above 5 and cut off: 1 of 8 points." in drawing.figure._supxlabel.get_text()


def robustness(measured):
    return figures.draw_robustness(measured, "Robustness", "training")


def many(n_datasets):
    measured = runs.small().measurements["robustness"].copy()
    measured.loc[measured["method"] == "TSVM", "training_loss"] *= 1e6
    return pd.concat([measured.assign(dataset=f"Data set {k}") for k in range(n_datasets)])


@pytest.mark.parametrize("n_datasets", [1, 3, 16])
def test_no_label_is_cut_off(n_datasets):
    figure = robustness(many(n_datasets)).figure
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(mpl.text.Text) if text.get_text()]
    assert len(texts) > 10
    for text in texts:
        box = text.get_window_extent()
        assert box.x0 >= 0.0, text
        assert box.y0 >= 0.0, text
        assert box.x1 <= figure.bbox.x1, text
        assert box.y1 <= figure.bbox.y1, text


def test_there_is_a_panel_for_each_method_over_all_data_sets():
    measured = many(3)
    drawing = robustness(measured)
    axes = drawing.figure.axes
    assert [ax.get_title() for ax in axes] == ["Self-Learning", "ICLS", "Projection", "TSVM"]
    names = [label.get_text() for label in axes[-1].get_xticklabels()]
    assert names == [f"Data set {k}" for k in range(3)]
    one = measured[measured["dataset"] == "Data set 1"]
    wide = one.pivot(index="repeat", columns="method", values="training_loss")
    for ax in axes:
        assert ax.get_ylim() == (0.0, 5.0)
        method = ax.get_title()
        ratio = wide[method] / wide["SVM" if method == "TSVM" else "Supervised"]
        points = [line for line in ax.lines if line.get_marker() != "None"]
        assert len(points) == 3
        np.testing.assert_allclose(np.sort(points[1].get_ydata()), np.sort(ratio))
        assert np.abs(np.asarray(points[1].get_xdata()) - 1.0).max() <= 0.3
        assert 1.0 in [line.get_ydata()[0] for line in ax.lines if line.get_marker() == "None"]
    assert "Above 5 and cut off: 6 of 24 points" in drawing.description


@pytest.mark.parametrize("repeats", [1, 2])
def test_curves_are_means_with_ribbons(repeats):
    found = runs.curves(repeats)
    drawing = figures.draw_curves(found.summaries["curves"])
    error, _loss = drawing.figure.axes
    assert error.get_title() == "SPECT"
    assert error.get_xscale() == "log"
    assert [line.get_label() for line in error.lines] == list(figures.CURVE_METHODS)
    assert "USM" in set(found.measurements["curves"]["method"])
    measured = found.measurements["curves"]
    means = measured[measured["method"] == "ICLS"].groupby("n_unlabeled")["error"].mean()
    line = error.lines[figures.CURVE_METHODS.index("ICLS")]
    np.testing.assert_allclose(line.get_ydata(), means)
    assert len(error.collections) == len(figures.CURVE_METHODS)
    drawing.figure.draw_without_rendering()


def test_timing_goes_on_where_the_paper_stopped():
    drawing = figures.draw(runs.timing())["timing"]
    (ax,) = drawing.figure.axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "Projection / Supervised, published: 84 at 1024" in labels
    assert any(list(line.get_xdata()) == [1024, 1024] for line in ax.lines)
    assert "2,048 unlabeled rows" in drawing.description
    drawing.figure.draw_without_rendering()


def test_colours_differ_and_are_the_same_in_all_figures():
    colours = [style["color"] for style in STYLES.values()]
    assert len(set(colours)) == len(colours)
    markers = [style["marker"] for style in STYLES.values()]
    assert len(set(markers)) == len(markers)


@pytest.mark.parametrize(("kind", "start"), {"svg": b"<?xml", "pdf": b"%PDF"}.items())
def test_files_are_what_they_are(drawings, kind, start):
    assert render(drawings["figure1"].figure, kind).startswith(start)


def test_the_image_is_not_blank(drawings):
    pixels = mpl.image.imread(io.BytesIO(drawings["figure1"].png), format="png")[..., :3]
    grey = pixels @ np.ones(3)
    assert len(np.unique(grey)) > 50
