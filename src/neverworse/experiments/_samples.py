"""Which rows are labeled, unlabeled and tested: the draws of the experiments."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neverworse._typing import AnyArray

N_FOLDS = 10


def draw_labeled(
    y: AnyArray, rows: AnyArray, n_labeled: int, rng: np.random.Generator
) -> tuple[AnyArray, AnyArray]:
    """Choose rows that keep their labels: one of each class, and the others by chance.

    Parameters
    ----------
    y : array
        Classes of all rows, 0 or 1.
    rows : array of int
        The rows to choose from.
    n_labeled : int
    rng : Generator

    Returns
    -------
    labeled, rest : arrays of int
        Indices; the rest in random order.
    """
    first = [rng.choice(rows[y[rows] == label]) for label in (0, 1)]
    others = rng.permutation(rows[~np.isin(rows, first)])
    n_others = n_labeled - len(first)
    return np.concatenate([first, others[:n_others]]), others[n_others:]


def draw_folds(y: AnyArray, rng: np.random.Generator) -> Iterator[AnyArray]:
    """Yield the tested rows of ten folds: every row once, and each class in every fold.

    All folds but the last have ⌊n / 10⌋ rows; the last has all others.
    """
    pairs = np.column_stack(
        [rng.permutation(np.flatnonzero(y == label))[:N_FOLDS] for label in (0, 1)]
    )
    others = rng.permutation(np.setdiff1d(np.arange(len(y)), pairs))
    size = len(y) // N_FOLDS - 2
    for k, pair in enumerate(pairs):
        end = (k + 1) * size if k < N_FOLDS - 1 else len(others)
        yield np.concatenate([pair, others[k * size : end]])


def unlabeled_sizes(largest: int) -> list[int]:
    """Return 2, 4, 8, … up to `largest`."""
    return [2**k for k in range(1, largest.bit_length()) if 2**k <= largest]
