"""Coordinates of the weights: one protocol, three implementations.

Few columns: the Gram matrix is factored (`gram`). Fewer rows than columns: their kernel is
(`kernel`). Too many of both: nothing is, and linear systems are solved by conjugate gradients
(`matrix_free`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeVar

import numpy as np
from scipy import linalg

from neverworse._iterations import Solved
from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.rows import Rows

EPS = float(np.finfo(np.float64).eps)
HIGH = 1000  # columns from which on it pays to look at rows instead, if these are fewer
MOST_ROWS = 3000  # whose kernel is decomposed
LARGEST_GRAM = 5000  # columns up to which an n_features × n_features matrix is made

Result = TypeVar("Result")


@dataclass(frozen=True)
class Weights:
    """Linear functions of the features, coef·x + intercept: one for each class, or just one."""

    coef: Matrix  # (n_classes, n_columns)
    intercept: Vector  # (n_classes,)

    @classmethod
    def zero(cls, like: Matrix) -> Weights:
        return cls(np.zeros_like(like), np.zeros(len(like)))

    def __add__(self, other: Weights) -> Weights:
        return Weights(self.coef + other.coef, self.intercept + other.intercept)

    def __sub__(self, other: Weights) -> Weights:
        return Weights(self.coef - other.coef, self.intercept - other.intercept)

    def scaled(self, factor: float) -> Weights:
        return Weights(factor * self.coef, factor * self.intercept)

    def snapped(self, stored_less: float) -> Weights:
        """Return the nearest functions whose intercept less that number is a floating point number.

        Classifiers store the intercept less 0.5 as their ``intercept_``; adding 0.5 again is then
        exact.
        """
        return Weights(self.coef, (self.intercept - stored_less) + stored_less)

    @property
    def is_zero(self) -> bool:
        return not (np.any(self.coef) or np.any(self.intercept))


@dataclass(frozen=True)
class Points:
    """Where a distance between weights is measured: Σ s (v·x + b)² over some points x."""

    name: str  # of the distance, for messages
    # The points. None stands for the Euclidean distance of the weights themselves
    rows: Rows | None
    weights: Vector | None = None  # (n_points,): s; ones if None
    # (n_rows,): the same for all rows of the table, if the points are some of these
    table_weights: Vector | None = None
    with_one: bool = True  # whether the intercept b counts


class Coordinates(ABC):
    """Coordinates z of the weights v = Tz, about the mean of the rows: (n_classes, rank)."""

    rows: Rows  # the rows (perhaps shifted) that `mean` refers to
    mean: Vector  # (n_columns,): where the rows are centred
    offset: Vector  # (rank,): the row of T for the intercept of the centred rows
    # (n_columns,): weighted Euclidean norms of the columns of `rows`, not centred: what rounding
    # errors of scores are measured by
    column_norms: Vector
    # Whether T'HT is the identity. If not, it is known by its products only, and rows in these
    # coordinates are too long to be kept.
    is_whitened = False
    whitens_copies = False  # whether a copy of a row is the shortest way to its coordinates

    @property
    def rank(self) -> int:
        return len(self.offset)

    @property
    def centre(self) -> Vector:
        """The mean of the rows, before any shift."""
        return self.mean if self.rows.shift is None else self.mean + self.rows.shift

    @abstractmethod
    def coef(self, z: Matrix) -> Matrix:
        """Return the coefficients of Tz."""

    @abstractmethod
    def adjoint_coef(self, gradient: Matrix) -> Matrix:
        """Return T'(gradient, 0): vectors over the coefficients alone, in these coordinates."""

    @abstractmethod
    def with_total(self, size: float) -> Self:
        """Return the coordinates with one more, which adds `size` times itself to every score."""

    def with_intercept(self, total: float) -> Self:
        """Return the same with an intercept of unit length for rows of this weight, if any."""
        return self.with_total(1.0 / np.sqrt(total)) if total > 0.0 else self

    @abstractmethod
    def solve(self, p: Matrix, error: float) -> Solved:
        """Solve T'HTz = p until the error of ½ p·z is at most `error`."""

    @abstractmethod
    def in_distance(
        self, points: Points, stop: Callable[[], bool]
    ) -> tuple[Coordinates, Matrix] | None:
        """Return coordinates in which a distance is Euclidean, and these in terms of the present.

        Directions that the distance does not see are left out. None where `stop` says True.
        """

    def to_weights(self, z: Matrix) -> Weights:
        """Return the weights Tz, for unshifted and uncentred features."""
        coef = self.coef(z)
        return Weights(coef, z @ self.offset - coef @ self.centre)

    def adjoint(self, weighted_sum: Matrix, total: Vector) -> Matrix:
        """Return T'E'x, given E'x and the sum of x."""
        centred = weighted_sum - total[:, None] * self.mean
        return self.adjoint_coef(centred) + total[:, None] * self.offset

    def scores(self, z: Matrix) -> Matrix:
        """Return the scores of all rows."""
        w = self.to_weights(z)
        return self.rows.scores(w.coef, w.intercept)

    def apply(self, copies: AnyArray) -> Matrix:
        """Return copies of rows in these coordinates: T'(x - mean, 1)."""
        return self.adjoint(copies.astype(np.float64, copy=False), np.ones(len(copies)))

    def map_taken(
        self, indices: Indices, pieces: Sequence[slice], function: Callable[[slice, Matrix], Result]
    ) -> Iterable[Result]:
        """Apply a function to pieces of the rows with these indices, in coordinates; see `Rows`."""
        return self.rows.map_taken(
            indices, pieces, lambda piece, taken: function(piece, self.apply(taken))
        )


class WhitenedCoordinates(Coordinates):
    """Coordinates in which the quadratic part of the loss is the identity: T'HT = I."""

    is_whitened = True

    @abstractmethod
    def rotated(self, rotation: Matrix) -> Self:
        """Return the coordinates with basis T @ rotation."""

    @abstractmethod
    def form(self, points: Points) -> Matrix:
        """Return T'D'DT for the distance D that is measured at these points."""

    def solve(self, p: Matrix, error: float) -> Solved:  # noqa: ARG002
        return Solved(p, np.zeros_like(p), 0)

    def in_distance(
        self,
        points: Points,
        stop: Callable[[], bool],  # noqa: ARG002
    ) -> tuple[Self, Matrix]:
        values, vectors, largest = visible(self.form(points))
        rotation = vectors * np.sqrt(values / (largest or 1.0))
        return self.rotated(rotation), rotation


def svd(matrix: Matrix) -> tuple[Matrix, Vector, Matrix]:
    """Return the thin singular value decomposition of a finite matrix."""
    options = {"full_matrices": False, "check_finite": False}
    try:
        left, values, right = linalg.svd(matrix, **options)
    except linalg.LinAlgError:  # divide and conquer is fast, but does not always converge
        left, values, right = linalg.svd(matrix, lapack_driver="gesvd", **options)
    return left, values, right


def visible(form: Matrix) -> tuple[Vector, Matrix, float]:
    """Return the lengths (squared) and directions that a quadratic form sees, and the longest."""
    values, vectors = linalg.eigh(form)
    largest = float(values.max(initial=0.0))
    kept = values > len(values) * 16 * EPS * largest
    return values[kept], vectors[:, kept], largest


def suited(rows: Rows, n_used: int) -> Literal["Gram", "kernel", "matrix-free"]:
    """Return the kind of coordinates for this number of rows."""
    if rows.n_columns > HIGH and n_used < rows.n_columns and n_used <= MOST_ROWS:
        return "kernel"
    return "Gram" if rows.n_columns <= LARGEST_GRAM else "matrix-free"
