"""What the likelihood of Gaussian classes needs to know of the rows.

*Class sums* are arrays of shape (n_classes, 1 + n_columns): for each class the weight of its rows,
and the weighted sum of these rows measured from their common centre. A soft label counts for every
class by its share. Together with the scatter matrix of all rows, on which labels have no influence,
they are all that maximum likelihood depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from neverworse._typing import Mask, Matrix, Vector
from neverworse.methods.discriminant._gaussian import uncentred
from neverworse.projection import Labels
from neverworse.projection.coordinates.moments import moments
from neverworse.rows import Rows

# Columns whose sum of squares is so many times larger than that about their mean are shifted:
# inverting their covariance would magnify the digits that are lost.
FAR = 1e4


@dataclass(frozen=True)
class Sample:
    """Weighted rows, some of a known class.

    Attributes
    ----------
    rows : Rows
        Shifted where that was needed for accuracy.
    offset : array of shape (n_columns,)
        Mean of `rows`, after their shift.
    total : float
        Sum of the weights.
    scatter : array of shape (n_columns, n_columns)
        Weighted sum of (x - centre)(x - centre)'.
    raw : array of shape (n_columns,)
        Weighted sum of squares of `rows`: the size of what was added up.
    varies : boolean array of shape (n_columns,)
        False for constant columns.
    known : array of shape (n_classes, 1 + n_columns)
        Class sums of the labeled rows.
    free : array of shape (n_rows,)
        Weights of the unlabeled rows; zero for the labeled ones.
    """

    rows: Rows
    offset: Vector
    total: float
    scatter: Matrix
    raw: Vector
    varies: Mask
    known: Matrix
    free: Vector

    @classmethod
    def of(cls, rows: Rows, target: Matrix, weights: Vector, unlabeled: Mask) -> Sample:
        """Add up the rows.

        Parameters
        ----------
        rows : Rows
        target : array of shape (n_classes, n_rows)
            One for the class of a row, zero for others. Of unlabeled rows, anything.
        weights : array of shape (n_rows,)
        unlabeled : boolean array of shape (n_rows,)
        """
        sums = moments(rows, weights, centre=True)
        if rows.shift is None and np.any(sums.raw > FAR * np.diag(sums.gram), where=sums.varies):
            sums = moments(rows.shifted(sums.mean), weights, centre=True)
        free = np.where(unlabeled, weights, 0.0)
        sample = cls(
            sums.rows, sums.mean, sums.total, sums.gram, sums.raw, sums.varies, target, free
        )
        known = sample.sums(target * np.where(unlabeled, 0.0, weights))
        return cls(**{**vars(sample), "known": known})

    @property
    def centre(self) -> Vector:
        """Mean of all rows."""
        shift = self.rows.shift
        return self.offset if shift is None else self.offset + shift

    @property
    def labeled_weight(self) -> float:
        """Sum of the weights of the labeled rows."""
        return float(self.known[:, 0].sum())

    def sums(self, weights: Matrix) -> Matrix:
        """Return the class sums for weights of shape (n_classes, n_rows)."""
        return self._centred(self.rows.weighted_sum(weights), weights.sum(axis=1))

    def all_sums(self, soft_labels: Matrix) -> Matrix:
        """Return the class sums of all rows for soft labels of shape (n_classes, n_rows)."""
        return self.known + self.sums(self.free * soft_labels)

    def scores(self, linear: Matrix) -> Matrix:
        """Return linear functions of the rows, measured from the centre."""
        weights = uncentred(linear, self.centre)
        return self.rows.scores(weights.coef, weights.intercept)

    def scores_and_sums(
        self, linear: Matrix, weigh: Callable[[Vector, slice], Vector]
    ) -> tuple[Matrix, Matrix]:
        """Return the scores t and the class sums for the weights weigh(t), reading rows once."""
        weights = uncentred(linear, self.centre)
        t, summed, total = self.rows.scores_and_sum(weights.coef, weights.intercept, weigh)
        return t, self._centred(summed, np.asarray(total))

    def _centred(self, summed: Matrix, total: Vector) -> Matrix:
        centred = summed - total[:, None] * self.offset
        centred[:, ~self.varies] = 0.0  # nothing but rounding errors
        return np.column_stack([total, centred])


def one_hot(labels: Labels) -> Matrix:
    """Return labels as one number for each class, of shape (n_classes, n_rows)."""
    target = labels.target
    return target if target.ndim > 1 else np.stack([1.0 - target, target])
