"""What several of the methods share."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import special

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators import LinearClassifier, ScoringClassifier, shown_classes
from neverworse.projection import Observer, Progress
from neverworse.rows import Rows, SparseRows, map_in_threads


class LogOddsMixin(ScoringClassifier):
    """Probabilities of classifiers whose scores are their logarithms, up to a common constant.

    Two classes have one score, the log odds of the second one.
    """

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


class LogOddsClassifier(LogOddsMixin, LinearClassifier):
    """Base of linear classifiers whose scores are log odds."""


class Stages:
    """Reports the stages of a fit, and remembers whether the observer wants it to stop."""

    def __init__(self, observer: Observer | None) -> None:
        self._observer = observer
        self._start = time.perf_counter()
        self.stopped = False

    def report(self, stage: str, n_iter: int, n_rows: int) -> None:
        """Tell the observer what has just been done."""
        if self._observer is not None:
            seconds = time.perf_counter() - self._start
            progress = Progress(stage, n_iter, n_rows, float("nan"), seconds, "iterations")
            told = self._observer(progress)
            self.stopped = self.stopped or told is True


def check_two_classes(classes: AnyArray) -> None:
    """Raise an error that names the ways out if there are more than two classes."""
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"labels of {len(classes)} classes ({shown_classes(classes)}). Fit one classifier for "
            "each class, on labels that say whether a row is of this class and that keep the "
            "marker of unlabeled rows, and predict the class with the largest decision_function. "
            "(OneVsRestClassifier of scikit-learn would take unlabeled rows for rows of another "
            "class.) Or use L2SVMClassifier or ProjectedLeastSquaresClassifier, which know several "
            "classes."
        )


@np.errstate(over="ignore")  # an overflow shows in the result
def column_squares(rows: Rows, weights: Vector) -> Vector:
    """Return the weighted sum of squares of every column."""
    root = np.sqrt(weights)
    if isinstance(rows, SparseRows) and rows.shift is None:
        X = rows._X
        if not X.has_canonical_format:  # numbers in the same place have to be added up first
            X = X.copy()
            X.sum_duplicates()
        squares = (X.data * np.repeat(root, np.diff(X.indptr))) ** 2
        total: Vector = np.bincount(X.indices, squares, X.shape[1])  # type: ignore[assignment]
        return total

    @np.errstate(over="ignore")
    def part(bounds: tuple[int, int]) -> Vector:
        total = np.zeros(rows.n_columns)
        for these in rows._slices(*bounds):
            block = rows.block(these.start, these.stop) * root[these, None]
            total += np.einsum("ij,ij->j", block, block)
        return total

    return sum(map_in_threads(part, rows.parts()), np.zeros(rows.n_columns))
