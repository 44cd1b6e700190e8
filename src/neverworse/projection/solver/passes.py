r"""Passes over all rows: functions of the rows of a chunk, wherever these are.

What a pass finds out about single rows stays where they are: soft labels :math:`q_j`. Sums come
back, :math:`\sum_j s_j q_j k_j` and the duality gap :math:`\sum_j s_j (q_j \cdot t_j + \max_q (-q
\cdot t_j))`, and rows for the next working set: those with the largest terms of the gap, and those
whose scores :math:`t_j` are nearest to a kink, where another corner becomes the best one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse.projection.labels import Few, Labels, Scored, implied_labels
from neverworse.rows import Rows, blocks, map_in_threads

SAMPLE = 1024  # numbers that tell how small the smallest of many are, if that need not be exact
# Which share of the rows a pass names for the next working set, and whether it copies them, because
# taking them later would take another pass
Named = tuple[float, bool]


@dataclass(frozen=True)
class Candidates:
    """Rows for a working set."""

    indices: Indices
    # (n,): what each row adds to the duality gap, and how far its scores are from a kink
    gap: Vector
    margin: Vector
    q: Matrix  # (n_classes, n): soft labels
    rows: AnyArray | None = None  # (n, n_columns): copies, if they were asked for

    @staticmethod
    def best(
        parts: Sequence[Candidates], starts: Sequence[int], most: int
    ) -> tuple[Indices, Matrix, AnyArray | None]:
        """Return at most that many of all chunks, with labels and copies; see `_chosen`."""
        gap = np.concatenate([part.gap for part in parts])
        margin = np.concatenate([part.margin for part in parts])
        first = np.flatnonzero(gap)
        best = np.flatnonzero(_chosen(first, gap[first], margin, most, about=False))
        edges = np.cumsum([0, *(len(part.indices) for part in parts)])
        places = np.split(best, np.searchsorted(best, edges[1:-1]))  # nothing else is copied
        own = [(part, at - lo) for part, at, lo in zip(parts, places, edges[:-1], strict=True)]
        indices = [part.indices[at] + lo for (part, at), lo in zip(own, starts, strict=True)]
        labels = np.concatenate([part.q.take(at, axis=1) for part, at in own], axis=1)
        copies = [part.rows[at] for part, at in own if part.rows is not None]
        return np.concatenate(indices), labels, np.concatenate(copies) if copies else None


@dataclass(frozen=True)
class Findings:
    """What a pass finds out about the rows of a chunk."""

    candidates: Candidates  # for the next working set
    gap: float  # Σ s (q·t + max(-q·t))
    sums: Any = None  # Σ s q x and Σ s q, if the pass has set the labels


@dataclass(frozen=True)
class Imputed:
    """Soft labels of rows, where the rows are."""

    q: Matrix  # (n_classes, n_rows); zero for rows without a hinge

    def at(self, rows: slice) -> Imputed:
        return Imputed(self.q[:, rows])

    def unlabeled_labels(self, labels: Labels, changes: Few) -> Matrix:
        """Return the soft labels of the unlabeled rows, with some changes."""
        return changes.replaced(self.q)[:, labels.unlabeled]


def soften(
    rows: Rows, coef: Matrix, intercept: Vector, named: Named, labels: Labels, scored: Scored
) -> tuple[Findings, Imputed]:
    """Make a pass that sets soft labels: the allowed ones nearest to supervised scores less t."""
    q = np.zeros_like(scored.scores)

    def weigh(t: Matrix, block: slice) -> Matrix:
        here = labels.at(block)
        start = implied_labels(scored.scores[:, block], here.target, here.width)
        hinge = here.hinge_weights()
        q[:, block] = np.where(hinge > 0.0, here.shape.project(start - t), 0.0)
        return hinge * q[:, block]

    t, summed, total = rows.scores_and_sum(coef, intercept, weigh)
    found, imputed = _look(rows, t, q, named, labels)
    return replace(found, sums=(summed, total)), imputed


def measure(
    rows: Rows,
    coef: Matrix,
    intercept: Vector,
    named: Named,
    changes: Few,
    labels: Labels,
    before: Imputed,
) -> tuple[Findings, Imputed]:
    """Make a pass at the dual point of soft labels: those of the pass before, but for changes."""
    return _look(rows, rows.scores(coef, intercept), changes.replaced(before.q), named, labels)


def _look(
    rows: Rows, t: Matrix, q: Matrix, named: Named, labels: Labels
) -> tuple[Findings, Imputed]:
    """Return the gap, and candidates for the next working set; t is overwritten by margins."""
    share, copy = named
    slices = [slice(b.start, min(b.stop, t.shape[1])) for b in blocks(t)]
    parts = map_in_threads(partial(_look_at_block, t, q, labels, share), slices)
    totals, places, gaps = zip(*parts, strict=True)
    place, large, margin = np.concatenate(places), np.concatenate(gaps), t[0]
    chosen = _chosen(place, large, margin, int(np.ceil(share * len(margin))), about=True)
    indices, kept = np.flatnonzero(chosen), chosen[place]
    gap = np.zeros(len(indices))
    gap[np.searchsorted(indices, place[kept])] = large[kept]
    copies = rows.copies(indices) if copy else None
    found = Candidates(indices, gap, margin[indices], q.take(indices, axis=1), copies)
    return Findings(found, float(sum(totals))), Imputed(q)


def _look_at_block(
    t: Matrix, q: Matrix, labels: Labels, share: float, block: slice
) -> tuple[float, Indices, Vector]:
    """Return the gap of a block, and the rows with the largest terms; leave margins in t[0]."""
    labels, t = labels.at(block), t[:, block]
    hinge = labels.hinge_weights()
    without = np.flatnonzero(hinge <= 0.0)
    t[:, without] = 0.0  # these rows may score anything, even infinity
    gap = hinge * (np.einsum("kj,kj->j", q[:, block], t) + labels.shape.support(t))
    places = np.flatnonzero(gap > 0.0)
    places = places[_smallest(-gap[places], int(np.ceil(0.5 * share * len(gap))), True)]
    t[0] = labels.shape.margin(t)
    t[0, without] = np.inf
    return float(gap.sum()), places + block.start, gap[places]


def _chosen(places: Indices, gap: Vector, margin: Vector, most: int, *, about: bool) -> Mask:
    """Return which rows are chosen: half for their gap, among `places`; others for their margin."""
    first = places[_smallest(-gap, most // 2, about)]
    kept, margin[first] = margin[first], np.inf
    chosen = np.zeros(len(margin), np.bool_)
    chosen[_smallest(margin, most - len(first), about)] = True
    margin[first] = kept
    chosen[first] = True
    return chosen & (margin < np.inf)


def _smallest(x: Vector, most: int, about: bool) -> Indices:
    """Return the places of the smallest numbers, or of about as many: a sample tells how small."""
    if not 0 < most < len(x):
        return np.arange(min(most, len(x)))
    if about and len(x) > 4 * SAMPLE:
        some = x[_places(len(x))]
        last = most * SAMPLE // len(x)
        found = np.flatnonzero(x <= np.partition(some, last)[last])
        return found[_smallest(x[found], most, about=False)]
    return np.flatnonzero(x <= np.partition(x, most - 1)[most - 1])[:most]


@cache
def _places(n: int) -> Indices:
    return np.random.default_rng(0).integers(0, n, SAMPLE)
