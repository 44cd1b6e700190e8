"""How much work a solver may still do, and who is told about it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Where a solver is.

    Attributes
    ----------
    stage : str
        What has just been done.
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
    """

    stage: str
    n_iter: int
    n_rows: int
    gap: float
    seconds: float
    steps: str = "Newton steps"

    def __str__(self) -> str:
        gap = "" if self.gap != self.gap else f", gap {self.gap:.1e}"
        return (
            f"{self.seconds:8.2f} s  {self.stage} ({self.n_rows:,} rows), "
            f"{self.n_iter} {self.steps}{gap}"
        )


# Told about progress; the solver stops where it returns True.
Observer = Callable[[Progress], bool | None]


class Budget:
    """Counts steps, watches the clock, and reports.

    Parameters
    ----------
    max_iter : int, optional
        Steps at most.
    max_time : float, optional
        Seconds at most, from now on.
    observer : callable, optional
        Called with the `Progress` after every stage; the solver stops if it returns True.
    steps : str
        What the steps are called.
    """

    def __init__(
        self,
        max_iter: int | None = None,
        max_time: float | None = None,
        observer: Observer | None = None,
        steps: str = "Newton steps",
    ) -> None:
        self._max_iter = max_iter
        self._start = time.perf_counter()
        self._deadline = None if max_time is None else self._start + max_time
        self._observer = observer
        self._steps = steps
        self._stopped = False
        self.n_iter = 0
        self.n_products = 0  # of conjugate gradients

    def spend(self) -> bool:
        """Count one step; False if there was none left."""
        if self.exhausted:
            return False
        self.n_iter += 1
        return True

    def report(
        self, stage: str, n_rows: int, gap: float = float("nan"), value: float = 1.0
    ) -> None:
        """Tell the observer what has been done."""
        if self._observer is not None:
            relative = gap / value if value > 0.0 else float("nan")
            seconds = time.perf_counter() - self._start
            told = self._observer(
                Progress(stage, self.n_iter, n_rows, relative, seconds, self._steps)
            )
            self._stopped = self._stopped or told is True

    @property
    def exhausted(self) -> bool:
        """Whether the steps or the time are used up, or the observer said stop."""
        if self._stopped or (self._max_iter is not None and self.n_iter >= self._max_iter):
            return True
        return self._deadline is not None and time.perf_counter() >= self._deadline
