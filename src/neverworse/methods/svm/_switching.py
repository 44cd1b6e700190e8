"""Label switching: pairs of unlabeled rows exchange their labels while that lowers the loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from neverworse._typing import Indices, Mask, Vector
from neverworse.methods.svm._newton import Solution
from neverworse.methods.svm._partly import ROUGH, PartlyLabeled

# The weight of the unlabeled rows starts here, and grows by this factor.
FIRST_WEIGHT, GROWTH = 1e-5, 1.5


@dataclass
class Run:
    """How a transductive machine was trained, and where that has led.

    Attributes
    ----------
    solution : Solution
    positive : boolean array
        Labels of the unlabeled rows.
    history : list of (weight or temperature, objective)
        After each training.
    n_switches : int
        Pairs of rows that exchanged their labels.
    """

    solution: Solution
    positive: Mask
    history: list[tuple[float, float]] = field(default_factory=list)
    n_switches: int = 0


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

    Parameters
    ----------
    problem : PartlyLabeled
    run : Run
        Where to start; changed to where it ends.
    stages : sequence of (name, weight)
        The growing weights of the unlabeled rows, and under which number each is recorded.
    most : int
        So many pairs may switch at once.
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
