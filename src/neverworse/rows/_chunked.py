"""Rows that come in chunks: from files, from a cluster, from wherever.

A backend says how to apply a verb to each of its chunks; this makes all verbs of `Rows` of it.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np

from neverworse._typing import AnyArray, Indices, Matrix, Scalars, Vector
from neverworse.rows._base import Rows
from neverworse.rows._chunk_state import ChunkState, LocalChunkState, add_pairs, objects_of
from neverworse.rows._dense import some_dense
from neverworse.rows._packed import pack
from neverworse.rows._sums import RowWeigh, Standard, Weigh, reduce_rows

Result = TypeVar("Result")

TAKEN_BYTES = 2**26  # rows in chunks may be too many for memory, even if they are a small share


@dataclass(frozen=True)
class Verb:
    """What shall be done with every chunk: a method of `Rows` or a function, and what all share.

    Small, and can be pickled: it travels to where the chunks are.

    Attributes
    ----------
    action : str or callable
        Name of the method, or a function of rows (defined at the top of a module).
    common : tuple
        Its first arguments.
    shift : array of shape (n_columns,) or None
        Of the rows.
    """

    action: str | Callable[..., Any]
    common: tuple[Any, ...] = ()
    shift: Vector | None = None

    @property
    def name(self) -> str:
        """What is done, in a word."""
        return self.action if isinstance(self.action, str) else self.action.__name__.strip("_")

    def __call__(self, chunk: Rows, *own: Any) -> Any:
        """Apply the verb to a chunk, with the last arguments of its own."""
        rows = chunk if self.shift is None else chunk.shifted(self.shift)
        if callable(self.action):
            return self.action(rows, *self.common, *own)
        return getattr(rows, self.action)(*self.common, *own)


class ChunkedRows(Rows):
    """Rows in chunks, of which each fits into memory, but not all of them do.

    A backend is a subclass with one method, `map_chunks`. Sums are added up in the order of the
    chunks, so that they do not depend on what is ready first.

    Parameters
    ----------
    sizes : sequence of int
        The number of rows in each chunk.
    n_columns : int
    column_names : list of str, optional
    """

    def __init__(
        self, sizes: Sequence[int], n_columns: int, column_names: list[str] | None = None
    ) -> None:
        edges = np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)])
        super().__init__(int(edges[-1]), n_columns)
        self.edges = edges
        self.most_taken = TAKEN_BYTES // (8 * max(n_columns, 1))
        self.column_names = column_names
        # Weights and shift that the Gram matrix is known for, the matrix and the sums.
        self._known_gram: tuple[Vector | None, Vector | None, Matrix, Vector] | None = None

    random_access = False

    @abstractmethod
    def map_chunks(
        self, verb: Verb, chosen: Sequence[int], arguments: Sequence[tuple[Any, ...]]
    ) -> Iterable[Any]:
        """Apply a verb to some chunks; the results come in the order of the chunks.

        Parameters
        ----------
        verb : Verb
            To be called as ``verb(as_rows(chunk), *own)``.
        chosen : sequence of int
            Numbers of chunks, in increasing order.
        arguments : sequence of tuple
            The arguments ``own`` of each of these.
        """

    def reduce_chunks(
        self, verb: Verb, arguments: Sequence[tuple[Any, ...]], combine: Callable[[Any, Any], Any]
    ) -> Any:
        """Apply a verb to all chunks, and combine the results in their order."""
        return reduce(combine, self.map_chunks(verb, range(self.n_chunks), arguments))

    def where(self, row: int) -> str:
        """Return where a row is to be found, in words for a message."""
        return f"row {row}"

    @property
    def n_chunks(self) -> int:
        """The number of chunks."""
        return len(self.edges) - 1

    def with_gram(self, weights: Vector | None, indices: Indices) -> tuple[Self, Matrix]:
        """Take rows and add up their Gram matrix in one reading.

        Parameters
        ----------
        weights : array of shape (n_rows,), optional
            Those that the Gram matrix will be asked for.
        indices : array of int
            Rows to take, in increasing order.

        Returns
        -------
        rows : ChunkedRows
            The same rows, which know their Gram matrix.
        taken : array of shape (n, n_columns)
        """
        edges = np.searchsorted(indices, self.edges)
        own = [
            (*cut, indices[lo:hi] - start)
            for cut, (lo, hi), start in zip(
                self._cut(weights), pairwise(edges), self.edges[:-1], strict=True
            )
        ]
        gram, total, taken = self.reduce_chunks(self._verb(_gram_and_rows), own, _add_and_join)
        rows = copy.copy(self)
        rows._known_gram = (weights, self.shift, gram, total)
        return rows, np.concatenate(taken)

    def gram(self, weights: Vector | None = None) -> tuple[Matrix, Vector]:
        """See `Rows.gram`."""
        if self._known_gram is not None:
            known, shift, gram, total = self._known_gram
            if known is weights and shift is self.shift:
                return gram.copy(), total.copy()
        return self.reduce_chunks(self._verb("gram"), self._cut(weights), add_pairs)

    def scores(self, coef: Vector, intercept: Scalars = 0.0) -> Vector:
        """See `Rows.scores`."""
        verb = self._verb("scores", coef, intercept)
        scores = np.empty((*coef.shape[:-1], self.n_rows))
        for rows, found in zip(self._slices_of_chunks(), self._map(verb, self._cut()), strict=True):
            scores[..., rows] = found
        return scores

    def scores_and_sum(
        self, coef: Vector, intercept: Scalars, weigh: Weigh
    ) -> tuple[Vector, Vector, Vector]:
        """See `Rows.scores_and_sum`; one reading of the rows for a `RowWeigh`, otherwise two."""
        if not isinstance(weigh, RowWeigh):
            scores = self.scores(coef, intercept)
            x = weigh(scores, slice(0, self.n_rows))
            return scores, self.weighted_sum(x), x.sum(axis=-1)
        verb = self._verb("scores_and_sum", coef, intercept)
        own = [(weigh.at(rows),) for rows in self._slices_of_chunks()]
        scores = np.empty((*coef.shape[:-1], self.n_rows))
        summed, total = np.zeros(coef.shape), np.zeros(coef.shape[:-1])
        for rows, found in zip(self._slices_of_chunks(), self._map(verb, own), strict=True):
            scores[..., rows] = found[0]
            summed += found[1]
            total = total + found[2]
        return scores, summed, total

    def score_weighted_sum(
        self, coef: Vector, intercept: Scalars, weigh: Weigh
    ) -> tuple[Vector, Vector]:
        """See `Rows.score_weighted_sum`; with a `RowWeigh`, no scores leave their chunk."""
        if not isinstance(weigh, RowWeigh):
            return self.scores_and_sum(coef, intercept, weigh)[1:]
        verb = self._verb("score_weighted_sum", coef, intercept)
        return self.reduce_chunks(verb, self._belonging((weigh,), ()), add_pairs)

    def scatter(self, known: Any) -> ChunkState:
        """See `Rows.scatter`."""
        return LocalChunkState([known.at(rows) for rows in self._slices_of_chunks()])

    def keep(
        self,
        function: Callable[..., Any],
        *common: Any,
        known: Sequence[Any] = (),
        kept: Sequence[ChunkState] = (),
    ) -> ChunkState:
        """See `Rows.keep`."""
        found = self._map(self._verb(function, *common), self._belonging(known, kept))
        return LocalChunkState([pack(one) for one in found])  # soft labels are worth a bit each

    def fold(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        *common: Any,
        known: Sequence[Any] = (),
        kept: Sequence[ChunkState] = (),
    ) -> Any:
        """See `Rows.fold`."""
        verb = self._verb(function, *common)
        return self.reduce_chunks(verb, self._belonging(known, kept), combine)

    @property
    def chunk_starts(self) -> list[int]:
        """See `Rows`."""
        return [int(edge) for edge in self.edges[:-1]]

    def ask(
        self,
        function: Callable[..., Any],
        kept: Sequence[ChunkState],
        *common: Any,
        known: Sequence[Any] = (),
    ) -> list[Any]:
        """See `Rows.ask`."""
        return kept[0].map(function, *common, also=kept[1:], own=self._belonging(known, ()))

    def ask_and_combine(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        kept: Sequence[ChunkState],
        *common: Any,
    ) -> Any:
        """See `Rows.ask_and_combine`."""
        return kept[0].reduce(function, combine, *common, also=kept[1:])

    def pick(
        self, function: Callable[..., AnyArray], kept: ChunkState, indices: Indices
    ) -> AnyArray:
        """See `Rows.pick`."""
        bounds = np.searchsorted(indices, self.edges)
        chosen = np.flatnonzero(np.diff(bounds)).tolist() or [0]
        own = [(indices[bounds[k] : bounds[k + 1]] - self.edges[k],) for k in chosen]
        return np.concatenate(kept.map(function, chosen=chosen, own=own), axis=-1)

    def keep_only(self, function: Callable[[Any], Any], kept: ChunkState) -> ChunkState:
        """See `Rows.keep_only`."""
        return kept.keep_only(function)

    def weighted_sum(self, weights: Vector) -> Vector:
        """See `Rows.weighted_sum`."""
        return self.reduce_chunks(self._verb("weighted_sum"), self._cut(weights), _add)

    def squares(self, weights: Vector | None = None) -> Vector:
        """See `Rows.squares`."""
        return self.reduce_chunks(self._verb("squares"), self._cut(weights), _add)

    def ranges(self, columns: Indices, weights: Vector | None) -> tuple[Vector, Vector]:
        """See `Rows.ranges`."""
        return self.reduce_chunks(self._verb("ranges", columns), self._cut(weights), _widen)

    def spread_along(
        self, directions: Matrix, centre: Vector, weights: Vector | None
    ) -> tuple[Matrix, Matrix]:
        """See `Rows.spread_along`."""
        verb = self._verb("spread_along", directions, centre)
        return self.reduce_chunks(verb, self._cut(weights), add_pairs)

    def triangle(self, standard: Standard, weights: Vector | None, targets: Matrix) -> Matrix:
        """See `Rows.triangle`."""
        verb = self._verb("triangle", standard)
        return self.reduce_chunks(verb, self._cut(weights, targets), _stack)

    def take(self, indices: Indices) -> Matrix:
        """See `Rows.take`."""
        taken = np.empty((len(indices), self.n_columns))
        order = np.argsort(indices, kind="stable")
        for positions, rows in self._taken(indices[order]):
            taken[order[positions]] = rows
        return taken

    def map_taken(
        self,
        indices: Indices,
        pieces: Sequence[slice],
        function: Callable[[slice, Matrix], Result],
    ) -> Iterable[Result]:
        """See `Rows.map_taken`; the pieces are those of the chunks, each of which is read once."""
        if (indices[1:] < indices[:-1]).any():
            return super().map_taken(indices, pieces, function)
        return (function(piece, rows) for piece, rows in self._taken(indices))

    def some(self, indices: Indices) -> Rows:
        """See `Rows.some`."""
        return some_dense(self, indices)

    def shifted(self, shift: Vector) -> Self:
        """See `Rows.shifted`."""
        rows = copy.copy(self)
        rows.shift = shift
        return rows

    def block(self, start: int, stop: int) -> Matrix:
        """See `Rows.block`; reads whole chunks, so the verbs above are to be preferred."""
        return self.take(np.arange(start, stop))

    def column(self, index: int) -> AnyArray:
        """See `Rows.column`."""
        return np.concatenate(list(self._map(Verb("column", (index,)), self._cut())))

    def first_not_finite(self) -> tuple[int, int, float] | None:
        """Return row, column and value of the first number that is NaN or infinite."""
        found = self._map(Verb("first_not_finite"), self._cut())
        for rows, first in zip(self._slices_of_chunks(), found, strict=True):
            if first is not None:
                return rows.start + first[0], first[1], first[2]
        return None

    def _verb(self, action: str | Callable[..., Any], *common: Any) -> Verb:
        return Verb(action, common, self.shift)

    def _belonging(self, known: Sequence[Any], kept: Sequence[ChunkState]) -> list[tuple[Any, ...]]:
        """Return what belongs to each chunk of things with a method `at`, and of kept ones."""
        return [
            (*(one.at(rows) for one in known), *objects_of(kept, k))
            for k, rows in enumerate(self._slices_of_chunks())
        ]

    def _map(self, verb: Verb, arguments: Sequence[tuple[Any, ...]]) -> Iterable[Any]:
        return self.map_chunks(verb, range(self.n_chunks), arguments)

    def _slices_of_chunks(self) -> list[slice]:
        return [slice(int(lo), int(hi)) for lo, hi in pairwise(self.edges)]

    def _cut(self, *vectors: Vector | None) -> list[tuple[Any, ...]]:
        """Return what belongs to each chunk of vectors that have the rows last."""
        return [
            tuple(None if vector is None else vector[..., rows] for vector in vectors)
            for rows in self._slices_of_chunks()
        ]

    def _taken(self, indices: Indices) -> Iterator[tuple[slice, Matrix]]:
        """Take rows with increasing indices: those of one chunk after the other."""
        edges = np.searchsorted(indices, self.edges)
        chosen = np.flatnonzero(np.diff(edges)).tolist()
        pieces = [slice(int(edges[k]), int(edges[k + 1])) for k in chosen]
        own = [(indices[p] - self.edges[k],) for k, p in zip(chosen, pieces, strict=True)]
        found = self.map_chunks(self._verb("take"), chosen, own) if chosen else []
        yield from zip(pieces, found, strict=True)


def check_chunk(chunk: Rows, n_rows: int, n_columns: int, name: str) -> Rows:
    """Return the chunk if it has the shape that was seen when the data were opened.

    Otherwise say what is wrong with the chunk of this name.
    """
    if chunk.n_columns != n_columns:
        raise ValueError(
            f"{name} has {chunk.n_columns} columns, but {n_columns} are expected. All chunks need "
            "the same columns."
        )
    if chunk.n_rows != n_rows:
        raise ValueError(
            f"{name} has {chunk.n_rows} rows, but {n_rows} are expected. The data must stay as "
            "they are while a model is fitted, and must be read in the same order every time."
        )
    return chunk


def _add(a: Any, b: Any) -> Any:
    return a + b


def _gram_and_rows(
    rows: Rows, weights: Vector | None, indices: Indices
) -> tuple[Matrix, Vector, list[Matrix]]:
    return *rows.gram(weights), [rows.take(indices)]


def _add_and_join(a: Any, b: Any) -> Any:
    return tuple(one + other for one, other in zip(a, b, strict=True))


def _widen(a: Any, b: Any) -> Any:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def _stack(a: Any, b: Any) -> Any:
    return reduce_rows([a, b])
