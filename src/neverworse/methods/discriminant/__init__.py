"""Discriminant analysis: Gaussian classes with a common covariance, with and without labels."""
