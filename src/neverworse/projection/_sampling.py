"""How many rows samples have."""

from __future__ import annotations

SAMPLE_ROWS = 2000  # at least, in samples and working sets, and ...
SAMPLE_PER_COLUMN = (40, 200)  # ... so many rows per coordinate, in the first and second sample
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
