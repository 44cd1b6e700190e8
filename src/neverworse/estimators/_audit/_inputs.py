"""What an audit compares, and what it knows about the labels.

Models are classifiers, regressors, or arrays of scores. Unlike in a fit, the classes are those of
the classifiers: y need not have all of them, nor any label at all.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import _num_samples, check_is_fitted

from neverworse._typing import AnyArray, Mask, Matrix, Vector
from neverworse.estimators._known_labels import (
    LARGEST_TARGET,
    KnownLabels,
    coded_labels,
    known_targets,
)
from neverworse.estimators._labels import (
    check_classes,
    find_unlabeled,
    is_auto,
    label_array,
    native_dtype,
    shown_classes,
    split_labels,
)
from neverworse.estimators._linear import class_scores, has_class_scores

# Tolerance for probabilities that should add up to one; they may be in single precision.
SUM_TOLERANCE = 1e-4

Response = Literal["predict_proba", "score", "error", "predict"]
Models = dict[str, Any]  # the candidate and the baseline, under the names of the arguments

_NEEDED = {
    "predict_proba": "predict_proba",
    "score": "decision_function that is known as a score on targets coded 0 and 1",
    "error": "predict",
}


def is_array(model: Any) -> bool:
    return not hasattr(model, "predict")


def predicts_targets(model: Any) -> bool:
    return (
        hasattr(model, "__sklearn_tags__") and not isinstance(model, type) and is_regressor(model)
    )


def described(name: str, model: Any) -> str:
    """Return how messages refer to a model."""
    return f"The {name} ({'an array' if is_array(model) else type(model).__name__})"


def count_rows(models: Models, X: Any, y: Any) -> int:
    n_rows = len(label_array(y))
    if n_rows == 0:
        raise ValueError("y has no rows: there is nothing to audit.")
    if X is None and not all(is_array(model) for model in models.values()):
        raise ValueError("X is None: it is required unless both models are arrays of scores.")
    if X is not None and _num_samples(X) != n_rows:
        raise ValueError(
            f"X has {_num_samples(X)} rows, but y has {n_rows}. Pass a label for every row, with a "
            "marker such as -1 where there is none."
        )
    return n_rows


def chosen_response(models: Models, response: str) -> Response:
    """Return what to compare, after a check that all models are fitted and have it."""
    estimators = {name: model for name, model in models.items() if not is_array(model)}
    for name, model in estimators.items():
        if hasattr(model, "fit"):
            check_is_fitted(model)
        if not predicts_targets(model) and not hasattr(model, "classes_"):
            raise ValueError(
                f"{described(name, model)} has no classes_, so it is not a fitted classifier. Pass "
                "a fitted classifier, two regressors, or an array of scores."
            )
    regressors = [name for name, model in estimators.items() if predicts_targets(model)]
    if regressors:
        if len(regressors) < len(estimators) or response != "auto":
            raise ValueError(
                f"The {regressors[0]} is a regressor, so that predictions are compared: pass two "
                f"regressors, and response='auto' (got {response!r})."
            )
        return "predict"
    needed = _NEEDED.get(response, "")
    if response == "auto":
        has_all = all(hasattr(model, "predict_proba") for model in estimators.values())
        response = "predict_proba" if estimators and has_all else "score"
        needed = f"predict_proba and no {_NEEDED['score']}"
    if response not in _NEEDED:
        raise ValueError(
            f"response={response!r} is unknown. Pass 'auto', 'predict_proba', 'score' or 'error'."
        )
    for name, model in models.items():
        found = (
            has_class_scores(model) if response == "score" else hasattr(model, _NEEDED[response])
        )
        if not found and (response == "error" or name in estimators):
            raise ValueError(
                f"{described(name, model)} has no {needed}. Compare probabilities with "
                "response='predict_proba' (wrap a classifier that has none in "
                "sklearn.calibration.CalibratedClassifierCV), the classes that two classifiers "
                "predict with response='error', or two arrays of scores on targets coded 0 and 1."
            )
    return response  # type: ignore[return-value]


def scores_of(
    name: str, model: Any, X: Any, response: Response, classes: AnyArray, used: Mask
) -> Vector:
    """Return one score for each row, or one row of scores for each of several classes.

    The scores of a regression, which has no classes, are its predictions.
    """
    n, n_classes, subject = len(used), len(classes), described(name, model)
    if is_array(model):
        scores = _as_numbers(name, model)
    elif response == "error":
        scores = _indicators(subject, model.predict(X), classes)
    elif response == "score":
        scores = class_scores(model, X)
    else:
        scores = _as_numbers(name, getattr(model, response)(X))
        # The columns are in the order of the classifier's own classes, whatever that is.
        if n_classes and scores.shape == (n, n_classes):
            scores = scores[:, np.argsort(model.classes_, kind="stable")]
    shapes: list[tuple[int, ...]] = [(n, n_classes)] if n_classes else []
    if n_classes <= 2:
        shapes.append((n,))
    if scores.shape not in shapes:
        raise ValueError(
            f"{subject} has scores of shape {scores.shape}, but {' or '.join(map(str, shapes))} is "
            f"needed for {n} rows in y" + (f" and {n_classes} classes." if n_classes else ".")
        )
    # Whatever rows without a weight have is ignored, and equal shares pass all checks.
    ignored = 1.0 / n_classes if n_classes else 0.0
    scores = np.where(used if scores.ndim == 1 else used[:, None], scores, ignored)
    _refuse(
        f"{subject} has values that are NaN, infinite or too large to be squared",
        ~(np.abs(scores) < LARGEST_TARGET),
        scores,
        "Leave such rows out, or give them a sample_weight of zero.",
    )
    if response == "predict_proba":
        outside = np.abs(scores - 0.5) > 0.5 + SUM_TOLERANCE
        fix = (
            "Correct them, or pass arrays for both and response='score': these may be any numbers."
        )
        _refuse(f"{subject} has probabilities outside [0, 1]", outside, scores, fix)
    if scores.ndim == 1:
        return scores
    if response == "predict_proba" or n_classes == 2:
        off = np.abs(scores.sum(axis=1) - 1.0)
        _refuse(
            f"{subject} has scores or probabilities that do not add up to 1",
            off > SUM_TOLERANCE * np.maximum(1.0, np.abs(scores).max(axis=1)),
            scores,
            "Correct them, or for two classes pass an array with the second one's only.",
        )
    return scores[:, 1].copy() if n_classes == 2 else np.ascontiguousarray(scores.T)


def _indicators(subject: str, predicted: Any, classes: AnyArray) -> Matrix:
    """Return a column for each class, 1 where it is predicted."""
    found = np.asarray(predicted)[..., None] == classes
    if found.ndim != 2 or not (found.sum(axis=1) == 1).all():
        raise ValueError(f"{subject} must predict one of its classes for each row.")
    return found.astype(np.float64)


def _as_numbers(name: str, given: Any) -> Vector:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"The {name} is neither a fitted estimator nor an array of numbers, but of type "
            f"{type(given).__name__}."
        ) from None


def _refuse(problem: str, wrong: Mask, scores: Vector, fix: str) -> None:
    """Raise an error that names the first row with something wrong in it, if there is one."""
    if wrong.any():
        row = int(np.argwhere(wrong)[0, 0])
        raise ValueError(f"{problem}, first in row {row}: {scores[row]}. {fix}")


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
    if len(n_columns) > 1 or n_classes < 2:
        raise ValueError(
            "candidate and baseline have to be estimators, or arrays of scores of the same classes "
            "with the shape (n_samples,) for two classes or (n_samples, n_classes), but have the "
            f"shapes {shapes[0]} and {shapes[1]}."
        )
    unlabeled = find_unlabeled(y, missing_label)
    if unlabeled.all():
        return np.arange(n_classes)  # with no label at all, no name of a class matters
    classes = np.unique(native_dtype(label_array(y)[~unlabeled]))
    if len(classes) != n_classes:
        raise ValueError(
            f"The scores are for {n_classes} classes, but y has labels of {len(classes)} "
            f"({shown_classes(classes)}). Pass fitted classifiers, which know their classes."
        )
    return check_classes(classes, len(unlabeled))


def labels_of_targets(
    y: Any, missing_label: Any, weights: Vector | None, bounds: Any
) -> KnownLabels:
    """Return the targets of a regression, those that are unknown with their bounds."""
    marker = None if is_auto(missing_label) else missing_label
    of_all = np.shape(bounds) == (2,)
    of_rows, common = (None, bounds) if of_all else (bounds, None)
    return known_targets(y, marker, weights, of_rows, common, "label_bounds", required=False)
