"""What classifiers share that hand their rows to another one, and predict through it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    clone,
    is_classifier,
)
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
)

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse.estimators._known_labels import _check_weights
from neverworse.estimators._labels import split_labels
from neverworse.estimators._least_squares import LeastSquaresClassifier
from neverworse.estimators._linear import _forget_fit, copy_input_checks


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
        _check_weights(classes, target, unlabeled, weights)
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
        return clone(estimator).fit(self.X, self.classes[self.codes], **weights)


def _delegate_has(method: str) -> Callable[[Any], bool]:
    """Return a check for `available_if`: whether the wrapped classifier has the method."""
    return lambda self: hasattr(getattr(self, "estimator_", self._wrapped()), method)


class DelegatingClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of classifiers that fit another one, any of scikit-learn's, and predict through it.

    Subclasses fit inside of `_fitting`, and set `estimator_` and `classes_`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "missing_label": "no_validation",
    }

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
            _forget_fit(self)
            estimator = self._wrapped()
            if not is_classifier(estimator):
                raise ValueError(
                    f"estimator={estimator!r} is no classifier. Pass any classifier of "
                    "scikit-learn, for example LogisticRegression()."
                )
            (X,) = indexable(X)
            weights = None
            if sample_weight is not None:
                _check_takes_weights(estimator)
                nothing = np.empty((_num_samples(X), 0))
                weights = _check_sample_weight(
                    sample_weight, nothing, dtype=np.float64, ensure_non_negative=True
                )
            yield estimator, X, weights
            copy_input_checks(self.estimator_, self)
        except BaseException:  # an interrupt from the keyboard too
            _forget_fit(self)
            raise

    def _wrapped(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        # Whatever marks unlabeled rows here, a null value is no class.
        return LeastSquaresClassifier(missing_label=np.nan)

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row, as the fitted classifier `estimator_` predicts it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or anything else that it accepts

        Returns
        -------
        classes : array of shape (n_samples,)
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(X)

    @available_if(_delegate_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Vector:
        """Return the decision function of the fitted classifier `estimator_`, if it has one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or anything else that it accepts

        Returns
        -------
        scores : array of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.decision_function(X)

    @available_if(_delegate_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Matrix:
        """Return the probabilities of the fitted classifier `estimator_`, if it has them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or anything else that it accepts

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        wrapped = get_tags(self._wrapped()).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = wrapped.sparse, wrapped.allow_nan
        return tags


def _check_takes_weights(estimator: Any) -> None:
    if has_fit_parameter(estimator, "sample_weight"):
        return
    routed = get_config()["enable_metadata_routing"]
    if routed and get_routing_for_object(estimator).consumes("fit", ["sample_weight"]):
        return
    raise ValueError(
        f"sample_weight was given, but {type(estimator).__name__} does not take it in fit. Leave "
        "it out, or choose a classifier that does. (A pipeline or a search does once metadata "
        "routing of scikit-learn is enabled and one of its steps requests sample_weight.)"
    )
