"""From the columns of a table to features, labels and weights."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse._words import count, cropped, nearest
from neverworse.tables._errors import PlanError, TableError
from neverworse.tables.preparation import columns
from neverworse.tables.preparation.columns import DateOrder, as_table, coded, numbers
from neverworse.tables.preparation.notation import CATEGORY, DROP, Reading
from neverworse.tables.preparation.plan import (
    MAX_LEVELS,
    ColumnPlan,
    check_readable,
    from_entry,
    level_counts,
    plan_columns,
    too_large,
)
from neverworse.tables.reading.formats import spells_number, written

BATCH_ROWS = 1 << 15  # which stay in the cache of a core while they are prepared
MAX_FEATURES = 50_000
OTHER = "(other)"
EPS = float(np.finfo(np.float64).eps)
MAX_CLASSES = 200
MIN_ROWS_FOR_SHARE = 10
USUAL_MARKERS = ("-1", "?", "unknown", "unlabeled", "unlabelled", "missing")


@dataclass(kw_only=True, eq=False, repr=False)
class TakesTables(BaseEstimator):  # type: ignore[misc]
    """An estimator that knows tables with named columns, but no arrays; see `TableClassifier`."""

    categorical: Sequence[str] = ()
    drop: Sequence[str] = ()
    columns: Mapping[str, Mapping[str, Any]] | None = None
    decimal: str | None = None
    dates: DateOrder | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags


class TablePreparation(TransformerMixin, TakesTables):  # type: ignore[misc]
    """Make features of the numbers, categories and dates of a table.

    What is made of which column stands under "Columns" in docs/command_line.md; `plans_` says why.
    No label is used, so that rows to be tested on later may be among those that it is fitted to.
    Parameters are those of `TableClassifier`.
    """

    feature_columns_: list[str]  # the column of each feature
    types_: dict[str, str]  # of the columns in use, as text, which readers of text do not know
    plan_: dict[str, dict[str, Any]]  # how each column is read, as in `columns`
    scaler_: Bunch  # `mean_` and `scale_` of numbers and parts of dates, as in a StandardScaler
    parts_: dict[str, list[str]]  # of dates
    levels_: dict[str, list[str | None]]  # the most frequent first; None: missing values
    # The index of the indicator of each level, -1 for none; the last two are those of all further
    # levels, and of levels never seen before.
    places_: dict[str, AnyArray]
    plans_: list[ColumnPlan]  # only after a fit: a copy that was saved has no need of it

    def plan(self, X: Any) -> list[ColumnPlan]:
        """Decide what each column is, also of columns that cannot be read; see `fit`."""
        table = as_table(X)
        names = table.column_names
        if not table.num_rows:
            raise TableError("The table has no rows.")
        entries = self.columns or {}
        for name in entries:
            if name not in names:
                problem = f"The plan has a column {name!r}, but the table does not."
                raise PlanError(f"{problem} {nearest(name, names)}")
        known = {name: from_entry(name, entry) for name, entry in entries.items()}
        columns.check_known(names, self.categorical, "categorical")
        columns.check_known(names, self.drop, "drop")
        # What the options say goes before the plan.
        known |= dict.fromkeys(self.categorical, CATEGORY) | dict.fromkeys(self.drop, DROP)
        return plan_columns(table, known, self.decimal, self.dates)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Decide what each column is, and find means, scales and levels."""
        table = as_table(X)
        self.plans_ = self.plan(table)
        check_readable(self.plans_)
        self.plan_ = {plan.name: plan.reading.to_dict() for plan in self.plans_}
        self.feature_names_in_ = np.array(table.column_names, dtype=object)
        self.n_features_in_ = len(table.column_names)
        self.number_names_, self.category_names_, self.date_names_ = (
            [plan.name for plan in self.plans_ if plan.kind == kind]
            for kind in ("number", "category", "date")
        )
        self.levels_ = {p.name: list(p.levels) for p in self.plans_ if p.kind == "category"}
        self.parts_ = {p.name: list(p.parts) for p in self.plans_ if p.kind == "date"}
        self.types_ = {name: str(table.schema.field(name).type) for name in self.used_names}
        plans = [p for kind in ("number", "date") for p in self.plans_ if p.kind == kind]
        mean = np.array([value for plan in plans for value in plan.means])
        var = np.array([value for plan in plans for value in plan.variances])
        # What differs by no more than rounding errors is not blown up.
        varies = var > (table.num_rows * EPS * mean) ** 2
        self.scaler_ = Bunch(mean_=mean, scale_=np.sqrt(np.where(varies, var, 1.0)))
        # Parts of a date are missing together: one indicator is enough.
        missing = [p.n_missing > 0 and k == 0 for p in plans for k in range(len(p.means))]
        self._missing = np.array(missing, dtype=bool)
        self._name_features()
        if len(self.feature_columns_) > MAX_FEATURES:
            made = f"{len(self.feature_columns_):,} features, more than {MAX_FEATURES:,}."
            fix = "Leave columns out with --drop. Check that rows and columns are not swapped."
            problem = f"{count(self.n_features_in_, 'column')} would make {made}"
            raise TableError(problem, fix, code="column")
        return self

    def with_decimal(self, decimal: str | None) -> TablePreparation:
        """Return the same for tables whose numbers are written with another decimal mark."""
        usual = self.decimal or "."
        if decimal in (None, usual):
            return self
        other = copy(self)
        other.decimal, other.plan_ = decimal, dict(self.plan_)
        for name, entry in self.plan_.items():
            reading = from_entry(name, entry)
            if reading.kind == "number" and reading.decimal == usual:
                thousands = usual if reading.thousands == decimal else reading.thousands
                other.plan_[name] = entry | {"decimal": decimal, "thousands": thousands}
        return other

    def transform(self, X: Any, first_row: int = 0) -> Matrix:
        """Return the features of all rows of a table; messages count them from `first_row` on."""
        check_is_fitted(self, "feature_columns_")
        table = as_table(X)
        columns.check_columns(table.column_names, self.used_names)
        features = np.zeros((table.num_rows, len(self.feature_columns_)))
        readings = {
            name: replace(from_entry(name, self.plan_[name]), native=self.types_[name])
            for name in self.used_names
        }
        batches = table.select(self.used_names).to_batches(BATCH_ROWS)
        starts = np.cumsum([0, *(batch.num_rows for batch in batches)])[:-1]
        parts, first_rows = np.split(features, starts[1:]), (first_row + starts).tolist()
        with ThreadPoolExecutor(os.cpu_count() if len(batches) > 1 else 1) as pool:
            list(pool.map(partial(self._fill, readings), parts, first_rows, batches))
        return features

    @property
    def used_names(self) -> list[str]:
        """The columns that features are made of."""
        return [*self.number_names_, *self.date_names_, *self.category_names_]

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:  # noqa: ARG002
        """Return the names of the features."""
        check_is_fitted(self, "feature_columns_")
        return np.array(self._feature_names, dtype=object)

    def new_levels(self, X: Any) -> dict[str, Counter[str]]:
        """Count values of categories that it was not fitted to, by column."""
        table, found = as_table(X), {}
        for name in self.category_names_:
            known, counted = set(self.levels_[name]), level_counts(table.column(name)).items()
            new = {"(missing)" if v is None else v: n for v, n in counted if v not in known}
            if new:
                found[name] = Counter(new)
        return found

    def units(self) -> Vector:
        """Return what one unit of each feature is in units of its column."""
        n_others = len(self.feature_columns_) - len(self.scaler_.scale_)
        return np.append(self.scaler_.scale_, np.ones(n_others))

    def offsets(self) -> Vector:
        """Return where each feature is zero, in units of its column."""
        n_others = len(self.feature_columns_) - len(self.scaler_.mean_)
        return np.append(self.scaler_.mean_, np.zeros(n_others))

    def _fill(
        self, readings: Mapping[str, Reading], out: Matrix, start: int, batch: pa.RecordBatch
    ) -> None:
        """Write the features of some rows, from `start` on, into an array of zeros."""
        mean, scale = self.scaler_.mean_, self.scaler_.scale_
        indicators = len(mean) + np.cumsum(self._missing) - 1
        names = (*self.number_names_, *self.date_names_)
        parts = [(name, part) for name in names for part in self.parts_.get(name, ["day"])]
        for k, (name, part) in enumerate(parts):
            if part == "day":  # the first one of every column
                column = pa.chunked_array([batch.column(name)])
                values = numbers(name, column, readings[name], start)
            scaled = (columns.date_part(values, part) - mean[k]) / scale[k]
            if not np.isfinite(scaled).all():
                if np.isinf(scaled).any():
                    raise too_large(name, start + int(np.argmax(np.isinf(scaled))))
                holes = np.isnan(scaled)
                scaled[holes] = 0.0  # the mean
                if self._missing[k]:
                    out[:, indicators[k]] = holes
            out[:, k] = scaled
        first = len(mean) + int(self._missing.sum())
        for name in self.category_names_:
            found, codes = coded(pa.chunked_array([batch.column(name)]))
            places, number = self.places_[name], {v: k for k, v in enumerate(self.levels_[name])}
            numbered = np.array([number.get(value, -1) for value in found])
            # A row has at most one indicator of a category: the rest of it is zero already.
            which = places[np.minimum(numbered, len(places) - 2)][codes]
            rows = np.flatnonzero(which >= 0)
            out[rows, first + which[rows]] = 1.0
            first += int(places.max()) + 1

    def _name_features(self) -> None:
        """Name all features, and give every level of a category the place of its indicator."""
        named = [(name, name) for name in self.number_names_]
        named += [(n, f"{n} ({part})") for n in self.date_names_ for part in self.parts_[n]]
        gaps = [named[k][0] for k in np.flatnonzero(self._missing)]
        named += [(name, f"{name} is missing") for name in gaps]
        self.places_ = {}
        for name, levels in self.levels_.items():
            has_rare = len(levels) > MAX_LEVELS + 1
            n_own = MAX_LEVELS if has_rare else len(levels)
            rare = n_own - 1 if has_rare else -1
            self.places_[name] = np.append(np.arange(-1, n_own - 1 + has_rare), rare)
            shown = [*levels[1:n_own], *[OTHER] * has_rare]
            levels = ["is missing" if v is None else f"= {cropped(v)}" for v in shown]
            named += [(name, f"{name} {level}") for level in levels]
        self.feature_columns_, self._feature_names = map(list, zip(*named, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "plans_"}


# Labels and weights


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
        name = written(text) if self.classes.dtype.kind == "i" else text.strip()
        return self._positions.get(name)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.class_names)}

    def counts(self) -> list[int]:
        counted = np.bincount(self.codes[self.labeled].astype(int), minlength=len(self.classes))
        return counted.tolist()


def read_target(table: pa.Table, name: str, markers: Collection[str] | None = None) -> Target:
    """Return the labels of a table; without `markers`, no class may look like one."""
    column = columns.find_column(table, name, "target")
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


def _sorted_classes(found: Collection[str]) -> AnyArray:
    """Sort classes: numbers by their size, whole ones as numbers, and else as text."""
    if not found or not all(map(spells_number, found)):
        return np.array(sorted(found), dtype=object)
    values = {float(text) for text in found}
    if all(value.is_integer() and abs(value) < 2.0**53 for value in values):
        return np.array(sorted(int(value) for value in values))
    return np.array(sorted(found, key=float), dtype=object)


def _check(target: Target, suspect: bool) -> None:
    name, n_labeled = target.name, int(target.labeled.sum())
    n_rows, n_classes = len(target.codes), len(target.classes)
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
