"""What people import: classifiers that feel native to scikit-learn."""

from neverworse.estimators._least_squares import LeastSquaresClassifier
from neverworse.estimators._projected import ICLSClassifier, ProjectedLeastSquaresClassifier

__all__ = ["ICLSClassifier", "LeastSquaresClassifier", "ProjectedLeastSquaresClassifier"]
