"""Classifiers of tables: classes and probabilities, and predictions as files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.estimators import ProjectedLeastSquaresClassifier, class_scores, has_class_scores
from neverworse.projection import Certificate
from neverworse.rows import ChunkedRows, DenseRows, Rows, Verb, read_ahead
from neverworse.tables._errors import TableError
from neverworse.tables.preparation import TablePreparation, TakesTables, Target, read_target
from neverworse.tables.preparation.columns import as_table, as_text
from neverworse.tables.reading import StoredTable
from neverworse.tables.reading.formats import as_strings, decoded

# What spreadsheets take for the beginning of a formula, unless all of it is a number.
FORMULA = r"^[=+\-@\t\r]"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def _has(method: str) -> Callable[[Any], bool]:
    """Return a check for `available_if`: whether the classifier of the features has the method."""
    return lambda self: hasattr(getattr(self, "estimator_", self._classifier()), method)


@dataclass(eq=False, repr=False)
class TableClassifier(ClassifierMixin, TakesTables):  # type: ignore[misc]
    """Prepare the columns of a table, and classify its rows; never worse than with labels alone.

    This is what ``neverworse fit`` makes and saves.

    Parameters
    ----------
    estimator : classifier, optional
        Classifies the features; `ProjectedLeastSquaresClassifier` with ``alpha="loo"`` by default.
        Labels are passed to it as class indices, NaN where a row has none.
    categorical, drop : sequences of str
        Columns to treat as categories, and columns to leave out.
    columns : mapping of str to mapping, optional
        How to read columns, as in a plan: ``{"price": {"kind": "number", "unit": "kg"}}``. Others
        are recognised.
    decimal : {".", ","}, optional
        Decimal mark of numbers in columns of text; values that cannot have it are an error.
        By default, the values of each column tell.
    dates : {"day-first", "month-first"}, optional
        Order of dates such as 01/02/2026, where the values of a column are ambiguous.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes in sorted order.
    preparation_ : TablePreparation
    estimator_ : classifier
        Fitted to the features.
    baseline_ : classifier
        The supervised baseline on the same features, if `estimator_` does not hold one.
    certificate_ : Certificate
        Of `estimator_`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from neverworse.tables import TableClassifier
    >>> table = pa.table({"age": [20, 30, 40, 50, 60, 70], "city": ["A", "B", "A", "A", "B", "A"]})
    >>> clf = TableClassifier().fit(table, ["young", None, None, "old", None, "old"])
    >>> clf.certificate_.holds
    True
    >>> print(clf.predict(table))
    ['young' 'young' 'old' 'old' 'old' 'old']
    """

    estimator: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Prepare a table and fit the classifier.

        Parameters
        ----------
        X : table
            Of PyArrow, pandas or polars, without the target.
        y : array-like of shape (n_rows,)
            Labels; None, NaN or an empty text where there is none.
        sample_weight : array-like of shape (n_rows,), optional
        """
        if not isinstance(y, pa.Array | pa.ChunkedArray):
            y = pa.array(np.asarray(y, dtype=object), from_pandas=True)  # NaN is a missing label
        self.fit_target(X, read_target(pa.table({"y": y}), "y"), sample_weight)
        return self

    def fit_target(self, X: Any, target: Target, sample_weight: Any = None) -> Matrix | Rows:
        """Fit to labels that were found before, and return the features of all rows."""
        table = as_table(X)
        if table.num_rows != len(target.codes):
            raise ValueError(f"X has {table.num_rows} rows, but y has {len(target.codes)}.")
        reading = {name: getattr(self, name) for name in TablePreparation().get_params()}
        preparation, classifier = TablePreparation(**reading), self._classifier()
        features = fitted_features(preparation, table)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        classifier.fit(features, target.codes, **weights)
        self.feature_names_in_ = preparation.feature_names_in_
        self.n_features_in_ = preparation.n_features_in_
        self.preparation_, self.estimator_ = preparation, classifier
        self.classes_ = target.classes
        return features

    def predict(self, X: Any) -> AnyArray:
        """Return the classes of the rows of a table."""
        codes = self._fitted().predict(self.preparation_.transform(X))
        return self.classes_[codes.astype(np.intp)]

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Matrix:
        """Return class probabilities."""
        return self._fitted().predict_proba(self.preparation_.transform(X))

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Vector:
        """Return the decision function of the classifier."""
        return self._fitted().decision_function(self.preparation_.transform(X))

    @property
    def certificate_(self) -> Certificate:
        """The certificate of the classifier against the supervised one."""
        certificate: Certificate = self._fitted().certificate_
        # The classifier of the features knows classes by number only.
        names, about = [str(name) for name in self.classes_], certificate.assumptions
        prior = tuple((names[int(float(k))], low, high) for k, low, high in about.class_prior)
        weight = tuple((names[int(float(k))], factor) for k, factor in certificate.class_weight)
        assumptions = replace(about, class_prior=prior)
        return replace(certificate, assumptions=assumptions, class_weight=weight)

    def supervised(self) -> TableClassifier | None:
        """Return the supervised model of the same features, if there is one inside."""
        baseline = copy(self)
        held = getattr(self._fitted(), "supervised_", None)
        baseline.estimator_ = getattr(self, "baseline_", held)
        return None if baseline.estimator_ is None else baseline

    def _fitted(self) -> Any:
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def _classifier(self) -> Any:
        if self.estimator is None:
            return ProjectedLeastSquaresClassifier(alpha="loo", missing_label=np.nan)
        return clone(self.estimator)


def fitted_features(preparation: TablePreparation, table: pa.Table | StoredTable) -> Matrix | Rows:
    """Fit a preparation to a table, and return the features of all rows."""
    preparation.fit(table)
    is_stored = isinstance(table, StoredTable)
    return PreparedRows(table, preparation) if is_stored else preparation.transform(table)


class PreparedRows(ChunkedRows):
    """Features of a stored table, made anew in every pass by a preparation fitted to it."""

    def __init__(self, table: StoredTable, preparation: TablePreparation) -> None:
        # Without names: the classifier will see the features of other rows as an array.
        super().__init__(table.sizes(), len(preparation.feature_columns_))
        self._table = table.select(preparation.used_names)
        self._preparation = preparation

    def map_chunks(
        self, verb: Verb, chosen: Sequence[int], arguments: Sequence[tuple[Any, ...]]
    ) -> Iterable[Any]:
        """See `ChunkedRows.map_chunks`; the next batch is prepared while one is worked on."""
        prepared = map(self._preparation.transform, self._table.batches(chosen))
        for features, own in zip(read_ahead(prepared), arguments, strict=True):
            yield verb(DenseRows(features), *own)


@dataclass(eq=False, repr=False)
class DecidedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier with a threshold or calibrated probabilities, or both.

    Of two classes, that at position `positive` is predicted where its probability is at least
    `threshold`; `sigmoids` has slope and offset for each of `calibration_scores`.
    """

    estimator: Any
    positive: int = 1
    threshold: float | None = None
    sigmoids: Matrix | None = None

    @property
    def classes_(self) -> Any:
        return self.estimator.classes_

    def predict_proba(self, X: Any) -> Any:
        if self.sigmoids is None:
            return self.estimator.predict_proba(X)
        return calibrated(calibration_scores(self.estimator, X), self.sigmoids)

    def predict(self, X: Any) -> Any:
        return self.classes_[self.decide(self.predict_proba(X))]

    def decide(self, probabilities: Matrix) -> Indices:
        """Return the positions of the classes that probabilities give."""
        if self.threshold is None:
            return probabilities.argmax(axis=1)
        found = probabilities[:, self.positive] >= self.threshold
        return np.where(found, self.positive, 1 - self.positive)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def outputs(classifier: Any, X: Any) -> tuple[Indices, Vector, Matrix | None]:
    """Return positions of predicted classes, their scores, and the probabilities of all classes.

    Scores are those of least squares if it decides, otherwise probabilities, or else distances.
    """
    shares: Matrix | None = None
    if hasattr(classifier, "predict_proba"):
        shares = np.asarray(classifier.predict_proba(X), dtype=np.float64)
    if isinstance(classifier, DecidedClassifier) and shares is not None:
        codes = classifier.decide(shares)
    else:
        codes = np.searchsorted(classifier.classes_, classifier.predict(X))
    each = np.arange(len(codes))
    if has_class_scores(classifier):
        return codes, class_scores(classifier, X)[each, codes], shares
    if shares is not None:
        return codes, shares[each, codes], shares
    decisions = np.asarray(classifier.decision_function(X), dtype=np.float64)
    return codes, decisions[each, codes] if decisions.ndim == 2 else np.abs(decisions), None


def calibration_scores(model: Any, X: Any) -> Matrix:
    """Return decisions, or else probabilities, of all classes, or of the second of two."""
    method = getattr(model, "decision_function", None) or model.predict_proba
    scores = np.asarray(method(X), dtype=np.float64)
    scores = scores if scores.ndim == 2 else scores[:, None]
    return scores[:, 1:] if scores.shape[1] == 2 else scores


def calibrated(scores: Matrix, sigmoids: Matrix) -> Matrix:
    """Return the probabilities that sigmoids make of scores; several of them add up to one."""
    if sigmoids.shape != (scores.shape[1], 2):
        raise ValueError("The sigmoids are not those of these scores.")
    shares: Matrix = special.expit(scores * sigmoids[:, 0] + sigmoids[:, 1])
    if shares.shape[1] == 1:
        return np.hstack([1.0 - shares, shares])
    totals = shares.sum(axis=1, keepdims=True)
    even = np.full_like(shares, 1.0 / shares.shape[1])
    return np.divide(shares, totals, out=even, where=totals > 0.0)


# Predictions as files


def with_names(columns: Mapping[str, Any], id_name: str | None, names: Any) -> dict[str, Any]:
    """Put the names of rows before other columns, called as in the table unless one of them is."""
    name = "row" if not id_name or id_name in columns else id_name
    return {name: names, **columns}


def id_texts(column: Any) -> pa.Array:
    """Return ids as text, whatever they are in the file: those of several files may differ."""
    plain = decoded(column)
    if pa.types.is_floating(plain.type):
        plain = pa.chunked_array([pa.array(as_text(plain), pa.string())])
    return pc.fill_null(as_strings(plain), "").combine_chunks()


def write_csv(batches: Iterator[pa.Table], file: Any, *, keep_formulas: bool = False) -> None:
    """Write rows as CSV; an apostrophe is put before text that a spreadsheet would run."""

    def escaped(texts: Any) -> Any:
        formula = pc.match_substring_regex(texts, FORMULA)
        number = pc.match_substring_regex(texts, NUMBER)
        quoted = pc.binary_join_element_wise("'", texts, "")
        return pc.if_else(pc.and_not(formula, number), quoted, texts)

    def prepared(table: pa.Table) -> pa.Table:
        # PyArrow writes timestamps with a time zone only if it has a database of time zones.
        columns = [as_strings(c) if "tz=" in str(c.type) else c for c in table.columns]
        names = pa.array(table.column_names, pa.string())
        if not keep_formulas:
            names = escaped(names)
            columns = [escaped(c) if pa.types.is_string(c.type) else c for c in columns]
        return pa.table(columns, names.to_pylist())

    _write(csv.CSVWriter, map(prepared, batches), file)


def write_parquet(batches: Iterator[pa.Table], file: Any) -> None:
    """Write rows as Parquet."""
    _write(parquet.ParquetWriter, batches, file)


def write_json_lines(batches: Iterator[pa.Table], file: Any) -> None:
    """Write each row as a JSON object."""
    for batch in _alike(batches)[1]:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())
        file.write("".join(lines).encode())


def _write(kind: Any, batches: Iterator[pa.Table], file: Any) -> None:
    schema, alike = _alike(batches)
    with kind(file, schema) as writer:
        for batch in alike:
            writer.write(batch)


def _alike(batches: Iterator[pa.Table]) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """Return the columns of the first batch, and all batches with these."""
    first = next(batches, None)
    if first is None:
        raise TableError("The table has no rows.")
    return first.schema, chain([first], (batch.cast(first.schema) for batch in batches))
