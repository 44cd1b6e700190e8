"""From raw data to those of the paper's experiments, with a check that they are the same."""

from __future__ import annotations

import hashlib
import tomllib
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from neverworse._typing import AnyArray, Indices, Matrix, Vector


def read_facts() -> dict[str, Bunch]:
    """Return what ``paper.toml`` says about each data set, in the order of the paper's Table 1."""
    text = files("neverworse.datasets").joinpath("paper.toml").read_text("utf-8")
    entries = tomllib.loads(text)
    defaults, book = entries.pop("defaults"), entries.pop("book")
    facts = {}
    for name, entry in entries.items():
        shared = defaults
        if "book_file" in entry:
            columns = [f"x{i + 1}" for i in range(entry["n_features"])]
            shared = {**defaults, **book, "file": f"{name.lower()}.npz", "columns": columns}
        facts[name] = Bunch(**{**shared, "name": name, **entry})
    return facts


class Raw(NamedTuple):
    """Data from a source, before anything is prepared."""

    values: Matrix  # one column for each of the columns in paper.toml; NaN for missing values
    labels: AnyArray  # the raw codes of the classes, as text
    splits: dict[str, Indices]  # official ones, if the source has them


def prepare(raw: Raw, facts: Bunch) -> Bunch:
    """Prepare raw data as the paper does; raise an error if they are not the paper's data."""
    n_columns = raw.values.shape[1]
    if n_columns != len(facts.columns):
        raise ValueError(f"{n_columns} columns, expected {len(facts.columns)}")
    unknown = sorted(set(raw.labels.tolist()) - set(facts.codes))
    if unknown:
        raise ValueError(f"label {unknown[0]!r}, expected {' or '.join(facts.codes)}")
    columns = _columns(raw, facts)
    X = np.column_stack(list(columns.values()))
    varies = (X[:1] != X).any(axis=0)
    X = np.ascontiguousarray(X[:, varies])
    y = (raw.labels == facts.codes[1]).astype(np.int64)
    shape, counts = (sum(facts.counts), facts.n_features), np.bincount(y, minlength=2).tolist()
    if X.shape != shape or counts != facts.counts:
        raise ValueError(
            f"shape {X.shape} and class counts {counts}, expected {shape} and {facts.counts}"
        )
    # Adding zero turns -0.0 into 0.0, which is equal but has other bytes.
    if sha256(X.astype("<f8") + 0.0, y.astype("<i8")) != facts.sha256:
        raise ValueError("other values than the paper's: the checksum differs")
    check_splits(raw.splits, facts.splits_sha256)
    names = np.array(list(columns))[varies].tolist()
    return Bunch(data=X, target=y, feature_names=names, **raw.splits)


def check_splits(splits: dict[str, Indices], expected: str) -> None:
    """Raise an error if there are official splits and they are not the book's."""
    if splits and sha256(*(splits[name].astype("<i8") for name in sorted(splits))) != expected:
        raise ValueError("other splits than the book's: the checksum differs")


def sha256(*arrays: AnyArray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _columns(raw: Raw, facts: Bunch) -> dict[str, Vector]:
    """Return the columns of the design matrix, as R's model.matrix makes them."""
    columns: dict[str, Vector] = {}
    for name, column in zip(facts.columns, raw.values.T / facts.divisor, strict=True):
        if name in facts.zero_is_missing:
            column = np.where(column == 0.0, np.nan, column)
        missing = np.isnan(column)
        if name in facts.categories:
            # Missing values get the most frequent level, and the first level has no indicator.
            levels, counts = np.unique(column[~missing], return_counts=True)
            filled = np.where(missing, levels[counts.argmax()], column)
            columns |= {f"{name}{level:g}": (filled == level) * 1.0 for level in levels[1:]}
        elif name in facts.imputed:
            columns[name] = np.where(missing, np.nanmedian(column), column)
        else:
            columns[name] = column
    return columns
