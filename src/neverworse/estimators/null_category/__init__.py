"""A Gaussian process classifier whose boundary keeps away from unlabeled rows."""

from neverworse.estimators.null_category._classifier import NullCategoryNoiseModel

__all__ = ["NullCategoryNoiseModel"]
