"""The problem that the dual solver solves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from neverworse._typing import Indices, Matrix, Scalars, Vector
from neverworse.projection.coordinates.gram import EPS, Whitening
from neverworse.projection.coordinates.kernel import RowSpaceWhitening
from neverworse.projection.coordinates.matrix_free import WeightSpace
from neverworse.projection.label_sets import Shape
from neverworse.projection.start import Start
from neverworse.projection.totals import Totals
from neverworse.rows._kept import Kept

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
    placed : Kept
        What is known about the labels, where the rows are: see `RowLabels`.
    start : Start
        Soft labels that would reproduce the supervised scores, allowed or not.
    shape : Shape
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
    placed: Kept
    start: Start
    shape: Shape
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
