"""What fitted candidates say about rows, in a form in which distances can be measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length

from neverworse._typing import AnyArray, Mask, Matrix, Vector
from neverworse.estimators._known_labels import check_weights
from neverworse.estimators._labels import split_labels, split_targets
from neverworse.estimators._wrapped import predicted_codes
from neverworse.methods._candidates import Named
from neverworse.methods._hypothesis_distances import Distances, disagreement, root_mean_square


@dataclass(frozen=True)
class Hypotheses:
    """How predictions of candidates are compared with targets and with each other.

    Attributes
    ----------
    y : array of shape (n_rows,)
        Labels or targets, as candidates are fitted to them; anything where unlabeled.
    truth : array of shape (n_rows,) or (n_rows, n_classes)
        The same in the form of responses.
    unlabeled : boolean array of shape (n_rows,)
    weights : array of shape (n_rows,)
    classes : array of shape (n_classes,), or None for regressors
    response : {"predict", "predict_proba"}
        What candidates are asked for.
    """

    y: AnyArray
    truth: AnyArray
    unlabeled: Mask
    weights: Vector
    classes: AnyArray | None
    response: str

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
    """Check y, and decide what candidates are asked for.

    Parameters
    ----------
    candidates : list of (str, estimator)
        All classifiers, or all regressors.
    X : anything that has rows
    y : array-like of shape (n_rows,)
    weights : array of shape (n_rows,)
    distance, missing_label
        Parameters of `MetricModelSelection`.
    """
    without = [name for name, e in candidates if not hasattr(e, "predict_proba")]
    if not is_classifier(candidates[0][1]):
        if distance == "predict_proba":
            raise ValueError("distance='predict_proba' is for classifiers. Use 'auto'.")
        auto = isinstance(missing_label, str) and missing_label == "auto"
        target, unlabeled = split_targets(y, np.nan if auto else missing_label)
        check_consistent_length(X, target)
        if not weights[~unlabeled].any():
            raise ValueError("sample_weight is zero for all rows with a target. Weigh some more.")
        return Hypotheses(target, target, unlabeled, weights, None, "predict")
    if distance == "predict_proba" and without:
        raise ValueError(
            f"distance='predict_proba' needs probabilities, which {', '.join(map(repr, without))} "
            "has not. Use distance='predict'."
        )
    classes, codes, unlabeled = split_labels(y, missing_label)
    check_consistent_length(X, codes)
    check_weights(classes, codes, unlabeled, weights)
    labels = classes[codes.astype(np.intp)]
    if distance == "predict" or without:
        return Hypotheses(labels, codes, unlabeled, weights, classes, "predict")
    one_hot = (codes[:, None] == np.arange(len(classes))).astype(np.float64)
    return Hypotheses(labels, one_hot, unlabeled, weights, classes, "predict_proba")
