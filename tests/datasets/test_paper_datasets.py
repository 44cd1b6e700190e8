"""The data sets are those of the paper: read here once more, in another way, with pandas."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest

from neverworse import datasets
from neverworse.datasets import PAPER_DATASETS, load_paper_dataset
from tests.datasets.data import DATA, needs_data

# name: file, rows, columns, classes in order as (raw code, name, rows)
PAPER = {
    "BCI": ("bci.npz", 117, (-1, "-1", 200), (1, "1", 200)),
    "COIL2": ("coil2.npz", 241, (0, "0", 750), (1, "1", 750)),
    "Diabetes": ("diabetes.csv", 8, ("0", "Negative", 500), ("1", "Positive", 268)),
    "Digit1": ("digit1.npz", 241, (-1, "-1", 766), (1, "1", 734)),
    "g241c": ("g241c.npz", 241, (-1, "-1", 750), (1, "1", 750)),
    "g241d": ("g241d.npz", 241, (-1, "-1", 752), (1, "1", 748)),
    "Haberman": ("haberman.csv", 3, ("1", "Survived", 225), ("2", "Died", 81)),
    "Ionosphere": ("ionosphere.csv", 33, ("b", "Bad", 126), ("g", "Good", 225)),
    "Mammography": ("mammographic.csv", 9, ("0", "Benign", 516), ("1", "Malignant", 445)),
    "Parkinsons": ("parkinsons.csv", 22, ("0", "Healthy", 48), ("1", "Parkinsons", 147)),
    "Sonar": ("sonar.csv", 60, ("M", "Mine", 111), ("R", "Rock", 97)),
    "SPECT": ("spect.csv", 22, ("0", "Abnormal", 55), ("1", "Normal", 212)),
    "SPECTF": ("spectf.csv", 44, ("0", "Abnormal", 55), ("1", "Normal", 212)),
    "Transfusion": ("transfusion.csv", 4, ("0", "No", 570), ("1", "Yes", 178)),
    "USPS": ("usps.npz", 241, (-1, "-1", 1200), (1, "1", 300)),
    "WDBC": ("wdbc.csv", 30, ("M", "Malignant", 212), ("B", "Benign", 357)),
}
LOADERS = {name: getattr(datasets, f"load_{name.lower()}") for name in PAPER}


def prepared_with_pandas(name):
    """The paper's recipe, with pandas."""
    file, _, first, second = PAPER[name]
    if file.endswith(".npz"):
        stored = np.load(DATA / file)
        return pd.DataFrame(stored["X"]), pd.Series(stored["y"]).map({first[0]: 0, second[0]: 1})
    frame = pd.read_csv(DATA / file, dtype={"label": str})
    y = frame.pop("label").map({first[0]: 0, second[0]: 1})
    if name == "Diabetes":
        unknown = ["glucose", "diastolic_blood_pressure", "skinfold", "bmi"]
        frame[unknown] = frame[unknown].replace(0, np.nan)
        frame = frame.fillna(frame.median())
    if name == "Mammography":
        frame = frame.drop(columns="birads")
        for column in ("age", "density"):
            frame[column] = frame[column].fillna(frame[column].median())
        for column in ("shape", "margin"):
            frame[column] = frame[column].fillna(frame[column].mode()[0]).astype(int)
        frame = pd.get_dummies(
            frame, columns=["shape", "margin"], prefix_sep="", drop_first=True, dtype=float
        )
    if name == "SPECTF":
        frame = frame / 100
    return frame.loc[:, frame.nunique() > 1], y


def test_in_the_order_of_the_papers_table():
    assert tuple(PAPER) == PAPER_DATASETS


@needs_data
@pytest.mark.parametrize("name", PAPER)
def test_values(name):
    bunch = LOADERS[name](data_home=DATA, download_if_missing=False)
    file, d, first, second = PAPER[name]
    frame, y = prepared_with_pandas(name)
    assert bunch.data.dtype == np.float64
    assert bunch.data.shape == (first[2] + second[2], d)
    assert bunch.data.flags.c_contiguous
    if not file.endswith(".npz"):
        assert set(bunch.feature_names) == set(frame.columns)
        frame = frame[bunch.feature_names]
    np.testing.assert_array_equal(bunch.data, frame.to_numpy(float))
    np.testing.assert_array_equal(bunch.target, y)
    assert np.bincount(bunch.target).tolist() == [first[2], second[2]]
    assert bunch.target_names == [first[1], second[1]]
    assert len(bunch.feature_names) == d
    assert bunch.name == name
    assert bunch.source == str(DATA / file)
    assert bunch.tried == ()
    assert name in bunch.DESCR


@needs_data
def test_indicators_stand_where_their_column_stood():
    names = LOADERS["Mammography"](data_home=DATA).feature_names
    shapes, margins = [f"shape{i}" for i in (2, 3, 4)], [f"margin{i}" for i in (2, 3, 4, 5)]
    assert names == ["age", *shapes, *margins, "density"]


@needs_data
@pytest.mark.parametrize("name", ["Haberman", "g241c", "SPECTF", "WDBC"])
def test_by_name(name, monkeypatch):
    monkeypatch.setenv("NEVERWORSE_DATA", str(DATA))
    bunch = load_paper_dataset(name)
    assert bunch.name == name
    X, y = load_paper_dataset(name, return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("Habermann", "Haberman"), ("g24lc", "g241c"), ("coil", "COIL2"), ("spct", "SPECT")],
)
def test_an_unknown_name_suggests_the_nearest(asked, meant):
    with pytest.raises(ValueError, match=f"no data set '{asked}'.*Did you mean '{meant}'"):
        load_paper_dataset(asked)


@pytest.mark.parametrize("asked", ["", "iris and others", None, 7])
def test_a_name_that_is_like_none(asked):
    with pytest.raises(ValueError, match=r"There is no data set .* There are 'BCI', 'COIL2'"):
        load_paper_dataset(asked)


@pytest.mark.parametrize("name", PAPER)
def test_loaders_look_as_if_written_by_hand(name):
    load = LOADERS[name]
    assert load.__name__ == f"load_{name.lower()}"
    assert pickle.loads(pickle.dumps(load)) is load
    parameters = inspect.signature(load).parameters
    assert {p: parameters[p].default for p in parameters} == {
        "data_home": None,
        "return_X_y": False,
        "download_if_missing": True,
    }
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())
    _, d, first, second = PAPER[name]
    for part in (name, f"{first[2] + second[2]} rows", f"{d} features", "Licence", ".. [1]"):
        assert part in load.__doc__
    assert max(map(len, load.__doc__.splitlines())) <= 96
    with pytest.raises(TypeError, match="positional"):
        load("somewhere")


def test_all_is_there():
    assert len(datasets.__all__) == len(set(datasets.__all__))
    for name in datasets.__all__:
        assert hasattr(datasets, name)
        assert name.isupper() or getattr(datasets, name).__doc__
