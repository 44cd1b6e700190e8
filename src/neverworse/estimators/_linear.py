"""Base classes of linear models: classifiers with their scores, and regressions."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_is_fitted, validate_data

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators._input import (
    FitInput,
    checked_weights,
    copy_input_checks,
    explain_not_finite,
    explained_overflow,
    explains_conversion,
    fresh_fit,
    in_memory,
    is_lazy,
    lazy_on_dask,
    lazy_rows,
    observed_fit,
    refuse_chunks,
)
from neverworse.estimators._kernels import kernel_of, kernel_transformers
from neverworse.estimators._known_labels import UNBOUNDED, KnownLabels, known_labels, known_targets
from neverworse.projection import Box, Simplex, Weights
from neverworse.rows import ChunkedRows, Rows, as_rows, with_features

if TYPE_CHECKING:
    # scikit-learn has no type hints: below an unknown base, checkers would accept any name.
    class BaseEstimator:
        n_features_in_: int

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin: ...

    class RegressorMixin: ...

    class CallbackSupportMixin: ...
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

    try:
        from sklearn.callback import CallbackSupportMixin
    except ImportError:  # scikit-learn before 1.9 has no callbacks
        CallbackSupportMixin = type("CallbackSupportMixin", (), {})


class LinearModel(CallbackSupportMixin, BaseEstimator, ABC):
    """Base of models with the score coef·x + intercept, or one score for each class."""

    # Whether `fit` skips some rows. If not, NaN are found in the Gram matrix of all.
    _skips_rows: ClassVar[bool]
    _reads_chunks: ClassVar[bool] = False  # whether `fit` can read rows chunk by chunk
    _threshold: ClassVar[float] = 0.0  # subtracted from the intercept when it is stored

    kernel: Any = "linear"
    gamma: Any
    n_components: Any
    fit_intercept: bool
    missing_label: Any
    coef_: Matrix
    intercept_: Any
    landmarks_: AnyArray
    _read_labels: Any  # a method of subclasses that returns checked labels, weights and bounds

    def _fit(self, X: Any, y: Any, sample_weight: Any, bounds: Any = None) -> Self:
        with fresh_fit(self):
            X = self._checked_input(X)
            rows = X if isinstance(X, Rows) else as_rows(X)
            y, sample_weight, bounds = map(in_memory, (y, sample_weight, bounds))
            # Callbacks may pass metadata on to a metric, which knows weights but no bounds.
            metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
            weights = checked_weights(sample_weight, rows.n_rows) if metadata else None
            with (
                explained_overflow(X, type(self).__name__),
                observed_fit(self, X, y, metadata, getattr(self, "verbose", 0)) as observer,
            ):
                self._fit_rows(FitInput(rows, y, weights, bounds, observer))
        return self

    def _checked_input(self, X: Any) -> Any:
        precomputed = self.kernel == "precomputed"
        if self._reads_chunks and is_lazy(X) and not precomputed:
            return lazy_rows(self, X, reset=True)
        refuse_chunks(self, X)
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=self._skips_rows or self.kernel != "linear",
        )
        if precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(
                "kernel='precomputed' needs the kernel of all pairs of training rows, a square "
                f"matrix, but X has the shape {X.shape}."
            )
        return X

    @abstractmethod
    def _fit_rows(self, given: FitInput) -> None:
        """Check y and the bounds, fit, and set the attributes."""

    def to_sklearn(self) -> Any:
        """Return a plain scikit-learn estimator with the same weights.

        Returns
        -------
        estimator : sklearn estimator
            Fitted, with the same predictions, and independent of neverworse: a linear model, after
            a transformer in a pipeline if there is a kernel.
        """
        check_is_fitted(self, "intercept_")
        model, coef = self._plain_model(), getattr(self, self._coef_name).copy()
        if self.kernel == "precomputed":  # all training rows are columns, not only the landmarks
            coef = np.zeros((*coef.shape[:-1], self.n_features_in_))
            coef[..., self.landmarks_] = getattr(self, self._coef_name)
        model.coef_, model.intercept_ = coef, copy.copy(self.intercept_)
        if self.kernel in ("linear", "precomputed"):
            copy_input_checks(self, model)
            return model
        transformers = kernel_transformers(self)
        copy_input_checks(self, transformers[0])
        model.n_features_in_ = len(self.landmarks_)
        return make_pipeline(*transformers, model)

    @abstractmethod
    def _plain_model(self) -> Any:
        """Return the counterpart in scikit-learn, fitted but for its weights."""

    @explains_conversion
    def _scores(self, X: Any) -> Vector:
        """Return ``X @ coef_.T + intercept_``, with one row for each class if there are several."""
        check_is_fitted(self, "intercept_")
        if isinstance(X, Rows):
            rows = lazy_rows(self, X, reset=False)
        else:
            types = [np.float64, np.float32]
            rows = as_rows(validate_data(self, X, reset=False, accept_sparse="csr", dtype=types))
        stored, kernel = stored_weights(self), kernel_of(self)
        features = rows if kernel is None else with_features(rows, kernel)
        scores = features.scores(stored.coef, stored.intercept - self._threshold)
        if isinstance(rows, ChunkedRows) and not np.isfinite(scores).all():
            explain_not_finite(rows)
        return scores if len(scores) > 1 else scores[0]

    def _set_weights(self, weights: Weights) -> None:
        """Store weights with a snapped intercept."""
        setattr(self, self._coef_name, weights.coef)
        self.intercept_ = weights.intercept - self._threshold

    @property
    def _coef_name(self) -> str:
        return "coef_" if self.kernel == "linear" else "dual_coef_"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def __dask_tokenize__(self) -> Any:
        # Dask would compare the fields of data classes, which are parameters only.
        from dask.base import normalize_token

        return normalize_token((type(self), vars(self)))


class ScoringClassifier(ClassifierMixin):
    """Base of classifiers with scores: one for the second of two classes, or one for each class."""

    classes_: AnyArray
    _scores: Any  # a method of subclasses that returns shape (n_rows,) or (n_classes, n_rows)

    @lazy_on_dask
    def decision_function(self, X: Any) -> Vector:
        """Return the scores of the rows, relative to the decision threshold.

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
        """
        scores = self._scores(X)
        codes = scores.argmax(axis=0) if scores.ndim > 1 else (scores > 0.0).astype(np.intp)
        return np.asarray(self.classes_[codes])


class LinearClassifier(ScoringClassifier, LinearModel):
    """Base of classifiers with a linear decision function."""

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
            Non-negative weight of each row in the loss. A row of weight zero is ignored.

        Returns
        -------
        self : object
        """
        return self._fit(X, y, sample_weight)

    def _plain_model(self) -> Any:
        model = RidgeClassifier(fit_intercept=self.fit_intercept)
        model._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1).fit(self.classes_)
        if not hasattr(RidgeClassifier, "classes_"):  # before 1.9, a property of the binarizer
            model.classes_ = self.classes_
        model.n_iter_, model.solver_ = None, "cholesky"
        return model


class IndicatorClassifier(LinearClassifier):
    """Base of linear classifiers whose score estimates targets coded 0 and 1."""

    _threshold: ClassVar[float] = 0.5

    class_weight: Any = None

    def _read_labels(self, given: FitInput) -> KnownLabels:
        known = known_labels(given, self.missing_label, self.class_weight)
        self.classes_ = known.classes
        return known

    @documented_like(LinearClassifier.fit)
    @explains_conversion
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, label_bounds: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        {X, y, sample_weight}
        label_bounds : array-like of shape (n_samples, 2) or (n_samples, n_classes, 2), optional
            Weak labels: bounds of the share of the second of two classes, or of every class. NaN
            where nothing is known. A row with equal bounds counts as labeled with that soft label.

        Returns
        -------
        self : object
        """
        return self._fit(X, y, sample_weight, label_bounds)

    @lazy_on_dask
    def predict_proba(self, X: Any) -> Matrix:
        """Return the probabilities nearest to the scores.

        Scores are clipped to [0, 1], or for several classes projected onto the simplex. This never
        moves them away from *any* label, so that the Brier score is at most their quadratic loss.
        For calibrated probabilities, see `neverworse.model_selection.WithUnlabeledRows`.

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


class LinearRegressor(RegressorMixin, LinearModel):
    """Base of regressions with the prediction coef·x + intercept."""

    coef_: Vector
    intercept_: float

    @documented_like(LinearClassifier.fit)
    @explains_conversion
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, target_bounds: Any = None) -> Self:
        """Fit the regression.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            Targets, and a marker (NaN, unless `missing_label` says otherwise) for rows without one.
        {sample_weight}
        target_bounds : array-like of shape (n_samples, 2), optional
            Smallest and largest possible target of each row; NaN where nothing is known but what
            was said in the constructor. A row whose bounds are equal counts as labeled.

        Returns
        -------
        self : object
        """
        return self._fit(X, y, sample_weight, target_bounds)

    @lazy_on_dask
    def predict(self, X: Any) -> Vector:
        """Return ``X @ coef_ + intercept_``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        targets : array of shape (n_samples,)
        """
        return self._scores(X)

    def _read_labels(self, given: FitInput) -> KnownLabels:
        # Supervised models ignore rows without a target, whatever its bounds.
        return known_targets(given, self.missing_label, getattr(self, "target_bounds", UNBOUNDED))

    def _plain_model(self) -> Any:
        return LinearRegression(fit_intercept=self.fit_intercept)

    def _set_weights(self, weights: Weights) -> None:
        setattr(self, self._coef_name, weights.coef[0])
        self.intercept_ = float(weights.intercept[0]) + 0.0  # without intercept, it may be -0.0


def class_scores(model: Any, X: Any) -> Matrix:
    """Return scores on targets coded 0 and 1, one column for each class, if a model has them."""
    decision = np.asarray(model.decision_function(X), dtype=np.float64)
    scores: Matrix = decision + IndicatorClassifier._threshold
    return scores if scores.ndim > 1 else np.column_stack([1.0 - scores, scores])


def has_class_scores(model: Any) -> bool:
    """Whether the decision function (of the estimator inside) is a 0/1 score, less one half."""
    if hasattr(model, "named_steps"):  # a pipeline
        return has_class_scores(model.steps[-1][1])
    inner = getattr(model, "best_estimator_", getattr(model, "estimator_", None))
    return isinstance(model, IndicatorClassifier) or (inner is not None and has_class_scores(inner))


def stored_weights(model: LinearModel) -> Weights:
    """Return the weights of a fitted model; for a classifier, on targets coded 0 and 1."""
    intercept = np.atleast_1d(model.intercept_) + model._threshold
    return Weights(np.atleast_2d(getattr(model, model._coef_name)), intercept)
