"""Read tables of any format: whole, or a batch of rows at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather, ipc, parquet
from pyarrow import json as arrow_json

from neverworse.tables._csv import column_names, read_csv, stream_csv
from neverworse.tables._errors import TableError, listed
from neverworse.tables._file import STDIN, TableFile
from neverworse.tables._options import ReadOptions
from neverworse.tables._workbook import read_workbook

BATCH_ROWS = 1 << 14
SUFFIXES = (
    *(".csv", ".tsv", ".txt", ".gz", ".bz2", ".zst", ".xz", ".lz4", ".parquet", ".pq", ".feather"),
    *(".arrow", ".ipc", ".jsonl", ".ndjson", ".json", ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
)


def table_files(paths: Sequence[str]) -> list[TableFile]:
    """Return the files of which a table consists; of a folder, all tables in it."""
    if list(paths).count(STDIN) > 1:
        raise TableError("Standard input can be read only once: give one '-'.")
    files: list[TableFile] = []
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            inside = sorted(p for p in Path(path).rglob("*") if p.suffix.lower() in SUFFIXES)
            if not inside:
                raise TableError(f"There is no table in the folder {path}.")
            files += [TableFile(str(p)) for p in inside]
        else:
            files.append(TableFile(path))
    return files


def read_table(files: Sequence[TableFile], options: ReadOptions) -> pa.Table:
    """Read all rows of some files with the same columns.

    Returns
    -------
    table : pyarrow Table
        Names of columns are unique. Words that mean a missing value are null.
    """
    tables = []
    for file in files:
        table = _read_file(file, options)
        _check_names(file.name, table.column_names)
        if tables and set(table.column_names) != set(tables[0].column_names):
            raise _other_columns(files[0].name, tables[0], file.name, table)
        tables.append(table)
    return stacked(tables)


def stacked(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of all tables; types that differ are those that hold all values."""
    if len(tables) == 1:
        return tables[0]
    names = tables[0].column_names
    plain = [_without_dictionaries(table.select(names)) for table in tables]
    try:
        return pa.concat_tables(plain, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Numbers in one file and text in another: text, in which preparation looks for numbers.
        differ = [n for n in names if len({t.schema.field(n).type for t in plain}) > 1]
        return pa.concat_tables([_as_text(t, differ) for t in plain])


def stream_batches(
    file: TableFile, options: ReadOptions, types: Mapping[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a file, a batch of rows at a time.

    Parameters
    ----------
    file : TableFile
    options : ReadOptions
    types : mapping of str to DataType
        The columns that are wanted (those that are missing are left out), and the types that text
        is read as. Files that know the types of their columns keep them.
    """
    with file.explained():
        if file.format == "csv":
            yield from stream_csv(file, options, types)
        elif file.format == "parquet":
            # No read-ahead: a row group may be larger than the memory that is left.
            opened = parquet.ParquetFile(file.seekable(), pre_buffer=False, buffer_size=1 << 20)
            wanted = [name for name in types if name in opened.schema_arrow.names]
            yield from opened.iter_batches(BATCH_ROWS, columns=wanted)
        elif file.format == "arrow stream":
            with ipc.open_stream(file.native()) as reader:
                wanted = [name for name in types if name in reader.schema.names]
                for batch in reader:
                    yield batch.select(wanted)
        else:
            table = _read_file(file, options)
            wanted = [name for name in types if name in table.column_names]
            yield from table.select(wanted).to_batches(BATCH_ROWS)


def names_of(file: TableFile, options: ReadOptions) -> list[str]:
    """Return the names of the columns of a file, without reading its rows if possible."""
    with file.explained():
        if file.format == "csv":
            names = column_names(file, options)
        elif file.format == "parquet" and file.path != STDIN:
            names = parquet.read_schema(file.path).names
        else:
            names = []
    _check_names(file.name, names)
    return names


def _read_file(file: TableFile, options: ReadOptions) -> pa.Table:
    if file.format == "csv":
        return read_csv(file, options)
    if file.format == "excel":
        return read_workbook(file, options)
    with file.explained():
        if file.format == "parquet":
            table = parquet.ParquetFile(file.seekable(), pre_buffer=True).read()
        elif file.format == "arrow":
            table = feather.read_table(file.seekable())
        elif file.format == "arrow stream":
            with ipc.open_stream(file.native()) as reader:
                table = reader.read_all()
        elif file.format == "json lines":
            table = arrow_json.read_json(file.native())
        else:
            table = pa.Table.from_pylist(json.loads(file.stream().read()))
    return _with_nulls(table, options.missing)


def _check_names(name: str, columns: Sequence[str]) -> None:
    repeated = [column for column, times in Counter(columns).items() if times > 1]
    if repeated:
        raise TableError(
            f"{name} has several columns with the same name: {listed(repeated)}. Rename them."
        )


def _other_columns(name: str, first: pa.Table, other: str, table: pa.Table) -> TableError:
    missing = set(first.column_names) - set(table.column_names)
    extra = set(table.column_names) - set(first.column_names)
    what = f"lacks {listed(sorted(missing))}" if missing else f"also has {listed(sorted(extra))}"
    return TableError(f"{other} {what}, unlike {name}. All files need the same columns.")


def _with_nulls(table: pa.Table, missing: Sequence[str]) -> pa.Table:
    """Make empty cells, and words that mean a missing value, null."""
    words = pa.array(["", *missing])
    for k, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = table.column(k)
            found = pc.is_in(column, words.cast(field.type))
            if pc.any(found).as_py():
                table = table.set_column(
                    k, field.name, pc.if_else(found, pa.scalar(None, field.type), column)
                )
    return table


def _without_dictionaries(table: pa.Table) -> pa.Table:
    for k, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(k).cast(field.type.value_type)
            table = table.set_column(k, field.name, column)
    return table


def _as_text(table: pa.Table, names: Sequence[str]) -> pa.Table:
    for name in names:
        k = table.column_names.index(name)
        table = table.set_column(k, name, table.column(k).cast(pa.string()))
    return table
