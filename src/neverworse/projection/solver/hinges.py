"""The rows of the piecewise linear part of the dual: one hinge for each unlabeled row.

With one number per label, a hinge is max(0, -k_j·z). For several classes z has a row for each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.projection.coordinates.gram import Whitening
from neverworse.projection.coordinates.kernel import RowSpaceWhitening
from neverworse.projection.coordinates.matrix_free import WeightSpace
from neverworse.rows import DenseRows

FEW = 4  # taking one in so many rows is faster than reading all

Result = TypeVar("Result")


class Hinges(Protocol):
    """Whitened rows k_j and weights s_j of hinges."""

    @property
    def weights(self) -> Vector:
        """The weights s."""

    @property
    def rank(self) -> int:
        """Length of z."""

    def scores(self, z: Vector) -> Vector:
        """Return k_j·z for every row."""

    def adjoint(self, x: Vector) -> Vector:
        """Return Σ x_j k_j."""

    def adjoint_some(self, indices: Indices, x: Vector) -> Vector:
        """Return Σ s_j x_j k_j over the rows with these indices."""

    def take(self, indices: Indices) -> Matrix:
        """Return the whitened rows with these indices."""

    def map_taken(
        self,
        indices: Indices,
        pieces: Sequence[slice],
        function: Callable[[slice, Matrix], Result],
    ) -> Iterable[Result]:
        """Apply a function to pieces of the whitened rows with these indices, see `Rows`."""


@dataclass(frozen=True)
class LoadedHinges:
    """Whitened rows in memory: small problems, samples and working sets."""

    rows: DenseRows
    weights: Vector

    @property
    def rank(self) -> int:
        """See `Hinges`."""
        return self.rows.n_columns

    def scores(self, z: Vector) -> Vector:
        """See `Hinges`."""
        return self.rows.scores(z)

    def adjoint(self, x: Vector) -> Vector:
        """See `Hinges`."""
        return self.rows.weighted_sum(x)

    def adjoint_some(self, indices: Indices, x: Vector) -> Vector:
        """See `Hinges`."""
        return _adjoint_some(self, indices, x, FEW)

    def take(self, indices: Indices) -> Matrix:
        """See `Hinges`."""
        return self.rows.take(indices)

    def map_taken(
        self,
        indices: Indices,
        pieces: Sequence[slice],
        function: Callable[[slice, Matrix], Result],
    ) -> Iterable[Result]:
        """See `Hinges`."""
        return self.rows.map_taken(indices, pieces, function)


@dataclass(frozen=True)
class StreamedHinges:
    """Rows that are whitened on the way: every verb is one pass over all of them.

    Rows of weight zero, such as labeled ones, have no hinge: their scores are zero.
    """

    whitening: Whitening | RowSpaceWhitening | WeightSpace
    weights: Vector

    @cached_property
    def _without_hinge(self) -> Indices:
        return np.flatnonzero(self.weights == 0.0)

    @property
    def _takes(self) -> Whitening | RowSpaceWhitening:
        assert not isinstance(self.whitening, WeightSpace), "rows are too long to be taken"
        return self.whitening

    @property
    def rank(self) -> int:
        """See `Hinges`."""
        return self.whitening.rank

    def scores(self, z: Vector) -> Vector:
        """See `Hinges`."""
        direction = self.whitening.to_weights(z)
        t = self.whitening.rows.scores(direction.coef, direction.intercept)
        t[..., self._without_hinge] = 0.0
        return t

    def adjoint(self, x: Vector) -> Vector:
        """See `Hinges`."""
        return self.whitening.adjoint(self.whitening.rows.weighted_sum(x), x.sum(axis=-1))

    def adjoint_some(self, indices: Indices, x: Vector) -> Vector:
        """See `Hinges`."""
        # Single rows of very many columns are not taken: each would be long. Others are whitened,
        # which costs as much for each as a pass for as many rows as there are coordinates.
        few = 0 if isinstance(self.whitening, WeightSpace) else max(FEW, self.rank)
        return _adjoint_some(self, indices, x, few)

    def take(self, indices: Indices) -> Matrix:
        """See `Hinges`."""
        return self._takes.take(indices)

    def map_taken(
        self,
        indices: Indices,
        pieces: Sequence[slice],
        function: Callable[[slice, Matrix], Result],
    ) -> Iterable[Result]:
        """See `Hinges`."""
        return self._takes.map_taken(indices, pieces, function)

    def load(self, indices: Indices, factor: float = 1.0) -> LoadedHinges:
        """Return some of the rows, whitened once, with `factor` times their weights.

        Whitened piece by piece, so that no second copy of them is ever in memory.
        """
        loaded = np.empty((len(indices), self.rank))

        def place(piece: slice, whitened: Matrix) -> None:
            loaded[piece] = whitened

        deque(self.map_taken(indices, self._pieces(indices), place), maxlen=0)
        return LoadedHinges(DenseRows(loaded), factor * self.weights[indices])

    def keys(self, indices: Indices) -> NDArray[np.uint64]:
        """Return numbers that tell rows apart, see `keys_of`."""
        keys = np.empty(len(indices), np.uint64)

        def place(piece: slice, rows: Matrix) -> None:
            keys[piece] = keys_of(rows)

        rows = self.whitening.rows
        deque(rows.map_taken(indices, self._pieces(indices), place), maxlen=0)
        return keys

    def _pieces(self, indices: Indices) -> list[slice]:
        step = self.whitening.rows.block_rows
        return [slice(lo, lo + step) for lo in range(0, len(indices), step)]

    def load_copies(self, indices: Indices, rows: AnyArray, factor: float = 1.0) -> LoadedHinges:
        """Do the same for rows of which there are copies."""
        assert isinstance(self.whitening, Whitening), "others have their rows at hand"
        whitened = self.whitening.apply(rows.astype(np.float64))
        return LoadedHinges(DenseRows(whitened), factor * self.weights[indices])


def keys_of(rows: AnyArray) -> NDArray[np.uint64]:
    """Return a number for each row that is the same for equal rows, and seldom for others.

    It is the sum of the words of a row, well mixed: whole numbers differ in few bits only.
    """
    n_columns = rows.shape[1]
    odd = 2 * np.random.default_rng(0).integers(2**62, size=(n_columns,)) + 1
    keys = np.zeros(len(rows), np.uint64)
    for j in range(n_columns):  # nothing as large as the rows is made
        words = (rows[:, j].astype(np.float64) + 0.0).view(np.uint64)
        words ^= words >> np.uint64(29)
        keys += words * np.uint64(odd[j])
    return keys


def _adjoint_some(hinges: Hinges, indices: Indices, x: Vector, few: int) -> Vector:
    s = hinges.weights
    x = s[indices] * x
    if few and few * len(indices) < len(s):
        return x @ hinges.take(indices)
    every = np.zeros((*x.shape[:-1], len(s)))
    every[..., indices] = x
    return hinges.adjoint(every)
