"""A classifier of tables: preparation and projection, as one estimator."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators import ProjectedLeastSquaresClassifier
from neverworse.projection import Certificate
from neverworse.rows import Rows
from neverworse.tables._preparation import TablePreparation, takes_tables
from neverworse.tables._prepared_rows import PreparedRows
from neverworse.tables._recognise import DateOrder
from neverworse.tables._stored import StoredTable
from neverworse.tables._target import Target, read_target
from neverworse.tables._values import as_table


def _has(method: str) -> Callable[[Any], bool]:
    """Return a check for `available_if`: whether the classifier of the features has the method."""
    return lambda self: hasattr(getattr(self, "estimator_", self._classifier()), method)


class TableClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Prepare the columns of a table, and classify its rows; never worse than with labels alone.

    This is what ``neverworse fit`` makes and saves.

    Parameters
    ----------
    estimator : classifier, optional
        Classifies the features; `ProjectedLeastSquaresClassifier` with ``alpha="loo"`` by default.
        Labels reach it as numbers of classes, and NaN where there is none.
    categorical, drop : sequences of str
        See `TablePreparation`.
    columns, decimal, dates : optional
        How the text in columns is read; see `TablePreparation`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes in sorted order.
    preparation_ : TablePreparation
    estimator_ : classifier
        Fitted to the features.
    baseline_ : classifier
        The supervised one of the same features, if `estimator_` has none inside.
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

    def __init__(
        self,
        estimator: Any = None,
        *,
        categorical: Sequence[str] = (),
        drop: Sequence[str] = (),
        columns: Mapping[str, Mapping[str, Any]] | None = None,
        decimal: str | None = None,
        dates: DateOrder | None = None,
    ) -> None:
        self.estimator = estimator
        self.categorical = categorical
        self.drop = drop
        self.columns = columns
        self.decimal = decimal
        self.dates = dates

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Prepare a table and fit the classifier.

        Parameters
        ----------
        X : table
            Of PyArrow, pandas, polars: without the target.
        y : array-like of shape (n_rows,)
            Labels; None, NaN or an empty text where there is none.
        sample_weight : array-like of shape (n_rows,), optional
        """
        labels = pa.table({"y": y if isinstance(y, pa.ChunkedArray) else pa.array(_plain(y))})
        self.fit_target(X, read_target(labels, "y"), sample_weight)
        return self

    def fit_target(self, X: Any, target: Target, sample_weight: Any = None) -> Matrix | Rows:
        """Fit to labels that were found before, and return the features of all rows.

        Those of a `StoredTable` are made anew in every pass.
        """
        table = X if isinstance(X, StoredTable) else as_table(X)
        if table.num_rows != len(target.codes):
            raise ValueError(f"X has {table.num_rows} rows, but y has {len(target.codes)}.")
        preparation = TablePreparation(
            categorical=self.categorical,
            drop=self.drop,
            columns=self.columns,
            decimal=self.decimal,
            dates=self.dates,
        )
        features: Matrix | Rows
        if isinstance(table, StoredTable):
            features = PreparedRows(table, preparation.fit(table))
        else:
            features = preparation.fit_transform(table)
        classifier = self._classifier()
        if sample_weight is None:
            classifier.fit(features, target.codes)
        else:
            classifier.fit(features, target.codes, sample_weight=sample_weight)
        self.feature_names_in_ = preparation.feature_names_in_
        self.n_features_in_ = preparation.n_features_in_
        self.preparation_, self.estimator_ = preparation, classifier
        self.classes_ = target.classes
        return features

    def predict(self, X: Any) -> AnyArray:
        """Return the classes of the rows of a table."""
        check_is_fitted(self, "estimator_")
        codes = self.estimator_.predict(self.preparation_.transform(X))
        predicted: AnyArray = self.classes_[codes.astype(np.intp)]
        return predicted

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Matrix:
        """Return probabilities of the classes: the scores, brought into range."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(self.preparation_.transform(X))

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Vector:
        """Return the scores of the rows as the classifier gives them."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.decision_function(self.preparation_.transform(X))

    @property
    def certificate_(self) -> Certificate:
        """What is proved about the classifier against the supervised one."""
        check_is_fitted(self, "estimator_")
        certificate: Certificate = self.estimator_.certificate_
        # The classifier of the features knows classes by number only.
        prior = tuple(
            (self._named(code), low, high)
            for code, low, high in certificate.assumptions.class_prior
        )
        weight = tuple((self._named(code), factor) for code, factor in certificate.class_weight)
        assumptions = dataclasses.replace(certificate.assumptions, class_prior=prior)
        return dataclasses.replace(certificate, assumptions=assumptions, class_weight=weight)

    def _named(self, code: str) -> str:
        return str(self.classes_[int(float(code))])

    def supervised(self) -> TableClassifier:
        """Return the supervised model of the same features, which this one is never worse than."""
        check_is_fitted(self, "estimator_")
        baseline = copy(self)
        inside = self.baseline_ if hasattr(self, "baseline_") else self.estimator_.supervised_
        baseline.estimator_ = inside
        return baseline

    def _classifier(self) -> Any:
        if self.estimator is None:
            return ProjectedLeastSquaresClassifier(alpha="loo", missing_label=np.nan)
        return clone(self.estimator)

    def __sklearn_tags__(self) -> Any:
        return takes_tables(super().__sklearn_tags__())


def _plain(y: Any) -> Any:
    """Return labels as PyArrow takes them; NaN is a missing one."""
    if isinstance(y, pa.Array):
        return y
    values = np.asarray(y, dtype=object)
    return [None if value is None or value != value else value for value in values.tolist()]
