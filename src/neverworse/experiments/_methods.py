"""The classifiers of the experiments, by the names of the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.pipeline import make_pipeline

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators import (
    ICLSClassifier,
    LeastSquaresClassifier,
    ProjectedLeastSquaresClassifier,
    class_scores,
)
from neverworse.experiments._design import DesignMatrix
from neverworse.experiments._protocol import Protocol
from neverworse.methods import (
    L2SVMClassifier,
    OracleClassifier,
    SelfLearningClassifier,
    SupervisedClassifier,
    TransductiveSVMClassifier,
    UpdatedSecondMomentClassifier,
)


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


def _least_squares(make: Callable[..., Any], protocol: Protocol, **settings: Any) -> Any:
    """Return unpenalised least squares, with the design matrix of the published code if need be.

    Without a cut-off, the library's own treatment of the intercept gives the same.
    """
    if protocol.cutoff is None:
        return make(alpha=0.0, **settings)
    return make_pipeline(DesignMatrix(), make(alpha=0.0, fit_intercept=False, **settings))


def _supervised(protocol: Protocol) -> Any:
    return _least_squares(LeastSquaresClassifier, protocol, rcond=protocol.cutoff)


def _projection(protocol: Protocol) -> Any:
    return _least_squares(
        ProjectedLeastSquaresClassifier, protocol, constraint_alpha=0.0, rcond=protocol.cutoff
    )


def _icls(protocol: Protocol) -> Any:
    # It minimises the loss itself, not the distance from a truncated solution.
    return _least_squares(ICLSClassifier, protocol, constraint_alpha=0.0)


def _usm(protocol: Protocol) -> UpdatedSecondMomentClassifier:
    return UpdatedSecondMomentClassifier(alpha=0.0, rcond=protocol.cutoff)


def _svm(protocol: Protocol) -> L2SVMClassifier:
    return L2SVMClassifier(protocol.svm_alpha, scaling="sum", penalise_intercept=True)


def _tsvm(protocol: Protocol) -> TransductiveSVMClassifier:
    return TransductiveSVMClassifier(
        protocol.svm_alpha,
        positive_rounding=protocol.positive_rounding,
        scaling=protocol.svm_scaling,
        penalise_intercept=True,
    )


METHODS = {
    method.name: method
    for method in (
        # What each of them is fitted to, it is centred on.
        Method(
            "Supervised",
            "quadratic",
            lambda protocol: SupervisedClassifier(_supervised(protocol)),
            "Supervised",
            uses_unlabeled=False,
        ),
        Method(
            "Self-Learning",
            "quadratic",
            lambda protocol: SelfLearningClassifier(_supervised(protocol)),
            "Supervised",
        ),
        Method("USM", "quadratic", _usm, "Supervised"),
        Method("ICLS", "quadratic", _icls, "Supervised"),
        Method("Projection", "quadratic", _projection, "Supervised"),
        Method(
            "Oracle",
            "quadratic",
            lambda protocol: OracleClassifier(_supervised(protocol)),
            "Supervised",
        ),
        Method("SVM", "hinge", _svm, "SVM", uses_unlabeled=False),
        Method("TSVM", "hinge", _tsvm, "SVM"),
    )
}
