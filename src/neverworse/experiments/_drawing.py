"""How methods look in every figure, and what figures have in common."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from neverworse._palette import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY


@dataclass(frozen=True)
class Style:
    """How a method looks in every figure; shapes differ as well, for print without colour."""

    colour: str
    marker: str
    line: Any = "solid"


STYLES = {
    "Supervised": Style(ORANGE, "s", (0, (6, 2))),
    "Self-Learning": Style(PURPLE, "v", (0, (3, 1.5))),
    "ICLS": Style(SKY, "D"),
    "Projection": Style(BLUE, "o"),
    "Oracle": Style(GREEN, "^", (0, (6, 2, 1, 2))),
    "TSVM": Style(GREY, "x", (0, (1, 1.2))),
}


@dataclass(frozen=True)
class Drawing:
    """A figure, what it is, and what somebody who cannot see it should know."""

    figure: Figure
    title: str
    description: str


def settle(figure: Figure) -> Figure:
    """Place all parts of a figure for good.

    Otherwise they are placed anew each time it is drawn, and not quite in the same places.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def log2_axis(ax: Axes, sizes: Sequence[int]) -> None:
    """Put the sizes on a logarithmic axis, each with its number."""
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(FixedLocator([float(size) for size in sizes]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))


def legend_below(figure: Figure, ax: Axes) -> None:
    """Explain the lines of one panel, which are those of all, below them."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels) if figure.get_figwidth() > 6 else 3,
        fontsize=8,
        frameon=False,
        handlelength=3.2,
    )


def remove_unused(axes: Any, n_used: int) -> None:
    """Remove empty panels; those above them get the labels of the methods."""
    n_columns = axes.shape[1]
    for k, ax in enumerate(axes.flat):
        if k >= n_used:
            axes.flat[k - n_columns].tick_params(labelbottom=True)
            ax.remove()


def wrapped(text: str, inches: float, size: float) -> str:
    """Break text of a size in points into lines that are shorter than some inches."""
    # Letters are about half as wide as they are high; a little is left for the margins.
    return textwrap.fill(text, int((inches - 0.3) * 72.0 / (0.55 * size)))


def count(n: int, what: str) -> str:
    """Write a number of things."""
    return f"{n} {what}" + ("" if n == 1 else "s")
