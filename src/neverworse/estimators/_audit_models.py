"""What an audit compares: scores of classifiers, predictions of regressors, or arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from neverworse._typing import AnyArray, Mask, Matrix, Vector
from neverworse.estimators._audit_report import Response
from neverworse.estimators._classifier import IndicatorClassifier, class_scores
from neverworse.estimators._known_targets import LARGEST

# Probabilities add up to one but for this, even if they were computed in single precision.
SAME = 1e-4

Models = dict[str, Any]  # the candidate and the baseline, under the names of the arguments


def is_array(model: Any) -> bool:
    return not hasattr(model, "predict")


def predicts_targets(model: Any) -> bool:
    return (
        hasattr(model, "__sklearn_tags__") and not isinstance(model, type) and is_regressor(model)
    )


def called(name: str, model: Any) -> str:
    """Return what messages call a model."""
    return f"The {name} ({'an array' if is_array(model) else type(model).__name__})"


def check_fitted(name: str, model: Any) -> None:
    if is_array(model):
        return
    if hasattr(model, "fit"):
        check_is_fitted(model)
    if not predicts_targets(model) and not hasattr(model, "classes_"):
        raise ValueError(
            f"{called(name, model)} has no classes_, so that it is no fitted classifier. Pass a "
            "fitted classifier, two regressors, or an array of scores."
        )


def chosen_response(models: Models, response: str) -> Response:
    """Return what to compare, after a check that all models have it."""
    if response not in ("auto", "predict_proba", "score", "error"):
        raise ValueError(
            f"response={response!r} is unknown. Pass 'auto', 'predict_proba', 'score' or 'error'."
        )
    estimators = {name: model for name, model in models.items() if not is_array(model)}
    if response == "error":
        if len(estimators) < len(models):
            raise ValueError(
                "response='error' compares the classes that fitted classifiers predict. Pass "
                "classifiers instead of arrays."
            )
        return "error"
    without = {n: m for n, m in estimators.items() if not hasattr(m, "predict_proba")}
    chosen: Response = "predict_proba"
    if response == "score" or (response == "auto" and (without or not estimators)):
        chosen = "score"
        without = {n: m for n, m in estimators.items() if not has_class_scores(m)}
    for name, model in without.items():
        _raise_no_response(name, model, response)
    return chosen


def has_class_scores(model: Any) -> bool:
    """Whether the decision function is a score on targets coded 0 and 1, less one half."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        elif not isinstance(model, IndicatorClassifier) and hasattr(model, "estimator_"):
            model = model.estimator_
        else:
            return isinstance(model, IndicatorClassifier)


def _raise_no_response(name: str, model: Any, response: str) -> None:
    if hasattr(model, "predict_proba"):
        fix = "Pass response='predict_proba' if the other one has probabilities too"
    else:
        fix = "Wrap it in sklearn.calibration.CalibratedClassifierCV, which has probabilities"
    fix += ", or compare predicted classes with response='error'"
    lacks = [] if hasattr(model, "predict_proba") else ["no predict_proba"]
    if response != "predict_proba":
        lacks.append("no decision_function that is known as a score on targets coded 0 and 1")
    raise ValueError(
        f"{called(name, model)} has {' and '.join(lacks)}: without a coding, scores have no "
        f"squared loss. {fix}, or pass arrays of scores on the 0/1 coding instead of estimators."
    )


def scores_of(
    name: str, model: Any, X: Any, response: Response, classes: AnyArray, used: Mask
) -> Vector:
    """Return one score for each row, or one row of scores for each of several classes."""
    if is_array(model):
        scores = _as_numbers(name, model)
    elif response == "error":
        scores = _indicators(name, model, X, classes)
    elif response == "predict_proba":
        scores = _as_numbers(name, model.predict_proba(X))
        # The columns are in the order of the classifier's own classes, whatever that is.
        if scores.shape == (len(used), len(classes)):
            scores = scores[:, np.argsort(model.classes_, kind="stable")]
    else:
        scores = class_scores(model, X)
    subject = called(name, model)
    _check_shape(subject, scores, len(used), len(classes))
    # Whatever rows without a weight have is ignored, and equal shares pass all checks.
    scores = np.where(used if scores.ndim == 1 else used[:, None], scores, 1.0 / len(classes))
    _check_finite(subject, scores)
    if response == "predict_proba":
        _check_probabilities(subject, scores)
    if scores.ndim == 1:
        return scores
    if len(classes) > 2:
        return np.ascontiguousarray(scores.T)
    _check_one_score(subject, scores)
    return scores[:, 1].copy()


def _indicators(name: str, model: Any, X: Any, classes: AnyArray) -> Matrix:
    """Return a column for each class, 1 where it is predicted."""
    predicted = np.asarray(model.predict(X))
    found = predicted[:, None] == classes[None, :] if predicted.ndim == 1 else np.zeros((0, 0))
    if not (found.sum(axis=1) == 1).all() or not found.size:
        raise ValueError(
            f"{called(name, model)} predicts something else than one of its classes for each row."
        )
    return found.astype(np.float64)


def predictions_of(name: str, model: Any, X: Any, used: Mask) -> Vector:
    """Return what a regressor predicts for each row."""
    predicted = _as_numbers(name, model if is_array(model) else model.predict(X))
    subject = called(name, model)
    if predicted.shape != used.shape:
        raise ValueError(
            f"{subject} has predictions of shape {predicted.shape}, but y has {len(used)} rows: "
            "one prediction for each is needed."
        )
    predicted = np.where(used, predicted, 0.0)
    _check_finite(subject, predicted)
    return predicted


def _as_numbers(name: str, given: Any) -> Vector:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"The {name} is neither a fitted estimator nor an array of numbers, but of type "
            f"{type(given).__name__}."
        ) from None


def _check_shape(subject: str, scores: Vector, n: int, n_classes: int) -> None:
    if scores.shape == (n, n_classes) or (n_classes == 2 and scores.shape == (n,)):
        return
    wanted = f"({n}, {n_classes})" + (f" or ({n},)" if n_classes == 2 else "")
    raise ValueError(
        f"{subject} has scores of shape {scores.shape}, but {wanted} is needed for {n} rows in y "
        f"and {n_classes} classes."
    )


def _check_finite(subject: str, scores: Vector) -> None:
    row = first_row(~(np.abs(scores) < LARGEST))
    if row is not None:
        raise ValueError(
            f"{subject} has values that are NaN, infinite or too large to be squared, first in row "
            f"{row}: {scores[row]}. Leave such rows out, or give them a sample_weight of zero."
        )


def _check_probabilities(subject: str, scores: Vector) -> None:
    what, row = "outside of [0, 1]", first_row(~(np.abs(scores - 0.5) <= 0.5 + SAME))
    if row is None and scores.ndim > 1:
        what, row = "that do not add up to 1", first_row(np.abs(scores.sum(axis=1) - 1.0) > SAME)
    if row is not None:
        raise ValueError(
            f"{subject} has probabilities {what}, first in row {row}: {scores[row]}. Correct them, "
            "or pass arrays for both and response='score': scores may be any numbers."
        )


def _check_one_score(subject: str, scores: Matrix) -> None:
    """Two classes have one score: check that the first column says the same as the second."""
    off, size = np.abs(scores.sum(axis=1) - 1.0), np.abs(scores).max(axis=1)
    row = first_row(off > SAME * (1.0 + size))
    if row is not None:
        raise ValueError(
            f"{subject} has scores of two classes that do not add up to 1, first in row {row}: "
            f"{scores[row]}. Pass the scores of the second class only, of shape ({len(scores)},)."
        )


def first_row(wrong: Mask) -> int | None:
    """Return the first row with something wrong in it, if there is one."""
    return int(np.argwhere(wrong)[0, 0]) if wrong.any() else None


def check_regressors(models: Models, response: str, class_prior: Any) -> None:
    for name, model in models.items():
        if not is_array(model) and not predicts_targets(model):
            raise ValueError(
                f"{called(name, model)} is no regressor, but the other one is. Pass two "
                "classifiers or two regressors."
            )
    if response != "auto":
        raise ValueError(
            f"response={response!r} is for classifiers. Leave it at 'auto' for regressors: their "
            "predictions are compared."
        )
    if class_prior is not None:
        raise ValueError("class_prior is for classifiers: the targets of regressors have none.")
