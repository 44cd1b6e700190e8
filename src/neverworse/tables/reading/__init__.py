"""From files to tables of PyArrow: formats, compression, words for missing values, memory."""

from neverworse.tables.reading.delimited import DelimitedText
from neverworse.tables.reading.files import TableFile, encoding_of, printable
from neverworse.tables.reading.large import StoredTable, is_large, store
from neverworse.tables.reading.options import (
    TEXT,
    ReadOptions,
    is_text,
    spells_number,
    with_nulls,
)
from neverworse.tables.reading.tables import (
    check_unique,
    read_table,
    stacked,
    stream_batches,
    table_files,
)

__all__ = [
    "TEXT",
    "DelimitedText",
    "ReadOptions",
    "StoredTable",
    "TableFile",
    "check_unique",
    "encoding_of",
    "is_large",
    "is_text",
    "printable",
    "read_table",
    "spells_number",
    "stacked",
    "store",
    "stream_batches",
    "table_files",
    "with_nulls",
]
