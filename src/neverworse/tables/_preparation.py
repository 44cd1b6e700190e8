"""From the columns of a table to features, with the tools of scikit-learn."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.projection.words import count
from neverworse.tables._errors import TableError, listed, nearest, short
from neverworse.tables._plan import ColumnPlan, infinite, plan_columns
from neverworse.tables._stored import StoredTable
from neverworse.tables._values import as_times, coded, date_parts, days, numbers

BATCH_ROWS = 1 << 14  # which stay in the cache of a core while they are prepared
MOST_FEATURES = 50_000
MOST_LEVELS = int(np.iinfo(np.int16).max)
OTHER = "(other)"
EPS = float(np.finfo(np.float64).eps)


class TablePreparation(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Make features of the numbers, categories and dates of a table.

    - *Numbers* (and whatever can be counted: booleans, durations, times) are standardised. Where a
      value is missing, it is the mean, and an indicator says so.
    - *Categories*, and text with few different values, get an indicator for every level but the
      most frequent, with which the others are compared; a missing value is a level. The rarest of
      many levels share one indicator.
    - *Dates* become days, and points on circles for the place in the year, the week and the day.

    Columns that are empty or constant, that number the rows, or whose text is different in almost
    every row, are left out; `plans_` says which and why. No label is used, so that rows to be
    tested on later may be among those that it is fitted to.

    Parameters
    ----------
    categorical : sequence of str
        Columns that are categories, whatever they look like.
    drop : sequence of str
        Columns to leave out.
    max_levels : int
        Levels of a category that get their own indicator.

    Attributes
    ----------
    feature_names_in_ : array of str
        Columns that it was fitted to.
    number_names_, category_names_, date_names_ : lists of str
        Columns that features are made of.
    feature_columns_ : list of str
        The column of each feature.
    scaler_ : StandardScaler
        Of numbers and parts of dates.
    encoders_ : dict of str to OneHotEncoder
        Of categories, whose levels are numbered by their frequency.
    places_ : dict of str to array
        Which indicator of its category each level has; the last one is that of unknown levels.
    levels_ : dict of str to list
        The levels of categories, the most frequent first; None stands for missing values.
    parts_ : dict of str to list
        Parts of dates.
    types_ : dict of str to str
        Types of the columns that features are made of, for readers of text, which has none.
    """

    plans_: list[ColumnPlan]  # only after a fit: a copy that was saved has no need of it

    def __init__(
        self, *, categorical: Sequence[str] = (), drop: Sequence[str] = (), max_levels: int = 30
    ) -> None:
        self.categorical = categorical
        self.drop = drop
        self.max_levels = max_levels

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Decide what each column is, and find means, scales and levels.

        Parameters
        ----------
        X : table
            Of PyArrow, or of any library that shares its tables with it: pandas, polars, DuckDB.
            Of a `StoredTable`, one column at a time is in memory.
        y : None
            Ignored.
        """
        table = X if isinstance(X, StoredTable) else as_table(X)
        if not table.num_rows:
            raise TableError("The table has no rows.")
        self.plans_ = plan_columns(table, categorical=self.categorical, drop=self.drop)
        self.feature_names_in_ = np.array(table.column_names, dtype=object)
        self.n_features_in_ = len(table.column_names)
        self.number_names_ = [plan.name for plan in self.plans_ if plan.kind == "number"]
        self.category_names_ = [plan.name for plan in self.plans_ if plan.kind == "category"]
        self.date_names_ = [plan.name for plan in self.plans_ if plan.kind == "date"]
        self.levels_ = {p.name: list(p.levels) for p in self.plans_ if p.kind == "category"}
        self.parts_ = {p.name: list(p.parts) for p in self.plans_ if p.kind == "date"}
        self.types_ = {name: str(table.schema.field(name).type) for name in self.used_names}
        self._n_rows = table.num_rows
        self._fit_numbers()
        self._fit_categories(table)
        self._name_features()
        if len(self.feature_columns_) > MOST_FEATURES:
            raise TableError(
                f"{count(len(table.column_names), 'column')} would make "
                f"{len(self.feature_columns_):,} features, more than {MOST_FEATURES:,}. Leave "
                "columns out with --drop; if there should be fewer, look at the delimiter, or "
                "whether rows and columns are swapped."
            )
        return self

    def transform(self, X: Any) -> Matrix:
        """Return the features of all rows.

        Parameters
        ----------
        X : table
            With the columns that it was fitted to, in any order. Others are ignored.
        """
        check_is_fitted(self, "feature_columns_")
        table = as_table(X)
        check_columns(table.column_names, self.used_names)
        features = np.zeros((table.num_rows, len(self.feature_columns_)))
        starts = range(0, table.num_rows, BATCH_ROWS)
        if len(starts) <= 1:
            self._fill(table, 0, features)
            return features
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for _ in pool.map(lambda start: self._fill(table, start, features), starts):
                pass
        return features

    @property
    def used_names(self) -> list[str]:
        """The columns that features are made of."""
        return [*self.number_names_, *self.date_names_, *self.category_names_]

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:  # noqa: ARG002
        """Return the names of the features."""
        check_is_fitted(self, "feature_columns_")
        return np.array(self._feature_names, dtype=object)

    def new_levels(self, X: Any) -> dict[str, dict[str, int]]:
        """Count values of categories that it was not fitted to, by column."""
        table, found = as_table(X), {}
        for name in self.category_names_:
            known = set(self.levels_[name])
            values, codes = coded(table.column(name))
            counts = np.bincount(codes, minlength=len(values))
            pairs = zip(values, counts.tolist(), strict=True)
            new = {"(missing)" if v is None else v: n for v, n in pairs if n and v not in known}
            if new:
                found[name] = new
        return found

    def units(self) -> Vector:
        """Return what one unit of each feature is in units of its column."""
        ones = np.ones(len(self.feature_columns_))
        ones[: len(self.scaler_.scale_)] = self.scaler_.scale_
        return ones

    def offsets(self) -> Vector:
        """Return where each feature is zero, in units of its column."""
        zeros = np.zeros(len(self.feature_columns_))
        zeros[: len(self.scaler_.mean_)] = self.scaler_.mean_
        return zeros

    def _fit_numbers(self) -> None:
        """Make a scaler of the means and variances that are known already."""
        numbers = [plan for plan in self.plans_ if plan.kind == "number"]
        dates = [plan for plan in self.plans_ if plan.kind == "date"]
        mean = np.array([value for plan in numbers + dates for value in plan.means])
        var = np.array([value for plan in numbers + dates for value in plan.variances])
        self.scaler_ = StandardScaler()
        if len(mean):
            self.scaler_.fit(np.zeros((1, len(mean))))
        self.scaler_.mean_, self.scaler_.var_ = mean, var
        self._check_scales()
        # What differs by no more than rounding errors is not blown up.
        varies = var > (self._n_rows * EPS * mean) ** 2
        self.scaler_.scale_ = np.sqrt(np.where(varies, var, 1.0))
        # Parts of a date are missing together: one indicator is enough.
        self._missing = np.array(
            [
                plan.n_missing > 0 and k == 0
                for plan in numbers + dates
                for k in range(len(plan.means))
            ],
            dtype=bool,
        )

    def _check_scales(self) -> None:
        finite = np.isfinite(self.scaler_.var_) & np.isfinite(self.scaler_.mean_)
        if not finite.all():
            name = self._number_columns[int(np.argmin(finite))]
            raise TableError(
                f"Column {name!r} has numbers that are too large for their squares to be computed. "
                f"Divide them, or leave the column out: --drop {name!r}."
            )

    def _fit_categories(self, table: pa.Table) -> None:
        self.encoders_, self.places_ = {}, {}
        for name in self.category_names_:
            encoder = OneHotEncoder(
                drop="first",
                handle_unknown="infrequent_if_exist",
                max_categories=self.max_levels + 1,
                sparse_output=False,
            )
            values, codes = coded(table.column(name))
            numbered = _numbered(self.levels_[name], values)
            # Two bytes are enough for levels that matter, and sorted ten times faster than eight.
            rows = np.minimum(numbered[codes], MOST_LEVELS).astype(np.int16)
            self.encoders_[name] = encoder.fit(rows[:, None])
            self.places_[name] = self._places(encoder)

    def _fill(self, table: pa.Table, start: int, features: Matrix) -> None:
        """Write the features of some rows into an array of zeros."""
        batch = table.slice(start, BATCH_ROWS)
        out = features[start : start + batch.num_rows]
        first = 0
        if self._n_numbers:
            scaled = self.scaler_.transform(self._raw_numbers(batch, start), copy=False)
            holes = np.isnan(scaled)
            scaled[holes] = 0.0  # the mean
            indicators = holes[:, self._missing]
            first = self._n_numbers + indicators.shape[1]
            out[:, : self._n_numbers] = scaled
            out[:, self._n_numbers : first] = indicators
        for name in self.category_names_:
            values, codes = coded(batch.column(name))
            numbered = np.minimum(_numbered(self.levels_[name], values), MOST_LEVELS)
            # A row has at most one indicator of a category: the rest of it is zero already.
            which = self.places_[name][numbered][codes]
            rows = np.flatnonzero(which >= 0)
            out[rows, first + which[rows]] = 1.0
            first += len(self._indicated_levels(name))

    def _places(self, encoder: OneHotEncoder) -> Indices:
        """Return which indicator each level has, by its number, and last a level never seen before.

        -1 is none: that of the most frequent level.
        """
        numbered = encoder.categories_[0]
        indicators = encoder.transform(numbered[:, None])
        places = np.where(indicators.any(axis=1), indicators.argmax(axis=1), -1)
        rare = encoder.infrequent_categories_[0]
        return np.append(places, -1 if rare is None else indicators.shape[1] - 1)

    @property
    def _n_numbers(self) -> int:
        return len(self._number_columns)

    @property
    def _number_columns(self) -> list[str]:
        """The column of each number that is scaled."""
        of_dates = [name for name in self.date_names_ for _ in self.parts_[name]]
        return [*self.number_names_, *of_dates]

    def _raw_numbers(self, batch: pa.Table, start: int) -> Matrix:
        raw = np.empty((batch.num_rows, self._n_numbers))
        for k, name in enumerate(self.number_names_):
            column = batch.column(name)
            if self.types_[name].startswith("time"):
                column = as_times(column)
            raw[:, k] = numbers(name, column, first_row=start)
        first = len(self.number_names_)
        for name in self.date_names_:
            parts = tuple(self.parts_[name])
            raw[:, first : first + len(parts)] = date_parts(days(name, batch.column(name)), parts)
            first += len(parts)
        if np.isinf(raw).any():
            row, column = np.argwhere(np.isinf(raw))[0]
            raise infinite(self._number_columns[column], start + int(row) + 1)
        return raw

    def _name_features(self) -> None:
        of_dates = [f"{n} ({part})" for n in self.date_names_ for part in self.parts_[n]]
        names = [*self.number_names_, *of_dates]
        columns = self._number_columns
        missing = np.flatnonzero(self._missing)
        names += [f"{columns[k]} is missing" for k in missing]
        columns += [columns[k] for k in missing]
        for name in self.category_names_:
            levels = self._indicated_levels(name)
            names += [f"{name} is missing" if v is None else f"{name} = {short(v)}" for v in levels]
            columns += [name] * len(levels)
        self._feature_names, self.feature_columns_ = names, columns

    def _indicated_levels(self, name: str) -> list[str | None]:
        encoder, levels = self.encoders_[name], self.levels_[name]
        infrequent = encoder.infrequent_categories_[0]
        rare = set() if infrequent is None else set(infrequent.tolist())
        kept = [levels[k] for k in encoder.categories_[0].tolist() if k not in rare]
        return [*kept[1:], OTHER] if rare else kept[1:]

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "plans_"}

    def __sklearn_tags__(self) -> Any:
        return takes_tables(super().__sklearn_tags__())


def takes_tables(tags: Any) -> Any:
    """Return the tags of an estimator that knows tables with named columns, but no arrays."""
    tags.input_tags.two_d_array = False
    tags.input_tags.string = True
    tags.input_tags.categorical = True
    tags.input_tags.allow_nan = True
    return tags


def as_table(X: Any) -> pa.Table:
    """Return a table of PyArrow; nothing is copied."""
    if isinstance(X, pa.Table):
        return X
    if isinstance(X, pa.RecordBatch):
        return pa.Table.from_batches([X])
    pandas = sys.modules.get("pandas")  # a data frame of it is there only if this is
    try:
        if pandas is not None and isinstance(X, pandas.DataFrame):
            return pa.Table.from_pandas(X, preserve_index=False)
        if hasattr(X, "__arrow_c_stream__") or isinstance(X, dict):
            return pa.table(X)
    except pa.ArrowException as error:
        raise TableError(f"A column has values of several types: {error}") from None
    raise TypeError(
        "X must be a table with named columns: of pandas, polars or PyArrow, not "
        f"{type(X).__name__}."
    )


def check_columns(names: Sequence[str], needed: Sequence[str]) -> None:
    """Raise if a column is missing that features are made of."""
    there, wanted = set(names), set(needed)
    missing = [name for name in needed if name not in there]
    if not missing:
        return
    extra = [name for name in names if name not in wanted]
    hint = nearest(missing[0], extra) if len(missing) == 1 and extra else ""
    what = "a column" if len(missing) == 1 else f"{len(missing):,} columns"
    raise TableError(
        f"The table lacks {what} that the model was fitted to: {listed(missing)}. Add "
        f"{'it' if len(missing) == 1 else 'them'}, with empty cells where values are unknown, or "
        f"correct the names. {hint}".rstrip()
    )


def _numbered(levels: list[str | None], values: list[str | None]) -> AnyArray:
    """Return the number of each value among the levels, -1 if it is none of them."""
    number = {level: k for k, level in enumerate(levels)}
    return np.array([number.get(value, -1) for value in values])
