"""From raw data to what the paper's experiments use, and the proof that it is the same."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

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
    columns: tuple[str, ...]
    classes: tuple[tuple[str, str], tuple[str, str]]
    counts: tuple[int, int]
    n_features: int
    sha256: str
    splits_sha256: str = ""
    book_file: int | None = None
    openml: int | None = None
    openml_repeats_rows: bool = False
    packages: tuple[str, ...] = ()
    zero_is_missing: tuple[str, ...] = ()
    imputed: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    divisor: float = 1.0

    @classmethod
    def of(cls, name: str, entry: dict[str, Any], book: dict[str, Any]) -> Facts:
        if "book_file" in entry:
            columns = [f"x{i + 1}" for i in range(entry["n_features"])]
            entry = {**book, "file": f"{name.lower()}.npz", "columns": columns, **entry}
        frozen: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()
        }
        return cls(name=name, **frozen)

    @property
    def n_rows(self) -> int:
        return sum(self.counts)

    @property
    def codes(self) -> list[str]:
        return [code for code, _ in self.classes]

    @property
    def target_names(self) -> list[str]:
        return [name for _, name in self.classes]

    @property
    def is_book_set(self) -> bool:
        """Whether the set is one of the book of Chapelle, Schölkopf and Zien."""
        return self.book_file is not None


def read_facts() -> dict[str, Facts]:
    """Return the data sets of the paper, in the order of its Table 1."""
    text = files("neverworse.datasets").joinpath("paper.toml").read_text("utf-8")
    entries = tomllib.loads(text)
    book = entries.pop("book")
    return {name: Facts.of(name, entry, book) for name, entry in entries.items()}


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
    for name, column in columns.items():
        if not np.isfinite(column).all():
            raise ValueError(f"a value of column {name!r} is missing or not finite")
    X = np.column_stack(list(columns.values()))
    varies = np.ptp(X, axis=0) > 0.0 if len(X) else np.ones(X.shape[1], bool)
    X = np.ascontiguousarray(X[:, varies])
    y = (raw.labels == facts.codes[1]).astype(np.int64)
    if X.shape != (facts.n_rows, facts.n_features):
        raise ValueError(
            f"{X.shape[0]} rows with {X.shape[1]} features, where "
            f"{facts.n_rows} with {facts.n_features} are expected"
        )
    counts = tuple(np.bincount(y, minlength=2).tolist())
    if counts != facts.counts:
        raise ValueError(f"{counts} rows of the classes, where {facts.counts} are expected")
    if checksum(X, y) != facts.sha256:
        raise ValueError("other values than the paper's: the checksum differs")
    check_splits(raw.splits, facts.splits_sha256)
    names = [name for name, kept in zip(columns, varies, strict=True) if kept]
    return Prepared(X, y, names, raw.splits)


def check_splits(splits: dict[str, Indices], expected: str) -> None:
    """Refuse official splits, if there are any, that are not the book's."""
    if splits and sha256(*(splits[name].astype("<i8") for name in sorted(splits))) != expected:
        raise ValueError("other splits than the book's: the checksum differs")


def checksum(X: Matrix, y: Indices) -> str:
    """Return the SHA-256 of features and targets, the same on every machine."""
    # Adding zero makes -0.0 to 0.0, which are equal but not the same bytes.
    return sha256(np.asarray(X, dtype="<f8") + 0.0, np.asarray(y, dtype="<i8"))


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
        if name in facts.categories:
            columns |= _indicators(name, column)
        elif name in facts.imputed and not np.isnan(column).all():
            columns[name] = np.where(np.isnan(column), np.nanmedian(column), column)
        else:
            columns[name] = column
    return columns


def _indicators(name: str, column: Vector) -> dict[str, Vector]:
    """Return indicators of all levels but the first; missing values are of the commonest level."""
    levels, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    if len(levels) == 0:
        raise ValueError(f"no values in column {name!r}")
    filled = np.where(np.isnan(column), levels[counts.argmax()], column)
    return {f"{name}{level:g}": (filled == level).astype(np.float64) for level in levels[1:]}
