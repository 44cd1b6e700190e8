"""How rows spread along some directions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from neverworse._typing import Matrix, Vector


@np.errstate(over="ignore", invalid="ignore")  # rows that play no part may score infinity
def spread_of_blocks(
    blocks: Iterable[tuple[Any, Vector | None]], directions: Matrix, centre: Vector
) -> tuple[Matrix, Matrix]:
    """Return T'ST and T'SC for the centred rows C of all blocks and their scores T.

    Parameters
    ----------
    blocks : iterable of (array or sparse matrix, array or None)
        Rows, not centred, and their weights.
    directions : array of shape (n_directions, n_columns)
    centre : array of shape (n_columns,)
    """
    squares, products = np.zeros((len(directions),) * 2), np.zeros(directions.shape)
    at_centre = directions @ centre
    for block, weights in blocks:
        scores = np.asarray(block @ directions.T) - at_centre
        weighted = scores
        if weights is not None:
            scores[weights == 0.0] = 0.0
            weighted = weights[:, None] * scores
        squares += scores.T @ weighted
        products += (block.T @ weighted).T - np.outer(weighted.sum(axis=0), centre)
    return squares, products
