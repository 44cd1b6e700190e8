"""One small table, written in every format that is read."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import io
import json
import lzma
import zipfile

import openpyxl
import pyarrow as pa
from pyarrow import csv, feather, ipc, parquet

# Whole numbers with a gap, decimals, names that CSV has to quote, dates, and few labels.
TABLE = pa.table(
    {
        "age": pa.array([31, None, 45, 62, 18, 77], pa.int64()),
        "dose": [0.5, 1.25, None, -3.0, 1e-9, 2.5e8],
        "city": ["Köln", "a,b", 'say "x"', None, "two;parts|x\tand tab", "Köln"],
        "visit": pa.array(
            ["2024-02-29", "1969-12-31", "2000-01-01", None, "2024-03-01", "2030-06-30"]
        ).cast(pa.date32()),
        "y": ["yes", None, "no", None, "no", None],
    }
)


def values(table):
    """The values of a table as every format knows them: no time, and all numbers floats."""
    return {
        name: [_plain(v) for v in table.column(name).to_pylist()] for name in table.column_names
    }


def _plain(value):
    if isinstance(value, dt.datetime):
        return value.date()
    return float(value) if isinstance(value, int) else value


def csv_bytes(table=TABLE, delimiter=","):
    file = io.BytesIO()
    csv.write_csv(table, file, csv.WriteOptions(delimiter=delimiter))
    return file.getvalue()


def json_rows(table=TABLE):
    return [
        {k: str(v) if isinstance(v, dt.date) else v for k, v in row.items() if v is not None}
        for row in table.to_pylist()
    ]


def ipc_bytes(table=TABLE):
    file = io.BytesIO()
    with ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def parquet_bytes(table=TABLE, **options):
    file = io.BytesIO()
    parquet.write_table(table, file, **options)
    return file.getvalue()


def feather_bytes(**options):
    file = io.BytesIO()
    feather.write_feather(TABLE, file, **options)
    return file.getvalue()


def arrow_compressed(content, codec):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def zipped(members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def xlsx_bytes(table=TABLE):
    book = openpyxl.Workbook()
    book.active.append(table.column_names)
    for row in table.to_pylist():
        book.active.append(list(row.values()))
    book.create_sheet("other").append(["nothing"])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


CSV = csv_bytes()
LINES = "".join(json.dumps(row) + "\n" for row in json_rows()).encode()
FILES = {
    "t.csv": CSV,
    "no-suffix": CSV,
    "t.tsv": csv_bytes(delimiter="\t"),
    "semicolon.csv": csv_bytes(delimiter=";"),
    "bar.txt": csv_bytes(delimiter="|"),
    "bom.csv": b"\xef\xbb\xbf" + CSV,
    "crlf.csv": CSV.replace(b"\n", b"\r\n"),
    "no-end.csv": CSV.rstrip(b"\n"),
    "blank lines.csv": CSV + b"\n\n",
    "excel.csv": b"sep=;\r\n" + csv_bytes(delimiter=";").replace(b"\n", b"\r\n"),
    "excel utf-16.csv": ("sep=|\n" + csv_bytes(delimiter="|").decode()).encode("utf-16"),
    "utf-16.csv": CSV.decode().encode("utf-16"),
    "t.csv.gz": gzip.compress(CSV),
    "t.csv.bz2": bz2.compress(CSV),
    "t.csv.xz": lzma.compress(CSV),
    "t.csv.zst": arrow_compressed(CSV, "zstd"),
    "t.csv.lz4": arrow_compressed(CSV, "lz4"),
    "t.csv.zip": zipped({"folder/t.csv": CSV, "__MACOSX/x": b"?"}),
    "t.parquet": parquet_bytes(),
    "t.parquet.gz": gzip.compress(parquet_bytes()),
    "t.feather": feather_bytes(compression="lz4"),
    "old.feather": feather_bytes(compression="uncompressed"),
    "t.arrow": ipc_bytes(),
    "t.jsonl": LINES,
    "t.jsonl.gz": gzip.compress(LINES),
    "t.xlsx": xlsx_bytes(),
}
