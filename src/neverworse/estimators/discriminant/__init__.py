"""Discriminant analysis: Gaussian classes with a common covariance, with and without labels."""

from neverworse.estimators.discriminant._certificate import LikelihoodCertificate
from neverworse.estimators.discriminant._contrastive_pessimistic import (
    ContrastivePessimisticDiscriminantAnalysis,
)
from neverworse.estimators.discriminant._em import EMDiscriminantAnalysis
from neverworse.estimators.discriminant._implicitly_constrained import (
    ImplicitlyConstrainedDiscriminantAnalysis,
)
from neverworse.estimators.discriminant._moment_constrained import (
    MomentConstrainedDiscriminantAnalysis,
)
from neverworse.estimators.discriminant._supervised import (
    LinearDiscriminantClassifier,
    NearestMeanClassifier,
)

__all__ = [
    "ContrastivePessimisticDiscriminantAnalysis",
    "EMDiscriminantAnalysis",
    "ImplicitlyConstrainedDiscriminantAnalysis",
    "LikelihoodCertificate",
    "LinearDiscriminantClassifier",
    "MomentConstrainedDiscriminantAnalysis",
    "NearestMeanClassifier",
]
