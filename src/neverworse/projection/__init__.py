"""The mathematics: least squares, constraint set, dual solver, certificate.

Knows arrays and rows, knows no scikit-learn.
"""

from neverworse.projection._certificate import Certificate
from neverworse.projection._moments import NonFiniteError
from neverworse.projection._project import ProjectionResult, TrainingRows, project
from neverworse.projection._supervised import solve_least_squares
from neverworse.projection._weights import Weights

__all__ = [
    "Certificate",
    "NonFiniteError",
    "ProjectionResult",
    "TrainingRows",
    "Weights",
    "project",
    "solve_least_squares",
]
