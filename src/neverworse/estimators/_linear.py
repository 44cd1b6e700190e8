"""What the linear binary classifiers share: input checks, scores and predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators._labels import split_labels
from neverworse.projection import Labels, NonFiniteError, TrainingRows, Weights
from neverworse.rows import as_rows


class LinearBinaryClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of classifiers with the score coef·x + b on targets coded 0 and 1.

    Subclasses have the parameter ``missing_label`` and fit through `_fit_rows`.
    """

    # Whether some rows may not be read at all. If all are, NaN show in their Gram matrix, and
    # looking for them beforehand would be one more pass.
    _skips_rows: ClassVar[bool]

    missing_label: Any
    classes_: AnyArray
    coef_: Matrix
    intercept_: Vector

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Labeled and unlabeled rows, in any order.
        y : array-like of shape (n_samples,)
            Labels of two classes, and a marker for rows without one.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative. A row of weight zero is as good as absent.

        Returns
        -------
        self : object
        """
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=self._skips_rows,
        )
        training, classes = self._training_rows(X, y, sample_weight)
        try:
            self._fit_rows(training, classes)
        except NonFiniteError:
            assert_all_finite(
                X.data if sparse.issparse(X) else X,
                input_name="X",
                estimator_name=type(self).__name__,
            )
            raise ValueError(
                "The values of X are so large that their squares overflow. Rescale the columns, "
                "for example with sklearn.preprocessing.StandardScaler."
            ) from None
        return self

    def decision_function(self, X: Any) -> Vector:
        """Return the scores of the rows less one half: positive for the second class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        scores : array of shape (n_samples,)
        """
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        return as_rows(X).scores(self.coef_[0], float(self.intercept_[0]))

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        classes : array of shape (n_samples,)
        """
        # A score of exactly one half counts for the second class, as in the paper.
        codes = (self.decision_function(X) >= 0.0).astype(np.intp)
        classes: AnyArray = self.classes_[codes]
        return classes

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[TrainingRows, AnyArray]:
        """Check y and the weights; return what to fit to, and the classes."""
        classes, target, unlabeled = split_labels(y, self.missing_label)
        check_consistent_length(X, target)
        weights: Vector | None = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
            counted = weights[~unlabeled] > 0.0
            if len(np.unique(target[~unlabeled][counted])) < 2:
                raise ValueError(
                    "sample_weight is positive for labeled rows of one class only. Give some "
                    "labeled rows of both classes a positive weight."
                )
        return TrainingRows(as_rows(X), Labels(target, unlabeled.astype(np.float64), weights)), classes

    @abstractmethod
    def _fit_rows(self, training: TrainingRows, classes: AnyArray) -> None:
        """Fit to checked rows; sets attributes only when nothing can go wrong any more."""

    def _set_weights(self, weights: Weights, classes: AnyArray) -> None:
        """Store weights with a snapped intercept; the half of the decision rule sits in it."""
        self.classes_ = classes
        self.coef_ = weights.coef[None, :]
        self.intercept_ = np.array([weights.intercept - 0.5])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


def stored_weights(classifier: LinearBinaryClassifier) -> Weights:
    """Return the weights of a fitted classifier, on targets coded 0 and 1."""
    return Weights(classifier.coef_[0], float(classifier.intercept_[0]) + 0.5)
