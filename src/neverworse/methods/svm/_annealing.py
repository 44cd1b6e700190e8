"""Deterministic annealing: soft labels that harden as the temperature falls."""

from __future__ import annotations

import numpy as np
from scipy.special import entr, rel_entr

from neverworse._typing import Vector
from neverworse.methods.svm._balance import share_probabilities
from neverworse.methods.svm._partly import ROUGH, PartlyLabeled
from neverworse.methods.svm._switching import Run

# The temperature starts at this multiple of the weight of the unlabeled rows, and falls by a
# factor, until soft labels are as good as hard (in mean entropy) or for so many stages.
FIRST_TEMPERATURE, COOLING, MOST_STAGES = 10.0, 1.5, 50
HARD = 1e-6
# A stage ends when soft labels move less than this (in mean relative entropy), or so many times.
STILL, MOST_MOVES = 1e-6, 100


def anneal(problem: PartlyLabeled, run: Run, share: float, weight: float, per_row: float) -> None:
    r"""Lower the temperature T, minimising at each the objective less the entropy of soft labels.

    .. math:: J(w, p) - \frac{T e}{2} \sum_j H(p_j), \qquad \frac1n \sum_j p_j = \text{share}

    Weights and soft labels are minimised over in turns.

    Parameters
    ----------
    problem : PartlyLabeled
    run : Run
        Where to start; changed to where it ends. Its labels are not touched.
    share : float
        Of positive rows.
    weight : float
        Of the unlabeled rows.
    per_row : float
        The factor e, which makes the entropy a sum or a mean over rows, like the loss.
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
            if _divergence(soft, last) <= STILL:
                break
        problem.budget.report(f"temperature {temperature:.2g}", len(soft))
        if _entropy(soft).mean() <= HARD:
            return
        temperature /= COOLING


def _entropy(p: Vector) -> Vector:
    entropy: Vector = entr(p) + entr(1.0 - p)
    return entropy


def _divergence(p: Vector, q: Vector) -> float:
    """Return the mean relative entropy, infinite where q excludes what p allows."""
    return float(np.mean(rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q)))
