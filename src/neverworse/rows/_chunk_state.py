"""What passes make of rows, kept where the rows are until the next pass needs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from neverworse.rows._packed import pack, unpack


class ChunkState(ABC):
    """One object for each chunk of rows, kept where the chunk is.

    What is asked of these objects are small things: sums, counts, values of a few rows.
    """

    @abstractmethod
    def map(
        self,
        function: Callable[..., Any],
        *common: Any,
        also: Sequence[ChunkState] = (),
        chosen: Sequence[int] | None = None,
        own: Sequence[tuple[Any, ...]] | None = None,
    ) -> list[Any]:
        """Return what a function says of the object of every chunk, in the order of chunks.

        Parameters
        ----------
        function : callable
            ``function(object, *objects_of_also, *common, *own)``; can be pickled.
        *common
            Arguments that are the same for all chunks.
        also : sequence of ChunkState
            Of the same rows.
        chosen : sequence of int, optional
            Numbers of the chunks that are asked; all of them if not given.
        own : sequence of tuple, optional
            Arguments of each of these.
        """

    def reduce(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        *common: Any,
        also: Sequence[ChunkState] = (),
    ) -> Any:
        """Do the same, and combine the results in the order of the chunks."""
        return reduce(combine, self.map(function, *common, also=also))

    @abstractmethod
    def keep_only(self, function: Callable[[Any], Any]) -> ChunkState:
        """Keep no more than what a function returns of the objects, if they are in the way here.

        Objects that take no memory of this process are left as they are.
        """


class LocalChunkState(ChunkState):
    """Objects in the memory of this process, perhaps packed."""

    def __init__(self, objects: list[Any]) -> None:
        self.objects = objects

    def map(
        self,
        function: Callable[..., Any],
        *common: Any,
        also: Sequence[ChunkState] = (),
        chosen: Sequence[int] | None = None,
        own: Sequence[tuple[Any, ...]] | None = None,
    ) -> list[Any]:
        """See `ChunkState.map`."""
        numbers = range(len(self.objects)) if chosen is None else chosen
        arguments = [()] * len(numbers) if own is None else own
        return [
            function(unpack(self.objects[k]), *objects_of(also, k), *common, *mine)
            for k, mine in zip(numbers, arguments, strict=True)
        ]

    def keep_only(self, function: Callable[[Any], Any]) -> ChunkState:
        """See `ChunkState.keep_only`."""
        return LocalChunkState([pack(function(unpack(one))) for one in self.objects])


def objects_of(kept: Sequence[ChunkState], number: int) -> list[Any]:
    """Return the objects that are kept for a chunk in this process."""
    found = []
    for one in kept:
        assert isinstance(one, LocalChunkState)
        found.append(unpack(one.objects[number]))
    return found


def add_pairs(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Add two pairs, to reduce sums of chunks."""
    return a[0] + b[0], a[1] + b[1]
