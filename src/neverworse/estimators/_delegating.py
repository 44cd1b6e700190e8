"""What classifiers share that hand their rows to another one, and predict through it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_consistent_length

from neverworse._typing import AnyArray, Indices, Mask, Vector
from neverworse.estimators._known_labels import check_weights
from neverworse.estimators._labels import split_labels
from neverworse.estimators._lazy import refuse_chunks
from neverworse.estimators._least_squares import LeastSquaresClassifier
from neverworse.estimators._linear import copy_input_checks, forget_fit
from neverworse.estimators._predictions import PassesPredictionsOn
from neverworse.estimators._wrapped import copy_for_known_labels, weights_for


@dataclass(frozen=True)
class LabeledRows:
    """Rows as they were given, with what is known about their labels.

    Attributes
    ----------
    X : anything that the classifier accepts
        Never changed, and not copied but for the rows that `take` chooses.
    classes : array of shape (n_classes,)
    codes : array of int, of shape (n_rows,)
        Position of the class of each row; zero where it is unlabeled.
    unlabeled : boolean array of shape (n_rows,)
    weights : array of shape (n_rows,) or None
    """

    X: Any
    classes: AnyArray
    codes: Indices
    unlabeled: Mask
    weights: Vector | None

    @classmethod
    def split(cls, X: Any, y: Any, missing_label: Any, weights: Vector | None) -> LabeledRows:
        """Find the classes, and which rows carry one."""
        classes, target, unlabeled = split_labels(y, missing_label)
        check_consistent_length(X, target)
        check_weights(classes, target, unlabeled, weights)
        return cls(X, classes, target.astype(np.intp), unlabeled, weights)

    def labeled(self) -> LabeledRows:
        """Return the labeled rows alone."""
        if not self.unlabeled.any():
            return self
        chosen = np.flatnonzero(~self.unlabeled)
        return LabeledRows(
            _safe_indexing(self.X, chosen),
            self.classes,
            self.codes[chosen],
            self.unlabeled[chosen],
            None if self.weights is None else self.weights[chosen],
        )

    def fit(self, estimator: Any) -> Any:
        """Return a copy of the estimator, fitted to all rows with the labels that they have."""
        weights = {} if self.weights is None else {"sample_weight": self.weights}
        labels = self.classes[self.codes]
        return copy_for_known_labels(estimator).fit(self.X, labels, **weights)


class DelegatingClassifier(PassesPredictionsOn, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of classifiers that fit another one, any of scikit-learn's, and predict through it.

    Subclasses fit inside of `_fitting`, and set `estimator_` and `classes_`.
    """

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
        """Yield the classifier to fit, X and the weights, all checked as far as that is possible.

        Leaves the estimator unfitted if the fit inside does not come to an end, for whatever
        reason.
        """
        try:
            forget_fit(self)
            refuse_chunks(self, X)
            estimator = self._wrapped()
            if not is_classifier(estimator):
                raise ValueError(
                    f"estimator={estimator!r} is no classifier. Pass any classifier of "
                    "scikit-learn, for example LogisticRegression()."
                )
            (X,) = indexable(X)
            weights = None
            if sample_weight is not None:
                weights = weights_for([estimator], X, sample_weight)
            yield estimator, X, weights
            copy_input_checks(self.estimator_, self)
        except BaseException:  # an interrupt from the keyboard too
            forget_fit(self)
            raise

    def _wrapped(self) -> Any:
        return LeastSquaresClassifier() if self.estimator is None else self.estimator

    def _can(self, method: str) -> bool:
        return hasattr(getattr(self, "estimator_", self._wrapped()), method)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        wrapped = get_tags(self._wrapped()).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = wrapped.sparse, wrapped.allow_nan
        return tags
