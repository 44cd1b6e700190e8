"""The confidence interval after each answer, as points in a picture that narrows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neverworse._words import count
from neverworse.study.labeling._standing import Standing, in_points

WIDTH, HEIGHT = 480, 220
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 44
FEWEST = 10  # answers for which there is room


@dataclass(frozen=True)
class Picture:
    """Where things are, in the units of a picture of `width` x `height`."""

    description: str
    band: str  # the corners between the bounds
    low: str  # the lower bound, as a line
    high: str
    zero: float  # height of the line on which both models are equally good
    heights: list[tuple[float, str]]  # what is written at the left
    lengths: list[tuple[float, str]]  # what is written below
    now: tuple[float, float, float]  # the interval now: where, and its ends
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def picture_of(history: Sequence[tuple[float, float]], standing: Standing) -> Picture | None:
    """Return the picture of the intervals after each answer; None if there is nothing to decide.

    Parameters
    ----------
    history : sequence of (low, high)
        Before the first answer, and after each.
    standing : Standing
    """
    if not standing.n_differing:
        return None
    n = len(history) - 1
    most = max(n, min(standing.n_differing, max(FEWEST, n + standing.expected)))
    lowest, highest = history[0]

    def x(k: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * k / most, 1)

    def y(value: float) -> float:
        share = (highest - value) / (highest - lowest)
        return round(TOP + (HEIGHT - TOP - BOTTOM) * share, 1)

    lines = [[(x(k), y(bounds[side])) for k, bounds in enumerate(history)] for side in (0, 1)]
    low, high = history[-1]
    return Picture(
        description=(
            f"Confidence interval of the difference of error rates, after {count(n, 'answer')}: "
            f"from {in_points(low)} to {in_points(high)} percentage points; at "
            f"first from {in_points(lowest)} to {in_points(highest)}."
        ),
        band=_points([*lines[1], *reversed(lines[0])]),
        low=_points(lines[0]),
        high=_points(lines[1]),
        zero=y(0.0),
        heights=[(y(value), in_points(value)) for value in (lowest, 0.0, highest)],
        lengths=[
            (x(k), f"{k:,}") for k in sorted({0, most, *([n] if 0.1 < n / most < 0.9 else [])})
        ],
        now=(x(n), y(low), y(high)),
    )


def _points(corners: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in corners)
