"""Charts of methods: learning curves, and the comparison with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from neverworse.projection.words import count
from neverworse.report._canvas import canvas, looks, number_axis, rows_axis, sizes_axis
from neverworse.report._svg import COLOURS, Chart
from neverworse.report._words import decimal, short
from neverworse.study._study import Curve, MethodFacts

MARGIN = 2.0  # standard errors on either side: about 95 % of what chance does
LONGEST_METHOD = 20  # letters
MEASURES = {"error": "error on held-out rows", "loss": "quadratic loss per held-out row"}


def curve_chart(curve: Curve, measure: Literal["error", "loss"]) -> Chart:
    """Draw a learning curve: a line and a ribbon for each method."""
    chart, ax = canvas(290, left=60)
    look_of = looks(line.method for line in curve.lines)
    for k, line in enumerate(curve.lines):
        look = look_of[line.method]
        values, errors = getattr(line, measure), getattr(line, f"{measure}_se")
        known = [
            (size, value, *_interval(value, error, lowest=0.0))
            for size, value, error in zip(curve.sizes, values, errors, strict=True)
            if math.isfinite(value)
        ]
        if not known:
            continue
        sizes, means, lows, highs = zip(*known, strict=True)
        ax.fill_between(sizes, lows, highs, color=look.colour, alpha=0.14, linewidth=0)
        ax.plot(
            sizes,
            means,
            color=look.colour,
            marker=look.marker,
            linestyle=look.line,
            linewidth=1.8,
            markersize=8.5,
            markeredgewidth=1.0,
            markeredgecolor=COLOURS["ground"],
            clip_on=False,
            gid=f"line{k}",
        )
        titles = [
            f"{line.method}, {count(size, f'{curve.rows} row')}: {decimal(mean)}, "
            f"between {decimal(low)} and {decimal(high)}"
            for size, mean, low, high in known
        ]
        chart.titles[f"line{k}"] = ["", *titles]
    number_axis(ax.yaxis)
    sizes_axis(ax, curve.sizes, f"{curve.rows} rows in training")
    ax.set_ylabel(MEASURES[measure])
    chart.description = f"{MEASURES[measure].capitalize()} over {curve.rows} rows. " + " ".join(
        f"{line.method}: {decimal(getattr(line, measure)[0])} at {curve.sizes[0]:,}, "
        f"{decimal(getattr(line, measure)[-1])} at {curve.sizes[-1]:,}."
        for line in curve.lines
    )
    return chart


def comparison_chart(
    methods: Sequence[MethodFacts], measure: Literal["error", "difference"]
) -> Chart:
    """Draw a dot and an interval for each method."""
    chart, ax = canvas(30 * len(methods) + 60, left=140, top=8)
    look_of = looks(each.method for each in methods)
    rows_axis(ax, chart, [short(each.method, LONGEST_METHOD) for each in methods])
    if measure == "difference":
        ax.axvline(0.0, color=COLOURS["ink"], linewidth=1.2)
    for k, each in enumerate(methods):
        look = look_of[each.method]
        value, error = getattr(each, measure), getattr(each, f"{measure}_se")
        if not math.isfinite(value):
            continue
        low, high = _interval(value, error, lowest=0.0 if measure == "error" else -1.0)
        ax.plot(
            [low, high],
            [k, k],
            color=look.colour,
            linewidth=2.5,
            solid_capstyle="round",
        )
        ax.plot(
            [value],
            [k],
            color=look.colour,
            marker=look.marker,
            markersize=10,
            markeredgewidth=1.2,
            markeredgecolor=COLOURS["ground"],
            gid=f"dot{k}",
            clip_on=False,
        )
        chart.titles[f"dot{k}"] = (
            f"{each.method}: {decimal(value)}, between {decimal(low)} and {decimal(high)}"
        )
    number_axis(ax.xaxis, 4)
    ax.yaxis.grid(True)
    ax.set_xlabel("error on held-out rows" if measure == "error" else "difference from supervised")
    chart.description = " ".join(
        f"{each.method}: {decimal(getattr(each, measure))}." for each in methods
    )
    return chart


def _interval(value: float, error: float, *, lowest: float) -> tuple[float, float]:
    """Return what chance allows for; no error or loss is below 0."""
    margin = MARGIN * error if math.isfinite(error) else 0.0
    return max(lowest, value - margin), value + margin
