"""Many separators of low density, found from random labels, and a few of them that differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from neverworse._typing import AnyArray, Mask, Vector
from neverworse.methods.svm._balance import label_shares
from neverworse.methods.svm._partly import PartlyLabeled

# The search for a minimum ends when a round lowers the objective by less than this fraction of it:
# the last rounds change a row or two.
SMALL_GAIN = 1e-4
# The tolerance of the machines on the way there.
ROUGH = 1e-3


@dataclass(frozen=True)
class Separators:
    """Labels of the unlabeled rows by several machines.

    Attributes
    ----------
    labels : boolean array of shape (n_separators, n_unlabeled)
        Which rows are positive.
    objectives : array of shape (n_separators,)
        The transductive objective of each.
    """

    labels: AnyArray
    objectives: Vector

    def diverse(self, n: int, random_state: Any) -> Separators:
        """Return the best separator of each of n clusters."""
        labels, first = np.unique(self.labels, axis=0, return_index=True)
        objectives = self.objectives[first]
        if len(labels) > n:
            kmeans = KMeans(n, random_state=random_state).fit(labels.astype(np.float32))
            clusters = [np.flatnonzero(kmeans.labels_ == k) for k in range(n)]
            chosen = [members[np.argmin(objectives[members])] for members in clusters]
            labels, objectives = labels[chosen], objectives[chosen]
        order = np.argsort(objectives, kind="stable")
        return Separators(labels[order], objectives[order])


def sample_separators(
    problem: PartlyLabeled,
    shares: tuple[float, float],
    weight: float,
    n_samples: int,
    random: np.random.RandomState,
) -> Separators:
    """Find local minima of the transductive objective.

    Each starts with random labels, and trains the machine and labels the rows by their scores in
    turns; the first one starts with the labels of the supervised machine instead.

    Parameters
    ----------
    problem : PartlyLabeled
    shares : (float, float)
        Smallest and largest share of positive rows.
    weight : float
        Of the unlabeled rows.
    n_samples : int
    random : RandomState
    """
    labels, objectives = [], []
    scores = problem.scores(problem.start)
    for k in range(n_samples):
        found = _local_minimum(problem, label_shares(scores, *shares), shares, weight)
        labels.append(found[0])
        objectives.append(found[1])
        if problem.budget.exhausted:
            break
        problem.budget.report(f"separator {k + 1} of {n_samples}", len(scores))
        scores = random.normal(size=len(scores))
    return Separators(np.array(labels), np.array(objectives))


def _local_minimum(
    problem: PartlyLabeled, labels: Mask, shares: tuple[float, float], weight: float
) -> tuple[Mask, float]:
    problem = replace(problem, system=problem.system.fresh())
    solution, value = None, np.inf
    while True:
        solution = problem.solve(labels.astype(np.float64), weight, solution, ROUGH)
        better = label_shares(-problem.preference(problem.scores(solution)), *shares)
        small_gain = value - solution.value <= SMALL_GAIN * solution.value
        if small_gain or problem.budget.exhausted or np.array_equal(better, labels):
            break
        labels, value = better, solution.value
    return labels, solution.value
