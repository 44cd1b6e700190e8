"""Look for soft labels that reproduce the supervised weights.

If there are any, the supervised solution lies in the constraint set and nothing can be improved.
Of all soft labels, those nearest to the supervised scores g are the allowed ones nearest to
g_j - k_j·a, so they are found among the vectors a: a system of as many equations as unknowns,

    ρ(a) = Σ s_j nearest(g_j - k_j·a) k_j - l = 0.

Newton's method on a sample gives a start and a derivative; Broyden's on all rows, at one pass for
each step, does the rest.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from neverworse._typing import Indices, Matrix, Scalars, Vector
from neverworse.projection.label_sets import Shape
from neverworse.projection.labels import Changes, Corners, RowLabels
from neverworse.projection.problem import Projection
from neverworse.projection.solver.budget import Budget
from neverworse.projection.solver.hinges import LoadedHinges, StreamedHinges
from neverworse.projection.solver.imputed import ImputedThere
from neverworse.projection.solver.line_search import blocks
from neverworse.projection.solver.metric import half_square
from neverworse.projection.solver.newton import duality_gap, totals_gap
from neverworse.projection.solver.newton_system import newton_matrix
from neverworse.projection.solver.solution import Solution
from neverworse.projection.start import Scored, row_start
from neverworse.projection.totals import Totals
from neverworse.rows import Rows
from neverworse.rows._kept import Kept, add_pairs
from neverworse.rows._weigh import RowWeigh

MOST_STEPS = 30
SLOW = 0.5  # a step on the sample that leaves more of the residual than this is the last
STALLED = 0.9  # the same for all rows: what else could be done takes many more passes
MOST_UNKNOWNS = 2000  # a dense derivative of more is not worth while
SINGULAR = 1e-10  # of the largest diagonal element: what makes a derivative invertible


@dataclass(frozen=True)
class NearestPass:
    """What a pass at a leaves of some rows.

    Attributes
    ----------
    t : array of shape (n_rows,) or (n_classes, n_rows)
        k·a
    summed, total
        Σ s q x and Σ s q for the labels q nearest to g - t.
    """

    t: Vector
    summed: Vector
    total: Scalars


@dataclass(frozen=True)
class Settled:
    """Soft labels of some rows that were found, and their share of the gap."""

    labels: Corners
    gap: float


def reproduce_supervised(
    hinges: StreamedHinges,
    problem: Projection,
    sample: LoadedHinges,
    chosen: Indices,
    budget: Budget,
) -> Solution | None:
    """Return soft labels with ½‖ρ‖² at most what counts as zero, or None if they are not found.

    Parameters
    ----------
    hinges : StreamedHinges
        All rows.
    problem : Projection
    sample, chosen
        Some of the rows, with weights that make them stand for all, and their indices.
    budget : Budget
    """
    linear, totals = problem.linear, problem.totals
    if linear.size > MOST_UNKNOWNS:
        return None
    start = problem.start.at(chosen)
    found = _solve_sample(sample, problem.shape.at(chosen), totals, linear, start)
    if found is None:
        return None
    a, inverse = found
    step, last = np.zeros(a.size), np.full(a.size, np.inf)
    for _ in range(MOST_STEPS):
        if not budget.spend():
            return None
        budget.n_passes += 1
        direction = hinges.whitening.push(a)
        known = (problem.placed, problem.start.scored)
        near = hinges.whitening.rows.keep(
            nearest_pass, direction.coef, direction.intercept, kept=known
        )
        pulled = hinges.whitening.pull(*near.reduce(_nearest_sums, add_pairs))
        residual = _residual(pulled, linear, totals)
        size = float(np.linalg.norm(residual))
        if 0.5 * size**2 <= problem.floor:
            return _solution(hinges, problem, residual, pulled - linear, near)
        if size > STALLED * float(np.linalg.norm(last)):
            return None
        if np.isfinite(last).all():
            _broyden_update(inverse, step, last - residual.ravel())
        step, last = inverse @ residual.ravel(), residual.ravel()
        a = a + step.reshape(a.shape)
    return None


def nearest_pass(
    rows: Rows, coef: Vector, intercept: Scalars, labels: RowLabels, scored: Scored
) -> NearestPass:
    """Make a pass over some rows, with the labels nearest to g - t."""
    weigh = RowWeigh(_weighted_nearest, (labels, row_start(scored, labels)))
    t, summed, total = rows.scores_and_sum(coef, intercept, weigh)
    t[..., labels.without_hinge] = 0.0
    return NearestPass(t, summed, total)


def settle(
    rows: Rows,
    coef: Vector,
    intercept: Scalars,
    labels: RowLabels,
    scored: Scored,
    near: NearestPass,
) -> Settled:
    """Make a pass over some rows at a dual point, with the labels that were found before."""
    q, start = np.empty_like(near.t), row_start(scored, labels)
    for block in blocks(q):
        q[..., block] = _nearest(near.t[..., block], labels.shape.at(block), start.at(block))
    t = rows.scores(coef, intercept)
    t[..., labels.without_hinge] = 0.0
    n_classes = len(q) if q.ndim > 1 else 0
    return Settled(Corners(q, n_classes), duality_gap(t, q, labels.hinge, labels.shape))


def _labels_of(settled: Settled) -> Corners:
    return settled.labels


def _gap_of(settled: Settled) -> float:
    return settled.gap


def _nearest_sums(near: NearestPass) -> tuple[Vector, Scalars]:
    return near.summed, near.total


def _weighted_nearest(t: Vector, labels: RowLabels, start: Vector) -> Vector:
    return labels.hinge * _nearest(t, labels.shape, start)


def _residual(pulled: Vector, linear: Vector, totals: Totals | None) -> Vector:
    """Return ρ; totals that are allowed leave none."""
    residual = pulled - linear
    if totals is not None:
        residual[..., -1] -= totals.nearest(residual[..., -1])
    return residual


def _nearest(t: Vector, shape: Shape, start: Vector) -> Vector:
    return shape.nearest(start - t)


def _solution(
    hinges: StreamedHinges, problem: Projection, z: Vector, point: Vector, near: Kept
) -> Solution:
    totals = problem.totals
    if totals is not None:
        z[..., -1] = 0.0
    direction = hinges.whitening.push(z)
    known = (problem.placed, problem.start.scored, near)
    settled = hinges.whitening.rows.keep(settle, direction.coef, direction.intercept, kept=known)
    gap = settled.reduce(_gap_of, operator.add)
    if totals is not None:
        gap += totals_gap(totals, z[..., -1], point[..., -1])
    none = Changes.none(z)
    imputed = ImputedThere(problem.placed, settled.shed(_labels_of), _labels_of, none)
    return Solution(z, imputed, gap, half_square(z, totals))


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
        matrix.flat[:: len(matrix) + 1] += SINGULAR * float(np.diag(matrix).max(initial=0.0))
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
