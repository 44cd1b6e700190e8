"""A Gaussian process classifier whose boundary keeps away from unlabeled rows."""

from neverworse.methods.null_category._active import ActiveRows
from neverworse.methods.null_category._classifier import NullCategoryNoiseModel
from neverworse.methods.null_category._expectation_propagation import (
    Approximation,
    Posterior,
    Sites,
)
from neverworse.methods.null_category._noise import NullCategoryNoise
from neverworse.methods.null_category._process import Process

FITTED_PARTS = (ActiveRows, Approximation, NullCategoryNoise, Posterior, Process, Sites)

__all__ = ["FITTED_PARTS", "NullCategoryNoiseModel"]
