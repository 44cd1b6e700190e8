"""Share as few labels as possible, without moving what they add up to.

Where two classes cannot be improved against each other, they tie in all rows. Then many labels may
share them in many ways, with the same weights: Σ s_j q_j k_j is all that counts. Of r + 1 rows,
some combination leaves it as it is; moving along it until a label is whole leaves one row less that
is shared, and so on, down to r rows for each pair of classes.
"""

from __future__ import annotations

import numpy as np

from neverworse._typing import Indices, Matrix, Vector
from neverworse.projection.label_sets import LabelSet
from neverworse.projection.solver.hinges import Hinges


def share_few(hinges: Hinges, shape: LabelSet, q: Matrix) -> Matrix:
    """Return soft labels with the same Σ s_j q_j k_j, of which few are shared by two classes."""
    inner = shape.inner(q) & (hinges.weights > 0.0)
    shared = np.flatnonzero(np.count_nonzero(inner, axis=0) == 2)
    if len(shared) <= hinges.rank:
        return q
    q = q.copy()
    first = inner[:, shared].argmax(axis=0)
    second = len(q) - 1 - inner[::-1, shared].argmax(axis=0)
    pair = len(q) * first + second
    for code in np.unique(pair):
        rows = shared[pair == code]
        if len(rows) > hinges.rank:
            _share_two(hinges, shape, q, rows, *divmod(int(code), len(q)))
    return q


def _share_two(hinges: Hinges, shape: LabelSet, q: Matrix, rows: Indices, a: int, b: int) -> None:
    """Change q in rows that share the classes a and b."""
    mine = q[a, rows]
    q[a, rows] = q[b, rows] = 0.0
    both = 1.0 - q[:, rows].sum(axis=0)
    caps = np.broadcast_to(shape.upper(q), q.shape)
    most = caps[b, rows]
    low, high = np.maximum(0.0, both - most), np.minimum(both, caps[a, rows])
    weighted = hinges.take(rows) * hinges.weights[rows, None]
    moved = _few_inside(np.clip(mine - low, 0.0, high - low), high - low, weighted)
    q[a, rows] = np.where(moved == high - low, high, low + moved)
    q[b, rows] = np.minimum(both - q[a, rows], most)


def _few_inside(x: Vector, high: Vector, rows: Matrix) -> Vector:
    """Return x' with rows'x' = rows'x and 0 <= x' <= high, of which few are strictly between.

    In many blocks of at most twice as many rows as columns at once.
    """
    x, rank = x.copy(), rows.shape[1]
    inside = np.flatnonzero((x > 0.0) & (x < high))
    while len(inside) > rank:
        size = min(2 * rank, len(inside))
        n_blocks = len(inside) // size
        blocks = inside[: n_blocks * size].reshape(n_blocks, size)
        x[blocks] = _moved(x[blocks], high[blocks], rows[blocks])
        inside = inside[(x[inside] > 0.0) & (x[inside] < high[inside])]
    return x


def _moved(x: Matrix, high: Matrix, rows: Matrix) -> Matrix:
    """Move along null vectors until all but `rank` labels of each block are at an end."""
    n_blocks, size, rank = rows.shape
    null = np.linalg.qr(rows, mode="complete")[0][:, :, rank:]
    block = np.arange(n_blocks)
    for _ in range(size - rank):
        along = null[:, :, 0]
        room = np.where(along > 0.0, high - x, x)
        moves = along != 0.0
        length = np.divide(room, np.abs(along), out=np.full_like(x, np.inf), where=moves)
        first = length.argmin(axis=1)
        x = np.clip(x + length[block, first, None] * along, 0.0, high)
        x[block, first] = np.where(along[block, first] > 0.0, high[block, first], 0.0)
        # What remains of the null vectors leaves this label alone.
        at = null[block, first]
        pivot = np.abs(at).argmax(axis=1)
        null = null - null[block, :, pivot][:, :, None] * (at / at[block, pivot, None])[:, None, :]
        null[block, :, pivot] = null[:, :, 0]
        null[block, first] = 0.0
        null = null[:, :, 1:]
    return x
