"""Run tasks on the active Dask cluster, or in threads; give up if the cluster is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager, suppress
from functools import partial, reduce
from typing import Any
from uuid import uuid4

import dask

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

    def run_tree(self, tasks: Sequence[Any], combine: Callable[[Any, Any], Any], name: str) -> Any:
        """Combine the results of tasks in their order, on the workers; return the result."""
        merge = partial(_merge, combine)
        while len(tasks) > 1:
            tasks = [
                self.task(merge, f"{name}-combine", *tasks[lo : lo + FAN_IN])
                for lo in range(0, len(tasks), FAN_IN)
            ]
        return self.run(tasks)[0]


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
