"""Blocks of rows, on as many threads as BLAS would use; and what is computed from each block.

One call of a threaded BLAS on a tall, narrow matrix leaves most of the machine idle: a Gram matrix
of 1,000,000 x 100 takes twice as long in one threaded call as in blocks that stay in cache, one
single-threaded call per core. So the blocks run in Python threads (BLAS releases the interpreter
lock) while BLAS itself is limited to one thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from typing import Any, TypeVar

import numpy as np
from scipy import linalg
from threadpoolctl import ThreadpoolController  # a requirement of scikit-learn

from neverworse._typing import AnyArray, Indices, Matrix, Vector

Item = TypeVar("Item")
Part = TypeVar("Part")
Result = TypeVar("Result")

GROUPS_PER_THREAD = 4  # of items: handing them over one by one costs more than it balances
BLOCK = 2**14  # numbers in arrays of a block of rows: a handful of them stay in cache
# Up to about this many multiplications, OpenBLAS multiplies matrices without copying them first,
# which takes a third of the time if one of them is narrow.
SMALL_PRODUCT = 900_000
FEW_SUMS = 3  # weighted sums of rows, which OpenBLAS adds up faster one by one than at once


@cache
def _blas_libraries() -> list[Any]:
    """Return the BLAS libraries of this process; finding them takes longer than a small fit."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(library: Any, n_threads: int) -> None:
    """Set the number of threads of a BLAS library.

    threadpoolctl 3.8 ignores all threads but one that do so, for the sake of programs that change
    the number in several threads without agreement. Here they agree, see below.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


class _SingleThreadedBlas:
    """Limit BLAS to one thread while any thread is inside; may be nested."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._n_threads: list[int] = []  # of each library, when the first thread came in
        self._own = threading.local()

    @property
    def is_held_here(self) -> bool:
        """Whether the calling thread is inside."""
        return getattr(self._own, "inside", False)

    @contextmanager
    def __call__(self) -> Iterator[int]:
        """Yield the number of threads that BLAS used before."""
        if self.is_held_here:
            yield max(self._n_threads, default=1)
            return
        libraries = _blas_libraries()
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


@cache
def _workers(n_threads: int) -> ThreadPoolExecutor:
    """Return threads that stay between calls: starting them takes longer than a small pass."""
    return ThreadPoolExecutor(n_threads, "neverworse", _limit_worker)


def _limit_worker() -> None:
    """Limit BLAS to one thread in a worker, where each thread has its own limit (OpenMP)."""
    for library in _blas_libraries():
        if getattr(library, "threading_layer", "") == "openmp":
            _set_threads(library, 1)


single_threaded_blas = _SingleThreadedBlas()
_own = threading.local()


def _forget_threads() -> None:
    """Forget all threads: they do not survive a fork."""
    single_threaded_blas.__init__()  # type: ignore[misc]
    _workers.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def map_in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply `function` to every item, in threads; results come in the order of the items."""
    if len(items) <= 1 and single_threaded_blas.is_held_here:
        return [function(item) for item in items]
    with single_threaded_blas() as n_threads:
        if n_threads == 1 or len(items) <= 1 or getattr(_own, "in_stream", False):
            return [function(item) for item in items]
        n_groups = min(len(items), GROUPS_PER_THREAD * n_threads)
        edges = [len(items) * k // n_groups for k in range(n_groups + 1)]
        groups = [items[lo:hi] for lo, hi in pairwise(edges)]
        found = _workers(n_threads).map(lambda group: [function(item) for item in group], groups)
        return list(chain.from_iterable(found))


def float_type(columns: Iterable[tuple[str, Any, Any]]) -> np.dtype[Any]:
    """Return the smallest of float32 and float64 that holds columns of some types.

    For each column: its name, its type for a message, and its NumPy type.
    """
    kinds: list[Any] = [np.float32]
    for name, shown, kind in columns:
        if not isinstance(kind, np.dtype) or kind.kind not in "fiub":
            raise ValueError(
                f"{name} is {shown}, but features are numbers. Encode it, or leave it out."
            )
        kinds.append(kind)
    return np.result_type(*kinds)


def blocks(x: Matrix) -> list[slice]:
    """Return slices of the rows (the last axis) of about `BLOCK` numbers each, at least one."""
    n = x.shape[1]
    step = max(1, BLOCK * n // max(x.size, 1))
    return [slice(lo, lo + step) for lo in range(0, max(n, 1), step)]


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield items while a thread reads the next one."""
    with ThreadPoolExecutor(1, "neverworse-read") as reader:
        done: Any = object()
        coming = reader.submit(next, items, done)
        while (item := coming.result()) is not done:
            coming = reader.submit(next, items, done)
            yield item


def in_streams(parts: Sequence[Part], work: Callable[[Part], Iterator[Item]]) -> Iterator[Item]:
    """Yield the items of each part, in the order of the parts; as many parts at once as cores.

    ``work(part)`` yields items. It is stopped once a part before it has failed, or the caller
    wants no more.
    """
    stop = threading.Event()

    def run(part: Part) -> list[Item]:
        _own.in_stream = True  # which starts no further threads
        found = []
        for item in work(part):
            if stop.is_set():
                break
            found.append(item)
        return found

    with single_threaded_blas() as n_threads, ThreadPoolExecutor(n_threads) as streams:
        try:
            for found in streams.map(run, parts):
                yield from found
        finally:
            stop.set()
            streams.shutdown(cancel_futures=True)


def _row_pieces(n_rows: int, size: int) -> list[slice]:
    """Return slices of rows for products with a matrix of that many numbers for each row."""
    step = max(SMALL_PRODUCT // max(size, 1), 128)
    return [slice(lo, lo + step) for lo in range(0, n_rows, step)]


def scores_of_block(coef: Vector, block: Any, out: Vector) -> None:
    """Compute coef·x for every row x of a block, dense or sparse."""
    if not isinstance(block, np.ndarray):
        out[:] = (block @ np.ascontiguousarray(coef.T)).T
        return
    for rows in _row_pieces(len(block), coef.size):
        np.matmul(coef, block[rows].T, out=out[..., rows])


def product(a: Vector, b: Matrix) -> Any:
    """Return a @ b, which keeps other threads waiting if the result has few numbers.

    `np.dot` never does, but would copy parts of columns.
    """
    return np.dot(a, b) if a.flags.forc and b.flags.forc else a @ b


def sum_of_block(weights: Vector, block: Any) -> Vector:
    """Return the weighted sum of the rows of a block, for each row of `weights` if several."""
    if not isinstance(block, np.ndarray):
        return np.ascontiguousarray((block.T @ weights.T).T, dtype=np.float64)
    if weights.ndim == 1:
        return np.asarray(product(weights, block))
    if len(weights) <= FEW_SUMS:
        return np.array([product(each, block) for each in weights])
    return np.asarray(product(block.T, weights.T).T)


@np.errstate(over="ignore", invalid="ignore")
def narrowed(array: AnyArray) -> AnyArray:
    """Return float64 numbers in half the bytes, if that loses nothing."""
    if array.dtype != np.float64:
        return array
    narrow = array.astype(np.float32)
    return narrow if (narrow == array).all() else array


# ``weigh(t, rows)``: the weights of the rows in a slice, given their scores t.
Weigh = Callable[[Vector, slice], Vector]


@dataclass(frozen=True)
class RowWeigh:
    """A `Weigh` that can be sent to a chunk of the rows, with the data of these rows only."""

    # ``function(t, *known)``; defined at the top of a module, so that it can be pickled
    function: Callable[..., Vector]
    # Data of the rows: arrays with the rows last, objects with a method `at`, or None
    known: tuple[Any, ...]

    def at(self, rows: slice) -> RowWeigh:
        """Return the same for the rows in a slice."""
        return RowWeigh(self.function, tuple(at_rows(one, rows) for one in self.known))

    def __call__(self, t: Vector, rows: slice) -> Vector:
        return self.function(t, *(at_rows(one, rows) for one in self.known))


def at_rows(known: Any, rows: slice) -> Any:
    """Return the data of the rows in a slice, see `RowWeigh`."""
    if known is None:
        return None
    return known.at(rows) if hasattr(known, "at") else known[..., rows]


@dataclass(frozen=True)
class Standard:
    """How columns are standardised: (x - mean) * scale."""

    columns: Indices
    mean: Vector
    scale: Vector

    def bordered(self, block: Matrix, weights: Vector | None, targets: Matrix) -> Matrix:
        """Return standardised rows beside their targets, times the root of their weights."""
        k = len(self.columns)
        rows = np.empty((len(block), k + len(targets)))
        rows[:, :k] = (block[:, self.columns] - self.mean) * self.scale
        rows[:, k:] = targets.T
        if weights is not None:
            rows *= np.sqrt(weights)[:, None]
        return rows


def reduce_rows(pieces: list[Matrix]) -> Matrix:
    """Return R with R'R = the sum of all A'A, at most as many rows as columns."""
    rows = np.vstack(pieces)
    if not len(rows):
        return rows
    triangle: Matrix = linalg.qr(rows, mode="r", overwrite_a=True, check_finite=False)[0]
    return triangle[: rows.shape[1]].copy()  # the others are zero, and would be kept


def add_pairs(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Add two pairs of sums."""
    return a[0] + b[0], a[1] + b[1]
