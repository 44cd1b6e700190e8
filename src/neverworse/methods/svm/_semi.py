"""What the semi-supervised support vector classifiers share."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from neverworse._typing import AnyArray, Mask, Vector
from neverworse.estimators._known_labels import KnownLabels, known_labels
from neverworse.estimators._linear import copy_input_checks, stored_weights
from neverworse.methods._two_classes import check_two_classes
from neverworse.methods.svm._base import SVMClassifier
from neverworse.methods.svm._hinge import Hinges, Margins
from neverworse.methods.svm._l2svm import L2SVMClassifier
from neverworse.methods.svm._newton import Solution
from neverworse.methods.svm._partly import PartlyLabeled
from neverworse.projection import Observer, Weights
from neverworse.projection.solver.budget import Budget
from neverworse.rows import Rows


class SemiSupervisedSVM(SVMClassifier):
    """Base of classifiers for two classes that give labels to the unlabeled rows."""

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **SVMClassifier._parameter_constraints,
        "unlabeled_weight": [Interval(Real, 0, None, closed="neither")],
        "positive_fraction": [Interval(Real, 0, 1, closed="both"), None],
    }

    unlabeled_weight: float
    positive_fraction: float | None
    supervised_: L2SVMClassifier
    labels_: AnyArray

    def _fit_rows(
        self,
        rows: Rows,
        y: Any,
        weights: Vector | None,
        bounds: Any,  # noqa: ARG002
        observer: Observer | None,
    ) -> None:
        known = known_labels(y, self.missing_label, rows.n_rows, weights)
        check_two_classes(known.classes)
        budget = Budget(self.max_iter, None, observer)
        supervised = L2SVMClassifier(**self._settings())
        supervised._fit_known(rows, known, None)
        copy_input_checks(self, supervised)
        budget.report("supervised machine", int(np.count_nonzero(~known.labels.unlabeled)))
        self.classes_, self.supervised_ = known.classes, supervised
        unlabeled = known.labels.unlabeled
        used = known.labels.weights_where(unlabeled) > 0.0
        codes = np.zeros(rows.n_rows, np.intp)
        if used.any():
            problem = self._problem(rows, known, used, budget)
            found, codes[used] = self._fit_partly(problem, self._share(known))
        else:
            found = stored_weights(supervised)
            self._keep_supervised()
        self._set_weights(found)
        others = np.flatnonzero(unlabeled & ~used)
        if others.size:
            codes[others] = rows.scores(found.coef, found.intercept)[others] > 0.0
        self.labels_ = known.classes[codes[unlabeled]]

    @abstractmethod
    def _fit_partly(self, problem: PartlyLabeled, share: float) -> tuple[Weights, Mask]:
        """Return weights, and which of the unlabeled rows are positive; set the attributes."""

    @abstractmethod
    def _keep_supervised(self) -> None:
        """Set the attributes if there are no unlabeled rows."""

    def _problem(
        self, rows: Rows, known: KnownLabels, unlabeled: Mask, budget: Budget
    ) -> PartlyLabeled:
        labels = known.labels
        weights = self._scaled(labels.weights_where(~labels.unlabeled))
        labeled = Hinges(weights * labels.target, weights * (1.0 - labels.target))
        where = np.flatnonzero(unlabeled)
        costs = self._scaled(labels.weights_where(unlabeled)[where])
        full = weights / float(self.unlabeled_weight)  # the form that `PartlyLabeled` solves
        full[where] = costs
        design, system = self._prepare(rows, full)
        parameters = design.parameters(stored_weights(self.supervised_))
        start = Solution(parameters, Margins.of(design.scores(parameters)), float("nan"))
        return PartlyLabeled(design, system, labeled, where, costs, start, self.tol, budget)

    def _share(self, known: KnownLabels) -> float:
        """Return the share of positive rows among the unlabeled ones."""
        if self.positive_fraction is not None:
            return float(self.positive_fraction)
        labels = known.labels
        return float(labels.target[labels.weights_where(~labels.unlabeled) > 0.0].mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
