"""The 16 data sets of Krijthe and Loog (2017), prepared as in the paper.

The data are not part of the project. They are read from a folder with one file for each set: CSV
files with a column "label" as UCI codes it and empty cells for missing values, and NPZ files with
"X" and "y" for the sets of the book of Chapelle, Schölkopf and Zien (2006).
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

# In the order of the paper: the file, and which of its labels the paper codes 1.
SETS = {
    "Haberman": ("haberman.csv", "1"),
    "Ionosphere": ("ionosphere.csv", "b"),
    "Parkinsons": ("parkinsons.csv", "0"),
    "Diabetes": ("diabetes.csv", "0"),
    "Sonar": ("sonar.csv", "M"),
    "SPECT": ("spect.csv", "0"),
    "SPECTF": ("spectf.csv", "0"),
    "Transfusion": ("transfusion.csv", "0"),
    "WDBC": ("wdbc.csv", "M"),
    "Mammography": ("mammographic.csv", "0"),
    "Digit1": ("digit1.npz", -1),
    "USPS": ("usps.npz", -1),
    "COIL2": ("coil2.npz", 0),
    "BCI": ("bci.npz", -1),
    "g241c": ("g241c.npz", -1),
    "g241d": ("g241d.npz", -1),
}
NAMES = tuple(SETS)
VARIABLE = "NEVERWORSE_DATA"


def load(name, data_home):
    """Return features and labels of a data set.

    Columns are neither scaled nor centred; constant columns are left out.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    data_home : path or None
        The folder of the data.

    Returns
    -------
    X : array of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        1 for the class that the paper codes 1, else 0.
    """
    if name not in SETS:
        raise ValueError(f"There is no data set {name!r}, only {', '.join(NAMES)}.")
    file, coded_one = SETS[name]
    path = _find(file, data_home)
    if path.suffix == ".npz":
        with np.load(path) as stored:
            X, labels = stored["X"], stored["y"]
    else:
        columns = _read(path)
        labels = columns.pop("label")
        X = np.column_stack(PREPARE.get(name, _numbers)(columns))
    return X[:, np.ptp(X, axis=0) > 0.0], (labels == coded_one).astype(np.int64)


def _find(file, data_home):
    if not data_home:
        raise FileNotFoundError(
            "The data sets are not part of neverworse. Pass --data-home, or set the environment "
            f"variable {VARIABLE}, to the folder that has {file} and the others."
        )
    path = Path(data_home) / file
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file {file} in {data_home}. Pass --data-home, or set the environment "
            f"variable {VARIABLE}, to the folder that has it."
        )
    return path


def _read(path):
    with path.open(newline="") as lines:
        header, *rows = csv.reader(lines)
    return dict(zip(header, np.array(rows).T, strict=True))


def _number(column):
    return np.where(column == "", "nan", column).astype(np.float64)


def _numbers(columns):
    return [_number(column) for column in columns.values()]


def _with_median(column):
    return np.where(np.isnan(column), np.nanmedian(column), column)


def _diabetes(columns):
    """Take the median where a zero means that nothing was measured (but not for insulin)."""
    unknown_if_zero = ("glucose", "diastolic_blood_pressure", "skinfold", "bmi")
    numbers = {name: _number(column) for name, column in columns.items()}
    for name in unknown_if_zero:
        column = numbers[name]
        numbers[name] = _with_median(np.where(column == 0.0, np.nan, column))
    return list(numbers.values())


def _mammography(columns):
    """Leave out the radiologist's assessment; shape and margin are categories."""
    shape, margin = _dummies(columns["shape"]), _dummies(columns["margin"])
    age, density = (_with_median(_number(columns[name])) for name in ("age", "density"))
    return [age, *shape, *margin, density]


def _dummies(column):
    """Return indicators of all levels but the first; missing values are of the commonest level."""
    levels, counts = np.unique(column[column != ""], return_counts=True)
    filled = np.where(column == "", levels[counts.argmax()], column)
    return [(filled == level).astype(np.float64) for level in levels[1:]]


def _spectf(columns):
    return [column / 100.0 for column in _numbers(columns)]


PREPARE = {"Diabetes": _diabetes, "Mammography": _mammography, "SPECTF": _spectf}
