"""What the mathematics asks of rows: Gram matrix, scores, weighted sums, and some of the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from neverworse._typing import AnyArray, Indices, Matrix, Scalars, Vector
from neverworse.rows._blocks import (
    RowWeigh,
    Standard,
    Weigh,
    map_in_threads,
    narrowed,
    product,
    reduce_rows,
    scores_of_block,
    sum_of_block,
)

# A block of rows should stay in cache, so that it is read from memory once however many things are
# computed from it. Powers of two are fastest; these were measured to be best.
BLOCK_BYTES = 2**22
FEWEST_ROWS = 128  # in a block
# Of wide rows, blocks have this many if that takes at most four times the memory: then adding up
# Gram matrices takes little beside computing them. Triangles are computed from as many at once.
WIDE_ROWS = 1024
N_PARTS = 16  # a fixed number makes every sum independent of the number of threads
SMALL = 2**18  # for fewer numbers, starting threads costs more than it saves

Result = TypeVar("Result")


class Rows(ABC):
    """Rows of features that can be read in blocks, never changed and never copied as a whole.

    The mathematics asks for sums over all rows (`gram`, `scores`, `scores_and_sum`,
    `weighted_sum`; now and then `ranges`, `spread_along` and `triangle`), for a few rows (`take`,
    `map_taken`), and for functions of rows whose results stay where the rows are (`keep`).

    Rows in memory define how a block is read, and everything else follows; other rows are
    `ChunkedRows`. All sums are accumulated in float64, whatever the type of the data. The shift is
    subtracted from every row as it is read: features far from zero keep their digits.
    """

    column_names: list[str] | None = None  # if the data have any
    random_access = True  # whether taking a few rows costs less than a pass over all of them
    most_taken: int  # maximum number of rows to copy where that saves passes over all rows
    block_rows: int  # number of rows that are read at once

    def __init__(self, n_rows: int, n_columns: int, shift: Vector | None = None) -> None:
        self.n_rows, self.n_columns, self.shift = n_rows, n_columns, shift
        self.most_taken = n_rows
        fitting = BLOCK_BYTES // (8 * max(n_columns, 1))
        fitting = max(FEWEST_ROWS, fitting, min(4 * fitting, WIDE_ROWS))
        self.block_rows = 2 ** (fitting.bit_length() - 1)

    @abstractmethod
    def block(self, start: int, stop: int) -> Matrix:
        """Return rows `start` to `stop` as a dense float64 array, to be read only."""

    @abstractmethod
    def take(self, indices: Indices) -> Matrix:
        """Return a copy of the rows with these indices, as a dense float64 array."""

    def copies(self, indices: Indices) -> AnyArray:
        """Return what `take` does, in half the memory if that loses nothing."""
        return narrowed(self.take(indices))

    @abstractmethod
    def shifted(self, shift: Vector | None) -> Rows:
        """Return the same data with another shift, or without one."""

    def _less_shift(self, values: Matrix) -> Matrix:
        """Subtract the shift, in place."""
        if self.shift is not None:
            values -= self.shift
        return values

    def some(self, indices: Indices) -> Rows:
        """Return some of the rows as rows of their own, in memory, with the same shift."""
        return DenseRows(self.shifted(None).take(indices), self.shift)

    # State that passes keep of each chunk of the rows. Rows in memory are one chunk, and their
    # state is the object itself.

    @property
    def chunk_starts(self) -> list[int]:
        """The first row of each chunk."""
        return [0]

    def scatter(self, known: Any) -> Any:
        """Return data of all rows as state; ``known.at(rows)`` returns those of a slice of rows."""
        return known

    def keep(
        self,
        function: Callable[..., Any],
        *common: Any,
        known: Sequence[Any] = (),
        kept: Sequence[Any] = (),
    ) -> tuple[list[Any], Any]:
        """Make a pass; return what it finds in each chunk, and what it leaves there as state.

        ``function(rows, *common, *known, *kept)`` returns both for the rows of a chunk, and can be
        pickled. The common arguments are the same for all chunks. Of what is known about all rows
        (see `scatter`), and of states, every chunk gets its part.
        """
        found, state = function(self, *common, *known, *kept)
        return [found], state

    def fold(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],  # noqa: ARG002
        *common: Any,
        known: Sequence[Any] = (),
        kept: Sequence[Any] = (),
    ) -> Any:
        """Make a pass that keeps nothing; return results, combined in the order of the chunks."""
        return function(self, *common, *known, *kept)

    def map_state(
        self, function: Callable[..., Any], kept: Sequence[Any], *common: Any, known: Any = ()
    ) -> Iterable[Any]:
        """Return ``function(*kept, *common, *known)`` for each chunk, without reading the rows."""
        return [function(*kept, *common, *known)]

    # Sums over all rows

    def gram(self, weights: Vector | None = None) -> tuple[Matrix, Vector]:
        """Return E'SE and E's for the rows E and the weights s (ones if not given)."""

        def products(rows: slice) -> tuple[Matrix, Vector]:
            block = self.block(rows.start, rows.stop)
            if weights is None:
                return product(block.T, block), product(np.ones(len(block)), block)
            total = product(weights[rows], block)
            block = block * np.sqrt(weights[rows])[:, None]
            return product(block.T, block), total

        return self._added_up(products)

    def scores(self, coef: Vector, intercept: Scalars = 0.0) -> Vector:
        """Return coef·x + intercept for every row x of the data, before any shift.

        For several linear functions, `coef` and the result have one row for each.
        """
        return self._pass(coef, intercept, None)[0]

    def scores_and_sum(
        self, coef: Vector, intercept: Scalars, weigh: Weigh
    ) -> tuple[Vector, Vector, Vector]:
        """Return the scores t, E'x and the sum of x = weigh(t), in one pass.

        ``weigh(t, rows)`` gives the weights in the sum, for the scores ``t`` of the rows in the
        slice ``rows``; for several sums, one row of weights for each.
        """
        return self._pass(coef, intercept, weigh)

    def score_weighted_sum(
        self, coef: Vector, intercept: Scalars, weigh: RowWeigh
    ) -> tuple[Vector, Vector]:
        """Return E'x and the sum of x, see `scores_and_sum`."""
        return self.scores_and_sum(coef, intercept, weigh)[1:]

    def weighted_sum(self, weights: Vector) -> Vector:
        """Return E'weights, for each row of `weights` if there are several."""
        return self._added_up(
            lambda rows: (sum_of_block(weights[..., rows], self._factor(rows)),),
            self._factor_slices(),
        )[0]

    def squares(self, weights: Vector | None = None) -> Vector:
        """Return the weighted sum of squares of every column."""

        def squares(rows: slice) -> tuple[Vector]:
            block = self.block(rows.start, rows.stop)
            # Weights first: rows of weight zero may be so large that their squares overflow.
            weighted = block if weights is None else block * weights[rows, None]
            return (np.einsum("ij,ij->j", weighted, block),)

        return self._added_up(squares)[0]

    def with_gram(self, weights: Vector | None, indices: Indices) -> tuple[Rows, Matrix]:  # noqa: ARG002
        """Take rows; where that is a pass, return rows that know their Gram matrix from it."""
        return self, self.take(indices)

    def single_kernel_product(self, x: Matrix, centre: Vector) -> Matrix | None:  # noqa: ARG002
        """Return AA'x for the rows A less `centre` to single precision, if that is faster."""
        return None

    def kernel(self, centre: Vector) -> Matrix:
        """Return the products of all pairs of rows, each less `centre`: n_rows x n_rows numbers."""
        step = max(self.block_rows, BLOCK_BYTES // (8 * max(self.n_columns, 1)))
        pieces = [slice(lo, min(lo + step, self.n_rows)) for lo in range(0, self.n_rows, step)]
        kernel = np.empty((self.n_rows, self.n_rows))
        for k, first in enumerate(pieces):
            ours = self.block(first.start, first.stop) - centre
            for second in pieces[: k + 1]:
                product = ours @ (self.block(second.start, second.stop) - centre).T
                kernel[first, second], kernel[second, first] = product, product.T
        return kernel

    def map_taken(
        self, indices: Indices, pieces: Sequence[slice], function: Callable[[slice, Matrix], Result]
    ) -> Iterable[Result]:
        """Apply a function to pieces of the rows with these indices, as `take` returns them.

        ``function(piece, rows)`` gets a slice of `indices`. Chunked rows choose their own pieces.
        """
        return map_in_threads(lambda piece: function(piece, self.take(indices[piece])), pieces)

    def ranges(self, columns: Indices, weights: Vector | None) -> tuple[Vector, Vector]:
        """Return minimum and maximum of some columns, over the rows with a positive weight.

        Of the data without shift; infinity and minus infinity where there is no such row.
        """
        low, high = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
        plain = self.shifted(None)
        for rows in self._slices(0, self.n_rows):
            block = plain.block(rows.start, rows.stop)[:, columns]
            block = block if weights is None else block[weights[rows] > 0]
            low = np.minimum(low, block.min(axis=0, initial=np.inf))
            high = np.maximum(high, block.max(axis=0, initial=-np.inf))
        return low, high

    def spread_along(
        self, directions: Matrix, centre: Vector, weights: Vector | None
    ) -> tuple[Matrix, Matrix]:
        """Return T'ST and T'SC for the centred rows C and their scores T in some directions.

        Directions have shape (n_directions, n_columns). The centre is subtracted after the shift.
        """

        def spread(rows: slice) -> tuple[Matrix, Matrix]:
            block = self._factor(rows)
            scores = np.asarray(block @ directions.T) - directions @ centre
            weighted = scores
            if weights is not None:
                s = weights[rows]
                scores[s == 0.0] = 0.0
                weighted = s[:, None] * scores
            products = (block.T @ weighted).T - np.outer(weighted.sum(axis=0), centre)
            return scores.T @ weighted, products

        return self._added_up(spread, self._factor_slices())

    def triangle(self, standard: Standard, weights: Vector | None, targets: Matrix) -> Matrix:
        """Return rows R with R'R = A'A for the standardised rows A, bordered by their targets."""
        width = len(standard.columns) + len(targets)
        step = max(min(self.block_rows, WIDE_ROWS), 2 * width)

        def part(bounds: tuple[int, int]) -> Matrix:
            triangle = np.zeros((0, width))
            for lo in range(*bounds, step):
                hi = min(lo + step, bounds[1])
                s = None if weights is None else weights[lo:hi]
                block = standard.bordered(self.block(lo, hi), s, targets[:, lo:hi])
                triangle = reduce_rows([triangle, block])
            return triangle

        return np.vstack(map_in_threads(part, self.parts()))

    def first_not_finite(self) -> tuple[int, int, float] | None:
        """Return row, column and value of the first number that is NaN or infinite."""
        for rows in self._slices(0, self.n_rows):
            block = self.block(rows.start, rows.stop)
            wrong = ~np.isfinite(block)
            if wrong.any():
                row, column = (int(k) for k in np.argwhere(wrong)[0])
                return rows.start + row, column, float(block[row, column])
        return None

    def offset(self, coef: Vector, intercept: Scalars) -> Scalars:
        """Return the intercept that belongs to `coef` once the rows are shifted.

        Correctly rounded: with features far from zero, the terms cancel to a fraction of each.
        """
        if self.shift is None:
            return intercept
        if coef.ndim > 1:
            pairs = zip(coef, np.asarray(intercept), strict=True)
            return np.array([self.offset(c, float(b)) for c, b in pairs])
        products = (Fraction(c) * Fraction(s) for c, s in zip(coef, self.shift, strict=True))
        return float(sum(products, Fraction(float(intercept))))

    def _pass(self, coef: Vector, intercept: Scalars, weigh: Weigh | None) -> tuple[Any, ...]:
        """Return the scores and, if there are weights, their sums."""
        scores = np.empty((*coef.shape[:-1], self.n_rows))
        offset = np.asarray(self.offset(coef, intercept))[..., None]

        def score(rows: slice) -> tuple[Vector, ...]:
            block, t = self._factor(rows), scores[..., rows]
            scores_of_block(coef, block, out=t)
            t += offset
            if weigh is None:
                return ()
            x = weigh(t, rows)
            return sum_of_block(x, block), np.asarray(x.sum(axis=-1))

        return scores, *self._added_up(score, self._factor_slices())

    def _added_up(
        self, function: Callable[[slice], tuple[Any, ...]], slices: list[list[slice]] | None = None
    ) -> tuple[Any, ...]:
        """Add up several arrays that a function returns for slices of rows, in parts."""

        def part(slices: list[slice]) -> list[Any]:
            # An overflow shows in the result; rows of weight zero may score infinity.
            with np.errstate(over="ignore", invalid="ignore"):
                totals = list(function(slices[0]))
                for rows in slices[1:]:
                    for total, found in zip(totals, function(rows), strict=True):
                        total += found
            return totals

        parts = map_in_threads(part, self._block_slices() if slices is None else slices)
        return tuple(sum(found) for found in zip(*parts, strict=True))

    def parts(self) -> list[tuple[int, int]]:
        """Return the bounds of at most `N_PARTS` parts for threads, in whole blocks."""
        if self.n_rows * self.n_columns < SMALL:
            return [(0, self.n_rows)]
        n_blocks = -(-self.n_rows // self.block_rows)
        edges = np.linspace(0, n_blocks, min(N_PARTS, n_blocks) + 1).astype(int) * self.block_rows
        edges[-1] = self.n_rows
        return [(int(lo), int(hi)) for lo, hi in pairwise(edges)]

    def _block_slices(self) -> list[list[slice]]:
        """Return the slices of blocks, at least one, in each of the parts."""
        return [[*self._slices(*bounds)] or [slice(*bounds)] for bounds in self.parts()]

    # Products with a vector for each class need no dense rows: how these are read for them

    def _factor(self, rows: slice) -> Any:
        return self.block(rows.start, rows.stop)

    def _factor_slices(self) -> list[list[slice]]:
        return self._block_slices()

    def _slices(self, start: int, stop: int) -> Iterator[slice]:
        for lo in range(start, stop, self.block_rows):
            yield slice(lo, min(lo + self.block_rows, stop))


class DenseRows(Rows):
    """Rows of a two-dimensional array of any real type and any memory layout."""

    def __init__(self, X: AnyArray, shift: Vector | None = None) -> None:
        super().__init__(X.shape[0], X.shape[1], shift)
        self._X = X

    def block(self, start: int, stop: int) -> Matrix:
        # A view of the data where they are float64 and not shifted.
        block = self._X[start:stop].astype(np.float64, copy=False)
        return block if self.shift is None else block - self.shift

    def take(self, indices: Indices) -> Matrix:
        return self._less_shift(self._X[indices].astype(np.float64, copy=False))

    def shifted(self, shift: Vector | None) -> DenseRows:
        return DenseRows(self._X, shift)
