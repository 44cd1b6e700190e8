"""The matrices that least squares of the published code is solved with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from neverworse._typing import Matrix


class DesignMatrix(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A column of ones, and the features centred on the rows that it is fitted to.

    Exact least squares does not depend on the centring. A pseudo-inverse with a cut-off does: the
    column of ones takes part in it.
    """

    def fit(self, X: Matrix, y: Any = None) -> Self:  # noqa: ARG002
        """Centre on these rows."""
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Return the rows of the matrix."""
        return np.column_stack([np.ones(len(X)), X - self.mean_])


class Truncation(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Keep the directions that a truncated pseudo-inverse of the Gram matrix keeps.

    Least squares on what is kept of the rows is least squares with that pseudo-inverse. Rows are
    not changed at all where every direction is kept.

    Parameters
    ----------
    cutoff : float
        Directions are kept if their singular value in the Gram matrix of the design matrix, with
        its column of ones, is more than this fraction of the largest.

    Attributes
    ----------
    directions_ : array of shape (n_features, n_kept), or None
        None if all are kept.
    """

    def __init__(self, cutoff: float) -> None:
        self.cutoff = cutoff

    def fit(self, X: Matrix, y: Any = None) -> Self:  # noqa: ARG002
        """Decide which directions to keep."""
        self.directions_ = None
        self.mean_ = X.mean(axis=0)
        centred = X - self.mean_
        gram = centred.T @ centred
        # Directions are rarely left out, and take much longer than values.
        values = np.linalg.eigvalsh(gram)
        # Centred columns are orthogonal to that of ones, whose singular value is the last one.
        n_dropped = int(np.sum(values <= self.cutoff * max(values[-1], len(X))))
        if n_dropped:
            self.directions_ = np.linalg.eigh(gram).eigenvectors[:, n_dropped:]
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Return the coordinates of the rows in these directions."""
        return X if self.directions_ is None else (X - self.mean_) @ self.directions_
