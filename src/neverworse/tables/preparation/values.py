"""Columns of a table: found by their names, as NumPy arrays, and as labels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neverworse._typing import AnyArray, Indices, Mask, Vector
from neverworse._words import count, cropped, nearest, quoted
from neverworse.tables._errors import TableError
from neverworse.tables.preparation.notation import DAY, NUMBERS, Reading
from neverworse.tables.reading import StoredTable
from neverworse.tables.reading.formats import (
    DELIMITERS,
    as_strings,
    decoded,
    is_text,
    spells_number,
    written,
)

PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
# Features of dates: the days since 1970, and points on circles for the time of year, week and day.
CIRCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}
DATE_PARTS = ("day", *(f"{name}, {wave}" for name in CIRCLES for wave in ("cosine", "sine")))
MAX_CLASSES = 200
MIN_ROWS_FOR_SHARE = 10
USUAL_MARKERS = ("-1", "?", "unknown", "unlabeled", "unlabelled", "missing")


def as_table(X: Any) -> Any:
    """Return X as a PyArrow table, without copying it; a `StoredTable` is returned as it is."""
    if isinstance(X, pa.Table | StoredTable):
        return X
    try:
        if hasattr(X, "iloc"):  # of pandas
            return pa.Table.from_pandas(X, preserve_index=False)
        if hasattr(X, "to_arrow"):  # of polars, whose first versions have no stream
            return X.to_arrow()
        if hasattr(X, "__arrow_c_stream__") or isinstance(X, dict | pa.RecordBatch):
            return pa.table(X)
    except (pa.ArrowException, OverflowError) as error:
        for name in X:
            try:
                pa.array(list(X[name]), from_pandas=True)
            except (pa.ArrowException, OverflowError):
                problem = f"Column {name!r} has values of several types, or beyond 64 bits."
                fix = "Convert it to numbers or text."
                raise TableError(problem, fix, column=str(name)) from None
        raise TableError(f"X cannot be a table: {error}.", code="column") from error
    libraries = "(of pandas, polars or PyArrow)"
    raise TypeError(f"X must be a table with named columns {libraries}, not {type(X).__name__}.")


def find_column(table: pa.Table, name: str, option: str) -> pa.ChunkedArray:
    """Return a column that an option of the command line names, if there is one."""
    check_known(table.column_names, [name], option)
    return table.column(name)


def check_known(names: Sequence[str], wanted: Collection[str], option: str) -> None:
    """Raise if there is no column of a name that an option of the command line gives."""
    for name in wanted:
        if name not in names:
            problem, fix = f"There is no column {name!r} for --{option}", nearest(name, names)
            marks = [mark for mark in DELIMITERS if len(names) == 1 and mark in names[0]]
            if marks:
                problem += f": the whole table is one column, named {cropped(names[0])!r}"
                fix = f"Name the delimiter: --delimiter {' or '.join(map(repr, marks))}."
            raise TableError(f"{problem}.", fix, code="column", column=name)


def check_columns(names: Sequence[str], needed: Sequence[str]) -> None:
    """Raise if a column is missing that features are made of."""
    found = set(names)
    missing = [name for name in needed if name not in found]
    if missing:
        extra = [name for name in names if name not in needed]
        hint = nearest(missing[0], names) if len(missing) == 1 and extra else ""
        lacks = f"lacks {count(len(missing), 'column')} that the model was fitted to"
        fix = f"Add what is missing, with empty cells for unknown values. {hint}".rstrip()
        problem = f"The table {lacks}: {quoted(missing)}."
        raise TableError(problem, fix, code="column", column=missing[0])


def is_number(kind: pa.DataType) -> bool:
    """Whether values can be taken as numbers: durations and times of day can, too."""
    names = ("integer", "floating", "decimal", "boolean", "duration", "time")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def is_date(kind: pa.DataType) -> bool:
    """Whether values are dates, with or without a time."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


class Column:
    """A column of a table, and its distinct values."""

    def __init__(self, name: str, data: pa.ChunkedArray) -> None:
        self.name, self.data = name, data
        self.n_missing = int(data.null_count)
        if pa.types.is_floating(data.type):
            self.n_missing += pc.sum(pc.is_nan(data.cast(pa.float64()))).as_py() or 0
        self.n_known = len(data) - self.n_missing

    @cached_property
    def _distinct(self) -> tuple[pa.Array, Indices]:
        return distinct(self.data)

    @cached_property
    def values(self) -> pa.Array:
        """The distinct values, as text."""
        return self._distinct[0].cast(pa.string())

    @property
    def codes(self) -> Indices:
        """Which of the values each row has; one more than the last for missing ones."""
        return self._distinct[1]

    def n_rows(self, mask: Mask) -> int:
        """Count the rows with one of some values."""
        return int(np.count_nonzero(np.append(mask, False)[self.codes]))

    def first(self, mask: Mask) -> int:
        """Return the first row with one of some values, counted from 0."""
        return int(np.argmax(np.append(mask, False)[self.codes]))

    def value(self, mask: Mask) -> str:
        """Return the first of some values."""
        return cropped(str(self.values[int(self.codes[self.first(mask)])]))

    def error(self, problem: str, fix: str) -> TableError:
        return TableError(f"Column {self.name!r} has {problem}.", fix, column=self.name)


def numbers(
    name: str, column: pa.ChunkedArray, reading: Reading = NUMBERS, first_row: int = 0
) -> Vector:
    """Return a column as floats, NaN where it has none: dates and durations in days, times in s."""
    if is_text(column.type):
        texts = Column(name, column)
        values = reading.parse(texts.values)
        wrong = np.isnan(values)
        if wrong.any():
            text = texts.value(wrong)
            fix = correction(text, reading.decimal if reading.kind == "number" else None)
            raise _wrong(name, reading, f"has {text!r}", fix, first_row + texts.first(wrong))
        return np.append(values, np.nan)[texts.codes]
    column = decoded(column)
    kind = column.type
    if not (is_date if reading.kind == "date" else is_number)(kind):
        fix = "Convert them, or write the table as CSV."
        raise _wrong(name, reading, f"holds values of type {kind}.", fix)
    if is_date(kind):
        return _floats(column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())) / (DAY * 1e6)
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        counts = _floats(column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()))
        return counts / (PER_SECOND[kind.unit] * (DAY if pa.types.is_duration(kind) else 1.0))
    return _floats(column.cast(pa.float64(), safe=False))


def date_part(stamps: Vector, part: str) -> Vector:
    """Return a part, of `DATE_PARTS`, of days since 1970."""
    circle, _, wave = part.partition(", ")
    if not wave:
        return stamps
    angles = 2.0 * np.pi * stamps / CIRCLES[circle]
    return np.cos(angles) if wave == "cosine" else np.sin(angles)


def row_weights(name: str, column: pa.ChunkedArray) -> Vector:
    """Return a column of numbers as weights of rows, if they can be."""
    weights = numbers(name, column)
    wrong = ~(weights >= 0.0) | np.isinf(weights)
    if wrong.any():
        row = int(np.argmax(wrong))
        value = "empty" if np.isnan(weights[row]) else f"{weights[row]:g}"
        problem = f"The weight in row {row + 1:,} (column {name!r}) is {value}."
        fix = "Weights must not be negative, infinite or missing."
        raise TableError(problem, fix, column=name)
    return weights


def coded(column: pa.ChunkedArray) -> tuple[list[str | None], Indices]:
    """Return distinct values as text without spaces around it, None last, and rows' positions."""
    values, codes = distinct(column)
    return [*(text and text.strip() for text in as_text(values)), None], codes


def distinct(column: pa.ChunkedArray) -> tuple[pa.Array, Indices]:
    """Return the distinct values of a column, and which of them each row has; the last has none."""
    if not pa.types.is_dictionary(column.type):
        try:
            column = column.dictionary_encode()
        except pa.ArrowNotImplementedError:
            problem = f"Labels or categories cannot be of type {cropped(str(column.type))}."
            raise TableError(problem, "Leave the column out: --drop COLUMN.") from None
    merged = column.unify_dictionaries().combine_chunks()
    if isinstance(merged, pa.ChunkedArray):
        merged = pa.concat_arrays(merged.chunks)
    values, codes = merged.dictionary, merged.indices
    if codes.null_count:
        codes = pc.fill_null(codes.cast(pa.int64()), len(values))
    codes = codes.to_numpy(zero_copy_only=False)
    used = np.bincount(codes, minlength=len(values) + 1)[:-1] > 0
    if used.all():
        return values, codes
    positions = np.append(np.cumsum(used) - 1, np.count_nonzero(used))
    return values.filter(pa.array(used)), positions[codes]


def as_text(values: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Return values as people write them: whole numbers without decimals, NaN as None."""
    if pa.types.is_floating(values.type):
        return [None if v is None or v != v else written(v) for v in values.to_pylist()]
    return as_strings(values).to_pylist()


def correction(text: str, decimal: str | None) -> str:
    """Return what to do about a cell, in which a number would have this decimal mark."""
    other = {".": ",", ",": "."}.get(decimal or "")
    if other and text.count(other) == 1 and spells_number(text.replace(other, ".")):
        return f"If {other!r} is the decimal mark of this table: --decimal {other!r}."
    return f"Correct it; if it marks missing values: --missing {text!r}."


def _wrong(name: str, reading: Reading, found: str, fix: str, row: int | None = None) -> TableError:
    is_iso = reading.kind == "date" and not reading.order
    words = "dates (2026-01-31)" if is_iso else reading.words
    problem = f"Column {name!r} should hold {words}, but {found}"
    return TableError(problem, fix, column=name, row=row)


def _floats(column: pa.ChunkedArray) -> Vector:
    one = column.num_chunks == 1  # which need not be copied
    floats: AnyArray = column.chunk(0).to_numpy(zero_copy_only=False) if one else column.to_numpy()
    return floats.astype(np.float64, copy=False)


# Labels


@dataclass(frozen=True)
class Target:
    """The labels of a table."""

    name: str  # of the column
    classes: AnyArray  # in sorted order: whole numbers if all are, text otherwise
    codes: Vector  # the position of each row's class among them, NaN where there is no label

    @property
    def labeled(self) -> Mask:
        return ~np.isnan(self.codes)

    @property
    def class_names(self) -> list[str]:
        return [str(value) for value in self.classes.tolist()]

    def code_of(self, text: str) -> int | None:
        """Return the position of a class that somebody wrote down; None if there is none."""
        return self._positions.get(
            written(text) if self.classes.dtype.kind == "i" else text.strip()
        )

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.class_names)}

    def counts(self) -> list[int]:
        counted = np.bincount(self.codes[self.labeled].astype(int), minlength=len(self.classes))
        return counted.tolist()


def read_target(table: pa.Table, name: str, markers: Collection[str] | None = None) -> Target:
    """Return the labels of a table; without `markers`, no class may look like one."""
    column = find_column(table, name, "target")
    if not table.num_rows:
        raise TableError("The table has column names, but no rows.")
    texts, codes = label_texts(column, markers or ())
    classes = _sorted_classes({text for text in texts if text is not None})
    known = Target(name, classes, np.empty(0))
    positions = [np.nan if text is None else known.code_of(text) for text in texts]
    target = Target(name, classes, np.array(positions, np.float64)[codes])
    _check(target, suspect=markers is None)
    return target


def label_texts(
    column: pa.ChunkedArray, markers: Collection[str]
) -> tuple[list[str | None], Indices]:
    """Return the distinct labels of a column, None for unlabeled, and each row's position."""
    marked = {"", *(marker.strip() for marker in markers)}
    values, codes = coded(column)
    return [None if text in marked else text for text in values], codes


def count_labels(column: pa.ChunkedArray, markers: Collection[str]) -> int:
    """Count the rows with a label."""
    texts, codes = label_texts(column, markers)
    return int(np.count_nonzero(np.array([text is not None for text in texts])[codes]))


def _sorted_classes(found: Collection[str]) -> AnyArray:
    """Sort classes: numbers by their size, whole ones as numbers, and else as text."""
    if not found or not all(map(spells_number, found)):
        return np.array(sorted(found), dtype=object)
    values = {float(text) for text in found}
    if all(value.is_integer() and abs(value) < 2.0**53 for value in values):
        return np.array(sorted(int(value) for value in values))
    return np.array(sorted(found, key=float), dtype=object)


def _check(target: Target, suspect: bool) -> None:
    n_labeled = int(target.labeled.sum())
    n_rows, n_classes = len(target.codes), len(target.classes)
    name = target.name
    suspicious = [v for v in target.class_names if v.casefold() in USUAL_MARKERS]
    if not n_labeled:
        problem = f"No row has a label: column {name!r} is empty."
        fix = "Label some rows of every class, or choose another column: --target COLUMN."
    elif n_classes == 1:
        only = cropped(target.class_names[0])
        problem = f"All labels in column {name!r} are {only!r}, in {count(n_labeled, 'row')}."
        fix = "Label rows of at least two classes; if empty cells mean a class, write its name."
    elif n_classes > MAX_CLASSES or (n_labeled >= MIN_ROWS_FOR_SHARE and n_classes > n_labeled / 2):
        kind = "a number" if all(map(spells_number, target.class_names)) else "an id or a text"
        problem = (
            f"Column {name!r} has {n_classes:,} different values in {n_labeled:,} labeled rows: it "
            f"looks like {kind}, not a class."
        )
        fix = "Choose another target, or group its values."
    elif suspicious and suspect and n_labeled == n_rows:
        problem = f"Column {name!r} has no empty cell, but the value {suspicious[0]!r}."
        fix = (
            f"If it marks unlabeled rows: --missing-label={suspicious[0]}. If it is a class, and "
            "only empty cells are unlabeled: --missing-label=''."
        )
    else:
        return
    raise TableError(problem, fix, code="label", column=name)
