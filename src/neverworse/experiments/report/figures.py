"""The figures of the paper, drawn from what was measured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from neverworse._palette import BLUE, GREY
from neverworse.experiments._drawing import STYLES, Drawing, legend_below, log2_axis, settle
from neverworse.experiments._published import published
from neverworse.experiments._reproduction import Reproduction
from neverworse.experiments._robustness_figures import draw_figure_one, draw_robustness

RIBBON = 2.0  # standard errors
CURVE_METHODS = ("Supervised", "Self-Learning", "ICLS", "Projection", "Oracle")
TIMING_METHODS = ("Projection", "TSVM")


def draw(reproduction: Reproduction) -> dict[str, Drawing]:
    """Draw all figures for which something was measured.

    Returns
    -------
    drawings : dict of str to Drawing
        Of "figure1", "robustness", "robustness-test", "curves" and "timing", those that there are.
    """
    makers: dict[str, tuple[str, Callable[[], Drawing]]] = {
        "figure1": (
            "robustness",
            lambda: draw_figure_one(reproduction.measurements["robustness"]),
        ),
        "robustness": (
            "robustness",
            lambda: draw_robustness(reproduction.measurements["robustness"], "training"),
        ),
        "robustness-test": (
            "robustness",
            lambda: draw_robustness(reproduction.measurements["robustness"], "test"),
        ),
        "curves": ("curves", lambda: draw_curves(reproduction.summaries["curves"])),
        "timing": ("timing", lambda: draw_timing(reproduction.summaries["timing"])),
    }
    return {
        name: make()
        for name, (experiment, make) in makers.items()
        if experiment in reproduction.measurements
    }


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
            log2_axis(ax, sorted(chosen["n_unlabeled"].unique()))
            ax.yaxis.set_major_locator(MaxNLocator(6))
            ax.grid(linewidth=0.3, color="#DDDDDD")
            ax.set_axisbelow(True)
            ax.tick_params(labelsize=7)
            if column == 0:
                ax.set_ylabel(f"{label} on test rows", size=9)
        axes[0, column].set_title(name, size=10)
        axes[1, column].set_xlabel("unlabeled rows", size=9)
    legend_below(figure, axes[0, 0])
    return Drawing(
        settle(figure),
        "Figure 2: learning curves",
        f"Curves of {', '.join(CURVE_METHODS)} on {', '.join(names)}: classification error "
        "(top) and quadratic loss (bottom) on test rows, for growing numbers of unlabeled rows. "
        "Their ends are in the table of claims below.",
    )


def _draw_curve(ax: Axes, method: str, found: pd.DataFrame) -> None:
    style = STYLES[method]
    x, mean = found["n_unlabeled"].to_numpy(), found["mean"].to_numpy()
    ax.plot(
        x,
        mean,
        color=style.colour,
        linestyle=style.line,
        linewidth=1.5,
        marker=style.marker,
        markersize=3.5,
        label=method,
    )
    margin = RIBBON * found["standard_error"].to_numpy()
    if np.isfinite(margin).any():  # there is none for a single repeat
        ax.fill_between(x, mean - margin, mean + margin, color=style.colour, alpha=0.2, linewidth=0)


def draw_timing(summary: pd.DataFrame) -> Drawing:
    """Draw the training time, relative to that of the supervised counterpart."""
    paper = published()["timing"]
    stopped, slower = paper["n_unlabeled"], paper["Projection"]
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    ax = figure.add_subplot()
    for name in TIMING_METHODS:
        found = summary[summary["method"] == name]
        style, ratio = STYLES[name], found["ratio"]
        # Down to a tenth, should noise be larger than the ratio: the axis has no zero.
        margin = np.minimum(RIBBON * found["standard_error"].fillna(0.0), 0.9 * ratio)
        ax.errorbar(
            found["n_unlabeled"],
            ratio,
            yerr=margin,
            color=style.colour,
            linestyle=style.line,
            marker=style.marker,
            markersize=5,
            linewidth=1.5,
            capsize=2,
            label=f"{name} / {'Supervised' if name == 'Projection' else 'SVM'}",
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.axvline(stopped, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
    ax.plot(
        stopped,
        slower,
        marker="*",
        markersize=12,
        linestyle="none",
        color=BLUE,
        markeredgecolor="black",
        markeredgewidth=0.6,
        label=f"Projection / Supervised, published: {slower:g}",
        zorder=3,
    )
    ax.annotate(
        f"the paper\nstopped at {stopped}",
        (stopped, 0.02),
        xycoords=("data", "axes fraction"),
        xytext=(4, 2),
        textcoords="offset points",
        size=8,
        color=GREY,
    )
    ax.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:g}\N{MULTIPLICATION SIGN}")
    )
    ax.grid(linewidth=0.3, color="#DDDDDD")
    ax.set_xlabel("unlabeled rows", size=9)
    ax.set_ylabel("training time, relative to supervised counterpart", size=9)
    ax.tick_params(labelsize=8)
    handles, labels = ax.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=labels.__getitem__)
    ax.legend(
        [handles[k] for k in order],
        [labels[k] for k in order],
        fontsize=8,
        frameon=False,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=2,
    )
    last = summary[summary["method"] == "Projection"].iloc[-1]
    return Drawing(
        settle(figure),
        "Training time",
        "Training time relative to the supervised counterpart, on logarithmic axes. At "
        f"{last['n_unlabeled']:,} unlabeled rows Projection takes {last['ratio']:.3g} times as "
        f"long; published were {slower:g} times at {stopped}. All numbers are in the table below.",
    )
