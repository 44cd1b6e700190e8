"""Project through the dual where there are too many columns for a matrix of columns by columns."""

from __future__ import annotations

import numpy as np

from neverworse._typing import Vector
from neverworse.projection.coordinates.matrix_free import WeightSpace
from neverworse.projection.problem import Projection
from neverworse.projection.solver.budget import Budget
from neverworse.projection.solver.hinges import StreamedHinges
from neverworse.projection.solver.label_descent import LabelDescent
from neverworse.projection.solver.metric import MatrixFree
from neverworse.projection.solver.newton import EXACT, DualSolution, minimise, paired
from neverworse.projection.solver.solution import Solution

FIRST_SIGMA = 10.0  # of σ where systems are solved iteratively: a larger one takes more steps
FINER = 0.5  # gap of the soft labels, as a share of the gap that is wanted in the end


def solve_matrix_free(
    problem: Projection, space: WeightSpace, tol: float, budget: Budget
) -> Solution:
    """Minimise by projected gradients, or by Newton's method with conjugate gradients.

    With a penalty, and totals that are not restricted, the former leave nothing to do but to check.
    """
    hinges, metric = StreamedHinges(space, problem.weights), MatrixFree(space, budget)
    z: Vector = np.zeros_like(problem.linear)
    q = problem.shape.nearest(problem.start.at())
    if space.alpha > 0.0 and problem.totals is None:
        descent = LabelDescent(problem, space, budget)
        if descent.applies:
            z, q = descent.run(q, FINER * tol)
            solution = _checked(problem, hinges, metric, z, q, tol)
            budget.report("labels", len(problem.weights), solution.gap, solution.value)
            if solution.is_optimal(tol, problem.floor) or budget.exhausted:
                return _of_unlabeled(problem, solution)
            z, q = solution.z, solution.q
    solution = minimise(
        hinges,
        problem.linear,
        z,
        q,
        shape=problem.shape,
        totals=problem.totals,
        tol=tol,
        floor=problem.floor,
        budget=budget,
        sigma=FIRST_SIGMA * max(1.0, len(problem.linear) / 2 if problem.linear.ndim > 1 else 1.0),
        metric=metric,
    )
    return _of_unlabeled(problem, solution)


def _of_unlabeled(problem: Projection, solution: DualSolution) -> Solution:
    q = solution.q[..., problem.start.labels.unlabeled]
    return Solution(solution.z, q, solution.gap, solution.value)


def _checked(
    problem: Projection,
    hinges: StreamedHinges,
    metric: MatrixFree,
    z: Vector,
    q: Vector,
    tol: float,
) -> DualSolution:
    """Return soft labels with their exact point, near `z`, and gap."""
    pulled = hinges.pull(problem.weights * q) - problem.linear
    error = EXACT * max(tol * metric.half_square(z, pulled, None), problem.floor)
    return paired(hinges, problem.shape, None, z, q, pulled, metric, error)
