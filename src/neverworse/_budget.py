"""Limits on the work of a solver, and reports of its progress."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

N_RECENT = 5  # gaps from which the time left is estimated
MIN_SHARE = 0.5  # of all rows, on which a gap must have been measured to count


@dataclass(frozen=True)
class Progress:
    """The progress of a solver, at the end of a stage; numbers are NaN where they are not known."""

    stage: str
    n_iter: int  # steps so far
    n_rows: int  # in this stage
    gap: float  # the duality gap relative to the value
    seconds: float  # since the start
    steps: str = "steps"  # what steps are called
    n_passes: int = 0  # over all rows so far
    left: float = math.nan  # estimated seconds until the gap is closed or a limit is reached

    def __str__(self) -> str:
        passes = f", {self.n_passes} passes" if self.n_passes else ""
        gap = "" if math.isnan(self.gap) else f", gap {self.gap:.1e}"
        left = "" if math.isnan(self.left) else f", about {self.left:.3g} s left"
        return (
            f"{self.seconds:8.2f} s  {self.stage} ({self.n_rows:,} rows), "
            f"{self.n_iter} {self.steps}{passes}{left}{gap}"
        )


# Called after every stage; the solver stops if it returns True.
Observer = Callable[[Progress], bool | None]


class Budget:
    """Counts steps, measures time, and reports to an observer.

    The solver may make `max_iter` steps in `max_time` seconds from now on. `steps` is what its
    steps are called, and `tol` the relative gap at which it stops.
    """

    def __init__(
        self,
        max_iter: int | None = None,
        max_time: float | None = None,
        observer: Observer | None = None,
        steps: str = "steps",
        tol: float | None = None,
    ) -> None:
        self._max_iter = math.inf if max_iter is None else max_iter
        self._max_time = math.inf if max_time is None else max_time
        self._observer, self._steps, self._tol = observer, steps, tol
        self._start = time.perf_counter()
        self._stopped = False
        self._gaps: list[tuple[float, float]] = []  # seconds, logarithm of the gap
        self._end = math.inf  # estimated, in seconds from the start
        self._most_rows = 0  # in any stage
        self.n_iter = 0  # steps so far
        self.n_passes = 0  # over all rows so far; who makes one adds it

    def spend(self) -> bool:
        """Count one step; return False if none is left."""
        if self.exhausted:
            return False
        self.n_iter += 1
        return True

    def report(self, stage: str, n_rows: int, gap: float = math.nan, value: float = 1.0) -> None:
        """Report the end of a stage to the observer."""
        if self._observer is not None:
            relative = gap / value if value > 0.0 else math.nan
            seconds = self._seconds()
            left = self._left(n_rows, relative, seconds)
            known = (stage, self.n_iter, n_rows, relative, seconds, self._steps, self.n_passes)
            self._stopped |= self._observer(Progress(*known, left)) is True

    def _seconds(self) -> float:
        return time.perf_counter() - self._start

    def _left(self, n_rows: int, gap: float, seconds: float) -> float:
        """Return how many seconds are left if the gap on all rows goes on falling at its rate.

        Gaps on samples and working sets do not count.
        """
        if MIN_SHARE * n_rows > self._most_rows:
            self._gaps = []  # they were those of a sample
        self._most_rows = max(self._most_rows, n_rows)
        if gap > 0.0 and n_rows >= MIN_SHARE * self._most_rows:
            self._gaps = [*self._gaps[1 - N_RECENT :], (seconds, math.log(gap))]
            (before, high), (now, low) = self._gaps[0], self._gaps[-1]
            self._end = math.inf
            if self._tol is not None and low < high:
                rate = (high - low) / max(now - before, 1e-9)
                self._end = now + (low - math.log(self._tol)) / rate
        left = min(self._end, self._max_time) - seconds
        if self.n_iter:
            left = min(left, (self._max_iter - self.n_iter) * max(seconds, 1e-9) / self.n_iter)
        return max(left, 0.0) if left < math.inf else math.nan

    @property
    def exhausted(self) -> bool:
        """Whether the steps or the time are used up, or the observer asked to stop."""
        return self._stopped or self.n_iter >= self._max_iter or self._seconds() >= self._max_time
