"""What people import: estimators that feel native to scikit-learn."""

from neverworse.estimators._audit import audit
from neverworse.estimators._audit_report import Audit
from neverworse.estimators._entropy import EntropyRegularizedLogisticRegression
from neverworse.estimators._hidden_labels import HiddenLabels
from neverworse.estimators._least_squares import LeastSquaresClassifier
from neverworse.estimators._least_squares_cv import LeastSquaresClassifierCV
from neverworse.estimators._least_squares_regressor import (
    LeastSquaresRegressor,
    LeastSquaresRegressorCV,
)
from neverworse.estimators._metric_selection import MetricModelSelection
from neverworse.estimators._projected import ICLSClassifier, ProjectedLeastSquaresClassifier
from neverworse.estimators._references import OracleClassifier, SupervisedClassifier
from neverworse.estimators._regressor import ProjectedLeastSquaresRegressor
from neverworse.estimators._self_learning import SelfLearningClassifier
from neverworse.estimators._updated_second_moment import UpdatedSecondMomentClassifier
from neverworse.estimators.discriminant import (
    ContrastivePessimisticDiscriminantAnalysis,
    EMDiscriminantAnalysis,
    ImplicitlyConstrainedDiscriminantAnalysis,
    LikelihoodCertificate,
    LinearDiscriminantClassifier,
    MomentConstrainedDiscriminantAnalysis,
    NearestMeanClassifier,
)
from neverworse.estimators.null_category import NullCategoryNoiseModel
from neverworse.estimators.svm import (
    L2SVMClassifier,
    SafeSVMClassifier,
    TransductiveSVMClassifier,
)

__all__ = [
    "Audit",
    "ContrastivePessimisticDiscriminantAnalysis",
    "EMDiscriminantAnalysis",
    "EntropyRegularizedLogisticRegression",
    "HiddenLabels",
    "ICLSClassifier",
    "ImplicitlyConstrainedDiscriminantAnalysis",
    "L2SVMClassifier",
    "LeastSquaresClassifier",
    "LeastSquaresClassifierCV",
    "LeastSquaresRegressor",
    "LeastSquaresRegressorCV",
    "LikelihoodCertificate",
    "LinearDiscriminantClassifier",
    "MetricModelSelection",
    "MomentConstrainedDiscriminantAnalysis",
    "NearestMeanClassifier",
    "NullCategoryNoiseModel",
    "OracleClassifier",
    "ProjectedLeastSquaresClassifier",
    "ProjectedLeastSquaresRegressor",
    "SafeSVMClassifier",
    "SelfLearningClassifier",
    "SupervisedClassifier",
    "TransductiveSVMClassifier",
    "UpdatedSecondMomentClassifier",
    "audit",
]
