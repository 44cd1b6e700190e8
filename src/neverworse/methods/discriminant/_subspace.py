"""Directions in which classes are compared, and covariances there.

Where rows do not vary within their classes in some direction, Gaussian classes have no density. As
in scikit-learn's `LinearDiscriminantAnalysis`, such directions are left out: the density is that of
the coordinates of the rows in all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._typing import Matrix, Vector

# A variance within the classes is zero if it is at most this part of the total variance: less
# cannot be told from rounding errors.
SMALLEST_VARIANCE = 1e-10
# A reciprocal condition number that leaves no digits.
SMALLEST_RCOND = 1e-13


class SingularCovarianceError(ValueError):
    """A covariance has no inverse, so that there is no density."""

    def __init__(self) -> None:
        super().__init__(
            "The covariance within the classes has no inverse in floating point: it hardly varies "
            "in some direction. Label more rows, or pass alpha > 0, which is added to all "
            "variances: scale the columns first, for example with "
            "sklearn.preprocessing.StandardScaler."
        )


@dataclass(frozen=True)
class Subspace:
    """Directions in which classes are compared.

    Attributes
    ----------
    basis : array of shape (n_columns, rank)
        V: the coordinates of a row x are V'x.
    inverse : array of shape (n_columns, rank)
        U with V'U = I: the row with the coordinates z, and nothing else, is Uz.
    log_volume : float
        log det V'V: with it, densities are those of the rows and not of their coordinates.
    """

    basis: Matrix
    inverse: Matrix
    log_volume: float

    @classmethod
    def of(cls, covariance: Matrix, total_variances: Vector) -> Subspace:
        """Find the directions in which there is variance within the classes.

        Parameters
        ----------
        covariance : array of shape (n_columns, n_columns)
            Within the classes.
        total_variances : array of shape (n_columns,)
            Of the columns, classes together: so the units of the columns do not matter.
        """
        used = np.flatnonzero(total_variances)
        if not used.size:
            raise SingularCovarianceError
        scale = np.sqrt(total_variances[used])
        scaled = covariance[np.ix_(used, used)] / np.outer(scale, scale)
        variances, directions = linalg.eigh(scaled)
        kept = variances > SMALLEST_VARIANCE
        if not kept.any():
            raise SingularCovarianceError
        # If nothing is left out, columns remain columns.
        directions = np.eye(len(used)) if kept.all() else directions[:, kept]
        basis, inverse = (np.zeros((len(covariance), directions.shape[1])) for _ in range(2))
        basis[used] = directions / scale[:, None]
        inverse[used] = directions * scale[:, None]
        triangle = np.linalg.qr(basis, mode="r")
        log_volume = 2.0 * float(np.log(np.abs(np.diag(triangle))).sum())
        return cls(basis, inverse, log_volume)

    @property
    def rank(self) -> int:
        """How many directions there are."""
        return self.basis.shape[1]


@dataclass(frozen=True)
class Precision:
    """The inverse of a covariance in a subspace.

    Attributes
    ----------
    core : array of shape (rank, rank)
        (V'ΣV)⁻¹.
    matrix : array of shape (n_columns, n_columns)
        V (V'ΣV)⁻¹ V', the inverse as far as the subspace goes.
    log_det : float
        Logarithm of the determinant of the covariance in the subspace.
    size : float
        Frobenius norm of the inverse where all coordinates have a variance of about one: by how
        much relative errors of the covariance may grow.
    """

    core: Matrix
    matrix: Matrix
    log_det: float
    size: float

    @classmethod
    def of(cls, covariance: Matrix, space: Subspace) -> Precision:
        """Invert a covariance of the columns."""
        basis = space.basis
        inner = basis.T @ covariance @ basis
        # Sizes of what was added up, of which the rounding errors are a fraction.
        sizes = np.sum((np.abs(covariance) @ np.abs(basis)) * np.abs(basis), axis=0)
        core, log_det, size = invert(inner, np.sqrt(sizes))
        matrix = basis @ core @ basis.T
        return cls(core, (matrix + matrix.T) / 2.0, log_det - space.log_volume, size)


def invert(covariance: Matrix, scale: Vector) -> tuple[Matrix, float, float]:
    """Invert a positive definite matrix.

    Parameters
    ----------
    covariance : array of shape (n, n)
    scale : array of shape (n,)
        Units of the coordinates.

    Returns
    -------
    inverse : array of shape (n, n)
    log_det : float
        Logarithm of the determinant of the matrix, not of its inverse.
    size : float
        Frobenius norm of the inverse in these units.
    """
    units = np.outer(scale, scale)
    scaled = covariance / units
    factor, failed = lapack.dpotrf(scaled, lower=1, clean=1)
    if failed:
        raise SingularCovarianceError
    inverse, _ = lapack.dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    rcond = 1.0 / (np.abs(scaled).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max())
    if not rcond > SMALLEST_RCOND:
        raise SingularCovarianceError
    log_det = 2.0 * float(np.log(np.diag(factor) * scale).sum())
    return inverse / units, log_det, float(np.linalg.norm(inverse))
