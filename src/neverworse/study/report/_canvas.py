"""What all charts of a report have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from neverworse._words import number
from neverworse.pages import COLOURS, Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 480  # pixels: two beside each other on a screen; one fills a telephone, still readable
LETTERS = 12  # height of text in pixels
SMALL = 11


STYLE = {
    "font.size": LETTERS,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOURS["soft"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.linewidth": 1.0,
    "axes.labelsize": LETTERS,
    "xtick.color": COLOURS["soft"],
    "ytick.color": COLOURS["soft"],
    "xtick.labelcolor": COLOURS["ink"],
    "ytick.labelcolor": COLOURS["ink"],
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "text.color": COLOURS["ink"],
    "grid.color": COLOURS["line"],
    "grid.linewidth": 1.0,
    "axes.axisbelow": True,
    "lines.solid_joinstyle": "round",
    "svg.fonttype": "none",
}


@dataclass(frozen=True)
class Look:
    """How a method looks: shapes differ as well, for print without colour."""

    role: str
    marker: str
    symbol: str  # the marker in a line of text
    line: Any = "solid"

    @property
    def colour(self) -> str:
        """The colour, as figures know it."""
        return COLOURS[self.role]


SUPERVISED = Look("supervised", "s", "\N{BLACK SQUARE}", (0, (5, 2)))
PROJECTED = Look("projected", "o", "\N{BLACK CIRCLE}")
OTHERS = (
    Look("third", "D", "\N{BLACK DIAMOND}", (0, (6, 2, 1, 2))),
    Look("fourth", "^", "\N{BLACK UP-POINTING TRIANGLE}", (0, (3, 1.5))),
    Look("fifth", "v", "\N{BLACK DOWN-POINTING TRIANGLE}", (0, (1, 1.2))),
    Look("sixth", "P", "\N{HEAVY GREEK CROSS}", (0, (8, 2))),
)


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Return how each method looks: supervised and projected the same everywhere."""
    known = {"supervised": SUPERVISED, "projected": PROJECTED, "projection": PROJECTED}
    found: dict[str, Look] = {}
    n_others = 0
    for method in methods:
        look = known.get(method.lower())
        if look is None:
            look = OTHERS[n_others % len(OTHERS)]
            n_others += 1
        found[method] = look
    return found


@contextmanager
def drawing_style() -> Iterator[None]:
    """Draw in the style of the report, whatever matplotlib's settings are elsewhere."""
    from matplotlib import style

    with style.context(["default", STYLE]):
        yield


def canvas(
    height: float, *, left: float = 56, right: float = 12, top: float = 12, bottom: float = 44
) -> tuple[Chart, Axes]:
    """Return an empty chart and its axes; all sizes are pixels.

    To be called, and drawn into, within `drawing_style`. Margins are given, not computed: texts
    get their letters later, in a font of the reader's.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
    ax = figure.add_axes(
        (
            left / WIDTH,
            bottom / height,
            1.0 - (left + right) / WIDTH,
            1.0 - (top + bottom) / height,
        )
    )
    ax.tick_params(length=0, pad=6)
    return Chart(figure), ax


def dots(
    ax: Axes, x: Sequence[float], y: Sequence[float], look: Look, identity: str, line: Any = "solid"
) -> None:
    """Draw the symbols of a method, and a line through them unless it is "none"."""
    ax.plot(
        x,
        y,
        color=look.colour,
        marker=look.marker,
        linestyle=line,
        linewidth=1.8,
        markersize=9,
        markeredgewidth=1.1,
        markeredgecolor=COLOURS["ground"],
        clip_on=False,
        gid=identity,
    )


def number_axis(axis: Any, n_ticks: int = 5) -> None:
    """Write numbers as the rest of the page does, at not too many places."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(n_ticks, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value, largest=1e6)))
    axis.grid(True)


def rows_axis(ax: Axes, chart: Chart, names: Sequence[str]) -> None:
    """Put a name beside each row of a chart, the first one at the top."""
    ax.set_yticks(range(len(names)), [chart.placeholder(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.spines["left"].set_visible(False)


def sizes_axis(ax: Axes, sizes: Sequence[int], label: str) -> None:
    """Put sizes on an axis, logarithmic where they differ much, numbers where there is room."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    positive = [size for size in sizes if size > 0]
    if len(positive) > 1 and max(positive) > 6 * min(positive):
        # A logarithm has no place for 0, which is a size like others here.
        ax.set_xscale("symlog", linthresh=min(positive), linscale=0.5)
        place = [math.asinh(size / min(positive)) for size in sizes]
    else:
        place = [float(size) for size in sizes]
    shown = [len(sizes) - 1]
    room = 0.13 * ((max(place) - min(place)) or 1.0)
    for k in range(len(sizes) - 2, -1, -1):
        if place[shown[-1]] - place[k] >= room:
            shown.append(k)
    ax.xaxis.set_major_locator(FixedLocator([float(sizes[k]) for k in shown]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.set_xlabel(label)


def hover_bands(
    ax: Axes,
    chart: Chart,
    identity: str,
    edges: Sequence[float],
    bottom: float,
    top: float,
    titles: Sequence[str],
) -> None:
    """Lay invisible bands over a part of the axes that say something under the mouse."""
    from matplotlib.collections import PolyCollection

    boxes = [
        [(low, bottom), (low, top), (high, top), (high, bottom)] for low, high in pairwise(edges)
    ]
    bands = PolyCollection(
        boxes, facecolors=COLOURS["hover"], edgecolors="none", gid=identity, zorder=9
    )
    bands.set_clip_on(False)
    ax.add_collection(bands, autolim=False)
    chart.titles[identity] = titles
