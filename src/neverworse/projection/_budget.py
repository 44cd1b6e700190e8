"""How much work a solver may still do."""

from __future__ import annotations

import time


class Budget:
    """Counts Newton steps and watches the clock.

    Parameters
    ----------
    max_iter : int, optional
        Newton steps at most.
    max_time : float, optional
        Seconds at most, from now on.
    """

    def __init__(self, max_iter: int | None = None, max_time: float | None = None) -> None:
        self._max_iter = max_iter
        self._deadline = None if max_time is None else time.perf_counter() + max_time
        self.n_iter = 0

    def spend(self) -> bool:
        """Count one step; False if there was none left."""
        if self.exhausted:
            return False
        self.n_iter += 1
        return True

    @property
    def exhausted(self) -> bool:
        """Whether the steps or the time are used up."""
        if self._max_iter is not None and self.n_iter >= self._max_iter:
            return True
        return self._deadline is not None and time.perf_counter() >= self._deadline
