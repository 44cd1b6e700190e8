"""Gaussian process priors of which a few active rows carry all that rows have in common.

Given the active rows Z, the latent values of all others are taken to be independent. With the
Cholesky factor CC' = k(Z, Z), they are f = L'g + e, where g ~ N(0, I), L = C⁻¹ k(Z, X), and e is
independent noise with what is left of the prior variances. Where all rows are active, e is zero
and nothing is approximated. Memory and time grow linearly with the number of other rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy import linalg
from sklearn.utils import gen_batches

from neverworse._typing import Indices, Mask, Matrix, Vector

# Variance, relative to the largest one, at which a row has nothing to add to the active ones.
NEGLIGIBLE = 1e-10
# Rows whose covariances with the active ones are computed at once.
BATCH = 4096


@dataclass(frozen=True)
class ActiveRows:
    """Rows that others depend on.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    rows : array of shape (m, n_features)
        Z.
    triangle : array of shape (m, m)
        C, lower triangular.
    """

    kernel: Any
    rows: Matrix
    triangle: Matrix

    @classmethod
    def of(cls, kernel: Any, rows: Matrix) -> ActiveRows:
        """Factorise the covariance of rows that `choose_active` has found."""
        covariance = _finite(kernel(rows, rows))
        try:
            triangle = linalg.cholesky(covariance, lower=True, check_finite=False)
        except linalg.LinAlgError:
            raise ValueError(
                "The kernel's covariance of rows is not positive definite in floating point: rows "
                "are too much alike for it. Choose a kernel with a shorter length scale or with "
                "white noise, or rescale the columns of X."
            ) from None
        return cls(kernel, rows, triangle)

    def factor(self, X: Matrix) -> tuple[Matrix, Vector]:
        """Return L of shape (m, n), and the variances of e."""
        factor = np.empty((len(self.rows), len(X)))
        for batch in gen_batches(len(X), BATCH):
            shared = _finite(self.kernel(self.rows, X[batch]))
            factor[:, batch] = linalg.solve_triangular(
                self.triangle, shared, lower=True, check_finite=False
            )
        own = _finite(self.kernel.diag(X)) - np.einsum("ij,ij->j", factor, factor)
        return factor, np.maximum(own, 0.0)


def choose_active(kernel: Any, X: Matrix, labeled: Mask, max_active: int) -> Indices:
    """Choose rows one by one: always the one about which those before say the least.

    That is the one with the largest prior variance, given the latent values of those before it; of
    equals, the first. The first half comes from the labeled rows, as far as there are enough: what
    they say about f shall not be blurred.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    X : array of shape (n, n_features)
    labeled : boolean array of shape (n,)
    max_active : int

    Returns
    -------
    active : array of shape (m,)
        Positions of the rows. m is smaller than max_active if fewer rows say it all.
    """
    left = _finite(kernel.diag(X)).copy()
    smallest = NEGLIGIBLE * float(left.max())
    factor = np.empty((min(max_active, len(X)), len(X)))
    active: list[int] = []
    for k in range(len(factor)):
        among = np.where(labeled, left, 0.0) if k < (max_active + 1) // 2 else left
        if among.max() <= smallest:
            among = left
        row = int(among.argmax())
        if left[row] <= smallest:
            break
        m = len(active)
        covariance = _finite(kernel(X[row : row + 1], X)[0]) - factor[:m, row] @ factor[:m]
        # White noise is in the variance of a row, but in no covariance with others.
        common, left[row] = covariance[row], 0.0
        if common > smallest:
            factor[m] = covariance / np.sqrt(common)
            left = np.maximum(left - factor[m] ** 2, 0.0)
            active.append(row)
    if not active:
        raise ValueError(
            "The kernel has no covariance between rows, so that labels say nothing about other "
            "rows. Choose another kernel, for example RBF()."
        )
    return np.array(active, dtype=np.intp)


def sample_rows(labeled: Mask, size: int, rng: RandomState) -> Indices:
    """Return positions of a random sample of rows: labeled ones first, up to half of it.

    Parameters
    ----------
    labeled : boolean array of shape (n,)
    size : int
    rng : RandomState
    """
    if len(labeled) <= size:
        return np.arange(len(labeled))
    known, unknown = np.flatnonzero(labeled), np.flatnonzero(~labeled)
    n_known = min(len(known), max(size // 2, size - len(unknown)))
    parts = [
        rng.choice(rows, number, replace=False) if number < len(rows) else rows
        for rows, number in ((known, n_known), (unknown, size - n_known))
    ]
    return np.sort(np.concatenate(parts))


def _finite(values: Any) -> Any:
    if not np.isfinite(values).all():
        raise ValueError(
            "The kernel has values that are not finite. Rescale the columns of X, for example "
            "with sklearn.preprocessing.StandardScaler, or choose another kernel."
        )
    return values
