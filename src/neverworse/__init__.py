"""Safe semi-supervised learning: never worse than the supervised model."""

from neverworse.estimators import (
    Audit,
    ICLSClassifier,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    LeastSquaresRegressor,
    ProjectedLeastSquaresClassifier,
    ProjectedLeastSquaresRegressor,
    audit,
)
from neverworse.projection import Certificate

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Certificate",
    "ICLSClassifier",
    "LeastSquaresClassifier",
    "LeastSquaresClassifierCV",
    "LeastSquaresRegressor",
    "ProjectedLeastSquaresClassifier",
    "ProjectedLeastSquaresRegressor",
    "__version__",
    "audit",
]
