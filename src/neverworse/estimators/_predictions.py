"""Predictions that another estimator makes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from sklearn.base import MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators._conversion import explains_conversion


def _if_it_can(method: str) -> Callable[[Any], bool]:
    """Return a check for `available_if`: whether the other estimator has the method."""
    return lambda self: self._can(method)


class PassesPredictionsOn(MetaEstimatorMixin):  # type: ignore[misc]
    """Predicts through another estimator, and has the methods that it has."""

    # The attribute with the other estimator, once it is fitted.
    _predictor: ClassVar[str]

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

    @available_if(_if_it_can("decision_function"))  # type: ignore[untyped-decorator]
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

    @available_if(_if_it_can("predict_proba"))  # type: ignore[untyped-decorator]
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
