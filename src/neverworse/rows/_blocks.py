"""Blocks of rows: what is added up over them, on as many threads as BLAS would use.

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
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from typing import Any, TypeVar

import numpy as np
from scipy import linalg
from threadpoolctl import ThreadpoolController  # a requirement of scikit-learn

from neverworse._typing import Indices, Matrix, Vector

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
        self._own = threading.local()

    @property
    def is_held_here(self) -> bool:
        """Whether the thread that asks is inside."""
        return getattr(self._own, "inside", False)

    @contextmanager
    def __call__(self) -> Iterator[int]:
        """Yield the number of threads that BLAS used before."""
        if self.is_held_here:
            yield max(self._n_threads, default=1)
            return
        libraries = _controller().lib_controllers
        with self._lock:
            if not self._inside:
                self._n_threads = [library.num_threads or 1 for library in libraries]
                for library in libraries:
                    _set_threads(library, 1)
            self._inside += 1
        self._own.inside = True
        try:
            yield max(self._n_threads, default=1)
        finally:
            self._own.inside = False
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


GROUPS_PER_THREAD = 4  # of items


def map_in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply `function` to every item, in threads; results come in the order of the items."""
    if len(items) <= 1 and single_threaded_blas.is_held_here:
        return [function(item) for item in items]
    with single_threaded_blas() as n_threads:
        if n_threads == 1 or len(items) <= 1 or getattr(_own, "alone", False):
            return [function(item) for item in items]
        n_groups = min(len(items), GROUPS_PER_THREAD * n_threads)  # handing over costs as well
        edges = [len(items) * k // n_groups for k in range(n_groups + 1)]
        groups = [items[lo:hi] for lo, hi in pairwise(edges)]
        found = _workers(n_threads).map(lambda group: [function(item) for item in group], groups)
        return list(chain.from_iterable(found))


BLOCK = 2**14  # numbers in arrays of a block of rows: a handful of them stay in cache


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


# ``weigh(t, rows)``: the weights of the rows in a slice, from their scores t.
Weigh = Callable[[Vector, slice], Vector]


@dataclass(frozen=True)
class RowWeigh:
    """A `Weigh` that can be cut into pieces, to be sent where the rows are.

    A closure would take whole arrays with it; of this, `at` takes what belongs to some rows.
    """

    # ``function(t, *known)``; defined at the top of a module, so that it can be pickled
    function: Callable[..., Vector]
    # What it knows about every row: arrays with the rows last, objects with a method `at`, None
    known: tuple[Any, ...]

    def at(self, rows: slice) -> RowWeigh:
        """Return the same for some rows."""
        return RowWeigh(self.function, tuple(_at(one, rows) for one in self.known))

    def __call__(self, t: Vector, rows: slice) -> Vector:
        return self.function(t, *(_at(one, rows) for one in self.known))


def _at(known: Any, rows: slice) -> Any:
    if known is None:
        return None
    return known.at(rows) if hasattr(known, "at") else known[..., rows]


@np.errstate(over="ignore", invalid="ignore")  # rows that play no part may score infinity
def spread_of_block(
    block: Any, weights: Vector | None, directions: Matrix, centre: Vector
) -> tuple[Matrix, Matrix]:
    """Return T'ST and T'SC for the centred rows C (dense or sparse) and their scores T."""
    scores = np.asarray(block @ directions.T) - directions @ centre
    weighted = scores
    if weights is not None:
        scores[weights == 0.0] = 0.0
        weighted = weights[:, None] * scores
    products = (block.T @ weighted).T - np.outer(weighted.sum(axis=0), centre)
    return scores.T @ weighted, products


@dataclass(frozen=True)
class Standard:
    """How rows are standardised before they are factored."""

    columns: Indices  # that take part
    mean: Vector  # of these columns: what is subtracted,
    scale: Vector  # and then multiplied

    def bordered(self, block: Matrix, weights: Vector | None, targets: Matrix) -> Matrix:
        """Return standardised rows beside their targets, times the root of their weights."""
        k = len(self.columns)
        rows = np.empty((len(block), k + len(targets)))
        rows[:, :k] = (block[:, self.columns] - self.mean) * self.scale
        rows[:, k:] = targets.T
        if weights is not None:
            rows *= np.sqrt(weights)[:, None]
        return rows


def add_pairs(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Add two pairs, to reduce sums of chunks."""
    return a[0] + b[0], a[1] + b[1]


def widened(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the range that contains two ranges."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def joined(a: Any, b: Any) -> Any:
    """Combine Gram matrices, sums, ranges and rows of two chunks."""
    return a[0] + b[0], a[1] + b[1], widened(a[2], b[2]), a[3] + b[3]


def stacked(a: Matrix, b: Matrix) -> Matrix:
    """Return the triangle of both."""
    return reduce_rows([a, b])


def reduce_rows(pieces: list[Matrix]) -> Matrix:
    """Return R with R'R = the sum of all A'A, at most as many rows as columns."""
    rows = np.vstack(pieces)
    if not len(rows):
        return rows
    triangle: Matrix = linalg.qr(rows, mode="r", overwrite_a=True, check_finite=False)[0]
    return triangle[: rows.shape[1]]
