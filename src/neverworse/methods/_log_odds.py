"""What linear classifiers share whose scores are log odds."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import _fit_context

from neverworse._typing import Matrix
from neverworse.estimators import LinearClassifier, explains_conversion


class LogOddsClassifier(LinearClassifier):
    """Base of classifiers whose scores are logarithms of probabilities, up to a common constant.

    Two classes have one score, the log odds of the second one.
    """

    @explains_conversion
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Labeled and unlabeled rows, in any order.
        y : array-like of shape (n_samples,)
            Labels of two or more classes, and a marker for rows without one.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative. A row of weight zero is as good as absent.

        Returns
        -------
        self : object
        """
        return self._fit(X, y, sample_weight, None)

    def predict_proba(self, X: Any) -> Matrix:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        scores = self._scores(X)
        if scores.ndim > 1:
            probabilities: Matrix = special.softmax(scores, axis=0).T
            return probabilities
        return np.column_stack([special.expit(-scores), special.expit(scores)])

    def predict_log_proba(self, X: Any) -> Matrix:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : array of shape (n_samples, n_classes)
        """
        scores = self._scores(X)
        if scores.ndim > 1:
            log_probabilities: Matrix = special.log_softmax(scores, axis=0).T
            return log_probabilities
        return np.column_stack([special.log_expit(-scores), special.log_expit(scores)])
