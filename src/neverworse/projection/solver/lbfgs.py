"""The slow reference: L-BFGS-B on the soft labels."""

from __future__ import annotations

import numpy as np
from scipy import optimize

from neverworse._typing import Vector
from neverworse.projection.label_sets import Box
from neverworse.projection.solver.budget import Budget
from neverworse.projection.solver.hinges import Hinges
from neverworse.projection.solver.metric import half_square
from neverworse.projection.solver.newton import DualSolution, duality_gap


def minimise_lbfgs(
    hinges: Hinges, linear: Vector, *, tol: float, floor: float, budget: Budget
) -> DualSolution:
    """Minimise ½‖Σ s_j q_j k_j - l‖² over soft labels in [0, 1] by projected gradients.

    This is the gradient descent that Krijthe and Loog describe, started as they do from a half for
    every soft label, and here run on until the duality gap is closed or no progress is made.
    """
    s = hinges.weights
    best = DualSolution(np.empty(0), np.full(len(s), 0.5), np.inf, np.inf)

    def value_and_gradient(q: Vector) -> tuple[float, Vector]:
        nonlocal best
        budget.spend()
        z = hinges.adjoint(s * q) - linear
        t = hinges.scores(z)
        value = half_square(z, None)
        solution = DualSolution(z, q.copy(), duality_gap(t, q, s, Box()), value)
        if solution.gap < best.gap:
            best = solution
        return value, s * t

    def stop(_: Vector) -> None:
        if budget.exhausted or best.is_optimal(tol, floor):
            raise StopIteration

    gap = np.inf
    while True:  # its line search may give up early; another start from there may not
        optimize.minimize(
            value_and_gradient,
            best.q,
            jac=True,
            method="L-BFGS-B",
            bounds=optimize.Bounds(0.0, 1.0),
            callback=stop,
            options={"maxiter": 10**6, "maxfun": 10**7, "ftol": 0.0, "gtol": 0.0, "maxcor": 20},
        )
        if budget.exhausted or best.is_optimal(tol, floor) or best.gap >= 0.9 * gap:
            return best
        gap = best.gap
