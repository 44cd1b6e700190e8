"""What an audit compares, and what it knows about the labels.

Models are classifiers, regressors, or arrays of scores. Unlike in a fit, the classes are those of
the classifiers: y need not have all of them, nor any label at all.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import _num_samples, check_is_fitted

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse.estimators._input import checked_weights
from neverworse.estimators._known_labels import KnownLabels, coded_labels
from neverworse.estimators._known_targets import LARGEST_TARGET, checked_targets, first_row
from neverworse.estimators._labels import (
    check_classes,
    distinct_labels,
    is_auto,
    label_array,
    missing_values,
    shown,
    shown_classes,
    split_targets,
)
from neverworse.estimators._linear import class_scores, has_class_scores
from neverworse.projection import Assumptions, Labels

# Tolerance for probabilities that should add up to one; they may be in single precision.
SUM_TOLERANCE = 1e-4

Response = Literal["predict_proba", "score", "error", "predict"]
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
            f"{called(name, model)} has no classes_, so it is not a fitted classifier. Pass a "
            "fitted classifier, two regressors, or an array of scores."
        )


def check_regressors(models: Models, response: str, class_prior: Any) -> None:
    for name, model in models.items():
        if not is_array(model) and not predicts_targets(model):
            raise ValueError(
                f"{called(name, model)} is not a regressor, but the other one is. Pass two "
                "classifiers or two regressors."
            )
    if response != "auto":
        raise ValueError(
            f"response={response!r} is for classifiers. Leave it at 'auto' for regressors: their "
            "predictions are compared."
        )
    if class_prior is not None:
        raise ValueError("class_prior is for classifiers: the targets of regressors have none.")


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
        missing = "predict_proba"
        if response == "score":
            missing = "decision_function that is known as a score on targets coded 0 and 1"
        raise ValueError(
            f"{called(name, model)} has no {missing}: without a coding, scores have no squared "
            "loss. Compare probabilities with response='predict_proba' (wrap a classifier that has "
            "none in sklearn.calibration.CalibratedClassifierCV) or predicted classes with "
            "response='error', or pass arrays of scores on the 0/1 coding instead of estimators."
        )
    return chosen


def scores_of(
    name: str, model: Any, X: Any, response: Response, classes: AnyArray, used: Mask
) -> Vector:
    """Return one score for each row, or one row of scores for each of several classes.

    The scores of a regression, which has no classes, are its predictions.
    """
    n, n_classes, subject = len(used), len(classes), called(name, model)
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
        _check_probabilities(subject, scores)
    if scores.ndim == 1:
        return scores
    if n_classes > 2:
        return np.ascontiguousarray(scores.T)
    off, size = np.abs(scores.sum(axis=1) - 1.0), np.abs(scores).max(axis=1)
    _refuse(
        f"{subject} has scores of two classes that do not add up to 1",
        off > SUM_TOLERANCE * (1.0 + size),
        scores,
        f"Pass the scores of the second class only, of shape ({n},).",
    )
    return scores[:, 1].copy()


def _indicators(subject: str, predicted: Any, classes: AnyArray) -> Matrix:
    """Return a column for each class, 1 where it is predicted."""
    found = np.asarray(predicted)[..., None] == classes
    if found.ndim != 2 or not (found.sum(axis=1) == 1).all():
        raise ValueError(f"{subject} predicts something else than one of its classes for each row.")
    return found.astype(np.float64)


def _as_numbers(name: str, given: Any) -> Vector:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"The {name} is neither a fitted estimator nor an array of numbers, but of type "
            f"{type(given).__name__}."
        ) from None


def _check_probabilities(subject: str, scores: Vector) -> None:
    fix = "Correct them, or pass arrays for both and response='score': scores may be any numbers."
    outside = ~(np.abs(scores - 0.5) <= 0.5 + SUM_TOLERANCE)
    _refuse(f"{subject} has probabilities outside of [0, 1]", outside, scores, fix)
    if scores.ndim > 1:
        off = np.abs(scores.sum(axis=1) - 1.0) > SUM_TOLERANCE
        _refuse(f"{subject} has probabilities that do not add up to 1", off, scores, fix)


def _refuse(problem: str, wrong: Mask, scores: Vector, fix: str) -> None:
    """Raise an error that names the first row with something wrong in it, if there is one."""
    row = first_row(wrong)
    if row is not None:
        raise ValueError(f"{problem}, first in row {row}: {scores[row]}. {fix}")


def count_rows(models: Models, X: Any, y: Any) -> int:
    n_rows = len(label_array(y))
    if n_rows == 0:
        raise ValueError("y has no rows: there is nothing to audit.")
    if X is None and not all(is_array(model) for model in models.values()):
        raise ValueError("X is None, but needed: only arrays of scores can do without.")
    if X is not None and _num_samples(X) != n_rows:
        raise ValueError(
            f"X has {_num_samples(X)} rows, but y has {n_rows}. Pass a label for every row, with a "
            "marker such as -1 where there is none."
        )
    return n_rows


def row_weights(sample_weight: Any, n_rows: int) -> Vector | None:
    if sample_weight is None:
        return None
    weights = checked_weights(sample_weight, n_rows)
    if not weights.any():
        raise ValueError("sample_weight is zero for all rows: there is nothing to audit.")
    return weights


def labels_of_classes(
    models: Models, y: Any, missing_label: Any, weights: Vector | None, bounds: Any
) -> KnownLabels:
    """Return what is known about the labels, in terms of the classes of the classifiers."""
    classes, codes = _coded(models, y, missing_label)
    return coded_labels(classes, np.maximum(codes, 0), codes == -1, weights, bounds)


def _coded(models: Models, y: Any, missing_label: Any) -> tuple[AnyArray, Indices]:
    """Return the classes, and which of them each row has: -1 if it is unlabeled."""
    labels = distinct_labels(label_array(y))
    missing = missing_values(labels, missing_label)
    classes = _classes_of(models)
    if classes is None:
        classes = _classes_of_arrays(models, labels.values[~missing], len(labels.codes))
    position = {c: k for k, c in enumerate(classes.tolist())}
    _check_marker(labels.values[missing & ~labels.null], position)
    code_of = [-1 if m else position.get(v) for v, m in zip(labels.values, missing, strict=True)]
    unknown = [v for v, k in zip(labels.values, code_of, strict=True) if k is None]
    if unknown:
        raise ValueError(
            f"y has labels that the classifiers do not know: {shown_classes(unknown)}. Their "
            f"classes are {shown_classes(classes)}. Fit them to rows of all classes, or mark these "
            "rows as unlabeled."
        )
    return classes, np.array(code_of, np.intp)[labels.codes]


def _classes_of(models: Models) -> AnyArray | None:
    """Return the classes that the estimators know, in sorted order; None if all are arrays."""
    found = [_sorted_classes(name, model) for name, model in models.items() if not is_array(model)]
    if len(found) == 2 and found[0].tolist() != found[1].tolist():
        raise ValueError(
            f"The candidate has the classes {shown_classes(found[0])}, but the baseline has "
            f"{shown_classes(found[1])}. Fit both to the same classes. If one of these marks "
            "unlabeled rows, drop them before you fit a supervised classifier."
        )
    return found[0] if found else None


def _sorted_classes(name: str, model: Any) -> AnyArray:
    classes = model.classes_
    if isinstance(classes, list) and np.ndim(classes[0]) > 0:
        raise ValueError(f"{called(name, model)} has several outputs. Audit one at a time.")
    ordered = np.sort(np.asarray(classes))
    if len(ordered) < 2:
        raise ValueError(
            f"{called(name, model)} knows one class only ({shown_classes(ordered)}). Fit it to two "
            "or more."
        )
    return ordered


def _classes_of_arrays(models: Models, known: AnyArray, n_rows: int) -> AnyArray:
    """Return the classes in y, one for each column of the scores."""
    shapes = {name: np.shape(model) for name, model in models.items()}
    n_columns = {2 if len(shape) == 1 else shape[-1] if shape else 0 for shape in shapes.values()}
    n_classes = n_columns.pop()
    if n_columns or n_classes < 2:
        raise ValueError(
            "candidate and baseline have to be estimators, or arrays of scores of the same classes "
            "with the shape (n_samples,) for two classes or (n_samples, n_classes), but have the "
            f"shapes {shapes['candidate']} and {shapes['baseline']}."
        )
    if not len(known):
        return np.arange(n_classes)  # with no label at all, no name of a class matters
    classes = np.unique(known) if len(known) < 2 else check_classes(known, n_rows)
    if len(classes) != n_classes:
        raise ValueError(
            f"The scores are for {n_classes} classes, but y has labels of {len(classes)} "
            f"({shown_classes(classes)}), so that it is not clear which score belongs to which "
            "class. Pass a fitted classifier, which knows its classes, instead of an array."
        )
    return classes


def _check_marker(markers: AnyArray, position: dict[Any, int]) -> None:
    for marker in markers:
        if marker in position:
            raise ValueError(
                f"{shown(marker)} marks unlabeled rows in y, but is a class of the classifiers. "
                "Drop unlabeled rows before you fit a supervised classifier, or pass "
                "missing_label=np.nan if it is a class in y as well."
            )


def labels_of_targets(
    y: Any, missing_label: Any, weights: Vector | None, bounds: Any
) -> tuple[Labels, Assumptions]:
    """Return the targets of a regression, those that are unknown with their bounds."""
    marker = None if is_auto(missing_label) else missing_label
    target, unlabeled = split_targets(y, marker, required=False)
    n = len(target)
    given = np.full(2, np.nan) if bounds is None else np.asarray(bounds, dtype=np.float64)
    if given.shape not in ((2,), (n, 2)):
        raise ValueError(
            f"label_bounds has shape {given.shape}, but (2,) or ({n}, 2) is needed: lower and "
            "upper bound of the unknown targets."
        )
    lower, upper = np.broadcast_to(given, (n, 2)).T
    targets = checked_targets(target, ~unlabeled, lower, upper, weights, "label_bounds")
    targets.require_bounds(
        "Without bounds of all unknown targets, two regressors have no worst case: pass "
        "label_bounds=(low, high) that hold for all rows, or one such pair for each row."
    )
    return targets.labels(), targets.assumptions()
