"""The figures of the paper, drawn from the measurements."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from neverworse._palette import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY
from neverworse._words import count
from neverworse.experiments._analysis import published, ratios

if TYPE_CHECKING:
    from neverworse.experiments._reproduction import Reproduction

ROBUSTNESS_METHODS = ("Self-Learning", "ICLS", "Projection", "TSVM")
CURVE_METHODS = ("Supervised", "Self-Learning", "ICLS", "Projection", "Oracle")
TIMING_METHODS = ("Projection", "TSVM")
PLACES = {"training": "labeled and unlabeled rows", "test": "test rows"}
HIGHEST_RATIO = 5.0  # where the paper cuts its figure off
RIBBON = 2.0  # standard errors
FORMATS = ("png", "svg", "pdf")
SETTINGS = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.3,
    "grid.color": "#DDDDDD",
    "legend.frameon": False,
}

# Markers and line styles differ as well, for print without colour.
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
    """Draw all figures of the experiments that were run, by the names of their files."""
    measured, summaries = results.measurements, results.summaries
    with mpl.rc_context(SETTINGS):
        drawings = {
            name: draw_robustness(measured["robustness"], title, rows)
            for name, title, rows in (
                ("figure1", "Figure 1: robustness, with ICLS", "training"),
                ("robustness-test", "Robustness on test rows", "test"),
            )
            if "robustness" in measured
        }
        for name, make in (("curves", draw_curves), ("timing", draw_timing)):
            if name in summaries:
                drawings[name] = make(summaries[name])
    return drawings


def draw_robustness(measurements: pd.DataFrame, title: str, rows: str) -> Drawing:
    """Draw the losses on training or test rows: a panel for each method, over all data sets."""
    methods = ROBUSTNESS_METHODS
    found = ratios(measurements, f"{rows}_loss", ["dataset", "repeat"])
    found = found[found["method"].isin(methods)]
    names = list(found["dataset"].unique())
    size = max(6.0, 2.0 + 0.42 * len(names)), 0.8 + 2.0 * len(methods)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(methods), 1, sharex=True, sharey=True)
    for ax, method in zip(axes, methods, strict=True):
        ax.set_title(method, pad=10)  # above the numbers of points that are cut off
        of_method = found[found["method"] == method].groupby("dataset")["ratio"]
        for x, name in enumerate(names):
            ratio = of_method.get_group(name)
            jitter = np.random.default_rng(x).uniform(-0.3, 0.3, len(ratio))
            look = STYLES[method] | {"linestyle": "none", "markersize": 3.0, "alpha": 0.7}
            ax.plot(x + jitter, ratio, **look, markeredgewidth=0.7 * (look["marker"] == "x"))
            n_above = int((ratio > HIGHEST_RATIO).sum())
            if n_above:
                place: Any = (x, HIGHEST_RATIO), (0, 1.5), "data", "offset points"
                ax.annotate(f"{n_above} ↑", *place, annotation_clip=False, ha="center", size=6.5)
        ax.axhline(1.0, color="black", linewidth=0.8, zorder=3)
        ax.set_ylim(0.0, HIGHEST_RATIO)
    axes[-1].set_xlim(-0.6, len(names) - 0.4)
    axes[-1].set_xticks(range(len(names)), names, rotation=45, ha="right")
    figure.supylabel(f"loss on {PLACES[rows]}, semi-supervised / supervised")
    n_cut = int((found["ratio"] > HIGHEST_RATIO).sum())
    cut = f"Above {HIGHEST_RATIO:g} and cut off: {n_cut} of {len(found)} points."
    figure.supxlabel(cut, size="medium", color=GREY)
    highest = found.loc[found["method"] == "Projection", "ratio"].max()
    return Drawing(
        figure,
        title,
        f"A panel for each of {', '.join(methods)}, with a point for every repeat on each of "
        f"{count(len(names), 'data set')}: the loss on {PLACES[rows]} relative to the supervised "
        f"counterpart's, with a line at 1. The highest ratio of Projection is {highest:.4g}. {cut}",
    )


def draw_curves(summary: pd.DataFrame) -> Drawing:
    """Draw Figure 2: error and loss for growing numbers of unlabeled rows."""
    names = list(summary["dataset"].unique())
    measures = {"error": "classification error", "test_loss": "quadratic loss"}
    figure = Figure(figsize=(max(4.8, 3.2 * len(names)), 5.6), layout="constrained")
    axes = figure.subplots(2, len(names), squeeze=False, sharex="col")
    for column, name in enumerate(names):
        for ax, measure in zip(axes[:, column], measures, strict=True):
            chosen = summary[(summary["dataset"] == name) & (summary["measure"] == measure)]
            for method in CURVE_METHODS:
                found = chosen[chosen["method"] == method].set_index("n_unlabeled")
                mean, margin = found["mean"], RIBBON * found["standard_error"]
                style = STYLES[method]
                ax.plot(mean, **style, linewidth=1.5, markersize=3.5, label=method)
                ribbon = {"color": style["color"], "alpha": 0.2, "linewidth": 0}
                ax.fill_between(mean.index, mean - margin, mean + margin, **ribbon)
            sizes = sorted(chosen["n_unlabeled"].unique())
            ax.set_xscale("log", base=2)
            ax.set_xticks(sizes, [str(size) for size in sizes])
            ax.set_xticks([], minor=True)
            ax.yaxis.set_major_locator(MaxNLocator(6))
        axes[0, column].set_title(name)
        axes[1, column].set_xlabel("unlabeled rows")
    for ax, label in zip(axes[:, 0], measures.values(), strict=True):
        ax.set_ylabel(f"{label} on test rows")
    handles, labels = axes[0, 0].get_legend_handles_labels()  # those of all panels
    figure.legend(handles, labels, ncols=3, loc="outside lower center", handlelength=3.2)
    return Drawing(
        figure,
        "Figure 2: learning curves",
        f"Curves of {', '.join(CURVE_METHODS)} on {', '.join(names)}: classification error "
        "(top) and quadratic loss (bottom) on test rows, for growing numbers of unlabeled rows. "
        "Their ends are in the table below.",
    )


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
    star: dict[str, Any] = {"marker": "*", "s": 140, "color": BLUE, "edgecolor": "black"}
    label = f"Projection / Supervised, published: {slower:g} at {stopped}"
    ax.scatter(stopped, slower, **star, linewidth=0.6, zorder=3, label=label)
    ax.yaxis.set_major_formatter("{x:g}\N{MULTIPLICATION SIGN}")
    ax.set_xlabel("unlabeled rows")
    ax.set_ylabel("training time, relative to supervised counterpart")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    last = summary[summary["method"] == "Projection"].iloc[-1]
    return Drawing(
        figure,
        "Training time",
        "Training time relative to the supervised counterpart, on logarithmic axes. At "
        f"{last['n_unlabeled']:,} unlabeled rows Projection takes {last['ratio']:.3g} times as "
        f"long; published were {slower:g} times at {stopped}. All numbers are in the table below.",
    )


def render(figure: Figure, kind: str) -> bytes:
    """Return a figure as the content of a file."""
    file = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        figure.savefig(file, format=kind, dpi=200)
    return file.getvalue()
