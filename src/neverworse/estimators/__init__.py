"""What people import: estimators that feel native to scikit-learn."""

from neverworse.estimators._audit import audit
from neverworse.estimators._audit_report import Audit
from neverworse.estimators._least_squares import LeastSquaresClassifier
from neverworse.estimators._least_squares_cv import LeastSquaresClassifierCV
from neverworse.estimators._projected import ICLSClassifier, ProjectedLeastSquaresClassifier
from neverworse.estimators._regressor import (
    LeastSquaresRegressor,
    ProjectedLeastSquaresRegressor,
)

__all__ = [
    "Audit",
    "ICLSClassifier",
    "LeastSquaresClassifier",
    "LeastSquaresClassifierCV",
    "LeastSquaresRegressor",
    "ProjectedLeastSquaresClassifier",
    "ProjectedLeastSquaresRegressor",
    "audit",
]
