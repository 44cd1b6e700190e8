"""Charts of methods: learning curves, and the comparison with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from neverworse.projection.words import count
from neverworse.study._study import CalibrationBin, Curve, Estimate
from neverworse.study.report._canvas import (
    PROJECTED,
    Look,
    canvas,
    looks,
    number_axis,
    rows_axis,
    sizes_axis,
)
from neverworse.study.report._svg import COLOURS, Chart
from neverworse.study.report._words import decimal, short

LONGEST_METHOD = 20  # letters
MEASURES = {"error": "error on held-out rows", "loss": "squared loss per held-out row"}


def curve_chart(curve: Curve, measure: Literal["error", "loss"]) -> Chart:
    """Draw a learning curve: a line and a ribbon for each method."""
    chart, ax = canvas(290, left=60)
    look_of = looks(line.method for line in curve.lines)
    for k, line in enumerate(curve.lines):
        look = look_of[line.method]
        known = [
            (size, each.value, max(0.0, each.low), each.high)
            for size, each in zip(curve.sizes, getattr(line, measure), strict=True)
        ]
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
        f"{line.method}: {decimal(getattr(line, measure)[0].value)} at {curve.sizes[0]:,}, "
        f"{decimal(getattr(line, measure)[-1].value)} at {curve.sizes[-1]:,}."
        for line in curve.lines
    )
    return chart


def estimates_chart(
    estimates: Sequence[tuple[str, Estimate]], label: str, *, reference: float | None = None
) -> Chart:
    """Draw a dot and an interval for each method.

    Parameters
    ----------
    estimates : sequence of pairs
        Of methods and what was estimated.
    label : str
        What that is.
    reference : float, optional
        Where to draw a line that all are to be compared with.
    """
    look_of = looks(method for method, _ in estimates)
    shown = [short(method, LONGEST_METHOD) for method, _ in estimates]
    looks_of = [look_of[method] for method, _ in estimates]
    return _intervals(estimates, shown, looks_of, label, reference)


def importance_chart(increases: Sequence[tuple[str, Estimate]], label: str) -> Chart:
    """Draw a dot and an interval for each column of the table."""
    shown = [short(column, LONGEST_METHOD) for column, _ in increases]
    return _intervals(increases, shown, [PROJECTED] * len(shown), label, 0.0)


def _intervals(
    estimates: Sequence[tuple[str, Estimate]],
    shown: Sequence[str],
    looks_of: Sequence[Look],
    label: str,
    reference: float | None,
) -> Chart:
    chart, ax = canvas(30 * len(estimates) + 60, left=140, top=8)
    rows_axis(ax, chart, shown)
    if reference is not None:
        ax.axvline(reference, color=COLOURS["ink"], linewidth=1.2)
    for k, ((method, each), look) in enumerate(zip(estimates, looks_of, strict=True)):
        ax.plot(
            [each.low, each.high],
            [k, k],
            color=look.colour,
            linewidth=2.5,
            solid_capstyle="round",
        )
        ax.plot(
            [each.value],
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
            f"{method}: {decimal(each.value)}, between {decimal(each.low)} and {decimal(each.high)}"
        )
    number_axis(ax.xaxis, 4)
    ax.yaxis.grid(True)
    ax.set_xlabel(label)
    chart.description = f"{label}. " + " ".join(
        f"{method}: {decimal(each.value)}." for method, each in estimates
    )
    return chart


def calibration_chart(bins: Sequence[CalibrationBin], positive: str) -> Chart:
    """Draw how often rows are of a class, over the probability that was predicted."""
    chart, ax = canvas(290, left=60)
    look = PROJECTED
    predicted = [each.predicted for each in bins]
    observed = [each.observed for each in bins]
    ax.plot([0, 1], [0, 1], color=COLOURS["soft"], linewidth=1.0, linestyle=(0, (2, 2)))
    ax.vlines(
        predicted,
        [each.low for each in observed],
        [each.high for each in observed],
        color=look.colour,
        linewidth=2.5,
        alpha=0.45,
    )
    ax.plot(
        predicted,
        [each.value for each in observed],
        color=look.colour,
        marker=look.marker,
        linewidth=1.8,
        markersize=8.5,
        markeredgewidth=1.0,
        markeredgecolor=COLOURS["ground"],
        clip_on=False,
        gid="bins",
    )
    chart.titles["bins"] = [
        "",
        *(
            f"predicted {decimal(each.predicted, 2)}: observed {decimal(each.observed.value, 2)}, "
            f"between {decimal(each.observed.low, 2)} and {decimal(each.observed.high, 2)}"
            for each in bins
        ),
    ]
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.03)
    number_axis(ax.xaxis)
    number_axis(ax.yaxis)
    ax.set_xlabel(chart.placeholder(f"predicted probability of {short(positive, 34)}"))
    ax.set_ylabel("share of held-out rows")
    chart.description = "Calibration on held-out rows. " + " ".join(
        f"Predicted {decimal(each.predicted, 2)}, observed {decimal(each.observed.value, 2)}."
        for each in bins
    )
    return chart
