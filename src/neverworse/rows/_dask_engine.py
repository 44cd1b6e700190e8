"""Run tasks on the active Dask cluster, or in threads; give up when the cluster is gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial, reduce
from typing import Any
from uuid import uuid4

import dask

POLL = 2.0  # seconds after which the cluster is asked whether it is still at work
MOST_IDLE = 60.0  # seconds for which nothing may happen before a fit gives up
FAN_IN = 8  # results that are combined at once

_GONE = (
    "The Dask cluster went away before the result was there ({reason}). Nothing was fitted: start "
    "a cluster, connect a Client to it, and fit again."
)
_STUCK = (
    "The Dask cluster cannot compute the result any more ({reason}). Nothing was fitted: load X "
    "again, and fit again."
)

Home = tuple[str, ...]  # addresses of workers


class LostClusterError(RuntimeError):
    """The cluster shut down, or lost its workers or rows that cannot be computed again."""


class Engine:
    """Runs tasks on the cluster that was active when it was made, or in threads if none was."""

    def __init__(self) -> None:
        self._client = _active_client()

    def run(self, tasks: Sequence[Any]) -> list[Any]:
        """Return the results of tasks (or of other Dask collections)."""
        if self._client is None:
            return list(dask.compute(*tasks, traverse=False))
        with _watched(self._client):
            return _gathered(self._client, self._client.compute(list(tasks)))

    def persist(self, tasks: Sequence[Any]) -> list[Any]:
        """Start tasks; return what stands for their results, as inputs of other tasks."""
        if self._client is None:
            return list(dask.persist(*tasks, traverse=False))
        with _watched(self._client):
            return list(self._client.persist(list(tasks)))

    def homes(self, collection: Any, tasks: Sequence[Any]) -> list[Home]:
        """Return the workers that hold chunks of a collection already, because it is persisted."""
        if self._client is None:
            return [()] * len(tasks)
        from distributed import futures_of

        futures = futures_of(collection)
        with _watched(self._client):
            holders = self._client.who_has(futures) if futures else {}
        return [tuple(holders.get(task.key, ())) for task in tasks]

    def task(self, function: Callable[..., Any], name: str, *inputs: Any, home: Home = ()) -> Any:
        """Return a task that calls a function with the results of others.

        Dashboards show its name. If there is a home, it should run there as long as that lives.
        """
        key = f"{name}-{uuid4().hex}"
        task = dask.delayed(function, pure=False, traverse=False)
        if not home:
            return task(*inputs, dask_key_name=key)
        with dask.annotate(workers=list(home), allow_other_workers=True):
            return task(*inputs, dask_key_name=key)

    def run_tree(self, tasks: Sequence[Any], combine: Callable[[Any, Any], Any], name: str) -> Any:
        """Combine the results of tasks in their order, where they are; return the outcome."""
        merge = partial(_merge, combine)
        while len(tasks) > 1:
            tasks = [
                self.task(merge, f"{name}-combine", *tasks[lo : lo + FAN_IN])
                for lo in range(0, len(tasks), FAN_IN)
            ]
        return self.run(tasks)[0]


@contextmanager
def _watched(client: Any) -> Iterator[None]:
    """Say what has happened where a cluster goes away."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        _check_client(client)
        # What the client knows about rows, such as their weights, travels within the graph: then
        # tasks can be run again wherever they have to be.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            yield
    except KilledWorker as error:
        raise LostClusterError(
            f"Workers of the Dask cluster died again and again ({error}). Chunks may be too large "
            "for their memory: use smaller ones. Nothing was fitted."
        ) from error
    except CancelledError as error:
        if client.status != "running":
            raise LostClusterError(_GONE.format(reason=type(error).__name__)) from error
        reason = f"what it needs was cancelled, or lost with a worker: {error}"
        raise LostClusterError(_STUCK.format(reason=reason)) from error
    except CommClosedError as error:
        raise LostClusterError(_GONE.format(reason=type(error).__name__)) from error


def _merge(combine: Callable[[Any, Any], Any], *results: Any) -> Any:
    return reduce(combine, results)


def _active_client() -> Any:
    if dask.config.get("scheduler", "dask.distributed") != "dask.distributed":
        return None  # the user wants another scheduler
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


def _check_client(client: Any) -> None:
    if client.status != "running":
        raise LostClusterError(_GONE.format(reason=f"the client is {client.status}"))


def _gathered(client: Any, pending: list[Any]) -> list[Any]:
    """Return the results of Dask's futures, as long as the cluster is on its way to them."""
    # Results may be lost even while they travel: Dask then computes them again, and goes on
    # waiting by itself. So it gathers in its own thread, and this one keeps watch.
    results = asyncio.run_coroutine_threadsafe(
        client.gather(pending, asynchronous=True), client.loop.asyncio_loop
    )
    moved = time.monotonic()
    try:
        while not futures.wait([results], POLL).done:
            _check_client(client)
            try:
                obstacle = client.run_on_scheduler(_urge)
            except (OSError, TimeoutError) as error:
                raise LostClusterError(_GONE.format(reason=type(error).__name__)) from error
            if obstacle is None:
                moved = time.monotonic()
            elif time.monotonic() - moved > MOST_IDLE:
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
        return _GONE.format(reason="it has no workers left")
    if not running:
        return _STUCK.format(reason="all workers have paused because their memory is full")
    stuck = sorted(str(task.key) for task in dask_scheduler.unrunnable)
    reason = f"none of its workers is allowed to run {stuck[0]}" if stuck else "no task is ready"
    return _STUCK.format(reason=reason)
