"""The mathematics: least squares, constraint set, dual solver, certificate.

Knows arrays and rows, knows no scikit-learn.
"""

from neverworse._budget import Observer, Progress
from neverworse.projection.certificate import EXACT, Assumptions, Certificate, Claim, Reason, Task
from neverworse.projection.certificate.certify import SUMMATION, LossDifference, loss_difference
from neverworse.projection.coordinates import EPS, LARGEST_GRAM, Coordinates, Weights
from neverworse.projection.coordinates.gram import (
    GramCoordinates,
    Moments,
    NonFiniteError,
    column_moments,
    moments,
    whiten,
)
from neverworse.projection.coordinates.matrix_free import MatrixFreeCoordinates
from neverworse.projection.label_sets import Box, LabelSet, Simplex
from neverworse.projection.labels import Labels, TrainingRows
from neverworse.projection.least_squares import solve_least_squares
from neverworse.projection.least_squares.leave_one_out import leave_one_out
from neverworse.projection.project import ProjectionResult, Start, project
from neverworse.projection.totals import Totals
