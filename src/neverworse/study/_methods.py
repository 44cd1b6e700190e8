"""The methods that a report compares, and what each of them promises."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils.validation import has_fit_parameter

from neverworse._typing import AnyArray, Indices, Vector
from neverworse.estimators import ICLSClassifier, ProjectedLeastSquaresClassifier, split_labels
from neverworse.methods import SelfLearningClassifier, TransductiveSVMClassifier
from neverworse.study._tuned import tuned_classifiers

SUPERVISED, PROJECTED = "supervised", "projected"
# Methods whose models predict with compiled code of scikit-learn.
COMPILED = ("random forest", "gradient boosting")
COLLAPSED = 10  # times fewer rows of other classes than the labels have


def standard_methods(
    projected: ProjectedLeastSquaresClassifier,
    *,
    compare: bool = False,
    n_classes: int = 2,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the methods of a comparison, unfitted, all with the settings of the projected one.

    Parameters
    ----------
    projected : ProjectedLeastSquaresClassifier
        Fitted or not.
    compare : bool, default=False
        Whether to include methods without any guarantee: logistic regression, random forest and
        gradient boosting of the labeled rows, self-training, self-learning, a transductive support
        vector machine (for two classes) and label spreading.
    n_classes : int, default=2
    seed : int, default=0

    Returns
    -------
    methods : dict of str to classifier
        The supervised one first.
    """
    settings = projected.get_params(deep=False)
    supervised = projected._baseline()
    methods: dict[str, Any] = {
        SUPERVISED: supervised,
        PROJECTED: clone(projected),
        "ICLS": ICLSClassifier(**{k: v for k, v in settings.items() if k != "distance"}),
    }
    if compare:
        marker = projected.missing_label
        methods |= tuned_classifiers(projected.class_weight, marker, seed)
        methods["self-learning"] = SelfLearningClassifier(clone(supervised), missing_label=marker)
        if n_classes == 2:
            methods["TSVM"] = TransductiveSVMClassifier(missing_label=marker)
        methods["label spreading"] = NearestLabelSpreading(missing_label=marker)
    return methods


def fitted(method: Any, X: Any, y: Vector, weights: Vector | None) -> Any:
    """Return a fitted copy of a method; those that take no weights of rows go without."""
    model, passed = clone(method), {}
    if weights is not None and has_fit_parameter(model, "sample_weight"):
        passed = {"sample_weight": weights}
    with warnings.catch_warnings():
        # What counts is how well methods do on test rows, converged or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **passed)


def learns_from_itself(method: Any) -> bool:
    """Whether a method takes its own predictions for labels, so that it may collapse."""
    return bool(getattr(method, "self_training", isinstance(method, FROM_ITSELF)))


def collapsed_to(predicted: Indices, labels: Indices) -> int | None:
    """Return the class to which a method has collapsed, if it has.

    It has collapsed if, of the unlabeled rows, less than a tenth of the share that all other
    classes have among the labels gets one of them. With a fifth of the labels in other classes,
    these are less than 2 % of the unlabeled rows.

    Parameters
    ----------
    predicted : array of shape (n_unlabeled,)
        Codes of the predicted classes.
    labels : array of shape (n_labeled,)
        Codes of the known ones.
    """
    if not len(predicted):
        return None
    largest = int(np.bincount(predicted).argmax())
    others, known = (int(np.sum(codes != largest)) for codes in (predicted, labels))
    return largest if COLLAPSED * others * len(labels) < known * len(predicted) else None


def guarantee_of(method: Any) -> str:
    """Return in words what is proved about a method before any data are seen."""
    if not isinstance(method, ProjectedLeastSquaresClassifier):
        return "none"
    distance = method.distance if isinstance(method.distance, str) else ""
    rows = {"all": "all training rows", "unlabeled": "the unlabeled training rows"}.get(distance)
    if rows is None:
        return "none"
    penalised = method.alpha if method.constraint_alpha == "same" else method.constraint_alpha
    loss = "penalised quadratic loss" if penalised else "quadratic loss"
    claim = f"never worse in {loss} on {rows}"
    if method.class_prior is None:
        return claim
    if isinstance(method.class_prior, str):
        return f"{claim}, with probability {method.prior_level:.0%}"
    return f"{claim}, if the class prior is right"


class NearestLabelSpreading(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Label spreading of scikit-learn over nearest neighbours, with any marker of unlabeled rows.

    Its other kernel takes a matrix of all pairs of rows.

    Parameters
    ----------
    n_neighbors : int, default=7
    missing_label : "auto" or scalar, default="auto"
    """

    classes_: AnyArray

    def __init__(self, n_neighbors: int = 7, *, missing_label: Any = "auto") -> None:
        self.n_neighbors = n_neighbors
        self.missing_label = missing_label

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to labeled and unlabeled rows."""
        self.classes_, codes, unlabeled = split_labels(y, self.missing_label)
        self.largest_ = int(np.bincount(codes[~unlabeled].astype(np.intp)).argmax())
        neighbors = min(self.n_neighbors, len(codes) - 1)
        self.model_ = LabelSpreading(kernel="knn", n_neighbors=neighbors)
        self.model_.fit(X, np.where(unlabeled, -1, codes).astype(np.intp))
        return self

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row; the largest class where no label has spread to."""
        with np.errstate(invalid="ignore"):
            shares = self.model_.predict_proba(X)
        reached = ~np.isnan(shares).any(axis=1)
        classes: AnyArray = self.classes_[np.where(reached, shares.argmax(axis=1), self.largest_)]
        return classes


FROM_ITSELF = (SelfLearningClassifier, TransductiveSVMClassifier, NearestLabelSpreading)
