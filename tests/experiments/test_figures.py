"""The figures of the paper."""

import io

import matplotlib as mpl
import numpy as np
import pytest

from neverworse.experiments import _figures
from neverworse.experiments._drawing import STYLES
from neverworse.experiments._rendering import FORMATS, render
from tests.experiments import runs


@pytest.fixture(scope="module")
def drawings():
    return _figures.draw(runs.small())


def test_there_are_figures_of_what_was_run(drawings):
    assert list(drawings) == ["robustness", "robustness-test"]
    assert list(_figures.draw(runs.timing())) == ["timing"]
    assert _figures.draw(runs.small(("table",), 1)) == {}


@pytest.mark.parametrize("rows", ["training", "test"])
def test_points_of_the_robustness_figure_are_ratios(drawings, rows):
    measured = runs.small().measurements["robustness"]
    drawing = _figures.draw_robustness(measured, rows)
    (ax,) = drawing.figure.axes
    assert ax.get_title() == "WDBC"
    assert ax.get_ylim() == (0.0, 5.0)
    wide = measured.pivot(index="repeat", columns="method", values=f"{rows}_loss")
    lines = {line.get_color(): line.get_ydata() for line in ax.lines}
    for name in _figures.ROBUSTNESS_METHODS:
        ratio = wide[name] / wide["SVM" if name == "TSVM" else "Supervised"]
        np.testing.assert_allclose(np.sort(lines[STYLES[name].colour]), np.sort(ratio))
    assert 1.0 in [line.get_ydata()[0] for line in ax.lines if len(line.get_ydata()) == 2]


def test_points_that_are_cut_off_are_counted():
    measured = runs.small().measurements["robustness"].copy()
    chosen = (measured["method"] == "TSVM") & (measured["repeat"] == 1)
    measured.loc[chosen, "training_loss"] *= 1e6
    drawing = _figures.draw_robustness(measured, "training")
    assert "Above 5 and cut off: 1 of 8 points" in drawing.description
    assert "Above 5 and cut off: 1 of 8 points" in drawing.figure._supxlabel.get_text()
    assert [text.get_text() for text in drawing.figure.axes[0].texts] == ["1 ↑"]


@pytest.mark.parametrize("n_datasets", [1, 2, 5, 16])
def test_any_number_of_panels(n_datasets):
    measured = runs.small().measurements["robustness"]
    many = [measured.assign(dataset=f"set {k}") for k in range(n_datasets)]
    drawing = _figures.draw_robustness(_figures.pd.concat(many), "training")
    assert [ax.get_title() for ax in drawing.figure.axes] == [f"set {k}" for k in range(n_datasets)]


@pytest.mark.parametrize("repeats", [1, 2])
def test_curves_are_means_with_ribbons(repeats):
    found = runs.curves(repeats)
    drawing = _figures.draw_curves(found.summaries["curves"])
    error, _loss = drawing.figure.axes
    assert error.get_title() == "SPECT"
    assert error.get_xscale() == "log"
    assert [line.get_label() for line in error.lines] == list(_figures.CURVE_METHODS)
    assert "USM" in set(found.measurements["curves"]["method"])
    measured = found.measurements["curves"]
    means = measured[measured["method"] == "ICLS"].groupby("n_unlabeled")["error"].mean()
    line = error.lines[_figures.CURVE_METHODS.index("ICLS")]
    np.testing.assert_allclose(line.get_ydata(), means)
    # The error of a single repeat has no standard error.
    assert len(error.collections) == (0 if repeats == 1 else len(_figures.CURVE_METHODS))
    render(drawing.figure, "png")


def test_timing_goes_on_where_the_paper_stopped():
    drawing = _figures.draw(runs.timing())["timing"]
    (ax,) = drawing.figure.axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "Projection / Supervised, published: 84" in labels
    assert any(list(line.get_xdata()) == [1024, 1024] for line in ax.lines)
    assert "2,048 unlabeled rows" in drawing.description
    render(drawing.figure, "png")


def test_colours_differ_and_are_the_same_in_all_figures():
    colours = [style.colour for style in STYLES.values()]
    assert len(set(colours)) == len(colours)
    markers = [style.marker for style in STYLES.values()]
    assert len(set(markers)) == len(markers)


@pytest.mark.parametrize("kind", FORMATS)
def test_files_are_what_they_are_and_always_the_same(drawings, kind):
    content = render(drawings["robustness"].figure, kind)
    assert content == render(drawings["robustness"].figure, kind)
    again = render(
        _figures.draw_robustness(runs.small().measurements["robustness"], "training").figure, kind
    )
    assert content == again
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert content.startswith(starts[kind])
    if kind == "png":
        pixels = mpl.image.imread(io.BytesIO(content))[..., :3]
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50, "blank"
