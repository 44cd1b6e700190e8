"""Rows that come in chunks: from files, from a cluster, from wherever.

A backend says how to apply a verb to each of its chunks; this makes all verbs of `Rows` of it.
"""

from __future__ import annotations

import copy
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np

from neverworse._typing import AnyArray, Indices, Matrix, Scalars, Vector
from neverworse.rows._base import Rows
from neverworse.rows._blocks import RowWeigh, Standard, Weigh, add_pairs, joined, stacked, widened
from neverworse.rows._features import FeatureMap, FeatureRows
from neverworse.rows._memory import some_dense
from neverworse.rows._packed import pack, unpack

Result = TypeVar("Result")

SURE = 1e-8  # share of a sum of squares that varies for sure
TAKEN_BYTES = 2**26  # rows in chunks may be too many for memory, even if they are a small share


ChunkState = list[Any]  # what is kept of each chunk, perhaps packed, or what stands for it


@dataclass(frozen=True)
class Verb:
    """What shall be done with every chunk; small, for it travels to where the chunks are."""

    # Name of a method of `Rows`, or a function of rows (defined at the top of a module)
    action: str | Callable[..., Any]
    common: tuple[Any, ...] = ()  # its first arguments
    shift: Vector | None = None  # of the rows
    features: FeatureMap | None = (
        None  # what the rows are made of the chunk by, if they are not its own
    )

    @property
    def name(self) -> str:
        """What is done, in a word."""
        return self.action if isinstance(self.action, str) else self.action.__name__.strip("_")

    def __call__(self, chunk: Rows, *own: Any) -> Any:
        """Apply the verb to a chunk, with the last arguments of its own (which may be packed)."""
        rows = chunk if self.features is None else FeatureRows(chunk, self.features)
        rows = rows if self.shift is None else rows.shifted(self.shift)
        function = self.action if callable(self.action) else getattr(type(rows), self.action)
        return function(rows, *self.common, *map(unpack, own))


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

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import LeastSquaresClassifier
    >>> from neverworse.rows import ChunkedRows, as_rows
    >>> class Arrays(ChunkedRows):
    ...     def __init__(self, arrays):
    ...         super().__init__([len(each) for each in arrays], arrays[0].shape[1])
    ...         self.arrays = arrays
    ...
    ...     def map_chunks(self, verb, chosen, arguments):
    ...         for k, own in zip(chosen, arguments):
    ...             yield verb(as_rows(self.arrays[k]), *own)
    >>> rows = Arrays([np.array([[0.0], [1.0]]), np.array([[2.0], [3.0]])])
    >>> print(LeastSquaresClassifier().fit(rows, [0, 0, 1, 1]).predict(rows))
    [0 0 1 1]
    """

    def __init__(
        self, sizes: Sequence[int], n_columns: int, column_names: list[str] | None = None
    ) -> None:
        edges = np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)])
        super().__init__(int(edges[-1]), n_columns)
        self.edges = edges
        self.most_taken = TAKEN_BYTES // (8 * max(n_columns, 1))
        self.column_names = column_names
        self._known: _Known | None = None
        self._features: FeatureMap | None = None
        self._stored_columns = n_columns

    random_access = False

    def with_features(self, features: FeatureMap) -> Self:
        """Return features of these rows, computed from every chunk as it is read."""
        rows = copy.copy(self)
        Rows.__init__(rows, self.n_rows, features.n_features)
        rows.most_taken = TAKEN_BYTES // (8 * max(features.n_features, 1))
        rows._features, rows._known = features, None
        return rows

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
        # Both in one reading. The rows that are returned know their Gram matrix.
        edges = np.searchsorted(indices, self.edges)
        own = [
            (*cut, indices[lo:hi] - start)
            for cut, (lo, hi), start in zip(
                self._cut(weights), pairwise(edges), self.edges[:-1], strict=True
            )
        ]
        found = self.reduce_chunks(self._verb(_gram_and_rows), own, joined)
        rows = copy.copy(self)
        rows._known = _Known(weights, self.shift, *found[:3])
        return rows, np.concatenate(found[3])

    def gram(self, weights: Vector | None = None) -> tuple[Matrix, Vector]:
        known = self._known
        if known is not None and known.weights is weights and known.shift is self.shift:
            return known.gram.copy(), known.total.copy()
        return self.reduce_chunks(self._verb("gram"), self._cut(weights), add_pairs)

    def scores(self, coef: Vector, intercept: Scalars = 0.0) -> Vector:
        verb = self._verb("scores", coef, intercept)
        scores = np.empty((*coef.shape[:-1], self.n_rows))
        for rows, found in zip(self._slices_of_chunks(), self._map(verb, self._cut()), strict=True):
            scores[..., rows] = found
        return scores

    def scores_and_sum(
        self, coef: Vector, intercept: Scalars, weigh: Weigh
    ) -> tuple[Vector, Vector, Vector]:
        # One reading of the rows for a `RowWeigh`, otherwise two.
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
        # With a `RowWeigh`, no scores leave their chunk.
        if not isinstance(weigh, RowWeigh):
            return self.scores_and_sum(coef, intercept, weigh)[1:]
        verb = self._verb("score_weighted_sum", coef, intercept)
        return self.reduce_chunks(verb, self._belonging((weigh,), ()), add_pairs)

    def scatter(self, known: Any) -> ChunkState:
        return [known.at(rows) for rows in self._slices_of_chunks()]

    def keep(
        self,
        function: Callable[..., Any],
        *common: Any,
        known: Sequence[Any] = (),
        kept: Sequence[ChunkState] = (),
    ) -> ChunkState:
        return self.keep_chunks(self._verb(function, *common), self._belonging(known, kept))

    def fold(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        *common: Any,
        known: Sequence[Any] = (),
        kept: Sequence[ChunkState] = (),
    ) -> Any:
        verb = self._verb(function, *common)
        return self.reduce_chunks(verb, self._belonging(known, kept), combine)

    @property
    def chunk_starts(self) -> list[int]:
        return [int(edge) for edge in self.edges[:-1]]

    def map_state(
        self,
        function: Callable[..., Any],
        kept: Sequence[ChunkState],
        *common: Any,
        known: Sequence[Any] = (),
    ) -> list[Any]:
        asked = zip(*kept, self._belonging(known, ()), strict=True)
        arguments = [(*objects, *common, *own) for *objects, own in asked]
        return self.map_kept(function, range(self.n_chunks), arguments)

    def reduce_state(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        kept: Sequence[ChunkState],
        *common: Any,
    ) -> Any:
        arguments = [(*objects, *common) for objects in zip(*kept, strict=True)]
        return self.reduce_kept(function, arguments, combine)

    def pick(
        self, function: Callable[..., AnyArray], kept: ChunkState, indices: Indices
    ) -> AnyArray:
        bounds = np.searchsorted(indices, self.edges)
        chosen = np.flatnonzero(np.diff(bounds)).tolist() or [0]
        arguments = [(kept[k], indices[bounds[k] : bounds[k + 1]] - self.edges[k]) for k in chosen]
        return np.concatenate(self.map_kept(function, chosen, arguments), axis=-1)

    def keep_only(self, function: Callable[[Any], Any], kept: ChunkState) -> ChunkState:
        return [pack(function(unpack(one))) for one in kept]

    # Backends that keep things elsewhere than in this process have other ways to ask for them.

    def keep_chunks(self, verb: Verb, arguments: Sequence[tuple[Any, ...]]) -> ChunkState:
        """Apply a verb to all chunks, and keep the results."""
        return [pack(one) for one in self._map(verb, arguments)]  # soft labels: a bit each

    def map_kept(
        self,
        function: Callable[..., Any],
        chosen: Sequence[int],  # noqa: ARG002
        arguments: Sequence[tuple[Any, ...]],
    ) -> list[Any]:
        """Call a function for some chunks, with what is kept of them among its arguments."""
        return [function(*map(unpack, own)) for own in arguments]

    def reduce_kept(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        combine: Callable[[Any, Any], Any],
    ) -> Any:
        """Do so for all chunks, and combine the results in their order."""
        return reduce(combine, self.map_kept(function, range(self.n_chunks), arguments))

    def weighted_sum(self, weights: Vector) -> Vector:
        return self.reduce_chunks(self._verb("weighted_sum"), self._cut(weights), operator.add)

    def squares(self, weights: Vector | None = None) -> Vector:
        return self.reduce_chunks(self._verb("squares"), self._cut(weights), operator.add)

    def ranges(self, columns: Indices, weights: Vector | None) -> tuple[Vector, Vector]:
        known = self._known
        if known is not None and known.weights is weights:
            low, high = known.ranges[0][columns], known.ranges[1][columns]
            if not np.isnan(low).any():
                return low, high
        return self.reduce_chunks(self._verb("ranges", columns), self._cut(weights), widened)

    def spread_along(
        self, directions: Matrix, centre: Vector, weights: Vector | None
    ) -> tuple[Matrix, Matrix]:
        verb = self._verb("spread_along", directions, centre)
        return self.reduce_chunks(verb, self._cut(weights), add_pairs)

    def triangle(self, standard: Standard, weights: Vector | None, targets: Matrix) -> Matrix:
        verb = self._verb("triangle", standard)
        return self.reduce_chunks(verb, self._cut(weights, targets), stacked)

    def take(self, indices: Indices) -> Matrix:
        taken = np.empty((len(indices), self.n_columns))
        order = np.argsort(indices, kind="stable")
        for positions, rows in self._taken(indices[order]):
            taken[order[positions]] = rows
        return taken

    def map_taken(
        self, indices: Indices, pieces: Sequence[slice], function: Callable[[slice, Matrix], Result]
    ) -> Iterable[Result]:
        # The pieces are those of the chunks, each of which is read once.
        if (indices[1:] < indices[:-1]).any():
            return super().map_taken(indices, pieces, function)
        return (function(piece, rows) for piece, rows in self._taken(indices))

    def some(self, indices: Indices) -> Rows:
        return some_dense(self, indices)

    def shifted(self, shift: Vector) -> Self:
        rows = copy.copy(self)
        rows.shift = shift
        return rows

    def block(self, start: int, stop: int) -> Matrix:
        # Reads whole chunks: the verbs above are to be preferred.
        return self.take(np.arange(start, stop))

    def column(self, index: int) -> AnyArray:
        unshifted = replace(self._verb("column", index), shift=None)
        return np.concatenate(list(self._map(unshifted, self._cut())))

    def first_not_finite(self) -> tuple[int, int, float] | None:
        found = self._map(Verb("first_not_finite"), self._cut())
        for rows, first in zip(self._slices_of_chunks(), found, strict=True):
            if first is not None:
                return rows.start + first[0], first[1], first[2]
        return None

    def _verb(self, action: str | Callable[..., Any], *common: Any) -> Verb:
        return Verb(action, common, self.shift, self._features)

    def _belonging(self, known: Sequence[Any], kept: Sequence[ChunkState]) -> list[tuple[Any, ...]]:
        """Return what belongs to each chunk of things with a method `at`, and of kept ones."""
        return [
            (*(one.at(rows) for one in known), *(one[k] for one in kept))
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


@dataclass(frozen=True)
class _Known:
    """What a reading of all rows has added up already."""

    weights: Vector | None
    shift: Vector | None
    gram: Matrix
    total: Vector
    ranges: tuple[Vector, Vector]  # NaN for columns that vary in some chunk


@np.errstate(over="ignore", invalid="ignore")  # an overflow shows in the result
def _gram_and_rows(rows: Rows, weights: Vector | None, indices: Indices) -> tuple[Any, ...]:
    gram, total = rows.gram(weights)
    raw, number = np.diag(gram), rows.n_rows if weights is None else weights.sum()
    # Of columns that seem to be constant, ranges will be asked for.
    constant = np.flatnonzero(~(number * raw - total**2 > SURE * number * raw))
    low, high = np.full((2, rows.n_columns), np.nan)
    low[constant], high[constant] = rows.ranges(constant, weights)
    return gram, total, (low, high), [rows.take(indices)]
