"""The dual problem: what is minimised over soft labels, and the rows that it consists of.

Every unlabeled row is a hinge of the piecewise linear part: max(0, -k_j·z) for a label of one
number. For several classes z has a row for each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse.projection.coordinates.base import EPS, Coordinates, Result
from neverworse.projection.label_sets import LabelSet
from neverworse.projection.labels import Labels, implied_labels
from neverworse.projection.solver.passes import Scored
from neverworse.projection.totals import Totals
from neverworse.rows import DenseRows

FEW = 4  # taking one in this many rows is faster than reading all


class Hinges(ABC):
    """Rows k_j in the coordinates of the dual, and weights s_j of their hinges.

    Attributes
    ----------
    weights : array of shape (n_rows,)
        s.
    """

    weights: Vector

    @property
    @abstractmethod
    def rank(self) -> int:
        """Length of z."""

    @property
    @abstractmethod
    def taking_costs(self) -> float:
        """What taking a row costs, in units of reading one."""

    @abstractmethod
    def scores(self, z: Matrix) -> Matrix:
        """Return k_j·z for every row."""

    @abstractmethod
    def adjoint(self, x: Matrix) -> Matrix:
        """Return Σ x_j k_j."""

    @abstractmethod
    def map_taken(
        self,
        indices: Indices,
        pieces: Sequence[slice],
        function: Callable[[slice, Matrix], Result],
    ) -> Iterable[Result]:
        """Apply a function to pieces of the rows k with these indices, see `Rows`."""

    def take(self, indices: Indices) -> Matrix:
        """Return the rows k with these indices."""
        taken = np.empty((len(indices), self.rank))

        def place(piece: slice, rows: Matrix) -> None:
            taken[piece] = rows

        deque(self.map_taken(indices, [slice(0, len(indices))], place), maxlen=0)
        return taken

    def adjoint_some(self, indices: Indices, x: Matrix) -> Matrix:
        """Return Σ s_j x_j k_j over the rows with these indices."""
        x = self.weights[indices] * x
        if self.taking_costs * len(indices) < len(self.weights):
            return x @ self.take(indices)
        every = np.zeros((len(x), len(self.weights)))
        every[:, indices] = x
        return self.adjoint(every)


@dataclass(frozen=True)
class LoadedHinges(Hinges):
    """Rows in memory: small problems, samples and working sets."""

    rows: DenseRows
    weights: Vector

    taking_costs = FEW

    @property
    def rank(self) -> int:
        """See `Hinges`."""
        return self.rows.n_columns

    def scores(self, z: Matrix) -> Matrix:
        return self.rows.scores(z, np.zeros(len(z)))

    def adjoint(self, x: Matrix) -> Matrix:
        return self.rows.weighted_sum(x)

    def take(self, indices: Indices) -> Matrix:
        return self.rows.take(indices)

    def map_taken(
        self,
        indices: Indices,
        pieces: Sequence[slice],
        function: Callable[[slice, Matrix], Result],
    ) -> Iterable[Result]:
        return self.rows.map_taken(indices, pieces, function)


@dataclass(frozen=True)
class StreamedHinges(Hinges):
    """Rows whose coordinates are computed on the way: every verb is one pass over all of them.

    Rows of weight zero, such as labeled ones, have no hinge: their scores are zero.
    """

    coordinates: Coordinates
    weights: Vector

    @cached_property
    def _without_hinge(self) -> Indices:
        return np.flatnonzero(self.weights == 0.0)

    @property
    def rank(self) -> int:
        """See `Hinges`."""
        return self.coordinates.rank

    @property
    def taking_costs(self) -> float:
        """See `Hinges`: as much as a pass for as many rows as there are coordinates.

        Where coordinates are as many as very many columns, no row is taken.
        """
        return max(FEW, self.rank) if self.coordinates.is_whitened else np.inf

    def scores(self, z: Matrix) -> Matrix:
        t = self.coordinates.scores(z)
        t[:, self._without_hinge] = 0.0
        return t

    def adjoint(self, x: Matrix) -> Matrix:
        return self.coordinates.adjoint(self.coordinates.rows.weighted_sum(x), x.sum(axis=1))

    def map_taken(
        self,
        indices: Indices,
        pieces: Sequence[slice],
        function: Callable[[slice, Matrix], Result],
    ) -> Iterable[Result]:
        return self.coordinates.map_taken(indices, pieces, function)

    def load(
        self, indices: Indices, copies: AnyArray | None = None, factor: float = 1.0
    ) -> LoadedHinges:
        """Return some of the rows in coordinates, with `factor` times their weights.

        Piece by piece, so that no second copy of them is ever in memory.

        Parameters
        ----------
        indices : array of int
        copies : array of shape (n, n_columns), optional
            These rows, if they are at hand.
        factor : float
        """
        loaded = np.empty((len(indices), self.rank))

        def place(piece: slice, rows: Matrix) -> None:
            loaded[piece] = rows

        pieces = self._pieces(len(indices))
        if copies is None:
            deque(self.map_taken(indices, pieces, place), maxlen=0)
        else:
            for piece in pieces:
                place(piece, self.coordinates.apply(copies[piece].astype(np.float64)))
        return LoadedHinges(DenseRows(loaded), factor * self.weights[indices])

    def keys(self, indices: Indices) -> NDArray[np.uint64]:
        """Return numbers that tell rows apart, see `keys_of`."""
        rows = self.coordinates.rows
        found = rows.map_taken(indices, self._pieces(len(indices)), lambda _, taken: keys_of(taken))
        return np.concatenate([np.empty(0, np.uint64), *found])

    def _pieces(self, n: int) -> list[slice]:
        step = self.coordinates.rows.block_rows
        return [slice(lo, lo + step) for lo in range(0, n, step)]


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


ZERO = 8 * EPS  # a squared distance of so small a fraction of what is added up is zero


@dataclass(frozen=True)
class Sample:
    """Unlabeled rows that were copied on the way, where taking them would take a pass.

    Attributes
    ----------
    indices : array of int
        In increasing order.
    rows : array of shape (n, n_columns)
    """

    indices: Indices
    rows: Matrix


@dataclass(frozen=True)
class Projection:
    r"""Half the squared distance from the constraint set, to be minimised over soft labels.

    .. math:: \tfrac12 \lVert z \rVert^2, \qquad z = \sum_j s_j q_j k_j - l .

    Attributes
    ----------
    coordinates : Coordinates
        Of dual directions. The distance is Euclidean in them, unless they are not whitened.
    linear : array of shape (n_classes, rank)
        The vector l.
    first : array like `linear`
        Σ s_j q_j k_j for the allowed labels q nearest to the supervised scores.
    first_total : array of shape (n_classes,)
        Σ s_j q_j of these.
    weights : array of shape (n_rows,)
        Weights of the unlabeled rows; zero for all other rows.
    training_labels : Labels
        Of all rows.
    labels, scored : kept
        The same where the rows are (`RowLabels`), and the supervised scores (`Scored`).
    totals : Totals, optional
        Restriction of their totals, in the units of the last coordinate, which then belongs to it.
    length : float, optional
        Of the linear term; Euclidean if not given.
    sample : Sample, optional
        Rows that are at hand.
    """

    coordinates: Coordinates
    linear: Matrix
    first: Matrix
    first_total: Vector
    weights: Vector
    training_labels: Labels
    labels: Any
    scored: Any
    totals: Totals | None = None
    length: float | None = None
    sample: Sample | None = None

    @property
    def shape(self) -> LabelSet:
        """Where soft labels lie."""
        return self.training_labels.shape

    @property
    def unlabeled(self) -> Mask:
        """Which rows have an unknown label."""
        return self.training_labels.unlabeled

    @cached_property
    def floor(self) -> float:
        """A squared distance (halved) that cannot be told from zero."""
        length = np.linalg.norm(self.linear) if self.length is None else self.length
        size = float(length + np.sqrt(self.weights.sum()))
        return ZERO * size**2

    def start(self, indices: Indices | None = None) -> Matrix:
        """Return the soft labels of some or all rows that would reproduce the supervised scores.

        Allowed or not.

        Parameters
        ----------
        indices : array of int, optional
            In increasing order.
        """
        labels, rows = self.training_labels, self.coordinates.rows
        if indices is None:
            scores = np.concatenate(rows.ask(Scored.all_scores, (self.scored,)), axis=1)
            return implied_labels(scores, labels.target, labels.width)
        scores = rows.pick(Scored.scores_at, self.scored, indices)
        return implied_labels(scores, labels.target[:, indices], labels.width[indices])

    def with_totals(self, totals: Totals) -> Projection:
        """Return the problem with totals restricted: one more coordinate, of unit length.

        Parameters
        ----------
        totals : Totals
            Of the weighted soft labels.
        """
        size = 1.0 / np.sqrt(self.weights.sum())
        return replace(
            self,
            coordinates=self.coordinates.with_total(size),
            linear=np.column_stack([self.linear, np.zeros(len(self.linear))]),
            first=np.column_stack([self.first, size * self.first_total]),
            totals=totals.scaled(size),
        )
