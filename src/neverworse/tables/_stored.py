"""A table that stays in its Parquet files: columns and batches of rows are read when needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from neverworse.rows import File
from neverworse.tables._errors import TableError
from neverworse.tables._values import is_text, with_nulls


@dataclass(frozen=True)
class StoredTable:
    """Rows of Parquet files with the same columns, as much of a PyArrow table as is needed.

    Attributes
    ----------
    files : tuple of File
    column_names : list of str
        Of all columns that are in use.
    missing : tuple of str
        Words that mean a missing value.
    batch_rows : int
        How many rows are read at once.
    """

    files: tuple[File, ...]
    column_names: list[str]
    missing: tuple[str, ...] = ("",)
    batch_rows: int = 1 << 14

    @classmethod
    def open(cls, paths: Sequence[str], missing: Sequence[str] = ()) -> StoredTable:
        """Look at files, which must have the same columns and types.

        Parameters
        ----------
        paths : sequence of str
        missing : sequence of str
            Words that mean a missing value, besides an empty one.
        """
        try:
            files = tuple(File.look_at(path) for path in paths)
        except ValueError as error:
            raise TableError(str(error)) from None
        first = files[0]
        for file in files[1:]:
            if not file.schema.remove_metadata().equals(first.schema.remove_metadata()):
                raise TableError(
                    f"{file.path} has other columns, or other types, than {first.path}. Tables "
                    "that are larger than memory need the same in all files."
                )
        return cls(files, list(first.schema.names), ("", *missing))

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return sum(file.n_rows for file in self.files)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return pa.schema([self.files[0].schema.field(name) for name in self.column_names])

    def select(self, names: Sequence[str]) -> StoredTable:
        """Return the table with some of its columns."""
        return replace(self, column_names=list(names))

    def column(self, name: str) -> pa.ChunkedArray:
        """Read one column; repeated text is kept once."""
        kind = self.schema.field(name).type
        encoded = [name] if is_text(kind) and not pa.types.is_dictionary(kind) else None
        parts = []
        for file in self.files:
            with file.open(read_dictionary=encoded) as opened:
                parts += opened.read(columns=[name]).column(0).chunks
        column = pa.chunked_array(parts, type=parts[0].type if parts else kind)
        return with_nulls(pa.table({name: column}), self.missing).column(0)

    def sizes(self) -> list[int]:
        """Return the numbers of rows of all batches: none spans two row groups."""
        return [
            min(self.batch_rows, rows - start)
            for file in self.files
            for rows in file.group_rows
            for start in range(0, rows, self.batch_rows)
        ]

    def batches(self, chosen: Sequence[int] | None = None) -> Iterator[pa.Table]:
        """Read batches of rows, by their numbers in increasing order, or all of them.

        Row groups without any of them are not touched.
        """
        wanted = None if chosen is None else set(chosen)
        number = 0
        for file in self.files:
            groups = []
            for group, rows in enumerate(file.group_rows):
                n_batches = -(-rows // self.batch_rows)
                inside = range(number, number + n_batches)
                if n_batches and (wanted is None or not wanted.isdisjoint(inside)):
                    groups.append((group, number))
                number += n_batches
            if groups:
                yield from self._read(file, groups, wanted)

    def _read(
        self, file: File, groups: list[tuple[int, int]], wanted: set[int] | None
    ) -> Iterator[pa.Table]:
        with file.open() as opened:
            for group, first in groups:
                batches = opened.iter_batches(
                    self.batch_rows, row_groups=[group], columns=self.column_names
                )
                for number, batch in enumerate(batches, first):
                    if wanted is None or number in wanted:
                        yield with_nulls(pa.Table.from_batches([batch]), self.missing)
