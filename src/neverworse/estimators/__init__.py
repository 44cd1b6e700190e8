"""What people import: estimators that feel native to scikit-learn, and the audit of any models.

The names behind the estimators are what other rooms of the package build on.
"""

from neverworse.estimators._audit import audit
from neverworse.estimators._audit_models import has_class_scores
from neverworse.estimators._audit_report import Audit
from neverworse.estimators._classifier import LinearClassifier, class_scores
from neverworse.estimators._conversion import explains_conversion
from neverworse.estimators._delegating import DelegatingClassifier, LabeledRows
from neverworse.estimators._labels import (
    check_classes,
    distinct_labels,
    find_unlabeled,
    is_auto,
    is_null,
    label_array,
    native_dtype,
    split_labels,
)
from neverworse.estimators._least_squares import LeastSquaresClassifier
from neverworse.estimators._least_squares_cv import LeastSquaresClassifierCV
from neverworse.estimators._least_squares_regressor import (
    LeastSquaresRegressor,
    LeastSquaresRegressorCV,
)
from neverworse.estimators._linear import stored_weights
from neverworse.estimators._projected import ICLSClassifier, ProjectedLeastSquaresClassifier
from neverworse.estimators._regressor import ProjectedLeastSquaresRegressor
from neverworse.estimators._row_weights import checked_weights
from neverworse.estimators._soft_labels import SoftLabels
from neverworse.estimators._wrapped import weights_for
from neverworse.projection import Assumptions, Certificate

# Classes of which fitted models consist besides arrays: a model file may contain them.
FITTED_PARTS = (Assumptions, Certificate, SoftLabels)

__all__ = [
    "FITTED_PARTS",
    "Audit",
    "DelegatingClassifier",
    "ICLSClassifier",
    "LabeledRows",
    "LeastSquaresClassifier",
    "LeastSquaresClassifierCV",
    "LeastSquaresRegressor",
    "LeastSquaresRegressorCV",
    "LinearClassifier",
    "ProjectedLeastSquaresClassifier",
    "ProjectedLeastSquaresRegressor",
    "SoftLabels",
    "audit",
    "check_classes",
    "checked_weights",
    "class_scores",
    "distinct_labels",
    "explains_conversion",
    "find_unlabeled",
    "has_class_scores",
    "is_auto",
    "is_null",
    "label_array",
    "native_dtype",
    "split_labels",
    "stored_weights",
    "weights_for",
]
