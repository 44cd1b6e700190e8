"""Data as their sources have them, before anything is prepared; files of such data."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from neverworse._files import write_whole
from neverworse._typing import AnyArray, Indices, Matrix
from neverworse.datasets._facts import Facts

LABEL = "label"
SPLITS = ("labeled_idx_10", "labeled_idx_100")


@dataclass(frozen=True)
class Raw:
    """The raw data of one set.

    Attributes
    ----------
    values : array of shape (n_rows, n_columns)
        One column for each of `Facts.columns`; NaN where a value is missing.
    labels : array of str of shape (n_rows,)
        The raw codes of the classes.
    splits : dict
        The official splits of the book, if the source has them.
    """

    values: Matrix
    labels: AnyArray
    splits: dict[str, Indices] = field(default_factory=dict)


def read_file(path: Path, facts: Facts) -> Raw:
    """Read the file of a data folder."""
    if not path.is_file():
        raise FileNotFoundError("no such file")
    return read_npz(path) if facts.is_book_set else read_csv(path, facts.columns)


def read_csv(path: Path, columns: tuple[str, ...]) -> Raw:
    """Read columns by their names, in whatever order they are; empty cells are missing values."""
    with path.open(newline="", encoding="utf-8") as lines:
        header, *rows = list(csv.reader(lines)) or [[]]
    missing = [name for name in (*columns, LABEL) if name not in header]
    if missing:
        raise ValueError(f"no column {missing[0]!r}")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ValueError(f"line {number} has {len(row)} cells, the first line {len(header)}")
    cells = np.array(rows, dtype=np.str_).reshape(len(rows), len(header))
    features = cells[:, [header.index(name) for name in columns]]
    values = np.where(features == "", "nan", features).astype(np.float64)
    return Raw(values, cells[:, header.index(LABEL)])


def write_csv(path: Path, raw: Raw, columns: tuple[str, ...]) -> None:
    """Write what `read_csv` reads, or nothing at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: file.write(_as_csv(raw, columns).encode()))


def read_npz(path: Path) -> Raw:
    """Read the arrays X and y, and the splits if they are there."""
    # A pickle could run anything; no array here needs one. The file is opened here, since NumPy
    # leaves a damaged one open.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        splits = {name: stored[name].astype(np.intp) for name in SPLITS if name in stored}
        values = np.asarray(stored["X"], dtype=np.float64)
        return Raw(values, stored["y"].astype(np.int64).astype(np.str_), splits)


def _as_csv(raw: Raw, columns: tuple[str, ...]) -> str:
    def cell(value: float) -> str:
        if np.isnan(value):
            return ""
        return str(int(value)) if value.is_integer() else repr(value)

    lines = [",".join((*columns, LABEL))]
    for row, label in zip(raw.values.tolist(), raw.labels.tolist(), strict=True):
        lines.append(",".join([*map(cell, row), label]))
    return "\n".join(lines) + "\n"
