r"""The dual problem, the rows that it consists of, and its duality gap (see `working_set`).

Every unlabeled row j is a hinge of the dual: :math:`s_j \max_q (-q \cdot t_j)`, which is
max(0, -t_j) for a label of one number. For several classes z has a row for each. The last function
is the gradient descent of Krijthe and Loog, by L-BFGS-B: a slow reference.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from neverworse._budget import Budget
from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse.projection.coordinates import EPS, LARGEST_GRAM, Coordinates
from neverworse.projection.label_sets import Box, LabelSet
from neverworse.projection.labels import Few, Labels, Scored, implied_labels, side_by_side
from neverworse.projection.totals import Totals
from neverworse.rows import BLOCK, DenseRows, blocks

TAKING_COST = 4  # taking one in this many rows is faster than reading all
COLUMNS = 8  # by which rows are told apart, where these can tell
LARGEST_DISTINCT_SHARE = 0.9  # of rows, up to which merging equal ones pays
ZERO = 8 * EPS  # a squared distance of so small a fraction of what is added up is zero


class Hinges:
    """Rows k_j in the coordinates of the dual, and weights s_j of their hinges; here in memory."""

    weights: Vector  # (n_rows,): s
    rank: int  # length of z
    map_taken: Callable[..., Iterable[Any]]  # of rows k with some indices, see `Rows`
    taking_costs: float = TAKING_COST  # what taking a row costs, in units of reading one
    _products: Matrix | None = None
    _last: tuple[Mask, Matrix] | None = None  # rows of the last Gram matrix, and this

    def __init__(self, rows: Matrix, weights: Vector) -> None:
        self.rows = DenseRows(rows)
        self.weights = weights
        self.rank = self.rows.n_columns
        self.map_taken = self.rows.map_taken

    def scores(self, z: Matrix) -> Matrix:
        """Return k_j·z for every row."""
        return self.rows.scores(z, np.zeros(len(z)))

    def adjoint(self, x: Matrix) -> Matrix:
        """Return Σ x_j k_j."""
        return self.rows.weighted_sum(x)

    def take(self, indices: Indices) -> Matrix:
        """Return the rows k with these indices."""
        return self.rows.take(indices)

    def products(self, indices: Indices, rows: Matrix) -> Matrix:
        """Return k_i·k_j of rows at hand; those of all rows are kept if most are asked for."""
        n = len(self.weights)
        if self._products is None and 2 * len(indices) >= n <= LARGEST_GRAM:
            every = self.take(np.arange(n))
            self._products = every @ every.T
        return rows @ rows.T if self._products is None else self._products[np.ix_(indices, indices)]

    def gram(self, indices: Indices, error: float) -> Matrix:
        """Return Σ s k k' over rows with these indices: the last such sum, plus and minus changes.

        Added up anew if many rows differ, or if rounding errors of the last sum may exceed `error`.
        """
        chosen = np.zeros(len(self.weights), np.bool_)
        chosen[indices] = True
        before, total = self._last or (~chosen, np.zeros((self.rank, self.rank)))
        many = 2 * np.count_nonzero(chosen != before) >= len(indices)
        if many or EPS * float(np.diag(total).max(initial=0.0)) > error:
            before, total = np.zeros_like(chosen), np.zeros_like(total)
        changed = np.flatnonzero(chosen != before)
        came, root = chosen[changed], np.sqrt(self.weights[changed])[:, None]

        def part(piece: slice, rows: Matrix) -> Matrix:
            rows = rows * root[piece]
            more, less = rows[came[piece]], rows[~came[piece]]
            return more.T @ more - less.T @ less

        self._last = chosen, total + self.summed(changed, part, total.shape)
        return self._last[1]

    def summed(
        self, indices: Indices, part: Callable[[slice, Matrix], Matrix], shape: tuple[int, ...]
    ) -> Matrix:
        """Return the sum of an array for each piece of the rows with these indices."""
        # Arrays are no larger than the rows that they are made of.
        n_pieces = max(1, len(indices) * self.rank // max(4 * BLOCK, int(np.prod(shape))))
        edges = [len(indices) * k // n_pieces for k in range(n_pieces + 1)]
        pieces = [slice(lo, hi) for lo, hi in pairwise(edges)]
        return sum(self.map_taken(indices, pieces, part), np.zeros(shape))

    def adjoint_some(self, indices: Indices, x: Matrix) -> Matrix:
        """Return Σ s_j x_j k_j over the rows with these indices."""
        x = self.weights[indices] * x
        if self.taking_costs * len(indices) < len(self.weights):
            return x @ self.take(indices)
        every = np.zeros((len(x), len(self.weights)))
        every[:, indices] = x
        return self.adjoint(every)


class StreamedHinges(Hinges):
    """Rows whose coordinates are computed on the way: every verb is one pass over all of them.

    Rows of weight zero, such as labeled ones, have no hinge: their scores are zero. Taking rows
    costs as much as a pass for as many as there are coordinates; where coordinates are as many as
    very many columns, no row is taken.
    """

    def __init__(self, coordinates: Coordinates, weights: Vector) -> None:
        self.coordinates = coordinates
        self.weights = weights
        self.rank = coordinates.rank
        self.map_taken = coordinates.map_taken
        self.taking_costs = max(TAKING_COST, self.rank) if coordinates.is_whitened else np.inf
        self._without_hinge = np.flatnonzero(weights == 0.0)

    def scores(self, z: Matrix) -> Matrix:
        t = self.coordinates.scores(z)
        t[:, self._without_hinge] = 0.0
        return t

    def adjoint(self, x: Matrix) -> Matrix:
        return self.coordinates.adjoint(self.coordinates.rows.weighted_sum(x), x.sum(axis=1))

    def take(self, indices: Indices, copies: AnyArray | None = None) -> Matrix:
        """Return rows k, perhaps from copies; in pieces, so that nothing is copied as a whole."""
        taken = np.empty((len(indices), self.rank))
        pieces = self._pieces(len(indices))
        if copies is None:
            deque(self.map_taken(indices, pieces, taken.__setitem__), maxlen=0)
        else:
            for piece in pieces:
                taken[piece] = self.coordinates.apply(copies[piece])
        return taken

    def load(self, indices: Indices, copies: AnyArray | None = None, factor: float = 1.0) -> Hinges:
        """Return some of the rows in coordinates, with `factor` times their weights."""
        return Hinges(self.take(indices, copies), factor * self.weights[indices])

    def groups(
        self, indices: Indices, copies: AnyArray | None
    ) -> tuple[Indices, Indices, AnyArray] | None:
        """Return the first of each group of equal rows, the group of each row, and the first rows.

        None if few are equal, which a few columns tell most of the time.
        """
        rows, pieces = self.coordinates.rows, self._pieces(len(indices))

        def each(function: Callable[[slice, AnyArray], Any]) -> Iterable[Any]:
            if copies is None:
                return rows.map_taken(indices, pieces, function)
            return (function(piece, copies[piece]) for piece in pieces)

        def keys(columns: slice) -> NDArray[np.uint64]:
            return np.concatenate([*each(lambda _, taken: keys_of(taken[:, columns]))])

        most = LARGEST_DISTINCT_SHARE * len(indices)
        some = np.sort(keys(slice(COLUMNS)))  # np.unique takes several times as long
        if np.count_nonzero(some[1:] != some[:-1]) >= most:
            return None
        _, first, group = np.unique(keys(slice(None)), return_index=True, return_inverse=True)
        if len(first) > most:
            return None
        distinct = rows.take(indices[first]) if copies is None else copies[first]
        same = each(lambda piece, taken: np.array_equal(taken, distinct[group[piece]]))
        return (first, group, distinct) if all(same) else None

    def _pieces(self, n: int) -> list[slice]:
        step = self.coordinates.rows.block_rows // 4  # with what is computed from them, in cache
        return [slice(lo, lo + step) for lo in range(0, n, step)]


def keys_of(rows: AnyArray) -> NDArray[np.uint64]:
    """Return a number for each row that is the same for equal rows, and seldom for others.

    It is the sum of the words of a row, well mixed: whole numbers differ in few bits only.
    """
    odd = 2 * np.random.default_rng(0).integers(2**62, size=rows.shape[1]) + 1
    words = np.add(rows, 0.0, dtype=np.float64).view(np.uint64)  # where -0 is 0
    words ^= words >> np.uint64(29)
    return np.einsum("ij,j->i", words, odd.astype(np.uint64))


@dataclass(frozen=True)
class Projection:
    """Half the squared distance from the constraint set, to be minimised over soft labels."""

    # Of dual directions. The distance is Euclidean in them, unless they are not whitened
    coordinates: Coordinates
    linear: Matrix  # (n_classes, rank): the vector l
    first: Matrix  # Σ s_j q_j k_j for the allowed labels q nearest to the supervised scores
    first_total: Vector  # (n_classes,): Σ s_j q_j of these
    weights: AnyArray  # (n_rows,): weights of the unlabeled rows; zero for all other rows
    training_labels: Labels  # of all rows
    # The same where the rows are (`Labels`), and the supervised scores (`Scored`)
    labels: Any
    scored: Any
    # Restriction of their totals, in the units of the last coordinate, which then belongs to it
    totals: Totals | None = None
    length: float | None = None  # of the linear term; Euclidean if not given
    # (n,): unlabeled rows to start with, and copies of them, where taking them would take a pass
    sample: Indices = field(default_factory=lambda: np.empty(0, np.intp))
    copies: Sequence[AnyArray] = ()  # of each chunk

    @property
    def shape(self) -> LabelSet:
        return self.training_labels.shape

    @property
    def unlabeled(self) -> Mask:
        return self.training_labels.unlabeled

    @cached_property
    def floor(self) -> float:
        """A squared distance (halved) that cannot be told from zero."""
        length = np.linalg.norm(self.linear) if self.length is None else self.length
        return ZERO * float(length + np.sqrt(self.weights.sum())) ** 2

    def start(self, indices: Indices | None = None) -> Matrix:
        """Return the labels, allowed or not, that give supervised scores: of all rows, or some."""
        labels, rows = self.training_labels, self.coordinates.rows
        if indices is None:
            found = rows.map_state(attrgetter("scores"), (self.scored,))
            scores = side_by_side(found, rows.n_rows)
            return implied_labels(scores, labels.target, labels.width)
        found = rows.map_state(Scored.scores_at, (self.scored,), known=(Few(indices),))
        scores = side_by_side(found, len(indices))
        return implied_labels(scores, labels.target[:, indices], labels.width[indices])

    def of_all_rows(self, q: Matrix) -> Matrix:
        """Return soft labels of all rows, given those of the unlabeled ones; zero for others."""
        every = np.zeros((len(q), len(self.weights)))
        every[:, self.unlabeled] = q
        return every

    def with_totals(self, totals: Totals) -> Projection:
        """Return the problem with restricted totals: one more coordinate, of unit length."""
        size = 1.0 / np.sqrt(self.weights.sum())
        return replace(
            self,
            coordinates=self.coordinates.with_total(size),
            linear=np.column_stack([self.linear, np.zeros(len(self.linear))]),
            first=np.column_stack([self.first, size * self.first_total]),
            totals=totals.scaled(size),
        )


@dataclass(frozen=True)
class DualSolution:
    """A dual point with the soft labels that prove how good it is."""

    # (n_classes, rank): Σ s_j q_j k_j - l (times the inverse of M, if that is not the identity).
    # Its last coordinate is the multiplier of the totals, if these are restricted
    z: Matrix
    q: Matrix  # (n_classes, n): soft labels
    gap: float  # duality gap of the pair: by how much the value may exceed the smallest, at most
    # Half the squared distance, ½‖z‖² (without the multiplier): what the soft labels minimise
    value: float

    def is_optimal(self, tol: float, floor: float) -> bool:
        return is_optimal(self.gap, self.value, tol, floor)


def is_optimal(gap: float, value: float, tol: float, floor: float) -> bool:
    """Whether a gap is small against the value, or one of both cannot be told from zero."""
    return gap <= max(tol * value, floor) or value <= floor


def half_square(z: Matrix, totals: Totals | None) -> float:
    """Return ½‖z‖², without the multiplier of the totals if there is one."""
    direction = z if totals is None else z[:, :-1]
    return 0.5 * float(np.vdot(direction, direction))


def duality_gap(t: Matrix, q: Matrix, s: Vector, shape: LabelSet) -> float:
    """Return Σ s (q·t + max(-q·t)): every term says how far a soft label is from its corner."""
    total = 0.0
    for rows in blocks(t):  # so that nothing as long as t is made on the way
        at = (q[:, rows] * t[:, rows]).sum(axis=0)
        total += float(s[rows] @ (at + shape.at(rows).support(t[:, rows])))
    return total


def solve_lbfgs(problem: Projection, tol: float, budget: Budget) -> DualSolution:
    """Minimise over soft labels in [0, 1], in whitened coordinates, by projected gradients.

    As Krijthe and Loog describe it, started as they do from a half for every soft label, and here
    run on until the duality gap is closed or no progress is made.
    """
    used = np.flatnonzero(problem.weights)
    hinges = StreamedHinges(problem.coordinates, problem.weights).load(used)
    s = hinges.weights
    best = DualSolution(np.empty((1, 0)), np.full((1, len(s)), 0.5), np.inf, np.inf)

    def value_and_gradient(labels: Vector) -> tuple[float, Vector]:
        nonlocal best
        budget.spend()
        q = labels[None].copy()
        z = hinges.adjoint(s * q) - problem.linear
        t = hinges.scores(z)
        value = half_square(z, None)
        solution = DualSolution(z, q, duality_gap(t, q, s, Box()), value)
        if solution.gap < best.gap:
            best = solution
        return value, s * t[0]

    def stop(_: Vector) -> None:
        if budget.exhausted or best.is_optimal(tol, problem.floor):
            raise StopIteration

    gap = np.inf
    while True:  # its line search may give up early; another start from there may not
        optimize.minimize(
            value_and_gradient,
            best.q[0],
            jac=True,
            method="L-BFGS-B",
            bounds=optimize.Bounds(0.0, 1.0),
            callback=stop,
            options={"maxiter": 10**6, "maxfun": 10**7, "ftol": 0.0, "gtol": 0.0, "maxcor": 20},
        )
        if budget.exhausted or best.is_optimal(tol, problem.floor) or best.gap >= 0.9 * gap:
            q = np.zeros((1, len(problem.weights)))
            q[:, used] = best.q
            return replace(best, q=q[:, problem.unlabeled])
        gap = best.gap
