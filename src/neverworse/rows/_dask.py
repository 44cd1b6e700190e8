"""Rows of Dask arrays and data frames: every chunk is worked on where it lies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from scipy import sparse

from neverworse._typing import AnyArray
from neverworse.rows._chunked import ChunkedRows, ChunkState, Verb
from neverworse.rows._dask_engine import Engine
from neverworse.rows._memory import DenseRows, SparseRows
from neverworse.rows._packed import pack, sparsely, unpack


class DaskRows(ChunkedRows):
    """Rows of a Dask array (with dense or sparse chunks) or of a Dask data frame.

    A pass is one task for each chunk. Sums are combined on the workers, in a fixed order.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
    """

    random_access = True

    def __init__(self, X: Any) -> None:
        _check_table(X)
        self._engine = Engine()
        self._X = X  # what is persisted stays so as long as somebody holds it
        self._dtype = None if isinstance(X, da.Array) else _frame_type(X)
        if isinstance(X, da.Array):
            X = _one_column_chunk(X)
            self._chunks = list(X.to_delayed(optimize_graph=True).ravel())
            sizes, names, n_columns = X.chunks[0], None, X.shape[1]
        else:
            self._chunks = X.to_delayed()
            sizes, names, n_columns = (math.nan,) * len(self._chunks), _names(X), X.shape[1]
        if any(math.isnan(n) for n in (*sizes, n_columns)):
            tasks = [self._engine.task(_shape, "neverworse-shape", chunk) for chunk in self._chunks]
            shapes = self._engine.run(tasks)
            sizes, n_columns = [shape[0] for shape in shapes], shapes[0][1]
        super().__init__(sizes, n_columns, names)
        # Where chunks are persisted, Dask might still move small ones to workers that are idle.
        self._homes = self._engine.homes(X, self._chunks)

    def map_chunks(
        self, verb: Verb, chosen: Sequence[int], arguments: Sequence[tuple[Any, ...]]
    ) -> Iterable[Any]:
        return map(unpack, self._engine.run(self._tasks(verb, chosen, arguments, packs=True)))

    def reduce_chunks(
        self, verb: Verb, arguments: Sequence[tuple[Any, ...]], combine: Callable[[Any, Any], Any]
    ) -> Any:
        # In a tree, so that no worker has to hold all results.
        tasks = self._tasks(verb, range(self.n_chunks), arguments)
        return self._engine.run_tree(tasks, combine, f"neverworse-{verb.name}")

    # What is kept are tasks whose results workers hold. Workers that die are no loss: the scheduler
    # knows how to make these again.

    def scatter(self, known: Any) -> ChunkState:
        parts = [(known.at(rows),) for rows in self._slices_of_chunks()]
        tasks = [self._task(_itself, own, "scatter", k, packs=True) for k, own in enumerate(parts)]
        return self._engine.persist(tasks)

    def keep_chunks(self, verb: Verb, arguments: Sequence[tuple[Any, ...]]) -> ChunkState:
        return self._engine.persist(self._tasks(verb, range(self.n_chunks), arguments, packs=True))

    def keep_only(self, function: Callable[[Any], Any], kept: ChunkState) -> ChunkState:  # noqa: ARG002
        return kept  # which takes no memory of this process

    def map_kept(
        self,
        function: Callable[..., Any],
        chosen: Sequence[int],
        arguments: Sequence[tuple[Any, ...]],
    ) -> list[Any]:
        name = function.__name__.strip("_")
        tasks = [
            self._task(function, own, name, k, packs=True)
            for k, own in zip(chosen, arguments, strict=True)
        ]
        return [unpack(found) for found in self._engine.run(tasks)]

    def reduce_kept(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        combine: Callable[[Any, Any], Any],
    ) -> Any:
        name = function.__name__.strip("_")
        tasks = [self._task(function, own, name, k) for k, own in enumerate(arguments)]
        return self._engine.run_tree(tasks, combine, f"neverworse-{name}")

    def where(self, row: int) -> str:
        k = int(np.searchsorted(self.edges, row, side="right")) - 1
        return f"row {row} (row {row - self.edges[k]} of chunk {k})"

    def _tasks(
        self,
        verb: Verb,
        chosen: Sequence[int],
        arguments: Sequence[tuple[Any, ...]],
        *,
        packs: bool = False,
    ) -> list[Any]:
        sizes = np.diff(self.edges)
        return [
            self._task(
                _Work(verb, k, int(sizes[k]), self._stored_columns, self._dtype),
                (self._chunks[k], *own),
                verb.name,
                k,
                packs=packs,
            )
            for k, own in zip(chosen, arguments, strict=True)
        ]

    def _task(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        name: str,
        number: int,
        *,
        packs: bool = False,
    ) -> Any:
        """Return a task for a chunk; among the arguments may be others, for their results."""
        inputs = [one for one in arguments if isinstance(one, Delayed)]
        known = tuple(... if isinstance(one, Delayed) else pack(one) for one in arguments)
        call = _Call(function, known, packs)
        return self._engine.task(call, f"neverworse-{name}", *inputs, home=self._homes[number])


@dataclass(frozen=True)
class _Call:
    """What a worker does; everything that belongs to it travels along, packed."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]  # ... stands for the result of another task
    packs: bool  # the result, because it is sent or kept

    def __call__(self, *inputs: Any) -> Any:
        results = iter(inputs)
        arguments = [next(results) if one is ... else one for one in self.arguments]
        found = self.function(*map(unpack, arguments))
        return pack(found) if self.packs else found


@dataclass(frozen=True)
class _Work:
    """A verb for one chunk, which must be what it was."""

    verb: Verb
    number: int
    n_rows: int
    n_columns: int
    dtype: Any

    def __call__(self, chunk: Any, *own: Any) -> Any:
        rows = _rows(chunk, self.dtype)
        name = f"Chunk {self.number} of X"
        if rows.n_columns != self.n_columns:
            raise ValueError(
                f"{name} has {rows.n_columns} columns, but {self.n_columns} are expected. All "
                "chunks need the same columns."
            )
        if rows.n_rows != self.n_rows:
            raise ValueError(
                f"{name} has {rows.n_rows} rows, but {self.n_rows} are expected. The data must "
                "stay as they are while a model is fitted, and must be read in the same order "
                "every time."
            )
        return self.verb(rows, *own)


def _itself(known: Any) -> Any:
    return known


def _rows(chunk: Any, dtype: Any) -> DenseRows | SparseRows:
    """Return the rows of a chunk, whatever it is made of."""
    if sparse.issparse(chunk):
        return SparseRows(chunk)
    if hasattr(chunk, "tocsr"):  # other sparse arrays
        return SparseRows(chunk.tocsr())
    if hasattr(chunk, "to_numpy"):
        return DenseRows(chunk.to_numpy(dtype=dtype, na_value=np.nan))
    array = np.asarray(chunk)
    return DenseRows(array if array.dtype.kind == "f" else array.astype(np.float64))


def _shape(chunk: Any) -> tuple[int, int]:
    return int(chunk.shape[0]), int(chunk.shape[1])


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


def _frame_type(X: Any) -> np.dtype[Any]:
    """Return the smallest of float32 and float64 that holds all columns of a data frame."""
    kinds = []
    for name, dtype in X.dtypes.items():
        kind = getattr(dtype, "numpy_dtype", dtype)
        if not isinstance(kind, np.dtype) or kind.kind not in "fiub":
            raise ValueError(
                f"Column {name!r} of X is {dtype}, but features are numbers. Encode it, or leave "
                "it out."
            )
        kinds.append(kind)
    return np.result_type(np.float32, *kinds)


def _names(X: Any) -> list[str] | None:
    names = list(X.columns)
    return names if all(isinstance(name, str) for name in names) else None


def gather(values: Any) -> Any:
    """Return labels or weights that are a Dask collection as an array or series in memory.

    Of numbers that are mostly the same, such as labels of which most are missing, only the others
    travel.
    """
    engine = Engine()
    dtype = getattr(values, "dtype", None)
    if not (isinstance(dtype, np.dtype) and dtype.kind in "iufb" and values.ndim == 1):
        return engine.run([values])[0]
    tasks = [
        engine.task(_sparse_numbers, "neverworse-gather", chunk)
        for chunk in np.ravel(values.to_delayed()).tolist()
    ]
    return np.concatenate([unpack(found) for found in engine.run(tasks)])


def _sparse_numbers(chunk: Any) -> Any:
    return sparsely(np.asarray(chunk))


def map_rows(X: Any, function: Callable[[Any], AnyArray], like: AnyArray, name: str) -> da.Array:
    """Apply a function to the chunks of X when they are computed, not before.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
    function : callable
        From rows to one number or one row of numbers for each.
    like : array
        What the function returns for some rows.
    name : str
        What dashboards show.
    """
    _check_table(X)
    X = _one_column_chunk(X if isinstance(X, da.Array) else X.to_dask_array())
    settings = {"dtype": like.dtype, "meta": like[:0], "token": name}
    if like.ndim == 1:
        return X.map_blocks(function, drop_axis=1, **settings)
    return X.map_blocks(function, chunks=(X.chunks[0], (like.shape[1],)), **settings)
