"""Tables from files: the same table in every format, and a sentence for files that are broken."""

from __future__ import annotations

import contextlib
import gc
import gzip
import io
import json
import os
import sys
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from neverworse.tables import ReadOptions, TableError, read_table, table_files
from neverworse.tables.preparation.columns import correction
from neverworse.tables.reading import stream_batches
from tests.cli.tables import needs_any_name
from tests.tables.files import (
    CSV,
    FILES,
    TABLE,
    csv_bytes,
    ipc_bytes,
    json_rows,
    parquet_bytes,
    values,
    xlsx_bytes,
    zipped,
)


@pytest.fixture
def read(tmp_path):
    """Write files, and read them as one table."""

    def run(*contents, name="t.csv", **options):
        paths = []
        for k, content in enumerate(contents):
            path = tmp_path / str(k) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            paths.append(str(path))
        return read_table(table_files(paths), ReadOptions(**options))

    return run


def streamed(path, types, **options):
    names = []
    batches = stream_batches(
        table_files([str(path)])[0], ReadOptions(**options), types, lambda _, n: names.extend(n)
    )
    return pa.concat_tables(batches), names


def pipe(monkeypatch, content):
    stdin = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: False)
    monkeypatch.setattr("sys.stdin", stdin)


# Formats


@pytest.mark.parametrize("name", FILES)
def test_every_format_has_the_same_table(read, name):
    table = read(FILES[name], name=name)
    assert table.column_names == TABLE.column_names
    assert values(table) == values(TABLE)


@pytest.mark.parametrize("name", FILES)
def test_every_format_from_standard_input(monkeypatch, name):
    pipe(monkeypatch, FILES[name])
    assert values(read_table(table_files(["-"]), ReadOptions())) == values(TABLE)


@pytest.mark.parametrize("name", FILES)
def test_every_format_in_batches(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    types = {"visit": pa.timestamp("us"), "dose": pa.float64(), "none": pa.float64()}
    table, names = streamed(path, types)
    assert names == TABLE.column_names
    assert values(table) == {name: values(TABLE)[name] for name in ("visit", "dose")}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.xz", "t.parquet", "t.jsonl"])
def test_a_pipe_with_a_name_is_read_once(tmp_path, name):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(FILES[name],))
    writer.start()
    assert values(read_table(table_files([str(path)]), ReadOptions())) == values(TABLE)
    writer.join()


def test_the_copy_of_a_pipe_goes_with_its_table(monkeypatch):
    pipe(monkeypatch, CSV)
    (file,) = table_files(["-"])
    copy = Path(file.plain)
    assert copy.read_bytes() == CSV
    del file
    gc.collect()
    assert not copy.exists()


@needs_any_name
def test_names_of_files_may_be_anything(tmp_path):
    for name in (b"with space.csv", b"\xff\xfe.csv", "☃\n.csv".encode(), b"-dash.csv"):
        path = tmp_path / os.fsdecode(name)
        path.write_bytes(CSV)
        (found,) = table_files([str(path)])
        assert values(read_table([found], ReadOptions())) == values(TABLE)
        found.name.encode()  # messages can be printed


# Several files


def test_types_of_several_files_are_reconciled(read):
    table = read("a,b,c,d\n1,x,1,\n", "c,a,b,d\n,2.5,3,7\n")
    assert table.to_pydict() == {"a": [1, 2.5], "b": ["x", "3"], "c": [1, None], "d": [None, 7]}


def test_numbers_in_one_file_and_dates_in_another_are_text(read):
    table = read("a\n1\n2\n", "a\n2024-01-01\n")
    assert table.column("a").to_pylist() == ["1", "2", "2024-01-01"]


def test_types_that_do_not_go_together(read):
    one, two = ('{"a": 1, "b": {"c": 2}}', '{"a": 1, "b": 3}')
    with pytest.raises(TableError, match="'b' holds values of incompatible types"):
        read(one, two, name="t.jsonl")


def test_levels_of_several_files_are_joined(read):
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y"])})
    other = pd.DataFrame({"a": pd.Categorical(["z", "x", None])})
    table = read(
        *(parquet_bytes(pa.Table.from_pandas(f)) for f in (frame, other)), name="t.parquet"
    )
    assert table.column("a").to_pylist() == ["x", "y", "z", "x", None]


@pytest.mark.parametrize(
    ("second", "said"),
    [("a,c\n1,2\n", "has 'b', 'c'. All files"), ("a,b,c\n1,2,3\n", "has 'c'. All files")],
)
def test_other_columns(read, second, said):
    with pytest.raises(TableError, match=said):
        read("a,b\n1,2\n", second)


@pytest.mark.skipif(sys.platform == "win32", reason="not everybody may make links on Windows")
def test_the_same_file_twice(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(CSV)
    (tmp_path / "link.csv").symlink_to(path)
    for other in (path, tmp_path / "link.csv", f"{tmp_path}/../{tmp_path.name}/t.csv"):
        with pytest.raises(TableError, match="The same file is given twice"):
            table_files([str(path), str(other)])


# Text


def test_cp1252(read):
    content = CSV.decode().encode("cp1252")
    with pytest.raises(TableError, match=r"is not UTF-8 text.*--encoding cp1252"):
        read(content)
    assert values(read(content, encoding="cp1252")) == values(TABLE)


def test_text_that_is_not_utf8_far_from_the_beginning(read):
    content = b"a,b\n" + b"1,x\n" * 600_000 + b"2,\xe9\n"
    with pytest.raises(TableError, match="is not UTF-8 text"):
        read(content)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig", "latin-1"])
def test_encodings(read, encoding):
    table = read(CSV.decode().encode(encoding), encoding=encoding)
    assert values(table) == values(TABLE)


def test_wrong_encoding(read):
    with pytest.raises(TableError):
        read(CSV, encoding="utf-16")


def test_decimal_comma(read):
    table = read("a;b\n1,5;x\n2,25;y\n", decimal=",")
    assert table.to_pydict() == {"a": [1.5, 2.25], "b": ["x", "y"]}


@pytest.mark.parametrize("delimiter", ["^", " ", "\x01"])
def test_named_delimiter(read, delimiter):
    content = csv_bytes(pa.table({"a": [1, 2], "b": ["x", "y"]})).decode().replace(",", delimiter)
    assert read(content, delimiter=delimiter).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}


def test_line_breaks_between_quotes(read, monkeypatch):
    rows = pa.table({"a": range(60_000), "b": ['two\nlines, and "more"\r\n' * 3, "x"] * 30_000})
    content = csv_bytes(rows)
    assert len(content) > 2**20  # several blocks, so that one of them ends between quotes
    assert read(content).column("b").to_pylist() == rows.column("b").to_pylist()
    pipe(monkeypatch, content)
    piped = read_table(table_files(["-"]), ReadOptions())
    assert piped.column("b").to_pylist() == rows.column("b").to_pylist()


def test_types_are_found_from_all_rows(read):
    n = 200_000  # in two parts
    lines = [f"{k},{k},,\n" for k in range(n)]
    content = "int,late float,late text,late number\n" + "".join(lines) + "1,2.5,x,7\n"
    table = read(content)
    kinds = [str(kind) for kind in table.schema.types]
    assert kinds[:2] == ["int64", "double"]
    assert kinds[3] == "int64"
    assert table.column("late float").to_pylist()[-2:] == [n - 1.0, 2.5]
    assert table.column("late text").to_pylist()[-2:] == [None, "x"]
    assert table.column("late number").to_pylist()[-2:] == [None, 7]


def test_numbers_before_text_become_text_again(read):
    content = "a\n" + "".join(f"{k}\n" for k in range(300_000)) + "oops\n"
    column = read(content).column("a")
    assert column.to_pylist()[:2] == ["0", "1"]
    assert column.to_pylist()[-1] == "oops"


def test_columns_that_hold_names(read):
    table = read("id,n\n001,1\n1e5,2\n2024-01-01,3\n", text=frozenset({"id", "absent"}))
    assert table.column("id").to_pylist() == ["001", "1e5", "2024-01-01"]


WORDS = ["NA", "", "null", "NaN", "n/a", "#N/A"]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow", "t.jsonl", "t.xlsx"])
def test_words_for_missing_values_in_all_formats(read, tmp_path, name):
    text = pa.table({"a": ["x", *WORDS, "?", "gone"], "b": ["1"] * (len(WORDS) + 3)})
    rows = text.to_pylist()
    content = {
        "t.csv": csv_bytes(text),
        "t.parquet": parquet_bytes(
            text.set_column(0, "a", text.column("a").dictionary_encode())  # as pandas' categories
        ),
        "t.arrow": ipc_bytes(text),
        "t.jsonl": "\n".join(map(json.dumps, rows)).encode(),
        "t.xlsx": xlsx_bytes(text),
    }[name]
    table = read(content, name=name, missing=("?", "gone"))
    assert table.column("a").to_pylist() == ["x", *[None] * (len(WORDS) + 2)]
    types = {"a": pa.dictionary(pa.int32(), pa.string())}
    table, _ = streamed(tmp_path / "0" / name, types, missing=("?", "gone"))
    assert table.column("a").to_pylist() == ["x", *[None] * (len(WORDS) + 2)]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow", "t.jsonl", "t.xlsx"])
def test_numbers_for_missing_values_in_all_formats(read, name):
    numbers = pa.table({"a": [1.5, -999.0, 3.0]})
    content = {
        "t.csv": csv_bytes(numbers),
        "t.parquet": parquet_bytes(numbers),
        "t.arrow": ipc_bytes(numbers),
        "t.jsonl": "\n".join(map(json.dumps, numbers.to_pylist())).encode(),
        "t.xlsx": xlsx_bytes(numbers),
    }[name]
    assert read(content, name=name, missing=("-999",)).column("a").is_null().to_pylist() == [
        False,
        True,
        False,
    ]


def test_rows_that_are_too_long(read):
    with pytest.raises(TableError, match=r"has 4 cells in line 3, but 3 columns. Put quotes"):
        read("a,b,c\n1,2,3\n1,2,3,4\n")
    with pytest.raises(TableError, match=r"has 4 cells in line 4, but 3 columns. Put quotes"):
        read("sep=;\na;b;c\n1;2;3\n1;2;3;4\n")


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('a,b,c\n1,"x,2\n2,y,3\n3,z,4', 2),
        ('a,b\n1,2\n"3,4\n5,6', 3),
        ('a,b\n1,"two\nlines"\n1,"x\n2,y\n3,z', 4),  # all further rows are in the last cell
        ('sep=;\na;b\n1;"x\n2;y', 3),
    ],
)
def test_a_quote_that_is_never_closed_is_named_by_its_line(read, tmp_path, content, line, end):
    said = f"has a quotation mark in line {line} that is never closed. Close it, or remove it."
    with pytest.raises(TableError, match=said):
        read(content + end)
    with pytest.raises(TableError, match=said):
        streamed(tmp_path / "0" / "t.csv", dict.fromkeys("bca", pa.string()))


def test_a_quote_within_a_cell_and_line_breaks_in_the_last_one(read):
    table = read(f'a,b\n1,5" pipe\n2,"two\n{"x" * 200_000}\n"\n')
    assert table.column("b").to_pylist() == ['5" pipe', f"two\n{'x' * 200_000}\n"]


def test_a_delimiter_that_was_named_wrongly(read):
    with pytest.raises(
        TableError,
        match=r"has 2 cells in line 3, but 1 column.* name another delimiter: --del",
    ):
        read("a;b\n1;2\n1,5;2\n", delimiter=",")


@pytest.mark.parametrize("content", ["a,a\n1,2\n", "a, b,a,a\n1,2,3,4\n"])
def test_columns_of_the_same_name(read, content):
    with pytest.raises(TableError, match=r"several columns with the same name: 'a'. Rename"):
        read(content)


def test_columns_without_name_and_values_are_left_out(read):
    assert read("a,b,,\n1,2,,\n3,4,,\n").to_pydict() == {"a": [1, 3], "b": [2, 4]}
    assert read(",b\n1,2\n").column_names == ["", "b"]


@pytest.mark.parametrize("content", ["", "\n", "\n\n  "])
def test_empty(read, content):
    with pytest.raises(TableError):
        read(content).column("a")


def test_a_header_only(read):
    assert read("a,b\n").num_rows == 0


def test_a_very_long_cell(read, tmp_path):
    table = read(f"a,b\n1,{'x' * 300_000}\n")
    assert len(table.column("b")[0].as_py()) == 300_000
    (tmp_path / "long.csv").write_text(f"a,{'x' * 300_000}\n1,2\n")
    with pytest.raises(TableError, match="cannot be read as column names"):
        streamed(tmp_path / "long.csv", {"a": pa.float64()})


# JSON


def test_rows_of_json_need_not_have_all_columns(read):
    rows = [{"a": 1}, {"b": "2024-01-31"}, {"a": 2.5, "b": None, "c": True}]
    table = read("\n".join(map(json.dumps, rows)), name="t.jsonl")
    assert table.column("a").to_pylist() == [1, None, 2.5]
    assert pa.types.is_timestamp(table.schema.field("b").type)
    assert table.column("c").to_pylist() == [None, None, True]


@pytest.mark.parametrize(
    "content",
    [
        pd.DataFrame({"a": [1, 2]}).to_json(),
        pd.DataFrame({"a": [1, 2]}).to_json(orient="records"),
        pd.DataFrame({"a": [1, 2]}).to_json(orient="split"),
        '{"a": [1, 2], "b": [3, 4]}',
    ],
)
def test_json_that_does_not_have_a_row_per_line(read, content):
    with pytest.raises(TableError, match=r"orient='records', lines=True"):
        read(content, name="t.json")


@pytest.mark.parametrize(
    "content", ["[1, 2]", "[[1, 2]]", "[", '[{"a": 1},]', "[]", '{"a": 1', "{"]
)
def test_json_that_is_no_table(read, content):
    with pytest.raises(TableError):
        read(content, name="t.json")


def test_json_of_two_types(read):
    with pytest.raises(TableError, match=r"changed from number to string"):
        read('{"a": 1}\n{"a": "x"}\n', name="t.jsonl")


@pytest.mark.parametrize(("name", "size"), [("t.csv", 10), ("t.csv.gz", 10), ("t.jsonl", 40)])
def test_a_cell_of_many_megabytes(read, name, size):
    cell = "x" * (size * 1_000_000)
    content = f'{{"a": 1, "b": "{cell}"}}\n' if "json" in name else f"a,b\n1,{cell}\n2,y\n"
    data = gzip.compress(content.encode(), 1) if name.endswith("gz") else content
    with pytest.raises(TableError, match=r"has a row that is too long to be read\. Look for"):
        read(data, name=name)


def test_a_member_of_an_archive_without_a_name(read):
    content = zipped({"t.csv": CSV}).replace(b"t.csv", b"\x00.csv")
    assert values(read(content, name="t.zip")) == values(TABLE)


def nested(depth, *, opening='{"a":', closing="}", between=""):
    return f'{{"b":{between.join([opening] * depth)}1{closing * depth}}}\n'


@pytest.mark.parametrize(
    "content",
    [
        nested(20_000),
        nested(20_000, opening="[", closing="]"),
        nested(20_000, between="\n"),
        nested(20_000, opening='{"]]":'),
        nested(20_000, opening='{"\\"]]":'),
        '{"b": 1}\n' * 200_000 + nested(20_000),
        '{"b": "open\n' + nested(20_000),
        f"[{nested(20_000).strip()}]",
    ],
)
def test_json_nested_without_end_is_refused_before_it_is_parsed(read, content):
    for name in ("t.jsonl", "t.jsonl.gz"):
        data = gzip.compress(content.encode()) if name.endswith("gz") else content
        with pytest.raises(TableError, match=r"does not have one row of plain values per line"):
            read(data, name=name)


def test_brackets_in_text_are_no_depth(read, monkeypatch):
    monkeypatch.setattr("neverworse.tables.reading.formats.JSON_BYTES", 1 << 18)  # several blocks
    rows = [{"a": "[" * 500, "b": k, "c": '\\"' + "{" * 500} for k in range(2_000)]
    table = read("\n".join(map(json.dumps, rows)), name="t.jsonl")
    assert table.to_pylist() == rows


# Workbooks


def test_sheets(read):
    assert read(xlsx_bytes(), name="t.xlsx", sheet="other").column_names == ["nothing"]
    with pytest.raises(TableError, match=r"has no sheet 'othr'. Did you mean"):
        read(xlsx_bytes(), name="t.xlsx", sheet="othr")


def test_cells_of_many_kinds(read, tmp_path):
    import datetime as dt

    book = openpyxl.Workbook()
    columns = {
        2020: [1, 2.5, None],
        "mixed": [1, "x", 2.5],
        "flag": [True, False, None],
        "moment": [dt.datetime(2024, 1, 2, 3, 4), None, dt.datetime(2024, 1, 3)],
        "time": [dt.time(3, 4), dt.time(5, 6), None],
        "empty": [None, None, " "],
    }
    book.active.append(list(columns))
    for row in zip(*columns.values(), strict=True):
        book.active.append(list(row))
    book.save(tmp_path / "t.xlsx")
    table = read((tmp_path / "t.xlsx").read_bytes(), name="t.xlsx")
    assert table.column("2020").to_pylist() == [1.0, 2.5, None]
    assert table.column("mixed").to_pylist() == ["1", "x", "2.5"]
    assert table.column("flag").to_pylist() == [True, False, None]
    assert table.column("moment").to_pylist() == columns["moment"]
    assert table.column("time").to_pylist() == columns["time"]
    assert table.schema.field("empty").type in (pa.null(), pa.string())


def test_a_workbook_without_a_table(read, tmp_path):
    openpyxl.Workbook().save(tmp_path / "t.xlsx")
    with pytest.raises(TableError, match=r"has an empty sheet. Name another: --sheet NAME"):
        read((tmp_path / "t.xlsx").read_bytes(), name="t.xlsx")


# What is no table, or only part of one


@pytest.mark.parametrize("name", FILES)
def test_truncated_files_are_refused_or_read_in_part(read, name):
    content, whole = FILES[name], values(TABLE)
    rng = np.random.default_rng(0)
    for length in {*range(1, 12), *rng.integers(1, len(content), 25).tolist(), len(content) - 1}:
        try:
            table = read(content[:length], name=name)
        except TableError as error:
            assert "Arrow" not in str(error)  # noqa: PT017
            continue
        if ".csv" in name or "txt" in name or "json" in name or name in ("t.tsv", "no-suffix"):
            continue  # text may end anywhere
        assert values(table) == whole


@pytest.mark.parametrize("name", [n for n in FILES if "csv" not in n])
def test_damaged_files_are_refused_or_read(read, name):
    rng = np.random.default_rng(1)
    for _ in range(30):
        content = bytearray(FILES[name])
        for place in rng.integers(len(content), size=3):
            content[place] = rng.integers(256)
        with contextlib.suppress(TableError):
            read(bytes(content), name=name).validate(full=True)


@given(st.binary(min_size=1, max_size=200) | st.text(min_size=1, max_size=200).map(str.encode))
@settings(max_examples=80, deadline=None)
def test_any_bytes_are_a_table_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / f"any-{os.getpid()}"
    path.write_bytes(content)
    with contextlib.suppress(TableError):
        read_table(table_files([str(path)]), ReadOptions()).to_pylist()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89HDF\r\n", "is not UTF-8 text"),
        (b"SQLite format 3\x00", "is neither text nor a known format. Export the table as CSV"),
        (b"\x00\x01\x02", "is neither text nor a known format"),
        (zipped({"a.csv": b"a\n1\n", "b.csv": b"a\n2\n"}), "holds 2 files. Unpack it"),
        (zipped({"t.csv": CSV}, zipfile.ZIP_STORED)[:-30], "is damaged or incomplete. Save or"),
    ],
)
def test_files_that_are_no_table(read, content, said):
    with pytest.raises(TableError, match=said):
        read(content, name="t.bin")


def test_a_zip_with_a_password(read):
    content = bytearray(zipped({"t.csv": CSV}))
    content[6] |= 1  # in the header of the member ...
    content[content.index(b"PK\x01\x02") + 8] |= 1  # ... and in the directory: it is encrypted
    with pytest.raises(TableError, match=r"cannot be read: File .* is encrypted"):
        read(bytes(content), name="t.zip")


def test_text_in_parquet_that_is_none(read):
    strings = pa.array([b"\xff\xfe", b"ok"]).view(pa.string())
    with pytest.raises(TableError, match="is damaged or incomplete"):
        read(parquet_bytes(pa.table({"a": strings})), name="t.parquet")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("zzz", "There is no file .*zzz. Check the name and the folder"),
        ("none/patients.csv", r"There is no file .*patients.csv. Check the name and the folder"),
        ("empty.csv", "empty.csv is empty"),
        ("folder", "folder is a folder. Name the tables in it"),
    ],
)
def test_files_that_are_not_there(tmp_path, path, said):
    (tmp_path / "patients.csv").write_bytes(CSV)
    (tmp_path / "empty.csv").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(TableError, match=said):
        table_files([str(tmp_path / path)])


def test_standard_input_is_given_once(monkeypatch):
    with pytest.raises(TableError, match="The same file is given twice"):
        table_files(["-", "-"])
    terminal = SimpleNamespace(buffer=io.BytesIO(), isatty=lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    with pytest.raises(TableError, match="no table in standard input"):
        table_files(["-"])
    pipe(monkeypatch, b"")
    with pytest.raises(TableError, match="standard input is empty"):
        table_files(["-"])


def test_a_file_that_changes_while_it_is_read(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": range(100_000)}), path)
    file = table_files([str(path)])[0]
    batches = stream_batches(file, ReadOptions(), {"a": pa.float64()}, lambda *_: None)
    next(batches)
    os.utime(path, ns=(1, 1))
    with pytest.raises(TableError, match=r"changed while it was being read. Run this again"):
        list(batches)


def test_rows_without_values_in_json(read):
    assert read("\n".join(map(json.dumps, json_rows())), name="x.txt").num_rows == TABLE.num_rows


@pytest.mark.parametrize(
    ("text", "decimal", "words"),
    [
        ("17,99", ".", "--decimal ','"),
        ("17.99", ",", "--decimal '.'"),
        ("abc", ".", "--missing 'abc'"),
        ("1.234,5", ".", "--missing '1.234,5'"),
        ("20.05.2024", None, "--missing '20.05.2024'"),
    ],
)
def test_a_number_with_another_decimal_mark_is_not_called_a_missing_value(text, decimal, words):
    assert words in correction(text, decimal)


@pytest.mark.parametrize("name", ["t.parquet", "t.xlsx"])
def test_a_name_that_promises_another_format_is_not_read_as_csv(read, name):
    with pytest.raises(TableError, match=r"is not a \.\w+ file, whatever its name says"):
        read("a,b\n1,2\n", name=name)
