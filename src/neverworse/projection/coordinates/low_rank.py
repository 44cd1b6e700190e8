"""The few directions in which a large matrix is largest, found by products with random vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from neverworse._typing import Matrix, Vector

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class LowRank:
    """An approximation UΛU' of a symmetric matrix without negative eigenvalues.

    Attributes
    ----------
    vectors : array of shape (n, rank)
        Orthonormal columns U.
    values : array of shape (rank,)
        Λ, the largest first.
    """

    vectors: Matrix
    values: Vector

    def preconditioner(self, alpha: float) -> Callable[[Matrix], Matrix]:
        """Return an approximate inverse of the matrix plus α times the identity.

        Where nothing is known about the matrix, it is taken to be as large as the smallest value:
        what is left to conjugate gradients then lies between α and that. Single precision will do.
        """
        rest = alpha + (float(self.values[-1]) if len(self.values) else 0.0)
        change = (1.0 / (self.values + alpha) - 1.0 / rest)[:, None].astype(np.float32)
        vectors = self.vectors.astype(np.float32)
        turned = np.ascontiguousarray(vectors.T)

        def apply(x: Matrix) -> Matrix:
            along = change * (turned @ x.astype(np.float32))
            return x / rest + vectors @ along

        return apply


def low_rank(
    product: Callable[[Matrix], Matrix],
    n: int,
    rank: int,
    at_once: int,
    stop: Callable[[], bool] = lambda: False,
) -> LowRank:
    """Approximate a matrix by its products with twice as many vectors as the rank.

    The range of the matrix is estimated from its products with random vectors, and the matrix from
    its products with that range (the Nyström approximation, which is never larger than the matrix).

    Parameters
    ----------
    product : callable
        ``product(x)`` returns the matrix times the columns of x.
    n, rank : int
    at_once : int
        Columns that are multiplied at once.
    stop : callable
        Asked before every product; nothing is known about the matrix where it says True.
    """
    basis = np.random.default_rng(0).normal(size=(n, rank))  # only the path depends on it
    for _ in range(2):
        basis = linalg.qr(basis, mode="economic", overwrite_a=True, check_finite=False)[0]
        image = np.empty_like(basis)
        for lo in range(0, rank, at_once):
            if stop():
                return LowRank(np.empty((n, 0)), np.empty(0))
            piece = slice(lo, lo + at_once)
            image[:, piece] = product(np.ascontiguousarray(basis[:, piece]))
        basis, before = image, basis
    # The image is KQ, and the approximation KQ (Q'KQ)⁻¹ QK: the square of its factor.
    small = before.T @ image
    del before, basis
    small = 0.5 * (small + small.T)
    inner, rotation = linalg.eigh(small, check_finite=False)
    kept = inner > 8.0 * EPS * max(rank, 1) * float(inner.max(initial=0.0))
    factor = image @ (rotation[:, kept] / np.sqrt(inner[kept]))
    values, rotation = linalg.eigh(factor.T @ factor, check_finite=False)
    kept = values > EPS * float(values.max(initial=0.0))
    values, rotation = values[kept][::-1], rotation[:, kept][:, ::-1]
    return LowRank(factor @ (rotation / np.sqrt(values)), values)
