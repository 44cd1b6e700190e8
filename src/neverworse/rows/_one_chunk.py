"""Verbs that keep something of rows between passes, for rows that are one chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neverworse.rows._chunk_state import ChunkState, LocalChunkState, objects_of


class OneChunk:
    """Rows in memory are one chunk, and what is kept of it is in memory as well."""

    n_rows: int

    def scatter(self, known: Any) -> ChunkState:
        """Put what is known about all rows where they are.

        Parameters
        ----------
        known : object
            Its method ``at(rows)`` returns the same for the rows in a slice.
        """
        return LocalChunkState(np.array([0, self.n_rows]), [known.at(slice(0, self.n_rows))])

    def keep(
        self,
        function: Callable[..., Any],
        *common: Any,
        known: Sequence[Any] = (),
        kept: Sequence[ChunkState] = (),
    ) -> ChunkState:
        """Make something of every chunk of the rows, in one pass, and keep it there.

        Rows in memory are one chunk.

        Parameters
        ----------
        function : callable
            ``function(rows, *common, *known, *kept)`` for the rows of a chunk; can be pickled.
        *common
            Arguments that are the same for all chunks.
        known : sequence of objects
            Of which every chunk gets its part, see `scatter`.
        kept : sequence of ChunkState
            Of which every chunk gets its object.
        """
        edges = np.array([0, self.n_rows])
        own = [one.at(slice(0, self.n_rows)) for one in known]
        return LocalChunkState(edges, [function(self, *common, *own, *objects_of(kept, 0))])

    def fold(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],  # noqa: ARG002
        *common: Any,
        known: Sequence[Any] = (),
        kept: Sequence[ChunkState] = (),
    ) -> Any:
        """Do the same, but combine what is made, in the order of the chunks, and return it."""
        own = [one.at(slice(0, self.n_rows)) for one in known]
        return function(self, *common, *own, *objects_of(kept, 0))
