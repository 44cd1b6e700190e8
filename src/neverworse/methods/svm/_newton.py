"""The finite Newton method for the squared hinge loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse._typing import Vector
from neverworse.methods.svm._design import Design
from neverworse.methods.svm._hinge import Hinges, Margins
from neverworse.methods.svm._local import LocalModel, System
from neverworse.projection.coordinates.gram import EPS
from neverworse.projection.solver.budget import Budget
from neverworse.rows._threads import single_threaded_blas

# Where rounding errors end the descent, it has converged if so little was left to gain.
NOISE = 1e-8
# A step may be so short that it lowers the objective by less than a rounding error, and still bring
# a row into the margin that makes room for the next one. So many such steps are taken in a row.
MOST_IDLE = 30
# The line search stops when so much of the slope is gone.
FLAT = 1e-6


@dataclass(frozen=True)
class Solution:
    """Where the solver ended.

    Attributes
    ----------
    parameters : array
        See `Design`.
    margins : Margins
        Of all rows.
    value : float
        Of the objective.
    converged : bool
    """

    parameters: Vector
    margins: Margins
    value: float
    converged: bool = False


@single_threaded_blas()
def minimise(
    design: Design,
    hinges: Hinges,
    system: System,
    budget: Budget,
    tol: float,
    start: Solution | None = None,
    stage: str | None = None,
) -> Solution:
    r"""Minimise the loss of the hinges plus the penalty of the design.

    On each set of rows within the margin the objective is quadratic. A step goes towards its
    minimum, as far as the objective decreases; it is the last one if the set stays the same. This
    happens after a finite number of steps, and a handful in practice.

    Parameters
    ----------
    design : Design
    hinges : Hinges
    system : System
        May come from an earlier call for the same design.
    budget : Budget
        Newton steps are taken from it.
    tol : float
        Stop when a step promises less than this fraction of the objective.
    start : Solution, optional
        Where to start, perhaps the solution for other hinges; zeros if not given.
    stage : str, optional
        What a step is called when it is reported; no reports if not given.

    References
    ----------
    S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast solution of large scale
    linear SVMs", Journal of Machine Learning Research 6 (2005), 341-361.
    """
    n_rows = design.rows.n_rows
    if start is None:
        parameters, margins = np.zeros(len(design.penalty)), Margins.of(np.zeros(n_rows))
    else:
        parameters, margins = start.parameters, start.margins
    value = objective(design, hinges, parameters, margins)
    idle = 0
    while True:
        model = LocalModel.at(parameters, margins, design, hinges)
        step = system.step(model)
        promise = -0.5 * float(model.gradient @ step)
        if stage is not None:
            budget.report(stage, n_rows, promise, value)
        if abs(promise) <= tol * value:
            return Solution(parameters, margins, value, True)
        if not budget.spend():
            return Solution(parameters, margins, value)
        change = design.scores(step)
        length = _length(design, hinges, parameters, margins, step, change)
        moved = parameters + length * step, margins.moved(length, change)
        lower = objective(design, hinges, *moved)
        idle = 0 if lower < value else idle + 1
        if idle > MOST_IDLE or not lower <= value * (1.0 + 8.0 * EPS):
            return Solution(parameters, margins, value, abs(promise) <= NOISE * value)
        (parameters, margins), value = moved, lower


def objective(design: Design, hinges: Hinges, parameters: Vector, margins: Margins) -> float:
    """Return the loss of the margins plus the penalty of the parameters."""
    penalty = 0.5 * float(np.vdot(design.penalty * parameters, parameters))
    return penalty + hinges.value(margins)


def _length(
    design: Design,
    hinges: Hinges,
    parameters: Vector,
    margins: Margins,
    step: Vector,
    change: Vector,
) -> float:
    """Return how far to go: to the zero of the derivative, which is piecewise linear.

    Newton's method finds it in finitely many iterations, inside a bracket that shrinks.
    """
    penalised = design.penalty * step
    constant, linear = float(penalised @ parameters), float(penalised @ step)

    def derivatives(length: float) -> tuple[float, float]:
        at = margins.moved(length, change)
        first = constant + length * linear + float(np.vdot(hinges.slope(at), change))
        return first, linear + float(np.vdot(hinges.curvature(at) * change, change))

    steepest = abs(constant + float(np.vdot(hinges.slope(margins), change)))
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(100):
        first, second = derivatives(length)
        if abs(first) <= FLAT * steepest:
            break
        low, high = (length, high) if first < 0.0 else (low, length)
        length = length - first / second if second > 0.0 else np.inf
        if not low < length < high:
            length = 0.5 * (low + high) if high < np.inf else 2.0 * low
    return length
