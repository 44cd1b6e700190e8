"""Count how often a fit reads the rows."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager
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
# Readings for several things at once.
SAME = {"gram_and_rows": "gram"}


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


def _of_chunks(kind, readings):
    def note(method, rows, verb, *arguments):
        # Only `map_chunks` is told which chunks to read.
        chosen = arguments[0] if method.__name__ == "map_chunks" else range(rows.n_chunks)
        name = SAME.get(verb.name, verb.name)
        readings[name] += len(chosen) / rows.n_chunks
        return True

    return _noted([kind], ("map_chunks", "reduce_chunks", "keep_chunks"), note)


def _in_memory(n_rows, readings):
    def note(method, rows, *_):
        if rows.n_rows != n_rows:
            return False
        readings[method.__name__] += 1
        return True

    return _noted([Rows, DenseRows, SparseRows], VERBS, note)


@contextmanager
def _noted(kinds, names, note):
    """Call ``note(method, rows, *arguments)`` before methods that some classes define.

    A method may be made of others: if `note` returns True, these are not noted.
    """
    inside = []

    def noting(method):
        @wraps(method)
        def call(self, *arguments, **settings):
            if inside or not note(method, self, *arguments):
                return method(self, *arguments, **settings)
            inside.append(method)
            try:
                return method(self, *arguments, **settings)
            finally:
                inside.pop()

        return call

    with ExitStack() as patches:
        for kind in kinds:
            for name in vars(kind).keys() & set(names):
                patches.enter_context(patch.object(kind, name, noting(vars(kind)[name])))
        yield
