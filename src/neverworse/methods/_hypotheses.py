"""Predictions of candidates, their distances, and which candidate the distances favor."""

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
class Targets:
    """What candidates are fitted to and compared with, and how."""

    # (n_rows,): labels or targets, as candidates are fitted to them; anything where unlabeled
    y: AnyArray
    unlabeled: Mask  # (n_rows,)
    weights: Vector  # (n_rows,)
    # responses to compare with: (n_rows, 1) targets, or (n_rows, n_classes) indicators of classes
    truth: Matrix
    classes: AnyArray | None  # (n_classes,), for classifiers
    response: str  # what candidates are asked for

    @classmethod
    def of(
        cls, candidates: Named, X: Any, y: Any, weights: Vector, distance: str, missing_label: Any
    ) -> Targets:
        """Check y, and decide what candidates are asked for."""
        without = [name for name, e in candidates if not hasattr(e, "predict_proba")]
        if not is_classifier(candidates[0][1]):
            if distance == "predict_proba":
                raise ValueError("distance='predict_proba' is for classifiers. Use 'auto'.")
            marker = np.nan if is_auto(missing_label) else missing_label
            target, unlabeled = split_targets(y, marker)
            check_consistent_length(X, target)
            if not weights[~unlabeled].any():
                raise ValueError(
                    "sample_weight is zero for all rows with a target. Raise some of it."
                )
            return cls(target, unlabeled, weights, target[:, None], None, "predict")
        if distance == "predict_proba" and without:
            raise ValueError(
                "distance='predict_proba' needs predict_proba, which "
                f"{', '.join(map(repr, without))} does not have. Use distance='predict'."
            )
        classes, codes, unlabeled = split_labels(y, missing_label)
        check_consistent_length(X, codes)
        check_weights(classes, codes, unlabeled, weights)
        codes = codes.astype(np.intp)
        response = "predict" if distance == "predict" or without else "predict_proba"
        truth = np.eye(len(classes))[codes]
        return cls(classes[codes], unlabeled, weights, truth, classes, response)

    def respond(self, name: str, fitted: Any, X: Any) -> Matrix:
        """Return what a fitted candidate says about all rows, in the form of `truth`."""
        given = np.asarray(getattr(fitted, self.response)(X))
        if self.response == "predict" and self.classes is not None:
            codes = predicted_codes(f"Candidate {name!r}", given, self.classes)
            return np.eye(len(self.classes))[codes]
        given = given.astype(np.float64)
        needed = self.truth.shape if self.classes is not None else self.truth.shape[:1]
        if given.shape != needed:
            raise ValueError(
                f"Candidate {name!r} gives {self.response} of shape {given.shape}, but {needed} is "
                "needed."
            )
        wrong = ~np.isfinite(given[self.weights > 0.0])
        if wrong.any():
            raise ValueError(
                f"Candidate {name!r} predicts NaN or infinity for {wrong.sum()} rows, so that it "
                "has no distance from the others. Leave it out, or rescale the features."
            )
        return given.reshape(self.truth.shape)

    def distances(self, responses: list[Matrix]) -> Distances:
        """Return the distances of the responses to the targets and from each other."""
        labeled = self._matrix([*responses, self.truth], ~self.unlabeled)
        between = labeled[:-1, :-1]
        if not self.weights[self.unlabeled].any():
            return Distances(labeled[-1, :-1], between, between)
        return Distances(labeled[-1, :-1], between, self._matrix(responses, self.unlabeled))

    def _matrix(self, responses: list[Matrix], rows: Mask) -> Matrix:
        """Return root mean squared differences, or for classes the shares of different ones."""
        used = rows & (self.weights > 0.0)
        weights, taken = self.weights[used], [response[used] for response in responses]
        squares = np.zeros((len(taken), len(taken)))
        for k, f in enumerate(taken):
            for j, g in enumerate(taken[:k]):
                squares[k, j] = squares[j, k] = weights @ ((f - g) ** 2).sum(axis=1)
        squares /= weights.sum()
        if self.classes is None:
            return np.sqrt(squares)
        # Two different classes, or probabilities of two classes, are counted twice.
        return 0.5 * squares if self.response == "predict" else np.sqrt(0.5 * squares)
