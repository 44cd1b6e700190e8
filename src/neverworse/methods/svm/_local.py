"""The objective near some weights, and who solves for its minimum there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from neverworse._typing import Indices, Vector
from neverworse.methods.svm._design import Design
from neverworse.methods.svm._hinge import Hinges, Margins


@dataclass(frozen=True)
class LocalModel:
    """The quadratic function that the objective is, as long as no row crosses its margin.

    Attributes
    ----------
    parameters : array of shape (n_parameters,)
        Where this is.
    penalty : array of shape (n_parameters,)
    slope, curvature : arrays of shape (n_rows,)
        First and second derivative of the loss by each score.
    gradient : array of shape (n_parameters,)
        First derivative of the objective.
    """

    parameters: Vector
    penalty: Vector
    slope: Vector
    curvature: Vector
    gradient: Vector

    @classmethod
    def at(cls, parameters: Vector, margins: Margins, design: Design, hinges: Hinges) -> LocalModel:
        """Return the model of the objective at some parameters and their margins."""
        slope, curvature = hinges.slope(margins), hinges.curvature(margins)
        gradient = design.adjoint(slope) + design.penalty * parameters
        return cls(parameters, design.penalty, slope, curvature, gradient)

    @cached_property
    def active(self) -> Indices:
        """The rows within their margin."""
        return np.flatnonzero(self.curvature > 0.0)


class System(Protocol):
    """Solves for Newton steps, and remembers what helps with the next one.

    Columns whose scales differ by many orders of magnitude are brought to one scale, which changes
    the way to the solution and not the solution.
    """

    def step(self, model: LocalModel) -> Vector:
        """Return the way to the minimum of the model."""

    def fresh(self) -> System:
        """Return the system as it was in the beginning, when all rows had curvature."""
