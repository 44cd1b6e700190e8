"""What several of the methods share."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special
from sklearn.exceptions import ConvergenceWarning

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators import LinearClassifier, ScoringClassifier, shown_classes
from neverworse.projection import column_moments
from neverworse.rows import Rows, SparseRows


class LogOddsMixin(ScoringClassifier):
    """Probabilities of classifiers whose scores are log odds, or for several classes, logits."""

    def predict_proba(self, X: Any) -> Matrix:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        return np.exp(self.predict_log_proba(X))

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


class LogOddsClassifier(LogOddsMixin, LinearClassifier):
    """Base of linear classifiers whose scores are log odds."""


def check_two_classes(classes: AnyArray) -> None:
    """Raise an error if there are more than two classes."""
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"labels of {len(classes)} classes ({shown_classes(classes)}). Fit one classifier for "
            "each class, against the rest and with the same marker of unlabeled rows, and predict "
            "the class with the largest decision_function; or use L2SVMClassifier or "
            "ProjectedLeastSquaresClassifier, which support several classes."
        )


def wide_moments(rows: Rows, weights: Vector, centre: bool) -> Any:
    """Return the moments of each column; sparse rows are not shifted, so that they stay sparse."""
    sums = column_moments(rows, weights, centre)
    if isinstance(rows, SparseRows) and sums.rows.shift is not None:
        return replace(sums, rows=rows, mean=sums.mean + sums.rows.shift)
    return sums


def warn_not_converged(message: str) -> None:
    """Warn as solvers of scikit-learn do."""
    warnings.warn(message, ConvergenceWarning, stacklevel=3)
