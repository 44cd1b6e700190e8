"""Leave out the directions in which rows hardly vary."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from neverworse._typing import Matrix


class Truncation(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Keep the directions in which rows vary by more than a fraction of the largest variance.

    Least squares on what is kept is least squares with a truncated pseudo-inverse of the Gram
    matrix. Rows are not changed at all where every direction is kept.

    Parameters
    ----------
    cutoff : float or None
        Directions are kept if their singular value in the centred Gram matrix is more than this
        fraction of the largest. None: all are kept.

    Attributes
    ----------
    directions_ : array of shape (n_features, n_kept), or None
        None if all are kept.
    """

    def __init__(self, cutoff: float | None = None) -> None:
        self.cutoff = cutoff

    def fit(self, X: Matrix, y: Any = None) -> Self:  # noqa: ARG002
        """Decide which directions to keep."""
        self.directions_ = None
        self.mean_ = X.mean(axis=0)
        if self.cutoff is not None:
            centred = X - self.mean_
            gram = centred.T @ centred
            # Directions are rarely left out, and take much longer than values.
            values = np.linalg.eigvalsh(gram)
            n_dropped = int(np.sum(values <= self.cutoff * values[-1]))
            if n_dropped:
                self.directions_ = np.linalg.eigh(gram).eigenvectors[:, n_dropped:]
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Return the coordinates of the rows in these directions."""
        return X if self.directions_ is None else (X - self.mean_) @ self.directions_
