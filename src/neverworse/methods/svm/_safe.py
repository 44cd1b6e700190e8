"""The safe support vector classifier, known as S4VM."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.optimize import linprog
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from neverworse._typing import AnyArray, Mask, Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators import stored_weights
from neverworse.methods.svm._l2svm import PartlyLabeled, SemiSupervisedSVM
from neverworse.methods.svm._transductive import TransductiveSVMClassifier, label_shares
from neverworse.projection import Weights

# The search for a local minimum ends when a round lowers the objective by less than this fraction;
# its SVMs have this tolerance.
MIN_GAIN, SEARCH_TOL = 1e-4, 1e-3


@documented_like(TransductiveSVMClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class SafeSVMClassifier(SemiSupervisedSVM):
    r"""Safe semi-supervised support vector classifier (S4VM): the worst case over separators.

    There are many low-density separators that a transductive SVM might find. Several of them are
    found here, and the labels :math:`y` of the unlabeled rows are those that gain most over the
    supervised SVM, whichever separator :math:`y^t` is right:

    .. math:: \max_{y} \min_t \; \text{gain}(y, y^t) - \lambda\, \text{loss}(y, y^t)

    where the gain is the share of unlabeled rows that y has right and the supervised SVM has
    wrong, and the loss the share that it has wrong and the supervised SVM has right.

    Separators are local minima of the objective of `TransductiveSVMClassifier`, from the labels of
    the supervised SVM and from random ones; they are clustered, and the best of each cluster kept.
    The labels are found by linear programming, and an SVM is trained with them; if they gain
    nothing in the worst case, the supervised SVM is kept. The choice is safe if one of the
    separators is right. If none is, it may be worse than the supervised counterpart.

    Parameters
    ----------
    {alpha, scaling, fit_intercept, penalise_intercept, tol}
    max_iter : int, default=100000
        Maximum number of Newton steps, in total.
    {missing_label, verbose}
    {unlabeled_weight, positive_fraction}
    fraction_tolerance : float, default=0.05
        How far the share of positive rows of a separator may deviate from it.
    n_samples : int, default=100
        Number of local minima to search for.
    n_separators : int, default=10
        Number of clusters, and so of separators that are kept.
    risk : float, default=3.0
        The factor :math:`\lambda`: how much a lost row counts compared with a gained one.
    random_state : int, RandomState or None, default=None
        For the random labels and the clusters.

    Attributes
    ----------
    {classes_, coef_, intercept_}
    labels_ : array of shape (n_unlabeled,)
        The chosen classes of the unlabeled rows.
    candidates_ : array of shape (n_candidates, n_unlabeled)
        Classes of the unlabeled rows by the separators that were kept, by increasing objective.
    candidate_objectives_ : array of shape (n_candidates,)
        Their objectives.
    worst_case_improvement_ : float
        The value of the chosen labels, as a share of the (weighted) unlabeled rows. Never negative.
    {supervised_, n_iter_}
    converged_ : bool
        Whether all separators were found, and the last SVM has converged.
    {n_features_in_, feature_names_in_}

    References
    ----------
    Li and Zhou, International Conference on Machine Learning (2011), 1081-1088, and IEEE
    Transactions on Pattern Analysis and Machine Intelligence 37 (2015), 175-188.

    Examples
    --------
    >>> from neverworse.methods import SafeSVMClassifier
    >>> X = [[0.0], [3.0], [0.2], [0.4], [0.6], [2.7], [2.9], [3.2]]
    >>> y = [0, 1, -1, -1, -1, -1, -1, -1]
    >>> clf = SafeSVMClassifier(random_state=0).fit(X, y)
    >>> clf.labels_
    array([0, 0, 0, 1, 1, 1])
    """

    max_iter: int = 100_000
    fraction_tolerance: float = 0.05
    n_samples: int = 100
    n_separators: int = 10
    risk: float = 3.0
    random_state: Any = None

    def _fit_partly(self, problem: PartlyLabeled, share: float) -> tuple[Weights, Mask]:
        random = check_random_state(self.random_state)
        separators, objectives = self._separators(problem, share, random)
        scores, counts = problem.scores(problem.start), problem.costs / problem.costs.sum()
        supervised, risk = scores > 0.0, float(self.risk)
        positive = safest_labels(separators, supervised, counts, risk, scores)
        improvement = float((gains(positive, separators, supervised, risk) @ counts).min())
        self.candidates_ = self.classes_[separators.astype(np.intp)]
        self.candidate_objectives_ = objectives
        self.worst_case_improvement_ = max(0.0, improvement)
        weights, converged = stored_weights(self.supervised_), self.supervised_.converged_
        if improvement > 0.0:
            last = problem.solve(positive, float(self.unlabeled_weight), problem.start)
            weights, converged = problem.labeled.design.weights(last.parameters), last.converged
        else:
            positive = supervised
        converged = converged and not problem.budget.exhausted
        self._set_end(converged, problem.budget.n_iter, problem.budget)
        return weights, positive

    def _separators(
        self, problem: PartlyLabeled, share: float, random: RandomState
    ) -> tuple[AnyArray, Vector]:
        """Return which rows are positive at diverse local minima, and objectives, the best first.

        One search starts with the labels of the supervised SVM, all others with random ones.
        """
        shares = share - self.fraction_tolerance, share + self.fraction_tolerance
        found, scores = [], problem.scores(problem.start)
        for k in range(self.n_samples):
            labels = label_shares(scores, *shares)
            found.append(_local_minimum(problem, labels, shares, float(self.unlabeled_weight)))
            if problem.budget.exhausted:
                break
            problem.budget.report(f"separator {k + 1} of {self.n_samples}", len(scores))
            scores = random.normal(size=len(scores))
        labels, first = np.unique([each for each, _ in found], axis=0, return_index=True)
        objectives, n = np.array([value for _, value in found])[first], self.n_separators
        order = np.argsort(objectives, kind="stable")
        if len(labels) > n:
            clusters = KMeans(n, random_state=random).fit_predict(labels.astype(np.float32))
            order = order[np.sort(np.unique(clusters[order], return_index=True)[1])]
        return labels[order], objectives[order]

    def _keep_supervised(self) -> None:
        self.candidates_ = np.empty((0, 0), self.classes_.dtype)
        self.candidate_objectives_ = np.empty(0)
        self.worst_case_improvement_ = 0.0


def _local_minimum(
    problem: PartlyLabeled, labels: Mask, shares: tuple[float, float], weight: float
) -> tuple[Mask, float]:
    problem = replace(problem, system=copy(problem.system))
    solution, value = None, np.inf
    while True:
        solution = problem.solve(labels, weight, solution, SEARCH_TOL)
        better = label_shares(-problem.extra_cost(problem.scores(solution)), *shares)
        small_gain = value - solution.value <= MIN_GAIN * solution.value
        if small_gain or problem.budget.exhausted or np.array_equal(better, labels):
            return labels, solution.value
        labels, value = better, solution.value


def gains(labels: Any, separators: AnyArray, supervised: Mask, risk: float) -> Matrix:
    """Return 1 where only the label is right, if a separator is, and -risk the other way round."""
    differs = supervised != separators
    return np.where(labels == separators, differs, np.where(differs, 0.0, -risk))


def safest_labels(
    separators: AnyArray, supervised: Mask, weights: Vector, risk: float, order: Vector
) -> Mask:
    """Return the labels whose smallest improvement over all separators is the largest.

    A linear program for the share of positive rows in each group of rows that all separators label
    alike. In a group, the rows with the largest `order` are positive.
    """
    patterns = np.vstack([supervised, separators])
    kinds, group = np.unique(patterns, axis=1, return_inverse=True)
    group = group.ravel()
    size = np.bincount(group, weights)
    positive, negative = (gains(label, kinds[1:], kinds[0], risk) for label in (True, False))
    n_groups = len(size)
    solution = linprog(
        np.append(np.zeros(n_groups), -1.0),
        A_ub=np.column_stack([(negative - positive) * size, np.ones(len(separators))]),
        b_ub=negative @ size,
        bounds=[(0.0, 1.0)] * n_groups + [(None, None)],
    )
    weight = solution.x[:-1] * size  # about that of the positive rows in each group
    first = np.lexsort((-order, group))
    ahead = np.cumsum(weights[first]) - weights[first]
    ahead -= ahead[np.searchsorted(group[first], np.arange(n_groups))][group[first]]
    labels = np.zeros(len(group), bool)
    labels[first] = ahead + 0.5 * weights[first] < weight[group[first]]
    return labels
