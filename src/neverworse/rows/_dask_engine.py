"""Run tasks on the active Dask cluster, or in threads; give up when the cluster is gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import dask

POLL = 2.0  # seconds after which the cluster is asked whether it is still there
MOST_IDLE = 60.0  # seconds for which a cluster without workers may be on its way to new ones
FAN_IN = 8  # results that are combined at once

_GONE = (
    "The Dask cluster went away before the result was there ({reason}). Nothing was fitted: start "
    "a cluster, connect a Client to it, and fit again."
)


Home = tuple[str, ...]  # addresses of workers


class LostClusterError(RuntimeError):
    """The cluster shut down, or lost all of its workers."""


class Engine:
    """Runs tasks on the cluster that was active when it was made, or in threads if none was."""

    def __init__(self) -> None:
        self._client = _active_client()

    def run(self, tasks: Sequence[Any]) -> list[Any]:
        """Return the results of tasks (or of other Dask collections)."""
        if self._client is None:
            return list(dask.compute(*tasks, traverse=False))
        with _watched(self._client):
            futures = self._client.compute(list(tasks))
            _wait(self._client, futures)
            return list(self._client.gather(futures))

    def persist(self, tasks: Sequence[Any]) -> list[Any]:
        """Start tasks; return what stands for their results, as inputs of other tasks."""
        if self._client is None:
            return list(dask.persist(*tasks, traverse=False))
        with _watched(self._client):
            return list(self._client.persist(list(tasks)))

    def homes(self, collection: Any, tasks: Sequence[Any]) -> list[Home]:
        """Return the workers that hold the results of tasks already, if any do.

        Parameters
        ----------
        collection : Dask collection
            What may be persisted.
        tasks : sequence of tasks
            Its chunks.
        """
        if self._client is None:
            return [()] * len(tasks)
        from distributed import futures_of

        futures = futures_of(collection)
        with _watched(self._client):
            holders = self._client.who_has(futures) if futures else {}
        return [tuple(holders.get(task.key, ())) for task in tasks]

    def run_tree(self, tasks: Sequence[Any], combine: Callable[[Any, Any], Any], name: str) -> Any:
        """Combine the results of tasks in their order, where they are; return the outcome."""
        merge = _Merge(combine)
        while len(tasks) > 1:
            tasks = [
                task_of(merge, f"{name}-combine", *tasks[lo : lo + FAN_IN])
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
    except (CancelledError, CommClosedError) as error:
        raise LostClusterError(_GONE.format(reason=type(error).__name__)) from error


def task_of(function: Callable[..., Any], name: str, *inputs: Any, home: Home = ()) -> Any:
    """Return a task.

    Parameters
    ----------
    function : callable
    name : str
        What dashboards show.
    *inputs
        Tasks, whose results the function is called with.
    home : tuple of str
        Workers that should run the task, as long as they live; Dask chooses if empty.
    """
    key = f"{name}-{uuid4().hex}"
    task = dask.delayed(function, pure=False, traverse=False)
    if not home:
        return task(*inputs, dask_key_name=key)
    with dask.annotate(workers=list(home), allow_other_workers=True):
        return task(*inputs, dask_key_name=key)


class _Merge:
    """Combine results one after the other."""

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self._combine = combine

    def __call__(self, *results: Any) -> Any:
        merged = results[0]
        for result in results[1:]:
            merged = self._combine(merged, result)
        return merged


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


def _wait(client: Any, futures: list[Any]) -> None:
    """Wait for all futures, as long as there is a cluster that may finish them."""
    from distributed import wait

    idle_since = None
    while True:
        try:
            wait(futures, timeout=POLL)
            return
        except TimeoutError:
            pass
        _check_client(client)
        try:
            has_workers = bool(client.nthreads())
        except (OSError, TimeoutError) as error:
            raise LostClusterError(_GONE.format(reason=type(error).__name__)) from error
        if has_workers:
            idle_since = None
        elif idle_since is None:
            idle_since = time.monotonic()
        elif time.monotonic() - idle_since > MOST_IDLE:
            raise LostClusterError(_GONE.format(reason="it has no workers left"))
