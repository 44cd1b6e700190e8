"""Tables that stay in their files: the same features, models and results as in memory."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from neverworse.cli import main
from neverworse.study import fit_table
from neverworse.tables import (
    ReadOptions,
    StoredTable,
    TableError,
    TablePreparation,
    is_large,
    reading,
    store,
    table_files,
)
from neverworse.tables._classifier import PreparedRows
from neverworse.tables.reading import formats
from tests.study.fits import fitted, quickly, table


@pytest.fixture
def stored(tmp_path):
    """A table in two files, with row groups that are no multiple of batches."""
    rows = table()
    gaps = rows.column_names.index("gap")  # NaN is not even equal to itself
    rows = rows.set_column(gaps, "gap", pa.array(rows.column("gap").to_numpy(), from_pandas=True))
    parquet.write_table(rows.slice(0, 90), tmp_path / "a.parquet", row_group_size=37)
    parquet.write_table(rows.slice(90), tmp_path / "b.parquet", row_group_size=11)
    found = StoredTable.open([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")])
    return rows, StoredTable(found.files, found.column_names, batch_rows=16)


def test_columns_and_batches_are_those_of_the_table(stored):
    rows, there = stored
    assert there.num_rows == rows.num_rows
    for name in rows.column_names:
        assert there.column(name).to_pylist() == rows.column(name).to_pylist()
    batches = list(there.batches())
    assert [len(batch) for batch in batches] == there.sizes()
    assert pa.concat_tables(batches).to_pylist() == rows.to_pylist()


def test_some_batches_are_read(stored):
    rows, there = stored
    edges = np.concatenate([[0], np.cumsum(there.sizes())])
    chosen = [1, 4, len(there.sizes()) - 1]
    for k, batch in zip(chosen, there.batches(chosen), strict=True):
        assert batch.to_pylist() == rows.slice(edges[k], len(batch)).to_pylist()


def test_features_are_those_in_memory(stored):
    rows, there = stored
    names = [name for name in rows.column_names if name not in ("class", "name")]
    here = TablePreparation().fit(rows.select(names))
    away = TablePreparation().fit(there.select(names))
    expected = here.transform(rows.select(names))
    prepared = PreparedRows(there.select(names), away)
    assert away.get_feature_names_out().tolist() == here.get_feature_names_out().tolist()
    np.testing.assert_allclose(prepared.take(np.arange(140)), expected, rtol=0, atol=1e-12)
    gram, sums = prepared.gram()
    np.testing.assert_allclose(gram, expected.T @ expected, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(sums, expected.sum(axis=0), rtol=0, atol=1e-10)


@pytest.mark.parametrize("weight", [None, "weight"])
def test_the_model_is_the_one_in_memory(stored, weight):
    rows, there = stored
    here, settings = fitted(rows=rows, weight=weight)
    away = fit_table(there, settings)
    np.testing.assert_allclose(away.classifier.coef_, here.classifier.coef_, rtol=0, atol=1e-10)
    for name in ("worst_case", "best_case"):
        assert getattr(away.model.certificate_, name) == pytest.approx(
            getattr(here.model.certificate_, name), rel=1e-9
        )
    np.testing.assert_array_equal(away.model.predict(rows), here.model.predict(rows))


@pytest.mark.parametrize("suffix", ["parquet", "csv.gz"])
def test_command_gives_the_same_results(tmp_path, suffix, capsys):
    rows, path = table().drop_columns("weight"), tmp_path / f"rows.{suffix}"
    if suffix == "parquet":
        parquet.write_table(rows, path)
    else:
        with pa.output_stream(path, compression="detect") as file:
            csv.write_csv(rows, file)
    words = ["fit", str(path), "--target", "class", "--id", "name", "--no-curves", "--quiet"]
    words += ["--model", "projected", "--candidates", "none"]
    found = []
    for more in ([], ["--memory", "0.000001"]):
        out = tmp_path / f"out{len(more)}"
        with quickly(report=False):
            assert main([*words, *more, "--out", str(out)]) == 0, capsys.readouterr().err
        document = json.loads((out / "certificate.json").read_text())
        found.append((document["certificate"]["worst_case"], (out / "predictions.csv").read_text()))
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-6)
    rows_of = [csv.read_csv(pa.BufferReader(text.encode())) for _, text in found]
    for name in ("name", "prediction", "changed"):
        assert rows_of[0].column(name).equals(rows_of[1].column(name))
    for name in ("score", "soft_label"):
        np.testing.assert_allclose(*(t.column(name).to_numpy() for t in rows_of), atol=1e-7)


def test_size_decides(tmp_path):
    path = tmp_path / "rows.parquet"
    parquet.write_table(table(), path)
    files = table_files([str(path)])
    assert not is_large(files, ReadOptions())
    assert is_large(files, ReadOptions(), limit=1000.0)


def digits(n_rows, n_columns):
    """Return text in which a cell has but one character."""
    header = ",".join(f"x{k}" for k in range(n_columns))
    return "\n".join([header, *[",".join("01"[k % 2] for k in range(n_columns))] * n_rows]) + "\n"


NUMBERS = 8 * 2000 * 50  # bytes of these cells as numbers


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "zip", "jsonl"])
def test_memory_is_measured_by_cells_not_by_the_size_of_a_file(tmp_path, suffix):
    text, path = digits(2000, 50), tmp_path / f"rows.{suffix}"
    if suffix == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("rows.csv", text)
    elif suffix == "jsonl":
        path.write_text((json.dumps({f"{k}": k % 2 for k in range(50)}) + "\n") * 2000)
    else:
        with pa.output_stream(path, compression="detect") as file:
            file.write(text.encode())
    files = table_files([str(path)])
    assert is_large(files, ReadOptions(), limit=2 * NUMBERS)
    assert not is_large(files, ReadOptions(), limit=10 * NUMBERS)


def test_workbooks_are_measured_unpacked(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    for _ in range(200):
        workbook.active.append([0] * 50)
    workbook.save(tmp_path / "rows.xlsx")
    files = table_files([str(tmp_path / "rows.xlsx")])
    assert is_large(files, ReadOptions(), limit=0.2 * NUMBERS)
    assert not is_large(files, ReadOptions(), limit=2 * NUMBERS)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_pipe_that_is_larger_than_memory_is_fitted_in_files(tmp_path, monkeypatch, compressed):
    rows = io.BytesIO()
    csv.write_csv(table().drop_columns("weight"), rows)
    content = gzip.compress(rows.getvalue()) if compressed else rows.getvalue()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    words = ["fit", "-", "--target", "class", "--id", "name", "--no-curves", "--quiet"]
    words += ["--candidates", "none", "--memory", "0.000001", "--out", str(tmp_path / "out")]
    with quickly(report=False):
        assert main(words) == 0
    facts = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert facts["certificate"]["holds"]


def test_other_formats_are_to_be_converted(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n')
    with pytest.raises(TableError, match=r"rows.jsonl is larger than memory. Convert it to Parq"):
        store(table_files([str(path)]), ReadOptions(), tmp_path)


def test_types_may_change_within_a_large_csv(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "BLOCK_BYTES", 1 << 12)
    path = tmp_path / "rows.csv"
    with path.open("w") as file:
        file.write("a,b,c\n")
        file.writelines(f"{k},{k % 7},{k % 3}\n" for k in range(4_000))
        file.write("many,3.5,few\n")
    found = store(table_files([str(path)]), ReadOptions(), tmp_path)
    assert found.column("a").to_pylist() == [*map(str, range(4_000)), "many"]
    assert found.column("b").to_pylist()[-2:] == ["2", "3.5"]
    assert found.column("c").to_pylist()[-2:] == ["0", "few"]


def test_files_with_other_columns_are_refused(tmp_path):
    parquet.write_table(pa.table({"a": [1.0]}), tmp_path / "a.parquet")
    parquet.write_table(pa.table({"a": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(TableError, match=r"b.parquet has other columns, or other types, than"):
        StoredTable.open([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")])


def test_unlabeled_rows_of_another_table_need_memory(tmp_path, capsys):
    for name in ("a", "b"):
        parquet.write_table(table(), tmp_path / f"{name}.parquet")
    words = ["fit", str(tmp_path / "a.parquet"), "--unlabeled", str(tmp_path / "b.parquet")]
    more = ["--target", "class", "--memory", "0.000001", "--out", str(tmp_path / "out")]
    assert main([*words, *more]) == 2
    assert "--unlabeled does not support" in capsys.readouterr().err


def test_free_memory_where_nothing_tells_it(monkeypatch):
    assert reading._free_memory() > 0.0
    monkeypatch.setattr(Path, "open", lambda *_, **__: io.StringIO("MemTotal: 1 kB\n"))
    assert reading._free_memory() == reading.USUAL_MEMORY
