"""Projected and supervised least squares, the audit of any two models, and helpers of rooms."""

from neverworse.estimators._audit import Audit, audit, scores_of, shared_classes
from neverworse.estimators._delegating import (
    DelegatingClassifier,
    LabeledRows,
    PassesPredictionsOn,
    predicted_codes,
    weights_for,
    with_null_markers,
)
from neverworse.estimators._input import (
    FitInput,
    checked_weights,
    copy_input_checks,
    explained_overflow,
    explains_conversion,
    forget_fit,
    fresh_fit,
    in_memory,
    is_lazy,
    lazy_rows,
    observed_fit,
    refuse_chunks,
)
from neverworse.estimators._kernels import (
    KERNEL_CONSTRAINTS,
    KernelModel,
    landmarks_of_all,
    space_of_all,
)
from neverworse.estimators._known_labels import KnownLabels, known_labels
from neverworse.estimators._labels import (
    SoftLabels,
    find_unlabeled,
    is_auto,
    is_continuous,
    is_null,
    label_array,
    native_dtype,
    shown_classes,
    split_labels,
    split_targets,
)
from neverworse.estimators._least_squares import (
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    LeastSquaresRegressor,
    LeastSquaresRegressorCV,
)
from neverworse.estimators._linear import (
    CallbackSupportMixin,
    IndicatorClassifier,
    LinearClassifier,
    ScoringClassifier,
    class_scores,
    has_class_scores,
    stored_weights,
)
from neverworse.estimators._projected import (
    ICLSClassifier,
    ProjectedLeastSquaresClassifier,
    ProjectedLeastSquaresRegressor,
)
from neverworse.projection import Assumptions, Certificate

# Classes of which fitted models consist besides arrays: a model file may contain them.
FITTED_PARTS = (Assumptions, Certificate, SoftLabels)

# The estimators, for users and for model files. What else is imported here is for other rooms.
__all__ = ["ICLSClassifier", "LeastSquaresClassifier", "LeastSquaresClassifierCV"]
__all__ += ["LeastSquaresRegressor", "LeastSquaresRegressorCV"]
__all__ += ["ProjectedLeastSquaresClassifier", "ProjectedLeastSquaresRegressor"]
