"""Linear systems of very many columns, in the space of rows.

With a penalty α and centred rows A (times the roots of their weights), the weights that solve
(A'A + α) w = p are (p - A'y) / α with (AA' + α) y = Ap. So the unknowns are as many as there are
rows, and the kernel AA' enters by its products only: no matrix of rows by rows is made.

Arrays here have the rows first, and one column for each class: so sparse rows are fastest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from neverworse._budget import Budget
from neverworse._conjugate_gradients import conjugate_gradients
from neverworse._typing import Mask, Matrix, Vector
from neverworse.projection.coordinates.base import EPS
from neverworse.projection.coordinates.matrix_free import MatrixFreeCoordinates


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


RANK_PER_CLASS = 10  # directions that are known to the preconditioner: each costs two products
MOST_DIRECTIONS = 200
MOST_NUMBERS = 2 * 10**7  # in these directions
LARGEST_CONDITION = 1000.0  # that a preconditioner may leave
ROUGH = 1e-5  # relative error of products in single precision, at most
SINGLE = 1e-6  # of a residual: single precision sees no more


class RowSystem:
    """The kernel of weighted, centred rows, and systems with it.

    Parameters
    ----------
    space : MatrixFreeCoordinates
        With a penalty, and without totals.
    n_classes : int
        Columns of right-hand sides.
    budget : Budget
        Ends iterations, and is told about products: passes over the rows.
    """

    def __init__(self, space: MatrixFreeCoordinates, n_classes: int, budget: Budget) -> None:
        assert space.alpha > 0.0
        assert not space.restricted
        self.space = space
        self.alpha = space.alpha
        self.root = np.sqrt(space.weights)[:, None]
        self._n_classes = n_classes
        self._budget = budget

    def combine(self, y: Matrix) -> Matrix:
        """Return A'y, of shape (n_columns, n_classes)."""
        x = np.ascontiguousarray((self.root * y).T)
        combined = self.space.rows.weighted_sum(x)
        combined -= np.outer(x.sum(axis=1), self.space.mean)
        return combined.T

    def products(self, coef: Matrix) -> Matrix:
        """Return A coef, of shape (n_rows, n_classes)."""
        rows, at_mean = self.space.rows, self.space.mean @ coef
        if rows.shift is not None:
            at_mean = at_mean + rows.shift @ coef
        return self._weighted(rows.scores(np.ascontiguousarray(coef.T), -at_mean).T)

    def kernel(self, y: Matrix) -> Matrix:
        """Return AA'y."""
        self._budget.n_passes += 1
        return self.products(self.combine(y))

    def rough_kernel(self, y: Matrix) -> Matrix:
        """Return AA'y, perhaps to single precision where that is faster."""
        product = self._single_kernel(y) if self._single_will_do else None
        if product is None:
            return self.kernel(y)
        self._budget.n_passes += 1
        return product

    @cached_property
    def _single_will_do(self) -> bool:
        """Whether single precision is faster, overflows nowhere, and is not used up by centring."""
        y = np.random.default_rng(0).normal(size=(len(self.root), self._n_classes))
        with np.errstate(over="ignore", invalid="ignore"):
            product = self._single_kernel(y)
        if product is None:
            return False
        exact = self.kernel(y)
        return float(np.linalg.norm(product - exact)) <= ROUGH * float(np.linalg.norm(exact))

    def _single_kernel(self, y: Matrix) -> Matrix | None:
        product = self.space.rows.single_kernel_product(self.root * y, self.space.mean)
        return None if product is None else self._weighted(product)

    def _weighted(self, scores: Matrix) -> Matrix:
        """Multiply scores with the roots, in place."""
        scores[~self._seen] = 0.0  # rows without a weight may score anything, even infinity
        scores *= self.root
        return scores

    @cached_property
    def _seen(self) -> Mask:
        return self.root[:, 0] > 0.0

    @cached_property
    def directions(self) -> LowRank:
        """The largest directions of the kernel."""
        n = len(self.root)
        most = min(MOST_DIRECTIONS, MOST_NUMBERS // max(n, 1), int(np.count_nonzero(self._seen)))
        rank = min(RANK_PER_CLASS * self._n_classes, most)
        return low_rank(self.rough_kernel, n, rank, self._n_classes, self._stop)

    @property
    def is_well_conditioned(self) -> bool:
        """Whether the directions leave systems that take few products."""
        values = self.directions.values
        return float(values[-1] if len(values) else 0.0) <= LARGEST_CONDITION * self.alpha

    @cached_property
    def precondition(self) -> Callable[[Matrix], Matrix]:
        """An approximate inverse of AA' + α."""
        return self.directions.preconditioner(self.alpha)

    def residual(self, right: Matrix, y: Matrix) -> Matrix:
        """Return u - (AA' + α) y for a right-hand side u."""
        left = right - self.kernel(y)
        left -= self.alpha * y
        return left

    def solve(self, y: Matrix, residual: Matrix, error: float) -> tuple[Matrix, Matrix]:
        """Improve a solution y of (AA' + α) y = u with a known residual; return both.

        The residual is followed, not computed anew: rounding errors of what y changes by stay.

        Parameters
        ----------
        y, residual : arrays
        error : float
            How far y may be from the solution.
        """
        size = float(np.linalg.norm(residual))
        enough = max(self.alpha * error, SINGLE * size)
        solved = conjugate_gradients(
            lambda x: self.rough_kernel(x) + self.alpha * x,
            residual,
            lambda left: float(np.linalg.norm(left)) <= enough,
            precondition=self.precondition,
            stop=self._stop,
        )
        return y + solved.x, solved.residual

    def _stop(self) -> bool:
        return self._budget.exhausted
