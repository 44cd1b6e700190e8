"""Charts of the model: what is proved, how rows score, and how weights moved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neverworse._typing import Vector
from neverworse.projection.words import count
from neverworse.study._study import Coefficient, ScoreGroup, Scores
from neverworse.study.report._canvas import (
    PROJECTED,
    SMALL,
    SUPERVISED,
    canvas,
    hover_bands,
    number_axis,
    rows_axis,
)
from neverworse.study.report._svg import COLOURS, Chart
from neverworse.study.report._words import number, short, width

INK, SOFT, LINE, GROUND = (COLOURS[role] for role in ("ink", "soft", "line", "ground"))
MOST_GROUPS = 4
RIDGE = 68  # pixels for the scores of a group of rows
LONGEST_GROUP, LONGEST_FEATURE, LONGEST_CLASS = 17, 24, 11  # letters


def bounds_chart(best: float, worst: float) -> Chart:
    """Draw in what interval the difference of two losses lies, whatever the labels."""
    low, high = min(best, 0.0), max(worst, 0.0)
    chart, ax = canvas(140, left=28, right=28, top=4, bottom=46)
    reach = (high - low) or 1.0
    ax.set_xlim(low - 0.04 * reach, high + 0.04 * reach)
    ax.set_ylim(-1.0, 3.6)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    number_axis(ax.xaxis)
    ax.xaxis.grid(False)
    ax.axvline(0.0, ymax=0.36, color=INK, linewidth=1.5)
    colour = PROJECTED.colour if worst <= 0 else SUPERVISED.colour
    ax.plot([best, worst], [0, 0], color=colour, linewidth=10, solid_capstyle="butt", gid="range")
    # One above the other, for the interval may be too short for both.
    for value, height, case in ((best, 2.2, "best"), (worst, 0.9, "worst")):
        # Towards the side with more room.
        side = ("left", "center", "right")[min(2, int(3.0 * (value - low) / reach))]
        ax.text(value, height, f"in the {case} case {_lower(value)}", ha=side)
    ax.set_xlabel("difference from the loss of the supervised model")
    chart.titles["range"] = f"between {number(best)} and {number(worst)}"
    chart.description = (
        f"Whatever the labels, the loss differs by between {number(best)} and {number(worst)} "
        "from that of the supervised model, which is at 0. Below 0 is better."
    )
    return chart


def _lower(difference: float) -> str:
    return f"{number(abs(difference))} {'lower' if difference <= 0 else 'higher'}"


def scores_chart(scores: Scores, *, threshold: bool, moved: bool = True) -> Chart:
    """Draw how each group of rows scores: projected as an area, supervised as a line.

    Parameters
    ----------
    scores : Scores
    threshold : bool
        Whether the class is predicted from a score of one half on.
    moved : bool, default=True
        Whether the models differ: if not, one is enough.
    """
    groups = _few(scores)
    n_groups = len(groups)
    chart, ax = canvas(RIDGE * n_groups + 58, left=128, top=14)
    edges = np.asarray(scores.edges)
    for level in (0.0, 1.0):
        ax.axvline(level, color=LINE, linewidth=1.0)
    if threshold:
        ax.axvline(0.5, color=SOFT, linewidth=1.0, linestyle=(0, (2, 2)))
    for k, group in enumerate(groups):
        base = float(n_groups - 1 - k)
        highest = max(*group.supervised, *group.projected, 1)
        after, before = (
            base + 0.86 * np.asarray(counts, dtype=float) / highest
            for counts in (group.projected, group.supervised)
        )
        ax.axhline(base, color=SOFT, linewidth=1.0)
        ax.stairs(after, edges, baseline=base, fill=True, color=PROJECTED.colour, alpha=0.35)
        ax.stairs(_where_any(after, base), edges, baseline=base, color=PROJECTED.colour)
        if moved:
            ax.stairs(
                _where_any(before, base),
                edges,
                baseline=base,
                color=SUPERVISED.colour,
                linewidth=1.6,
                linestyle=SUPERVISED.line,
            )
        for line, (content, colour) in enumerate(
            [(short(group.name, LONGEST_GROUP), INK), (count(group.n_rows, "row"), SOFT)]
        ):
            ax.annotate(
                chart.placeholder(content),
                (0, base),
                xycoords=("axes fraction", "data"),
                xytext=(-10, 24 - 15 * line),
                textcoords="offset points",
                ha="right",
                fontsize=SMALL,
                color=colour,
                # The rows that should score 1.
                fontweight="bold" if colour == INK and group.name == scores.class_name else None,
                annotation_clip=False,
            )
        titles = [
            f"{group.name}, rows with scores from {number(low, 3)} to {number(high, 3)}: "
            f"supervised {n_before:,}, projected {n_after:,}"
            for low, high, n_before, n_after in zip(
                edges[:-1], edges[1:], group.supervised, group.projected, strict=True
            )
        ]
        hover_bands(ax, chart, f"rows{k}", scores.edges, base, base + 0.95, titles)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(0.0, n_groups)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    number_axis(ax.xaxis, 6)
    ax.xaxis.grid(False)
    ax.set_xlabel(chart.placeholder(f"score for {short(scores.class_name, 40)}"))
    chart.description = (
        f"How rows score for {scores.class_name} by either model: "
        + "; ".join(f"{group.name}, {count(group.n_rows, 'row')}" for group in groups)
        + "."
    )
    return chart


def _few(scores: Scores) -> tuple[ScoreGroup, ...]:
    """Return the groups of rows, with all other classes as one if there are many."""
    if len(scores.groups) <= MOST_GROUPS:
        return scores.groups
    unlabeled = scores.groups[-1]
    own = [group for group in scores.groups[:-1] if group.name == scores.class_name]
    others = [group for group in scores.groups[:-1] if group.name != scores.class_name]
    together = ScoreGroup(
        "other classes",
        sum(group.n_rows for group in others),
        tuple(map(sum, zip(*(group.supervised for group in others), strict=True))),
        tuple(map(sum, zip(*(group.projected for group in others), strict=True))),
    )
    return (*own, together, unlabeled)


def _where_any(heights: Vector, base: float) -> Vector:
    """Leave out empty bars on either side, whose line would hide the axis."""
    filled = np.flatnonzero(heights > base)
    shown = np.full_like(heights, np.nan)
    if filled.size:
        inside = slice(filled[0], filled[-1] + 1)
        shown[inside] = heights[inside]
    return shown


def coefficients_chart(
    shifted: Sequence[Coefficient], *, with_class: bool, moved: bool = True
) -> Chart:
    """Draw weights, before and after if they moved, per standard deviation of their features."""
    chart, ax = canvas(22 * len(shifted) + 62, left=168, top=8)
    rows_axis(ax, chart, [_weight_name(each, with_class) for each in shifted])
    before = [each.supervised_scaled for each in shifted]
    after = [each.projected_scaled for each in shifted]
    places = range(len(shifted))
    ax.axvline(0.0, color=SOFT, linewidth=1.0)
    ax.hlines(places, before if moved else 0.0, after, color=SOFT, linewidth=1.5)
    for look, values in ((SUPERVISED, before), (PROJECTED, after))[not moved :]:
        ax.plot(
            values,
            places,
            marker=look.marker,
            markersize=9,
            markeredgewidth=1.2,
            linestyle="none",
            color=look.colour,
            markeredgecolor=GROUND,
            gid=look.role,
            clip_on=False,
        )
        chart.titles[look.role] = [
            f"{each.feature}{f', {each.class_name}' if with_class else ''}: "
            f"supervised {number(each.supervised_scaled)}, "
            f"projected {number(each.projected_scaled)} per standard deviation"
            for each in shifted
        ]
    number_axis(ax.xaxis)
    ax.set_xlabel("weight per standard deviation of the feature")
    largest = shifted[0]
    chart.description = (
        f"The largest {count(len(shifted), 'weight')}. First of all: {largest.feature}, supervised "
        f"{number(largest.supervised_scaled)}, projected {number(largest.projected_scaled)} per "
        "standard deviation."
    )
    return chart


def _weight_name(each: Coefficient, with_class: bool) -> str:
    of_class = f", {short(each.class_name, LONGEST_CLASS)}" if with_class else ""
    return short(each.feature, LONGEST_FEATURE - width(of_class)) + of_class
