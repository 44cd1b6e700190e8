"""What the linear classifiers share: classes, predictions and probabilities."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.linear_model import RidgeClassifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_is_fitted

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators._input import explains_conversion, lazy_on_dask
from neverworse.estimators._linear import LinearModel, after_kernel, columns_coef
from neverworse.projection import Box, Simplex


class ScoringClassifier(ClassifierMixin):  # type: ignore[misc]
    """Base of classifiers with scores: one for the second of two classes, or one for each class."""

    classes_: AnyArray
    _scores: Any  # a method of subclasses that returns shape (n_rows,) or (n_classes, n_rows)

    @lazy_on_dask
    def decision_function(self, X: Any) -> Vector:
        """Return the scores of the rows, less what a row needs to be in the class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        scores : array of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive for the second one.
        """
        return self._scores(X).T

    @lazy_on_dask
    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row: the one with the largest score.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        classes : array of shape (n_samples,)
            Where scores are equal, the first class of them.
        """
        scores = self._scores(X)
        codes = scores.argmax(axis=0) if scores.ndim > 1 else (scores > 0.0).astype(np.intp)
        classes: AnyArray = self.classes_[codes]
        return classes


class LinearClassifier(ScoringClassifier, LinearModel):
    """Base of classifiers with a linear decision function.

    Two classes have one score, for the second class; more have one score for each.
    """

    _threshold: ClassVar[float] = 0.0

    fit_intercept: bool
    missing_label: Any

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
            Weight of each row in the loss, not negative. A row of weight zero is ignored.

        Returns
        -------
        self : object
        """
        return self._fit(X, y, sample_weight)

    def to_sklearn(self) -> Any:
        check_is_fitted(self, "intercept_")
        model = RidgeClassifier(fit_intercept=self.fit_intercept)
        model.coef_, model.intercept_ = columns_coef(self), self.intercept_.copy()
        model._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1).fit(self.classes_)
        if not hasattr(RidgeClassifier, "classes_"):  # before 1.9, a property of the binarizer
            model.classes_ = self.classes_
        model.n_iter_, model.solver_ = None, "cholesky"
        return after_kernel(self, model)


class IndicatorClassifier(LinearClassifier):
    """Base of linear classifiers whose score estimates targets coded 0 and 1.

    The half that separates the classes sits in ``intercept_``.
    """

    _threshold: ClassVar[float] = 0.5

    @documented_like(LinearClassifier.fit)
    @explains_conversion
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, label_bounds: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        {X, y, sample_weight}
        label_bounds : array-like of shape (n_samples, 2) or (n_samples, n_classes, 2), optional
            Weak labels: lower and upper bound of the label of each unlabeled row, as the share of
            the second of two classes, or as the share of every class. NaN where nothing is known.
            A row whose bounds are equal counts as labeled with that soft label.

        Returns
        -------
        self : object
        """
        return self._fit(X, y, sample_weight, label_bounds)

    @lazy_on_dask
    def predict_proba(self, X: Any) -> Matrix:
        """Return the probabilities nearest to the scores.

        A least squares score on targets 0 and 1 estimates the probability of a class, but may lie
        outside of [0, 1]. It is clipped, or for several classes projected onto the simplex. The
        result is at most as far from *every* label as the score was, so its Brier score is never
        larger than the quadratic loss of the scores. For calibrated probabilities, see
        `neverworse.model_selection.WithUnlabeledRows`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        scores = self._scores(X) + self._threshold
        if scores.ndim > 1:
            return Simplex().project(scores).T
        second = Box().project(scores)
        return np.column_stack([1.0 - second, second])


def class_scores(model: Any, X: Any) -> Matrix:
    """Return scores on targets coded 0 and 1, one column for each class.

    The model is a fitted `IndicatorClassifier`, or passes on the decision function of one, as
    pipelines and searches do. The scores of two classes add up to 1.
    """
    decision = np.asarray(model.decision_function(X), dtype=np.float64)
    scores: Matrix = decision + IndicatorClassifier._threshold
    return scores if scores.ndim > 1 else np.column_stack([1.0 - scores, scores])


def has_class_scores(model: Any) -> bool:
    """Whether the decision function is a score on targets coded 0 and 1, less one half."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "named_steps"):  # a pipeline
            model = model.steps[-1][1]
        elif not isinstance(model, IndicatorClassifier) and hasattr(model, "estimator_"):
            model = model.estimator_
        else:
            return isinstance(model, IndicatorClassifier)
