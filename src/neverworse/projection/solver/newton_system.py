r"""A Newton step: its linear system, and how far to go along it.

.. math:: \Big( C + \sigma \sum_j s_j P_j \otimes k_j k_j' \Big) x = b

P_j is the derivative of the nearest label of a row: the identity for the labels A_j that are
inside their range and zero for the others. If sets are coupled, what moves into one class leaves
the others, and P_j is a sum over pairs of these labels, which makes the matrix that of a graph:

.. math:: P_j = \frac1{|A_j|} \sum_{k < l \in A_j} (e_k - e_l)(e_k - e_l)' .

The system is solved by the weights (of their Gram matrix, only the rows that have come and gone
since the last step are added up) or by the rows, whichever are fewer, and by conjugate gradients if
both are many, or if the pairs are: adding up their Gram matrices takes longer than iterating.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from neverworse._iterations import conjugate_gradients
from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.projection.coordinates import EPS, LARGEST_GRAM
from neverworse.projection.label_sets import Curvature, LabelSet
from neverworse.projection.labels import rows_that_differ
from neverworse.projection.solver.problem import TAKING_COST, Hinges
from neverworse.rows import blocks, map_in_threads

MOST_SHARING = 8  # classes that share the label of a row, on average, for which pairs are formed
ROUGH = 0.01  # relative accuracy that will do on the way: of samples, rounds and large systems


@dataclass(frozen=True)
class NewtonSystem:
    """The linear system of a Newton step; see the module."""

    hinges: Hinges
    indices: Indices  # the rows whose labels are free
    inner: Mask  # (n_classes, n_indices): A_j
    curve: Matrix  # (n_classes, rank): diagonal of C
    sigma: float
    is_coupled: bool

    @cached_property
    def weights(self) -> Vector:
        return self.sigma * self.hinges.weights[self.indices]

    @cached_property
    def count(self) -> Indices:
        return np.count_nonzero(self.inner, axis=0)

    @property
    def equations(self) -> int:
        return int(self.count.sum()) - len(self.indices) if self.is_coupled else len(self.indices)

    def solve(self, right: Matrix) -> Matrix:
        """Solve by the rows if there are few, by the weights otherwise; iterate if it is large."""
        many_pairs = self.is_coupled and self.count @ self.count > MOST_SHARING * self.count.sum()
        if min(self.equations, right.size) > LARGEST_GRAM or many_pairs:
            return self._solve_iteratively(right)
        if self.equations < right.size:
            return self._solve_by_rows(right)
        return _solve(self._matrix(), right.ravel()).reshape(right.shape)

    def _matrix(self) -> Matrix:
        """Return the matrix of the system; its lower triangle is enough."""
        hinges, unknowns = self.hinges, self.curve.size
        if self.is_coupled:
            square = hinges.summed(self.indices, self._part, 2 * self.curve.shape)
            square = square.reshape(unknowns, unknowns)
        else:
            square = self.sigma * hinges.gram(self.indices, ROUGH / self.sigma)
        square.flat[:: unknowns + 1] += self.curve.ravel()
        return square

    def _part(self, piece: slice, rows: Matrix) -> Matrix:
        """Return what some rows add to the matrix, of shape (n_classes, rank, n_classes, rank)."""
        rows = rows * np.sqrt(self.weights[piece] / self.count[piece])[:, None]
        matrix = np.zeros(2 * self.curve.shape)
        for k, other, used in _pairs(self.inner[:, piece]):
            some = rows[used]
            gram = some.T @ some
            matrix[k, :, k] += gram
            matrix[other, :, other] += gram
            matrix[other, :, k] -= gram
        return matrix

    def _solve_by_rows(self, right: Matrix) -> Matrix:
        """Write each P_j as a sum of squares of orthogonal contrasts between labels."""
        row, contrast = self._contrasts()
        rows, root = self.hinges.take(self.indices), np.sqrt(self.weights)
        if not self.is_coupled and (self.curve == 1.0).all():
            matrix = self.hinges.products(self.indices, rows)
            matrix *= root
            matrix *= root[:, None]
            matrix.flat[:: len(matrix) + 1] += 1.0
            multiplier = root * _solve(matrix, root * (rows @ right[0]))
            return right - multiplier @ rows
        rows = (rows * root[:, None])[row]
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
            return np.arange(len(self.indices)), np.ones((len(self.indices), 1))
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
        rows = self.hinges.take(self.indices)
        curvature = Curvature(self.inner, self.weights, self.is_coupled)
        factors = []
        for inner, curve in zip(self.inner, self.curve, strict=True):
            own = self.weights * (1.0 - 1.0 / self.count if self.is_coupled else 1.0)
            part = rows[inner] * np.sqrt(own[inner])[:, None]
            block = part.T @ part
            block.flat[:: len(block) + 1] += curve
            factors.append(linalg.cho_factor(block, lower=True, check_finite=False))

        def precondition(x: Matrix) -> Matrix:
            parts = zip(factors, x, strict=True)
            return np.array([linalg.cho_solve(f, part, check_finite=False) for f, part in parts])

        enough = ROUGH * float(np.linalg.norm(right))
        return conjugate_gradients(
            lambda x: self.curve * x + curvature(x @ rows.T) @ rows,
            right,
            lambda residual: float(np.linalg.norm(residual)) <= enough,
            precondition=precondition,
        ).x


def _pairs(inner: Mask) -> Iterator[tuple[int, int, Indices]]:
    """Yield pairs of classes, and the rows in which both labels are inside."""
    row, label = np.nonzero(inner.T)
    rows, codes = [], []
    for apart in range(1, int(np.count_nonzero(inner, axis=0).max(initial=0))):
        same = np.flatnonzero(row[apart:] == row[:-apart])
        rows.append(row[same])
        codes.append(label[same] * len(inner) + label[same + apart])
    if rows:
        code = np.concatenate(codes)
        order = np.argsort(code, kind="stable")
        at, code = np.concatenate(rows)[order], code[order]
        for used in np.split(np.arange(len(code)), np.flatnonzero(np.diff(code)) + 1):
            yield *divmod(int(code[used[0]]), len(inner)), at[used]


def _solve(matrix: Matrix, right: Vector) -> Vector:
    triangle, failed = lapack.dpotrf(matrix, lower=1, clean=0)
    factor = EPS
    while failed:  # rounding errors have left no positive definite matrix: a bit more of it
        factor *= 100.0
        matrix.flat[:: len(matrix) + 1] += factor * float(np.diag(matrix).max())
        triangle, failed = lapack.dpotrf(matrix, lower=1, clean=0)
    return lapack.dpotrs(triangle, right, lower=1)[0]


class Found(NamedTuple):
    """What is found at some length along a step."""

    length: float
    slope: float  # the derivative of the augmented Lagrangian, which increases
    # The rows whose labels differ from those at length 0, and these labels
    rows: Indices
    labels: Matrix


@dataclass(frozen=True)
class Step:
    """A step along which scores change: labels are the allowed ones nearest to q - σ (t + a Δt)."""

    shape: LabelSet
    # (n_classes, n_rows): the centre q, scores t, how they change, and labels at length a = 0
    centre: Matrix
    scores: Matrix
    change: Matrix
    soft: Matrix
    sigma: float
    weights: Vector  # (n_rows,): in the slope, labels are multiplied with weights · change
    # Slope at length 0, curvature of the quadratic terms, and the slope of what else there is
    at_zero: float
    quadratic: float
    more: Callable[[float], float] | None
    rows: Indices | None = None  # which rows these are, if not all

    def among(self, rows: Indices) -> Step:
        """Return the step for some rows: those whose labels change at all.

        All points with the same nearest label form a convex set. So labels that are the same at
        both ends of the step are the same all along.
        """
        arrays = ("centre", "scores", "change", "soft")
        taken = {name: getattr(self, name).take(rows, axis=1) for name in arrays}
        shape, weights = self.shape.at(rows), self.weights[rows]
        return replace(self, shape=shape, weights=weights, rows=rows, **taken)

    def at(self, length: float) -> Found:
        value = self.at_zero + length * self.quadratic
        if self.more is not None:
            value += self.more(length)
        if length == 0.0:
            return Found(length, value, np.empty(0, np.intp), self.soft[:, :0])
        parts = map_in_threads(partial(self._part, length), blocks(self.change))
        totals, rows, labels = zip(*parts, strict=True)
        differ = np.concatenate(rows)
        if self.rows is not None:
            differ = self.rows[differ]
        return Found(length, value - sum(totals), differ, np.concatenate(labels, axis=1))

    def _part(self, length: float, block: slice) -> tuple[float, Indices, Matrix]:
        """Return by how much Σ w·q differs from that at 0; the rows that do, and their labels."""
        change, soft = self.change[:, block], self.soft[:, block]
        at = length * change
        at += self.scores[:, block]
        at *= -self.sigma
        at += self.centre[:, block]
        q = self.shape.at(block).project(at)
        rows = rows_that_differ(q, soft)
        labels = q.take(rows, axis=1)
        moved = labels - soft.take(rows, axis=1)
        products = (moved * change.take(rows, axis=1)).sum(axis=0)
        return float(self.weights[block][rows] @ products), rows + block.start, labels


def line_search(step: Step) -> Found:
    """Return a length at which most of the slope is gone (0 if there is none to begin with).

    Newton's length is kept when it does. Otherwise the zero of the slope is bracketed and found by
    the Illinois variant of the secant rule.
    """
    low, high = step.at(0.0), step.at(1.0)
    at_zero = low.slope
    if at_zero >= 0.0 or abs(high.slope) <= 0.3 * abs(at_zero):
        return low if at_zero >= 0.0 else high
    if high.slope > 0.0 and TAKING_COST * len(high.rows) < len(step.weights):
        step = step.among(high.rows)
    while high.slope < 0.0 and high.length < 1e6:
        low, high = high, step.at(2.0 * high.length)
    f_low, f_high, side = low.slope, high.slope, 0
    for _ in range(30):
        if f_high <= f_low:
            break
        found = step.at(low.length - f_low * (high.length - low.length) / (f_high - f_low))
        if abs(found.slope) <= 0.1 * abs(at_zero):
            return found
        if found.slope < 0.0:
            low, f_low = found, found.slope
            f_high *= 0.5 if side < 0 else 1.0
            side = -1
        else:
            high, f_high = found, found.slope
            f_low *= 0.5 if side > 0 else 1.0
            side = 1
    return low if low.length else high
