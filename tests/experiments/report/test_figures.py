"""The figures of the paper."""

import io

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from neverworse.experiments.report import figures
from neverworse.experiments.report.figures import FORMATS, STYLES, render
from tests.experiments import runs


@pytest.fixture(scope="module")
def drawings():
    return figures.draw(runs.small())


def test_there_are_figures_of_what_was_run(drawings):
    assert list(drawings) == ["figure1", "robustness", "robustness-test"]
    assert list(figures.draw(runs.timing())) == ["timing"]
    assert figures.draw(runs.only(runs.small(), "table")) == {}


@pytest.mark.parametrize("rows", ["training", "test"])
def test_points_of_the_robustness_figure_are_ratios(drawings, rows):
    measured = runs.small().measurements["robustness"]
    drawing = figures.draw_robustness(measured, rows)
    (ax,) = drawing.figure.axes
    assert ax.get_title() == "WDBC"
    assert ax.get_ylim() == (0.0, 5.0)
    wide = measured.pivot(index="repeat", columns="method", values=f"{rows}_loss")
    lines = {line.get_color(): line.get_ydata() for line in ax.lines}
    for name in figures.ROBUSTNESS_METHODS:
        ratio = wide[name] / wide["SVM" if name == "TSVM" else "Supervised"]
        np.testing.assert_allclose(np.sort(lines[STYLES[name]["color"]]), np.sort(ratio))
    assert 1.0 in [line.get_ydata()[0] for line in ax.lines if len(line.get_ydata()) == 2]


def test_points_that_are_cut_off_are_counted():
    measured = runs.small().measurements["robustness"].copy()
    chosen = (measured["method"] == "TSVM") & (measured["repeat"] == 1)
    measured.loc[chosen, "training_loss"] *= 1e6
    drawing = figures.draw_robustness(measured, "training")
    assert "Above 5 and cut off: 1 of 8 points" in drawing.description
    said = drawing.figure._supxlabel.get_text().replace("\n", " ")
    assert "Above 5 and cut off: 1 of 8 points (numbers at the top)." in said
    assert [text.get_text() for text in drawing.figure.axes[0].texts] == ["1 ↑"]


@pytest.mark.parametrize("n_datasets", [1, 2, 5])
def test_any_number_of_panels(n_datasets):
    measured = runs.small().measurements["robustness"]
    many = [measured.assign(dataset=f"set {k}") for k in range(n_datasets)]
    drawing = figures.draw_robustness(pd.concat(many), "training")
    assert [ax.get_title() for ax in drawing.figure.axes] == [f"set {k}" for k in range(n_datasets)]


def many(n_datasets):
    measured = runs.small().measurements["robustness"].copy()
    measured.loc[measured["method"] == "TSVM", "training_loss"] *= 1e6
    return pd.concat([measured.assign(dataset=f"Data set {k}") for k in range(n_datasets)])


@pytest.mark.parametrize("n_datasets", [1, 3, 16])
@pytest.mark.parametrize("form", ["data sets", "paper"])
def test_no_label_is_cut_off(n_datasets, form):
    drawing = (
        figures.draw_figure_one(many(n_datasets))
        if form == "paper"
        else figures.draw_robustness(many(n_datasets), "training")
    )
    figure = drawing.figure
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(mpl.text.Text) if text.get_text()]
    assert len(texts) > 10
    for text in texts:
        box = text.get_window_extent()
        assert box.x0 >= 0.0, text
        assert box.y0 >= 0.0, text
        assert box.x1 <= figure.bbox.x1, text
        assert box.y1 <= figure.bbox.y1, text


def test_the_papers_form_has_a_panel_for_each_method_over_all_data_sets():
    measured = many(3)
    drawing = figures.draw_figure_one(measured)
    axes = drawing.figure.axes
    assert [ax.get_title() for ax in axes] == ["Self-Learning", "Projection", "TSVM"]
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
    assert [text.get_text() for text in axes[2].texts] == ["2 ↑"] * 3
    assert "Above 5 and cut off: 6 of 18 points" in drawing.description


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
    # The error of a single repeat has no standard error.
    assert len(error.collections) == (0 if repeats == 1 else len(figures.CURVE_METHODS))
    render(drawing.figure, "png")


def test_timing_goes_on_where_the_paper_stopped():
    drawing = figures.draw(runs.timing())["timing"]
    (ax,) = drawing.figure.axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "Projection / Supervised, published: 84" in labels
    assert any(list(line.get_xdata()) == [1024, 1024] for line in ax.lines)
    assert "2,048 unlabeled rows" in drawing.description
    render(drawing.figure, "png")


def test_colours_differ_and_are_the_same_in_all_figures():
    colours = [style["color"] for style in STYLES.values()]
    assert len(set(colours)) == len(colours)
    markers = [style["marker"] for style in STYLES.values()]
    assert len(set(markers)) == len(markers)


@pytest.mark.parametrize("kind", FORMATS)
def test_files_are_what_they_are_and_always_the_same(drawings, kind):
    content = render(drawings["robustness"].figure, kind)
    assert content == render(drawings["robustness"].figure, kind)
    again = render(
        figures.draw_robustness(runs.small().measurements["robustness"], "training").figure,
        kind,
    )
    assert content == again
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert content.startswith(starts[kind])
    if kind == "png":
        pixels = mpl.image.imread(io.BytesIO(content))[..., :3]
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50, "blank"
