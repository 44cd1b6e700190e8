"""What users pass to `fit` and `predict`: arrays, files, Dask collections, weights, callbacks."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _check_n_features, _check_sample_weight

from neverworse._typing import AnyArray, Vector
from neverworse.projection import NonFiniteError, Observer, Progress
from neverworse.rows import ChunkedRows, Rows

Method = TypeVar("Method", bound=Callable[..., Any])

# What predictions need of a fitted model; the rest may be as long as the training rows.
_NEEDED = {"coef_", "intercept_", "classes_", "n_features_in_"}
_NEEDED |= {"dual_coef_", "landmarks_", "gamma_"}  # with a kernel
# Beginnings of messages about values that are not numbers, or rows that differ in length.
_NOT_NUMBERS = ("could not convert", "setting an array element", "float() argument must be")
# Beyond these, products of weights with squares of scores or narrow bounds are not finite.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-50, 1e50


@dataclass(frozen=True)
class FitInput:
    """Arguments of `fit`, checked as far as possible without looking at the labels."""

    rows: Rows
    y: Any
    weights: Vector | None = None
    bounds: Any = None
    observer: Observer | None = None  # is told about the progress


def explains_conversion(method: Method) -> Method:
    """Add the fix to errors of NumPy and Python about values that are not numbers."""

    @wraps(method)
    def explained(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except (OverflowError, TypeError, ValueError) as error:
            is_overflow = isinstance(error, OverflowError)
            if not is_overflow and not str(error).startswith(_NOT_NUMBERS):
                raise
            raise (ValueError if is_overflow else type(error))(
                "X, y, sample_weight, bounds or a parameter is not an array of numbers: "
                f"{str(error).rstrip('.')}. Encode text as numbers, give all rows the same "
                "columns, and rescale integers that are too large for a floating point number."
            ) from None

    return explained  # type: ignore[return-value]


def checked_weights(sample_weight: Any, n_rows: int) -> Vector:
    """Return weights as an array of shape (n_rows,): zero, or positive within limits."""
    weights: Vector = _check_sample_weight(
        sample_weight, np.broadcast_to(0.0, (n_rows, 1)), dtype=np.float64, ensure_non_negative=True
    )
    unusable = ((weights > 0.0) & (weights < SMALLEST_WEIGHT)) | (weights > LARGEST_WEIGHT)
    if unusable.any():
        row = int(unusable.argmax())
        raise ValueError(
            f"sample_weight is {weights[row]:.3g} in row {row}, but positive weights have to lie "
            f"between {SMALLEST_WEIGHT:.0e} and {LARGEST_WEIGHT:.0e}. Rescale them, or use zeros."
        )
    return weights


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; does not import Dask to find out."""
    return type(X).__module__.partition(".")[0] == "dask"


def is_lazy(X: Any) -> bool:
    """Whether X is to be read by `lazy_rows`."""
    return isinstance(X, Rows) or is_dask(X)


def refuse_chunks(model: Any, X: Any, dask: bool = False) -> None:
    """Refuse rows in files, and with `dask` Dask collections, if a model needs all in memory."""
    precomputed = getattr(model, "kernel", None) == "precomputed"
    if isinstance(X, Rows) or (is_dask(X) and (precomputed or dask)):
        kernel = " with kernel='precomputed'" if precomputed else ""
        raise TypeError(
            f"{type(model).__name__}{kernel} needs all rows in memory: pass an array, a sparse "
            "matrix or a data frame, which X.compute() makes of a Dask collection. "
            "ProjectedLeastSquaresClassifier reads rows chunk by chunk, with a named kernel if "
            "n_components is set."
        )


def lazy_rows(model: Any, X: Any, *, reset: bool) -> Rows:
    """Return rows with columns that are those of a model, or with `reset` become so."""
    if isinstance(X, Rows):
        rows = X
    else:
        from neverworse.rows import DaskRows

        rows = DaskRows(X)
    if not reset:
        check_columns(model, rows.n_columns, rows.column_names)
        return rows
    if not (rows.n_rows and rows.n_columns):
        shape = f"({rows.n_rows}, {rows.n_columns})"
        raise ValueError(f"Found array with shape={shape} while a minimum of 1 is required.")
    model.n_features_in_ = rows.n_columns
    if rows.column_names is not None:
        model.feature_names_in_ = np.asarray(rows.column_names, dtype=object)
    return rows


def check_columns(model: Any, n_columns: int, names: list[str] | None) -> None:
    _check_n_features(model, np.broadcast_to(0.0, (1, n_columns)), reset=False)
    known = getattr(model, "feature_names_in_", None)
    if known is not None and names is not None and list(known) != list(names):
        expected, found = next(pair for pair in zip(known, names, strict=True) if len({*pair}) > 1)
        raise ValueError(
            "The feature names should match those that were passed during fit: where "
            f"{expected!r} is expected, X has {found!r}."
        )


def copy_input_checks(fitted: Any, model: Any) -> None:
    """Copy the number and names of the columns from a fitted model."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(fitted, name):
            setattr(model, name, getattr(fitted, name))


def forget_fit(estimator: Any, but: Collection[str] = ()) -> None:
    """Remove the fitted attributes, those that end with an underscore."""
    for name in list(vars(estimator)):
        if name.endswith("_") and not name.startswith("__") and name not in but:
            delattr(estimator, name)


@contextmanager
def fresh_fit(estimator: Any) -> Iterator[None]:
    """Forget the last fit, and also this one if it fails or is interrupted."""
    forget_fit(estimator)
    try:
        yield
    except BaseException:  # an interrupt from the keyboard too
        forget_fit(estimator)
        raise


def in_memory(values: Any) -> Any:
    """Return labels, weights or bounds; those of a Dask collection are fetched."""
    if not is_dask(values):
        return values
    from neverworse.rows import gather

    return gather(values)


def explain_not_finite(rows: ChunkedRows) -> None:
    """Raise an error that says where X has NaN or infinity, if it has."""
    found = rows.first_not_finite()
    if found is None:
        return
    row, column, value = found
    what = "NaN" if np.isnan(value) else "infinity or a value too large for dtype('float64')"
    name = column if rows.column_names is None else repr(rows.column_names[column])
    raise ValueError(
        f"Input X contains {what}: {rows.where(row)}, column {name}. Fill in what is missing, or "
        "drop these rows."
    )


@contextmanager
def observed_fit(
    estimator: Any, X: Any, y: Any, metadata: dict[str, Any], verbose: int
) -> Iterator[Observer | None]:
    """Report a fit to the callbacks of the estimator, which may stop it through the observer."""
    data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
    context = None
    if getattr(estimator, "_skl_callbacks", None):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(**data)

    def observe(progress: Progress) -> bool:
        if verbose:
            sys.stderr.write(f"[{type(estimator).__name__}] {progress}\n")
        if context is None:
            return False
        task = context.subcontext(task_name=progress.stage)
        task.call_on_fit_task_begin(**data)
        return bool(task.call_on_fit_task_end(**data))

    yield observe if verbose or context is not None else None
    if context is not None:
        context.call_on_fit_task_end(**data, reconstruction_attributes={})


@contextmanager
def explained_overflow(X: Any, estimator_name: str) -> Iterator[None]:
    """Explain what is wrong with X if sums over its rows are not finite."""
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


def lazy_on_dask(method: Method) -> Method:
    """Let a method that predicts return a Dask array where X is a Dask collection."""

    @wraps(method)
    def predict(self: Any, X: Any) -> Any:
        if not is_dask(X) or not hasattr(self, "intercept_"):
            return method(self, X)
        from neverworse.rows import map_rows

        model = copy.copy(self)
        forget_fit(model, but=_NEEDED)
        function = partial(_predict_chunk, model, method.__name__)
        like = function(np.zeros((1, self.n_features_in_)))
        predicted = map_rows(X, function, like, f"neverworse-{method.__name__}")
        check_columns(self, X.shape[1], list(X.columns) if hasattr(X, "columns") else None)
        return predicted

    return predict  # type: ignore[return-value]


def _predict_chunk(model: Any, method: str, X: Any) -> AnyArray:
    if not X.shape[0]:  # an empty chunk is not a mistake
        return _predict_chunk(model, method, np.zeros((1, model.n_features_in_)))[:0]
    return getattr(model, method)(X)
