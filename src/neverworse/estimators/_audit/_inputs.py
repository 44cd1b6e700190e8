"""What an audit compares, and what it knows about the labels.

Models are classifiers or arrays of scores. Unlike in a fit, the classes are those of the
classifiers: y need not have all of them, nor any label at all.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from neverworse._typing import AnyArray, Mask, Vector
from neverworse.estimators._delegating import predicted_codes
from neverworse.estimators._known_labels import LARGEST_TARGET, KnownLabels, coded_labels
from neverworse.estimators._labels import (
    check_classes,
    find_unlabeled,
    label_array,
    native_dtype,
    shown_classes,
    split_labels,
)
from neverworse.estimators._linear import class_scores, has_class_scores

# Tolerance for probabilities that should add up to one; they may be in single precision.
SUM_TOLERANCE = 1e-4

Response = Literal["predict_proba", "score", "error"]
Models = dict[str, Any]  # the candidate and the baseline, under the names of the arguments

_NEEDED = {
    "predict_proba": "predict_proba",
    "score": "decision_function that is known as a score on targets coded 0 and 1",
    "error": "predict",
}


def is_array(model: Any) -> bool:
    return not hasattr(model, "predict")


def described(name: str, model: Any) -> str:
    """Return how messages refer to a model."""
    return f"The {name} ({'an array' if is_array(model) else type(model).__name__})"


def count_rows(models: Models, X: Any, y: Any) -> int:
    labels = label_array(y)
    if not len(labels):
        raise ValueError("y has no rows: there is nothing to audit.")
    if X is None and not all(map(is_array, models.values())):
        raise ValueError("X is None: it is required unless both models are arrays of scores.")
    check_consistent_length(X, labels)
    return len(labels)


def chosen_response(models: Models, response: str) -> Response:
    """Return what to compare, after a check that all models are fitted and have it."""
    estimators = {name: model for name, model in models.items() if not is_array(model)}
    for name, model in estimators.items():
        if hasattr(model, "fit"):
            check_is_fitted(model)
        if not hasattr(model, "classes_"):
            raise ValueError(
                f"{described(name, model)} has no classes_, so it is not a fitted classifier. Pass "
                "a fitted classifier, or an array of scores on targets coded 0 and 1."
            )
    if response == "auto":
        has_all = all(hasattr(model, "predict_proba") for model in estimators.values())
        response = "predict_proba" if estimators and has_all else "score"
    if response not in _NEEDED:
        raise ValueError(
            f"response={response!r} is unknown. Pass 'auto', 'predict_proba', 'score' or 'error'."
        )
    for name, model in models.items():
        has = has_class_scores(model) if response == "score" else hasattr(model, _NEEDED[response])
        if not has and (response == "error" or name in estimators):
            raise ValueError(
                f"{described(name, model)} has no {_NEEDED[response]}. Compare probabilities with "
                "response='predict_proba' (wrap a classifier that has none in "
                "sklearn.calibration.CalibratedClassifierCV), the classes that two classifiers "
                "predict with response='error', or two arrays of scores on targets coded 0 and 1."
            )
    return response  # type: ignore[return-value]


def scores_of(
    name: str, model: Any, X: Any, response: Response, classes: AnyArray, used: Mask
) -> Vector:
    """Return one score for each row, or one row of scores for each of several classes."""
    n, n_classes, subject = len(used), len(classes), described(name, model)
    if is_array(model):
        scores = _as_numbers(name, model)
    elif response == "error":
        scores = np.eye(n_classes)[predicted_codes(subject, model.predict(X), classes)]
    elif response == "score":
        scores = class_scores(model, X)
    else:
        scores = _as_numbers(name, getattr(model, response)(X))
        # The columns are in the order of the classifier's own classes, whatever that is.
        if scores.shape == (n, n_classes):
            scores = scores[:, np.argsort(model.classes_, kind="stable")]
    if scores.shape != (n, n_classes) and (n_classes > 2 or scores.shape != (n,)):
        raise ValueError(
            f"{subject} has scores of shape {scores.shape}, but ({n}, {n_classes}) is needed, or "
            f"({n},) for two classes."
        )
    # Whatever rows without a weight have is ignored, and equal shares pass all checks.
    scores = np.where(used if scores.ndim == 1 else used[:, None], scores, 1.0 / n_classes)
    _check_values(subject, scores, response == "predict_proba", n_classes)
    if scores.ndim == 1:
        return scores
    return scores[:, 1].copy() if n_classes == 2 else np.ascontiguousarray(scores.T)


def _check_values(subject: str, scores: Vector, is_probability: bool, n_classes: int) -> None:
    """Raise an error that names the first row with something wrong in it, if there is one."""
    size = np.abs(scores)
    problems = {"are NaN, infinite or too large to be squared": ~(size < LARGEST_TARGET)}
    if is_probability:
        problems["are outside [0, 1]"] = np.abs(scores - 0.5) > 0.5 + SUM_TOLERANCE
    if scores.ndim > 1 and (is_probability or n_classes == 2):
        off = np.abs(scores.sum(axis=1) - 1.0)
        problems["do not add up to 1"] = off > SUM_TOLERANCE * np.maximum(1.0, size.max(axis=1))
    for problem, wrong in problems.items():
        if wrong.any():
            row = int(np.argwhere(wrong)[0, 0])
            raise ValueError(
                f"{subject} has values that {problem}, first in row {row}: {scores[row]}. "
                "Correct them, or leave such rows out (or give them a sample_weight of zero). With "
                "response='score', arrays may have any numbers: those of the second of two classes."
            )


def _as_numbers(name: str, given: Any) -> Vector:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"The {name} is neither a fitted estimator nor an array of numbers, but of type "
            f"{type(given).__name__}."
        ) from None


def labels_of_classes(
    models: Models, y: Any, missing_label: Any, weights: Vector | None, bounds: Any
) -> KnownLabels:
    """Return what is known about the labels, in terms of the classes of the classifiers."""
    found = [_sorted_classes(name, model) for name, model in models.items() if not is_array(model)]
    if len(found) == 2 and found[0].tolist() != found[1].tolist():
        raise ValueError(
            f"The candidate has the classes {shown_classes(found[0])}, but the baseline has "
            f"{shown_classes(found[1])}. Fit both to the same classes, without unlabeled rows."
        )
    classes = found[0] if found else _classes_of_arrays(models, y, missing_label)
    classes, target, unlabeled = split_labels(y, missing_label, classes)
    return coded_labels(classes, target.astype(np.intp), unlabeled, weights, bounds)


def _sorted_classes(name: str, model: Any) -> AnyArray:
    classes = model.classes_
    if (isinstance(classes, list) and np.ndim(classes[0]) > 0) or len(classes) < 2:
        raise ValueError(
            f"{described(name, model)} has one class only, or several outputs: classes_ is "
            f"{classes!r}. Audit one output at a time, fitted to two or more classes."
        )
    return np.sort(np.asarray(classes))


def _classes_of_arrays(models: Models, y: Any, missing_label: Any) -> AnyArray:
    """Return the classes in y, one for each column of the scores."""
    shapes = [np.shape(model) for model in models.values()]
    n_columns = {2 if len(shape) == 1 else shape[-1] if shape else 0 for shape in shapes}
    n_classes = max(n_columns)
    unlabeled = find_unlabeled(y, missing_label)
    # With no label at all, no name of a class matters.
    classes = np.unique(native_dtype(label_array(y)[~unlabeled]))
    classes = np.arange(n_classes) if unlabeled.all() else classes
    if n_columns != {len(classes)} or n_classes < 2:
        raise ValueError(
            "candidate and baseline have to be estimators, or arrays of scores of the classes in y "
            f"({shown_classes(classes)}) with the shape (n_samples,) for two classes or (n_samples,"
            f" n_classes), but have the shapes {shapes[0]} and {shapes[1]}. Fitted classifiers know"
            " their classes even if y lacks some."
        )
    return classes if unlabeled.all() else check_classes(classes, len(unlabeled))
