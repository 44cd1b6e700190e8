"""A fitted classifier with two weights, as points and matrices of its weight plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from neverworse._typing import Matrix, Vector
from neverworse.estimators import (
    LinearClassifier,
    ProjectedLeastSquaresClassifier,
    checked_weights,
    split_labels,
    stored_weights,
)
from neverworse.plots._weight_plane import WeightPlane


def check_estimator(estimator: Any) -> None:
    """Raise unless the estimator is a fitted projected classifier."""
    if not isinstance(estimator, ProjectedLeastSquaresClassifier):
        raise TypeError(
            "ConstraintSetDisplay shows a ProjectedLeastSquaresClassifier or an ICLSClassifier, "
            f"but got a {type(estimator).__name__}. If it is the last step of a pipeline, pass "
            "that step, and X as the steps before it leave it."
        )
    check_is_fitted(estimator)
    assumed = estimator.certificate_.assumptions
    if assumed.task != "binary":
        raise ValueError(
            f"ConstraintSetDisplay shows classifiers of two classes, but this one has "
            f"{len(estimator.classes_)}, with weights for each of them."
        )
    if assumed.n_bounded or assumed.class_prior:
        raise ValueError(
            "ConstraintSetDisplay shows the constraint set of all labelings, but this classifier "
            "was fitted with label_bounds or class_prior, which make it smaller. Fit it without."
        )


def check_two_weights(estimator: ProjectedLeastSquaresClassifier) -> None:
    """Raise unless the classifier has two weights, the intercept included."""
    n_features = estimator.n_features_in_
    if n_features + bool(estimator.fit_intercept) == 2:
        return
    features = "1 feature" if n_features == 1 else f"{n_features} features"
    intercept = "an intercept" if estimator.fit_intercept else "no intercept"
    raise ValueError(
        f"The weight space must have two dimensions, but this classifier has {features} and "
        f"{intercept}. Fit it to two features with fit_intercept=False, or to one feature with "
        "fit_intercept=True."
    )


def weight_plane(
    estimator: ProjectedLeastSquaresClassifier, X: Any, y: Any, sample_weight: Any
) -> WeightPlane:
    """Check that X and y are what the classifier was fitted to, as far as can be seen."""
    X = validate_data(estimator, X, reset=False, accept_sparse="csr", dtype=np.float64)
    design: Matrix = X.toarray() if hasattr(X, "toarray") else X
    if estimator.fit_intercept:
        design = np.column_stack([design, np.ones(len(design))])
    _, target, unlabeled = split_labels(y, estimator.missing_label)
    check_consistent_length(design, target)
    weights = checked_weights(sample_weight, len(design))
    n_labeled = int(np.count_nonzero(weights[~unlabeled]))
    n_unlabeled = int(np.count_nonzero(weights[unlabeled]))
    certificate = estimator.certificate_
    if (n_labeled, n_unlabeled) != (certificate.n_labeled, certificate.n_unlabeled):
        raise ValueError(
            f"X and y have {n_labeled:,} labeled and {n_unlabeled:,} unlabeled rows, but the "
            f"classifier was fitted to {certificate.n_labeled:,} and {certificate.n_unlabeled:,}. "
            "Pass the rows, labels and sample weights that it was fitted to."
        )
    if certificate.rows == "unlabeled":
        # The transductive constraint set is made of the unlabeled rows alone.
        weights = np.where(unlabeled, weights, 0.0)
    penalty = np.full(2, certificate.penalty)
    if estimator.fit_intercept:
        penalty[1] = 0.0
    plane = WeightPlane(design, unlabeled, target, weights, penalty)
    if not plane.has_two_dimensions:
        raise ValueError(
            "The weight space must have two dimensions, but the rows of X all lie on a line "
            "through the origin (or their feature is constant), so they determine only one."
        )
    return plane


def metric_of(estimator: ProjectedLeastSquaresClassifier, plane: WeightPlane) -> Matrix:
    """Return the matrix of the distance in which the classifier was projected."""
    distance = estimator.distance
    if isinstance(distance, str):
        if distance in ("all", "unlabeled"):
            return plane.metric
        if distance == "euclidean":
            return np.eye(2)
        points = plane.design * np.sqrt(np.where(plane.unlabeled, 0.0, plane.row_weights))[:, None]
    else:
        points = np.asarray(distance, dtype=np.float64)
        if estimator.fit_intercept:
            points = np.column_stack([points, np.ones(len(points))])
    metric: Matrix = points.T @ points
    return metric


def oracle_of(
    estimator: ProjectedLeastSquaresClassifier, plane: WeightPlane, y_true: Any
) -> Vector:
    """Return the weights of least squares on all rows with their true labels."""
    classes, target, missing = split_labels(y_true, estimator.missing_label)
    check_consistent_length(plane.design, target)
    if missing.any():
        raise ValueError(
            f"y_true has {int(missing.sum()):,} rows without a label. The oracle is least squares "
            "on all rows with their true labels, so it needs every one."
        )
    if not np.array_equal(classes, estimator.classes_):
        raise ValueError(
            f"y_true has the classes {classes.tolist()}, but the classifier was fitted to "
            f"{estimator.classes_.tolist()}."
        )
    differs = (target != plane.target) & ~plane.unlabeled
    if differs.any():
        raise ValueError(
            f"y_true contradicts y in {int(differs.sum()):,} labeled rows. The labels of labeled "
            "rows are taken as true."
        )
    return plane.least_squares(target[plane.unlabeled])


def as_point(classifier: LinearClassifier) -> Vector:
    """Return the two weights of a classifier, the intercept last."""
    weights = stored_weights(classifier)
    return np.append(weights.coef, weights.intercept)[:2]


def weight_names(estimator: ProjectedLeastSquaresClassifier) -> tuple[str, str]:
    """Return the names of the two weights."""
    features = getattr(estimator, "feature_names_in_", ("x1", "x2"))
    if estimator.fit_intercept:
        return f"weight of {features[0]}", "intercept"
    return f"weight of {features[0]}", f"weight of {features[1]}"
