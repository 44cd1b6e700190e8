"""Sums over rows: weights that depend on scores, spreads along directions, triangular factors."""

from __future__ import annotations

from collections.abc import Callable
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
    """

    # ``function(t, *known)``; defined at the top of a module, so that it can be pickled
    function: Callable[..., Vector]
    # What it knows about every row: arrays with the rows last, objects with a method `at`, None
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
def spread_of_block(
    block: Any, weights: Vector | None, directions: Matrix, centre: Vector
) -> tuple[Matrix, Matrix]:
    """Return T'ST and T'SC for the centred rows C (dense or sparse) and their scores T."""
    scores = np.asarray(block @ directions.T) - directions @ centre
    weighted = scores
    if weights is not None:
        scores[weights == 0.0] = 0.0
        weighted = weights[:, None] * scores
    products = (block.T @ weighted).T - np.outer(weighted.sum(axis=0), centre)
    return scores.T @ weighted, products


@dataclass(frozen=True)
class Standard:
    """How rows are standardised before they are factored."""

    columns: Indices  # that take part
    mean: Vector  # of these columns: what is subtracted,
    scale: Vector  # and then multiplied

    def bordered(self, block: Matrix, weights: Vector | None, targets: Matrix) -> Matrix:
        """Return standardised rows beside their targets, times the root of their weights."""
        k = len(self.columns)
        rows = np.empty((len(block), k + len(targets)))
        rows[:, :k] = (block[:, self.columns] - self.mean) * self.scale
        rows[:, k:] = targets.T
        if weights is not None:
            rows *= np.sqrt(weights)[:, None]
        return rows


def add_pairs(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Add two pairs, to reduce sums of chunks."""
    return a[0] + b[0], a[1] + b[1]


def widened(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the range that contains two ranges."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def joined(a: Any, b: Any) -> Any:
    """Combine Gram matrices, sums, ranges and rows of two chunks."""
    return a[0] + b[0], a[1] + b[1], widened(a[2], b[2]), a[3] + b[3]


def stacked(a: Matrix, b: Matrix) -> Matrix:
    """Return the triangle of both."""
    return reduce_rows([a, b])


def reduce_rows(pieces: list[Matrix]) -> Matrix:
    """Return R with R'R = the sum of all A'A, at most as many rows as columns."""
    rows = np.vstack(pieces)
    if not len(rows):
        return rows
    triangle: Matrix = linalg.qr(rows, mode="r", overwrite_a=True, check_finite=False)[0]
    return triangle[: rows.shape[1]]
