"""Tell the observer of a fit about stages that do not consist of Newton steps."""

from __future__ import annotations

import time
from dataclasses import dataclass

from neverworse.projection import Observer, Progress


@dataclass(frozen=True)
class StageProgress(Progress):
    """What `Progress` says, in the words of a method that counts iterations."""

    def __str__(self) -> str:
        return (
            f"{self.seconds:8.2f} s  {self.stage} ({self.n_rows:,} rows), {self.n_iter} iterations"
        )


class Stages:
    """Reports the stages of a fit, and remembers whether the observer wants it to stop.

    Parameters
    ----------
    observer : callable or None
        Told about every stage; it may return True to stop the fit.
    """

    def __init__(self, observer: Observer | None) -> None:
        self._observer = observer
        self._start = time.perf_counter()
        self.stopped = False

    def report(self, stage: str, n_iter: int, n_rows: int) -> None:
        """Tell the observer what has just been done."""
        if self._observer is not None:
            seconds = time.perf_counter() - self._start
            told = self._observer(StageProgress(stage, n_iter, n_rows, float("nan"), seconds))
            self.stopped = self.stopped or told is True
