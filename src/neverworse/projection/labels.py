"""What passes know about the labels of rows, and what they find out about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse.projection.coordinates import HIGH
from neverworse.projection.label_sets import Box, LabelSet
from neverworse.projection.totals import Totals
from neverworse.rows import DenseRows, Rows, RowWeigh, blocks


def implied_labels(scores: Matrix, target: Matrix, width: Vector) -> Matrix:
    """Return the soft labels that would reproduce scores, allowed or not; see `Labels`."""
    excess = scores - target
    return np.divide(excess, width, out=excess, where=width > 0.0)


def side_by_side(parts: Iterable[Matrix], n_rows: int) -> Matrix:
    """Return scores or labels of all rows, given those of each chunk, of which none is kept."""
    joined, stop = np.empty((0, n_rows)), 0
    for part in parts:
        if part.shape[1] == n_rows:
            return part
        if not stop:
            joined = np.empty((len(part), n_rows))
        start, stop = stop, stop + part.shape[1]
        joined[:, start:stop] = part
    return joined


def rows_that_differ(a: Matrix, b: Matrix) -> Indices:
    """Return the rows in which labels are not the same."""
    return np.flatnonzero((a != b).any(axis=0))


@dataclass(frozen=True)
class Labels:
    """Labels of rows, of which some are known.

    An unknown label is ``target + width * q`` with a soft label q in `shape`: a number in [0, 1]
    (then n_classes is one), or shares of several classes. Targets and widths may be of any signed
    type: where all are 0 or 1, a byte will do.
    """

    target: AnyArray  # (n_classes, n_rows): known labels; the smallest possible ones elsewhere
    # (n_rows,): how far an unknown label may exceed `target`; zero where it is known
    width: AnyArray
    weights: Vector | None = None  # (n_rows,): row weights, not negative; ones if None
    shape: LabelSet = field(default_factory=Box)  # where soft labels lie
    totals: Totals | None = None  # restriction of the weighted sum of the unknown labels
    unit: float = 1.0  # of the widths in `hinge_weights`

    def at(self, rows: slice) -> Labels:
        """Return the same for some of the rows, whose totals are not restricted."""
        weights = None if self.weights is None else self.weights[rows]
        known = self.target[:, rows], self.width[rows], weights, self.shape.at(rows)
        return Labels(*known, unit=self.unit)

    @cached_property
    def unlabeled(self) -> Mask:
        """Which rows have an unknown label."""
        return self.width > 0.0

    @property
    def n_labeled(self) -> int:
        """How many rows with a weight have a known label."""
        return int(np.count_nonzero(self.weighted(~self.unlabeled)))

    def weights_where(self, mask: Mask) -> Vector:
        """Return the weights of some rows, and zero for all others."""
        return mask.astype(np.float64) if self.weights is None else np.where(mask, self.weights, 0)

    def hinge_weights(self) -> AnyArray:
        """Return weight times width: how much the label of each row matters."""
        weights = self.weighted(self.width)
        return weights if self.unit == 1.0 else weights / self.unit

    def weighted(self, x: AnyArray) -> AnyArray:
        """Return x, with the rows last, times their weights."""
        return x if self.weights is None else self.weights * x

    def counted(self, x: Matrix) -> Matrix:
        """Return x, with zero for rows without a weight: these may score anything, even NaN."""
        return x if self.weights is None else np.where(self.weights > 0.0, x, 0.0)

    def complete(self, q: Matrix) -> None:
        """Replace soft labels of the unlabeled rows by their labels, a block at a time."""
        stop = 0
        for rows in blocks(self.target):
            seen = self.unlabeled[rows]
            start, stop = stop, stop + int(np.count_nonzero(seen))
            q[:, start:stop] *= self.width[rows][seen]
            q[:, start:stop] += self.target[:, rows][:, seen]

    def free_totals(self) -> Totals | None:
        """Return the restriction of Σ s · width · q that follows from that of the labels."""
        if self.totals is None:
            return None
        known = (self.weights_where(self.unlabeled) * self.target).sum(axis=1)
        return Totals(self.totals.low - known, self.totals.high - known)


@dataclass(frozen=True)
class Few:
    """A few rows that a pass shall copy, or whose soft labels it shall replace; none by default."""

    indices: Indices = field(default_factory=lambda: np.empty(0, np.intp))  # increasing
    values: Matrix = field(default_factory=lambda: np.empty((1, 0)))  # (n_classes, n): soft labels

    def at(self, rows: slice) -> Few:
        """Return those in a slice of the rows."""
        lo, hi = np.searchsorted(self.indices, [rows.start, rows.stop])
        return Few(self.indices[lo:hi] - rows.start, self.values[:, lo:hi])

    def replaced(self, q: Matrix) -> Matrix:
        """Return a copy of soft labels of all rows, with those of these rows replaced."""
        q = q.copy()
        q[:, self.indices] = self.values
        return q


@dataclass(frozen=True)
class Scored:
    """What a pass with the supervised weights leaves of some rows."""

    scores: Matrix  # (n_classes, n_rows)

    def scores_at(self, wanted: Few) -> Matrix:
        return self.scores[:, wanted.indices]

    def squared_sizes(self, labels: Labels) -> tuple[float, float]:
        """Return the weighted sums of squares of the scores and of the known labels."""
        both = self.scores, labels.target
        of_scores, of_labels = (float(labels.weighted(x**2).sum()) for x in both)
        return of_scores, of_labels


def score_supervised(
    rows: Rows, coef: Matrix, intercept: Vector, wanted: Few, labels: Labels
) -> tuple[tuple[Matrix, Vector, AnyArray], Scored]:
    """Make the pass with the supervised weights over some rows; return sums and wanted rows.

    The sums have 2 n_classes rows: Σ x_i and their number, weighted once with s r for the residuals
    r = score - target, and once with ω q for the allowed soft labels q nearest to the scores.
    """
    scores, summed, total = rows.scores_and_sum(coef, intercept, RowWeigh(_weigh, (labels,)))
    return (summed, total, rows.copies(wanted.indices)), Scored(scores)


def _weigh(scores: Matrix, labels: Labels) -> Matrix:
    near = labels.shape.project(implied_labels(scores, labels.target, labels.width))
    hinge, residual = labels.hinge_weights(), scores - labels.target
    return np.concatenate([labels.weighted(residual), np.where(hinge > 0.0, hinge * near, 0.0)])


@dataclass(frozen=True)
class TrainingRows:
    """Rows of features with their labels."""

    rows: Rows  # labeled and unlabeled, in any order
    labels: Labels
    at_hand: Matrix | None = None  # copies of the labeled rows, if there are any

    def read_once(self) -> TrainingRows:
        """Return the same with labeled rows and the Gram matrix at hand, both by one reading."""
        rows = self.rows
        if rows.random_access or not self._takes_labeled or rows.n_columns > HIGH:
            return self
        chosen = np.flatnonzero(~self.labels.unlabeled)
        rows, taken = rows.with_gram(self.labels.weights, chosen)
        return TrainingRows(rows, self.labels, taken)

    @property
    def _takes_labeled(self) -> bool:
        """Whether labeled rows are so few that they are copied out."""
        labels, rows = self.labels, self.rows
        n_rows, n_unlabeled = len(labels.width), int(np.count_nonzero(labels.unlabeled))
        n_labeled = n_rows - n_unlabeled
        # Rows of very many columns are sparse, or few: copying them costs little.
        many = 10 * n_labeled > n_rows or n_labeled > rows.most_taken
        return n_unlabeled > 0 and not (rows.n_columns <= HIGH and many)

    def labeled(self) -> tuple[Rows, Matrix, Vector | None]:
        """Return rows, target and weights of labeled rows: copied, or many among others of none."""
        labels = self.labels
        if not labels.unlabeled.any():
            return self.rows, labels.target.astype(np.float64), labels.weights
        if not self._takes_labeled:
            known = labels.weights_where(~labels.unlabeled)
            return self.rows, labels.target.astype(np.float64), known
        chosen = np.flatnonzero(~labels.unlabeled)
        weights = None if labels.weights is None else labels.weights[chosen]
        rows = self.rows.some(chosen) if self.at_hand is None else DenseRows(self.at_hand)
        return rows, labels.target[:, chosen].astype(np.float64), weights
