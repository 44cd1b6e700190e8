"""The supervised support vector classifier, and the base of the semi-supervised ones."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from neverworse import estimators
from neverworse._budget import Budget
from neverworse._typing import Indices, Mask, Vector
from neverworse._words import documented_like
from neverworse.methods import _base
from neverworse.methods.svm._newton import (
    ConjugateSystem,
    Design,
    GramSystem,
    Objective,
    Solution,
    System,
    minimise,
)
from neverworse.projection import Labels, Observer, Weights, moments
from neverworse.rows import Rows, SparseRows

# With more columns than this, Newton steps by conjugate gradients are faster than with the Gram
# matrix: for dense rows, for dense rows fewer than their columns, and for sparse rows.
MAX_COLUMNS, MAX_WIDE_COLUMNS, MAX_SPARSE_COLUMNS = 3000, 1000, 300


@dataclass(eq=False, repr=False, kw_only=True)
class SVMClassifier(estimators.LinearClassifier):
    """Base of linear classifiers with the squared hinge loss, on targets -1 and +1."""

    _skips_rows: ClassVar[bool] = True
    _parameter_constraints: ClassVar[_base.Constraints] = _base.CONSTRAINTS

    alpha: float = field(default=1.0, kw_only=False)
    scaling: str = "sum"
    fit_intercept: bool = True
    penalise_intercept: bool = False
    tol: float = 1e-12
    max_iter: int = 1000
    missing_label: Any = "auto"
    verbose: int = 0

    def _prepare(self, rows: Rows, used: Indices, weights: Vector) -> tuple[Design, System]:
        """Centre the rows that have a weight in the loss; choose how to solve for Newton steps."""
        if len(used) < rows.n_rows:
            rows = rows.some(used)  # the scores of others may overflow
        centred = self.fit_intercept and not self.penalise_intercept
        penalty = np.full(rows.n_columns + self.fit_intercept, float(self.alpha))
        if centred:
            penalty[-1] = 0.0
        most = MAX_COLUMNS if rows.n_rows >= rows.n_columns else MAX_WIDE_COLUMNS
        most = MAX_SPARSE_COLUMNS if isinstance(rows, SparseRows) else most
        full = moments(rows, weights, centred) if rows.n_columns <= most else None
        sums = full or _base.wide_moments(rows, weights, centred)
        design = Design(sums.rows, sums.mean, np.flatnonzero(~sums.varies), penalty)
        if full is None:
            return design, ConjugateSystem()
        gram = full.gram
        if self.fit_intercept:
            crossed = np.zeros(rows.n_columns) if centred else rows.weighted_sum(weights)
            gram = np.block([[gram, crossed[:, None]], [crossed, full.total]])
        return design, GramSystem(gram, weights)

    def _scaled(self, weights: Vector) -> Vector:
        """Return weights of rows in a loss that is their sum or their mean."""
        return weights / weights.sum() if self.scaling == "mean" else weights

    def _set_end(self, converged: bool, n_iter: int, budget: Budget) -> None:
        """Set how the solver ended; warn if it has not converged and no callback stopped it."""
        self.converged_ = converged
        self.n_iter_ = max(1, n_iter)  # scikit-learn expects at least one
        if not converged and (n_iter >= self.max_iter or not budget.exhausted):
            _base.warn_not_converged(
                f"The solver has not converged after {n_iter} Newton steps (max_iter="
                f"{self.max_iter}). Raise max_iter, tol or alpha, or rescale the features, for "
                "example with sklearn.preprocessing.StandardScaler."
            )


@documented_like(estimators.ProjectedLeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class L2SVMClassifier(SVMClassifier):
    r"""Linear support vector classifier with squared hinge loss, on the labeled rows only.

    Minimises, over the labeled rows with targets :math:`y_i = -1` for the first and :math:`+1` for
    the second class in sorted order,

    .. math:: \frac{\alpha}{2} \lVert w \rVert^2
              + \frac{1}{2} \sum_i s_i \max(0, 1 - y_i (x_i \cdot w + b))^2 .

    With ``scaling="mean"`` the second term is divided by :math:`\sum_i s_i`. More than two classes
    are solved one against the rest.

    Unlabeled rows are ignored: this is the supervised counterpart of `TransductiveSVMClassifier`
    and `SafeSVMClassifier`. It is solved by Newton's method on the rows within the margin. There is
    no `predict_proba`: fit scikit-learn's `CalibratedClassifierCV` to the labeled rows instead.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty of the weights. With ``scaling="sum"``, 1 / (2 C) of scikit-learn's `LinearSVC`.
    scaling : {"sum", "mean"}, default="sum"
        Whether the loss is the sum over rows (as in SVMlin's supervised SVM), or the mean.
    fit_intercept : bool, default=True
        Whether to fit b.
    penalise_intercept : bool, default=False
        Whether the penalty includes b. With ``scaling="sum"``, as in SVMlin and `LinearSVC`.
    tol : float, default=1e-12
        Stop when a Newton step is expected to lower the objective by less than this fraction.
    max_iter : int, default=1000
        Maximum number of Newton steps, for each class.
    {missing_label, verbose}

    Attributes
    ----------
    {classes_, coef_}
    intercept_ : array of shape (1,) or (n_classes,)
        b.
    objective_ : float, or array of shape (n_classes,)
        The minimum.
    n_iter_ : int
        Number of Newton steps; of several classes, the largest.
    converged_ : bool
        Whether `tol` was reached, for all classes.
    {n_features_in_, feature_names_in_}

    References
    ----------
    Keerthi and DeCoste, Journal of Machine Learning Research 6 (2005), 341-361.

    Examples
    --------
    >>> from neverworse.methods import L2SVMClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0]]
    >>> clf = L2SVMClassifier(alpha=0.01).fit(X, [0, 0, 1, 1, -1])
    >>> clf.predict([[1.4], [1.6]])
    array([0, 1])
    """

    def _fit_rows(self, given: estimators.FitInput) -> None:
        known = estimators.known_labels(given, self.missing_label)
        self._fit_known(given.rows, known, given.observer)

    def _fit_known(
        self, rows: Rows, known: estimators.KnownLabels, observer: Observer | None
    ) -> None:
        labels = known.labels
        weights = labels.weights_where(~labels.unlabeled)
        used = np.flatnonzero(weights)
        weights = self._scaled(weights[used])
        design, system = self._prepare(rows, used, weights)
        solutions, n_iter = [], 0
        for target in labels.target[:, used]:
            budget = Budget(self.max_iter, None, observer)
            loss = Objective(design, weights * target, weights * (1.0 - target))
            solutions.append(minimise(loss, copy(system), budget, self.tol, stage="Newton step"))
            n_iter = max(n_iter, budget.n_iter)
        self._set_weights(design.weights(np.array([found.parameters for found in solutions])))
        self.classes_ = known.classes
        values = [found.value for found in solutions]
        self.objective_ = np.array(values) if len(values) > 1 else values[0]
        self._set_end(all(found.converged for found in solutions), n_iter, budget)


@dataclass(frozen=True)
class PartlyLabeled:
    """The objective of the weights, for given soft labels p of the unlabeled rows.

    A row with the weight c has the loss v c (p ℓ(f) + (1 - p) ℓ(-f)), with ℓ(t) = ½ max(0, 1 - t)².
    """

    labeled: Objective  # of the labeled rows: all others have no weight
    system: System
    unlabeled: Indices  # the unlabeled rows that have a weight
    costs: Vector  # (n_unlabeled,): their weights c
    start: Solution  # the supervised weights
    tol: float
    budget: Budget

    def solve(
        self, labels: Vector | Mask, weight: float, start: Solution | None, min_tol: float = 0.0
    ) -> Solution:
        """Return the best weights for soft (or hard) labels p and the weight v."""
        tol = max(self.tol, min_tol)
        found = minimise(self._divided(labels, weight), self.system, self.budget, tol, start)
        return replace(found, value=weight * found.value)

    def value(self, solution: Solution, labels: Vector | Mask, weight: float) -> float:
        """Return the objective of a solution that was found for other labels or weights."""
        return weight * self._divided(labels, weight).value(solution)

    def _divided(self, labels: Vector | Mask, weight: float) -> Objective:
        """Return the objective divided by v, so that the unlabeled rows keep their weights."""
        design = self.labeled.design
        positive, negative = self.labeled.positive / weight, self.labeled.negative / weight
        positive[self.unlabeled] = self.costs * labels
        negative[self.unlabeled] = self.costs * (1.0 - labels)
        return Objective(replace(design, penalty=design.penalty / weight), positive, negative)

    def scores(self, solution: Solution) -> Vector:
        return solution.scores[self.unlabeled]

    def extra_cost(self, scores: Vector) -> Vector:
        """Return how much more a positive label of each unlabeled row costs than a negative one."""
        up, down = np.maximum(1.0 - scores, 0.0), np.maximum(1.0 + scores, 0.0)
        return 0.5 * self.costs * (up - down) * (up + down)


@dataclass(eq=False, repr=False, kw_only=True)
class SemiSupervisedSVM(SVMClassifier):
    """Base of classifiers for two classes that label the unlabeled rows."""

    alpha: float = field(default=0.1, kw_only=False)
    scaling: str = "mean"
    unlabeled_weight: float = 1.0
    positive_fraction: float | None = None

    def _fit_rows(self, given: estimators.FitInput) -> None:
        known, rows = estimators.known_labels(given, self.missing_label), given.rows
        _base.check_two_classes(known.classes)
        labels, budget = known.labels, Budget(self.max_iter, None, given.observer)
        supervised = _base.with_parameters_of(self, L2SVMClassifier)
        supervised._fit_known(rows, known, None)
        budget.report("supervised SVM", labels.n_labeled)
        self.classes_, self.supervised_ = known.classes, supervised
        counted = labels.weights_where(labels.unlabeled) > 0.0
        if counted.any():
            found, chosen = self._fit_partly(*self._problem(rows, labels, budget))
        else:
            found, chosen = estimators.stored_weights(supervised), counted[counted]
            self.converged_, self.n_iter_ = supervised.converged_, supervised.n_iter_
            self._keep_supervised()
        self._set_weights(found)
        positive = rows.scores(found.coef, found.intercept)[0] > 0.0
        positive[counted] = chosen
        self.labels_ = known.classes[positive[labels.unlabeled].astype(np.intp)]

    @abstractmethod
    def _fit_partly(self, problem: PartlyLabeled, share: float) -> tuple[Weights, Mask]:
        """Return weights, and which unlabeled rows are positive; set the method's attributes."""

    @abstractmethod
    def _keep_supervised(self) -> None:
        """Set the method's attributes if there are no unlabeled rows."""

    def _problem(self, rows: Rows, labels: Labels, budget: Budget) -> tuple[PartlyLabeled, float]:
        """Return the objective, and the share of unlabeled rows that are positive."""
        s = np.ones(rows.n_rows) if labels.weights is None else labels.weights
        used = np.flatnonzero(s)
        s, target, unlabeled = s[used], labels.target[0, used], labels.unlabeled[used]
        weights = self._scaled(np.where(unlabeled, 0.0, s))
        costs = self._scaled(s[unlabeled])
        full = weights / float(self.unlabeled_weight)  # the form that `PartlyLabeled` solves
        full[unlabeled] = costs
        design, system = self._prepare(rows, used, full)
        labeled = Objective(design, weights * target, weights * (1.0 - target))
        parameters = design.parameters(estimators.stored_weights(self.supervised_))
        start = Solution.of(parameters, design.scores(parameters))
        where, share = np.flatnonzero(unlabeled), self.positive_fraction
        problem = PartlyLabeled(labeled, system, where, costs, start, self.tol, budget)
        return problem, float(target[~unlabeled].mean() if share is None else share)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
