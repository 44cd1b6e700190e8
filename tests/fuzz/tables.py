"""Tables that somebody damaged: each ends in a sentence, never in a traceback.

An attack takes a seed, and returns None if the program held, or what broke.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
import tempfile
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow import feather, parquet

from tests.fuzz.models import TARGET, folder
from tests.fuzz.mutations import VALUES, as_json, changed, flipped, ran

CELLS = (
    *("", "NA", "-", "x", "1e999", "-1e308", "1e-320", "0x10", "1,5", "=1+1", '"', '"a', "\x00"),
    *("2024-02-30", "2024-02-29", "9999-12-31", "0001-01-01", "12:61", "true", "inf", "é", "\t"),
    *("1" * 400, "a" * 5000, "\r", "a\nb", "99999999999999999999", "-0", "1_000", "\u0663"),
    *(
        "\ufeff",
        "[[",
        "{",
        "1,892",
        "63.123,68",
        "3,2 %",
        "$5",
        "5 kg",
        "(5.3)",
        "1 234,5",
        "01067",
    ),
    *("20.05.2021", "01/16/2020", "31.02.2021", "ja", "No", "5 Mar 2020", "2020-01-01 25:00"),
)
KINDS = ("csv", "csv", "tsv", "jsonl", "json", "parquet", "feather", "xlsx")
MORE = ((), ("--id", "bed"), ("--weight", "sepal width (cm)"), ("--memory", "1e-7"))
OPTIONS = (
    *((), ("--decimal", ","), ("--delimiter", ";"), ("--encoding", "cp1252"), ("--missing", "x")),
    *(("--encoding", "utf-16"), ("--encoding", "hex"), ("--delimiter", "tab"), ("--sheet", "no")),
    *(("--missing", "5"), ("--decimal", ".")),
)


def damaged_table(seed):
    """A table in any format, of which bytes or cells were changed, in ``fit`` or ``predict``."""
    rng = random.Random(seed)
    place = Path(tempfile.mkdtemp(dir=folder()))
    name, content = _table(rng)
    if rng.random() < 0.5:
        content = flipped(content, rng)
    if rng.random() < 0.15:
        name, content = _packed(name, content, rng)
        if rng.random() < 0.5:
            content = flipped(content, rng)
    path = place / (name if rng.random() < 0.9 else rng.choice(["t", "t.csv", "t.xlsx", "t.json"]))
    path.write_bytes(content)
    if rng.random() < 0.5:
        words = ["predict", str(folder() / "out" / "model.skops"), str(path)]
        words += rng.choice([(), ("--id", "bed"), ("--json",), ("--out", str(place / "p.csv"))])
    else:
        words = ["fit", str(path), *TARGET, "--alpha", "1", "--no-curves", "--quiet"]
        words += ["--out", str(place / "out")]
        words += rng.choice(MORE)
    broke = ran([*words, *rng.choice(OPTIONS if rng.random() < 0.3 else [()])])
    if broke is None:
        shutil.rmtree(place)
    return broke


def _table(rng):
    """The name and the bytes of a table in some format, with some wrong cells."""
    table = pd.read_csv(folder() / "t.csv").head(rng.choice([1, 2, 3, 20, 100]))
    kind = rng.choice(KINDS)
    if kind in ("jsonl", "json"):
        rows = changed(json.loads(table.to_json(orient="records")), rng, (*VALUES, *CELLS))
        if kind == "json":
            return "t.json", as_json(rows)
        return "t.jsonl", b"\n".join(map(as_json, rows if isinstance(rows, list) else [rows]))
    table = table.astype(object)
    if kind in ("csv", "tsv", "xlsx") or rng.random() < 0.3:
        table = table.astype(object).where(table.notna(), "")
        for _ in range(rng.choice([0, 1, 1, 3, 30])):
            table.iat[rng.randrange(len(table)), rng.randrange(table.shape[1])] = rng.choice(CELLS)
    else:
        table = table.infer_objects()
    if rng.random() < 0.2:
        columns = list(table)
        columns[rng.randrange(len(columns))] = rng.choice([*CELLS, "species", "bed"])
        table.columns = columns
    return f"t.{kind}", _bytes(table, kind)


def _bytes(table, kind):
    if kind in ("csv", "tsv"):
        text = table.to_csv(index=False, sep="\t" if kind == "tsv" else ",")
        return text.encode("utf-8", "surrogatepass")
    if kind == "xlsx":
        file = io.BytesIO()
        clean = table.map(_printable)
        clean.columns = [_printable(str(name)) for name in table.columns]
        clean.to_excel(file, index=False)
        return file.getvalue()
    clean = table.map(lambda cell: _printable(str(cell)) if isinstance(cell, str) else cell)
    for k, kind_of_column in enumerate(clean.dtypes):
        if kind_of_column.kind == "O":
            clean.isetitem(
                k, clean.iloc[:, k].map(lambda cell: None if cell is None else str(cell))
            )
    names = [_printable(str(name)) for name in clean.columns]
    columns = [pa.array(clean.iloc[:, k], from_pandas=True) for k in range(clean.shape[1])]
    rows = pa.Table.from_arrays(columns, names)
    file = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(rows, file)
    else:
        feather.write_feather(rows, file)
    return file.getvalue()


def _printable(cell):
    """Text that a workbook can hold, and UTF-8 can write."""
    if not isinstance(cell, str):
        return cell
    return "".join(c for c in cell if c.isprintable() and not "\ud800" <= c <= "\udfff")


def _packed(name, content, rng):
    if rng.random() < 0.5:
        return f"{name}.gz", gzip.compress(content)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(rng.choice([name, name, "a/" + name, "x" * 300]), content)
        if rng.random() < 0.2:
            archive.writestr("other", b"")
    packed = file.getvalue()
    if rng.random() < 0.2:  # a member without a name
        packed = packed.replace(name.encode(), b"\x00" * len(name))
    return f"{name}.zip", packed
