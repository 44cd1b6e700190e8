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

__all__ = ["FITTED_PARTS", "KERNEL_CONSTRAINTS", "Audit", "CallbackSupportMixin"]
__all__ += ["DelegatingClassifier", "FitInput", "ICLSClassifier", "IndicatorClassifier"]
__all__ += ["KernelModel", "KnownLabels", "LabeledRows", "LeastSquaresClassifier"]
__all__ += ["LeastSquaresClassifierCV", "LeastSquaresRegressor", "LeastSquaresRegressorCV"]
__all__ += ["LinearClassifier", "PassesPredictionsOn", "ProjectedLeastSquaresClassifier"]
__all__ += ["ProjectedLeastSquaresRegressor", "ScoringClassifier"]
__all__ += ["audit", "checked_weights", "class_scores", "copy_input_checks", "explained_overflow"]
__all__ += ["explains_conversion", "find_unlabeled", "forget_fit", "has_class_scores", "in_memory"]
__all__ += ["is_auto", "is_continuous", "is_lazy", "is_null", "known_labels", "label_array"]
__all__ += ["landmarks_of_all", "lazy_rows", "native_dtype", "observed_fit", "predicted_codes"]
__all__ += ["refuse_chunks", "scores_of", "shared_classes", "shown_classes", "space_of_all"]
__all__ += ["split_labels", "split_targets", "stored_weights", "weights_for", "with_null_markers"]
