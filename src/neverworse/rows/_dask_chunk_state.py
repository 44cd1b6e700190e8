"""What passes leave of Dask chunks, kept by the workers that hold them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from neverworse.rows._chunk_state import ChunkState
from neverworse.rows._dask_engine import Engine, Home, task_of
from neverworse.rows._packed import pack, unpack


@dataclass(frozen=True)
class Parcel:
    """Something that is packed, and stays so between tasks."""

    content: Any

    def __call__(self) -> Parcel:
        """Return the parcel: a task that puts it where it is needed."""
        return self


def opened(value: Any) -> Any:
    """Return what is in a parcel, or the value if it is none."""
    return unpack(value.content) if isinstance(value, Parcel) else value


class DaskChunkState(ChunkState):
    """Objects in the memory of workers.

    Workers that die are no loss: the scheduler knows how to make objects again.

    Parameters
    ----------
    engine : Engine
    tasks : sequence of tasks
        What makes each object.
    homes : sequence of tuple
        The workers that hold each chunk, as far as they are known.
    """

    def __init__(self, engine: Engine, tasks: Sequence[Any], homes: Sequence[Home]) -> None:
        self._engine = engine
        self._homes = homes
        self.objects = engine.persist(tasks)

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
        tasks = [
            self._ask(_Question(function, (*common, *mine), packs=True), also, k)
            for k, mine in zip(numbers, arguments, strict=True)
        ]
        return [unpack(found) for found in self._engine.run(tasks)]

    def reduce(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        *common: Any,
        also: Sequence[ChunkState] = (),
    ) -> Any:
        """See `ChunkState.reduce`; where the objects are, in a tree."""
        question = _Question(function, common)
        tasks = [self._ask(question, also, k) for k in range(len(self.objects))]
        return self._engine.run_tree(tasks, combine, question.name)

    def keep_only(self, function: Callable[[Any], Any]) -> ChunkState:  # noqa: ARG002
        """See `ChunkState.keep_only`; nothing is in the way here."""
        return self

    def _ask(self, question: _Question, also: Sequence[ChunkState], number: int) -> Any:
        inputs = [self.objects[number], *tasks_of(also, number)]
        return task_of(question, question.name, *inputs, home=self._homes[number])


def tasks_of(kept: Sequence[ChunkState], number: int) -> list[Any]:
    """Return the tasks that have made what is kept of a chunk."""
    found = []
    for one in kept:
        assert isinstance(one, DaskChunkState)
        found.append(one.objects[number])
    return found


@dataclass(frozen=True)
class _Question:
    """What a worker is asked about what it keeps."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    packs: bool = False

    @property
    def name(self) -> str:
        return f"neverworse-{self.function.__name__.strip('_')}"

    def __call__(self, *kept: Any) -> Any:
        found = self.function(*map(opened, kept), *self.arguments)
        return pack(found) if self.packs else found
