"""The transductive support vector classifier, and how it labels the unlabeled rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr, expit, rel_entr
from sklearn.utils._param_validation import StrOptions

from neverworse._typing import Indices, Mask, Vector
from neverworse._words import documented_like
from neverworse.methods._base import CONSTRAINTS, Constraints
from neverworse.methods.svm._l2svm import L2SVMClassifier, PartlyLabeled, SemiSupervisedSVM
from neverworse.methods.svm._newton import Solution
from neverworse.projection import EPS, Weights

COUNT_TOLERANCE = 1e-9  # up to which a share times a number of rows is a whole number
TIE_TOLERANCE = 1e-12  # of equal scores, relative to the largest one
COARSE_TOL = 1e-6  # tolerance of all SVMs but the last
FIRST_WEIGHT, GROWTH = 1e-5, 1.5  # of the unlabeled rows in "switching"
# The temperature of "annealing" starts at this multiple of the weight of the unlabeled rows, and
# falls by this factor, until the mean entropy of soft labels is small, or for these many stages.
FIRST_TEMPERATURE, COOLING, MAX_HARD_ENTROPY, MAX_STAGES = 10.0, 1.5, 1e-6, 50
# A stage ends when soft labels move less than this (in mean relative entropy), or have moved often.
MIN_CHANGE, MAX_MOVES = 1e-6, 100


@documented_like(L2SVMClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class TransductiveSVMClassifier(SemiSupervisedSVM):
    r"""Transductive support vector classifier: a wide margin on labeled and unlabeled rows.

    Minimises, over the weights *and* the labels :math:`y_j = \pm 1` of the unlabeled rows, of which
    a given share is positive,

    .. math:: \frac{\alpha}{2} \lVert w \rVert^2
              + \frac{1}{2 S} \sum_{i\ \text{labeled}} s_i \max(0, 1 - y_i f(x_i))^2
              + \frac{v}{2 S_u} \sum_{j\ \text{unlabeled}} s_j \max(0, 1 - y_j f(x_j))^2

    with :math:`f(x) = x \cdot w + b`, and targets -1 and +1 for the classes in sorted order. S and
    :math:`S_u` are the sums of the weights s of the labeled and of the unlabeled rows with
    ``scaling="mean"``, and 1 with ``scaling="sum"``. If the classes are not clusters, it may
    be much worse than its supervised counterpart. One of many local minima is found by

    - "switching", as in SVMlin: the supervised SVM labels the unlabeled rows. Then their weight v
      grows from 1e-5 by factors of 1.5. At each weight, the SVM is trained and pairs of a positive
      and a negative row within the margin exchange labels, as long as this lowers the loss.
    - "annealing": labels are probabilities :math:`p_j`, and :math:`\frac{T}{2 n_u} \sum_j H(p_j)`
      is subtracted from the objective (without :math:`n_u` for sums), where H is the entropy. T
      falls from 10 v by factors of 1.5, until the labels are hard; these are switched as above.

    Parameters
    ----------
    alpha : float, default=0.1
        Penalty of the weights.
    scaling : {"mean", "sum"}, default="mean"
        Whether the losses are means over rows, or sums.
    {fit_intercept, penalise_intercept, tol}
    max_iter : int, default=10000
        Maximum number of Newton steps, in total.
    {missing_label, verbose}
    unlabeled_weight : float, default=1.0
        The weight v. With 1.0 and means, they count as much as the labeled rows together.
    positive_fraction : float or None, default=None
        The share of unlabeled rows of the second class; each row counts once, whatever its weight.
        None: the share among the labeled rows.
    positive_rounding : {"score", "svmlin"}, default="score"
        If the share r is not a whole number of the :math:`n_u` unlabeled rows, "score" labels one
        row by its supervised score. "svmlin", as in SVMlin: rows with a larger score than the
        :math:`\lfloor (1 - r) n_u \rfloor`-th smallest are positive.
    method : {"switching", "annealing"}, default="switching"
        How the labels are found.
    max_switches : int, default=10000
        Maximum number of pairs that exchange their labels before the SVM is trained again.

    Attributes
    ----------
    {classes_, coef_, intercept_}
    labels_ : array of shape (n_unlabeled,)
        Classes of the unlabeled rows, with the given share; predictions for them may differ.
    objective_ : float
        The local minimum.
    history_ : array of shape (n_trainings, 2)
        Weight v (or temperature) and objective after each training; the latter never increases
        while the former stays.
    n_switches_ : int
        Pairs of rows that exchanged their labels.
    supervised_ : L2SVMClassifier
        The supervised baseline, with the same parameters.
    n_iter_ : int
        Number of Newton steps, in total.
    converged_ : bool
        Whether the last SVM has converged, and no switch of labels improves it.
    {n_features_in_, feature_names_in_}

    References
    ----------
    Joachims, International Conference on Machine Learning (1999), 200-209. Sindhwani and Keerthi,
    ACM SIGIR (2006), 477-484. Sindhwani, Keerthi and Chapelle, International Conference on Machine
    Learning (2006), 841-848.

    Examples
    --------
    >>> from neverworse.methods import TransductiveSVMClassifier
    >>> X = [[0.0], [3.0], [0.2], [0.4], [0.6], [2.7], [2.9], [3.2]]
    >>> y = [0, 1, -1, -1, -1, -1, -1, -1]
    >>> clf = TransductiveSVMClassifier().fit(X, y)
    >>> clf.labels_
    array([0, 0, 0, 1, 1, 1])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **CONSTRAINTS,
        "method": [StrOptions({"switching", "annealing"})],
    }

    max_iter: int = 10_000
    positive_rounding: str = "score"
    method: str = "switching"
    max_switches: int = 10_000

    def _fit_partly(self, problem: PartlyLabeled, share: float) -> tuple[Weights, Mask]:
        weight, scores = float(self.unlabeled_weight), problem.scores(problem.start)
        if self.positive_rounding == "svmlin":
            positive = label_like_svmlin(scores, share)
            share = float(positive.mean())
        else:
            positive = label_shares(scores, share, share)
        search = Search(problem, problem.start, positive, int(self.max_switches))
        if self.method == "switching":
            v = FIRST_WEIGHT
            while v < weight:
                search.switch(v, stage=v, min_tol=COARSE_TOL)
                v *= GROWTH
        else:
            per_row = 1.0 / len(scores) if self.scaling == "mean" else 1.0
            search.anneal(weight, share, per_row)
            search.positive = label_shares(problem.scores(search.solution), share, share)
        search.switch(weight, stage=weight if self.method == "switching" else 0.0)
        found, budget = search.solution, problem.budget
        self.history_ = np.array(search.history).reshape(-1, 2)
        self.n_switches_ = search.n_switches
        self.objective_ = problem.value(found, search.positive, weight)
        self._set_end(found.converged and not budget.exhausted, budget.n_iter, budget)
        return problem.labeled.design.weights(found.parameters), search.positive

    def _keep_supervised(self) -> None:
        self.history_ = np.empty((0, 2))
        self.n_switches_ = 0
        self.objective_ = self.supervised_.objective_


def label_shares(scores: Vector, low: float, high: float) -> Mask:
    """Return which rows are positive: those with a positive score, as far as shares allow it."""
    n = len(scores)
    # Rounded outwards: if no whole number of rows fits, the score decides.
    fewest = int(np.floor(low * n + COUNT_TOLERANCE))
    most = int(np.ceil(high * n - COUNT_TOLERANCE))
    wanted = int(np.count_nonzero(scores > 0.0))
    n_positive = min(max(wanted, fewest), most)
    positive = np.zeros(n, bool)
    if n_positive:
        positive[np.argpartition(scores, n - n_positive)[n - n_positive :]] = True
    return positive


def label_like_svmlin(scores: Vector, share: float) -> Mask:
    """Return which rows are positive: those above the ⌊(1 - share) n⌋-th smallest score.

    As in SVMlin, ties with that score are negative, and (1 - 0.9) · 10 is rounded down to 0.
    """
    n_negative = int((1.0 - share) * len(scores))
    if not n_negative:
        return np.ones(len(scores), bool)
    threshold = np.partition(scores, n_negative - 1)[n_negative - 1]
    return np.asarray(scores > threshold + TIE_TOLERANCE * np.abs(scores).max())


def share_probabilities(costs: Vector, share: float, temperature: float) -> Vector:
    """Return the p with the mean `share` that minimise p·c less the temperature times the entropy.

    The cost c is that of a positive label less that of a negative one.
    """
    if share <= 0.0 or share >= 1.0:
        return np.full(len(costs), float(share >= 1.0))
    scaled = costs / temperature

    def excess(threshold: float) -> float:
        return float(np.mean(expit(threshold - scaled))) - share

    # At the costs of the extreme rows, all probabilities are on one side of the share.
    middle = float(np.log(share / (1.0 - share)))
    beyond = 1.0 + 8.0 * EPS * float(np.abs(scaled).max())
    low, high = scaled.min() + middle - beyond, scaled.max() + middle + beyond
    return np.asarray(expit(brentq(excess, low, high, maxiter=1000) - scaled))


@dataclass
class Search:
    """Trains SVMs and labels the unlabeled rows in turns, from the supervised SVM on."""

    problem: PartlyLabeled
    solution: Solution  # the last one
    positive: Mask  # the labels of the unlabeled rows
    max_switches: int
    history: list[tuple[float, float]] = field(default_factory=list)  # stage and objective of each
    n_switches: int = 0  # pairs of rows that exchanged their labels

    def switch(self, weight: float, stage: float, min_tol: float = 0.0) -> None:
        """Train and switch labels at one weight of the unlabeled rows until no pair gains by it."""
        problem, lowest = self.problem, np.inf
        while not problem.budget.exhausted:
            self.solution = problem.solve(self.positive, weight, self.solution, min_tol)
            value = self.solution.value
            self.history.append((stage, value))
            if not value < lowest:  # rounding errors may see a gain where there is none
                break
            up, down = self._pairs()
            if not len(up):
                break
            lowest = value
            self.positive = self.positive.copy()
            self.positive[up], self.positive[down] = True, False
            self.n_switches += len(up)
        problem.budget.report(f"weight {weight:.2g} of unlabeled rows", len(problem.unlabeled))

    def _pairs(self) -> tuple[Indices, Indices]:
        """Return negative and positive rows within the margin whose k-th pairs gain by a switch."""
        scores = self.problem.scores(self.solution)
        gain = self.problem.extra_cost(scores)
        down = _largest(gain, self.positive & (scores < 1.0), self.max_switches)
        up = _largest(-gain, ~self.positive & (scores > -1.0), self.max_switches)
        n = min(len(up), len(down))
        n = int(np.count_nonzero(gain[down[:n]] > gain[up[:n]]))  # the differences decrease
        return up[:n], down[:n]

    def anneal(self, weight: float, share: float, per_row: float) -> None:
        """Lower the temperature, minimising at each the objective less the entropy of soft labels.

        Weights and soft labels are minimised over in turns. The factor `per_row` makes the entropy
        a sum or a mean over rows, like the loss. The hard labels stay as they are.
        """
        problem, temperature = self.problem, FIRST_TEMPERATURE * weight
        soft = np.full(len(problem.unlabeled), share)
        for _ in range(MAX_STAGES):
            for _ in range(MAX_MOVES):
                self.solution = problem.solve(soft, weight, self.solution, COARSE_TOL)
                free = self.solution.value - 0.5 * temperature * per_row * _entropy(soft).sum()
                self.history.append((temperature, float(free)))
                if problem.budget.exhausted:
                    return
                cost = weight * problem.extra_cost(problem.scores(self.solution))
                last, soft = soft, share_probabilities(2.0 * cost / per_row, share, temperature)
                # The mean relative entropy is infinite where `last` excludes what `soft` allows.
                if np.mean(rel_entr(soft, last) + rel_entr(1.0 - soft, 1.0 - last)) <= MIN_CHANGE:
                    break
            problem.budget.report(f"temperature {temperature:.2g}", len(soft))
            if _entropy(soft).mean() <= MAX_HARD_ENTROPY:
                return
            temperature /= COOLING


def _largest(values: Vector, allowed: Mask, most: int) -> Indices:
    """Return where the largest allowed values are, the largest first."""
    where = np.flatnonzero(allowed)
    if len(where) > most:
        where = where[np.argpartition(-values[where], most)[:most]]
    return where[np.argsort(-values[where], kind="stable")]


def _entropy(p: Vector) -> Vector:
    return entr(p) + entr(1.0 - p)
