"""The linear system of a Newton step."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import linalg
from scipy.linalg import lapack
from scipy.sparse.linalg import LinearOperator, cg

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.projection.label_sets import LabelSet, Simplex
from neverworse.projection.solver.hinges import Hinges
from neverworse.rows._threads import map_in_threads

PIECE = 2**17  # numbers in a piece of the rows that enter the Newton matrix
ROWS_PER_COLUMN = 100  # the Newton matrix is close enough when estimated from so many rows, ...
EQUATIONS_PER_UNKNOWN = 20  # ... or, with several classes, so many equations
EPS = float(np.finfo(np.float64).eps)
LARGEST_SYSTEM = 4000  # unknowns (or equations) up to which a matrix is factored
CG_TOLERANCE, CG_STEPS = 1e-6, 200  # beyond


def newton_step(
    hinges: Hinges,
    shape: LabelSet,
    soft: Vector,
    curve: Vector,
    sigma: float,
    gradient: Vector,
    rough: bool,
) -> Vector:
    """Solve (C + σ Σ_j s_j P_j ⊗ k_j k_j') step = -gradient.

    P_j is the derivative of the nearest label at a row, and zero for rows in a corner.

    Parameters
    ----------
    hinges, shape
    soft : array
        The nearest labels.
    curve : array like `gradient`
        Diagonal of C.
    sigma : float
    gradient : array
    rough : bool
        Whether a sample of the rows will do for the matrix.
    """
    between = np.flatnonzero(shape.is_free(soft) & (hinges.weights > 0.0))
    if not between.size:
        return -gradient / curve
    if isinstance(shape, Simplex):
        inner = shape.at(between).inner(soft[:, between])
        system = _ClassSystem(hinges, between, inner, curve, sigma)
        return (system.sampled() if rough else system).solve(-gradient)
    most = ROWS_PER_COLUMN * hinges.rank
    if rough and len(between) > most:
        sigma *= len(between) / most
        between = _sample(between, most)
    if len(between) < hinges.rank:
        rows = hinges.take(between) * np.sqrt(sigma * hinges.weights[between])[:, None]
        return _solve_by_rows(rows, curve, -gradient)
    matrix = _gram(hinges, between, sigma * hinges.weights[between])
    matrix.flat[:: hinges.rank + 1] += curve
    return _solve(matrix, -gradient)


def _sample(rows: Indices, size: int) -> Indices:
    """Return so many of the rows at random, in their order."""
    return np.sort(np.random.default_rng(0).choice(rows, size, replace=False))


def _gram(hinges: Hinges, indices: Indices, weights: Vector) -> Matrix:
    """Return Σ w k k' over some rows, with weights that are not negative."""
    rank = hinges.rank

    def gram(piece: slice, rows: Matrix) -> Matrix:
        rows = rows * np.sqrt(weights[piece])[:, None]
        product: Matrix = rows.T @ rows
        return product

    pieces = _pieces(len(indices), rank)
    return sum(hinges.map_taken(indices, pieces, gram), np.zeros((rank, rank)))


def _pieces(n: int, rank: int) -> list[slice]:
    """Return slices of so many rows, of at most about `PIECE` numbers each."""
    edges = np.linspace(0, n, max(1, n * rank // PIECE) + 1).astype(int)
    return [slice(lo, hi) for lo, hi in pairwise(edges)]


def _solve_by_rows(rows: Matrix, curve: Vector, right: Vector) -> Vector:
    """Solve (C + B'B) x = right, for fewer rows B than unknowns."""
    scaled = rows / curve
    matrix = scaled @ rows.T
    matrix.flat[:: len(rows) + 1] += 1.0
    solution: Vector = right / curve - _solve(matrix, scaled @ right) @ scaled
    return solution


def _solve(matrix: Matrix, right: Vector) -> Vector:
    triangle, failed = lapack.dpotrf(matrix, lower=1, clean=0)
    shift = EPS * float(np.diag(matrix).max())
    while failed:  # rounding errors have left no positive definite matrix: a bit more of it
        shift *= 100.0
        matrix.flat[:: len(matrix) + 1] += shift
        triangle, failed = lapack.dpotrf(matrix, lower=1, clean=0)
    solution: Vector = lapack.dpotrs(triangle, right, lower=1)[0]
    return solution


class _ClassSystem:
    """The Newton system of several classes.

    The label of row j moves within the classes A_j in which its share is inside its range, with
    P_j = diag(A_j) - A_j A_j' / |A_j|: what moves into one class leaves the others.

    Parameters
    ----------
    hinges : Hinges
    indices : array of int
        The rows with two or more classes inside.
    inner : boolean array of shape (n_classes, n_indices)
        A_j.
    curve : array of shape (n_classes, rank)
    sigma : float
    """

    def __init__(
        self, hinges: Hinges, indices: Indices, inner: Mask, curve: Vector, sigma: float
    ) -> None:
        self.hinges = hinges
        self.indices = indices
        self.inner = inner
        self.curve = curve
        self.count = np.count_nonzero(inner, axis=0)
        self.sigma = sigma
        self.weights = sigma * hinges.weights[indices]
        self.equations = int(self.count.sum()) - len(self.count)

    def sampled(self) -> _ClassSystem:
        """Return an estimate of the system from some of the rows, if there are many."""
        factor = self.equations / (EQUATIONS_PER_UNKNOWN * self.curve.size)
        if factor <= 1.0:
            return self
        n = len(self.indices)
        chosen = _sample(np.arange(n), max(1, int(n / factor)))
        return _ClassSystem(
            self.hinges,
            self.indices[chosen],
            self.inner[:, chosen],
            self.curve,
            self.sigma * n / len(chosen),
        )

    def solve(self, right: Vector) -> Vector:
        """Solve by the rows if there are few, by the weights otherwise; iterate if it is large."""
        if min(self.equations, right.size) > LARGEST_SYSTEM:
            return self._solve_iteratively(right)
        if self.equations < right.size:
            return self._solve_by_contrasts(right)
        return _solve(self._matrix(), right.ravel()).reshape(right.shape)

    def _matrix(self) -> Matrix:
        """Return the matrix of the system; its lower triangle is enough."""
        n_classes, rank = self.curve.shape
        matrix = np.zeros((n_classes, rank, n_classes, rank))
        for piece in _pieces(len(self.indices), rank):
            rows = self.hinges.take(self.indices[piece])
            inner, weights = self.inner[:, piece], self.weights[piece]
            share = weights / self.count[piece]

            def add(
                k: int,
                rows: Matrix = rows,
                inner: Mask = inner,
                own: Vector = weights,
                share: Vector = share,
            ) -> None:
                chosen = np.flatnonzero(inner[k])
                ours = rows[chosen]
                weighted = ours * share[chosen, None]
                for other in range(k):
                    both = np.flatnonzero(inner[other, chosen])
                    matrix[k, :, other] -= ours[both].T @ weighted[both]
                matrix[k, :, k] += ours.T @ (ours * (own - share)[chosen, None])

            map_in_threads(add, range(n_classes))
        square = matrix.reshape(n_classes * rank, n_classes * rank)
        square.flat[:: len(square) + 1] += self.curve.ravel()
        return square

    def _solve_by_contrasts(self, right: Vector) -> Vector:
        """Write each P_j as a sum of squares of orthogonal contrasts between classes."""
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
        """Return contrasts of the classes of each row, and the row that each belongs to.

        For classes 1 … m these are (1, -1, 0, …)/√2, (1, 1, -2, 0, …)/√6, and so on.
        """
        row, contrast = [], []
        place = np.where(self.inner, np.cumsum(self.inner, axis=0), 0)  # 1 … m, 0 if not inner
        for i in range(1, int(self.count.max())):
            chosen = np.flatnonzero(self.count > i)
            at = place[:, chosen]
            value = np.where((at >= 1) & (at <= i), 1.0, np.where(at == i + 1, -float(i), 0.0))
            row.append(chosen)
            contrast.append(value.T / np.sqrt(i * (i + 1.0)))
        return np.concatenate(row), np.concatenate(contrast)

    def _solve_iteratively(self, right: Vector) -> Vector:
        """Conjugate gradients, with the blocks of the single classes as preconditioner."""
        n_classes, rank = self.curve.shape
        rows, inner = self.hinges.take(self.indices), self.inner.astype(np.float64)
        share = self.weights / self.count
        factors = []
        for k in range(n_classes):
            used = np.flatnonzero(self.inner[k])
            block = _gram(self.hinges, self.indices[used], (self.weights - share)[used])
            block.flat[:: rank + 1] += self.curve[k]
            factors.append(linalg.cho_factor(block, lower=True, check_finite=False))

        def apply(x: Vector) -> Vector:
            v = x.reshape(n_classes, rank)
            t = inner * (v @ rows.T)
            t -= inner * (t.sum(axis=0) / self.count)
            product: Vector = (self.curve * v + (self.weights * t) @ rows).ravel()
            return product

        def precondition(x: Vector) -> Vector:
            parts = zip(factors, x.reshape(n_classes, rank), strict=True)
            return np.concatenate([linalg.cho_solve(f, p, check_finite=False) for f, p in parts])

        size = right.size
        solution, _ = cg(
            LinearOperator((size, size), apply, dtype=np.float64),
            right.ravel(),
            rtol=CG_TOLERANCE,
            maxiter=CG_STEPS,
            M=LinearOperator((size, size), precondition, dtype=np.float64),
        )
        return np.asarray(solution).reshape(right.shape)
