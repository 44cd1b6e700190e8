"""Read tables of any format: whole, or a batch of rows at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc, parquet

from neverworse.tables._errors import TableError, listed
from neverworse.tables.reading.delimited import DelimitedText
from neverworse.tables.reading.files import STDIN, TableFile, printable
from neverworse.tables.reading.formats import read_arrow, read_json, read_workbook, valid
from neverworse.tables.reading.options import ReadOptions, with_nulls

BATCH_ROWS = 1 << 14
SUFFIXES = (
    *(".csv", ".tsv", ".txt", ".gz", ".bz2", ".zst", ".xz", ".lz4", ".parquet", ".pq", ".feather"),
    *(".arrow", ".ipc", ".jsonl", ".ndjson", ".json", ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
)

Check = Callable[[str, Sequence[str]], None]


def table_files(paths: Sequence[str]) -> list[TableFile]:
    """Return the files of which a table consists; of a folder, all tables in it."""
    if list(paths).count(STDIN) > 1:
        raise TableError("Standard input can be read only once: give one '-'.", code="file")
    files: list[TableFile] = []
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            files += [TableFile(str(inside)) for inside in _tables_in(Path(path))]
        else:
            files.append(TableFile(path))
    places = Counter(Path(file.path).resolve() for file in files if not file.once)
    twice = [printable(place.name) for place, times in places.items() if times > 1]
    if twice:
        problem = f"The same file is given twice: {listed(twice)}."
        raise TableError(problem, "Give it once.", code="file")
    return files


def _tables_in(folder: Path) -> list[Path]:
    """Return the tables in a folder and those below it, but none that are hidden."""
    inside = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in SUFFIXES
        and path.is_file()
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    )
    if not inside:
        raise TableError(f"There is no table in the folder {printable(folder)}.", code="file")
    return inside


def read_table(files: Sequence[TableFile], options: ReadOptions) -> pa.Table:
    """Read all rows of some files with the same columns.

    Returns
    -------
    table : pyarrow Table
        Names of columns are unique. Words that mean a missing value are null.
    """
    tables: list[pa.Table] = []
    for file in files:
        table = _without_blanks(_read_file(file, options))
        check_unique(file.name, table.column_names)
        if tables and set(table.column_names) != set(tables[0].column_names):
            raise _other_columns(files[0].name, tables[0], file.name, table)
        tables.append(table)
    return stacked(tables)


def stacked(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of all tables; types that differ are those that hold all values."""
    if len(tables) == 1:
        return tables[0]
    names = tables[0].column_names
    plain = [_recast(table.select(names), names, _without_dictionary) for table in tables]
    try:
        return pa.concat_tables(plain, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Numbers in one file and text in another: text, in which preparation looks for numbers.
        mixed = [n for n in names if not _go_together([t.schema.field(n) for t in plain])]
    try:
        plain = [_recast(table, mixed, lambda _: pa.string()) for table in plain]
        return pa.concat_tables(plain, promote_options="permissive")
    except pa.ArrowException:
        raise TableError(
            f"{listed(mixed)} hold values of kinds that do not go together in the files.",
            "Make them alike, or remove them.",
        ) from None


def _recast(
    table: pa.Table, names: Sequence[str], kind_for: Callable[[pa.DataType], pa.DataType]
) -> pa.Table:
    for name in names:
        k = table.column_names.index(name)
        kind = kind_for(table.schema.field(k).type)
        if kind != table.schema.field(k).type:
            table = table.set_column(k, name, table.column(k).cast(kind))
    return table


def _without_dictionary(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _go_together(fields: Sequence[pa.Field]) -> bool:
    """Whether columns of several files are of one type, or of types that hold both."""
    try:
        pa.unify_schemas([pa.schema([field]) for field in fields], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True


def stream_batches(
    file: TableFile, options: ReadOptions, types: Mapping[str, pa.DataType], check: Check
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a file, a batch of rows at a time.

    Those that are missing are left out. Text is read as these types; files that know the types of
    their columns keep them. `check` is called with the name of the file and the names of all its
    columns before any row is read.
    """
    with file.explained():
        for batch in _stream(file, options, types, check):
            yield with_nulls(batch, options.words)


def _stream(
    file: TableFile, options: ReadOptions, types: Mapping[str, pa.DataType], check: Check
) -> Iterator[Any]:
    def wanted(names: Sequence[str]) -> list[str]:
        check(file.name, names)
        there = set(names)
        return [name for name in types if name in there]

    if file.format == "csv":
        text = DelimitedText(file, options)
        wanted(text.names)
        yield from text.stream(types)
    elif file.format == "parquet":
        # No read-ahead: a row group may be larger than the memory that is left.
        opened = parquet.ParquetFile(file.seekable(), pre_buffer=False, buffer_size=1 << 20)
        columns = wanted(opened.schema_arrow.names)
        for batch in opened.iter_batches(BATCH_ROWS, columns=columns):
            yield valid(batch)
    elif file.format == "arrow stream":
        with ipc.open_stream(file.native()) as reader:
            columns = wanted(reader.schema.names)
            for batch in reader:
                yield valid(batch.select(columns))
    else:
        table = _read_file(file, options)
        yield from table.select(wanted(table.column_names)).to_batches(BATCH_ROWS)


def _read_file(file: TableFile, options: ReadOptions) -> pa.Table:
    with file.explained():
        if file.format == "excel":
            return read_workbook(file, options)
        if file.format == "csv":
            table = DelimitedText(file, options).read()
        else:
            table = read_json(file) if "json" in file.format else read_arrow(file)
        return with_nulls(table, options.words)


def check_unique(name: str, columns: Sequence[str]) -> None:
    """Raise if columns of a file have the same name."""
    repeated = [column for column, times in Counter(columns).items() if times > 1]
    if repeated:
        problem = f"{name} has several columns with the same name: {listed(repeated)}."
        raise TableError(problem, "Rename them.", code="column", column=repeated[0])


def _other_columns(name: str, first: pa.Table, other: str, table: pa.Table) -> TableError:
    missing = set(first.column_names) - set(table.column_names)
    extra = set(table.column_names) - set(first.column_names)
    what = f"lacks {listed(sorted(missing))}" if missing else f"also has {listed(sorted(extra))}"
    problem, fix = f"{other} {what}, unlike {name}.", "All files need the same columns."
    return TableError(problem, fix, code="column", column=min(missing or extra))


def _without_blanks(table: pa.Table) -> pa.Table:
    """Leave out columns without name and values, which spreadsheets put at the end of tables."""
    kept = [
        k
        for k, name in enumerate(table.column_names)
        if name.strip() or table.column(k).null_count < table.num_rows
    ]
    return table if len(kept) == table.num_columns else table.select(kept)
