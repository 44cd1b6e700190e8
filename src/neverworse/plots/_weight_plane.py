"""The weights of a classifier that has two: its constraint set as a polygon, and points in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from neverworse._typing import Mask, Matrix, Vector
from neverworse.estimators import (
    LinearClassifier,
    ProjectedLeastSquaresClassifier,
    checked_weights,
    split_labels,
    stored_weights,
)

# Rows closer to a line than this (columns brought to equal length) determine one weight, not two.
SMALLEST_SINGULAR_VALUE = 1e-12
# Directions whose angles differ by no more than the rounding of an arc tangent are one direction.
SAME_ANGLE = 8 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class WeightPlane:
    """Training rows of a classifier that has two weights."""

    design: Matrix  # what the two multiply: two features, or one feature and ones
    unlabeled: Mask
    target: Vector  # 0 or 1; zero where `unlabeled`
    row_weights: Vector  # not negative; zero for rows that do not take part
    penalty: Vector  # ridge penalty of each weight

    @classmethod
    def of(
        cls, estimator: ProjectedLeastSquaresClassifier, X: Any, y: Any, sample_weight: Any
    ) -> WeightPlane:
        """Check that X and y are what the classifier was fitted to, as far as can be seen."""
        _check_estimator(estimator)
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
                f"classifier was fitted to {certificate.n_labeled:,} and "
                f"{certificate.n_unlabeled:,}. Pass the rows, labels and sample weights that it "
                "was fitted to."
            )
        if certificate.rows == "unlabeled":
            # The transductive constraint set is made of the unlabeled rows alone.
            weights = np.where(unlabeled, weights, 0.0)
        penalty = np.full(2, certificate.penalty)
        if estimator.fit_intercept:
            penalty[1] = 0.0
        plane = cls(design, unlabeled, target, weights, penalty)
        if not plane.has_two_dimensions:
            raise ValueError(
                "The weight space must have two dimensions, but the rows of X all lie on a line "
                "through the origin (or their feature is constant), so they determine only one."
            )
        return plane

    @property
    def has_two_dimensions(self) -> bool:
        """Whether the rows (and the penalty) determine both weights."""
        _, triangle = self._factors
        lengths = np.linalg.norm(triangle, axis=0)
        if not lengths.all():
            return False
        values = np.linalg.svd(triangle / lengths, compute_uv=False)
        return bool(values[-1] > SMALLEST_SINGULAR_VALUE)

    @property
    def metric(self) -> Matrix:
        """The matrix H of the distance "all": squared, it is (w - w')'H(w - w')."""
        _, triangle = self._factors
        return triangle.T @ triangle

    def least_squares(self, soft_labels: Vector) -> Vector:
        """Return what least squares on all rows gives for soft labels of the unlabeled ones."""
        rows, triangle = self._factors
        target = self.target.copy()
        target[self.unlabeled] = soft_labels
        return np.asarray(np.linalg.solve(triangle, target @ rows), dtype=np.float64)

    def constraint_set(self) -> Matrix:
        """Return the corners of the set of weights that some soft labels give, around it."""
        rows, triangle = self._factors
        start = self.target @ rows
        vertices = zonotope_vertices(start, rows[self.unlabeled])
        return np.asarray(np.linalg.solve(triangle, vertices.T).T, dtype=np.float64)

    def metric_of(self, estimator: ProjectedLeastSquaresClassifier) -> Matrix:
        """Return the matrix of the distance in which the classifier was projected."""
        distance = estimator.distance
        if isinstance(distance, str):
            if distance in ("all", "unlabeled"):
                return self.metric
            if distance == "euclidean":
                return np.eye(2)
            points = self.design * np.sqrt(np.where(self.unlabeled, 0.0, self.row_weights))[:, None]
        else:
            points = np.asarray(distance, dtype=np.float64)
            if estimator.fit_intercept:
                points = np.column_stack([points, np.ones(len(points))])
        metric: Matrix = points.T @ points
        return metric

    def oracle_of(self, estimator: ProjectedLeastSquaresClassifier, y_true: Any) -> Vector:
        """Return the weights of least squares on all rows with their true labels."""
        classes, target, missing = split_labels(y_true, estimator.missing_label)
        check_consistent_length(self.design, target)
        if missing.any():
            raise ValueError(
                f"y_true has {int(missing.sum()):,} rows without a label. The oracle is least "
                "squares on all rows with their true labels, so it needs every one."
            )
        if not np.array_equal(classes, estimator.classes_):
            raise ValueError(
                f"y_true has the classes {classes.tolist()}, but the classifier was fitted to "
                f"{estimator.classes_.tolist()}."
            )
        differs = (target != self.target) & ~self.unlabeled
        if differs.any():
            raise ValueError(
                f"y_true contradicts y in {int(differs.sum()):,} labeled rows. The labels of "
                "labeled rows are taken as true."
            )
        return self.least_squares(target[self.unlabeled])

    @cached_property
    def _factors(self) -> tuple[Matrix, Matrix]:
        """Rows S Q and triangle R with H = R'R and w(q) = R⁻¹ Q'S(y, q).

        Orthogonal factors keep the digits of a feature far from zero, which H would square away.
        """
        root = np.sqrt(self.row_weights)
        stacked = np.vstack([self.design * root[:, None], np.diag(np.sqrt(self.penalty))])
        orthogonal, triangle = np.linalg.qr(stacked)
        return orthogonal[: len(root)] * root[:, None], triangle


def _check_estimator(estimator: Any) -> None:
    """Raise unless it is a fitted projected classifier with two weights, the intercept included."""
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


def zonotope_vertices(start: Vector, generators: Matrix) -> Matrix:
    """Return the corners of the polygon {start + Σ q_j g_j : 0 ≤ q_j ≤ 1}, counterclockwise.

    The polygon's edges are the generators g_j and their opposites, sorted by angle, so its corners
    are cumulative sums: exact, at the price of a sort. The first is the lowest corner (of two, the
    left one). There are two corners if all generators are parallel, and one if all are zero.
    """
    edges = generators[generators.any(axis=1)]
    # Flipping a generator and moving the start by it describes the same set (q_j becomes 1 - q_j).
    # With all of them pointing up, the start is the lowest corner.
    down = (edges[:, 1] < 0) | ((edges[:, 1] == 0) & (edges[:, 0] < 0))
    lowest = start + edges[down].sum(axis=0)
    edges = np.where(down[:, None], -edges, edges)
    if not len(edges):
        return np.atleast_2d(lowest)
    angles = np.arctan2(edges[:, 1], edges[:, 0])
    order = np.argsort(angles)
    first_of_angle = np.flatnonzero(np.diff(angles[order], prepend=-1.0) > SAME_ANGLE)
    edges = np.add.reduceat(edges[order], first_of_angle)
    right = np.vstack([np.zeros(2), np.cumsum(edges, axis=0)])
    # A zonotope is symmetric about its centre: the left side is the right one, turned by 180°.
    left = right[-1] - right[1:-1]
    return np.vstack([lowest + right, lowest + left])
