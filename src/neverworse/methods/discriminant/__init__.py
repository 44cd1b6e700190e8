"""Discriminant analysis: Gaussian classes with a common covariance, with and without labels."""

from neverworse.methods.discriminant._constrained import (
    ImplicitlyConstrainedDiscriminantAnalysis,
    MomentConstrainedDiscriminantAnalysis,
)
from neverworse.methods.discriminant._contrastive_pessimistic import (
    ContrastivePessimisticDiscriminantAnalysis,
    LikelihoodCertificate,
)
from neverworse.methods.discriminant._gaussian import GaussianClasses, Precision, Subspace
from neverworse.methods.discriminant._soft_labels import EMDiscriminantAnalysis
from neverworse.methods.discriminant._supervised import (
    LinearDiscriminantClassifier,
    NearestMeanClassifier,
)

FITTED_PARTS = (GaussianClasses, LikelihoodCertificate, Precision, Subspace)

__all__ = [
    "FITTED_PARTS",
    "ContrastivePessimisticDiscriminantAnalysis",
    "EMDiscriminantAnalysis",
    "ImplicitlyConstrainedDiscriminantAnalysis",
    "LikelihoodCertificate",
    "LinearDiscriminantClassifier",
    "MomentConstrainedDiscriminantAnalysis",
    "NearestMeanClassifier",
]
