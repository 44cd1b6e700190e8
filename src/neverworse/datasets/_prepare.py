"""From raw data to what the paper's experiments use, and the proof that it is the same.

References
----------
.. [1] Krijthe, J. H. and Loog, M. (2017). Projected estimators for robust semi-supervised
       classification. Machine Learning 106, 993-1008.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.datasets._facts import Facts
from neverworse.datasets._raw import Raw

ZERO_IS_UNKNOWN = ("glucose", "diastolic_blood_pressure", "skinfold", "bmi")
CATEGORIES = ("shape", "margin")


@dataclass(frozen=True)
class Prepared:
    """Features and targets of the paper.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
    y : array of int of shape (n_rows,)
        0 for the first class of the paper, 1 for the second.
    feature_names : list of str
    splits : dict
        The official splits of the book, if the source has them.
    """

    X: Matrix
    y: Indices
    feature_names: list[str]
    splits: dict[str, Indices]


def prepare(raw: Raw, facts: Facts) -> Prepared:
    """Prepare raw data as the paper does, and refuse data that are not the paper's."""
    if raw.values.ndim != 2 or raw.values.shape[1] != len(facts.columns):
        raise ValueError(
            f"values of shape {raw.values.shape}, where {len(facts.columns)} columns are expected"
        )
    if raw.labels.shape != raw.values.shape[:1]:
        raise ValueError(f"{len(raw.values)} rows, but labels of shape {raw.labels.shape}")
    unknown = sorted(set(raw.labels.tolist()) - set(facts.codes))
    if unknown:
        raise ValueError(f"label {unknown[0]!r}, where {' or '.join(facts.codes)} is expected")
    columns = _columns(raw, facts)
    names = list(columns)
    X = np.column_stack(list(columns.values()))
    for name, column in columns.items():
        if not np.isfinite(column).all():
            raise ValueError(f"a value of column {name!r} is missing or not finite")
    varies = np.ptp(X, axis=0) > 0.0 if len(X) else np.ones(X.shape[1], bool)
    names = [name for name, kept in zip(names, varies, strict=True) if kept]
    y = (raw.labels == facts.codes[1]).astype(np.int64)
    prepared = Prepared(np.ascontiguousarray(X[:, varies]), y, names, raw.splits)
    _check(prepared, facts)
    return prepared


def checksum(X: Matrix, y: Indices) -> str:
    """Return the SHA-256 of features and targets, the same on every machine."""
    # Adding zero makes -0.0 to 0.0, which are equal but not the same bytes.
    return sha256(np.asarray(X, dtype="<f8") + 0.0, np.asarray(y, dtype="<i8"))


def splits_checksum(splits: dict[str, Indices]) -> str:
    """Return the SHA-256 of official splits."""
    return sha256(*(np.asarray(splits[name], dtype="<i8") for name in sorted(splits)))


def sha256(*arrays: AnyArray) -> str:
    """Return the SHA-256 of shapes and values of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _check(prepared: Prepared, facts: Facts) -> None:
    if prepared.X.shape != (facts.n_rows, facts.n_features):
        raise ValueError(
            f"{prepared.X.shape[0]} rows with {prepared.X.shape[1]} features, where "
            f"{facts.n_rows} with {facts.n_features} are expected"
        )
    counts = tuple(np.bincount(prepared.y, minlength=2).tolist())
    if counts != facts.counts:
        raise ValueError(f"{counts} rows of the classes, where {facts.counts} are expected")
    if checksum(prepared.X, prepared.y) != facts.sha256:
        raise ValueError("other values than the paper's: the checksum differs")
    if prepared.splits and splits_checksum(prepared.splits) != facts.splits_sha256:
        raise ValueError("other splits than the book's: the checksum differs")


def _columns(raw: Raw, facts: Facts) -> dict[str, Vector]:
    """Return the columns of the design matrix, as R's model.matrix makes them."""
    columns: dict[str, Vector] = {}
    for name, column in zip(facts.columns, raw.values.T, strict=True):
        if facts.name == "Diabetes" and name in ZERO_IS_UNKNOWN:
            columns[name] = _with_median(np.where(column == 0.0, np.nan, column))
        elif facts.name == "Mammography" and name in CATEGORIES:
            columns |= _indicators(name, column)
        elif facts.name == "Mammography":
            columns[name] = _with_median(column)
        elif facts.name == "SPECTF":
            columns[name] = column / 100.0
        else:
            columns[name] = column
    return columns


def _with_median(column: Vector) -> Vector:
    known = column[~np.isnan(column)]
    return np.where(np.isnan(column), np.median(known) if len(known) else np.nan, column)


def _indicators(name: str, column: Vector) -> dict[str, Vector]:
    """Return indicators of all levels but the first; missing values are of the commonest level."""
    levels, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    if len(levels) == 0:
        raise ValueError(f"no values in column {name!r}")
    filled = np.where(np.isnan(column), levels[counts.argmax()], column)
    return {f"{name}{level:g}": (filled == level).astype(np.float64) for level in levels[1:]}
