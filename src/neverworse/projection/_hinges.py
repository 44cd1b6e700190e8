"""The rows of the piecewise linear part of the dual: one hinge for each unlabeled row.

With one number per label, a hinge is max(0, -k_j·z). For several classes z has a row for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from neverworse._typing import Indices, Matrix, Vector
from neverworse.projection._whitening import Whitening
from neverworse.rows import DenseRows
from neverworse.rows._base import Weigh
from neverworse.rows._threads import map_in_threads


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

    def pull(self, x: Vector) -> Vector:
        """Return Σ x_j k_j."""

    def take(self, indices: Indices) -> Matrix:
        """Return the whitened rows with these indices."""


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

    def pull(self, x: Vector) -> Vector:
        """See `Hinges`."""
        return self.rows.weighted_sum(x)

    def take(self, indices: Indices) -> Matrix:
        """See `Hinges`."""
        return self.rows.take(indices)


@dataclass(frozen=True)
class StreamedHinges:
    """Rows that are whitened on the way: every verb is one pass over all of them.

    Rows of weight zero, such as labeled ones, have no hinge: their scores are zero.
    """

    whitening: Whitening
    weights: Vector

    @cached_property
    def _without_hinge(self) -> Indices:
        return np.flatnonzero(self.weights == 0.0)

    @property
    def rank(self) -> int:
        """See `Hinges`."""
        return self.whitening.rank

    def scores(self, z: Vector) -> Vector:
        """See `Hinges`."""
        direction = self.whitening.push(z)
        t = self.whitening.rows.scores(direction.coef, direction.intercept)
        t[..., self._without_hinge] = 0.0
        return t

    def scores_and_pull(self, z: Vector, weigh: Weigh) -> tuple[Vector, Vector]:
        """Return the scores t of z and Σ s_j x_j k_j with x = weigh(t, rows), in one pass."""
        s, direction = self.weights, self.whitening.push(z)
        t, summed, total = self.whitening.rows.scores_and_sum(
            direction.coef, direction.intercept, lambda t, rows: s[rows] * weigh(t, rows)
        )
        t[..., self._without_hinge] = 0.0
        return t, self.whitening.pull(summed, total)

    def pull(self, x: Vector) -> Vector:
        """See `Hinges`."""
        return self.whitening.pull(self.whitening.rows.weighted_sum(x), x.sum(axis=-1))

    def take(self, indices: Indices) -> Matrix:
        """See `Hinges`."""
        return self.whitening.take(indices)

    def load(self, indices: Indices, factor: float = 1.0) -> LoadedHinges:
        """Return some of the rows, whitened once, with `factor` times their weights.

        Whitened piece by piece, so that no second copy of them is ever in memory.
        """
        loaded = np.empty((len(indices), self.rank))
        step = self.whitening.rows.block_rows

        def piece(lo: int) -> None:
            loaded[lo : lo + step] = self.take(indices[lo : lo + step])

        map_in_threads(piece, range(0, len(indices), step))
        return LoadedHinges(DenseRows(loaded), factor * self.weights[indices])
