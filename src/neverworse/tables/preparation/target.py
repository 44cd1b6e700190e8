"""The target of a table: which rows are labeled, and what their classes are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from neverworse._typing import AnyArray, Indices, Mask, Vector
from neverworse._words import count
from neverworse.tables._errors import TableError, short
from neverworse.tables.preparation.values import coded, find_column
from neverworse.tables.reading.options import spells_number

MAX_CLASSES = 200
MIN_ROWS_FOR_SHARE = 10
USUAL_MARKERS = ("-1", "?", "unknown", "unlabeled", "unlabelled", "missing")


@dataclass(frozen=True)
class Target:
    """The labels of a table."""

    name: str  # of the column
    classes: AnyArray  # in sorted order: whole numbers if all are, text otherwise
    codes: Vector  # the position of each row's class among them, NaN where there is no label

    @property
    def labeled(self) -> Mask:
        """Which rows have a label."""
        return ~np.isnan(self.codes)

    @property
    def class_names(self) -> list[str]:
        """The classes as text."""
        return [str(value) for value in self.classes.tolist()]

    def code_of(self, text: str) -> int | None:
        """Return the position of a class that somebody wrote down; None if there is none."""
        written = text.strip()
        if self.classes.dtype.kind == "i" and spells_number(written):
            value = float(written)
            written = str(int(value)) if value.is_integer() else written
        return self.class_names.index(written) if written in self.class_names else None

    def counts(self) -> list[int]:
        """Count the labeled rows of each class."""
        counted = np.bincount(self.codes[self.labeled].astype(int), minlength=len(self.classes))
        return [int(count) for count in counted]


def read_target(table: pa.Table, name: str, markers: Collection[str] | None = None) -> Target:
    """Find the labels of a table.

    `markers` mark unlabeled rows besides empty cells. Without, values that usually do are not taken
    for classes.
    """
    column = find_column(table, name, "target")
    if not table.num_rows:
        raise TableError("The table has names of columns, but no rows.")
    texts, codes = label_texts(column, markers or ())
    classes = _sorted_classes({text for text in texts if text is not None})
    number = {str(value): float(k) for k, value in enumerate(classes.tolist())}
    position = np.array(
        [np.nan if text is None else number[_spelling(text, classes)] for text in texts]
    )
    target = Target(name, classes, position[codes])
    _check(target, suspect=markers is None)
    return target


def label_texts(
    column: pa.ChunkedArray, markers: Collection[str]
) -> tuple[list[str | None], Indices]:
    """Return the different labels of a column, None where there is none, and each row's number."""
    marked = {"", *(marker.strip() for marker in markers)}
    values, codes = coded(column)
    used = np.zeros(len(values), bool)
    used[codes] = True
    stripped = (
        text.strip() if text is not None and used[k] else "" for k, text in enumerate(values)
    )
    return [None if text in marked else text for text in stripped], codes


def count_labels(column: pa.ChunkedArray, markers: Collection[str]) -> int:
    """Count the rows with a label."""
    texts, codes = label_texts(column, markers)
    return int(np.count_nonzero(np.array([text is not None for text in texts])[codes]))


def _sorted_classes(found: Collection[str]) -> AnyArray:
    """Sort classes: numbers by their size, whole ones as numbers, and else as text."""
    if found and all(spells_number(text) for text in found):
        values = {float(text) for text in found}
        if all(value.is_integer() and abs(value) < 2.0**53 for value in values):
            return np.array(sorted(int(value) for value in values))
        return np.array(sorted(found, key=float), dtype=object)
    return np.array(sorted(found), dtype=object)


def _spelling(text: str, classes: AnyArray) -> str:
    return str(int(float(text))) if classes.dtype.kind == "i" else text


def _check(target: Target, suspect: bool) -> None:
    n_labeled = int(target.labeled.sum())
    n_rows, n_classes = len(target.codes), len(target.classes)
    name = target.name
    suspicious = [v for v in target.class_names if v.casefold() in USUAL_MARKERS]
    if not n_labeled:
        problem = f"No row has a label: column {name!r} is empty."
        fix = "Label some rows of every class, or choose another column: --target COLUMN."
    elif n_classes == 1:
        only = short(target.class_names[0])
        problem = f"All labels in column {name!r} are {only!r}, in {count(n_labeled, 'row')}."
        fix = (
            "There must be rows of at least two classes; where a class goes without saying, write "
            "it down."
        )
    elif n_classes > MAX_CLASSES or (n_labeled >= MIN_ROWS_FOR_SHARE and n_classes > n_labeled / 2):
        kind = "a number" if all(map(spells_number, target.class_names)) else "an id or a text"
        problem = (
            f"Column {name!r} has {n_classes:,} different values in {n_labeled:,} labeled rows: it "
            f"looks like {kind}, not like a class."
        )
        fix = "Choose another target, or group its values."
    elif suspicious and suspect and n_labeled == n_rows:
        problem = f"Column {name!r} has no empty cell, but the value {suspicious[0]!r}."
        fix = (
            f"If it marks rows without a label: --missing-label={suspicious[0]}. If it is a class, "
            "say that only empty cells do: --missing-label=''."
        )
    else:
        return
    raise TableError(problem, fix, code="label", column=name)
