"""Prediction of tables a batch at a time: the same as all at once, and what it notices."""

from __future__ import annotations

import datetime as dt
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from sklearn.linear_model import RidgeClassifier

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.tables import (
    Noticed,
    ReadOptions,
    TableClassifier,
    TableError,
    id_texts,
    outputs,
    predict_batches,
    reading,
    table_files,
    write_csv,
    write_json_lines,
    write_parquet,
)
from neverworse.tables.reading import formats


def frame(n=500, seed=0):
    rng = np.random.default_rng(seed)
    moment = dt.datetime(2024, 1, 1)
    return pd.DataFrame(
        {
            "id": [f"{k:05d}" for k in range(n)],
            "age": rng.normal(50, 10, n).round(3),
            "count": rng.integers(0, 50, n),
            "gap": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(3)),
            "flag": rng.random(n) < 0.5,
            "code": rng.choice(["01", "1", "02"], n),
            "city": rng.choice(np.array(["x", "y, z", None], dtype=object), n),
            "visit": [moment + dt.timedelta(hours=int(h)) for h in rng.integers(0, 9000, n)],
            "time": [dt.time(int(h), int(m)) for h, m in rng.integers(0, 24, (n, 2))],
        }
    )


TABLE = frame()
LABELS = np.where(TABLE["age"] > 55, "old", np.where(TABLE["age"] < 45, "young", "middle"))


@pytest.fixture(scope="module", params=[2, 3])
def model(request):
    labels = np.where(LABELS == "middle", "old", LABELS) if request.param == 2 else LABELS
    known = np.where(np.arange(len(TABLE)) < 60, labels, None)
    classifier = ProjectedLeastSquaresClassifier(alpha=1.0, missing_label=np.nan)
    features = TABLE.drop(columns="id")
    return TableClassifier(classifier, categorical=["code"]).fit(features, known)


def written(path, table):
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    if path.suffix == ".csv":
        csv.write_csv(arrow, path)
    elif path.suffix == ".parquet":
        parquet.write_table(arrow, path, row_group_size=100)
    elif path.suffix == ".feather":
        feather.write_feather(arrow, path)
    else:
        plain = table.assign(visit=table["visit"].astype(str), time=table["time"].astype(str))
        plain.to_json(path, orient="records", lines=True)
    return str(path)


def predicted(model, *paths, noticed=None, missing=(), **options):
    noticed = Noticed() if noticed is None else noticed
    files = table_files([str(path) for path in paths])
    batches = predict_batches(model, files, ReadOptions(missing=missing), noticed, **options)
    return pa.concat_tables(list(batches)).to_pandas()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_batches_give_the_same_as_all_rows_at_once(model, tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(reading, "BATCH_ROWS", 64)
    monkeypatch.setattr(formats, "BLOCK_BYTES", 4096)
    noticed = Noticed()
    path = written(tmp_path / f"t{suffix}", TABLE)
    found = predicted(model, path, noticed=noticed, id_name="id", probabilities=True)
    assert list(found)[:3] == ["id", "prediction", "score"]
    assert found["id"].tolist() == TABLE["id"].tolist()
    assert found["prediction"].tolist() == model.predict(TABLE).tolist()
    shares = model.predict_proba(TABLE)
    np.testing.assert_allclose(found.iloc[:, 3:], shares, rtol=0, atol=1e-9)
    decision = model.decision_function(TABLE)
    best = 0.5 + (decision.max(axis=1) if decision.ndim == 2 else np.abs(decision))
    np.testing.assert_allclose(found["score"], best, rtol=0, atol=1e-9)
    assert noticed.n_rows == len(TABLE)
    assert noticed.classes == found["prediction"].value_counts().to_dict()
    assert list(noticed.sentences()) == []


def test_scores_that_could_be_probabilities_are_the_probabilities(model, tmp_path):
    """Where all scores of a row lie in [0, 1], nothing has to be brought into range."""
    found = predicted(model, written(tmp_path / "t.csv", TABLE), probabilities=True)
    shares = found.filter(like="probability: ").to_numpy()
    inside = (shares > 0.0).all(axis=1)
    assert inside.sum() > 20
    np.testing.assert_allclose(found["score"][inside], shares.max(axis=1)[inside], atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_models_without_probabilities_are_those_of_their_classes(n_classes):
    features = TABLE[["age", "count"]].to_numpy()
    labels = np.digitize(TABLE["age"], [45, 55][: n_classes - 1])
    classifier = RidgeClassifier().fit(features, labels)
    codes, scores, shares = outputs(classifier, features)
    decisions = classifier.decision_function(features)
    expected = np.abs(decisions) if n_classes == 2 else decisions.max(axis=1)
    np.testing.assert_allclose(scores, expected)
    assert codes.tolist() == classifier.predict(features).tolist()
    assert shares is None


def test_rows_are_numbered_through_all_files(model, tmp_path):
    first, second = frame(30, 1), frame(20, 2)
    paths = [
        written(tmp_path / "a.csv", first),
        written(tmp_path / "b.parquet", second.assign(id=range(20))),
    ]
    both = pd.concat([first, second])
    found = predicted(model, *paths)
    assert found["row"].tolist() == list(range(1, 51))
    assert found["prediction"].tolist() == model.predict(both).tolist()
    named = predicted(model, *paths, id_name="id")
    assert named["id"].tolist() == [*first["id"], *map(str, range(20))]


@pytest.mark.parametrize("name", ["prediction", "score", "row"])
def test_ids_under_the_name_of_a_result(model, tmp_path, name):
    path = written(tmp_path / "t.csv", TABLE.rename(columns={"id": name}))
    found = predicted(model, path, id_name=name)
    assert list(found) == ["row", "prediction", "score"]
    assert found["row"].tolist() == TABLE["id"].tolist()


def test_other_columns_and_new_levels_are_noticed(model, tmp_path):
    table = TABLE.assign(extra=1, more="x", target="?")
    table.loc[:3, "city"] = "new"
    table.loc[5, "code"] = "3"
    table.loc[9, "code"] = None
    noticed = Noticed(expected=("target",))
    predicted(model, written(tmp_path / "t.csv", table), noticed=noticed, id_name="id")
    assert noticed.extra == ("extra", "more")
    assert noticed.new_levels == {"city": {"new": 4}, "code": {"3": 1, "(missing)": 1}}
    first, second, third = noticed.sentences()
    assert first == "Ignored 2 columns: 'extra', 'more'."
    assert second.startswith("Column 'code' has values that the model has not seen, in 2 rows: ")
    assert "'new'" in third


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".jsonl"])
def test_columns_that_are_missing(model, tmp_path, suffix):
    path = written(tmp_path / f"t{suffix}", TABLE.rename(columns={"count": "Counts"}))
    with pytest.raises(TableError, match=r"lacks 1 column .*: 'count'.*Did you mean 'Counts'\?"):
        predicted(model, path)
    path = written(tmp_path / f"u{suffix}", TABLE)
    with pytest.raises(TableError, match=r"no column 'idd' for --id. Did you mean 'id'\?"):
        predicted(model, path, id_name="idd")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("age", r"'age'.* should hold numbers, but has '\?'"),
        ("gap", r"'gap'.* should hold numbers, but has '\?'"),
        ("visit", r"'visit'.* should hold dates \(2026-01-31\), but "),
    ],
)
def test_columns_of_another_type(model, tmp_path, suffix, column, said):
    table = TABLE.astype({column: object})
    table[column] = table[column].astype(str).where(table.index != 7, "?")
    path = written(tmp_path / f"t{suffix}", table)
    with pytest.raises(TableError, match=said):
        predicted(model, path)
    if column != "visit" or suffix == ".csv":  # else "?" was noticed as a type, not as a word
        assert len(predicted(model, path, missing=("?", "nan"))) == len(TABLE)


def test_a_date_without_the_zone_that_it_had(tmp_path):
    stamps = TABLE["visit"].dt.tz_localize("UTC")
    table = pd.DataFrame({"when": stamps, "n": TABLE["age"]})
    model = TableClassifier().fit(table, np.where(TABLE.index < 60, LABELS, None))
    (tmp_path / "t.csv").write_text("when,n\n2024-05-01 10:00:00,3\n")
    with pytest.raises(TableError, match=r"'when' should hold dates .*, but has '20"):
        predicted(model, tmp_path / "t.csv")
    (tmp_path / "u.csv").write_text("when,n\n2024-05-01 10:00:00Z,3\n")
    assert len(predicted(model, tmp_path / "u.csv")) == 1


# Windows may have no database of time zones: every zone is like one that there is not, even UTC.
NOWHERE = pa.timestamp("us", "Nowhere/City")
MOMENTS = pa.chunked_array([pa.array([0, None, 1_700_000_000_000_000]).cast(NOWHERE)])
IN_UTC = ["1970-01-01 00:00:00.000000Z", None, "2023-11-14 22:13:20.000000Z"]


def test_moments_need_no_database_of_time_zones():
    visit = pa.array(TABLE["visit"].dt.floor("90D")).cast(pa.timestamp("us"))
    zoned = visit.cast(pa.int64()).cast(NOWHERE)
    known = np.where(np.arange(len(TABLE)) < 60, LABELS, None)
    tables = [pa.table({"age": TABLE["age"], "visit": when}) for when in (visit, zoned)]
    plain, found = (TableClassifier(categorical=["visit"]).fit(t, known) for t in tables)
    assert found.predict(tables[1]).tolist() == plain.predict(tables[0]).tolist()


def test_moments_are_written_in_utc():
    assert id_texts(MOMENTS).to_pylist() == [text or "" for text in IN_UTC]
    file = io.BytesIO()
    write_csv(iter([pa.table({"a": MOMENTS, "b": [1, 2, 3]})]), file)
    expected = f'"a","b"\n"{IN_UTC[0]}",1\n,2\n"{IN_UTC[2]}",3\n'
    assert file.getvalue().decode() == expected


def test_moments_of_one_file_and_text_of_another():
    tables = [pa.table({"a": MOMENTS}), pa.table({"a": ["soon"]})]
    assert reading.stacked(tables)["a"].to_pylist() == [*IN_UTC, "soon"]


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_dates_are_read_again_to_the_digit_that_they_were_written_to(tmp_path, unit):
    moments = pa.array(TABLE["visit"]).cast(pa.timestamp(unit))
    table = pa.table({"age": TABLE["age"], "visit": moments})
    known = np.where(np.arange(len(TABLE)) < 60, LABELS, None)
    fitted = TableClassifier().fit(table, known)
    csv.write_csv(table, tmp_path / "t.csv")
    found = predicted(fitted, tmp_path / "t.csv")
    assert found["prediction"].tolist() == fitted.predict(table).tolist()


def test_two_columns_of_a_name(model, tmp_path):
    path = tmp_path / "t.csv"
    TABLE.rename(columns={"id": "age"}).to_csv(path, index=False)
    with pytest.raises(TableError, match=r"several columns with the same name: 'age'"):
        predicted(model, path)


def test_missing_values_everywhere(model, tmp_path):
    empty = pd.DataFrame(None, TABLE.index, TABLE.columns, dtype=object).assign(id=TABLE["id"])
    (tmp_path / "t.csv").write_text(empty.to_csv(index=False))
    found = predicted(model, tmp_path / "t.csv")
    assert len(found) == len(TABLE)
    assert found["score"].nunique() == 1
    assert np.isfinite(found["score"]).all()


@pytest.mark.parametrize(
    ("write", "read"),
    [
        (write_csv, pd.read_csv),
        (write_parquet, pd.read_parquet),
        (write_json_lines, lambda file: pd.read_json(file, lines=True)),
    ],
)
def test_writers(write, read):
    batches = [
        pa.table({"row": [1, 2], "p": ['a "b",\n', "ä"], "s": [0.1, -1e-300]}),
        pa.table({"row": [3], "p": ["x"], "s": [1.0]}),
    ]
    file = io.BytesIO()
    write(iter(batches), _Open(file))
    expected = pa.concat_tables(batches).to_pandas()
    pd.testing.assert_frame_equal(read(io.BytesIO(file.getvalue())), expected)
    with pytest.raises(TableError, match="has no rows"):
        write(iter([]), _Open(io.BytesIO()))


class _Open(io.BufferedIOBase):
    """A file that stays open, as standard output has to."""

    def __init__(self, file):
        self.write = file.write

    def writable(self):
        return True
