"""Tell the observer of a fit about stages that do not consist of Newton steps."""

from __future__ import annotations

import time

from neverworse.projection import Observer, Progress


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
            progress = Progress(stage, n_iter, n_rows, float("nan"), seconds, "iterations")
            told = self._observer(progress)
            self.stopped = self.stopped or told is True
