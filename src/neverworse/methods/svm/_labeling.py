"""Labels of the unlabeled rows for a transductive machine: by their shares, switched, annealed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr, expit, rel_entr

from neverworse._typing import Indices, Mask, Vector
from neverworse.methods.svm._newton import Solution
from neverworse.methods.svm._semi_supervised import ROUGH, PartlyLabeled
from neverworse.projection.coordinates.gram import EPS

# A share times a number of rows is a whole number but for rounding errors.
WHOLE = 1e-9
# Scores of equal rows are equal but for rounding errors: so much of the largest score, at most.
TIED = 1e-12
# The weight of the unlabeled rows starts here, and grows by this factor.
FIRST_WEIGHT, GROWTH = 1e-5, 1.5
# The temperature starts at this multiple of the weight of the unlabeled rows, and falls by a
# factor, until soft labels are as good as hard (in mean entropy) or for so many stages.
FIRST_TEMPERATURE, COOLING, MOST_STAGES = 10.0, 1.5, 50
HARD = 1e-6
# A stage ends when soft labels move less than this (in mean relative entropy), or so many times.
STILL, MOST_MOVES = 1e-6, 100


def label_shares(scores: Vector, low: float, high: float) -> Mask:
    """Return which rows are positive: those with a positive score, as far as shares allow it.

    Where the smallest and largest share of positive rows leave no whole number of rows, the row in
    question has the label of its score. If the loss of a positive label less that of a negative one
    decreases with the score, and is zero where that is, no other labels with such a share have a
    smaller loss.
    """
    n = len(scores)
    fewest = int(np.floor(low * n + WHOLE))
    most = int(np.ceil(high * n - WHOLE))
    wanted = int(np.count_nonzero(scores > 0.0))
    n_positive = min(max(wanted, fewest), most)
    positive = np.zeros(n, bool)
    if n_positive:
        positive[np.argpartition(scores, n - n_positive)[n - n_positive :]] = True
    return positive


def label_like_svmlin(scores: Vector, share: float) -> Mask:
    """Return which rows are positive: those above the ⌊(1 - share) n⌋-th smallest score.

    As in SVMlin: rows with the same score as that one are negative, so that there may be fewer
    positive rows than the share says; and the number is rounded down after it was computed in
    floating point, where (1 - 0.9) · 10 is less than 1. If it is 0, all rows are positive.
    """
    n_negative = int((1.0 - share) * len(scores))
    if not n_negative:
        return np.ones(len(scores), bool)
    threshold = np.partition(scores, n_negative - 1)[n_negative - 1]
    return np.asarray(scores > threshold + TIED * np.abs(scores).max())


def share_probabilities(costs: Vector, share: float, temperature: float) -> Vector:
    r"""Return the probabilities p of being positive that balance cost and entropy.

    They minimise :math:`\sum_j p_j c_j + T \sum_j p_j \log p_j + (1 - p_j) \log(1 - p_j)` among
    those with the mean `share`. The cost c is that of a positive label less that of a negative one.
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
class Run:
    """How a transductive machine was trained, and where that has led."""

    solution: Solution
    positive: Mask  # labels of the unlabeled rows
    history: list[tuple[float, float]] = field(default_factory=list)  # after each training
    n_switches: int = 0  # pairs of rows that exchanged their labels


def growing_weights(last: float) -> Iterator[float]:
    """Return the weights of the unlabeled rows, from almost nothing to the last one."""
    weight = FIRST_WEIGHT
    while weight < last:
        yield weight
        weight *= GROWTH
    yield last


def switch(
    problem: PartlyLabeled, run: Run, stages: Sequence[tuple[float, float]], most: int
) -> None:
    """Train and switch labels in stages of growing weight, until no pair gains by a switch.

    Each stage has a number under which it is recorded, and the weight of the unlabeled rows. At
    most `most` pairs switch at once. The run is changed to where it ends.
    """
    for name, weight in stages:
        lowest, rough = np.inf, ROUGH if weight < stages[-1][1] else 0.0
        while not problem.budget.exhausted:
            labels = run.positive.astype(np.float64)
            run.solution = problem.solve(labels, weight, run.solution, rough)
            run.history.append((name, run.solution.value))
            # Rounding errors may see a gain where there is none.
            if not run.solution.value < lowest:
                break
            lowest = run.solution.value
            up, down = _pairs(problem, problem.scores(run.solution), run.positive, most)
            if not len(up):
                break
            run.positive = run.positive.copy()
            run.positive[up], run.positive[down] = True, False
            run.n_switches += len(up)
        problem.budget.report(f"weight {weight:.2g} of unlabeled rows", len(problem.unlabeled))


def _pairs(
    problem: PartlyLabeled, scores: Vector, positive: Mask, most: int
) -> tuple[Indices, Indices]:
    """Return negative and positive rows that gain when the k-th of each switch, for all k.

    Both must be within the margin of their label: the others cost nothing as they are.
    """
    gain = problem.preference(scores)
    down = _largest(gain, positive & (scores < 1.0), most)
    up = _largest(-gain, ~positive & (scores > -1.0), most)
    n = min(len(up), len(down))
    both = gain[down[:n]] - gain[up[:n]]  # decreases
    n = int(np.count_nonzero(both > 0.0))
    return up[:n], down[:n]


def _largest(values: Vector, allowed: Mask, most: int) -> Indices:
    """Return where the largest allowed values are, the largest first."""
    where = np.flatnonzero(allowed)
    if len(where) > most:
        where = where[np.argpartition(-values[where], most)[:most]]
    return where[np.argsort(-values[where], kind="stable")]


def anneal(problem: PartlyLabeled, run: Run, share: float, weight: float, per_row: float) -> None:
    r"""Lower the temperature T, minimising at each the objective less the entropy of soft labels.

    .. math:: J(w, p) - \frac{T e}{2} \sum_j H(p_j), \qquad \frac1n \sum_j p_j = \text{share}

    Weights and soft labels are minimised over in turns. The factor e, `per_row`, makes the entropy
    a sum or a mean over rows, like the loss. The run is changed to where it ends, but its labels
    are not touched.
    """
    soft = np.full(len(problem.unlabeled), share)
    temperature = FIRST_TEMPERATURE * weight
    for _ in range(MOST_STAGES):
        for _ in range(MOST_MOVES):
            run.solution = problem.solve(soft, weight, run.solution, ROUGH)
            free = run.solution.value - 0.5 * temperature * per_row * _entropy(soft).sum()
            run.history.append((temperature, float(free)))
            if problem.budget.exhausted:
                return
            cost = weight * problem.preference(problem.scores(run.solution))
            last, soft = soft, share_probabilities(2.0 * cost / per_row, share, temperature)
            # The mean relative entropy is infinite where the last labels exclude what these allow.
            if np.mean(rel_entr(soft, last) + rel_entr(1.0 - soft, 1.0 - last)) <= STILL:
                break
        problem.budget.report(f"temperature {temperature:.2g}", len(soft))
        if _entropy(soft).mean() <= HARD:
            return
        temperature /= COOLING


def _entropy(p: Vector) -> Vector:
    entropy: Vector = entr(p) + entr(1.0 - p)
    return entropy
