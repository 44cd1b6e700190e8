"""Samples of rows that do not depend on where the rows are.

Whether a row is chosen depends on its number, not on a random generator: so every chunk can choose
by itself, and the solver takes the same path wherever the rows are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from neverworse._typing import Indices, Mask, Vector

SAMPLE_ROWS = 2000  # at least, in samples and working sets, and ...
SAMPLE_PER_COLUMN = (40, 200)  # ... so many rows per coordinate, in the first and second sample
CHUNK = 2**18  # rows for which temporary arrays are made
SAMPLE_FRACTION = 0.05  # the second sample is no larger than this, unless the first is


def sample_sizes(n_classes: int, rank: int, n_unlabeled: int) -> list[int]:
    """Return the sizes of the samples that the solver starts with.

    None if the problem is so small that it is solved as a whole. Several classes need a larger
    share of the rows before a sample stands for them.

    Parameters
    ----------
    n_classes : int
        One for labels of one number.
    rank : int
        Number of coordinates.
    n_unlabeled : int
    """
    first, most = (max(SAMPLE_ROWS, k * n_classes * rank) for k in SAMPLE_PER_COLUMN)
    if n_unlabeled <= (2 if n_classes == 1 else 3) * first:
        return []
    second = min(most, int(SAMPLE_FRACTION * n_unlabeled))
    return [first, second] if second > 2 * first else [first]


def is_chosen(indices: Indices, share: float, seed: int) -> Mask:
    """Return which rows are in a sample of about that share; a larger one contains a smaller one.

    Parameters
    ----------
    indices : array of int
        Numbers of rows among all rows.
    share : float
    seed : int
    """
    if share >= 1.0:
        return np.ones(len(indices), bool)
    chosen: Mask = _scattered(indices, seed) < np.uint64(share * 2.0**64)
    return chosen


def draw(weights: Vector, size: int, seed: int = 0) -> Indices:
    """Return a sample of rows with a weight, in increasing order; a larger one contains a smaller.

    Parameters
    ----------
    weights : array of shape (n_rows,)
    size : int
    seed : int
    """
    n = int(np.count_nonzero(weights))
    share = size / max(n, size)
    if share < 1.0:  # enough of them, almost surely: six standard deviations more than expected
        share += 6.0 * float(np.sqrt(share / n))
    some = _chosen(weights, share, seed)
    if len(some) < size:
        some = _chosen(weights, 1.0, seed)
    if len(some) <= size:
        return some
    return some[np.sort(np.argpartition(_scattered(some, seed), size - 1)[:size])]


def _chosen(weights: Vector, share: float, seed: int) -> Indices:
    """Return the rows of a sample with a weight, without making anything as long as all rows."""
    found = []
    for lo in range(0, len(weights), CHUNK):
        rows = lo + np.flatnonzero(weights[lo : lo + CHUNK])
        found.append(rows[is_chosen(rows, share, seed)])
    return np.concatenate(found)


def _scattered(indices: Indices, seed: int) -> NDArray[np.uint64]:
    """Return a number for each index that looks random: a Weyl sequence, well mixed (SplitMix64).

    References
    ----------
    G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA
    2014, 453-472.
    """
    x = indices.astype(np.uint64)
    x += np.uint64(1 + seed % 2**31) * np.uint64(2**32 + 15)  # sequences of other seeds are far off
    x *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    return x
