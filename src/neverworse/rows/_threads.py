"""Run independent pieces of linear algebra on as many threads as BLAS would use.

One call of a threaded BLAS on a tall, narrow matrix leaves most of the machine idle: a Gram matrix
of 1,000,000 x 100 takes twice as long in one threaded call as in blocks that stay in cache, one
single-threaded call per core. So the pieces run in Python threads (BLAS releases the interpreter
lock) while BLAS itself is held to one thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController  # a requirement of scikit-learn

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _controller() -> Any:
    """BLAS libraries of this process; looking for them takes longer than a small fit."""
    return ThreadpoolController().select(user_api="blas")


class _SingleThreadedBlas:
    """Hold BLAS to one thread while anybody is inside; safe for fits in several threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limiter: Any = None
        self._n_threads = 1

    @contextmanager
    def __call__(self) -> Iterator[int]:
        """Yield the number of threads that BLAS used before."""
        with self._lock:
            if self._inside == 0:
                libraries = _controller().lib_controllers
                self._n_threads = max((lib.num_threads or 1 for lib in libraries), default=1)
                self._limiter = _controller().limit(limits=1)
            self._inside += 1
            n_threads = self._n_threads
        try:
            yield n_threads
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._limiter.restore_original_limits()
                    self._limiter = None


single_threaded_blas = _SingleThreadedBlas()


class _Pool:
    """Worker threads that stay between calls: starting them takes longer than a small pass."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._size = 0

    def __call__(self, size: int) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None or self._size < size:
                self._executor, self._size = ThreadPoolExecutor(size, "neverworse"), size
            return self._executor


_pool = _Pool()
# Threads do not survive a fork; the child starts its own.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _pool.__init__())  # type: ignore[misc]


def map_in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply `function` to every item, in threads; results come in the order of the items."""
    if len(items) <= 1:
        return [function(item) for item in items]
    with single_threaded_blas() as n_threads:
        if n_threads == 1:
            return [function(item) for item in items]
        return list(_pool(n_threads).map(function, items))
