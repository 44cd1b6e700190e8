"""The methods that the projection is compared with, through the same interface."""

from neverworse.methods._entropy import EntropyRegularizedLogisticRegression
from neverworse.methods._least_squares import (
    LaplacianLeastSquaresClassifier,
    UpdatedSecondMomentClassifier,
)
from neverworse.methods._metric_selection import MetricModelSelection
from neverworse.methods._null_category import NullCategoryNoiseModel
from neverworse.methods._null_category_inference import PARTS
from neverworse.methods._references import HiddenLabels, OracleClassifier, SupervisedClassifier
from neverworse.methods._self_learning import SelfLearningClassifier
from neverworse.methods.discriminant._contrastive_pessimistic import (
    ContrastivePessimisticDiscriminantAnalysis,
    LikelihoodCertificate,
)
from neverworse.methods.discriminant._soft_labels import (
    EMDiscriminantAnalysis,
    ImplicitlyConstrainedDiscriminantAnalysis,
)
from neverworse.methods.discriminant._supervised import (
    LinearDiscriminantClassifier,
    MomentConstrainedDiscriminantAnalysis,
    NearestMeanClassifier,
)
from neverworse.methods.svm._l2svm import L2SVMClassifier
from neverworse.methods.svm._safe import SafeSVMClassifier
from neverworse.methods.svm._transductive import TransductiveSVMClassifier

# Classes of which fitted models consist besides arrays: a model file may contain them.
FITTED_PARTS: tuple[type, ...] = (HiddenLabels, LikelihoodCertificate, *PARTS)

__all__ = ["ContrastivePessimisticDiscriminantAnalysis", "EMDiscriminantAnalysis"]
__all__ += ["EntropyRegularizedLogisticRegression", "HiddenLabels"]
__all__ += ["ImplicitlyConstrainedDiscriminantAnalysis", "L2SVMClassifier"]
__all__ += ["LaplacianLeastSquaresClassifier", "LikelihoodCertificate"]
__all__ += ["LinearDiscriminantClassifier", "MetricModelSelection"]
__all__ += ["MomentConstrainedDiscriminantAnalysis", "NearestMeanClassifier"]
__all__ += ["NullCategoryNoiseModel", "OracleClassifier", "SafeSVMClassifier"]
__all__ += ["SelfLearningClassifier", "SupervisedClassifier", "TransductiveSVMClassifier"]
__all__ += ["UpdatedSecondMomentClassifier"]
