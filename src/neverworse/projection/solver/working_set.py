r"""Project through working sets: block descent on the soft labels, one pass over the rows a round.

Half the squared distance is a convex function of the soft labels,

.. math:: \tfrac12 \lVert z \rVert^2, \qquad z = \sum_j s_j q_j k_j - l, \qquad t_j = k_j \cdot z,

and the duality gap is a sum over rows, :math:`\sum_j s_j (q_j \cdot t_j + \max_q (-q \cdot t_j))`.

A round takes a working set W: the rows with the largest terms of the gap, and those nearest to
their kink. It solves for their labels exactly, all others fixed, by the augmented Lagrangian (see
`newton`). The labels of W alone give the new z, and a pass over all rows at z gives the gap and
the next working set. The distance never grows, and z always belongs to the labels: nothing is
guessed, so there is nothing to fall back from. A working set that leaves more than a tenth of the
gap was too small; the next is larger, up to all rows.

The start is the same proximal step on all rows. With the supervised scores g as its centre, soft
labels are the allowed ones nearest to :math:`g_j - k_j \cdot a`, with a = σz for the minimum z of

.. math:: \tfrac12 \lVert z \rVert^2 + l \cdot z + \sum_j s_j \max_q \Big( -q \cdot t_j -
          \frac{\lVert q - g_j \rVert^2}{2 \sigma} \Big) .

It is found on a sample, which stands for the *change* from the labels at a = 0: their sum over all
rows is known from the pass that scores the rows. σ grows until no more rows are undecided than a
working set holds, or what is left of the gap or of the distance is less than the sampling error.
If the supervised weights are in the constraint set, the distance that is left is so small that the
first working sets take it up, and the loop ends at a distance of zero. Where the second working set
could hold all rows, they are all solved for at the start, roughly. Equal rows are merged, and their
weights added; where most are equal, the rows that differ are all solved for at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from neverworse._budget import Budget
from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.projection.label_sets import LabelSet
from neverworse.projection.labels import Few, rows_that_differ, side_by_side
from neverworse.projection.solver.newton import FIRST_SIGMA, LARGEST_SIGMA, SIGMA_GROWTH, Newton
from neverworse.projection.solver.newton_system import ROUGH
from neverworse.projection.solver.passes import Candidates, Findings, Imputed, measure, soften
from neverworse.projection.solver.problem import (
    DualSolution,
    Hinges,
    Projection,
    StreamedHinges,
    duality_gap,
    half_square,
    is_optimal,
)
from neverworse.rows import add_pairs

FEWEST_ROWS = 2000  # in a working set, or ...
ROWS_PER_UNKNOWN = 30  # ... this many for each number in z, or ...
LARGEST_SHARE = 0.02  # ... this share of all rows, if that is more ...
WORKING_BYTES = 2**26  # ... and does not take more memory than this
LARGEST_GAP_SHARE = 0.1  # share of the gap that a round may leave without a larger working set, ...
SET_GROWTH = 4  # ... which is this many times the last one
NAMED_ROWS = 2  # by a pass, for each row of the next working set
FINE = 1e-14  # relative gap of working sets at the end: then weights do not depend on the path


def working_set_size(n_unknowns: int, rank: int, n_rows: int) -> int:
    """Return how many rows the first working set has; z has `rank` numbers for each class."""
    fitting = WORKING_BYTES // (8 * max(rank, 1))
    share = min(int(LARGEST_SHARE * n_rows), fitting)
    return max(FEWEST_ROWS, ROWS_PER_UNKNOWN * n_unknowns, share)


def is_small(n_unknowns: int, rank: int, n_rows: int) -> bool:
    """Whether a problem begins with all rows, because the second working set would have them."""
    return SET_GROWTH * working_set_size(n_unknowns, rank, n_rows) >= n_rows


def draw(weights: Vector, size: int) -> Indices:
    """Return about `size` of the rows with a weight, at random, in increasing order."""
    n, n_weighted = len(weights), int(np.count_nonzero(weights))
    drawn = np.zeros(n, np.bool_)
    drawn[np.random.default_rng(0).integers(0, n, size * n // n_weighted)] = True
    chosen = np.flatnonzero(drawn & (weights > 0.0))
    return chosen if chosen.size else np.flatnonzero(weights)[:1]


def solve(problem: Projection, tol: float, budget: Budget) -> DualSolution:
    """Minimise the distance over soft labels, to a gap of `tol` or as far as the budget goes."""
    return _Loop(problem, tol, budget).run()


@dataclass
class _State:
    """Where the loop is."""

    z: Matrix  # the dual point; its last coordinate is the multiplier of the totals, if restricted
    primal: Matrix  # Σ s_j q_j k_j - l: z again, but for the totals in the last coordinate
    labels: Any  # soft labels of all rows, where the rows are: see `Imputed`
    # Soft labels of the last working set, which `labels` do not have yet
    changes: Few = field(default_factory=Few)
    gap: float = np.inf
    candidates: Sequence[Candidates] = ()  # of each chunk, for the next working set


@dataclass(frozen=True)
class _WorkingSet:
    """Rows that are solved for."""

    hinges: Hinges
    shape: LabelSet  # where their soft labels lie
    q: Matrix  # (n_classes, n): soft labels
    group: Indices | None = None  # where equal rows were merged: the row that stands for each

    def of_all(self, q: Matrix) -> Matrix:
        """Return soft labels for all rows, given those of the rows that differ."""
        return q if self.group is None else q.take(self.group, axis=1)


class _Loop:
    """Rounds of one working set and one pass."""

    def __init__(self, problem: Projection, tol: float, budget: Budget) -> None:
        self.problem, self.tol, self.budget = problem, tol, budget
        # Farther than asked for, at the end: weights may differ by the root of the gap.
        self.finest = min(0.1 * tol, max(ROUGH * tol**2, FINE))
        self.hinges = StreamedHinges(problem.coordinates, problem.weights)
        self.n_rows = int(np.count_nonzero(problem.weights))
        self.rank = problem.coordinates.rank
        self.size = working_set_size(problem.linear.size, self.rank, self.n_rows)
        self.copies = 1.0  # of each row in a working set, on average: equal rows cost nothing
        self.merges = problem.coordinates.whitens_copies and problem.shape.is_uniform
        self.most_loaded = SET_GROWTH * WORKING_BYTES // (8 * max(self.rank, 1))  # rows

    def run(self) -> DualSolution:
        problem, budget = self.problem, self.budget
        if self.n_rows <= self.size or self._are_mostly_equal():
            return self._solve_all(*self._supervised(), self.finest, FIRST_SIGMA)
        small = is_small(problem.linear.size, self.rank, self.n_rows)
        state = self._first_of_all() if small else self._first_of_sample()
        before = np.inf
        while True:
            value = half_square(state.primal, problem.totals)
            if budget.exhausted or is_optimal(state.gap, value, self.tol, problem.floor):
                return DualSolution(state.z, self._labels(state), state.gap, value)
            if state.gap > LARGEST_GAP_SHARE * before:
                self.size *= SET_GROWTH
            if self.size >= self.n_rows or self.size > self.most_loaded:
                q = problem.of_all_rows(self._labels(state))
                return self._solve_all(state.z, q, self.finest, self._sigma(state))
            before = state.gap
            self._solve_working_set(state)
            value = half_square(state.primal, problem.totals)
            if value <= problem.floor:
                return DualSolution(state.z, self._labels(state), 0.0, value)
            if not budget.exhausted:
                self._measure(state)

    # The start

    def _supervised(self) -> tuple[Matrix, Matrix]:
        """Return the point of the supervised weights, and the labels nearest to their scores."""
        return np.zeros_like(self.problem.linear), self.problem.shape.project(self.problem.start())

    def _are_mostly_equal(self) -> bool:
        """Whether at most half of the rows of a sample differ, which then has seen most others."""
        chosen, copies = self._sample
        found = self.hinges.groups(chosen, copies) if self.merges else None
        self.merges = found is not None  # otherwise, working sets have few equal rows as well
        fits = self.n_rows <= self.most_loaded
        return fits and found is not None and 2 * len(found[0]) <= len(chosen)

    def _first_of_all(self) -> _State:
        """Return the state after solving for the labels of all rows, roughly."""
        problem = self.problem
        solved = self._solve_all(*self._supervised(), max(ROUGH, self.tol), FIRST_SIGMA)
        q = problem.of_all_rows(solved.q)
        primal = self.hinges.adjoint(problem.weights * q) - problem.linear
        labels = problem.coordinates.rows.scatter(Imputed(q))
        n_free = int(np.count_nonzero(problem.shape.is_free(q) & (problem.weights > 0.0)))
        self.size = max(FEWEST_ROWS, SET_GROWTH * n_free)
        state = self._state(primal, solved.z, labels)
        if not self.budget.exhausted:
            self._measure(state)
        return state

    def _first_of_sample(self) -> _State:
        """Return the state after the proximal step on all rows."""
        problem = self.problem
        z, sigma = self._solve_sample()
        found, labels = self._pass(soften, sigma * z, kept=(problem.labels, problem.scored))
        sums = reduce(add_pairs, (one.sums for one in found))
        state = self._state(problem.coordinates.adjoint(*sums) - problem.linear, z, labels)
        # Scores were those of another point, and say nothing about the gap.
        state.candidates = [one.candidates for one in found]
        return state

    def _state(self, primal: Matrix, z: Matrix, labels: Any) -> _State:
        """Return the state of soft labels; of z nothing but the multiplier counts."""
        point = primal
        if self.problem.totals is not None:
            point = np.column_stack([primal[:, :-1], z[:, -1]])
        return _State(point, primal, labels)

    @cached_property
    def _sample(self) -> tuple[Indices, AnyArray | None]:
        """The rows of the sample, and copies of them if there are any."""
        problem = self.problem
        if not problem.sample.size:
            return draw(problem.weights, self.size), None
        return problem.sample, np.concatenate(problem.copies)

    def _solve_sample(self) -> tuple[Matrix, float]:
        """Return the minimum of the smoothed function on a sample, and its σ."""
        problem = self.problem
        chosen, copies = self._sample
        n, factor = len(chosen), self.n_rows / len(chosen)
        sample = self.hinges.load(chosen, copies, factor)
        shape, centre = problem.shape.at(chosen), problem.start(chosen)
        first = shape.project(centre)
        linear = problem.linear - problem.first + sample.adjoint(sample.weights * first)
        newton = Newton(sample, linear, shape, problem.totals, problem.floor, self.budget)
        at = newton.start(np.zeros_like(linear), first)
        rows = sample.rows.block(0, n)
        squares = np.einsum("ij,ij->i", rows, rows) * sample.weights**2
        sigma, largest = SIGMA_GROWTH**2, LARGEST_SIGMA[shape.is_coupled]
        while True:
            newton.descend(at, centre, sigma, ROUGH)
            self.budget.report("sample", n)
            n_free = factor * np.count_nonzero(shape.is_free(at.soft))
            change = ((at.soft - first) ** 2).sum(axis=0)
            sampling_error = 0.5 * float(change @ squares)
            gap = duality_gap(at.scores, at.soft, sample.weights, shape)
            value = half_square(at.z, problem.totals)
            done = 2 * n_free <= self.size or min(gap, value) <= ROUGH * sampling_error
            if done or sigma >= largest or self.budget.exhausted:
                return at.z, sigma
            sigma *= SIGMA_GROWTH

    # A round

    def _solve_working_set(self, state: _State) -> None:
        """Solve for the labels of some rows, all others fixed."""
        problem = self.problem
        starts = problem.coordinates.rows.chunk_starts
        chosen, before, copies = Candidates.best(state.candidates, starts, self._n_chosen())
        state.candidates = ()
        working = self._load(chosen, before, copies)
        hinges = working.hinges
        own = hinges.adjoint(hinges.weights * working.q)
        newton = self._newton(working, own - state.primal, ROUGH * problem.floor)
        tol, sigma = self._tolerance(state), self._sigma(state)
        solved = newton.minimise(state.z, working.q, tol, 0.1 * self.tol, sigma)
        primal = state.primal - own + hinges.adjoint(hinges.weights * solved.q)
        allowed = problem.totals is None  # others may have to be approached first
        if allowed and half_square(primal, None) > half_square(state.primal, None):
            return  # these rows were solved for already, as well as a rough tolerance sees
        state.primal = primal
        state.z = solved.z
        q = working.of_all(solved.q)
        changed = rows_that_differ(q, before)
        state.changes = Few(chosen[changed], q[:, changed])
        self.copies = len(chosen) / len(hinges.weights)

    def _n_chosen(self) -> int:
        """Return how many rows the next working set has, equal ones included."""
        return max(self.size, min(int(self.copies * self.size), self.most_loaded))

    def _load(self, indices: Indices, q: Matrix, copies: AnyArray | None) -> _WorkingSet:
        """Return rows with their soft labels; equal ones are merged, and their weights added."""
        hinges, shape = self.hinges, self.problem.shape
        found = hinges.groups(indices, copies) if self.merges else None
        if found is None:
            return _WorkingSet(hinges.load(indices, copies), shape.at(indices), q)
        first, group, distinct = found
        weights = hinges.weights[indices]
        total = np.bincount(group, weights).astype(np.float64)
        mean = np.array([np.bincount(group, weights * share) / total for share in q])
        loaded = Hinges(hinges.take(indices[first], distinct), total)
        shape = shape.at(indices[first])
        return _WorkingSet(loaded, shape, shape.project(mean), group)

    def _newton(self, working: _WorkingSet, linear: Matrix, floor: float) -> Newton:
        totals, budget = self.problem.totals, self.budget
        return Newton(working.hinges, linear, working.shape, totals, floor, budget)

    def _tolerance(self, state: _State) -> float:
        """Return the gap to which a working set is solved: no better than the round deserves."""
        relative_gap = self._relative_gap(state)
        # Near the end, the round may well be the last.
        return self.finest if relative_gap < ROUGH else ROUGH * relative_gap**2

    def _sigma(self, state: _State) -> float:
        """Return the first σ: the nearer, the larger."""
        return FIRST_SIGMA / float(np.sqrt(self._relative_gap(state)))

    def _relative_gap(self, state: _State) -> float:
        """Return the gap relative to the value, at most one."""
        value = max(half_square(state.primal, self.problem.totals), self.problem.floor)
        return max(min(1.0, state.gap / value), FINE)

    def _measure(self, state: _State) -> None:
        problem = self.problem
        kept = (problem.labels, state.labels)
        found, state.labels = self._pass(measure, state.z, known=(state.changes,), kept=kept)
        state.candidates, state.changes = [one.candidates for one in found], Few()
        state.gap = float(sum(one.gap for one in found))
        if problem.totals is not None:
            state.gap += problem.totals.gap(state.z[:, -1], state.primal[:, -1])
        value = half_square(state.primal, problem.totals)
        self.budget.report("pass over all rows", len(problem.weights), state.gap, value)

    def _pass(self, function: Any, z: Matrix, **chunks: Any) -> tuple[list[Findings], Any]:
        """Make a pass with the weights that belong to a point; see `Rows.keep`."""
        coordinates = self.problem.coordinates
        w = coordinates.to_weights(z)
        copy = coordinates.whitens_copies and not coordinates.rows.random_access
        # The next working set may be larger, and rows that matter may lie together in one chunk.
        size = self._n_chosen()
        most = min(NAMED_ROWS * size, max(size, self.most_loaded))
        self.budget.n_passes += 1
        named = (most / self.n_rows, copy)
        return coordinates.rows.keep(function, w.coef, w.intercept, named, **chunks)

    # The end

    def _labels(self, state: _State) -> Matrix:
        rows, kept = self.problem.coordinates.rows, (state.labels, self.problem.labels)
        found = rows.map_state(Imputed.unlabeled_labels, kept, known=(state.changes,))
        return side_by_side(found, int(np.count_nonzero(self.problem.unlabeled)))

    def _solve_all(self, z: Matrix, q: Matrix, tol: float, sigma: float) -> DualSolution:
        """Solve for the labels of all rows, which are loaded if they are not too many."""
        problem = self.problem
        rows: Any = np.flatnonzero(problem.weights)
        if len(rows) <= self.most_loaded:
            working = self._load(rows, q[:, rows], None)
        else:
            rows = slice(None)
            working = _WorkingSet(self.hinges, problem.shape, q)
        newton = self._newton(working, problem.linear, problem.floor)
        solved = newton.minimise(z, working.q, tol, self.tol, sigma)
        found = np.zeros_like(q)
        found[:, rows] = working.of_all(solved.q)
        return replace(solved, q=found[:, problem.unlabeled])
