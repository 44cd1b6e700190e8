"""Look for soft labels that reproduce the supervised weights.

If there are any, the supervised solution lies in the constraint set and nothing can be improved.
Of all soft labels, those nearest to the supervised scores g are the allowed ones nearest to
g_j - k_j·a, so they are found among the vectors a: a system of as many equations as unknowns,

    ρ(a) = Σ s_j nearest(g_j - k_j·a) k_j - l = 0.

Newton's method on a sample gives a start and a derivative; Broyden's on all rows, at one pass for
each step, does the rest.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from neverworse._typing import Indices, Matrix, Vector
from neverworse.projection._budget import Budget
from neverworse.projection._hinges import LoadedHinges, StreamedHinges
from neverworse.projection._line_search import blocks
from neverworse.projection._metric import half_square
from neverworse.projection._newton import DualSolution, duality_gap, totals_gap
from neverworse.projection._newton_step import newton_matrix
from neverworse.projection._shapes import Shape
from neverworse.projection._start import Start
from neverworse.projection._totals import Totals
from neverworse.rows._weigh import RowWeigh

MOST_STEPS = 30
SLOW = 0.5  # a step that leaves more of the residual than this is the last
MOST_UNKNOWNS = 2000  # a dense derivative of more is not worth while
SINGULAR = 1e-10  # of the largest diagonal element: what makes a derivative invertible


def reproduce_supervised(
    hinges: StreamedHinges,
    shape: Shape,
    totals: Totals | None,
    linear: Vector,
    start: Start,
    sample: LoadedHinges,
    chosen: Indices,
    *,
    floor: float,
    budget: Budget,
) -> DualSolution | None:
    """Return soft labels with ½‖ρ‖² at most `floor`, or None if they are not found.

    Parameters
    ----------
    hinges : StreamedHinges
        All rows.
    shape, totals
        Where soft labels lie, and their totals.
    linear : array of shape (rank,) or (n_classes, rank)
        The vector l.
    start : Start
        Supervised scores g, as soft labels.
    sample, chosen
        Some of the rows, with weights that make them stand for all, and their indices.
    floor : float
        What counts as zero.
    budget : Budget
    """
    if linear.size > MOST_UNKNOWNS:
        return None
    found = _solve_sample(sample, shape.at(chosen), totals, linear, start.at(chosen))
    if found is None:
        return None
    a, inverse = found
    step, last = np.zeros(a.size), np.full(a.size, np.inf)
    for _ in range(MOST_STEPS):
        if not budget.spend():
            return None
        budget.n_passes += 1
        t, pulled = hinges.scores_and_pull(a, RowWeigh(_nearest, (shape, start)))
        residual = _residual(pulled, linear, totals)
        size = float(np.linalg.norm(residual))
        if 0.5 * size**2 <= floor:
            for rows in blocks(t):  # in place: there is memory for few arrays of this length
                t[..., rows] = _nearest(t[..., rows], shape.at(rows), start.at(rows))
            return _solution(hinges, shape, totals, residual, pulled - linear, t)
        if size > SLOW * float(np.linalg.norm(last)):
            return None
        if np.isfinite(last).all():
            _broyden_update(inverse, step, last - residual.ravel())
        step, last = inverse @ residual.ravel(), residual.ravel()
        a = a + step.reshape(a.shape)
    return None


def _residual(pulled: Vector, linear: Vector, totals: Totals | None) -> Vector:
    """Return ρ; totals that are allowed leave none."""
    residual = pulled - linear
    if totals is not None:
        residual[..., -1] -= totals.nearest(residual[..., -1])
    return residual


def _nearest(t: Vector, shape: Shape, start: Vector) -> Vector:
    return shape.nearest(start - t)


def _solution(
    hinges: StreamedHinges,
    shape: Shape,
    totals: Totals | None,
    z: Vector,
    point: Vector,
    q: Vector,
) -> DualSolution:
    if totals is None:
        gap = duality_gap(hinges.scores(z), q, hinges.weights, shape)
        return DualSolution(z, q, gap, half_square(z, None))
    z[..., -1] = 0.0
    gap = duality_gap(hinges.scores(z), q, hinges.weights, shape)
    gap += totals_gap(totals, z[..., -1], point[..., -1])
    return DualSolution(z, q, gap, half_square(z, totals))


def _solve_sample(
    sample: LoadedHinges, shape: Shape, totals: Totals | None, linear: Vector, start: Vector
) -> tuple[Vector, Matrix] | None:
    """Return a root of ρ on the sample, roughly, and the inverse of its derivative there."""
    s, a, last = sample.weights, np.zeros_like(linear), np.inf
    for _ in range(MOST_STEPS):
        soft = shape.nearest(start - sample.scores(a))
        residual = _residual(sample.pull(s * soft), linear, totals)
        size = float(np.linalg.norm(residual))
        matrix = newton_matrix(sample, shape, soft)
        # Totals that are allowed, and a common shift of all classes, change nothing.
        matrix.flat[:: len(matrix) + 1] += SINGULAR * float(np.diag(matrix).max())
        try:
            factor = linalg.cho_factor(matrix, lower=True, check_finite=False)
        except linalg.LinAlgError:  # too few rows between 0 and 1
            return None
        if size <= 1e-3 * float(np.linalg.norm(linear)) or size > SLOW * last:
            return a, linalg.cho_solve(factor, np.eye(a.size), check_finite=False)
        step = linalg.cho_solve(factor, residual.ravel(), check_finite=False)
        a, last = a + step.reshape(a.shape), size
    return None


def _broyden_update(inverse: Matrix, step: Vector, change: Vector) -> None:
    """Make `inverse` map the change of the residual to the step that caused it."""
    mapped = inverse @ change
    curvature = float(step @ mapped)
    if curvature != 0.0:
        inverse += np.outer(step - mapped, step @ inverse) / curvature
