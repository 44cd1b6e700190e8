"""Labels of a table: classes, unlabeled rows, and targets that are none."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from neverworse.tables import TableError, count_labels, read_target


def target(values, markers=None):
    column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    return read_target(pa.table({"y": column, "x": range(len(column))}), "y", markers)


@pytest.mark.parametrize(
    ("values", "classes", "codes"),
    [
        (["b", None, "a", "b"], ["a", "b"], [1, None, 0, 1]),
        ([" b", "a ", "", "  ", "a"], ["a", "b"], [1, 0, None, None, 0]),
        ([1, 0, None, 1], [0, 1], [1, 0, None, 1]),
        ([1.0, 0.0, float("nan"), None], [0, 1], [1, 0, None, None]),
        (["1.0", "0", None, "1"], [0, 1], [1, 0, None, 1]),
        (["10", "9", None, "9"], [9, 10], [1, 0, None, 0]),
        (["0.5", "10", None, "9"], ["0.5", "9", "10"], [0, 2, None, 1]),
        ([True, None, False], ["false", "true"], [1, None, 0]),
        (
            [dt.date(2024, 1, 2), None, dt.date(2024, 1, 1)],
            ["2024-01-01", "2024-01-02"],
            [1, None, 0],
        ),
        (pa.array(pd.Categorical(["b", None, "a"], ["c", "b", "a"])), ["a", "b"], [1, None, 0]),
        (pa.chunked_array([["b"], [None, "a"], []]).dictionary_encode(), ["a", "b"], [1, None, 0]),
    ],
)
def test_classes_and_unlabeled_rows(values, classes, codes):
    found = target(values)
    assert found.classes.tolist() == classes
    assert [None if np.isnan(code) else code for code in found.codes] == codes
    assert found.counts() == [codes.count(k) for k in range(len(classes))]
    assert found.class_names == [str(name) for name in classes]


def test_markers():
    found = target(["a", "?", "b", " -1 ", "b"], markers=("?", "-1"))
    assert found.classes.tolist() == ["a", "b"]
    assert found.labeled.tolist() == [True, False, True, False, True]
    assert target([1, -1, 0], markers=("-1",)).labeled.tolist() == [True, False, True]
    assert target([1, -1, 0], markers=("",)).classes.tolist() == [-1, 0, 1]
    assert count_labels(pa.chunked_array([["a", "?", None, " "]]), ("?",)) == 1


@pytest.mark.parametrize("marker", ["-1", "?", "unknown", "Unlabeled", "missing"])
def test_a_class_that_looks_like_no_label(marker):
    with pytest.raises(TableError) as caught:
        target(["a", marker, "b"])
    assert str(caught.value) == (
        f"Column 'y' has no empty cell, but the value {marker!r}. If it marks unlabeled "
        f"rows: --missing-label={marker}. If it is a class, and only empty cells are unlabeled: "
        "--missing-label=''."
    )
    assert len(target(["a", marker, "b", None]).classes) == 3  # there are empty cells: it is one


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([None, None], "No row has a label: column 'y' is empty"),
        (pa.nulls(3), "No row has a label"),
        (["", " "], "No row has a label"),
        (["a", "a", None], "All labels in column 'y' are 'a', in 2 rows."),
        (
            [f"P{k}" for k in range(30)],
            "30 different values in 30 labeled rows: it looks like an id",
        ),
        ([k / 7 for k in range(30)], "it looks like a number, not a class"),
        ([k for k in range(300) for _ in range(3)], "300 different values in 900 labeled rows"),
    ],
)
def test_no_target(values, said):
    with pytest.raises(TableError, match=said):
        target(values)


def test_a_column_that_is_not_there():
    table = pa.table({"Diagnosis ": ["a"], "age": [1]})
    with pytest.raises(TableError, match=r"no column 'diagnosis' for --target. Did you mean 'Diag"):
        read_target(table, "diagnosis")
    with pytest.raises(TableError, match=r"There are 'Diagnosis ', 'age'."):
        read_target(table, "zzzzz")
    one = pa.table({"a;b;c": ["1;2;3"]})
    with pytest.raises(TableError, match=r"the whole table is one column.*--delimiter ';'"):
        read_target(one, "b")
