"""Sums over rows: weights that depend on scores, spreads along directions, triangular factors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from neverworse._typing import Indices, Matrix, Vector

# ``weigh(t, rows)``: the weights of the rows in a slice, from their scores t.
Weigh = Callable[[Vector, slice], Vector]


@dataclass(frozen=True)
class RowWeigh:
    """A `Weigh` that can be cut into pieces, to be sent where the rows are.

    A closure would take whole arrays with it; of this, `at` takes what belongs to some rows.

    Attributes
    ----------
    function : callable
        ``function(t, *known)``; defined at the top of a module, so that it can be pickled.
    known : tuple
        What it knows about every row: arrays with the rows last, objects with a method `at`, None.
    """

    function: Callable[..., Vector]
    known: tuple[Any, ...]

    def at(self, rows: slice) -> RowWeigh:
        """Return the same for some rows."""
        return RowWeigh(self.function, tuple(_at(one, rows) for one in self.known))

    def __call__(self, t: Vector, rows: slice) -> Vector:
        return self.function(t, *(_at(one, rows) for one in self.known))


def _at(known: Any, rows: slice) -> Any:
    if known is None:
        return None
    return known.at(rows) if hasattr(known, "at") else known[..., rows]


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


@dataclass(frozen=True)
class Standard:
    """How rows are standardised before they are factored.

    Attributes
    ----------
    columns : array of int
        The columns that take part.
    mean, scale : array of shape (n_columns,)
        Of these columns: what is subtracted, and then multiplied.
    """

    columns: Indices
    mean: Vector
    scale: Vector

    def bordered(self, block: Matrix, weights: Vector | None, targets: Matrix) -> Matrix:
        """Return standardised rows beside their targets, times the root of their weights."""
        k = len(self.columns)
        rows = np.empty((len(block), k + len(targets)))
        rows[:, :k] = (block[:, self.columns] - self.mean) * self.scale
        rows[:, k:] = targets.T
        if weights is not None:
            rows *= np.sqrt(weights)[:, None]
        return rows


def reduce_rows(pieces: list[Matrix]) -> Matrix:
    """Return R with R'R = the sum of all A'A, at most as many rows as columns."""
    rows = np.vstack(pieces)
    if not len(rows):
        return rows
    triangle: Matrix = linalg.qr(rows, mode="r", overwrite_a=True, check_finite=False)[0]
    return triangle[: rows.shape[1]]
