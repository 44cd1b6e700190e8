"""Rows of Dask arrays and data frames: every chunk is worked on where it is.

Tasks run on the active cluster, or in threads; fits give up if the cluster is lost.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager, suppress
from functools import partial, reduce
from operator import attrgetter
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from scipy import sparse

from neverworse._typing import AnyArray
from neverworse.rows._base import DenseRows, Rows
from neverworse.rows._blocks import float_type
from neverworse.rows._chunked import Arguments, ChunkedRows, ChunkState, Combine, Verb
from neverworse.rows._packed import Packed, pack, unpack
from neverworse.rows._sparse import SparseRows


class DaskRows(ChunkedRows):
    """Rows of a Dask array (with dense or sparse chunks) or of a Dask data frame.

    A pass is one task for each chunk. Sums are combined on the workers, in a fixed order.
    """

    random_access = True

    def __init__(self, X: Any) -> None:
        _check_table(X)
        self._engine = Engine()
        self._X = X  # so that persisted chunks stay persisted
        n_columns, names, self._dtype = X.shape[1], None, None
        if isinstance(X, da.Array):
            X = _one_column_chunk(X)
            self._chunks = list(X.to_delayed(optimize_graph=True).ravel())
            sizes = X.chunks[0]
        else:
            self._dtype = float_type(
                (f"Column {name!r} of X", dtype, getattr(dtype, "numpy_dtype", dtype))
                for name, dtype in X.dtypes.items()
            )
            self._chunks = X.to_delayed()
            sizes = (math.nan,) * len(self._chunks)
            if all(isinstance(name, str) for name in X.columns):
                names = list(X.columns)
        if any(math.isnan(n) for n in (*sizes, n_columns)):
            tasks = [
                self._engine.task(attrgetter("shape"), "neverworse-shape", chunk)
                for chunk in self._chunks
            ]
            shapes = self._engine.run(tasks)
            sizes, n_columns = [shape[0] for shape in shapes], shapes[0][1]
        super().__init__(sizes, n_columns, names)
        # Where chunks are persisted, Dask might still move small ones to idle workers.
        self._homes = self._engine.homes(X, self._chunks)

    def map_chunks(self, verb: Verb, chosen: Sequence[int], arguments: Arguments) -> Iterable[Any]:
        return map(unpack, self._engine.run(self._tasks(verb, arguments, chosen, packing=pack)))

    def reduce_chunks(self, verb: Verb, arguments: Arguments, combine: Combine) -> Any:
        # In a tree, so that no worker has to hold all results.
        tasks, merge = self._tasks(verb, arguments), partial(_merge, combine)
        while len(tasks) > 1:
            tasks = [
                self._engine.task(
                    merge, f"neverworse-{verb.name}-combine", *tasks[lo : lo + FAN_IN]
                )
                for lo in range(0, len(tasks), FAN_IN)
            ]
        return self._engine.run(tasks)[0]

    # States are tasks whose results are held by workers. If workers die, the scheduler computes
    # these again.

    def keep_chunks(self, verb: Verb, arguments: Arguments) -> tuple[list[Any], ChunkState]:
        kept = self._engine.persist(self._tasks(verb, arguments, packing=_pack_pair))
        found = [
            self._engine.task(_found, "neverworse-findings", pair, home=home)
            for pair, home in zip(kept, self._homes, strict=True)
        ]
        return [*map(unpack, self._engine.run(found))], kept

    def scatter(self, known: Any) -> ChunkState:
        return self._engine.persist(self._tasks(_scatter, self._cut(known), packing=pack))

    def map_kept(self, function: Callable[..., Any], arguments: Arguments) -> Iterable[Any]:
        return map(unpack, self._engine.run(self._tasks(function, arguments, packing=pack)))

    def where(self, row: int) -> str:
        k = int(np.searchsorted(self.edges, row, side="right")) - 1
        return f"row {row} (row {row - self.edges[k]} of chunk {k})"

    def _tasks(
        self,
        action: Verb | Callable[..., Any],
        arguments: Arguments,
        chosen: Sequence[int] | None = None,
        packing: Callable[[Any], Any] | None = None,
    ) -> list[Any]:
        """Return tasks that apply a verb to chunks, or call a function with their state.

        Results are packed if they are sent or kept.
        """
        tasks = []
        chosen = range(self.n_chunks) if chosen is None else chosen
        verb = action if isinstance(action, Verb) else Verb(action)
        for k, own in zip(chosen, arguments, strict=True):
            call: Callable[..., Any] = action
            if isinstance(action, Verb):
                shape = (int(self.edges[k + 1] - self.edges[k]), self._stored_columns)
                call = partial(_apply, action, k, shape, self._dtype)
                own = (self._chunks[k], *own)
            inputs = [one for one in own if isinstance(one, Delayed)]
            known = tuple(... if isinstance(one, Delayed) else pack(one) for one in own)
            call, name = partial(_call, call, known, packing), f"neverworse-{verb.name}"
            tasks.append(self._engine.task(call, name, *inputs, home=self._homes[k]))
        return tasks


def _call(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    packing: Callable[[Any], Any] | None,
    *inputs: Any,
) -> Any:
    """Call a function on a worker, with arguments that are packed.

    In place of ... comes the result of another task.
    """
    results = iter(inputs)
    found = function(*(unpack(next(results) if one is ... else one) for one in arguments))
    return found if packing is None else packing(found)


# What a pass finds and what it leaves are the result of one task, which stands for the latter.


def _pack_pair(pair: tuple[Any, Any]) -> Packed:
    return Packed(_left, pack(pair))


def _left(_: Any, left: Any) -> Any:
    return unpack(left)


def _found(pair: Packed) -> Any:
    return pair.parts[0]


def _apply(
    verb: Verb, number: int, shape: tuple[int, int], dtype: Any, chunk: Any, *own: Any
) -> Any:
    """Apply a verb to a chunk, whose shape must not change."""
    rows = _rows(chunk, dtype)
    if (rows.n_rows, rows.n_columns) != shape:
        raise ValueError(
            f"Chunk {number} of X has {rows.n_rows} rows and {rows.n_columns} columns, but "
            f"{shape[0]} rows and {shape[1]} columns are expected. All chunks need the same "
            "columns, and X must not change while a model is fitted: it is read several times, in "
            "the same order."
        )
    return verb(rows, *own)


def _scatter(known: Any) -> Any:
    return known


def _rows(chunk: Any, dtype: Any) -> Rows:
    """Return the rows of a chunk, whatever its type."""
    if sparse.issparse(chunk):
        return SparseRows(chunk)
    if hasattr(chunk, "tocsr"):  # other sparse arrays
        return SparseRows(chunk.tocsr())
    if hasattr(chunk, "to_numpy"):
        return DenseRows(chunk.to_numpy(dtype=dtype, na_value=np.nan))
    array = np.asarray(chunk)
    return DenseRows(array if array.dtype.kind == "f" else array.astype(np.float64))


def _check_table(X: Any) -> None:
    if isinstance(X, Delayed) or getattr(X, "ndim", None) != 2:
        raise ValueError(
            f"Expected 2D array, got {type(X).__name__} of other dimensions instead: X is a Dask "
            "array or data frame with a row for each sample and a column for each feature."
        )


def _one_column_chunk(X: da.Array) -> da.Array:
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X is a Dask array of {X.dtype}, but features are numbers. Convert it.")
    return X if len(X.chunks[1]) == 1 else X.rechunk({1: -1})


def gather(values: Any) -> Any:
    """Return labels or weights that are a Dask collection as an array or series in memory.

    Numbers are sent packed: of labels that are mostly missing, only the others take memory.
    """
    engine = Engine()
    dtype = getattr(values, "dtype", None)
    if not (isinstance(dtype, np.dtype) and dtype.kind in "iufb" and values.ndim == 1):
        return engine.run([values])[0]
    chunks = np.ravel(values.to_delayed()).tolist()
    numbers = partial(_call, np.asarray, (...,), pack)
    tasks = [engine.task(numbers, "neverworse-gather", chunk) for chunk in chunks]
    return np.concatenate([unpack(found) for found in engine.run(tasks)])


def map_rows(X: Any, function: Callable[[Any], AnyArray], like: AnyArray, name: str) -> da.Array:
    """Apply a function to the chunks of a Dask array or data frame, lazily.

    It returns one number or one row of numbers for each row, `like` what it returns for some rows;
    dashboards show its name.
    """
    _check_table(X)
    X = _one_column_chunk(X if isinstance(X, da.Array) else X.to_dask_array())
    settings = {"dtype": like.dtype, "meta": like[:0], "token": name}
    if like.ndim == 1:
        return X.map_blocks(function, drop_axis=1, **settings)
    return X.map_blocks(function, chunks=(X.chunks[0], (like.shape[1],)), **settings)


POLL = 2.0  # seconds between two checks that the cluster is still working
MOST_IDLE = 60.0  # seconds without any running task before a fit gives up
FAN_IN = 8  # results that one task combines

_GONE = (
    "The Dask cluster went away before the result was there ({}). Nothing was fitted: start a "
    "cluster, connect a Client to it, and fit again."
)
_STUCK = (
    "The Dask cluster cannot compute the result any more ({}). Nothing was fitted: load X again, "
    "and fit again."
)


class LostClusterError(RuntimeError):
    """The cluster shut down, or lost its workers or rows that cannot be computed again."""


class Engine:
    """Runs tasks on the cluster that is active when it is made, or in threads if none is."""

    def __init__(self) -> None:
        self._client = _active_client()

    def run(self, tasks: Sequence[Any]) -> list[Any]:
        """Return the results of tasks (or of other Dask collections)."""
        if self._client is None:
            return list(dask.compute(*tasks, traverse=False))
        with _explained_loss(self._client):
            return _gathered(self._client, self._client.compute(list(tasks)))

    def persist(self, tasks: Sequence[Any]) -> list[Any]:
        """Start tasks; return tasks that stand for their results."""
        if self._client is None:
            return list(dask.persist(*tasks, traverse=False))
        with _explained_loss(self._client):
            return list(self._client.persist(list(tasks)))

    def homes(self, collection: Any, tasks: Sequence[Any]) -> list[tuple[str, ...]]:
        """Return the addresses of workers that hold the chunks of a persisted collection."""
        if self._client is None:
            return [()] * len(tasks)
        from distributed import futures_of

        futures = futures_of(collection)
        with _explained_loss(self._client):
            holders = self._client.who_has(futures) if futures else {}
        return [tuple(holders.get(task.key, ())) for task in tasks]

    def task(
        self, function: Callable[..., Any], name: str, *inputs: Any, home: Sequence[str] = ()
    ) -> Any:
        """Return a task that calls a function with the results of others.

        Dashboards show its name. It runs on a worker of its home if one is alive.
        """
        call = partial(
            dask.delayed(function, pure=False, traverse=False),
            *inputs,
            dask_key_name=f"{name}-{uuid4().hex}",
        )
        if not home:
            return call()
        with dask.annotate(workers=list(home), allow_other_workers=True):
            return call()


def _merge(combine: Callable[[Any, Any], Any], *results: Any) -> Any:
    return reduce(combine, results)


def _active_client() -> Any:
    if dask.config.get("scheduler", "dask.distributed") != "dask.distributed":
        return None  # the user wants another scheduler
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


def _check_client(client: Any) -> None:
    if client.status != "running":
        raise LostClusterError(_GONE.format(f"the client is {client.status}"))


@contextmanager
def _explained_loss(client: Any) -> Iterator[None]:
    """Raise a `LostClusterError` with an explanation if the cluster goes away."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        _check_client(client)
        # Data of rows, such as their weights, are sent within the graph: then tasks can be run
        # again on any worker.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            yield
    except KilledWorker as error:
        raise LostClusterError(
            f"Workers of the Dask cluster died again and again ({error}). Chunks may be too large "
            "for their memory: use smaller ones. Nothing was fitted."
        ) from error
    except (futures.CancelledError, CommClosedError) as error:
        message = _GONE.format(type(error).__name__)
        if isinstance(error, futures.CancelledError) and client.status == "running":
            message = _STUCK.format(f"an input was cancelled, or lost with a worker: {error}")
        raise LostClusterError(message) from error


def _gathered(client: Any, pending: list[Any]) -> list[Any]:
    """Return the results of Dask's futures, as long as the cluster works on them."""
    # Results may be lost even while they are sent: Dask then computes them again, and goes on
    # waiting by itself. So it gathers in its own thread, and this one keeps watch.
    results = asyncio.run_coroutine_threadsafe(
        client.gather(pending, asynchronous=True), client.loop.asyncio_loop
    )
    last_work = time.monotonic()
    try:
        while not futures.wait([results], POLL).done:
            _check_client(client)
            try:
                obstacle = client.run_on_scheduler(_urge)
            except (OSError, TimeoutError) as error:
                raise LostClusterError(_GONE.format(type(error).__name__)) from error
            if obstacle is None:
                last_work = time.monotonic()
            elif time.monotonic() - last_work > MOST_IDLE:
                raise LostClusterError(obstacle)
        return list(results.result())
    finally:
        if not results.done() and client.status == "running":
            with suppress(OSError, TimeoutError):
                client.cancel(pending)  # which ends the gathering as well


def _urge(dask_scheduler: Any) -> str | None:
    """Have the scheduler run what it can; return an error message if nothing runs.

    Tasks with a preferred worker that become ready while there are no workers at all are not looked
    at again when others come (Dask waits for that very worker), although others may run them.
    """
    movable = [task.key for task in dask_scheduler.unrunnable if task.loose_restrictions]
    dask_scheduler.transitions(
        dict.fromkeys(movable, "processing"), stimulus_id=f"neverworse-urge-{uuid4().hex}"
    )
    running, workers = dask_scheduler.running, dask_scheduler.workers.values()
    if any(worker.executing or (worker in running and worker.processing) for worker in workers):
        return None
    if not workers:
        return _GONE.format("it has no workers left")
    if not running:
        return _STUCK.format("all workers have paused because their memory is full")
    stuck = sorted(str(task.key) for task in dask_scheduler.unrunnable)
    reason = f"none of its workers is allowed to run {stuck[0]}" if stuck else "no task is ready"
    return _STUCK.format(reason)
