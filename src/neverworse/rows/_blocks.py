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

from neverworse._typing import Matrix

Item = TypeVar("Item")
Part = TypeVar("Part")
Result = TypeVar("Result")


@cache
def _controller() -> Any:
    """BLAS libraries of this process; looking for them takes longer than a small fit."""
    return ThreadpoolController().select(user_api="blas")


def _set_threads(library: Any, n_threads: int) -> None:
    """Set the number of threads of a BLAS library.

    threadpoolctl 3.8 ignores all threads but one that do so, for the sake of programs that change
    the number in several threads without agreement. Here they agree, see below.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


class _SingleThreadedBlas:
    """Hold BLAS to one thread while anybody is inside; nested, and in several threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._n_threads: list[int] = []  # of each library, when the first came in

    @contextmanager
    def __call__(self) -> Iterator[int]:
        """Yield the number of threads that BLAS used before."""
        libraries = _controller().lib_controllers
        with self._lock:
            if not self._inside:
                self._n_threads = [library.num_threads or 1 for library in libraries]
                for library in libraries:
                    _set_threads(library, 1)
            self._inside += 1
        try:
            yield max(self._n_threads, default=1)
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    for library, n_threads in zip(libraries, self._n_threads, strict=True):
                        _set_threads(library, n_threads)


def _limit_worker() -> None:
    """Hold BLAS to one thread in a worker, where each thread has a number of its own (OpenMP)."""
    for library in _controller().lib_controllers:
        if getattr(library, "threading_layer", "") == "openmp":
            _set_threads(library, 1)


class _Workers:
    """Threads that stay between calls: starting them takes longer than a small pass."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._size = 0

    def __call__(self, size: int) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None or self._size < size:
                self._executor = ThreadPoolExecutor(size, "neverworse", _limit_worker)
                self._size = size
            return self._executor


single_threaded_blas = _SingleThreadedBlas()
_workers = _Workers()


def _start_anew() -> None:
    """Forget all threads: they do not survive a fork."""
    single_threaded_blas.__init__()  # type: ignore[misc]
    _workers.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


_own = threading.local()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let `map_in_threads` use no thread but the one that calls it."""
    _own.alone = True
    try:
        yield
    finally:
        _own.alone = False


def map_in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply `function` to every item, in threads; results come in the order of the items."""
    with single_threaded_blas() as n_threads:
        if n_threads == 1 or len(items) <= 1 or getattr(_own, "alone", False):
            return [function(item) for item in items]
        return list(_workers(n_threads).map(function, items))


BLOCK = 2**15  # numbers in arrays of a block of rows: a handful of them stay in cache


def blocks(x: Matrix) -> list[slice]:
    """Return slices of the rows (the last axis) of about `BLOCK` numbers each, at least one."""
    n = x.shape[1]
    step = max(1, BLOCK * n // max(x.size, 1))
    return [slice(lo, lo + step) for lo in range(0, max(n, 1), step)]


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield items while a thread gets the next one ready."""
    with ThreadPoolExecutor(1, "neverworse-read") as reader:
        done: Any = object()
        coming = reader.submit(next, items, done)
        while (item := coming.result()) is not done:
            coming = reader.submit(next, items, done)
            yield item


def in_streams(parts: Sequence[Part], work: Callable[[Part], Iterator[Item]]) -> Iterator[Item]:
    """Yield what is made of each part, in the order of the parts; several are worked on at once.

    ``work(part)`` yields items, and is not asked for more once a part before it has failed, or
    nobody wants more.
    """
    stop = threading.Event()

    def run(part: Part) -> list[Item]:
        found = []
        with one_thread():  # of these there are as many as cores
            for item in work(part):
                if stop.is_set():
                    break
                found.append(item)
        return found

    with single_threaded_blas() as n_threads, ThreadPoolExecutor(n_threads) as streams:
        coming = [streams.submit(run, part) for part in parts]
        try:
            while coming:
                yield from coming.pop(0).result()
        finally:
            stop.set()
            streams.shutdown(cancel_futures=True)
