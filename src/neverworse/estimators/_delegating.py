"""Base classes of classifiers that fit another one, and predict through it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse.estimators._input import (
    checked_weights,
    copy_input_checks,
    explains_conversion,
    fresh_fit,
    refuse_chunks,
)
from neverworse.estimators._known_labels import checked_codes
from neverworse.estimators._labels import native_dtype, shown, shown_classes
from neverworse.estimators._least_squares import LeastSquaresClassifier


@dataclass(frozen=True)
class LabeledRows:
    """Rows as they were given, with what is known about their labels."""

    X: Any  # never changed; only `labeled` copies rows
    classes: AnyArray  # (n_classes,)
    codes: Indices  # (n_rows,): position of the class of each row; zero where it is unlabeled
    unlabeled: Mask  # (n_rows,)
    weights: Vector | None  # (n_rows,)

    @classmethod
    def split(cls, X: Any, y: Any, missing_label: Any, weights: Vector | None) -> LabeledRows:
        classes, codes, unlabeled = checked_codes(X, y, missing_label, weights)
        return cls(X, classes, codes.astype(np.intp), unlabeled, weights)

    def labeled(self) -> LabeledRows:
        if not self.unlabeled.any():
            return self
        chosen = np.flatnonzero(~self.unlabeled)
        X = _safe_indexing(self.X, chosen)
        weights = None if self.weights is None else self.weights[chosen]
        return LabeledRows(X, self.classes, self.codes[chosen], self.unlabeled[chosen], weights)

    def fit(self, estimator: Any) -> Any:
        """Return a copy of the estimator, fitted to all rows with the labels that they have."""
        weights = {} if self.weights is None else {"sample_weight": self.weights}
        labels = self.classes[self.codes]
        return with_null_markers(estimator).fit(self.X, labels, **weights)


class PassesPredictionsOn(MetaEstimatorMixin):  # type: ignore[misc]
    """Predicts through another estimator, and has the methods that it has."""

    _predictor: ClassVar[str]  # the attribute with the fitted estimator

    @abstractmethod
    def _can(self, method: str) -> bool:
        """Whether the other estimator has a method, or will have it after `fit`."""

    def _fitted(self) -> Any:
        check_is_fitted(self, self._predictor)
        return getattr(self, self._predictor)

    @explains_conversion
    def predict(self, X: Any) -> AnyArray:
        """Return what the fitted estimator predicts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or anything else that it accepts

        Returns
        -------
        predictions : array of shape (n_samples,)
            Classes, if it is a classifier.
        """
        return self._fitted().predict(X)

    @available_if(lambda self: self._can("decision_function"))  # type: ignore[untyped-decorator]
    @explains_conversion
    def decision_function(self, X: Any) -> Vector:
        """Return the decision function of the fitted estimator, if it has one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or anything else that it accepts

        Returns
        -------
        scores : array of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._fitted().decision_function(X)

    @available_if(lambda self: self._can("predict_proba"))  # type: ignore[untyped-decorator]
    @explains_conversion
    def predict_proba(self, X: Any) -> Matrix:
        """Return the probabilities of the fitted estimator, if it has them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or anything else that it accepts

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        return self._fitted().predict_proba(X)


class DelegatingClassifier(PassesPredictionsOn, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of classifiers that, inside of `_fitting`, set `classes_` and a fitted `estimator_`."""

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "missing_label": "no_validation",
    }

    _predictor: ClassVar[str] = "estimator_"
    estimator: Any
    missing_label: Any
    estimator_: Any
    classes_: AnyArray

    @contextmanager
    def _fitting(self, X: Any, sample_weight: Any) -> Iterator[tuple[Any, Any, Vector | None]]:
        """Yield the classifier to fit, X and the weights; unfitted if the fit inside fails."""
        with fresh_fit(self):
            refuse_chunks(self, X)
            estimator = self._wrapped()
            if not is_classifier(estimator):
                raise ValueError(
                    f"estimator={estimator!r} is not a classifier. Pass any classifier of "
                    "scikit-learn, for example LogisticRegression()."
                )
            (X,) = indexable(X)
            given = sample_weight is not None
            yield estimator, X, weights_for([estimator], X, sample_weight) if given else None
            copy_input_checks(self.estimator_, self)

    def _wrapped(self) -> Any:
        return LeastSquaresClassifier() if self.estimator is None else self.estimator

    def _can(self, method: str) -> bool:
        return hasattr(getattr(self, "estimator_", self._wrapped()), method)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        wrapped = get_tags(self._wrapped()).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = wrapped.sparse, wrapped.allow_nan
        return tags


def with_null_markers(estimator: Any) -> Any:
    """Return an unfitted copy of an estimator for which null values, and no class, are markers."""
    copied = clone(estimator)
    markers = [name for name in copied.get_params() if name.split("__")[-1] == "missing_label"]
    return copied.set_params(**dict.fromkeys(markers, np.nan))


def weights_for(estimators: Iterable[Any], X: Any, sample_weight: Any) -> Vector:
    """Return checked weights of rows, which all of the estimators take."""
    routed = get_config()["enable_metadata_routing"]
    for estimator in estimators:
        takes = has_fit_parameter(estimator, "sample_weight") or (
            routed and get_routing_for_object(estimator).consumes("fit", ["sample_weight"])
        )
        if not takes:
            raise ValueError(
                f"sample_weight was given, but {type(estimator).__name__} does not take it in fit. "
                "Leave it out, or route it to a step with scikit-learn's metadata routing."
            )
    return checked_weights(sample_weight, _num_samples(X))


def predicted_codes(name: str, predicted: Any, classes: AnyArray) -> Indices:
    """Return the positions of predicted classes among all classes."""
    given = native_dtype(np.asarray(predicted))
    codes: Indices = np.searchsorted(classes, given)
    unknown = classes[np.minimum(codes, len(classes) - 1)] != given
    if unknown.any():
        raise ValueError(
            f"{name} predicts {shown(given[unknown][0])}, which is none of the classes of the "
            f"labeled rows ({shown_classes(classes)})."
        )
    return codes
