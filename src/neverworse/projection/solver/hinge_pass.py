"""One pass over all rows at a dual point: what it leaves of every chunk, and what it adds up.

Scores, and the corners that they push soft labels into, stay where the rows are. What comes back
are sums, counts, and the few rows near a kink.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from neverworse._typing import Scalars, Vector
from neverworse.projection.labels import Changes, Corners, RowLabels, soft_labels
from neverworse.projection.solver.pass_state import (
    Copied,
    HingePass,
    PassSums,
    count_within,
    differ,
    rows_near,
    slices_of,
)
from neverworse.projection.solver.sampling import is_chosen
from neverworse.projection.solver.undecided import RowNumbers, narrow
from neverworse.rows import Rows
from neverworse.rows._threads import map_in_threads
from neverworse.rows._weigh import RowWeigh


@dataclass(frozen=True)
class Band:
    """Which rows are copied out during a pass, because they will probably be asked for.

    Attributes
    ----------
    width : float
        Rows at most so far from their kink; none if zero.
    share : float
        So large a sample of these.
    """

    width: float = 0.0
    share: float = 1.0


def hinge_pass(
    rows: Rows,
    coef: Vector,
    intercept: Scalars,
    near: float,
    band: Band,
    seed: int,
    changes: Changes,
    numbers: RowNumbers,
    labels: RowLabels,
    before: HingePass | Corners | None = None,
) -> HingePass:
    """Make a pass over some rows.

    Parameters
    ----------
    rows : Rows
    coef, intercept
        The dual point, as a linear function of rows.
    near : float
        Rows up to this far from their kink are counted.
    band : Band
        Which rows to copy.
    seed : int
        Of the sample.
    changes : Changes
        Where labels that the dual point belongs to are no corners.
    numbers : RowNumbers
    labels : RowLabels
    before : HingePass, Corners or None
        Where they are; None if the dual point belongs to no labels.
    """
    t, summed, total = rows.scores_and_sum(coef, intercept, RowWeigh(_weighted_corners, (labels,)))
    t[..., labels.without_hinge] = 0.0
    shape = labels.shape
    soft = before.corners if isinstance(before, HingePass) else before
    # Margins of several classes take sorting; of one number they are its size.
    margins = shape.margin(t) if t.ndim > 1 else None
    state = HingePass(t, margins, Corners.of(shape, t), soft)

    def part(block: slice) -> _BlockSums:
        return _block_sums(state, labels.at(block), changes, block)

    parts = map_in_threads(part, slices_of(t))
    sums = PassSums(
        summed=summed,
        total=total,
        along=float(sum(found.along for found in parts)),
        square=float(sum(found.square for found in parts)),
        near=count_within(state, labels, near),
        gap=float(sum(found.gap for found in parts)),
        soft_total=sum((found.total for found in parts), np.zeros(coef.shape[:-1])),
        n_left=sum(found.n_left for found in parts),
        farthest=max(found.farthest for found in parts),
    )
    copied = None
    if band.width > 0.0:
        chosen = rows_near(state, labels, band.width, changes)
        chosen = chosen[is_chosen(chosen + numbers.first, band.share, seed)]
        copied = Copied(chosen, narrow(rows.take(chosen)))
    return replace(state, sums=sums, copied=copied)


def _weighted_corners(t: Vector, labels: RowLabels) -> Vector:
    return labels.hinge * labels.shape.extreme(t)


class _BlockSums(NamedTuple):
    """What is added up over a block: see `PassSums`."""

    along: float
    square: float
    gap: float
    total: Vector
    n_left: int
    farthest: float


def _block_sums(state: HingePass, labels: RowLabels, changes: Changes, block: slice) -> _BlockSums:
    t, s = state.t[..., block], labels.hinge
    support = labels.shape.support(t)
    along = -float(s @ support)
    square = float(_dot(t, t) @ s)
    if state.soft is None:
        return _BlockSums(along, square, 0.0, np.zeros(t.shape[:-1]), 0, 0.0)
    q = soft_labels(state.soft, changes, block)
    gap = float(s @ (_dot(q, t) + support))
    left = differ(q, state.corners.labels(block)) & (s > 0.0)
    farthest = float(state.margin(block)[left].max(initial=0.0))
    return _BlockSums(along, square, gap, q @ s, int(np.count_nonzero(left)), farthest)


def _dot(a: Vector, b: Vector) -> Vector:
    product: Vector = a * b
    return product if product.ndim == 1 else product.sum(axis=0)
