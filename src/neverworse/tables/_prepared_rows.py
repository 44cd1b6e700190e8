"""Rows of features that are made anew of a stored table in every pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from neverworse._typing import Matrix
from neverworse.rows import ChunkedRows, DenseRows, Verb, read_ahead
from neverworse.tables._preparation import TablePreparation
from neverworse.tables._stored import StoredTable


class PreparedRows(ChunkedRows):
    """Features of a table that is larger than memory.

    Parameters
    ----------
    table : StoredTable
    preparation : TablePreparation
        Fitted to it.
    """

    def __init__(self, table: StoredTable, preparation: TablePreparation) -> None:
        # Without names: the classifier will see the features of other rows as an array.
        super().__init__(table.sizes(), len(preparation.feature_columns_))
        self._table = table.select(preparation.used_names)
        self._preparation = preparation

    def map_chunks(
        self, verb: Verb, chosen: Sequence[int], arguments: Sequence[tuple[Any, ...]]
    ) -> Iterable[Any]:
        """See `ChunkedRows.map_chunks`; the next batch is prepared while one is worked on."""
        for features, own in zip(read_ahead(self._features(chosen)), arguments, strict=True):
            yield verb(DenseRows(features), *own)

    def _features(self, chosen: Sequence[int]) -> Iterator[Matrix]:
        for batch in self._table.batches(chosen):
            yield self._preparation.transform(batch)
