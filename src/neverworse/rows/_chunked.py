"""Rows that come in chunks: from files, from a cluster, or any other source.

A backend applies verbs to its chunks; `ChunkedRows` builds all methods of `Rows` from that.
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

from neverworse._typing import Indices, Matrix, Scalars, Vector
from neverworse.rows._base import DenseRows, Rows
from neverworse.rows._blocks import RowWeigh, Standard, Weigh, add_pairs, at_rows, reduce_rows
from neverworse.rows._features import FeatureMap, FeatureRows
from neverworse.rows._packed import pack, unpack

Result = TypeVar("Result")

VARIES = 1e-8  # a column varies if at least this share of its sum of squares is about the mean
KEPT_BYTES = 2**28  # largest array of features that are computed once, and kept
TAKEN_BYTES = 2**26  # largest copy of rows, which may be too many for memory

ChunkState = list[Any]  # an object for each chunk, perhaps packed, or a task that returns it
Arguments = Sequence[tuple[Any, ...]]  # of each chunk
Combine = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Verb:
    """What to do with every chunk; small, because it is sent to where the chunks are."""

    # Name of a method of `Rows`, or a function of rows (defined at the top of a module)
    action: str | Callable[..., Any]
    common: tuple[Any, ...] = ()  # its first arguments
    shift: Vector | None = None  # of the rows
    features: FeatureMap | None = None  # of the chunk, if these are the rows
    packs: bool = False  # the result, because it is kept or sent

    @property
    def name(self) -> str:
        """The name of the action."""
        if isinstance(self.action, str):
            return self.action
        return str(getattr(self.action, "__name__", type(self.action).__name__)).strip("_")

    def __call__(self, chunk: Rows, *own: Any) -> Any:
        """Apply the verb to a chunk; its last arguments may be packed."""
        rows = chunk if self.features is None else FeatureRows(chunk, self.features)
        rows = rows if self.shift is None else rows.shifted(self.shift)
        function = self.action if callable(self.action) else getattr(type(rows), self.action)
        found = function(rows, *self.common, *map(unpack, own))
        return pack(found) if self.packs else found


class ChunkedRows(Rows):
    """Rows in chunks, each of which fits into memory, while all of them may not.

    A backend is a subclass with one method, `map_chunks`. Sums are added up in the order of the
    chunks, whichever is ready first.

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

    random_access = False

    def __init__(
        self, sizes: Sequence[int], n_columns: int, column_names: list[str] | None = None
    ) -> None:
        self.edges = np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)])
        self.column_names = column_names
        self._stored_columns = n_columns
        self._set_columns(n_columns, None)

    def _set_columns(self, n_columns: int, features: FeatureMap | None) -> None:
        Rows.__init__(self, int(self.edges[-1]), n_columns)
        self.most_taken = TAKEN_BYTES // (8 * max(n_columns, 1))
        self._features = features
        self._known: _KnownGram | None = None

    def with_features(self, features: FeatureMap) -> Self:
        """Return features of these rows, computed from every chunk as it is read."""
        rows = copy.copy(self)
        rows._set_columns(features.n_features, features)
        return rows

    def shifted(self, shift: Vector | None) -> Self:
        rows = copy.copy(self)
        rows.shift = shift
        return rows

    @property
    def n_chunks(self) -> int:
        """The number of chunks."""
        return len(self.edges) - 1

    @property
    def chunk_starts(self) -> list[int]:
        return [int(edge) for edge in self.edges[:-1]]

    def where(self, row: int) -> str:
        """Return where a row is, for messages."""
        return f"row {row}"

    # What a backend defines, or may do in its own way

    @abstractmethod
    def map_chunks(self, verb: Verb, chosen: Sequence[int], arguments: Arguments) -> Iterable[Any]:
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

    def reduce_chunks(self, verb: Verb, arguments: Arguments, combine: Combine) -> Any:
        """Apply a verb to all chunks, and combine the results in their order."""
        return reduce(combine, self._map(verb, arguments))

    def keep_chunks(self, verb: Verb, arguments: Arguments) -> tuple[list[Any], ChunkState]:
        """Apply a verb that returns pairs: return the first of each, and keep the second."""
        pairs = self._map(replace(verb, packs=True), arguments)  # soft labels take a bit each
        found, kept = zip(*pairs, strict=True)
        return [*map(unpack, found)], list(kept)

    def map_kept(self, function: Callable[..., Any], arguments: Arguments) -> Iterable[Any]:
        """Call a function for all chunks, with their state among its arguments."""
        return (function(*map(unpack, own)) for own in arguments)

    # State

    def scatter(self, known: Any) -> ChunkState:
        return [own for (own,) in self._cut(known)]

    def keep(
        self, function: Callable[..., Any], *common: Any, **of_chunks: Any
    ) -> tuple[list[Any], ChunkState]:
        return self.keep_chunks(self._verb(function, *common), self._parts_of(**of_chunks))

    def fold(
        self, function: Callable[..., Any], combine: Combine, *common: Any, **of_chunks: Any
    ) -> Any:
        verb = self._verb(function, *common)
        return self.reduce_chunks(verb, self._parts_of(**of_chunks), combine)

    def map_state(
        self, function: Callable[..., Any], kept: Sequence[Any], *common: Any, known: Any = ()
    ) -> Iterable[Any]:
        parts = zip(self._parts_of(kept=kept), self._cut(*known), strict=True)
        return self.map_kept(function, [(*state, *common, *own) for state, own in parts])

    # Sums

    def with_gram(self, weights: Vector | None, indices: Indices) -> tuple[Self, Matrix]:
        own = zip(self._cut(weights), self._split(indices), strict=True)
        arguments = [(*weights_here, rows_here) for weights_here, (_, rows_here) in own]
        gram, total, ranges, taken = self.reduce_chunks(
            self._verb(_gram_and_rows), arguments, _joined
        )
        rows = copy.copy(self)
        rows._known = _KnownGram(weights, self.shift, gram, total, ranges)
        return rows, np.concatenate(taken)

    def gram(self, weights: Vector | None = None) -> tuple[Matrix, Vector]:
        known = self._known
        if known is not None and known.weights is weights and known.shift is self.shift:
            return known.gram.copy(), known.total.copy()
        return self._reduce(add_pairs, "gram", (), weights)

    def scores(self, coef: Vector, intercept: Scalars = 0.0) -> Vector:
        verb = self._verb("scores", coef, intercept)
        scores = np.empty((*coef.shape[:-1], self.n_rows))
        for rows, found in zip(self._slices_of_chunks(), self._map(verb, self._cut()), strict=True):
            scores[..., rows] = found
        return scores

    def scores_and_sum(
        self, coef: Vector, intercept: Scalars, weigh: Weigh
    ) -> tuple[Vector, Vector, Vector]:
        # One pass for a `RowWeigh`, otherwise two.
        if not isinstance(weigh, RowWeigh):
            scores = self.scores(coef, intercept)
            x = weigh(scores, slice(0, self.n_rows))
            return scores, self.weighted_sum(x), x.sum(axis=-1)
        found = self._map(self._verb("scores_and_sum", coef, intercept), self._cut(weigh))
        t, summed, total = zip(*found, strict=True)
        return np.concatenate(t, axis=-1), sum(summed), sum(total)

    def score_weighted_sum(
        self, coef: Vector, intercept: Scalars, weigh: RowWeigh
    ) -> tuple[Vector, Vector]:
        return self._reduce(add_pairs, "score_weighted_sum", (coef, intercept), weigh)

    def weighted_sum(self, weights: Vector) -> Vector:
        return self._reduce(operator.add, "weighted_sum", (), weights)

    def squares(self, weights: Vector | None = None) -> Vector:
        return self._reduce(operator.add, "squares", (), weights)

    def ranges(self, columns: Indices, weights: Vector | None) -> tuple[Vector, Vector]:
        known = self._known
        if known is not None and known.weights is weights:
            low, high = known.ranges[0][columns], known.ranges[1][columns]
            if not np.isnan(low).any():
                return low, high
        return self._reduce(_widened, "ranges", (columns,), weights)

    def spread_along(
        self, directions: Matrix, centre: Vector, weights: Vector | None
    ) -> tuple[Matrix, Matrix]:
        return self._reduce(add_pairs, "spread_along", (directions, centre), weights)

    def triangle(self, standard: Standard, weights: Vector | None, targets: Matrix) -> Matrix:
        return self._reduce(_stacked, "triangle", (standard,), weights, targets)

    def first_not_finite(self) -> tuple[int, int, float] | None:
        found = self._map(Verb("first_not_finite"), self._cut())
        for start, first in zip(self.chunk_starts, found, strict=True):
            if first is not None:
                return start + first[0], first[1], first[2]
        return None

    # Some rows

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

    def block(self, start: int, stop: int) -> Matrix:
        return self.take(np.arange(start, stop))

    def _taken(self, indices: Indices) -> Iterator[tuple[slice, Matrix]]:
        """Take rows with increasing indices, chunk by chunk."""
        split = [(k, *own) for k, own in enumerate(self._split(indices)) if own[1].size]
        if split:
            chosen, pieces, local = zip(*split, strict=True)
            found = self.map_chunks(self._verb("take"), chosen, [(own,) for own in local])
            yield from zip(pieces, found, strict=True)

    def _split(self, indices: Indices) -> list[tuple[slice, Indices]]:
        """Return which of some increasing indices lie in each chunk, and their rows there."""
        bounds = np.searchsorted(indices, self.edges).tolist()
        parts = zip(pairwise(bounds), self.edges[:-1], strict=True)
        return [(slice(lo, hi), indices[lo:hi] - start) for (lo, hi), start in parts]

    def _verb(self, action: str | Callable[..., Any], *common: Any) -> Verb:
        return Verb(action, common, self.shift, self._features)

    def _map(self, verb: Verb, arguments: Arguments) -> Iterable[Any]:
        return self.map_chunks(verb, range(self.n_chunks), arguments)

    def _reduce(self, combine: Combine, name: str, common: tuple[Any, ...], *known: Any) -> Any:
        return self.reduce_chunks(self._verb(name, *common), self._cut(*known), combine)

    def _cut(self, *known: Any) -> Arguments:
        """Return the part of each chunk in data of all rows, see `RowWeigh`."""
        slices = self._slices_of_chunks()
        return [tuple(at_rows(one, rows) for one in known) for rows in slices]

    def _parts_of(self, known: Sequence[Any] = (), kept: Sequence[ChunkState] = ()) -> Arguments:
        """Return the part of each chunk in data of all rows, and its states."""
        return [(*own, *(one[k] for one in kept)) for k, own in enumerate(self._cut(*known))]

    def _slices_of_chunks(self) -> list[slice]:
        return [slice(int(lo), int(hi)) for lo, hi in pairwise(self.edges)]


def with_features(rows: Rows, features: FeatureMap, keep: bool = False) -> Rows:
    """Return features of rows without shift as rows.

    With `keep`, features of rows in memory are computed once, if they are small.
    """
    if isinstance(rows, ChunkedRows):
        return rows.with_features(features)
    lazy = FeatureRows(rows, features)
    if not keep or 8 * lazy.n_rows * lazy.n_columns > KEPT_BYTES:
        return lazy
    values = np.empty((lazy.n_rows, lazy.n_columns))
    step = max(lazy.block_rows, 1024)
    for lo in range(0, lazy.n_rows, step):
        values[lo : lo + step] = lazy.block(lo, min(lo + step, lazy.n_rows))
    return DenseRows(values)


@dataclass(frozen=True)
class _KnownGram:
    """The Gram matrix of rows with some weights, which a pass has added up already."""

    weights: Vector | None
    shift: Vector | None
    gram: Matrix
    total: Vector
    ranges: tuple[Vector, Vector]  # NaN for columns that vary in some chunk


@np.errstate(over="ignore", invalid="ignore")  # an overflow shows in the result
def _gram_and_rows(rows: Rows, weights: Vector | None, indices: Indices) -> tuple[Any, ...]:
    gram, total = rows.gram(weights)
    raw, number = np.diag(gram), rows.n_rows if weights is None else weights.sum()
    # Ranges will be needed of columns that seem to be constant.
    constant = np.flatnonzero(~(number * raw - total**2 > VARIES * number * raw))
    low, high = np.full((2, rows.n_columns), np.nan)
    if constant.size:
        low[constant], high[constant] = rows.ranges(constant, weights)
    return gram, total, (low, high), [rows.take(indices)]


def _joined(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Combine the results of `_gram_and_rows`."""
    return a[0] + b[0], a[1] + b[1], _widened(a[2], b[2]), a[3] + b[3]


def _widened(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the range that contains two ranges."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def _stacked(a: Matrix, b: Matrix) -> Matrix:
    return reduce_rows([a, b])
