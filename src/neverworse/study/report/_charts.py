"""The charts of a report: how rows score, weights, methods, and learning curves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neverworse._words import count, decimal, number, short, width
from neverworse.pages import COLOURS, Chart, canvas, number_axis
from neverworse.study._study import CalibrationBin, Coefficient, Curve, Estimate, Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT, LINE = (COLOURS[role] for role in ("ink", "soft", "line"))
RIDGE = 68  # pixels for the scores of a group of rows
LONGEST_GROUP, LONGEST_NAME, LONGEST_CLASS = 17, 24, 11  # letters
MEASURES = {"error": "error on held-out rows", "loss": "squared loss per held-out row"}

DOTS: dict[str, Any] = {"linewidth": 1.8, "markersize": 9, "markeredgewidth": 1.1}


@dataclass(frozen=True)
class Look:
    """Colour, marker and line of a method; markers differ as well, for print without colour."""

    role: str
    marker: str
    symbol: str  # the marker in a line of text
    line: Any = "solid"

    @property
    def colour(self) -> str:
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
    """Return the looks of methods: those of supervised and projected never change."""
    known, others = {"supervised": SUPERVISED, "projected": PROJECTED}, cycle(OTHERS)
    return {method: known.get(method) or next(others) for method in methods}


def scores_chart(scores: Scores, *, cut: bool, moved: bool = True) -> Chart:
    """Draw histograms of scores, the supervised ones if they moved, and a score of 0.5 as a cut."""
    n_groups = len(scores.groups)
    chart, ax = canvas(RIDGE * n_groups + 58, left=168, top=14)
    edges = np.asarray(scores.edges)
    for level in (0.0, 1.0):
        ax.axvline(level, color=LINE, linewidth=1.0)
    if cut:
        ax.axvline(0.5, color=SOFT, linewidth=1.0, linestyle=(0, (2, 2)))
    for k, group in enumerate(scores.groups):
        base = float(n_groups - 1 - k)
        highest = max(*group.supervised, *group.projected, 1)
        after, before = (
            # Where there are no rows there is no line, which would hide the axis.
            np.where(counts, base + 0.86 * np.asarray(counts) / highest, np.nan)
            for counts in (group.projected, group.supervised)
        )
        ax.axhline(base, color=SOFT, linewidth=1.0)
        ax.stairs(after, edges, baseline=base, fill=True, color=PROJECTED.colour, alpha=0.35)
        ax.stairs(after, edges, baseline=base, color=PROJECTED.colour)
        if moved:
            colour, line = SUPERVISED.colour, SUPERVISED.line
            ax.stairs(before, edges, baseline=base, color=colour, linewidth=1.6, linestyle=line)
    names = [f"{short(each.name, LONGEST_GROUP)}: {each.n_rows:,}" for each in scores.groups]
    places = [n_groups - 0.7 - k for k in range(n_groups)]
    ax.set_yticks(places, [chart.placeholder(name) for name in names])
    label = chart.placeholder(f"score for {short(scores.class_name, 40)}")
    ax.set(xlim=edges[[0, -1]], ylim=(0.0, n_groups), xlabel=label)
    ax.spines["left"].set_visible(False)
    number_axis(ax.xaxis, 6)
    ax.xaxis.grid(False)
    groups = "; ".join(f"{each.name}, {count(each.n_rows, 'row')}" for each in scores.groups)
    chart.description = f"How rows score for {scores.class_name} by either model: {groups}."
    return chart


# A name, the ends of a line, dots on it, and what they show.
Row = tuple[str, tuple[float, float], Sequence[tuple[Look, float]], str]


def rows_chart(rows: Sequence[Row], label: str, reference: float = 0.0) -> Chart:
    """Draw dots and a line for each row, the first one at the top, beside a reference."""
    chart, ax = canvas(26 * len(rows) + 60, left=168, top=8)
    ax.axvline(reference, color=INK, linewidth=1.2)
    for k, (_, ends, marks, said) in enumerate(rows):
        ax.plot(ends, [k, k], color=marks[-1][0].colour, linewidth=2.5, solid_capstyle="round")
        for m, (look, value) in enumerate(marks):
            dots(ax, [value], [k], look, f"dot{k}-{m}", line="none")
            chart.titles[f"dot{k}-{m}"] = [said]
    ax.set_yticks(range(len(rows)), [chart.placeholder(name) for name, *_ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.spines["left"].set_visible(False)
    number_axis(ax.xaxis, 4)
    ax.yaxis.grid(True)
    ax.set_xlabel(label)
    chart.description = f"{label}. {'; '.join(said for *_, said in rows)}."
    return chart


def coefficients_chart(
    shifted: Sequence[Coefficient], *, with_class: bool, moved: bool = True
) -> Chart:
    """Draw weights, before and after if they moved, per standard deviation of their features."""
    rows = []
    for each in shifted:
        before, after = each.supervised_scaled, each.projected_scaled
        of_class = f", {short(each.class_name, LONGEST_CLASS)}" if with_class else ""
        name = short(each.feature, LONGEST_NAME - width(of_class)) + of_class
        both = (SUPERVISED, before), (PROJECTED, after)
        said = f"supervised {number(before)}, projected {number(after)} per standard deviation"
        said = f"{each.feature}{f', {each.class_name}' if with_class else ''}: {said}"
        rows.append((name, (before if moved else 0.0, after), both[not moved :], said))
    return rows_chart(rows, "weight per standard deviation of the feature")


def intervals_chart(
    estimates: Sequence[tuple[str, Estimate]],
    label: str,
    reference: float = 0.0,
    look: Look | None = None,
) -> Chart:
    """Draw a dot and an interval for each method or column, and a line to compare them with."""
    look_of = looks(name for name, _ in estimates)
    rows = []
    for name, each in estimates:
        mark = look or look_of[name], each.value
        said = f"{name}: {_with_ends(each)}"
        rows.append((short(name, LONGEST_NAME), (each.low, each.high), [mark], said))
    return rows_chart(rows, label, reference)


def curve_chart(curve: Curve, measure: Literal["error", "loss"]) -> Chart:
    """Draw a learning curve: a line and a ribbon for each method."""
    chart, ax = canvas(290, left=60)
    chart.description = f"{MEASURES[measure].capitalize()} over {curve.rows} rows."
    look_of = looks(line.method for line in curve.lines)
    for k, line in enumerate(curve.lines):
        look, found = look_of[line.method], getattr(line, measure)
        ends = [each.low for each in found], [each.high for each in found]
        ax.fill_between(curve.sizes, *ends, color=look.colour, alpha=0.14, linewidth=0)
        dots(ax, curve.sizes, [each.value for each in found], look, f"line{k}", line=look.line)
        chart.titles[f"line{k}"] = [
            f"{line.method}, {count(size, f'{curve.rows} row')}: {_with_ends(each)}"
            for size, each in zip(curve.sizes, found, strict=True)
        ]
        first, last = (f"{decimal(found[k].value)} at {curve.sizes[k]:,}" for k in (0, -1))
        chart.description += f" {line.method}: {first}, {last}."
    number_axis(ax.yaxis)
    # Logarithmic, with a place for 0, which may be a size.
    ax.set_xscale("symlog", linthresh=min(size for size in curve.sizes if size), linscale=0.5)
    ax.set_xticks(curve.sizes, [f"{size:,}" for size in curve.sizes])
    ax.set_xticks([], minor=True)
    ax.set(xlabel=f"{curve.rows} rows in training", ylabel=MEASURES[measure])
    return chart


def calibration_chart(bins: Sequence[CalibrationBin], positive: str) -> Chart:
    """Draw how often rows are of a class, over the probability that was predicted."""
    chart, ax = canvas(290, left=60)
    predicted = [each.predicted for each in bins]
    observed = [each.observed for each in bins]
    ax.plot([0, 1], [0, 1], color=SOFT, linewidth=1.0, linestyle=(0, (2, 2)))
    ends = [each.low for each in observed], [each.high for each in observed]
    ax.vlines(predicted, *ends, color=PROJECTED.colour, linewidth=2.5, alpha=0.45)
    dots(ax, predicted, [each.value for each in observed], PROJECTED, "bins")
    chart.titles["bins"] = [
        f"predicted {decimal(each.predicted, 2)}: observed {_with_ends(each.observed, 2)}"
        for each in bins
    ]
    label = chart.placeholder(f"predicted probability of {short(positive, 34)}")
    limits = -0.03, 1.03
    ax.set(xlim=limits, ylim=limits, xlabel=label, ylabel="share of held-out rows")
    number_axis(ax.xaxis)
    number_axis(ax.yaxis)
    chart.description = f"Calibration on held-out rows: {'; '.join(chart.titles['bins'])}."
    return chart


def _with_ends(found: Estimate, decimals: int = 3) -> str:
    value, low, high = (decimal(each, decimals) for each in (found.value, found.low, found.high))
    return f"{value}, between {low} and {high}"


def dots(
    ax: Axes, x: Sequence[float], y: Sequence[float], look: Look, identity: str, line: Any = "solid"
) -> None:
    """Draw the symbols of a method, and a line through them unless it is "none"."""
    shape = {"color": look.colour, "marker": look.marker, "linestyle": line, "gid": identity}
    ax.plot(x, y, **shape, **DOTS, markeredgecolor=COLOURS["ground"], clip_on=False)
