r"""A Newton step: its linear system, and how far to go along it.

.. math:: \Big( C + \sigma \sum_j s_j P_j \otimes k_j k_j' \Big) x = b

P_j is the derivative of the nearest label of a row: the identity for the labels A_j that are
inside their range and zero for the others; less A_j A_j' / |A_j| if sets are coupled, where what
moves into one class leaves the others. Solved by the weights or by the rows, whichever are fewer,
and by conjugate gradients if both are many.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._conjugate_gradients import conjugate_gradients
from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.projection.coordinates import EPS, LARGEST_GRAM
from neverworse.projection.label_sets import LabelSet
from neverworse.projection.solver.problem import FEW, Hinges
from neverworse.rows import BLOCK, blocks, map_in_threads

EQUATIONS_PER_UNKNOWN = 50  # that are enough to estimate the Newton matrix
SMALL = 1e-4  # relative error that is allowed on the way: of large systems, and of working sets


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
        if min(self.equations, right.size) > LARGEST_GRAM:
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
        edges = np.linspace(0, n, max(1, n * rank // (4 * BLOCK)) + 1).astype(int)
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

        enough = SMALL * float(np.linalg.norm(right))
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


class Slope:
    """The derivative of the augmented Lagrangian along a step; it increases.

    The soft labels at length a are the allowed ones nearest to q - σ (t + a · change).

    Parameters
    ----------
    shape : LabelSet
    q, t, change : arrays
    sigma : float
        The number σ.
    weights : array of shape (n_rows,)
        In the derivative, soft labels are multiplied with weights · change.
    soft : array
        The soft labels at length 0.
    """

    def __init__(
        self,
        shape: LabelSet,
        q: Matrix,
        t: Matrix,
        change: Matrix,
        sigma: float,
        weights: Vector,
        soft: Matrix,
    ) -> None:
        self._shape = shape
        self._q = q
        self._t = t
        self._change = change
        self._sigma = sigma
        self._weights = weights
        self._soft = soft
        self._between: tuple[Slope, Indices] | None = None
        self._found: tuple[float, Indices, Matrix] | None = None
        self.at_zero = 0.0
        self.quadratic = 0.0
        self.more: Callable[[float], float] | None = None

    def __call__(self, length: float) -> float:
        """Return the derivative at some length."""
        value = self.at_zero + length * self.quadratic
        if length != 0.0:
            value -= self._labels_part(length)
        return value if self.more is None else value + self.more(length)

    def labels(self, length: float) -> tuple[Indices, Matrix]:
        """Return the rows whose labels at some length differ from those at 0, and these labels."""
        if self._found is None or self._found[0] != length:
            self._labels_part(length)
        assert self._found is not None
        return self._found[1:]

    def _labels_part(self, length: float) -> float:
        """Return by how much Σ w·q differs from that at length 0.

        All points with the same nearest label form a convex set. So labels that are the same at
        both ends of the step are the same all along, and only the others are looked at.
        """
        if self._between is not None and length < 1.0:
            between, chosen = self._between
            total, rows, labels = between._evaluate(length)
            rows = chosen[rows]
        else:
            total, rows, labels = self._evaluate(length)
        if length == 1.0 and FEW * len(rows) < len(self._weights):
            between = Slope(
                self._shape.at(rows),
                self._q[:, rows],
                self._t[:, rows],
                self._change[:, rows],
                self._sigma,
                self._weights[rows],
                self._soft[:, rows],
            )
            self._between = between, rows
        self._found = length, rows, labels
        return total

    def _evaluate(self, length: float) -> tuple[float, Indices, Matrix]:
        """Return by how much Σ w·q differs from that at 0; the rows that do, and their labels."""

        def part(block: slice) -> tuple[float, Indices, Matrix]:
            change, soft = self._change[:, block], self._soft[:, block]
            at = length * change
            at += self._t[:, block]
            at *= -self._sigma
            at += self._q[:, block]
            q = self._shape.at(block).project(at)
            rows = rows_that_differ(q, soft)
            labels = q[:, rows]
            products = ((labels - soft[:, rows]) * change[:, rows]).sum(axis=0)
            return float(self._weights[block][rows] @ products), rows + block.start, labels

        parts = map_in_threads(part, blocks(self._change))
        totals, rows, labels = zip(*parts, strict=True)
        return sum(totals), np.concatenate(rows), np.concatenate(labels, axis=1)


def rows_that_differ(a: Matrix, b: Matrix) -> Indices:
    """Return the rows in which labels are not the same."""
    return np.flatnonzero((a != b).any(axis=0))


def line_search(slope: Slope) -> float:
    """Return a step length at which most of the slope is gone (0 if there is none to begin with).

    Newton's length is kept when it does. Otherwise the zero of the slope is bracketed and found by
    the Illinois variant of the secant rule.
    """
    at_zero, at_one = slope(0.0), slope(1.0)
    if at_zero >= 0.0:
        return 0.0
    if abs(at_one) <= 0.3 * abs(at_zero):
        return 1.0
    low, f_low, high, f_high = 0.0, at_zero, 1.0, at_one
    while f_high < 0.0 and high < 1e6:
        low, f_low, high = high, f_high, 2.0 * high
        f_high = slope(high)
    side = 0
    for _ in range(30):
        if f_high <= f_low:
            break
        length = low - f_low * (high - low) / (f_high - f_low)
        value = slope(length)
        if abs(value) <= 0.1 * abs(at_zero):
            return length
        if value < 0.0:
            low, f_low = length, value
            f_high *= 0.5 if side < 0 else 1.0
            side = -1
        else:
            high, f_high = length, value
            f_low *= 0.5 if side > 0 else 1.0
            side = 1
    return low or high
