r"""The linear system of a Newton step.

.. math:: \Big( C + \sigma \sum_j s_j P_j \otimes k_j k_j' \Big) x = b

P_j is the derivative of the nearest label of a row: the identity for the labels A_j that are
inside their range and zero for the others; less A_j A_j' / |A_j| if sets are coupled, where what
moves into one class leaves the others. Solved by the weights or by the rows, whichever are fewer,
and by conjugate gradients if both are many.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._conjugate_gradients import conjugate_gradients
from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.projection.coordinates.base import EPS
from neverworse.projection.label_sets import LabelSet
from neverworse.projection.solver.hinges import Hinges

PIECE = 2**17  # numbers in a piece of the rows that enter the Newton matrix
EQUATIONS_PER_UNKNOWN = 50  # that are enough to estimate the Newton matrix
LARGEST_SYSTEM = 4000  # unknowns (or equations) up to which a matrix is factored
CG_TOLERANCE = 1e-6  # beyond


def newton_step(
    hinges: Hinges,
    shape: LabelSet,
    soft: Matrix,
    curve: Matrix,
    sigma: float,
    gradient: Matrix,
    rough: bool,
) -> Matrix:
    """Solve for a Newton step.

    Parameters
    ----------
    hinges, shape
    soft : array of shape (n_classes, n_rows)
        The nearest labels.
    curve : array of shape (n_classes, rank)
        Diagonal of C.
    sigma : float
    gradient : array of shape (n_classes, rank)
        -b
    rough : bool
        Whether a sample of the rows will do for the matrix.
    """
    free = np.flatnonzero(shape.is_free(soft) & (hinges.weights > 0.0))
    if not free.size:
        return -gradient / curve
    inner = shape.at(free).inner(soft[:, free])
    system = _System(hinges, free, inner, curve, sigma, shape.is_coupled)
    return (system.sampled() if rough else system).solve(-gradient)


class _System:
    """The Newton system; see the module.

    Parameters
    ----------
    hinges : Hinges
    indices : array of int
        The rows whose labels are free.
    inner : boolean array of shape (n_classes, n_indices)
        A_j.
    curve : array of shape (n_classes, rank)
    sigma : float
    is_coupled : bool
    """

    def __init__(
        self,
        hinges: Hinges,
        indices: Indices,
        inner: Mask,
        curve: Matrix,
        sigma: float,
        is_coupled: bool,
    ) -> None:
        self.hinges = hinges
        self.indices = indices
        self.inner = inner
        self.curve = curve
        self.sigma = sigma
        self.is_coupled = is_coupled
        self.weights = sigma * hinges.weights[indices]
        self.count = inner.sum(axis=0)
        self.equations = int(self.count.sum()) - is_coupled * len(indices)
        # What every label of a row takes from all others that are inside.
        self.share = self.weights / self.count if is_coupled else np.zeros(len(indices))

    def sampled(self) -> _System:
        """Return an estimate of the system from some of the rows, if there are many."""
        factor = self.equations / (EQUATIONS_PER_UNKNOWN * self.curve.size)
        if factor <= 1.0:
            return self
        n = len(self.indices)
        size = max(1, int(n / factor))
        chosen = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
        indices, inner, sigma = self.indices[chosen], self.inner[:, chosen], self.sigma * n / size
        return _System(self.hinges, indices, inner, self.curve, sigma, self.is_coupled)

    def solve(self, right: Matrix) -> Matrix:
        """Solve by the rows if there are few, by the weights otherwise; iterate if it is large."""
        if min(self.equations, right.size) > LARGEST_SYSTEM:
            return self._solve_iteratively(right)
        if self.equations < right.size:
            return self._solve_by_rows(right)
        return _solve(self._matrix(), right.ravel()).reshape(right.shape)

    def _matrix(self) -> Matrix:
        """Return the matrix of the system; its lower triangle is enough."""
        n_classes, rank = self.curve.shape
        matrix = np.zeros((n_classes, rank, n_classes, rank))
        for k in range(n_classes):
            matrix[k, :, k] = self._block(k)
            for other in range(k if self.is_coupled else 0):
                both = np.flatnonzero(self.inner[k] & self.inner[other])
                matrix[k, :, other] = -self._gram(both, self.share[both])
        square = matrix.reshape(n_classes * rank, n_classes * rank)
        square.flat[:: len(square) + 1] += self.curve.ravel()
        return square

    def _block(self, k: int) -> Matrix:
        """Return the part of the matrix that belongs to one class, without C."""
        used = np.flatnonzero(self.inner[k])
        return self._gram(used, (self.weights - self.share)[used])

    def _gram(self, used: Indices, weights: Vector) -> Matrix:
        """Return Σ w k k' over some rows, with weights that are not negative."""
        n, rank = len(used), self.hinges.rank
        edges = np.linspace(0, n, max(1, n * rank // PIECE) + 1).astype(int)
        pieces = [slice(lo, hi) for lo, hi in pairwise(edges)]

        def gram(piece: slice, rows: Matrix) -> Matrix:
            rows = rows * np.sqrt(weights[piece])[:, None]
            product: Matrix = rows.T @ rows
            return product

        found = self.hinges.map_taken(self.indices[used], pieces, gram)
        return sum(found, np.zeros((rank, rank)))

    def _solve_by_rows(self, right: Matrix) -> Matrix:
        """Write each P_j as a sum of squares of orthogonal contrasts between labels."""
        row, contrast = self._contrasts()
        rows = self.hinges.take(self.indices)
        rows = (rows * np.sqrt(self.weights)[:, None])[row]
        # The rows of B are contrast ⊗ row; so are those of B C⁻¹, one class after the other.
        matrix = np.eye(len(row))
        at_right = np.zeros(len(row))
        for k in range(len(self.curve)):
            used = np.flatnonzero(contrast[:, k])
            part = contrast[used, k, None] * rows[used]
            scaled = part / self.curve[k]
            matrix[np.ix_(used, used)] += scaled @ part.T
            at_right[used] += scaled @ right[k]
        multiplier = _solve(matrix, at_right)
        return (right - (contrast * multiplier[:, None]).T @ rows) / self.curve

    def _contrasts(self) -> tuple[Indices, Matrix]:
        """Return contrasts of the labels of each row, and the row that each belongs to.

        For coupled classes 1 … m these are (1, -1, 0, …)/√2, (1, 1, -2, 0, …)/√6, and so on.
        """
        if not self.is_coupled:
            label, alone = np.nonzero(self.inner)
            return alone, np.eye(len(self.inner))[label]
        row, contrast = [], []
        place = np.where(self.inner, np.cumsum(self.inner, axis=0), 0)  # 1 … m, 0 if not inner
        for i in range(1, int(self.count.max())):
            chosen = np.flatnonzero(self.count > i)
            at = place[:, chosen]
            value = np.where((at >= 1) & (at <= i), 1.0, np.where(at == i + 1, -float(i), 0.0))
            row.append(chosen)
            contrast.append(value.T / np.sqrt(i * (i + 1.0)))
        return np.concatenate(row), np.concatenate(contrast)

    def _solve_iteratively(self, right: Matrix) -> Matrix:
        """Conjugate gradients, with the blocks of the single classes as preconditioner."""
        rows, inner = self.hinges.take(self.indices), self.inner.astype(np.float64)
        factors = []
        for k, curve in enumerate(self.curve):
            block = self._block(k)
            block.flat[:: len(block) + 1] += curve
            factors.append(linalg.cho_factor(block, lower=True, check_finite=False))

        def apply(x: Matrix) -> Matrix:
            t = inner * (x @ rows.T)
            moved = self.weights * t - inner * (self.share * t.sum(axis=0))
            product: Matrix = self.curve * x + moved @ rows
            return product

        def precondition(x: Matrix) -> Matrix:
            parts = zip(factors, x, strict=True)
            return np.array([linalg.cho_solve(f, part, check_finite=False) for f, part in parts])

        enough = CG_TOLERANCE * float(np.linalg.norm(right))
        return conjugate_gradients(
            apply,
            right,
            lambda residual: float(np.linalg.norm(residual)) <= enough,
            precondition=precondition,
        ).x


def _solve(matrix: Matrix, right: Vector) -> Vector:
    triangle, failed = lapack.dpotrf(matrix, lower=1, clean=0)
    shift = EPS * float(np.diag(matrix).max())
    while failed:  # rounding errors have left no positive definite matrix: a bit more of it
        shift *= 100.0
        matrix.flat[:: len(matrix) + 1] += shift
        triangle, failed = lapack.dpotrf(matrix, lower=1, clean=0)
    solution: Vector = lapack.dpotrs(triangle, right, lower=1)[0]
    return solution
