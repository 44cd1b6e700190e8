"""The classifiers of the experiments, by the names of the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators import (
    ICLSClassifier,
    L2SVMClassifier,
    LeastSquaresClassifier,
    OracleClassifier,
    ProjectedLeastSquaresClassifier,
    SelfLearningClassifier,
    TransductiveSVMClassifier,
    UpdatedSecondMomentClassifier,
)
from neverworse.estimators._classifier import class_scores
from neverworse.experiments._protocol import Protocol


@dataclass(frozen=True)
class Method:
    """A classifier of the experiments.

    Attributes
    ----------
    name : str
        As in the paper.
    loss : {"quadratic", "hinge"}
        The loss in which it is measured: of scores for targets 0 and 1, or the squared hinge.
    make : callable
        Returns an unfitted classifier for a protocol.
    counterpart : str
        The supervised method that it is compared with; its own name if it is that.
    uses_unlabeled : bool
        Whether unlabeled rows make a difference.
    """

    name: str
    loss: Literal["quadratic", "hinge"]
    make: Callable[[Protocol], Any]
    counterpart: str
    uses_unlabeled: bool = True

    def losses(self, model: Any, X: Matrix, y: AnyArray) -> Vector:
        """Return the loss of every row with its true label, 0 or 1."""
        if self.loss == "quadratic":
            quadratic: Vector = (class_scores(model, X)[:, 1] - y) ** 2
            return quadratic
        decision = model.decision_function(X)
        hinge: Vector = np.maximum(0.0, 1.0 - np.where(y == 1, decision, -decision)) ** 2
        return hinge


def _least_squares(make: Callable[..., Any]) -> Callable[[Protocol], Any]:
    """Return a maker of least squares with the pseudo-inverse of a protocol."""
    return lambda protocol: make(rcond=protocol.cutoff)


def _svm(protocol: Protocol) -> L2SVMClassifier:
    return L2SVMClassifier(protocol.svm_alpha, scaling="sum", penalise_intercept=True)


def _tsvm(protocol: Protocol) -> TransductiveSVMClassifier:
    return TransductiveSVMClassifier(
        protocol.svm_alpha, scaling=protocol.svm_scaling, penalise_intercept=True
    )


METHODS = {
    method.name: method
    for method in (
        Method(
            "Supervised",
            "quadratic",
            _least_squares(LeastSquaresClassifier),
            "Supervised",
            uses_unlabeled=False,
        ),
        Method(
            "Self-Learning",
            "quadratic",
            _least_squares(
                lambda rcond: SelfLearningClassifier(LeastSquaresClassifier(rcond=rcond))
            ),
            "Supervised",
        ),
        Method("USM", "quadratic", _least_squares(UpdatedSecondMomentClassifier), "Supervised"),
        Method("ICLS", "quadratic", _least_squares(ICLSClassifier), "Supervised"),
        Method(
            "Projection", "quadratic", _least_squares(ProjectedLeastSquaresClassifier), "Supervised"
        ),
        Method(
            "Oracle",
            "quadratic",
            _least_squares(lambda rcond: OracleClassifier(LeastSquaresClassifier(rcond=rcond))),
            "Supervised",
        ),
        Method("SVM", "hinge", _svm, "SVM", uses_unlabeled=False),
        Method("TSVM", "hinge", _tsvm, "SVM"),
    )
}
