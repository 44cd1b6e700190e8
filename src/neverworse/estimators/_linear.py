"""What all linear models share: checks of the input, progress reports, and all-or-nothing fits."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted, validate_data

from neverworse._typing import Matrix, Vector
from neverworse.estimators._input import (
    FitInput,
    checked_weights,
    explain_not_finite,
    explains_conversion,
    in_memory,
    is_lazy,
    lazy_rows,
    refuse_chunks,
)
from neverworse.estimators._kernels import LinearSpace, kernel_of, kernel_transformers
from neverworse.projection import (
    NonFiniteError,
    Observer,
    Progress,
    TrainingRows,
    Weights,
    solve_least_squares,
)
from neverworse.rows import ChunkedRows, Rows, as_rows, with_features

__all__ = [
    "CallbackSupportMixin",
    "LinearModel",
    "after_kernel",
    "columns_coef",
    "copy_input_checks",
    "explained_overflow",
    "fit_least_squares",
    "forget_fit",
    "observed_fit",
    "stored_weights",
]

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for the support of callbacks where scikit-learn has none."""


class LinearModel(CallbackSupportMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of models with the score coef·x + intercept, or one score for each class.

    Subclasses fit through `_fit_rows`.
    """

    # Whether some rows may not be read at all. If all are, NaN show in their Gram matrix, and
    # looking for them beforehand would be one more pass.
    _skips_rows: ClassVar[bool]
    # Whether `fit` asks nothing of rows that they cannot answer chunk by chunk.
    _reads_chunks: ClassVar[bool] = False
    # What is subtracted from the intercept of the score when it is stored.
    _threshold: ClassVar[float]

    kernel: Any = "linear"
    coef_: Matrix
    intercept_: Any

    def _fit(self, X: Any, y: Any, sample_weight: Any, bounds: Any = None) -> Self:
        """Fit, and be unfitted if that is interrupted or fails."""
        try:
            X = self._checked_input(X)
            rows = X if isinstance(X, Rows) else as_rows(X)
            y, sample_weight, bounds = map(in_memory, (y, sample_weight, bounds))
            weights = None
            if sample_weight is not None:
                weights = checked_weights(sample_weight, rows.n_rows)
            # Callbacks may pass it on to a metric, which knows weights but no bounds.
            metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
            with (
                explained_overflow(X, type(self).__name__),
                observed_fit(self, X, y, metadata, getattr(self, "verbose", 0)) as observer,
            ):
                self._fit_rows(FitInput(rows, y, weights, bounds, observer))
        except BaseException:  # an interrupt from the keyboard too
            forget_fit(self)
            raise
        return self

    def _checked_input(self, X: Any) -> Any:
        precomputed = self.kernel == "precomputed"
        if self._reads_chunks and is_lazy(X):
            if precomputed:
                raise TypeError(
                    "kernel='precomputed' needs the kernel matrix in memory: pass an array. For "
                    "rows in files or in a cluster, name a kernel and set n_components."
                )
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
                f"kernel='precomputed' needs the kernel of all pairs of training rows, a square "
                f"matrix, but X has the shape {X.shape}."
            )
        return X

    @abstractmethod
    def _fit_rows(self, given: FitInput) -> None:
        """Check y and the bounds, fit, and set the attributes."""

    @abstractmethod
    def to_sklearn(self) -> Any:
        """Return a plain scikit-learn estimator with the same weights.

        Returns
        -------
        estimator : sklearn estimator
            Fitted, with the same predictions, and the same `decision_function` and probabilities if
            it has them: a `RidgeClassifier`, `LogisticRegression`, `LinearDiscriminantAnalysis` or
            `LinearRegression`, after a transformer in a pipeline if there is a kernel. It knows
            nothing of neverworse, so that it can be used where that is
            not installed.
        """

    @explains_conversion
    def _scores(self, X: Any) -> Vector:
        """Return ``X @ coef_.T + intercept_``, with one row for each class if there are several.

        With a kernel, its values at the landmarks take the place of X, block by block.
        """
        check_is_fitted(self, "intercept_")
        if isinstance(X, Rows):
            rows = lazy_rows(self, X, reset=False)
        else:
            types = [np.float64, np.float32]
            rows = as_rows(validate_data(self, X, reset=False, accept_sparse="csr", dtype=types))
        stored, kernel = stored_weights(self), kernel_of(self)
        read = rows
        if kernel is not None:
            rows = with_features(rows, kernel)
        scores = rows.scores(stored.coef, stored.intercept - self._threshold)
        if isinstance(read, ChunkedRows) and not np.isfinite(scores).all():
            explain_not_finite(read)
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
        return tags


@contextmanager
def observed_fit(
    estimator: Any, X: Any, y: Any, metadata: dict[str, Any], verbose: int
) -> Iterator[Observer | None]:
    """Announce a fit to the callbacks of the estimator; yield what the solver reports to.

    Every stage of the solver is a task of scikit-learn's callback protocol; a callback that asks
    to stop ends the solver early, and what it has found so far is certified.
    """
    context = None
    if getattr(estimator, "_skl_callbacks", None):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, X=X, y=y, metadata=metadata)

    def observe(progress: Progress) -> bool:
        if verbose:
            sys.stderr.write(f"[{type(estimator).__name__}] {progress}\n")
        if context is None:
            return False
        task = context.subcontext(task_name=progress.stage)
        task.call_on_fit_task_begin(estimator=estimator, X=X, y=y, metadata=metadata)
        return bool(task.call_on_fit_task_end(estimator=estimator, X=X, y=y, metadata=metadata))

    yield observe if verbose or context is not None else None
    if context is not None:
        context.call_on_fit_task_end(
            estimator=estimator, X=X, y=y, metadata=metadata, reconstruction_attributes={}
        )


@contextmanager
def explained_overflow(X: Any, estimator_name: str) -> Iterator[None]:
    """Say what is wrong with X where sums over its rows are found not to be finite."""
    try:
        yield
    except NonFiniteError:
        if isinstance(X, ChunkedRows):
            explain_not_finite(X)
        else:
            assert_all_finite(
                X.data if sparse.issparse(X) else X, input_name="X", estimator_name=estimator_name
            )
        raise ValueError(
            "The values of X are so large (or the weights of rows) that weighted squares overflow. "
            "Rescale the columns, for example with sklearn.preprocessing.StandardScaler."
        ) from None


def stored_weights(model: LinearModel) -> Weights:
    """Return the weights of a fitted model; for a classifier, on targets coded 0 and 1."""
    intercept = np.atleast_1d(model.intercept_) + model._threshold
    return Weights(np.atleast_2d(getattr(model, model._coef_name)), intercept)


def fit_least_squares(
    model: Any,
    training: TrainingRows,
    alpha: float,
    rcond: float | None = None,
    space: LinearSpace | None = None,
) -> Weights:
    """Give a model the least squares weights of the labeled rows, and their penalty.

    The rows are in the features of `space`, and so are the weights that are returned.
    """
    space = LinearSpace() if space is None else space
    rows, target, weights = training.labeled()
    solution = solve_least_squares(
        rows,
        target,
        weights,
        alpha=alpha,
        fit_intercept=model.fit_intercept,
        rcond=rcond,
        one_unit=space.one_unit,
    ).snapped(model._threshold)
    space.store(model, solution)
    model.alpha_ = alpha
    return solution


def columns_coef(model: Any) -> Vector:
    """Return a copy of the weights of the columns that a plain linear model sees."""
    stored: Vector = getattr(model, model._coef_name)
    if model.kernel != "precomputed":
        return stored.copy()
    coef = np.zeros((*stored.shape[:-1], model.n_features_in_))
    coef[..., model.landmarks_] = stored
    return coef


def after_kernel(fitted: Any, model: Any) -> Any:
    """Return a plain linear model, after transformers if the fitted one has a kernel."""
    if fitted.kernel in ("linear", "precomputed"):
        copy_input_checks(fitted, model)
        return model
    transformers = kernel_transformers(fitted)
    copy_input_checks(fitted, transformers[0])
    model.n_features_in_ = len(fitted.landmarks_)
    return make_pipeline(*transformers, model)


def copy_input_checks(fitted: Any, model: Any) -> None:
    """Let a model expect the same columns as a fitted one."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(fitted, name):
            setattr(model, name, getattr(fitted, name))


def forget_fit(estimator: Any) -> None:
    """Remove what a fit has set, as scikit-learn's `check_is_fitted` sees it."""
    for name in list(vars(estimator)):
        if name.endswith("_") and not name.startswith("__"):
            delattr(estimator, name)
