"""Count how often a fit reads the rows."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager, nullcontext
from functools import wraps
from unittest.mock import patch

from neverworse.rows import ChunkedRows, DenseRows, Rows, SparseRows

VERBS = (
    "gram",
    "scores",
    "scores_and_sum",
    "weighted_sum",
    "squares",
    "ranges",
    "spread_along",
    "triangle",
)


class Readings(Counter):
    """Readings of all rows, by verb; those of some chunks count as a share."""

    @property
    def passes(self):
        """Readings for scores and sums: all but the Gram matrix, and rows that were taken."""
        return self.total() - self["gram"] - self["take"]


@contextmanager
def counted(rows):
    """Count the readings of all fits to these rows, or to an array of as many rows."""
    readings = Readings()
    chunked = isinstance(rows, ChunkedRows)
    counting = _of_chunks(type(rows), readings) if chunked else _in_memory(rows.shape[0], readings)
    with counting:
        yield readings


@contextmanager
def _of_chunks(kind, readings):
    def count(method):
        @wraps(method)
        def counting(self, verb, *arguments):
            # `reduce_chunks` reads all chunks, `map_chunks` those that it is told.
            chosen = arguments[0] if method.__name__ == "map_chunks" else range(self.n_chunks)
            readings[verb.name] += len(chosen) / self.n_chunks
            return method(self, verb, *arguments)

        return counting

    # The base class reduces by mapping, which would count twice.
    own_reduce = "reduce_chunks" in vars(kind)
    reducing = _wrapped(kind, "reduce_chunks", count) if own_reduce else nullcontext()
    with _wrapped(kind, "map_chunks", count), reducing:
        yield


@contextmanager
def _in_memory(n_rows, readings):
    inside = []  # a verb may be made of others

    def count(method):
        @wraps(method)
        def counting(self, *arguments, **settings):
            if inside or self.n_rows != n_rows:
                return method(self, *arguments, **settings)
            readings[method.__name__] += 1
            inside.append(method)
            try:
                return method(self, *arguments, **settings)
            finally:
                inside.pop()

        return counting

    wrapped = [
        _wrapped(kind, name, count)
        for kind in (Rows, DenseRows, SparseRows)
        for name in VERBS
        if name in vars(kind)
    ]
    for one in wrapped:
        one.start()
    try:
        yield
    finally:
        for one in wrapped:
            one.stop()


def _wrapped(kind, name, count):
    return patch.object(kind, name, count(vars(kind)[name]))
