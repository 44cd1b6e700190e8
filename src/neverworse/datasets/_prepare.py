"""From raw data to what the paper's experiments use, and the proof that it is the same."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np

from neverworse._typing import AnyArray, Indices, Matrix, Vector


@dataclass(frozen=True)
class Facts:
    """What is known of a data set before it is read: an entry of ``paper.toml``."""

    name: str
    title: str
    about: str
    preparation: str
    citation: str
    licence: str
    file: str
    columns: Sequence[str]
    codes: Sequence[str]
    target_names: list[str]
    counts: list[int]
    n_features: int
    sha256: str
    splits_sha256: str = ""
    book_file: int | None = None  # of the sets of Chapelle, Schölkopf and Zien
    openml: int | None = None
    openml_repeats_rows: bool = False
    packages: Sequence[str] = ()
    zero_is_missing: Sequence[str] = ()
    imputed: Sequence[str] = ()
    categories: Sequence[str] = ()
    divisor: float = 1.0


def read_facts() -> dict[str, Facts]:
    """Return the data sets of the paper, in the order of its Table 1."""
    text = files("neverworse.datasets").joinpath("paper.toml").read_text("utf-8")
    entries = tomllib.loads(text)
    book = entries.pop("book")
    for name, entry in entries.items():
        if "book_file" in entry:
            columns = [f"x{i + 1}" for i in range(entry["n_features"])]
            entries[name] = {**book, "file": f"{name.lower()}.npz", "columns": columns, **entry}
    return {name: Facts(name, **entry) for name, entry in entries.items()}


@dataclass(frozen=True)
class Raw:
    """Data as a source has them, before anything is prepared."""

    values: Matrix  # one column for each of `Facts.columns`; NaN where a value is missing
    labels: AnyArray  # the raw codes of the classes, as text
    splits: dict[str, Indices] = field(default_factory=dict)  # of the book, if the source has them


@dataclass(frozen=True)
class Prepared:
    """Features and targets (0 for the first class of the paper, 1 for the second)."""

    X: Matrix
    y: Indices
    feature_names: list[str]
    splits: dict[str, Indices]


def prepare(raw: Raw, facts: Facts) -> Prepared:
    """Prepare raw data as the paper does, and refuse data that are not the paper's."""
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
    # Adding zero turns -0.0 into 0.0, which is equal but not the same bytes.
    if sha256(X.astype("<f8") + 0.0, y.astype("<i8")) != facts.sha256:
        raise ValueError("other values than the paper's: the checksum differs")
    check_splits(raw.splits, facts.splits_sha256)
    return Prepared(X, y, np.array(list(columns))[varies].tolist(), raw.splits)


def check_splits(splits: dict[str, Indices], expected: str) -> None:
    """Refuse official splits, if there are any, that are not the book's."""
    if splits and sha256(*(splits[name].astype("<i8") for name in sorted(splits))) != expected:
        raise ValueError("other splits than the book's: the checksum differs")


def sha256(*arrays: AnyArray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _columns(raw: Raw, facts: Facts) -> dict[str, Vector]:
    """Return the columns of the design matrix, as R's model.matrix makes them."""
    columns: dict[str, Vector] = {}
    for name, column in zip(facts.columns, raw.values.T / facts.divisor, strict=True):
        if name in facts.zero_is_missing:
            column = np.where(column == 0.0, np.nan, column)
        missing = np.isnan(column)
        if name in facts.categories:
            # Missing values are of the commonest level, and the first level has no indicator.
            levels, counts = np.unique(column[~missing], return_counts=True)
            filled = np.where(missing, levels[counts.argmax()], column)
            columns |= {f"{name}{level:g}": (filled == level) * 1.0 for level in levels[1:]}
        elif name in facts.imputed:
            columns[name] = np.where(missing, np.nanmedian(column), column)
        else:
            columns[name] = column
    return columns
