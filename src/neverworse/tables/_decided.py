"""A fitted classifier whose probabilities are calibrated, or whose threshold is not one half."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.estimators import class_scores, has_class_scores


class DecidedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Turns the scores of a fitted classifier into probabilities and classes.

    Parameters
    ----------
    estimator : classifier
        Fitted.
    positive : int, default=1
        Position of the class that the threshold is about.
    threshold : float or None, default=None
        The positive class is predicted where its probability is at least this; None: the class of
        the largest probability is. For two classes.
    sigmoids : array of shape (n_scores, 2) or None, default=None
        Slope and offset for the logits of each score of `calibration_scores`; None: probabilities
        are those of the estimator.
    """

    def __init__(
        self,
        estimator: Any,
        positive: int = 1,
        threshold: float | None = None,
        sigmoids: Matrix | None = None,
    ) -> None:
        self.estimator = estimator
        self.positive = positive
        self.threshold = threshold
        self.sigmoids = sigmoids

    @property
    def classes_(self) -> AnyArray:
        """The classes of the estimator."""
        classes: AnyArray = self.estimator.classes_
        return classes

    def predict_proba(self, X: Any) -> Matrix:
        """Return the probabilities of the classes."""
        if self.sigmoids is None:
            shares: Matrix = self.estimator.predict_proba(X)
            return shares
        return calibrated(calibration_scores(self.estimator, X), self.sigmoids)

    def predict(self, X: Any) -> AnyArray:
        """Return the classes that the threshold gives."""
        classes: AnyArray = self.classes_[self.decide(self.predict_proba(X))]
        return classes

    def decide(self, probabilities: Matrix) -> Indices:
        """Return the positions of the classes that probabilities give."""
        if self.threshold is None:
            return probabilities.argmax(axis=1)
        found = probabilities[:, self.positive] >= self.threshold
        return np.where(found, self.positive, 1 - self.positive)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def outputs(classifier: Any, X: Any) -> tuple[Indices, Vector, Matrix | None]:
    """Return what a classifier of features says of rows.

    Returns
    -------
    codes : array of shape (n_rows,)
        Positions of the predicted classes.
    scores : array of shape (n_rows,)
        Of these classes: least squares scores if they are what decides, otherwise probabilities,
        or distances from the boundary where there are none.
    probabilities : array of shape (n_rows, n_classes) or None
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
    return codes, np.abs(np.asarray(classifier.decision_function(X), dtype=np.float64)), None


def calibration_scores(model: Any, X: Any) -> Matrix:
    """Return what is calibrated: the decision function or, without one, the probabilities.

    Of shape (n_rows, n_classes), or (n_rows, 1) for the second of two classes.
    """
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
    else:
        scores = np.asarray(model.predict_proba(X), dtype=np.float64)
        scores = scores[:, 1] if scores.shape[1] == 2 else scores
    return scores if scores.ndim == 2 else scores[:, None]


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
