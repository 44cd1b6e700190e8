"""The mathematics: least squares, constraint set, dual solver, certificate.

Knows arrays and rows, knows no scikit-learn.
"""

from neverworse._budget import Observer, Progress
from neverworse.projection.certificate.certificate import Assumptions, Certificate
from neverworse.projection.coordinates import EPS, GramCoordinates, Weights, whiten
from neverworse.projection.coordinates.moments import NonFiniteError
from neverworse.projection.label_sets import Box, Simplex
from neverworse.projection.labels import Labels, TrainingRows
from neverworse.projection.least_squares.leave_one_out import leave_one_out
from neverworse.projection.least_squares.supervised import solve_least_squares
from neverworse.projection.project import ProjectionResult, project
from neverworse.projection.totals import Totals

__all__ = [
    "EPS",
    "Assumptions",
    "Box",
    "Certificate",
    "GramCoordinates",
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
    "whiten",
]
