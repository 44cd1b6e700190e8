"""Figure 1: the ratios of losses, as in the paper and data set by data set."""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from neverworse._palette import GREY
from neverworse._typing import Vector
from neverworse.experiments import _analysis
from neverworse.experiments._drawing import (
    STYLES,
    Drawing,
    count,
    remove_unused,
    settle,
    wrapped,
)

HIGHEST_RATIO = 5.0  # where the paper cuts its figure off
PAPER_METHODS = ("Self-Learning", "Projection", "TSVM")
ROBUSTNESS_METHODS = ("Self-Learning", "ICLS", "Projection", "TSVM")
PLACES = {"training": "labeled and unlabeled rows", "test": "test rows"}


def draw_figure_one(measurements: pd.DataFrame) -> Drawing:
    """Draw Figure 1 in the paper's form: a panel for each method, over all data sets.

    Parameters
    ----------
    measurements : DataFrame
        Of the robustness experiment.
    """
    found = _analysis.ratios(measurements, "training_loss", ["dataset", "repeat"])
    found = found[found["method"].isin(PAPER_METHODS)]
    names = list(measurements["dataset"].unique())
    figure = Figure(figsize=(max(4.6, 2.0 + 0.42 * len(names)), 6.8), layout="constrained")
    axes = figure.subplots(len(PAPER_METHODS), 1, sharex=True, sharey=True)
    for ax, method in zip(axes, PAPER_METHODS, strict=True):
        of_method = found[found["method"] == method]
        ratios = {name: of_method.loc[of_method["dataset"] == name, "ratio"] for name in names}
        _draw_ratios(ax, {k: (method, ratio.to_numpy()) for k, ratio in ratios.items()})
        ax.set_title(method, size=9, pad=10)
    axes[-1].set_xticks(range(len(names)), names, size=7, rotation=45, ha="right")
    _label(figure, found, "training")
    return Drawing(
        settle(figure),
        "Figure 1: robustness, in the paper's form",
        f"A panel for each of {', '.join(PAPER_METHODS)}, with a point for every repeat on each of "
        f"{count(len(names), 'data set')}: {_described(found, 'training')}",
    )


def draw_robustness(measurements: pd.DataFrame, rows: str) -> Drawing:
    """Draw the same with a panel for each data set, and ICLS.

    Parameters
    ----------
    measurements : DataFrame
        Of the robustness experiment.
    rows : {"training", "test"}
        On which rows losses are compared. The paper shows labeled and unlabeled ones.
    """
    found = _analysis.ratios(measurements, f"{rows}_loss", ["dataset", "repeat"])
    found = found[found["method"].isin(ROBUSTNESS_METHODS)]
    names = list(measurements["dataset"].unique())
    n_columns = min(4, len(names))
    n_rows = -(-len(names) // n_columns)
    figure = Figure(figsize=(max(4.6, 2.3 * n_columns), 0.9 + 1.75 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    for ax, name in zip(axes.flat, names, strict=False):
        of_dataset = found[found["dataset"] == name]
        ratios = {k: of_dataset.loc[of_dataset["method"] == k, "ratio"] for k in ROBUSTNESS_METHODS}
        _draw_ratios(ax, {k: (k, ratio.to_numpy()) for k, ratio in ratios.items()})
        ax.set_title(name, size=9, pad=10)  # above the numbers of points that are cut off
    remove_unused(axes, len(names))
    _label(figure, found, rows)
    return Drawing(
        settle(figure),
        f"Robustness on {PLACES[rows]}, data set by data set"
        + ("" if rows == "training" else " (not shown in the paper)"),
        f"A panel for each of {count(len(names), 'data set')}, with a point for every repeat and "
        f"method: {_described(found, rows)}",
    )


def _label(figure: Figure, found: pd.DataFrame, rows: str) -> None:
    """Say what the axes are, and what the line is."""
    width, height = figure.get_size_inches()
    cut = _cut_off(found)
    figure.supylabel(
        wrapped(f"loss on {PLACES[rows]}, semi-supervised / supervised", height, 9), size=9
    )
    at_top = "." if cut.endswith("none.") else " (numbers at the top)."
    said = f"Line: as high as the supervised counterpart's. {cut.removesuffix('.')}{at_top}"
    figure.supxlabel(wrapped(said, width, 8), size=8, color=GREY)


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


def _draw_ratios(ax: Axes, ratios: dict[str, tuple[str, Vector]]) -> None:
    """Draw the points of one panel, given the method and the ratios of each column."""
    ax.axhline(1.0, color="black", linewidth=0.8, zorder=3)
    for position, (name, (method, ratio)) in enumerate(ratios.items()):
        style = STYLES[method]
        # The same points lie in the same places whenever the figure is drawn.
        jitter = np.random.default_rng(zlib.crc32(name.encode())).uniform(-0.3, 0.3, len(ratio))
        ax.plot(
            position + jitter,
            ratio,
            linestyle="none",
            marker=style.marker,
            markersize=3.0,
            markeredgewidth=0.7 if style.marker == "x" else 0.0,
            color=style.colour,
            alpha=0.7,
            zorder=2,
        )
        n_cut = int((ratio > HIGHEST_RATIO).sum())
        if n_cut:
            ax.annotate(
                f"{n_cut} ↑",
                (position, HIGHEST_RATIO),
                xytext=(0, 1.5),
                textcoords="offset points",
                ha="center",
                va="bottom",
                size=6.5,
                annotation_clip=False,
            )
    ax.set_ylim(0.0, HIGHEST_RATIO)
    ax.set_xlim(-0.6, len(ratios) - 0.4)
    ax.set_xticks(range(len(ratios)), [name.replace("-", "-\n") for name in ratios], size=7)
    ax.tick_params(axis="y", labelsize=7)
    ax.grid(axis="y", linewidth=0.3, color="#DDDDDD")
    ax.set_axisbelow(True)
