"""The quadratic part of the dual, as the solver sees it.

In whitened coordinates it is the identity. In others it is a matrix M, which turns points z into
their gradient Mz; a solver then has to tell points from gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from neverworse._typing import Vector
from neverworse.projection.coordinates.conjugate_gradients import conjugate_gradients
from neverworse.projection.coordinates.matrix_free import WeightSpace
from neverworse.projection.label_sets import LabelSet, curvature_of
from neverworse.projection.solver.budget import Budget
from neverworse.projection.solver.hinges import Hinges
from neverworse.projection.solver.newton_system import newton_step
from neverworse.projection.totals import Totals

ROUGH = 0.01  # a Newton matrix may be estimated as long as steps need not be more accurate
FORCING = (0.1, 0.5)  # relative accuracy of iterated Newton steps: finest, and coarsest
SMALLEST = 0.01  # of the squared length of a gradient that its inverse image has at least, about


@dataclass(frozen=True)
class StepRequest:
    """What a Newton step is made of.

    Attributes
    ----------
    hinges, shape
    soft : array
        The nearest labels.
    curve : array
        Diagonal of the quadratic part (only that of the multiplier counts where M is no diagonal).
    sigma : float
    gradient : array
    accuracy : float
        Relative size of the gradient to reach in the end.
    wanted : float
        By which factor the gradient has to shrink for that.
    """

    hinges: Hinges
    shape: LabelSet
    soft: Vector
    curve: Vector
    sigma: float
    gradient: Vector
    accuracy: float
    wanted: float


class Metric(Protocol):
    """The quadratic part of the dual."""

    def matvec(self, z: Vector) -> Vector:
        """Return Mz."""

    def solve(self, p: Vector, near: Vector, error: float) -> tuple[Vector, float]:
        """Return z with Mz = p, and what its inexactness adds to the duality gap.

        Parameters
        ----------
        p : array
        near : array
            A guess.
        error : float
            How large the second may be.
        """

    def half_square(self, z: Vector, p: Vector, totals: Totals | None) -> float:
        """Return ½ z·p, where p is about Mz, without the multiplier of totals."""

    def step(self, request: StepRequest) -> Vector:
        """Return a Newton step."""


class Identity:
    """That of whitened coordinates."""

    def matvec(self, z: Vector) -> Vector:
        """See `Metric`."""
        return z

    def solve(self, p: Vector, near: Vector, error: float) -> tuple[Vector, float]:  # noqa: ARG002
        """See `Metric`."""
        return p, 0.0

    def half_square(self, z: Vector, p: Vector, totals: Totals | None) -> float:  # noqa: ARG002
        """See `Metric`; points are gradients here."""
        return half_square(p, totals)

    def step(self, request: StepRequest) -> Vector:
        """See `Metric`."""
        return newton_step(
            request.hinges,
            request.shape,
            request.soft,
            request.curve,
            request.sigma,
            request.gradient,
            rough=request.accuracy >= ROUGH,
        )


class MatrixFree:
    """That of weights: products by passes over the rows, systems by conjugate gradients.

    Parameters
    ----------
    space : WeightSpace
    budget : Budget
        Ends iterations, and is told about them.
    """

    def __init__(self, space: WeightSpace, budget: Budget) -> None:
        self._space = space
        self._budget = budget

    def matvec(self, z: Vector) -> Vector:
        """See `Metric`."""
        return self._space.matvec(z)

    def solve(self, p: Vector, near: Vector, error: float) -> tuple[Vector, float]:
        """See `Metric`."""
        solved = self._space.solve(p, error, near, self._stop)
        self._budget.n_passes += solved.n_products
        return solved.x, self._space.half_error(solved.residual)

    def half_square(self, z: Vector, p: Vector, totals: Totals | None) -> float:
        """See `Metric`; far from the solution, where z does not belong to p, by the length of p."""
        if totals is not None:
            z, p = z[..., :-1], p[..., :-1]
        return max(0.5 * float(np.vdot(z, p)), SMALLEST * half_square(p, None))

    def step(self, request: StepRequest) -> Vector:
        """See `Metric`."""
        shape, weights = request.shape, request.hinges.weights
        curvature = curvature_of(shape, request.soft, weights, request.sigma)
        finest, coarsest = FORCING
        accuracy = min(max(request.wanted, finest), coarsest)
        target = accuracy * float(np.linalg.norm(request.gradient))

        def apply(z: Vector) -> Vector:
            return self._space.curved(curvature, request.curve, z)

        def enough(residual: Vector) -> bool:
            return float(np.linalg.norm(residual)) <= target

        solved = conjugate_gradients(apply, -request.gradient, enough, stop=self._stop)
        self._budget.n_passes += solved.n_products
        self._budget.report("Newton step", len(weights))
        return solved.x

    def _stop(self) -> bool:
        return self._budget.exhausted


def half_square(z: Vector, totals: Totals | None) -> float:
    """Return ½‖z‖², without the multiplier of the totals if there is one."""
    direction = z if totals is None else z[..., :-1]
    return 0.5 * float(np.vdot(direction, direction))
