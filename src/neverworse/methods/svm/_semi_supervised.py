"""What the semi-supervised support vector classifiers share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from neverworse._budget import Budget
from neverworse._typing import AnyArray, Indices, Mask, Vector
from neverworse.estimators import (
    FitInput,
    KnownLabels,
    copy_input_checks,
    known_labels,
    stored_weights,
)
from neverworse.methods._base import check_two_classes
from neverworse.methods.svm._l2svm import L2SVMClassifier, SVMClassifier
from neverworse.methods.svm._newton import (
    Design,
    Hinges,
    Margins,
    Solution,
    System,
    minimise,
    objective,
)
from neverworse.projection import Weights
from neverworse.rows import Rows

# The tolerance of solutions that are only stages on the way to others.
COARSE_TOL = 1e-6


@dataclass(frozen=True)
class PartlyLabeled:
    r"""The objective of the weights, once the unlabeled rows are given soft labels p.

    .. math::

        \frac{\alpha}{2} \lVert w \rVert^2 + \sum_i c_i \ell(y_i f_i)
        + v \sum_j c_j \left( p_j \ell(f_j) + (1 - p_j) \ell(-f_j) \right),
        \qquad \ell(t) = \tfrac12 \max(0, 1 - t)^2
    """

    design: Design  # of all rows
    system: System
    labeled: Hinges  # weights c of the labeled rows; zeros for all others
    unlabeled: Indices  # the unlabeled rows that have a weight
    costs: Vector  # (n_unlabeled,): their weights c
    start: Solution  # the supervised weights
    tol: float
    budget: Budget

    def solve(
        self, soft: Vector, weight: float, start: Solution | None, rough: float = 0.0
    ) -> Solution:
        """Return the best weights for soft labels p and the weight v of the unlabeled rows.

        If they are only a stage on the way to others, `rough` is a larger tolerance for them.
        """
        # Divided by v, the objective changes with v in the penalty and the few labeled rows only,
        # so that the system remembers what it knows of the unlabeled rows.
        design, hinges = self._divided(soft, weight)
        tol = max(self.tol, rough)
        found = minimise(design, hinges, self.system, self.budget, tol, start)
        return replace(found, value=weight * found.value)

    def value(self, solution: Solution, soft: Vector, weight: float) -> float:
        """Return the objective of a solution that was found for other labels or weights."""
        divided = self._divided(soft, weight)
        return weight * objective(*divided, solution.parameters, solution.margins)

    def _divided(self, soft: Vector, weight: float) -> tuple[Design, Hinges]:
        positive, negative = self.labeled.positive / weight, self.labeled.negative / weight
        positive[self.unlabeled] = self.costs * soft
        negative[self.unlabeled] = self.costs * (1.0 - soft)
        design = replace(self.design, penalty=self.design.penalty / weight)
        return design, Hinges(positive, negative)

    def scores(self, solution: Solution) -> Vector:
        """Return the scores of the unlabeled rows."""
        return solution.margins.scores[self.unlabeled]

    def preference(self, scores: Vector) -> Vector:
        """Return how much more a positive label of each unlabeled row costs than a negative one."""
        up, down = np.maximum(1.0 - scores, 0.0), np.maximum(1.0 + scores, 0.0)
        return 0.5 * self.costs * (up - down) * (up + down)


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

    def _fit_rows(self, given: FitInput) -> None:
        known, rows = known_labels(given, self.missing_label), given.rows
        check_two_classes(known.classes)
        budget = Budget(self.max_iter, None, given.observer)
        shared = "alpha scaling fit_intercept penalise_intercept tol max_iter missing_label"
        supervised = L2SVMClassifier(**{name: getattr(self, name) for name in shared.split()})
        supervised._fit_known(rows, known, None)
        copy_input_checks(self, supervised)
        budget.report("supervised SVM", int(np.count_nonzero(~known.labels.unlabeled)))
        self.classes_, self.supervised_ = known.classes, supervised
        unlabeled = known.labels.unlabeled
        used = known.labels.weights_where(unlabeled) > 0.0
        codes = np.zeros(rows.n_rows, np.intp)
        if used.any():
            problem = self._problem(rows, known, used, budget)
            found, codes[used] = self._fit_partly(problem, self._share(known))
        else:
            found = stored_weights(supervised)
            self.converged_, self.n_iter_ = supervised.converged_, supervised.n_iter_
            self._keep_supervised()
        self._set_weights(found)
        others = np.flatnonzero(unlabeled & ~used)
        if others.size:
            codes[others] = rows.scores(found.coef, found.intercept)[0, others] > 0.0
        self.labels_ = known.classes[codes[unlabeled]]

    @abstractmethod
    def _fit_partly(self, problem: PartlyLabeled, share: float) -> tuple[Weights, Mask]:
        """Return weights, and which of the unlabeled rows are positive; set the attributes."""

    @abstractmethod
    def _keep_supervised(self) -> None:
        """Set the attributes of the method if there are no unlabeled rows."""

    def _problem(
        self, rows: Rows, known: KnownLabels, unlabeled: Mask, budget: Budget
    ) -> PartlyLabeled:
        labels = known.labels
        weights = self._scaled(labels.weights_where(~labels.unlabeled))
        labeled = Hinges(weights * labels.target[0], weights * (1.0 - labels.target[0]))
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
        return float(labels.target[0, labels.weights_where(~labels.unlabeled) > 0.0].mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
