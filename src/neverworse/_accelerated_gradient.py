"""Accelerated projected gradients with adaptive restart.

A. Beck and M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse
problems", SIAM Journal on Imaging Sciences 2 (2009), 183-202.

B. O'Donoghue and E. Candès, "Adaptive restart for accelerated gradient schemes", Foundations of
Computational Mathematics 15 (2015), 715-732.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

Point = TypeVar("Point")


def _never(*_: object) -> bool:
    return False


def accelerated_gradient(
    start: Point,
    *,
    step: Callable[[Point], Point | None],
    extrapolate: Callable[[Point, Point, float], Point],
    uphill: Callable[[Point, Point, Point], bool],
    worse: Callable[[Point, Point], bool] = _never,
    stop: Callable[[Point], bool] = _never,
    max_momentum: float = 1.0,
) -> Point:
    """Minimise by projected gradient steps, each from a point ahead of where the last one ended.

    What a point is, the caller knows: the variables, with whatever is computed along with them.

    Parameters
    ----------
    start : point
        Feasible.
    step : callable
        ``step(ahead)`` returns the projection of a gradient step, or None if there is nothing left
        to gain at that point.
    extrapolate : callable
        ``extrapolate(here, before, momentum)`` returns the point on the line from `before` through
        `here`, farther by this factor. It need not be feasible; `here` itself if there is none.
    uphill : callable
        ``uphill(ahead, new, here)`` says whether the objective rises from `here` to `new`, by the
        gradient at `ahead`. Then momentum starts again from nothing.
    worse : callable
        ``worse(new, here)`` says whether to discard the new point, and to go on from `here` without
        momentum.
    stop : callable
        ``stop(here)`` is asked before every step.
    max_momentum : float
        Upper bound of the momentum, which approaches 1.

    Returns
    -------
    here : point
        Where the last step that was not discarded ended.
    """
    here = before = start
    pace = 1.0
    while not stop(here):
        faster = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * pace**2))
        momentum = min((pace - 1.0) / faster, max_momentum)
        ahead = extrapolate(here, before, momentum) if momentum > 0.0 else here
        new = step(ahead)
        if new is None and ahead is here:
            break
        if new is None or worse(new, here):
            before, pace = here, 1.0
        else:
            pace = 1.0 if uphill(ahead, new, here) else faster
            before, here = here, new
    return here
