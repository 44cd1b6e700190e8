"""The mathematics: least squares, constraint set, dual solver, certificate.

Knows arrays and rows, knows no scikit-learn.
"""

from neverworse.projection._assumptions import Assumptions
from neverworse.projection._budget import Observer, Progress
from neverworse.projection._certificate import Certificate
from neverworse.projection._leave_one_out import leave_one_out
from neverworse.projection._moments import NonFiniteError
from neverworse.projection._project import ProjectionResult, project
from neverworse.projection._shapes import Box, Simplex
from neverworse.projection._supervised import solve_least_squares
from neverworse.projection._totals import Totals
from neverworse.projection._training import Labels, TrainingRows
from neverworse.projection._weights import Weights

__all__ = [
    "Assumptions",
    "Box",
    "Certificate",
    "Labels",
    "NonFiniteError",
    "Observer",
    "Progress",
    "ProjectionResult",
    "Simplex",
    "Totals",
    "TrainingRows",
    "Weights",
    "leave_one_out",
    "project",
    "solve_least_squares",
]
