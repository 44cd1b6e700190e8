"""The problem that a solver solves: the nearest point of the constraint set, in coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from neverworse._typing import Indices, Mask, Matrix, Vector
from neverworse.projection.coordinates import EPS, Coordinates
from neverworse.projection.label_sets import LabelSet
from neverworse.projection.labels import Labels, implied_labels
from neverworse.projection.solver.passes import Scored
from neverworse.projection.totals import Totals

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
