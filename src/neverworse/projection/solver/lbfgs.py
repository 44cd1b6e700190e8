"""The slow reference: L-BFGS-B on the soft labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import optimize

from neverworse._budget import Budget
from neverworse._typing import Vector
from neverworse.projection.label_sets import Box
from neverworse.projection.solver.newton import DualSolution, duality_gap, half_square
from neverworse.projection.solver.problem import Projection, StreamedHinges


def solve_lbfgs(problem: Projection, tol: float, budget: Budget) -> DualSolution:
    """Minimise ½‖Σ s_j q_j k_j - l‖² over soft labels in [0, 1] by projected gradients.

    This is the gradient descent that Krijthe and Loog describe, started as they do from a half for
    every soft label, and here run on until the duality gap is closed or no progress is made.

    Parameters
    ----------
    problem : Projection
        In whitened coordinates, for labels of one number.
    tol, budget
        See `working_set.solve`.
    """
    used = np.flatnonzero(problem.weights)
    hinges = StreamedHinges(problem.coordinates, problem.weights).load(used)
    s = hinges.weights
    best = DualSolution(np.empty((1, 0)), np.full((1, len(s)), 0.5), np.inf, np.inf)

    def value_and_gradient(labels: Vector) -> tuple[float, Vector]:
        nonlocal best
        budget.spend()
        q = labels[None].copy()
        z = hinges.adjoint(s * q) - problem.linear
        t = hinges.scores(z)
        value = half_square(z, None)
        solution = DualSolution(z, q, duality_gap(t, q, s, Box()), value)
        if solution.gap < best.gap:
            best = solution
        return value, s * t[0]

    def stop(_: Vector) -> None:
        if budget.exhausted or best.is_optimal(tol, problem.floor):
            raise StopIteration

    gap = np.inf
    while True:  # its line search may give up early; another start from there may not
        optimize.minimize(
            value_and_gradient,
            best.q[0],
            jac=True,
            method="L-BFGS-B",
            bounds=optimize.Bounds(0.0, 1.0),
            callback=stop,
            options={"maxiter": 10**6, "maxfun": 10**7, "ftol": 0.0, "gtol": 0.0, "maxcor": 20},
        )
        if budget.exhausted or best.is_optimal(tol, problem.floor) or best.gap >= 0.9 * gap:
            q = np.zeros((1, len(problem.weights)))
            q[:, used] = best.q
            return replace(best, q=q[:, problem.unlabeled])
        gap = best.gap
