"""Safe semi-supervised classification: never worse than the supervised classifier."""

from neverworse.estimators import (
    ICLSClassifier,
    LeastSquaresClassifier,
    ProjectedLeastSquaresClassifier,
)
from neverworse.projection import Certificate

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "ICLSClassifier",
    "LeastSquaresClassifier",
    "ProjectedLeastSquaresClassifier",
    "__version__",
]
