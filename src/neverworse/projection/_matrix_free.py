"""Project through the dual where there are too many columns for a matrix of columns by columns."""

from __future__ import annotations

import numpy as np

from neverworse.projection._budget import Budget
from neverworse.projection._hinges import StreamedHinges
from neverworse.projection._metric import MatrixFree
from neverworse.projection._newton import DualSolution, minimise
from neverworse.projection._problem import Projection
from neverworse.projection._weight_space import WeightSpace

FIRST_SIGMA = 10.0  # of σ where systems are solved iteratively: a larger one takes more steps


def solve_matrix_free(
    problem: Projection, space: WeightSpace, tol: float, budget: Budget
) -> DualSolution:
    """Minimise by Newton's method on all rows, with conjugate gradients for its steps."""
    return minimise(
        StreamedHinges(space, problem.weights),
        problem.linear,
        np.zeros_like(problem.linear),
        problem.shape.nearest(problem.start.at()),
        shape=problem.shape,
        totals=problem.totals,
        tol=tol,
        floor=problem.floor,
        budget=budget,
        sigma=FIRST_SIGMA * max(1.0, len(problem.linear) / 2 if problem.linear.ndim > 1 else 1.0),
        metric=MatrixFree(space, budget),
    )
