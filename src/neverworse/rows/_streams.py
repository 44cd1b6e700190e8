"""Work on several parts of a file at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from neverworse.rows._threads import one_thread, single_threaded_blas

Item = TypeVar("Item")
Part = TypeVar("Part")


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

    Parameters
    ----------
    parts : sequence
    work : callable
        ``work(part)`` yields items. It is not asked for more once a part before it has failed, or
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
