"""Data from OpenML, through scikit-learn and a web server on this machine."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.utils import Bunch

from neverworse.datasets import DataNotFoundError, load_paper_dataset, user_cache
from neverworse.datasets import _sources as sources
from neverworse.datasets._loaders import FACTS
from neverworse.datasets._sources import find, read_csv
from tests.datasets.data import DATA, needs_data, tried

# Tumours are at OpenML as well, under names and codes of their own. scikit-learn has the same.
WDBC = Bunch(**(FACTS["WDBC"] | {"packages": []}))
AT_OPENML = [name for name, facts in FACTS.items() if "openml" in facts]
# What OpenML has as categories.
NOMINAL = {"Haberman": {1}, "SPECT": set(range(22)), "Mammography": {1, 2}}
# How OpenML names the classes, in the paper's order.
CLASSES = {
    "Diabetes": ("tested_negative", "tested_positive"),
    "Parkinsons": ("1", "2"),
    "Sonar": ("Mine", "Rock"),
    "Transfusion": ("1", "2"),
    "WDBC": ("2", "1"),
}


def tumours():
    X, y = load_breast_cancer(return_X_y=True)
    columns = {f"V{i}": None for i in range(1, 31)} | {"Class": ["1", "2"]}
    return columns, [
        [*map(repr, row), "21"[label]] for row, label in zip(X.tolist(), y, strict=True)
    ]


def test_fetched_once_and_kept(openml):
    openml.offer(1510, *tumours(), "Class")
    found = find(WDBC, None, True)
    assert found.source == "OpenML, data set 1510"
    X, y = load_breast_cancer(return_X_y=True)
    np.testing.assert_array_equal(found.data, X)
    np.testing.assert_array_equal(found.target, y)
    n_asked = len(openml.asked)
    assert n_asked >= 4
    again = find(WDBC, None, True)
    assert again.source == str(user_cache() / "wdbc.csv")
    np.testing.assert_array_equal(again.data, X)
    np.testing.assert_array_equal(again.target, y)
    assert len(openml.asked) == n_asked
    assert [path.name for path in user_cache().iterdir()] == ["wdbc.csv"]


def test_a_damaged_cache_is_replaced(openml):
    openml.offer(1510, *tumours(), "Class")
    user_cache().mkdir(parents=True)
    (user_cache() / "wdbc.csv").write_text("nonsense")
    assert "no column" in find(WDBC, None, True).tried[0][1]
    assert find(WDBC, None, True).tried == ()


def test_a_cache_that_cannot_be_written_does_not_matter(openml):
    openml.offer(1510, *tumours(), "Class")
    user_cache().parent.mkdir(parents=True)
    user_cache().write_text("a file where the folder should be")
    assert find(WDBC, None, True).source == "OpenML, data set 1510"


def refused(facts=WDBC):
    with pytest.raises(DataNotFoundError) as error:
        find(facts, None, True)
    assert not (user_cache() / facts.file).exists()
    return tried(error.value)[-1][1]


def test_what_differs_is_refused_and_not_kept(openml):
    columns, rows = tumours()
    rows[0][0] = "17.98"
    openml.offer(1510, columns, rows, "Class")
    assert "checksum differs" in refused()


def test_a_target_must_be_named(openml):
    openml.offer(1510, *tumours(), None)
    assert "class counts" in refused()


def test_other_columns(openml):
    columns, rows = tumours()
    openml.offer(1510, {"id": None, **columns}, [["7", *row] for row in rows], "Class")
    assert refused() == "31 columns, expected 30"


def test_other_class_counts(openml):
    columns, rows = tumours()
    rows[0][-1] = "1"
    openml.offer(1510, columns, rows, "Class")
    assert refused() == "class counts [358, 211], expected [212, 357]"


def test_categories_that_are_words(openml):
    columns, rows = tumours()
    columns["V1"] = ["small", "large"]
    openml.offer(1510, columns, [["small", *row[1:]] for row in rows], "Class")
    assert "could not convert string to float" in refused()


@pytest.mark.filterwarnings("ignore:A network error")
def test_nothing_there(openml, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # before scikit-learn tries again
    assert "404" in refused()


def test_numbers_among_categories(openml):
    """Missing values stay missing, and codes of categories are not taken for their values."""
    columns = {"a": ["'7'", "5", "6"], "b": None, "class": ["x", "y"]}
    rows = [["5", "1.5", "x"], ["?", "?", "y"], ["'7'", "2", "y"]]
    openml.offer(5, columns, rows, "class")
    facts = Bunch(**(WDBC | {"openml": 5, "columns": ("a", "b"), "counts": [2, 1]}))
    values, labels = sources.read_openml(facts)
    np.testing.assert_array_equal(values, [[5, 1.5], [np.nan, np.nan], [7, 2]])
    assert labels.tolist() == ["B", "M", "M"]


def test_repeated_rows_are_left_out_where_they_may_be(openml):
    columns = {"a": None, "class": ["0", "1"]}
    rows = [["3", "1"], ["2", "0"], ["3", "1"], ["1", "1"], ["2", "0"], ["3", "0"], ["4", "1"]]
    openml.offer(5, columns, rows, "class")
    facts = Bunch(
        **(WDBC | {"openml": 5, "columns": ("a",), "counts": [2, 3], "openml_repeats_rows": True})
    )
    values, labels = sources.read_openml(facts)
    assert values.ravel().tolist() == [3, 2, 1, 3, 4]
    assert labels.tolist() == ["B", "M", "B", "M", "B"]


@needs_data
@pytest.mark.parametrize("name", [name for name in AT_OPENML if name != "WDBC"])
def test_each_set_in_the_form_it_has_there(name, openml, monkeypatch):
    monkeypatch.setattr("neverworse.datasets._sources.importlib.util.find_spec", lambda name: None)
    facts = FACTS[name]
    values, labels = read_csv(DATA / facts.file, facts.columns)
    levels = CLASSES.get(name, facts.codes)
    label = dict(zip(facts.codes, levels, strict=True))

    def cell(value):
        return "?" if np.isnan(value) else f"{value:.10g}"

    rows = [
        [*map(cell, row), label[code]]
        for row, code in zip(values.tolist(), labels.tolist(), strict=True)
    ]
    if name == "SPECTF":
        rows = rows[:80] + rows[:80] + rows[80:] + rows[5:7]  # 349, of which 82 repeat others
        assert len(rows) == 349
    columns = {
        f"V{i}": sorted({row[i] for row in rows} - {"?"}) if i in NOMINAL.get(name, ()) else None
        for i in range(len(facts.columns))
    }
    openml.offer(facts.openml, columns | {"Class": sorted(levels)}, rows, "Class")
    bunch = load_paper_dataset(name)
    assert bunch.source == f"OpenML, data set {facts.openml}"
    expected = load_paper_dataset(name, data_home=DATA)
    assert expected.source == str(DATA / facts.file)
    kept = load_paper_dataset(name)
    assert kept.source == str(user_cache() / facts.file)
    for found in (bunch, kept):
        np.testing.assert_array_equal(found.data, expected.data)
        np.testing.assert_array_equal(found.target, expected.target)
        assert found.feature_names == expected.feature_names
