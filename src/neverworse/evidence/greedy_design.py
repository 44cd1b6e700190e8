"""Greedy picks of a design: each row lowers the variance most, given those before.

Exact, in few passes over the rows: picks are guessed from some promising rows, and one pass
checks that no other row would have been better at any turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from neverworse._typing import Indices, Matrix, Vector
from neverworse.rows import Rows, map_in_threads

# Rows that are looked at between two passes over all: those with the largest decrease.
POOL_BYTES = 2**24
POOL_ROWS = (64, 4096)
BATCH = 32  # picks that one pass checks
SINGULAR = 1e-10  # relative: second moments below are zero, but for rounding
UNBOUNDED = (1.0, 1.0, 0.0)  # a bound that leaves all rows to be checked
EQUAL = 1e-9  # relative: decreases that differ by less are equal, but for rounding


class PerRow:
    """Weights of all rows, of which each chunk gets its own."""

    def __init__(self, weights: Vector, start: int = 0) -> None:
        self.weights, self.start = weights, start

    def at(self, rows: slice) -> PerRow:
        """Return the weights of the rows in a slice."""
        return PerRow(self.weights[rows], self.start + rows.start)


@dataclass(frozen=True)
class Coordinates:
    """Coordinates of rows in which A is the identity; the intercept is among them."""

    transform: Matrix
    shift: Vector

    def of(self, rows: Matrix) -> Matrix:
        """Return the coordinates of some rows."""
        found = rows @ self.transform
        found += self.shift
        return found

    def projections(self, picks: Sequence[_Pick]) -> tuple[Matrix, Matrix]:
        """Return weights of columns and intercepts that give p and q of every pick, in turn."""
        vectors = np.array([v for pick in picks for v in (pick.direction, pick.image)])
        return vectors @ self.transform.T, (vectors @ self.shift)[:, None]


@dataclass(frozen=True)
class Design:
    """Rows with the matrices of a design, in coordinates in which A is the identity."""

    rows: Rows
    place: Coordinates
    moment: Vector  # M in these coordinates, a diagonal
    weights: PerRow  # of the rows that may be picked; zero for others


@dataclass(frozen=True)
class _Pick:
    """A picked row, and its effect on all others.

    With p = row·direction and q = row·image, in coordinates, a row's u'A⁻¹u falls by factor p²,
    and its u'A⁻¹MA⁻¹u changes by factor p (factor p square + q).
    """

    row: int
    gain: float
    direction: Vector
    image: Vector
    factor: float
    square: float

    def apply(self, p: Vector, q: Vector, leverage: Vector, influence: Vector) -> None:
        """Change leverage and influence of rows, in place."""
        fp = self.factor * p
        leverage -= fp * p
        q = q + self.square * fp
        q *= fp
        influence += q


@dataclass(frozen=True)
class _Pool:
    """Some rows: coordinates, leverage u'A⁻¹u and influence u'A⁻¹MA⁻¹u before a batch of picks.

    All are those of the rows times the roots of their weights, so that the decrease is influence /
    (1 + leverage), and zero for rows that may not be picked.
    """

    indices: Indices
    leverage: Vector
    influence: Vector
    coordinates: Matrix

    def join(self, other: _Pool) -> _Pool:
        """Return the rows of both, in the order of their indices, each once."""
        first = np.unique(np.concatenate([self.indices, other.indices]), return_index=True)[1]
        mine, theirs = vars(self), vars(other)
        return _Pool(**{k: np.concatenate([mine[k], theirs[k]])[first] for k in mine})


def pick_rows(design: Design, n: int) -> tuple[Indices, Vector]:
    """Pick rows: guessed from a pool of promising ones, and checked against all in one pass.

    A guess is right if no row outside decreases the loss more at its turn. Rows that do join the
    pool, and guessing goes on from there: every pass settles at least one pick, and as a rule all
    of a batch.
    """
    rows, place = design.rows, design.place
    settled: list[_Pick] = []
    state = rows.keep(_begin, place, design.moment, known=[design.weights])
    inverse = np.eye(len(design.moment))
    while True:
        taken = np.array([pick.row for pick in settled], dtype=np.intp)
        size = min(BATCH, n - len(settled))
        verb = {"known": [design.weights], "kept": [state]}
        pool = rows.fold(_promising, _Pool.join, place, taken, **verb)
        picks: list[_Pick] = []
        n_right = 0
        while n_right < size:
            picks = _guess(pool, picks[:n_right], inverse, design.moment, size)
            bound = _bound(picks, inverse, design.moment)
            n_right, others = rows.fold(_overtaking, _join, place, picks, bound, taken, **verb)
            pool = pool.join(others)
        settled += picks
        if len(settled) == n:
            found = np.array([pick.row for pick in settled], dtype=np.intp)
            return found, np.array([pick.gain for pick in settled])
        state = rows.keep(_advance, place, picks, **verb)
        for pick in picks:
            inverse = inverse - pick.factor * np.outer(pick.direction, pick.direction)


def _guess(pool: _Pool, picks: list[_Pick], inverse: Matrix, moment: Vector, n: int) -> list[_Pick]:
    """Return the picks and further ones, each the best of the pool at its turn."""
    leverage, influence = pool.leverage.copy(), pool.influence.copy()
    coordinates, picks, free = pool.coordinates, list(picks), np.ones(len(pool.indices), bool)
    for turn in range(n):
        if turn == len(picks):
            gains = np.where(free, influence / (1.0 + leverage), -np.inf)
            at = int(np.argmax(gains))
            direction = inverse @ coordinates[at]
            factor = 1.0 / (1.0 + leverage[at])
            square = float(direction @ (moment * direction))
            image = -2.0 * (inverse @ (moment * direction))
            row, gain = int(pool.indices[at]), float(gains[at])
            picks.append(_Pick(row, gain, direction, image, float(factor), square))
        pick = picks[turn]
        pick.apply(coordinates @ pick.direction, coordinates @ pick.image, leverage, influence)
        free[pool.indices == pick.row] = False
        inverse = inverse - pick.factor * np.outer(pick.direction, pick.direction)
    return picks


def _bound(picks: Sequence[_Pick], inverse: Matrix, moment: Vector) -> tuple[float, float, float]:
    """Return μ, β and g: rows with μ influence ≤ g (1 + β leverage) overtake none of the picks.

    The influence of no row grows by more than the largest eigenvalue of A⁻¹MA⁻¹, relative to the
    one before the picks, and its leverage falls to no less than the smallest of A⁻¹.
    """
    if moment.min() <= SINGULAR * moment.max():
        return UNBOUNDED  # some influence may grow from nothing
    try:
        start = linalg.cholesky(inverse @ (moment[:, None] * inverse), lower=True)
        whole = linalg.cholesky(inverse, lower=True)
    except linalg.LinAlgError:
        return UNBOUNDED
    mu, beta = 1.0, 1.0
    for pick in picks:
        relative = linalg.solve_triangular(start, inverse * np.sqrt(moment), lower=True)
        mu = max(mu, float(linalg.norm(relative, 2)) ** 2)
        relative = linalg.solve_triangular(whole, inverse, lower=True)
        relative = linalg.solve_triangular(whole, relative.T, lower=True)
        beta = min(beta, float(linalg.eigvalsh(relative)[0]))
        inverse = inverse - pick.factor * np.outer(pick.direction, pick.direction)
    return mu, max(beta, 0.0), min(pick.gain for pick in picks)


State = tuple[Vector, Vector]  # leverage and influence of the rows of a chunk


def _begin(rows: Rows, place: Coordinates, moment: Vector, weights: PerRow) -> State:
    """Return leverage and influence of the rows of a chunk."""
    sums = np.column_stack([np.ones(len(moment)), moment])
    found = np.empty((rows.n_rows, 2))

    def part(bounds: tuple[int, int]) -> None:
        for block in _blocks(rows, bounds):
            v = place.of(rows.block(block.start, block.stop))
            v *= v
            np.matmul(v, sums, out=found[block])

    list(map_in_threads(part, rows.parts()))
    return found[:, 0] * weights.weights, found[:, 1] * weights.weights


def _promising(
    rows: Rows, place: Coordinates, taken: Indices, weights: PerRow, state: State
) -> _Pool:
    """Return the rows of a chunk with the largest decrease."""
    gains = np.where(weights.weights > 0.0, state[1] / (1.0 + state[0]), -1.0)
    gains[_own(taken, weights)] = -1.0
    size = max(POOL_ROWS[0], min(POOL_ROWS[1], POOL_BYTES // (8 * len(place.shift))))
    size = min(size, rows.n_rows)
    chosen = np.sort(np.argpartition(-gains, size - 1)[:size])
    return _pool(rows, place, weights, state, chosen[gains[chosen] >= 0.0])


def _overtaking(
    rows: Rows,
    place: Coordinates,
    picks: Sequence[_Pick],
    bound: tuple[float, float, float],
    taken: Indices,
    weights: PerRow,
    state: State,
) -> tuple[int, _Pool]:
    """Return how many picks no row of a chunk overtakes, and rows that overtake the next one."""
    mu, beta, least = bound
    able = (weights.weights > 0.0) & (mu * state[1] > least * (1.0 + beta * state[0]))
    able[_own(taken, weights)] = False
    turns = {pick.row - weights.start: k for k, pick in enumerate(picks)}
    coef, intercept = place.projections(picks)

    def part(bounds: tuple[int, int]) -> tuple[int, list[int]]:
        n_right = len(picks)
        found: list[int] = []
        for block in _blocks(rows, bounds):
            chosen = np.flatnonzero(able[block])
            if not len(chosen):
                continue
            at = block.start + chosen
            t = coef @ rows.block(block.start, block.stop)[chosen].T + intercept
            t *= np.sqrt(weights.weights[at])
            leverage, influence = state[0][at], state[1][at]
            for k in range(min(n_right + 1, len(picks))):
                ahead = influence > picks[k].gain * (1.0 + EQUAL) * (1.0 + leverage)
                new = [row for row in at[ahead].tolist() if turns.get(row, k) >= k]
                if new:
                    n_right, found = k, found + new if k == n_right else new
                    break
                picks[k].apply(t[2 * k], t[2 * k + 1], leverage, influence)
        return n_right, found

    parts = list(map_in_threads(part, rows.parts()))
    n_right = min(n for n, _ in parts)
    chosen = np.array(sorted(row for n, found in parts if n == n_right for row in found), np.intp)
    return n_right, _pool(rows, place, weights, state, chosen)


def _advance(
    rows: Rows, place: Coordinates, picks: Sequence[_Pick], weights: PerRow, state: State
) -> State:
    """Return leverage and influence after some picks."""
    leverage, influence = state[0].copy(), state[1].copy()
    coef, intercept = place.projections(picks)

    def part(bounds: tuple[int, int]) -> None:
        for block in _blocks(rows, bounds):
            t = coef @ rows.block(block.start, block.stop).T + intercept
            t *= np.sqrt(weights.weights[block])
            for k, pick in enumerate(picks):
                pick.apply(t[2 * k], t[2 * k + 1], leverage[block], influence[block])

    list(map_in_threads(part, rows.parts()))
    return leverage, influence


def _blocks(rows: Rows, bounds: tuple[int, int]) -> Iterator[slice]:
    """Return slices of rows between bounds, a few rows at a time."""
    for lo in range(*bounds, rows.block_rows):
        yield slice(lo, min(lo + rows.block_rows, bounds[1]))


def _own(indices: Indices, weights: PerRow) -> Indices:
    """Return positions in a chunk of rows that are given by their positions among all."""
    positions = indices - weights.start
    return positions[(positions >= 0) & (positions < len(weights.weights))]


def _pool(rows: Rows, place: Coordinates, weights: PerRow, state: State, chosen: Indices) -> _Pool:
    coordinates = place.of(rows.take(chosen))
    coordinates *= np.sqrt(weights.weights[chosen])[:, None]
    return _Pool(chosen + weights.start, state[0][chosen], state[1][chosen], coordinates)


def _join(a: tuple[int, _Pool], b: tuple[int, _Pool]) -> tuple[int, _Pool]:
    return min(a[0], b[0]), a[1].join(b[1])
