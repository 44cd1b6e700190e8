"""The classifiers of the paper, and the two protocols: its text and its published code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from neverworse import estimators, methods
from neverworse._typing import AnyArray, Matrix, Vector

# MASS::ginv, the pseudo-inverse of the published code, leaves out what is smaller than this
# fraction of the largest singular value: the square root of the machine epsilon.
GINV_CUTOFF = 2.0**-26


@dataclass(frozen=True)
class Protocol:
    """Settings that differ between the text of the paper and its code; the code's by default."""

    cutoff: float | None = GINV_CUTOFF  # of singular values, see `truncation`; None: exact
    svm_alpha: float = 0.1  # penalty of the support vector machines
    svm_scaling: str = "mean"  # or "sum" of the losses of the transductive one
    positive_rounding: str = "svmlin"  # of the number of its positive rows; or "score"
    principal_components: bool = True  # whether robustness starts with 99 % of the variance
    fewest_labels: int = 10  # in robustness and learning curves
    fewest_labels_in_folds: int = 20
    largest_size: int = 1024  # unlabeled rows in the learning curves
    pooled_folds: bool = False  # whether errors are those of all rows together, or means over folds

    def n_labeled(self, n_features: int) -> int:
        return max(2 * n_features, self.fewest_labels)

    def n_labeled_in_folds(self, n_features: int) -> int:
        return max(n_features + 5, self.fewest_labels_in_folds)


PROTOCOLS = {
    "code": Protocol(),
    "text": Protocol(
        cutoff=None,
        svm_alpha=0.01,
        svm_scaling="sum",
        positive_rounding="score",
        principal_components=False,
        fewest_labels=2,
        fewest_labels_in_folds=2,
        largest_size=512,
        pooled_folds=True,
    ),
}


def design_matrix() -> Pipeline:
    """Return a transformer to a column of ones, and the features centred on the rows of its fit.

    The centring affects a pseudo-inverse with a cut-off, but not exact least squares.
    """
    return make_pipeline(StandardScaler(with_std=False), PolynomialFeatures(1))


def truncation(X: Matrix, cutoff: float) -> FunctionTransformer:
    """Return a transformer to the directions that a truncated pseudo-inverse for these rows keeps.

    Their singular values in the Gram matrix of the design matrix, with its column of ones, are more
    than `cutoff` times the largest. Least squares on the transformed rows is least squares with
    that pseudo-inverse. If every direction is kept, rows do not change.
    """
    mean = X.mean(axis=0)
    centred = X - mean
    gram = centred.T @ centred
    # Eigenvectors take much longer than eigenvalues, and are rarely needed.
    values = np.linalg.eigvalsh(gram)
    # The column of ones is orthogonal to centred columns; its singular value is len(X).
    n_dropped = int(np.sum(values <= cutoff * max(values[-1], len(X))))
    if not n_dropped:
        return FunctionTransformer()
    directions = np.linalg.eigh(gram).eigenvectors[:, n_dropped:]
    return FunctionTransformer(lambda rows: (rows - mean) @ directions)


def counterpart(method: str) -> str:
    """Return the supervised method that a method is compared with, which may be itself."""
    return "SVM" if "SVM" in method else "Supervised"


def losses(method: str, model: Any, X: Matrix, y: AnyArray) -> Vector:
    """Return the loss of every row with its true label, 0 or 1: quadratic, or the squared hinge."""
    if counterpart(method) == "Supervised":
        return np.asarray((estimators.class_scores(model, X)[:, 1] - y) ** 2)
    decision = model.decision_function(X)
    return np.asarray(np.maximum(0.0, 1.0 - np.where(y == 1, decision, -decision)) ** 2)


def _least_squares(make: Callable[..., Any], protocol: Protocol, **settings: Any) -> Any:
    """Return unpenalised least squares, with the published design matrix if there is a cut-off."""
    if protocol.cutoff is None:
        return make(alpha=0.0, **settings)
    return make_pipeline(design_matrix(), make(alpha=0.0, fit_intercept=False, **settings))


def _supervised(protocol: Protocol) -> Any:
    return _least_squares(estimators.LeastSquaresClassifier, protocol, rcond=protocol.cutoff)


METHODS: dict[str, Callable[[Protocol], Any]] = {
    # The wrapped ones are centred on the rows that they are fitted to.
    "Supervised": lambda p: methods.SupervisedClassifier(_supervised(p)),
    "Self-Learning": lambda p: methods.SelfLearningClassifier(_supervised(p)),
    "USM": lambda p: methods.UpdatedSecondMomentClassifier(rcond=p.cutoff),
    # Without a cut-off: it minimises the loss, not the distance from a truncated solution.
    "ICLS": lambda p: _least_squares(estimators.ICLSClassifier, p, constraint_alpha=0.0),
    "Projection": lambda p: _least_squares(
        estimators.ProjectedLeastSquaresClassifier, p, constraint_alpha=0.0, rcond=p.cutoff
    ),
    "Oracle": lambda p: methods.OracleClassifier(_supervised(p)),
    "SVM": lambda p: methods.L2SVMClassifier(p.svm_alpha, penalise_intercept=True),
    "TSVM": lambda p: methods.TransductiveSVMClassifier(
        p.svm_alpha,
        positive_rounding=p.positive_rounding,
        scaling=p.svm_scaling,
        penalise_intercept=True,
    ),
}
