"""How much work a solver may still do, and reports of its progress."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """The progress of a solver.

    Attributes
    ----------
    stage : str
        The stage that has just ended.
    n_iter : int
        Steps so far.
    n_rows : int
        Rows that took part.
    gap : float
        Duality gap relative to the value; NaN where it is not known.
    seconds : float
        Since the solver began.
    steps : str
        What the steps are called.
    n_passes : int
        Passes over all rows so far.
    left : float
        Estimated seconds until the gap is closed or a limit is reached; NaN where unknown.
    """

    stage: str
    n_iter: int
    n_rows: int
    gap: float
    seconds: float
    steps: str = "steps"
    n_passes: int = 0
    left: float = float("nan")

    def __str__(self) -> str:
        passes = f", {self.n_passes} passes" if self.n_passes else ""
        gap = "" if math.isnan(self.gap) else f", gap {self.gap:.1e}"
        left = "" if math.isnan(self.left) else f", about {self.left:.3g} s left"
        return (
            f"{self.seconds:8.2f} s  {self.stage} ({self.n_rows:,} rows), "
            f"{self.n_iter} {self.steps}{passes}{left}{gap}"
        )


RECENT = 5  # reports of gaps from which the time left is estimated
PART = 2  # a gap counts if it is that of at least one in this many rows

# Told about progress; the solver stops where it returns True.
Observer = Callable[[Progress], bool | None]


class Budget:
    """Counts steps, watches the clock, and reports.

    At most `max_iter` steps and `max_time` seconds from now on. The observer is called with the
    `Progress` after every stage; the solver stops if it returns True. `steps` is what steps are
    called, and `tol` the relative gap at which the solver will be done.
    """

    def __init__(
        self,
        max_iter: int | None = None,
        max_time: float | None = None,
        observer: Observer | None = None,
        steps: str = "steps",
        tol: float | None = None,
    ) -> None:
        self._max_iter = max_iter
        self._start = time.perf_counter()
        self._deadline = None if max_time is None else self._start + max_time
        self._observer = observer
        self._steps = steps
        self._stopped = False
        self._tol = tol
        self._gaps: list[tuple[float, float]] = []  # seconds, logarithm
        self._done = float("nan")  # when the solver will be, in seconds from the start
        self._most_rows = 0  # that were ever reported
        self.n_iter = 0  # steps so far
        self.n_passes = 0  # over all rows so far: whoever makes one adds it

    def spend(self) -> bool:
        """Count one step; False if there was none left."""
        if self.exhausted:
            return False
        self.n_iter += 1
        return True

    def report(
        self, stage: str, n_rows: int, gap: float = float("nan"), value: float = 1.0
    ) -> None:
        if self._observer is not None:
            relative = gap / value if value > 0.0 else float("nan")
            seconds = time.perf_counter() - self._start
            left = self._left(n_rows, relative, seconds)
            known = (stage, self.n_iter, n_rows, relative, seconds, self._steps, self.n_passes)
            self._stopped |= self._observer(Progress(*known, left)) is True

    def _left(self, n_rows: int, gap: float, seconds: float) -> float:
        """Return how many seconds are left: gaps fall at a steady rate, about.

        What counts is the gap on all rows. Samples and working sets are on the way from one to
        the next, and close gaps of their own.
        """
        if n_rows > PART * self._most_rows:
            self._gaps = []  # what was reported so far was but a sample
        self._most_rows = max(self._most_rows, n_rows)
        if gap > 0.0 and PART * n_rows >= self._most_rows:
            self._gaps = [*self._gaps[1 - RECENT :], (seconds, math.log(gap))]
            self._done = self._end()
        estimates = []
        if not math.isnan(self._done):
            estimates.append(max(self._done - seconds, 0.0))
        if self._max_iter is not None and self.n_iter:
            estimates.append((self._max_iter - self.n_iter) * seconds / self.n_iter)
        if self._deadline is not None:
            estimates.append(max(self._deadline - self._start - seconds, 0.0))
        return min(estimates, default=float("nan"))

    def _end(self) -> float:
        """Return when the gap will be small enough, in seconds; NaN if it does not fall."""
        (before, high), (now, low) = self._gaps[0], self._gaps[-1]
        if self._tol is None or low >= high:
            return float("nan")
        rate = (high - low) / max(now - before, 1e-9)
        return now + (low - math.log(self._tol)) / rate

    @property
    def exhausted(self) -> bool:
        """Whether the steps or the time are used up, or the observer asked to stop."""
        if self._stopped or (self._max_iter is not None and self.n_iter >= self._max_iter):
            return True
        return self._deadline is not None and time.perf_counter() >= self._deadline
