"""What fitted candidates say about rows, how far apart that is, and whom to trust therefore."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length

from neverworse._typing import AnyArray, Mask, Matrix, Vector
from neverworse.estimators import (
    check_weights,
    is_auto,
    predicted_codes,
    split_labels,
    split_targets,
)

# Inequalities and equalities hold up to rounding errors of this relative size.
ROUNDING = 1e-12

Named = list[tuple[str, Any]]  # estimators with their names


@dataclass(frozen=True)
class Distances:
    """Distances of hypotheses, ordered from simple to complex."""

    target: Vector  # (n_hypotheses,): to the targets, on the labeled rows
    labeled: Matrix  # (n_hypotheses, n_hypotheses): from each other, on the labeled rows
    unlabeled: Matrix  # (n_hypotheses, n_hypotheses): from each other, on the unlabeled rows

    @cached_property
    def consistent(self) -> Mask:
        """Which hypotheses satisfy the triangle inequality with every simpler one."""
        sums = self.target[:, None] + self.target
        violated: Mask = np.tril(self.unlabeled > (1.0 + ROUNDING) * sums, -1)
        consistent: Mask = ~np.any(violated, axis=1)
        return consistent

    @cached_property
    def adjusted(self) -> Vector:
        """Distances to the targets, times the largest ratio of distances to a simpler hypothesis.

        Where the labeled rows do not tell two hypotheses apart and the unlabeled rows do, nothing
        is known about the more complex one: infinity.
        """
        same = ROUNDING * np.maximum.outer(self.target, self.target)
        seen = self.labeled > same
        ratios = np.ones_like(self.labeled)
        np.divide(self.unlabeled, self.labeled, out=ratios, where=seen)
        ratios[~seen & (self.unlabeled > same)] = np.inf
        ratios = np.tril(ratios, -1)
        ratios[0, 0] = 1.0  # the distance of the simplest hypothesis is not adjusted
        factors = ratios.max(axis=1)
        adjusted = np.full_like(self.target, np.inf)
        np.multiply(self.target, factors, out=adjusted, where=np.isfinite(factors))
        return adjusted

    def choose(self, method: str) -> int:
        """Return the position of the hypothesis that a method prefers."""
        if method == "tri":
            return int(np.flatnonzero(self.consistent)[-1])
        return int(np.argmin(self.adjusted))


@dataclass(frozen=True)
class Hypotheses:
    """How predictions of candidates are compared with targets and with each other."""

    # (n_rows,): labels or targets, as candidates are fitted to them; anything where unlabeled
    y: AnyArray
    truth: AnyArray  # (n_rows,) or (n_rows, n_classes): the same in the form of responses
    unlabeled: Mask  # (n_rows,)
    weights: Vector  # (n_rows,)
    classes: AnyArray | None  # (n_classes,)
    response: str  # what candidates are asked for

    def respond(self, name: str, fitted: Any, X: Any) -> AnyArray:
        """Return what a fitted candidate says about all rows: numbers, codes or probabilities."""
        given = np.asarray(getattr(fitted, self.response)(X))
        if self.classes is None or self.response == "predict_proba":
            given = given.astype(np.float64)
            self._check(name, given)
            return given
        return predicted_codes(f"Candidate {name!r}", given, self.classes)

    def distances(self, responses: list[AnyArray]) -> Distances:
        """Return the distances of the responses to the targets and from each other."""
        labeled = np.where(self.unlabeled, 0.0, self.weights)
        unlabeled = np.where(self.unlabeled, self.weights, 0.0)
        if not unlabeled.any():
            unlabeled = labeled
        return Distances(
            np.array([self._distance(f, self.truth, labeled) for f in responses]),
            self._matrix(responses, labeled),
            self._matrix(responses, unlabeled),
        )

    def _matrix(self, responses: list[AnyArray], weights: Vector) -> Matrix:
        matrix = np.zeros((len(responses), len(responses)))
        for k, f in enumerate(responses):
            for j, g in enumerate(responses[:k]):
                matrix[k, j] = matrix[j, k] = self._distance(f, g, weights)
        return matrix

    def _distance(self, f: AnyArray, g: AnyArray, weights: Vector) -> float:
        used = weights > 0.0
        codes = self.classes is not None and self.response == "predict"
        measure = disagreement if codes else root_mean_square
        return measure(f[used], g[used], weights[used])

    def _check(self, name: str, given: Vector) -> None:
        if given.shape != self.truth.shape:
            raise ValueError(
                f"Candidate {name!r} gives {self.response} of shape {given.shape}, but "
                f"{self.truth.shape} is needed."
            )
        wrong = ~np.isfinite(given[self.weights > 0.0])
        if wrong.any():
            raise ValueError(
                f"Candidate {name!r} predicts NaN or infinity for {wrong.sum()} rows, so that it "
                "has no distance from the others. Leave it out, or rescale the features."
            )


def hypotheses(
    candidates: Named, X: Any, y: Any, weights: Vector, distance: str, missing_label: Any
) -> Hypotheses:
    """Check y, and decide what candidates are asked for."""
    without = [name for name, e in candidates if not hasattr(e, "predict_proba")]
    if not is_classifier(candidates[0][1]):
        if distance == "predict_proba":
            raise ValueError("distance='predict_proba' is for classifiers. Use 'auto'.")
        marker = np.nan if is_auto(missing_label) else missing_label
        target, unlabeled = split_targets(y, marker)
        check_consistent_length(X, target)
        if not weights[~unlabeled].any():
            raise ValueError("sample_weight is zero for all rows with a target. Raise some of it.")
        return Hypotheses(target, target, unlabeled, weights, None, "predict")
    if distance == "predict_proba" and without:
        raise ValueError(
            f"distance='predict_proba' needs predict_proba, which {', '.join(map(repr, without))} "
            "does not have. Use distance='predict'."
        )
    classes, codes, unlabeled = split_labels(y, missing_label)
    check_consistent_length(X, codes)
    check_weights(classes, codes, unlabeled, weights)
    labels = classes[codes.astype(np.intp)]
    if distance == "predict" or without:
        return Hypotheses(labels, codes, unlabeled, weights, classes, "predict")
    one_hot = (codes[:, None] == np.arange(len(classes))).astype(np.float64)
    return Hypotheses(labels, one_hot, unlabeled, weights, classes, "predict_proba")


def root_mean_square(f: AnyArray, g: AnyArray, weights: Vector) -> float:
    """Return the weighted root mean squared difference of two predictions.

    For probabilities, squares are summed over the classes and halved: for two classes, this is the
    difference of the probabilities of one of them.
    """
    squares = (f - g) ** 2
    if squares.ndim > 1:
        squares = 0.5 * squares.sum(axis=1)
    return float(np.sqrt(weights @ squares / weights.sum()))


def disagreement(f: AnyArray, g: AnyArray, weights: Vector) -> float:
    """Return the weighted share of rows on which two predictions are different classes."""
    return float(weights @ (f != g) / weights.sum())
