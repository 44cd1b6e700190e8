"""The problem that the dual solver solves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neverworse._typing import Indices, Matrix, Scalars, Vector
from neverworse.projection.coordinates.gram import EPS, Whitening
from neverworse.projection.coordinates.kernel import RowSpaceWhitening
from neverworse.projection.coordinates.matrix_free import WeightSpace
from neverworse.projection.label_sets import LabelSet
from neverworse.projection.labels import Labels, RowLabels, RowStart
from neverworse.projection.solver.newton import is_optimal
from neverworse.projection.totals import Totals
from neverworse.rows import Rows
from neverworse.rows._chunk_state import ChunkState
from neverworse.rows._weigh import RowWeigh


@dataclass(frozen=True)
class Scored:
    """What a pass with the supervised weights leaves of some rows.

    Attributes
    ----------
    scores : array of shape (n_rows,) or (n_classes, n_rows)
    summed, total
        Σ x_i and their number, weighted once with s r for the residuals r = score - target, and
        once with ω q for the allowed soft labels q nearest to the scores.
    sample : array of shape (n, n_columns)
        Rows that were asked for.
    """

    scores: Vector
    summed: Vector
    total: Scalars
    sample: Matrix


@dataclass(frozen=True)
class Wanted:
    """Numbers of rows that shall be copied during a pass, in increasing order."""

    indices: Indices

    def at(self, rows: slice) -> Wanted:
        """Return those of some rows."""
        lo, hi = np.searchsorted(self.indices, [rows.start, rows.stop])
        return Wanted(self.indices[lo:hi] - rows.start)


def score_supervised(
    rows: Rows, coef: Vector, intercept: Scalars, wanted: Wanted, labels: RowLabels
) -> Scored:
    """Make the pass with the supervised weights over some rows."""
    scores, summed, total = rows.scores_and_sum(coef, intercept, RowWeigh(_weigh, (labels,)))
    sample = np.empty((0, rows.n_columns))
    if len(wanted.indices):
        sample = rows.take(wanted.indices)
    return Scored(scores, summed, total, sample)


def residual_sums(scored: Scored) -> tuple[Vector, Scalars]:
    """Return what the pass added up."""
    return scored.summed, scored.total


def squared_sizes(scored: Scored, labels: RowLabels) -> tuple[float, float]:
    """Return the weighted sums of squares of the scores and of the known labels."""
    s = np.ones(len(labels.width)) if labels.weights is None else labels.weights
    return float(((scored.scores**2) @ s).sum()), float(((labels.target**2) @ s).sum())


def sample_of(scored: Scored) -> Matrix:
    """Return the rows that were asked for."""
    return scored.sample


def row_start(scored: Scored, labels: RowLabels) -> RowStart:
    """Return the soft labels that would reproduce the scores."""
    return RowStart(scored.scores, labels.target, labels.width)


@dataclass(frozen=True)
class Start:
    """Soft labels of all rows that would reproduce the supervised scores.

    Attributes
    ----------
    scored : ChunkState
        The supervised scores, where the rows are.
    labels : Labels
    """

    scored: ChunkState
    labels: Labels

    def scores(self) -> Vector:
        """Return the supervised scores of all rows."""
        found = self.scored.map(_all_scores)
        return found[0] if len(found) == 1 else np.concatenate(found, axis=-1)

    def at(self, rows: Any = None) -> Vector:
        """Return the labels of some rows (increasing indices or a mask), or of all."""
        labels = self.labels
        if rows is None:
            return RowStart(self.scores(), labels.target, labels.width).at(slice(None))
        indices = np.flatnonzero(rows) if rows.dtype == bool else rows
        scores = self.scored.pick(_some_scores, indices)
        start = RowStart(scores, labels.target[..., indices], labels.width[indices])
        return start.at(slice(None))


def _weigh(scores: Vector, labels: RowLabels) -> Vector:
    residual = scores - labels.target
    if labels.weights is not None:
        residual *= labels.weights
    near = RowStart(scores, labels.target, labels.width).at(slice(None))
    near = np.where(labels.hinge > 0.0, labels.hinge * labels.shape.project(near), 0.0)
    return np.concatenate([np.atleast_2d(residual), np.atleast_2d(near)])


def _all_scores(scored: Scored) -> Vector:
    return scored.scores


def _some_scores(scored: Scored, indices: Indices) -> Vector:
    return scored.scores[..., indices]


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
    """The problem that the dual solver solves.

    Attributes
    ----------
    whitening : Whitening, RowSpaceWhitening or WeightSpace
        Coordinates z of the dual directions. The distance is Euclidean in the first two.
    linear : array of shape (rank,) or (n_classes, rank)
        The linear term l of the dual.
    first : array like `linear`
        Σ s_j q_j k_j for the allowed labels q nearest to `start`.
    first_total : float or array of shape (n_classes,)
        Σ s_j q_j of these.
    weights : array of shape (n_rows,)
        Weights of the unlabeled rows; zero for all other rows.
    placed : ChunkState
        What is known about the labels, where the rows are: see `RowLabels`.
    start : Start
        Soft labels that would reproduce the supervised scores, allowed or not.
    shape : LabelSet
        Where soft labels lie.
    totals : Totals, optional
        Restriction of their totals, in the units of the last coordinate, which then belongs to it.
    length : float, optional
        Of the linear term; Euclidean if not given.
    sample : Sample, optional
        Rows that are at hand.
    """

    whitening: Whitening | RowSpaceWhitening | WeightSpace
    linear: Vector
    first: Vector
    first_total: Scalars
    weights: Vector
    placed: ChunkState
    start: Start
    shape: LabelSet
    totals: Totals | None = None
    length: float | None = None
    sample: Sample | None = None

    @property
    def floor(self) -> float:
        """A squared distance (halved) that cannot be told from zero."""
        length = np.linalg.norm(self.linear) if self.length is None else self.length
        size = float(length + np.sqrt(self.weights.sum()))
        return ZERO * size**2

    def with_totals(self, totals: Totals) -> Projection:
        """Return the problem with totals restricted: one more coordinate, of unit length.

        Parameters
        ----------
        totals : Totals
            Of the weighted soft labels.
        """
        size = 1.0 / np.sqrt(self.weights.sum())
        total = size * np.asarray(self.first_total)[..., None]
        return replace(
            self,
            whitening=self.whitening.with_total(size),
            linear=np.concatenate([self.linear, np.zeros_like(total)], axis=-1),
            first=np.concatenate([self.first, total], axis=-1),
            totals=totals.scaled(size),
        )


@dataclass(frozen=True)
class Solution:
    """A dual point with the soft labels that prove how good it is, wherever these are.

    Attributes
    ----------
    z, gap, value
        See `DualSolution`.
    q : array of shape (n_unlabeled,) or (n_classes, n_unlabeled)
        Soft labels of the unlabeled rows.
    """

    z: Vector
    q: Vector
    gap: float
    value: float

    def is_optimal(self, tol: float, floor: float) -> bool:
        """See `DualSolution`."""
        return is_optimal(self.gap, self.value, tol, floor)
