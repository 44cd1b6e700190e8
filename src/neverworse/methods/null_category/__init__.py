"""A Gaussian process classifier whose boundary keeps away from unlabeled rows."""

from neverworse.methods.null_category._classifier import NullCategoryNoiseModel
from neverworse.methods.null_category._process import ActiveRows, Process
from neverworse.methods.null_category._propagation import (
    Approximation,
    NullCategoryNoise,
    Posterior,
    Sites,
)

FITTED_PARTS = (ActiveRows, Approximation, NullCategoryNoise, Posterior, Process, Sites)

__all__ = ["FITTED_PARTS", "NullCategoryNoiseModel"]
