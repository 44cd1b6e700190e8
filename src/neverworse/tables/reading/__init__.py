"""Read tables of any format: whole, a batch of rows at a time, or left in files if too large."""

from __future__ import annotations

import contextlib
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather, parquet

from neverworse._words import quoted
from neverworse.rows import File
from neverworse.tables._errors import TableError
from neverworse.tables.reading import formats
from neverworse.tables.reading.files import STDIN, TableFile
from neverworse.tables.reading.formats import DelimitedText, ReadOptions, Types, spells_number

BATCH_ROWS = 1 << 14
MAX_MEMORY_SHARE = 0.5  # of the free memory that a table may take
USUAL_MEMORY = 8e9  # bytes, where it is not known how many are free
# A number takes 8 bytes as it is read, as a feature, and in arrays that come and go.
BYTES_PER_CELL = 24
BYTES_PER_CHARACTER = 4  # of text, of which a cell has some six
GROUP_ROWS = 1 << 18
PIECE_BYTES = 1 << 20  # that are counted at a time


def table_files(paths: Sequence[str]) -> list[TableFile]:
    """Return the files of which a table consists."""
    if len({path if path == STDIN else Path(path).resolve() for path in paths}) < len(paths):
        raise TableError("The same file is given twice.", "Give it once.", code="file")
    return [TableFile(path) for path in paths]


def read_table(files: Sequence[TableFile], options: ReadOptions) -> pa.Table:
    """Read all rows of files with the same columns, whose names are unique; missing is null."""
    tables: list[pa.Table] = []
    for file in files:
        table = _read_file(file, options)
        # Spreadsheets put columns without name and values at the end of tables.
        columns = enumerate(zip(table.column_names, table.columns, strict=True))
        table = table.select([k for k, (n, c) in columns if n.strip() or c.null_count < len(c)])
        check_unique(file.name, table.column_names)
        tables.append(table)
        others = set(tables[0].column_names) ^ set(table.column_names)
        if others:
            problem = f"Only one of {files[0].name} and {file.name} has {quoted(sorted(others))}."
            fix = "All files need the same columns."
            raise TableError(problem, fix, code="column", column=min(others))
    return stacked(tables)


def stacked(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of all tables; types that differ become one that holds all values."""
    if len(tables) == 1:
        return tables[0]

    def joined(name: str) -> pa.ChunkedArray:
        plain = [formats.decoded(table.column(name)) for table in tables]
        # Numbers in one file and text in another: text, in which preparation looks for numbers.
        for as_text in (False, True):
            with contextlib.suppress(pa.ArrowException):
                parts = [pa.table({name: formats.as_strings(c) if as_text else c}) for c in plain]
                return pa.concat_tables(parts, promote_options="permissive").column(0)
        problem = f"Column {name!r} holds values of incompatible types in the files."
        raise TableError(problem, "Make them alike, or remove it.", column=name)

    return pa.table({name: joined(name) for name in tables[0].column_names})


def stream_batches(
    file: TableFile, options: ReadOptions, types: Types, check: Callable[[str, Sequence[str]], None]
) -> Iterator[pa.Table]:
    """Read columns of a file, text as these types, in batches, if `check` accepts all names."""

    def wanted(names: Sequence[str]) -> Types:
        check(file.name, names)
        there = set(names)
        return {name: kind for name, kind in types.items() if name in there}

    batches: Iterable[pa.RecordBatch]
    with file.explained():
        if file.format == "csv":
            text = DelimitedText(file, options)
            batches = text.stream(wanted(text.names))
        elif file.format == "parquet":
            # No read-ahead: a row group may be larger than the memory that is left.
            stored = parquet.ParquetFile(file.plain, pre_buffer=False, buffer_size=1 << 20)
            columns = list(wanted(stored.schema_arrow.names))
            batches = map(formats.valid, stored.iter_batches(BATCH_ROWS, columns=columns))
        else:
            table = _read_file(file, options)
            batches = table.select(list(wanted(table.column_names))).to_batches(BATCH_ROWS)
        for batch in batches:
            yield with_nulls(pa.Table.from_batches([batch]), options.words)


def _read_file(file: TableFile, options: ReadOptions) -> pa.Table:
    with file.explained():
        if file.format == "excel":
            table = formats.read_workbook(file, options)
        elif file.format == "csv":
            table = DelimitedText(file, options).read()
        elif file.format == "json lines":
            table = formats.read_json(file)
        elif file.format == "parquet":
            table = formats.valid(parquet.ParquetFile(file.plain, pre_buffer=True).read())
        else:
            table = formats.valid(feather.read_table(file.plain))
        return with_nulls(table, options.words)


def with_nulls(table: pa.Table, words: Sequence[str]) -> pa.Table:
    """Make words that mean a missing value null, with any spaces, and numbers in any spelling."""
    numbers = [float(word) for word in words if spells_number(word) and float(word) == float(word)]

    def with_nulls_in(values: Any) -> Any:
        kind = values.type
        if formats.is_text(kind) and isinstance(values, pa.DictionaryArray):
            texts, codes = with_nulls_in(values.dictionary), values.indices
            if not texts.null_count:
                return values
            codes = pc.if_else(texts.is_null().take(codes), pa.scalar(None, codes.type), codes)
            return pa.DictionaryArray.from_arrays(codes, values.dictionary, ordered=kind.ordered)
        if formats.is_text(kind):
            found = pc.is_in(pc.utf8_trim_whitespace(values), pa.array(words, kind))
        elif numbers and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            found = pc.is_in(values.cast("f8", safe=False), pa.array(numbers))
        else:
            return values
        return pc.if_else(found, pa.scalar(None, kind), values) if pc.any(found).as_py() else values

    columns = [pa.chunked_array(map(with_nulls_in, c.chunks), c.type) for c in table.columns]
    return pa.table(columns, schema=table.schema)


def check_unique(name: str, columns: Sequence[str]) -> None:
    """Raise if columns of a file have the same name."""
    repeated = [column for column, times in Counter(columns).items() if times > 1]
    if repeated:
        problem = f"{name} has several columns with the same name: {quoted(repeated)}."
        raise TableError(problem, "Rename them.", code="column", column=repeated[0])


# Larger than memory


@dataclass(frozen=True)
class StoredTable:
    """Parquet files with the same columns as a table; columns and batches are read when needed."""

    files: tuple[File, ...]
    column_names: list[str]  # of all columns that are in use
    missing: tuple[str, ...] = ("",)  # words that mean a missing value
    batch_rows: int = 1 << 14  # that are read at once

    @classmethod
    def open(cls, paths: Sequence[str], missing: Sequence[str] = ()) -> StoredTable:
        """Open files, which must have the same columns and types."""
        try:
            files = tuple(File.look_at(path) for path in paths)
        except ValueError as error:
            raise TableError(str(error), code="file") from None
        first = files[0]
        for file in files[1:]:
            if not file.schema.remove_metadata().equals(first.schema.remove_metadata()):
                problem = f"{file.path} has other columns, or other types, than {first.path}."
                fix = "Tables that are larger than memory need the same in all files."
                raise TableError(problem, fix, code="column")
        return cls(files, list(first.schema.names), ("", *missing))

    @property
    def num_rows(self) -> int:
        return sum(file.n_rows for file in self.files)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([self.files[0].schema.field(name) for name in self.column_names])

    def select(self, names: Sequence[str]) -> StoredTable:
        return replace(self, column_names=list(names))

    def column(self, name: str) -> pa.ChunkedArray:
        kind = self.schema.field(name).type
        encoded = [name] if formats.is_text(kind) and not pa.types.is_dictionary(kind) else None
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
        """Read some batches of rows, in increasing order, or all of them."""
        wanted = set(range(len(self.sizes())) if chosen is None else chosen)
        first = 0  # of the row group, among all batches
        for file in self.files:
            with file.open() as opened:
                for group, rows in enumerate(file.group_rows):
                    numbers = range(first, first - (-rows // self.batch_rows))
                    first = numbers.stop
                    if wanted.isdisjoint(numbers):
                        continue
                    batches = opened.iter_batches(self.batch_rows, [group], self.column_names)
                    for number, batch in zip(numbers, batches, strict=True):
                        if number in wanted:
                            yield with_nulls(pa.Table.from_batches([batch]), self.missing)


def is_large(files: Sequence[TableFile], options: ReadOptions, limit: float | None = None) -> bool:
    """Measure whether tables take more than `limit` bytes, or half of the memory that is free."""
    most = MAX_MEMORY_SHARE * _free_memory() if limit is None else limit
    if all(file.format in ("csv", "json lines") for file in files):
        n_bytes = sum(Path(file.plain).stat().st_size for file in files)
        if BYTES_PER_CELL * n_bytes <= most:  # no cell is shorter than a character
            return False
    taken = 0.0
    for file in files:
        with file.explained():
            taken += _bytes_in_memory(file, options, most - taken)
        if taken > most:
            return True
    return False


def store(files: Sequence[TableFile], options: ReadOptions, scratch: Path) -> StoredTable:
    """Return tables as Parquet files: as they are, or copied from CSV to a folder `scratch`."""
    paths = [_stored(file, options, scratch / f"{k}.parquet") for k, file in enumerate(files)]
    return StoredTable.open(paths, options.missing)


def _stored(file: TableFile, options: ReadOptions, copy: Path) -> str:
    if file.format == "parquet":
        return file.plain
    if file.format != "csv":
        fix = "Convert it to Parquet, or allow more: --memory GB."
        raise TableError(f"{file.name} is larger than memory.", fix, code="memory")
    with file.explained():
        text = DelimitedText(file, options)
        types = text.first_types()
        try:
            _copy(text, types, copy)
        except pa.ArrowInvalid:  # later rows are not what the first ones promised
            _copy(text, dict.fromkeys(types, pa.string()), copy)
    return str(copy)


def _copy(text: DelimitedText, types: Types, path: Path) -> None:
    with parquet.ParquetWriter(path, pa.schema(types.items())) as writer:
        for block in text.blocks(types):
            writer.write_batch(block, row_group_size=GROUP_ROWS)


def _bytes_in_memory(file: TableFile, options: ReadOptions, most: float) -> float:
    """Measure how much memory a table takes, or that it takes more than `most`."""
    if file.format == "parquet":
        about = parquet.read_metadata(file.plain)
        return float(BYTES_PER_CELL * about.num_rows * about.num_columns)
    if file.format == "excel" and zipfile.is_zipfile(file.plain):
        with zipfile.ZipFile(file.plain) as workbook:
            return float(BYTES_PER_CHARACTER * sum(part.file_size for part in workbook.infolist()))
    # There is one mark for each cell.
    marks: tuple[str, ...] = (":",) if file.format == "json lines" else ()
    if file.format == "csv":
        marks = ("\n", DelimitedText(file, options).delimiter)
    needed, n_cells = float(BYTES_PER_CHARACTER * Path(file.plain).stat().st_size), 0
    with Path(file.plain).open("rb") as stream:
        while needed <= most and marks and (piece := stream.read(PIECE_BYTES)):
            n_cells += sum(piece.count(mark.encode()) for mark in marks)
            needed = float(max(BYTES_PER_CELL * n_cells, needed))
    return needed


def _free_memory() -> float:
    """Return the bytes of memory that are free, or would be if need be, as far as that is known."""
    try:
        with Path("/proc/meminfo").open(encoding="utf-8") as lines:
            found = next(line for line in lines if line.startswith("MemAvailable:"))
            return 1024.0 * float(found.split()[1])
    except (OSError, StopIteration):  # Windows and macOS
        return USUAL_MEMORY
