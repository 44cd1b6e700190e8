"""Features of a table, against an independent construction with pandas and scikit-learn."""

from __future__ import annotations

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from neverworse.tables import (
    TableClassifier,
    TableError,
    TablePreparation,
    load_model,
    save_model,
)
from neverworse.tables import preparation as module


def frame(n=400, seed=0):
    """Columns of all kinds, with gaps."""
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 900, n)
    table = pd.DataFrame(
        {
            "number": rng.normal(50.0, 10.0, n),
            "whole": rng.integers(0, 9, n),
            "gap": np.where(rng.random(n) < 0.2, np.nan, rng.exponential(size=n)),
            "flag": rng.random(n) < 0.3,
            "city": rng.choice(["A", "B", "C", "D"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "town": rng.choice(np.array(["u", "v", None], dtype=object), n, p=[0.5, 0.4, 0.1]),
            "day": [dt.date(2024, 1, 1) + dt.timedelta(int(k)) for k in days],
        }
    )
    table.loc[rng.random(n) < 0.1, "day"] = None
    return table


def by_hand(table):
    """The same features, made by ColumnTransformer."""
    days = pd.to_datetime(table["day"]).to_numpy().astype("datetime64[s]").astype(float) / 86_400
    days[pd.isna(table["day"])] = np.nan
    parts = pd.DataFrame({"day": days})
    for name, period in (("year", 365.2425), ("week", 7.0)):
        parts[f"{name} cosine"] = np.cos(2.0 * np.pi * days / period)
        parts[f"{name} sine"] = np.sin(2.0 * np.pi * days / period)
    numbers = table[["number", "whole", "gap", "flag"]].astype(float)
    coded = {}
    for name in ("city", "town"):
        values = table[name].astype(object).where(table[name].notna(), "missing value")
        coded[name] = values.map(values.value_counts().rank(ascending=False, method="first"))
    every = pd.concat([numbers, parts, pd.DataFrame(coded)], axis=1)
    scaled = make_pipeline(StandardScaler(), SimpleImputer(strategy="constant", fill_value=0.0))
    chosen = ColumnTransformer(
        [
            ("numbers", scaled, [*numbers, *parts]),
            ("gaps", "passthrough", []),
            ("categories", OneHotEncoder(drop="first", sparse_output=False), list(coded)),
        ]
    )
    features = chosen.fit_transform(every)
    n_numbers = numbers.shape[1] + parts.shape[1]
    gaps = every[["gap", "day"]].isna().to_numpy(float)
    return np.column_stack([features[:, :n_numbers], gaps, features[:, n_numbers:]])


@pytest.mark.parametrize("seed", range(3))
def test_features_are_those_of_scikit_learn(seed):
    table = frame(seed=seed)
    features = TablePreparation().fit_transform(table)
    np.testing.assert_allclose(features, by_hand(table), atol=1e-9)


def test_names_of_features():
    preparation = TablePreparation().fit(frame())
    assert preparation.get_feature_names_out().tolist() == [
        *("number", "whole", "gap", "flag", "day (day)", "day (year, cosine)", "day (year, sine)"),
        *("day (week, cosine)", "day (week, sine)", "gap is missing", "day is missing"),
        *("city = B", "city = C", "city = D", "town = v", "town is missing"),
    ]
    assert preparation.feature_columns_ == [
        *("number", "whole", "gap", "flag", *["day"] * 5, "gap", "day", *["city"] * 3),
        *["town"] * 2,
    ]


def test_libraries_agree():
    table = frame()
    found = TablePreparation().fit_transform(table)
    polars = pl.DataFrame(table.to_dict("list"), strict=False)
    for same in (pa.Table.from_pandas(table, preserve_index=False), polars):
        np.testing.assert_allclose(TablePreparation().fit_transform(same), found, atol=1e-12)


def test_the_index_of_pandas_is_no_feature():
    table = frame().sample(frac=1.0, random_state=0)
    preparation = TablePreparation().fit(table)
    assert "__index_level_0__" not in preparation.feature_names_in_
    stored = pa.Table.from_pandas(table)  # as in Parquet
    assert stored.column_names[-1] == "__index_level_0__"
    plan = TablePreparation().fit(stored).plans_[-1]
    assert (plan.kind, plan.note[:16]) == ("dropped", "numbers the rows")


def test_measurements_without_a_name_are_a_feature():
    table = pa.table({"": np.random.default_rng(0).normal(size=30), "a": np.arange(30.0) ** 2})
    assert TablePreparation().fit(table).number_names_ == ["", "a"]


def test_batches_and_order_of_columns_make_no_difference(monkeypatch):
    table = frame()
    preparation = TablePreparation().fit(table)
    whole = preparation.transform(table)
    parts = [preparation.transform(table.iloc[k : k + 37]) for k in range(0, len(table), 37)]
    np.testing.assert_array_equal(np.vstack(parts), whole)
    np.testing.assert_array_equal(preparation.transform(table[table.columns[::-1]]), whole)
    extra = table.assign(extra="x")
    np.testing.assert_array_equal(preparation.transform(extra), whole)
    monkeypatch.setattr(module, "BATCH_ROWS", 50)
    np.testing.assert_array_equal(preparation.transform(table), whole)
    again = TablePreparation().fit(table).transform(table)
    np.testing.assert_allclose(again, whole, atol=1e-12)


def test_saved_and_loaded(tmp_path):
    table = frame()
    labels = np.where(np.arange(len(table)) < 40, np.where(table["flag"], "a", "b"), None)
    model = TableClassifier().fit(table.drop(columns="flag"), labels)
    save_model(model, tmp_path / "m.skops", facts={})
    loaded = load_model(tmp_path / "m.skops").model
    strange = frame(50, seed=9)
    strange.loc[:9, "city"] = "new"
    strange.loc[5:20, ["number", "whole", "town", "day"]] = None
    for rows in (table, strange):
        np.testing.assert_array_equal(loaded.decision_function(rows), model.decision_function(rows))
    names = loaded.preparation_.get_feature_names_out()
    assert names.tolist() == model.preparation_.get_feature_names_out().tolist()
    assert clone(model.preparation_).get_params() == model.preparation_.get_params()


def test_new_levels():
    table = pa.table({"a": ["x"] * 5 + ["y"] * 3, "n": np.arange(8.0) ** 2})
    preparation = TablePreparation().fit(table)
    new = pa.table({"a": ["x", "y", "z", None, "z"], "n": [0.0] * 5})
    features = preparation.transform(new)
    assert features[:, 1].tolist() == [0, 1, 0, 0, 0]  # as the most frequent one
    assert preparation.new_levels(new) == {"a": {"z": 2, "(missing)": 1}}
    assert preparation.new_levels(table) == {}
    spaced = pa.table({"a": ["z", " z", "z "], "n": [0.0] * 3})
    assert preparation.new_levels(spaced) == {"a": {"z": 3}}


def test_many_levels():
    rng = np.random.default_rng(0)
    levels = np.repeat([f"L{k:03d}" for k in range(60)], np.arange(60, 0, -1))
    table = pa.table({"a": rng.permutation(levels)})
    preparation = TablePreparation().fit(table)
    names = preparation.get_feature_names_out().tolist()
    assert names == [*(f"a = L{k:03d}" for k in range(1, 30)), "a = (other)"]
    features = preparation.transform(pa.table({"a": ["L000", "L001", "L029", "L045", "new", None]}))
    assert features.sum(axis=1).tolist() == [0, 1, 1, 1, 1, 1]
    assert features.argmax(axis=1)[1:].tolist() == [0, 28, 29, 29, 29]


@pytest.mark.parametrize("n_levels", [2, 30, 31, 32, 40_000])
def test_numbers_of_levels(n_levels):
    levels = [f"L{k}" for k in range(n_levels)]
    table = pa.table({"a": levels * 3})
    features = TablePreparation().fit_transform(table)
    assert features.shape[1] == min(n_levels - 1, 30)
    assert set(features.sum(axis=1)) == {0.0, 1.0}


def one_column(values, **options):
    """A column beside one that is always used."""
    rng = np.random.default_rng(0)
    column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    table = pa.table({"a": column, "other": rng.normal(size=len(column))})
    preparation = TablePreparation(**options).fit(table)
    return preparation, preparation.plans_[0], preparation.transform(table)


TWELVE = range(12)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([k % 2 == 0 for k in TWELVE], [1.0, 0.0] * 6),
        (pa.array([k**2 for k in TWELVE], pa.uint8()), [k**2 for k in TWELVE]),
        (pa.array([k**2 for k in TWELVE], pa.uint64()), [k**2 for k in TWELVE]),
        (pa.array([np.float16(k / 2) for k in TWELVE], pa.float16()), [k / 2 for k in TWELVE]),
        (pa.array([k / 2 for k in TWELVE], pa.float32()), [k / 2 for k in TWELVE]),
        ([decimal.Decimal(k) / 4 for k in TWELVE], [k / 4 for k in TWELVE]),
        ([dt.timedelta(hours=k) for k in TWELVE], [k / 24 for k in TWELVE]),
        ([dt.time(k, 30) for k in TWELVE], [3600 * k + 1800 for k in TWELVE]),
        (pa.array(range(12), pa.time32("s")), list(TWELVE)),
        (pa.array(range(12), pa.time64("ns")), [k * 1e-9 for k in TWELVE]),
        ([f"{k}.5" for k in TWELVE], [k + 0.5 for k in TWELVE]),
        ([f" {k}e2" for k in TWELVE], [k * 100 for k in TWELVE]),
    ],
)
def test_what_can_be_counted_is_a_number(values, expected):
    preparation, plan, features = one_column(values)
    assert plan.kind == "number"
    back = features[:, 0] * preparation.units()[0] + preparation.offsets()[0]
    np.testing.assert_allclose(back, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ([dt.date(2024, 1, 1 + k // 4) for k in TWELVE], 1),
        ([dt.date(2024, 1, 1 + k) for k in TWELVE], 3),
        ([dt.date(2000 + k, 1, 1) for k in TWELVE], 5),
        ([dt.datetime(2024, 1, 1, k) for k in TWELVE], 3),
        ([dt.datetime(2000 + k, 1, 1, k, 7) for k in TWELVE], 7),
        ([dt.datetime(2000 + k, 1, 1, k, tzinfo=dt.UTC) for k in TWELVE], 7),
        (pa.array([10**9 * k for k in TWELVE], pa.timestamp("s")), 7),
        (pa.array([86_400_000 * k for k in TWELVE], pa.date64()), 3),
        (pa.array([dt.date(1700, 1, 1), *[dt.date(2000, 1, 1)] * 11]), 5),
    ],
)
def test_dates(values, parts):
    preparation, plan, features = one_column(values)
    assert plan.kind == "date"
    assert features.shape[1] == parts + 1
    days = features[:, 1] * preparation.units()[1] + preparation.offsets()[1]
    column = values if isinstance(values, pa.Array) else pa.array(values)
    expected = column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / 8.64e10
    np.testing.assert_allclose(days, expected, atol=1e-6)


def test_rhythms_that_the_dates_do_not_have():
    """Rounding errors are no features."""
    mondays = [dt.datetime(2024, 1, 1, 8, 20) + dt.timedelta(7 * k) for k in range(60)]
    _, plan, features = one_column(mondays)
    assert plan.parts == ("day", "year, cosine", "year, sine")
    assert plan.note == "days, and place in the year"
    assert np.abs(features).max() < 5.0


def test_dates_with_and_without_zone_or_time_agree():
    """A day is a day, in whatever type."""
    days = [dt.date(2024, 1, 1) + dt.timedelta(10 * k) for k in range(40)]
    preparation = TablePreparation().fit(pa.table({"a": days}))
    expected = preparation.transform(pa.table({"a": days}))
    column = pa.array(days)
    kinds = (pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.date64())
    for same in (*(column.cast(kind) for kind in kinds), column.cast(pa.string())):
        np.testing.assert_array_equal(preparation.transform(pa.table({"a": same})), expected)


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([None] * 12, "is empty"),
        ([np.nan] * 12, "is empty"),
        (pa.nulls(12), "is empty"),
        ([7.0] * 12, "has the same value in all rows"),
        ([True] * 12, "has the same value in all rows"),
        (["x"] * 12, "has the same value in all rows"),
        ([dt.date(2024, 1, 1)] * 12, "has the same value in all rows"),
        ([decimal.Decimal(1)] * 12, "has the same value in all rows"),
        ([dt.timedelta(1)] * 12, "has the same value in all rows"),
        (list(TWELVE), "numbers the rows (to keep it in the results: --id)"),
        (
            [k + 1000 for k in reversed(TWELVE)],
            "numbers the rows (to keep it in the results: --id)",
        ),
        (
            np.random.default_rng(0).permutation(12),
            "numbers the rows (to keep it in the results: --id)",
        ),
        ([f"text {k}" for k in TWELVE], "text, with 12 different values in 12 rows"),
        ([{"b": k} for k in TWELVE], "holds values of type struct<b: int64>"),
        ([[k] for k in TWELVE], "holds values of type list<item: int64>"),
        ([b"x"] * 12, "holds values of type binary"),
    ],
)
def test_columns_without_use(values, note):
    _, plan, features = one_column(values)
    assert (plan.kind, plan.note) == ("dropped", note)
    assert features.shape == (12, 1)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([k * k for k in TWELVE], "number"),
        ([k // 2 for k in TWELVE], "number"),
        (["1"] * 6 + ["x"] * 6, "category"),
        ([1.0, None] * 6, "number"),
        (["x", None] * 6, "category"),
        (pa.array(list("abc") * 4).dictionary_encode(), "category"),
        (pd.array(pd.Categorical(["1", "2", "3"] * 4)), "category"),
        (pd.array(pd.Categorical([1, 2, 3] * 4)), "category"),
        (pa.array(["1", "2", "3"] * 4).dictionary_encode(), "number"),  # as text is read from CSV
        (pa.array([f"t{k}" for k in range(10)] + ["t0", "t1"]), "category"),
    ],
)
def test_kinds(values, kind):
    assert one_column(pa.array(values) if not hasattr(values, "type") else values)[1].kind == kind


def test_dates_in_another_order_are_read():
    days = [f"{1 + k}.1.2024" for k in TWELVE]
    preparation, plan, features = one_column(days)
    assert (plan.kind, plan.read_as) == ("date", "dates day.month.year")
    native, _, expected = one_column([dt.date(2024, 1, 1 + k) for k in TWELVE])
    np.testing.assert_allclose(features, expected, atol=1e-12)
    new = {"a": ["15.1.2024"], "other": [0.0]}
    same = {"a": [dt.date(2024, 1, 15)], "other": [0.0]}
    np.testing.assert_allclose(preparation.transform(new), native.transform(same), atol=1e-12)
    assert one_column(["1-2", "x"] * 6)[1].note == "2 levels, compared with '1-2'"


@pytest.mark.parametrize(
    ("values", "look"),
    [
        (
            [5, 6, 7, -999, 8, -999],
            "2 rows have -999, far from all other values. If it marks missing",
        ),
        ([5.5, 6.0, 99999.0, 99999.0], "2 rows have 99999, far from all other values."),
        ([1.0, None, None, None, 2.0], "60.0 % of the rows have no value. Find out why"),
        ([f"L{k}" for k in range(40)] * 3, "40 different values: the 30 most frequent ones get"),
        ([f"text {k}" for k in TWELVE], "12 different texts in 12 rows, so they are not used."),
        (
            list(TWELVE),
            "It numbers the rows (to keep it in the results: --id), so it is not used.",
        ),
        ([7.0] * 12, "It has the same value in all rows, so it is not used."),
        ([None] * 12, "It is empty, so it is not used."),
        ([[k] for k in TWELVE], "Values of type list<item: int64> are not used"),
    ],
)
def test_what_people_should_look_at(values, look):
    assert one_column(values)[1].look.startswith(look)


@pytest.mark.parametrize(
    "values",
    [
        [-999, -998, -997, 5, 900],  # one of many
        [98, 99, 99, 97, 96],  # near the others
        [1.0, None, 2.0, 3.0],
        ["a", "b", "a"],
        [dt.date(2024, 1, 1 + k) for k in TWELVE],
    ],
)
def test_what_nobody_needs_to_look_at(values):
    assert one_column(values)[1].look == ""


def test_zip_codes_without_zeros_are_named():
    codes = np.random.default_rng(0).choice([80331, 50667, 60311], 40)
    for name in ("zip", "Zip", "customer_zip", "postal code", "PLZ", "PostCode", "code postal"):
        table = pa.table({name: codes, "n": np.arange(40.0) ** 2})
        assert "--categorical" in TablePreparation().fit(table).plans_[0].look, name
    table = pa.table({"zipper": codes, "n": np.arange(40.0) ** 2})
    assert TablePreparation().fit(table).plans_[0].look == ""


def test_mixed_values():
    with pytest.raises(TableError) as caught:
        one_column([*map(str, TWELVE), "?", "unknown", "?"])
    assert str(caught.value) == (
        "Column 'a' has numbers such as '0', but also '?', 'unknown' in 3 of its rows, first in "
        "row 13. If that marks missing values: --missing '?'; if the column is a category: "
        "--categorical 'a'; otherwise, write all of them in one notation and unit."
    )


def test_decimal_commas():
    preparation, plan, _ = one_column([f"{k},5" for k in TWELVE])
    assert plan.read_as == "numbers, decimal ','"
    assert preparation.offsets()[0] == pytest.approx(6.0)


def test_categories_and_columns_to_leave_out():
    preparation, plan, _ = one_column([1, 2, 3] * 4, categorical=["a"])
    assert (plan.kind, plan.levels) == ("category", ("1", "2", "3"))
    assert preparation.transform({"a": [1.0, 2.0, 3.0, 2.5], "other": [0.0] * 4})[
        :, 1:
    ].tolist() == [
        [0, 0],
        [1, 0],
        [0, 1],
        [0, 0],
    ]
    assert one_column([1, 2] * 6, drop=["a"])[1].note == "as requested"
    for option in ("categorical", "drop"):
        with pytest.raises(TableError, match=rf"no column 'othr' for --{option}. Did you mean"):
            one_column([1, 2] * 6, **{option: ["othr"]})


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_numbers(value):
    with pytest.raises(TableError, match=r"is infinite, or too large to be squared, in row 5"):
        one_column([*np.arange(4.0), value, 3.0, 7.0])
    with pytest.raises(TableError, match=r"is infinite, or too large to be squared, in row 1"):
        one_column([value] * 6)


def test_huge_numbers():
    values = np.array([1e300, -1e300, 3.0, 5.0])
    with pytest.raises(TableError, match="too large to be squared"):
        one_column(values)
    _, _, features = one_column(values * 1e-160)
    assert np.isfinite(features).all()
    np.testing.assert_allclose(features[:, 0].std(), 1.0)


def test_numbers_far_from_zero_keep_their_digits():
    values = 1e9 + np.random.default_rng(0).normal(size=1000)
    preparation, _, features = one_column(values)
    np.testing.assert_allclose(features[:, 0], (values - values.mean()) / values.std(), atol=1e-5)
    assert preparation.units()[0] == pytest.approx(values.std(), rel=1e-6)


def test_a_value_that_is_no_number_later():
    preparation, _, _ = one_column([*np.arange(12.0) ** 2])
    good = {"a": ["1", None, "3.5"], "other": [0.0] * 3}
    assert np.isfinite(preparation.transform(good)).all()
    with pytest.raises(TableError, match=r"'a' should hold numbers, but has 'x' in row 2"):
        preparation.transform({"a": ["1", "x", "3.5"], "other": [0.0] * 3})
    with pytest.raises(TableError, match=r"'a' should hold numbers, but holds .* timestamp"):
        preparation.transform({"a": [dt.datetime(2024, 1, 1)] * 3, "other": [0.0] * 3})
    dates, _, _ = one_column([dt.date(2024, 1, 1 + k) for k in TWELVE])
    with pytest.raises(TableError, match=r"dates \(2026-01-31\), but has 'x' in row 1"):
        dates.transform({"a": ["x", "y"], "other": [0.0] * 2})


def test_columns_that_are_missing_later():
    preparation = TablePreparation().fit(frame())
    table = frame().rename(columns={"number": "Number"})
    with pytest.raises(TableError) as caught:
        preparation.transform(table)
    assert str(caught.value) == (
        "The table lacks 1 column that the model was fitted to: 'number'. Add what is missing, "
        "with empty cells for unknown values. Did you mean 'Number'?"
    )
    with pytest.raises(TableError, match=r"lacks 2 columns .*: 'number', 'whole'. Add what"):
        preparation.transform(frame().drop(columns=["number", "whole"]))


def test_a_thousand_columns(monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 1_000))
    wide = pa.table(list(values.T), [f"c{k}" for k in range(1_000)])
    np.testing.assert_allclose(TablePreparation().fit_transform(wide).std(axis=0), 1.0)
    monkeypatch.setattr("neverworse.tables.preparation.MAX_FEATURES", 999)
    with pytest.raises(TableError, match=r"1,000 columns would make 1,000 features, more than 999"):
        TablePreparation().fit(wide)


@pytest.mark.parametrize("wrong", [np.eye(3), [[1, 2]], "text"])
def test_what_is_no_table(wrong):
    with pytest.raises(TypeError, match="must be a table with named columns"):
        TablePreparation().fit(wrong)


def test_a_data_frame_with_values_of_several_types():
    table = pd.DataFrame({"a": [1, "x", dt.date(2024, 1, 1)], "b": [1.0, 2.0, 4.0]})
    with pytest.raises(TableError, match=r"'a' has values of several types.*Convert it") as caught:
        TablePreparation().fit(table)
    assert caught.value.column == "a"


@pytest.mark.parametrize("large", [2**70, 10**400])
@pytest.mark.parametrize("form", [dict, lambda table: pd.DataFrame(table, dtype=object)])
def test_integers_beyond_64_bits(form, large):
    with pytest.raises(TableError, match=r"'a' has values .* beyond 64 bits\. Convert it"):
        TablePreparation().fit(form({"a": [1, large, 3], "b": [1.0, 2.0, 4.0]}))


def test_nothing_to_learn_from():
    with pytest.raises(TableError, match=r"There is no column to learn from: 'a' \(is empty\)"):
        TablePreparation().fit(pa.table({"a": [None, None]}))
    with pytest.raises(TableError, match="has no rows"):
        TablePreparation().fit(pa.table({"a": pa.array([], pa.float64())}))


cells = {
    "number": st.none() | st.floats(-1e9, 1e9) | st.just(float("nan")),
    "whole": st.none() | st.integers(-5, 5),
    "text": st.none() | st.sampled_from(["a", "b", "", "ä☃", "-"]),
    "flag": st.none() | st.booleans(),
    "day": st.none() | st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
}
rows = st.lists(st.fixed_dictionaries(cells), min_size=2, max_size=40)


@given(rows, rows)
@settings(max_examples=60, deadline=None)
def test_any_table_is_prepared_or_refused(some, others):
    kinds = [pa.float64(), pa.int64(), pa.string(), pa.bool_(), pa.date32()]
    schema = pa.schema(list(zip(cells, kinds, strict=True)))
    table, other = (pa.Table.from_pylist(part, schema) for part in (some, others))
    try:
        preparation = TablePreparation().fit(table)
    except TableError as error:
        assert "no column to learn from" in str(error)  # noqa: PT017
        return
    features = preparation.transform(table)
    assert np.isfinite(features).all()
    assert features.shape == (len(some), len(preparation.get_feature_names_out()))
    scaled = features[:, : len(preparation.scaler_.scale_)]
    assert np.abs(scaled.mean(axis=0)).max(initial=0.0) < 1e-6
    assert np.isfinite(preparation.transform(other)).all()


@pytest.mark.parametrize(
    ("numbers", "flagged"),
    [
        (range(10_007, 99_000, 617), True),  # five digits, under any name
        (range(1_000, 9_990, 61), False),  # too short to be told from a measurement
        (range(9_001, 99_000, 617), False),  # of several lengths
        ([*range(10_007, 99_000, 617), 10_007], False),  # not all different
        (range(20_260_101, 20_260_129), False),  # days, which have their own words
        (range(10_007, 16_000, 617), True),
        (range(10_007, 15_000, 617), False),  # too few rows
    ],
)
def test_numbers_that_look_like_ids_are_to_be_looked_at(numbers, flagged):
    values = np.random.default_rng(0).permutation(list(numbers))
    prepared = TablePreparation().fit({"visit": values, "x": np.arange(len(values)) % 3.0})
    said = "The numbers differ from row to row. If they only identify the rows: --id 'visit'"
    assert prepared.plans_[0].kind == ("number" if len(values) != 28 else "dropped")
    assert prepared.plans_[0].look.startswith(said) == flagged
