"""Passes over all rows: functions of the rows of a chunk, wherever these are.

What a pass finds out about single rows stays where they are; sums, and a few rows that it names,
come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.projection.labels import Changes, RowLabels
from neverworse.rows import Rows, RowWeigh, blocks, map_in_threads

# The pass with the supervised weights


@dataclass(frozen=True)
class Scored:
    """What a pass with the supervised weights leaves of some rows.

    Attributes
    ----------
    scores : array of shape (n_classes, n_rows)
    summed, total : arrays of shape (2 n_classes, n_columns) and (2 n_classes,)
        Σ x_i and their number, weighted once with s r for the residuals r = score - target, and
        once with ω q for the allowed soft labels q nearest to the scores.
    sample : array of shape (n, n_columns)
        Rows that were asked for.
    """

    scores: Matrix
    summed: Matrix
    total: Vector
    sample: Matrix

    def sums(self) -> tuple[Matrix, Vector]:
        """Return what the pass added up."""
        return self.summed, self.total

    def all_scores(self) -> Matrix:
        """Return the scores."""
        return self.scores

    def scores_at(self, indices: Indices) -> Matrix:
        """Return the scores of some rows."""
        return self.scores[:, indices]

    def copies(self) -> Matrix:
        """Return the rows that were asked for."""
        return self.sample

    def squared_sizes(self, labels: RowLabels) -> tuple[float, float]:
        """Return the weighted sums of squares of the scores and of the known labels."""
        s = np.ones(len(labels.width)) if labels.weights is None else labels.weights
        return float(((self.scores**2) @ s).sum()), float(((labels.target**2) @ s).sum())


@dataclass(frozen=True)
class Wanted:
    """Numbers of rows that shall be copied during a pass, in increasing order."""

    indices: Indices

    def at(self, rows: slice) -> Wanted:
        """Return those of some rows."""
        lo, hi = np.searchsorted(self.indices, [rows.start, rows.stop])
        return Wanted(self.indices[lo:hi] - rows.start)


def score_supervised(
    rows: Rows, coef: Matrix, intercept: Vector, wanted: Wanted, labels: RowLabels
) -> Scored:
    """Make the pass with the supervised weights over some rows."""
    scores, summed, total = rows.scores_and_sum(coef, intercept, RowWeigh(_weigh, (labels,)))
    sample = np.empty((0, rows.n_columns))
    if len(wanted.indices):
        sample = rows.take(wanted.indices)
    return Scored(scores, summed, total, sample)


def _weigh(scores: Matrix, labels: RowLabels) -> Matrix:
    residual = scores - labels.target
    if labels.weights is not None:
        residual *= labels.weights
    near = labels.shape.project(labels.implied(scores))
    near = np.where(labels.hinge > 0.0, labels.hinge * near, 0.0)
    return np.concatenate([residual, near])


# Passes at a dual point


@dataclass(frozen=True)
class Choice:
    """Which rows a pass shall name for the next working set.

    Attributes
    ----------
    share : float
        Of the rows that may be named.
    copy : bool
        Whether to copy these rows, because taking them later would take another pass.
    """

    share: float
    copy: bool


@dataclass(frozen=True)
class Candidates:
    """Rows for a working set.

    Attributes
    ----------
    indices : array of int
    gap, margin : arrays of shape (n,)
        What each row adds to the duality gap, and how far its scores are from a kink.
    q : array of shape (n_classes, n)
        Soft labels.
    rows : array of shape (n, n_columns) or None
        Copies, if they were asked for.
    """

    indices: Indices
    gap: Vector
    margin: Vector
    q: Matrix
    rows: AnyArray | None = None

    @classmethod
    def joined(cls, parts: Sequence[Candidates], starts: Sequence[int]) -> Candidates:
        """Return candidates of several parts, which begin at these rows."""
        copies = [part.rows for part in parts if part.rows is not None]
        return cls(
            np.concatenate([p.indices + at for p, at in zip(parts, starts, strict=True)]),
            np.concatenate([part.gap for part in parts]),
            np.concatenate([part.margin for part in parts]),
            np.concatenate([part.q for part in parts], axis=1),
            np.concatenate(copies) if copies else None,
        )

    def best(self, most: int) -> Candidates:
        """Return at most that many rows: half for their gap, the others for their margin."""
        chosen = _chosen(self.gap, self.margin, most)
        return Candidates(
            self.indices[chosen],
            self.gap[chosen],
            self.margin[chosen],
            self.q[:, chosen],
            None if self.rows is None else self.rows[chosen],
        )


@dataclass(frozen=True)
class LabelPass:
    """What a pass leaves of some rows.

    Attributes
    ----------
    q : array of shape (n_classes, n_rows)
        Soft labels; zero for rows without a hinge.
    gap : float
        Σ s (q·t + max(-q·t)).
    candidates : Candidates or None
        For the next working set; None where they are not needed any more.
    sums : tuple or None
        Σ s q x and Σ s q, if the pass has set the labels.
    """

    q: Matrix
    gap: float
    candidates: Candidates | None
    sums: tuple[Matrix, Vector] | None = None

    def findings(self) -> tuple[Candidates | None, float, tuple[Matrix, Vector] | None]:
        """Return the rows that the pass names, and what it added up."""
        return self.candidates, self.gap, self.sums

    def labels_only(self) -> LabelPass:
        """Return what the next pass needs."""
        return LabelPass(self.q, self.gap, None)

    def unlabeled_labels(self, labels: RowLabels, changes: Changes) -> Matrix:
        """Return the soft labels of the unlabeled rows, with some changes."""
        return changes.apply(self.q.copy())[:, labels.width > 0.0]


def soften(
    rows: Rows, coef: Matrix, intercept: Vector, choice: Choice, labels: RowLabels, scored: Scored
) -> LabelPass:
    """Make a pass that sets soft labels: the allowed ones nearest to supervised scores less t."""
    q = np.zeros_like(scored.scores)

    def weigh(t: Matrix, block: slice) -> Matrix:
        here = labels.at(block)
        near = here.shape.project(here.implied(scored.scores[:, block]) - t)
        q[:, block] = np.where(here.hinge > 0.0, near, 0.0)
        return here.hinge * q[:, block]

    t, summed, total = rows.scores_and_sum(coef, intercept, weigh)
    return replace(_look(rows, t, q, choice, labels), sums=(summed, total))


def measure(
    rows: Rows,
    coef: Matrix,
    intercept: Vector,
    choice: Choice,
    changes: Changes,
    labels: RowLabels,
    before: LabelPass,
) -> LabelPass:
    """Make a pass at the dual point of soft labels: those of the pass before, but for changes."""
    q = changes.apply(before.q.copy())
    return _look(rows, rows.scores(coef, intercept), q, choice, labels)


def _look(rows: Rows, t: Matrix, q: Matrix, choice: Choice, labels: RowLabels) -> LabelPass:
    slices = [slice(b.start, min(b.stop, t.shape[1])) for b in blocks(t)]
    parts = map_in_threads(partial(_look_at_block, t, q, labels, choice.share), slices)
    found = Candidates.joined([part for _, part in parts], [block.start for block in slices])
    if choice.copy:
        found = replace(found, rows=_narrow(rows.take(found.indices)))
    return LabelPass(q, float(sum(gap for gap, _ in parts)), found)


def _look_at_block(
    t: Matrix, q: Matrix, labels: RowLabels, share: float, block: slice
) -> tuple[float, Candidates]:
    """Return the gap of a block of rows, and its candidates."""
    labels = labels.at(block)
    counts = labels.hinge > 0.0
    t, q = np.where(counts, t[:, block], 0.0), q[:, block]
    gap = labels.hinge * ((q * t).sum(axis=0) + labels.shape.support(t))
    margin = np.where(counts, labels.shape.margin(t), np.inf)
    chosen = _chosen(gap, margin, int(np.ceil(share * len(counts))))
    chosen = chosen[counts[chosen]]
    return float(gap.sum()), Candidates(chosen, gap[chosen], margin[chosen], q[:, chosen])


def _chosen(gap: Vector, margin: Vector, most: int) -> Indices:
    """Return at most that many rows: half of them for their gap, the others for their margin."""
    if most >= len(gap):
        return np.arange(len(gap))
    first = np.flatnonzero(gap > 0.0)
    first = first[_smallest(-gap[first], most // 2)]
    others = margin.copy()
    others[first] = np.inf
    return np.sort(np.concatenate([first, _smallest(others, most - len(first))]))


def _smallest(x: Vector, most: int) -> Indices:
    """Return the places of the smallest numbers; sorting values is faster than sorting places."""
    if most >= len(x):
        return np.arange(len(x))
    if most == 0:
        return np.arange(0)
    return np.flatnonzero(x <= np.partition(x, most - 1)[most - 1])[:most]


def _narrow(rows: AnyArray) -> AnyArray:
    """Return rows in half the memory, if that loses nothing."""
    with np.errstate(over="ignore"):
        narrow = rows.astype(np.float32)
    return narrow if (narrow == rows).all() else rows
