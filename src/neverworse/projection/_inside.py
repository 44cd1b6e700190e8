"""Look for soft labels that reproduce the supervised weights.

If there are any, the supervised solution lies in the constraint set and nothing can be improved.
Of all soft labels, those nearest to the supervised scores g have the form q_j = clip(g_j - k_j·a),
so they are found among the vectors a: a smooth system of as many equations as unknowns,

    ρ(a) = Σ s_j clip(g_j - k_j·a) k_j - l = 0.

Newton's method on a sample gives a start and a derivative; Broyden's on all rows, at one pass for
each step, does the rest.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from neverworse._typing import Matrix, Vector
from neverworse.projection._budget import Budget
from neverworse.projection._hinges import LoadedHinges, StreamedHinges
from neverworse.projection._newton import DualSolution, duality_gap

MOST_STEPS = 30
SLOW = 0.5  # a step that leaves more of the residual than this is the last


def reproduce_supervised(
    hinges: StreamedHinges,
    linear: Vector,
    scores: Vector,
    sample: LoadedHinges,
    sample_scores: Vector,
    *,
    floor: float,
    budget: Budget,
) -> DualSolution | None:
    """Return soft labels with ½‖ρ‖² at most `floor`, or None if they are not found.

    Parameters
    ----------
    hinges : StreamedHinges
        All rows.
    linear : array of shape (rank,)
        The vector l.
    scores : array of shape (n_rows,)
        Supervised scores g.
    sample, sample_scores
        Some of the rows, with weights that make them stand for all, and their scores.
    floor : float
        What counts as zero.
    budget : Budget
    """
    start = _solve_sample(sample, linear, sample_scores)
    if start is None:
        return None
    a, inverse = start
    step, last = np.zeros_like(a), np.full_like(a, np.inf)
    for _ in range(MOST_STEPS):
        if not budget.spend():
            return None
        t, pulled = hinges.scores_and_pull(a, lambda t, rows: np.clip(scores[rows] - t, 0.0, 1.0))
        residual = pulled - linear
        size = float(np.linalg.norm(residual))
        if 0.5 * size**2 <= floor:
            q = np.clip(scores - t, 0.0, 1.0)
            return DualSolution(
                residual, q, duality_gap(hinges.scores(residual), q, hinges.weights)
            )
        if size > SLOW * float(np.linalg.norm(last)):
            return None
        if np.isfinite(last).all():
            _broyden_update(inverse, step, last - residual)
        step = inverse @ residual
        a, last = a + step, residual
    return None


def _solve_sample(
    sample: LoadedHinges, linear: Vector, scores: Vector
) -> tuple[Vector, Matrix] | None:
    """Return a root of ρ on the sample, roughly, and the inverse of its derivative there."""
    s, a, last = sample.weights, np.zeros(sample.rank), np.inf
    for _ in range(MOST_STEPS):
        soft = np.clip(scores - sample.scores(a), 0.0, 1.0)
        residual = sample.pull(s * soft) - linear
        size = float(np.linalg.norm(residual))
        inner = np.flatnonzero((soft > 0.0) & (soft < 1.0))
        rows = sample.take(inner) * np.sqrt(s[inner])[:, None]
        try:
            factor = linalg.cho_factor(rows.T @ rows, check_finite=False)
        except linalg.LinAlgError:  # too few rows between 0 and 1
            return None
        if size <= 1e-3 * float(np.linalg.norm(linear)) or size > SLOW * last:
            return a, linalg.cho_solve(factor, np.eye(sample.rank), check_finite=False)
        a, last = a + linalg.cho_solve(factor, residual, check_finite=False), size
    return None


def _broyden_update(inverse: Matrix, step: Vector, change: Vector) -> None:
    """Make `inverse` map the change of the residual to the step that caused it."""
    mapped = inverse @ change
    curvature = float(step @ mapped)
    if curvature != 0.0:
        inverse += np.outer(step - mapped, step @ inverse) / curvature
