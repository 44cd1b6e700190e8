"""The figures of the paper, drawn from what was measured, and as the contents of files."""

from __future__ import annotations

import io
import textwrap
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from neverworse._palette import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY
from neverworse._typing import Vector
from neverworse._words import count
from neverworse.experiments._analysis import published, ratios

if TYPE_CHECKING:
    from neverworse.experiments._reproduction import Reproduction

PAPER_METHODS = ("Self-Learning", "Projection", "TSVM")
ROBUSTNESS_METHODS = ("Self-Learning", "ICLS", "Projection", "TSVM")
CURVE_METHODS = ("Supervised", "Self-Learning", "ICLS", "Projection", "Oracle")
TIMING_METHODS = ("Projection", "TSVM")
PLACES = {"training": "labeled and unlabeled rows", "test": "test rows"}
HIGHEST_RATIO = 5.0  # where the paper cuts its figure off
RIBBON = 2.0  # standard errors
GRID: dict[str, Any] = {"linewidth": 0.3, "color": "#DDDDDD"}

FORMATS = ("png", "svg", "pdf")
DOTS_PER_INCH = 200
# Without a date. The fonts of a PDF can be edited, and the text of an SVG looks the same anywhere.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
SETTINGS = {"svg.hashsalt": "neverworse", "svg.fonttype": "path", "pdf.fonttype": 42}


# How a method looks in every figure; shapes differ as well, for print without colour.
STYLES: dict[str, dict[str, Any]] = {
    "Supervised": {"color": ORANGE, "marker": "s", "linestyle": (0, (6, 2))},
    "Self-Learning": {"color": PURPLE, "marker": "v", "linestyle": (0, (3, 1.5))},
    "ICLS": {"color": SKY, "marker": "D", "linestyle": "solid"},
    "Projection": {"color": BLUE, "marker": "o", "linestyle": "solid"},
    "Oracle": {"color": GREEN, "marker": "^", "linestyle": (0, (6, 2, 1, 2))},
    "TSVM": {"color": GREY, "marker": "x", "linestyle": (0, (1, 1.2))},
}


@dataclass(frozen=True)
class Drawing:
    """A figure, its title, and a description for readers who cannot see it."""

    figure: Figure
    title: str
    description: str


def draw(results: Reproduction) -> dict[str, Drawing]:
    """Draw all figures for which something was measured, by the names of their files."""
    found = {}
    if "robustness" in results.measurements:
        measured = results.measurements["robustness"]
        found["figure1"] = draw_figure_one(measured)
        found["robustness"] = draw_robustness(measured)
        found["robustness-test"] = draw_robustness(measured, "test")
    for name, make in (("curves", draw_curves), ("timing", draw_timing)):
        if name in results.summaries:
            found[name] = make(results.summaries[name])
    return found


def draw_figure_one(measurements: pd.DataFrame) -> Drawing:
    """Draw Figure 1 in the paper's form: a panel for each method, over all data sets."""
    found, names = _ratios_of(measurements, "training", PAPER_METHODS)
    figure = Figure(figsize=(max(4.6, 2.0 + 0.42 * len(names)), 6.8), layout="constrained")
    axes = figure.subplots(len(PAPER_METHODS), 1, sharex=True, sharey=True)
    for ax, method in zip(axes, PAPER_METHODS, strict=True):
        _draw_ratios(ax, method, {name: (method, _chosen(found, name, method)) for name in names})
    axes[-1].set_xticks(range(len(names)), names, size=7, rotation=45, ha="right")
    _label(figure, found, "training")
    return _drawing(
        figure,
        "Figure 1: robustness, in the paper's form",
        f"A panel for each of {', '.join(PAPER_METHODS)}, with a point for every repeat on each of "
        f"{count(len(names), 'data set')}: {_described(found, 'training')}",
    )


def draw_robustness(measurements: pd.DataFrame, rows: str = "training") -> Drawing:
    """Draw losses on training or test rows with a panel for each data set, and ICLS."""
    found, names = _ratios_of(measurements, rows, ROBUSTNESS_METHODS)
    n_columns = min(4, len(names))
    n_rows = -(-len(names) // n_columns)
    figure = Figure(figsize=(max(4.6, 2.3 * n_columns), 0.9 + 1.75 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    for ax, name in zip(axes.flat, names, strict=False):
        _draw_ratios(ax, name, {k: (k, _chosen(found, name, k)) for k in ROBUSTNESS_METHODS})
    for k in range(len(names), axes.size):  # the panels above empty ones get the labels
        axes.flat[k - n_columns].tick_params(labelbottom=True)
        axes.flat[k].remove()
    _label(figure, found, rows)
    return _drawing(
        figure,
        f"Robustness on {PLACES[rows]}, data set by data set"
        + ("" if rows == "training" else " (not shown in the paper)"),
        f"A panel for each of {count(len(names), 'data set')}, with a point for every repeat and "
        f"method: {_described(found, rows)}",
    )


def _ratios_of(
    measurements: pd.DataFrame, rows: str, methods: tuple[str, ...]
) -> tuple[pd.DataFrame, list[str]]:
    found = ratios(measurements, f"{rows}_loss", ["dataset", "repeat"])
    return found[found["method"].isin(methods)], list(measurements["dataset"].unique())


def _chosen(found: pd.DataFrame, dataset: str, method: str) -> Vector:
    of_both = (found["dataset"] == dataset) & (found["method"] == method)
    return np.asarray(found.loc[of_both, "ratio"])


def _label(figure: Figure, found: pd.DataFrame, rows: str) -> None:
    """Say what the axes are, and what the line is."""
    width, height = figure.get_size_inches()
    cut = _cut_off(found)
    figure.supylabel(
        _wrapped(f"loss on {PLACES[rows]}, semi-supervised / supervised", height, 9), size=9
    )
    at_top = "." if cut.endswith("none.") else " (numbers at the top)."
    said = f"Line: as high as the supervised counterpart's. {cut.removesuffix('.')}{at_top}"
    figure.supxlabel(_wrapped(said, width, 8), size=8, color=GREY)


def _described(found: pd.DataFrame, rows: str) -> str:
    highest = found.loc[found["method"] == "Projection", "ratio"].max()
    return (
        f"the loss on {PLACES[rows]} relative to the supervised counterpart's, with a line at 1. "
        f"The highest ratio of Projection is {highest:.4g}. {_cut_off(found)}"
    )


def _cut_off(found: pd.DataFrame) -> str:
    n_cut = int((found["ratio"] > HIGHEST_RATIO).sum())
    many = f"{n_cut} of {len(found)} points" if n_cut else "none"
    return f"Above {HIGHEST_RATIO:g} and cut off: {many}."


def _draw_ratios(ax: Axes, title: str, columns: dict[str, tuple[str, Vector]]) -> None:
    """Draw the points of one panel, given the method and the ratios of each column."""
    ax.set_title(title, size=9, pad=10)  # above the numbers of points that are cut off
    ax.axhline(1.0, color="black", linewidth=0.8, zorder=3)
    for position, (name, (method, ratio)) in enumerate(columns.items()):
        style = {**STYLES[method], "linestyle": "none"}
        # The same points lie in the same places whenever the figure is drawn.
        jitter = np.random.default_rng(zlib.crc32(name.encode())).uniform(-0.3, 0.3, len(ratio))
        ax.plot(
            position + jitter,
            ratio,
            **style,
            markersize=3.0,
            markeredgewidth=0.7 if style["marker"] == "x" else 0.0,
            alpha=0.7,
            zorder=2,
        )
        n_cut = int((ratio > HIGHEST_RATIO).sum())
        if n_cut:
            look: dict[str, Any] = {"ha": "center", "va": "bottom", "size": 6.5}
            place: dict[str, Any] = {"xytext": (0, 1.5), "textcoords": "offset points"}
            ax.annotate(
                f"{n_cut} ↑", (position, HIGHEST_RATIO), **place, **look, annotation_clip=False
            )
    ax.set_ylim(0.0, HIGHEST_RATIO)
    ax.set_xlim(-0.6, len(columns) - 0.4)
    ax.set_xticks(range(len(columns)), [name.replace("-", "-\n") for name in columns], size=7)
    ax.tick_params(axis="y", labelsize=7)
    ax.grid(axis="y", **GRID)
    ax.set_axisbelow(True)


def draw_curves(summary: pd.DataFrame) -> Drawing:
    """Draw Figure 2: error and loss for growing numbers of unlabeled rows."""
    names = list(summary["dataset"].unique())
    measures = {"error": "classification error", "test_loss": "quadratic loss"}
    figure = Figure(figsize=(max(4.8, 3.2 * len(names)), 5.6), layout="constrained")
    axes = figure.subplots(2, len(names), squeeze=False, sharex="col")
    for column, name in enumerate(names):
        for ax, (measure, label) in zip(axes[:, column], measures.items(), strict=True):
            chosen = summary[(summary["dataset"] == name) & (summary["measure"] == measure)]
            for method in CURVE_METHODS:
                _draw_curve(ax, method, chosen[chosen["method"] == method])
            sizes = sorted(chosen["n_unlabeled"].unique())
            ax.set_xscale("log", base=2)
            ax.set_xticks(sizes, [str(size) for size in sizes])
            ax.set_xticks([], minor=True)
            ax.yaxis.set_major_locator(MaxNLocator(6))
            ax.grid(**GRID)
            ax.set_axisbelow(True)
            ax.tick_params(labelsize=7)
            if column == 0:
                ax.set_ylabel(f"{label} on test rows", size=9)
        axes[0, column].set_title(name, size=10)
        axes[1, column].set_xlabel("unlabeled rows", size=9)
    handles, labels = axes[0, 0].get_legend_handles_labels()  # those of all panels
    n_columns = len(labels) if figure.get_figwidth() > 6 else 3
    look: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "handlelength": 3.2}
    figure.legend(handles, labels, ncols=n_columns, fontsize=8, **look)
    return _drawing(
        figure,
        "Figure 2: learning curves",
        f"Curves of {', '.join(CURVE_METHODS)} on {', '.join(names)}: classification error "
        "(top) and quadratic loss (bottom) on test rows, for growing numbers of unlabeled rows. "
        "Their ends are in the table of claims below.",
    )


def _draw_curve(ax: Axes, method: str, found: pd.DataFrame) -> None:
    style = STYLES[method]
    x, mean = found["n_unlabeled"].to_numpy(), found["mean"].to_numpy()
    ax.plot(x, mean, **style, linewidth=1.5, markersize=3.5, label=method)
    margin = RIBBON * found["standard_error"].to_numpy()
    if np.isfinite(margin).any():  # there is none for a single repeat
        low, high = mean - margin, mean + margin
        ax.fill_between(x, low, high, color=style["color"], alpha=0.2, linewidth=0)


def draw_timing(summary: pd.DataFrame) -> Drawing:
    """Draw the training time, relative to that of the supervised counterpart."""
    paper = published()["timing"]
    stopped, slower = paper["n_unlabeled"], paper["Projection"]
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    ax = figure.add_subplot()
    for name in TIMING_METHODS:
        found = summary[summary["method"] == name]
        ratio = found["ratio"]
        # Down to a tenth, should noise be larger than the ratio: the axis has no zero.
        margin = np.minimum(RIBBON * found["standard_error"].fillna(0.0), 0.9 * ratio)
        ax.errorbar(
            found["n_unlabeled"],
            ratio,
            yerr=margin,
            **STYLES[name],
            markersize=5,
            linewidth=1.5,
            capsize=2,
            label=f"{name} / {'Supervised' if name == 'Projection' else 'SVM'}",
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.axvline(stopped, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
    star: dict[str, Any] = {"marker": "*", "markersize": 12, "color": BLUE, "zorder": 3}
    star |= {"linestyle": "none", "markeredgecolor": "black", "markeredgewidth": 0.6}
    label = f"Projection / Supervised, published: {slower:g}"
    ax.plot(stopped, slower, **star, label=label)
    place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    text = f"the paper\nstopped at {stopped}"
    ax.annotate(text, (stopped, 0.02), xytext=(4, 2), **place, size=8, color=GREY)
    ax.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:g}\N{MULTIPLICATION SIGN}")
    )
    ax.grid(**GRID)
    ax.set_xlabel("unlabeled rows", size=9)
    ax.set_ylabel("training time, relative to supervised counterpart", size=9)
    ax.tick_params(labelsize=8)
    pairs = sorted(zip(*ax.get_legend_handles_labels(), strict=True), key=lambda pair: pair[1])
    look: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False}
    ax.legend(*zip(*pairs, strict=True), ncols=2, fontsize=8, **look)
    last = summary[summary["method"] == "Projection"].iloc[-1]
    return _drawing(
        figure,
        "Training time",
        "Training time relative to the supervised counterpart, on logarithmic axes. At "
        f"{last['n_unlabeled']:,} unlabeled rows Projection takes {last['ratio']:.3g} times as "
        f"long; published were {slower:g} times at {stopped}. All numbers are in the table below.",
    )


def _drawing(figure: Figure, title: str, description: str) -> Drawing:
    """Fix the layout of a figure: otherwise it is computed again each time it is drawn."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return Drawing(figure, title, description)


def _wrapped(text: str, inches: float, size: float) -> str:
    """Break text of a size in points into lines that are shorter than some inches."""
    # Letters are about half as wide as they are high; a little is left for the margins.
    return textwrap.fill(text, int((inches - 0.3) * 72.0 / (0.55 * size)))


def render(figure: Figure, kind: str) -> bytes:
    """Return a figure as the content of a file: always the same bytes for the same figure."""
    file = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        figure.savefig(file, format=kind, dpi=DOTS_PER_INCH, metadata=METADATA[kind])
    return file.getvalue()
