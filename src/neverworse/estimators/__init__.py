"""What people import: estimators that feel native to scikit-learn."""

from neverworse.estimators._audit import audit
from neverworse.estimators._audit_report import Audit
from neverworse.estimators._least_squares import LeastSquaresClassifier
from neverworse.estimators._least_squares_cv import LeastSquaresClassifierCV
from neverworse.estimators._least_squares_regressor import (
    LeastSquaresRegressor,
    LeastSquaresRegressorCV,
)
from neverworse.estimators._projected import ICLSClassifier, ProjectedLeastSquaresClassifier
from neverworse.estimators._regressor import ProjectedLeastSquaresRegressor
from neverworse.estimators._soft_labels import SoftLabels

__all__ = [
    "Audit",
    "ICLSClassifier",
    "LeastSquaresClassifier",
    "LeastSquaresClassifierCV",
    "LeastSquaresRegressor",
    "LeastSquaresRegressorCV",
    "ProjectedLeastSquaresClassifier",
    "ProjectedLeastSquaresRegressor",
    "SoftLabels",
    "audit",
]
