"""Which rows a learning curve has: how many of them, and which first."""

from __future__ import annotations

from typing import Any

import numpy as np

from neverworse._typing import Indices


def chosen_sizes(name: str, sizes: Any, smallest: int, largest: int, n_default: int) -> Indices:
    """Return numbers of rows in ascending order, from numbers, shares, or None.

    Parameters
    ----------
    name : str
        Name of the argument, for messages.
    sizes : array-like or None
        Integers are numbers of rows, floats are shares of `largest`.
    smallest, largest : int
        How many rows there may be.
    n_default : int
        How many sizes there are by default, each twice as large as the one before.
    """
    if largest < smallest:
        raise ValueError(
            f"The smallest training fold has {largest} labeled rows, fewer than the {smallest} "
            "classes. Label more rows, or use more folds: they leave more rows for training."
        )
    if sizes is None:
        shares = 0.5 ** np.arange(n_default)
        return np.unique(np.maximum(max(1, smallest), np.round(shares * largest))).astype(np.intp)
    given = np.asarray(sizes)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iuf":
        raise ValueError(
            f"{name}={sizes!r} must be a list of numbers of rows (integers) or of shares of the "
            "rows (floats)."
        )
    if given.dtype.kind == "f":
        if not ((given > 0.0) & (given <= 1.0)).all():
            raise ValueError(
                f"{name}={sizes!r} has floats, which are shares of the {largest} rows that there "
                "are, above 0 and at most 1. For numbers of rows, pass integers."
            )
        given = np.maximum(max(1, smallest), np.round(given * largest))
    elif not ((given >= smallest) & (given <= largest)).all():
        why = "one labeled row for each class" if smallest else "0"
        raise ValueError(
            f"{name}={sizes!r} must be from {smallest} ({why}) to {largest}, which is how many "
            "such rows the smallest training fold has."
        )
    return np.unique(given).astype(np.intp)


def stratified_order(strata: Indices, rng: np.random.RandomState) -> Indices:
    """Return a random order in which every beginning has all strata in about the same shares.

    The first rows are one of each stratum.

    Parameters
    ----------
    strata : array of shape (n_rows,)
        Number of the stratum of each row.
    rng : RandomState
    """
    order = rng.permutation(len(strata))
    grouped = order[np.argsort(strata[order], kind="stable")]
    counts = np.bincount(strata)
    rank = np.arange(len(strata)) - np.repeat(np.cumsum(counts) - counts, counts)
    # The i-th of n rows stands for the middle of the i-th of n equal parts.
    place = np.where(rank == 0, -1.0, (rank + 0.5) / np.repeat(counts, counts))
    # Ties between strata are broken at random as well.
    return grouped[np.lexsort((rng.random_sample(len(strata)), place))]
