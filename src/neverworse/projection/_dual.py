"""Project through the dual: a sample, a few passes over all rows, small working sets.

With n rows the optimum of a sample of m rows is off by about sqrt(rank / m). So a small sample
gives the first dual point; a pass over all rows gives the exact gradient there, and the rows near
their kink, of which again a sample models the curvature; the next pass finds so few rows near
their kink that the problem restricted to them is solved exactly, and the last pass proves that no
other row has changed its sign. Every pass reads the rows once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neverworse._typing import Indices, Vector
from neverworse.projection._budget import Budget
from neverworse.projection._hinges import LoadedHinges, StreamedHinges
from neverworse.projection._inside import reproduce_supervised
from neverworse.projection._line_search import blocks
from neverworse.projection._matrix_free import solve_matrix_free
from neverworse.projection._metric import half_square
from neverworse.projection._newton import DualSolution, duality_gap, minimise, totals_gap
from neverworse.projection._problem import Projection
from neverworse.projection._shapes import Shape
from neverworse.projection._weight_space import WeightSpace
from neverworse.rows._weigh import RowWeigh

SAMPLE_ROWS = 2000  # at least, in samples and working sets, and ...
SAMPLE_PER_COLUMN = (40, 200)  # ... so many rows per coordinate, in the first and second sample
SAMPLE_FRACTION = 0.05  # the second sample is no larger than this, unless the first is
WORKING_PER_COLUMN = 30  # rows per coordinate in a working set, or ...
WORKING_FRACTION = 0.02  # ... this fraction of all rows if that is more
PUSH = 0.05  # how far samples are pushed out of the constraint set, see `_Search._solve_sample`
BAND = 3.0  # a row is undecided up to so many times the expected change of its score, ...
WIDE_BAND = 4.0  # ... or so many where the working set shall be final
COARSE = 0.5  # a sampled model is solved to this fraction of the angle that is uncertain
STEEP = 3.0  # σ at the start, in units of one over the width of the band
MOST_ROUNDS = 12
ENOUGH = 1e-3  # a gap at which working sets can take over from Newton's method on all rows, ...
FEW = 2  # ... if they hold at most one in so many rows
WORSE = 10.0  # give up on working sets when one leaves a gap so many times the smallest
SLOW = 0.7  # give up on samples when a round leaves more of the uncertainty than this


def solve_dual(problem: Projection, tol: float, budget: Budget) -> DualSolution:
    """Minimise the dual of the projection over all unlabeled rows to a relative gap of `tol`."""
    if isinstance(problem.whitening, WeightSpace):
        return solve_matrix_free(problem, problem.whitening, tol, budget)
    n_unlabeled = int(np.count_nonzero(problem.weights))
    search = _Search(problem, n_unlabeled, budget)
    first, most = (max(SAMPLE_ROWS, k * problem.linear.size) for k in SAMPLE_PER_COLUMN)
    # Several classes need a larger share of the rows before a sample stands for them.
    in_memory = n_unlabeled <= (2 if problem.linear.ndim == 1 else 3) * first
    if not in_memory:
        second = min(most, int(SAMPLE_FRACTION * n_unlabeled))
        sizes = [first, second] if second > 2 * first else [first]
        solution = search.run(sizes, tol)
        if solution is not None:
            return solution
    # A small problem; or so many rows on their kink that no working set holds them, or a few rows
    # so heavy that no sample stands for them. Newton's method on all rows.
    return search.run_on_all_rows(in_memory, tol)


class _Search:
    """Rounds of one pass over all rows and one small problem."""

    def __init__(self, problem: Projection, n_unlabeled: int, budget: Budget) -> None:
        self.problem = problem
        self.hinges = StreamedHinges(problem.whitening, problem.weights)
        self.n_unlabeled = n_unlabeled
        self.budget = budget
        self.random = np.random.default_rng(0)  # only the path depends on it, not the result
        self.total = float(problem.weights.sum())
        self.last = np.zeros_like(problem.linear)  # where samples have led to
        self.most = max(
            SAMPLE_ROWS,
            WORKING_PER_COLUMN * problem.linear.size,
            int(WORKING_FRACTION * n_unlabeled),
        )

    def run(self, sizes: list[int], tol: float) -> DualSolution | None:
        """Solve by samples and working sets; None where these do not lead to the end."""
        z = np.zeros_like(self.problem.linear)
        for size in sizes:
            chosen = self._choose(np.flatnonzero(self.problem.weights), size)
            sample = self.hinges.load(chosen, self.n_unlabeled / size)
            z = self._solve_sample(sample, chosen, z)
        if half_square(z, self.problem.totals) > self.problem.floor:
            del sample  # its memory is better used by working sets
            return self._refine(z, self.n_unlabeled / sizes[-1], None, tol)
        return reproduce_supervised(
            self.hinges,
            self.problem.shape,
            self.problem.totals,
            self.problem.linear,
            self.problem.start,
            sample,
            chosen,
            floor=self.problem.floor,
            budget=self.budget,
        )

    def run_on_all_rows(self, in_memory: bool, tol: float) -> DualSolution:
        """Solve by Newton's method on all rows, roughly at first if working sets can take over."""
        problem = self.problem
        rows = np.flatnonzero(problem.weights) if in_memory else slice(None)
        hinges = self.hinges.load(rows) if isinstance(rows, np.ndarray) else self.hinges
        shape = problem.shape.at(rows)
        start = shape.nearest(problem.start.at(rows))
        roughly = max(tol, ENOUGH) if self.n_unlabeled > FEW * self.most else tol

        def solve(z: Vector, q: Vector, tol: float) -> DualSolution:
            return minimise(
                hinges,
                problem.linear,
                z,
                q,
                shape=shape,
                totals=problem.totals,
                tol=tol,
                floor=problem.floor,
                budget=self.budget,
            )

        def for_all(solution: DualSolution) -> DualSolution:
            q = np.zeros_like(problem.start.scores)
            q[..., rows] = solution.q
            return replace(solution, q=q)

        solution = for_all(solve(self.last, start, roughly))
        if roughly == tol or self.budget.exhausted or solution.is_optimal(tol, problem.floor):
            return solution
        finished = self._refine(solution.z, 1.0, solution, tol)
        if finished is None:
            finished = for_all(solve(solution.z, solution.q[..., rows], tol))
        return finished

    def _solve_sample(self, sample: LoadedHinges, chosen: Indices, z: Vector) -> Vector:
        """Solve a random sample of the rows, no better than a sample deserves, for a direction.

        Where the supervised weights are just outside the constraint set, a sample may place them
        inside, and then has no direction to give. So they are pushed away from its centre: the
        nearest point moves little, and the length of z is found on all rows anyway.
        """
        problem, shape = self.problem, self.problem.shape.at(chosen)
        start = problem.start.at(chosen)
        middle = shape.middle(start.shape)
        pushed = problem.linear + PUSH * (problem.linear - sample.pull(sample.weights * middle))
        if problem.totals is not None:
            pushed[..., -1] = 0.0  # totals are what they are
        solution = minimise(
            sample,
            pushed,
            z,
            shape.nearest(start),
            shape=shape,
            totals=problem.totals,
            tol=0.1 * self.hinges.rank / len(chosen),
            floor=self.problem.floor,
            budget=self.budget,
        )
        return solution.z

    def _refine(
        self, z: Vector, factor: float, rough: DualSolution | None, tol: float
    ) -> DualSolution | None:
        """Alternate passes over all rows with working sets until the gap is closed.

        Returns None where that does not happen; what was found so far if the budget is used up.

        Parameters
        ----------
        z : array
            Where to start.
        factor : float
            How many rows each row stands for that z comes from.
        rough : DualSolution or None
            What z belongs to, if it comes from all rows.
        tol : float
        """
        problem, s = self.problem, self.problem.weights
        shape, totals = problem.shape, problem.totals
        exact, q = rough is not None, np.empty(0) if rough is None else rough.q
        moved, angle, lowest = 1.0, np.inf, np.inf
        for _ in range(MOST_ROUNDS):
            if not exact and half_square(z, totals) <= problem.floor:
                return None  # the sample gave no direction
            t, pulled = self.hinges.scores_and_pull(z, RowWeigh(_corners, (shape,)))
            corner = shape.extreme(t)
            if exact:
                solution = self._pair(z, t, q)
                lowest = min(lowest, solution.gap)
                if solution.gap > WORSE * lowest:
                    return None
            else:
                q = corner
                solution = self._with_best_length(z, t, q, pulled)
                z = solution.z
            self.budget.n_passes += 1
            self.budget.report("pass over all rows", len(s), solution.gap, solution.value)
            if self.budget.exhausted or (exact and solution.is_optimal(tol, problem.floor)):
                return solution
            typical = float(np.sqrt(_weighted_dot(t, t, s) / self.total))
            margin = _margin(shape, t)
            if not exact:
                before, angle = angle, self._angle(moved, factor, z, margin, typical)
                if angle > SLOW * before:
                    self.last = z
                    return None
            elif rough is not None:
                # The dual is strongly convex: the gap bounds the distance to the optimum.
                angle = float(np.sqrt(max(solution.gap, 0.0) / solution.value))
            uncertain = angle * typical
            exact = exact or self._count_within(margin, BAND * uncertain) <= self.most
            width = (WIDE_BAND if exact else BAND) * uncertain
            if exact:  # all rows that have changed their corner become undecided
                differs = q != corner if q.ndim == 1 else (q != corner).any(axis=0)
                changed = np.flatnonzero(differs & (s > 0.0))
                width = max(width, 2.0 * float(margin[changed].max(initial=0.0)))
            undecided, factor = self._undecided(margin, width, exact)
            start = q[..., undecided]
            del t, margin, q, solution  # as long as all rows
            working = self.hinges.load(undecided, factor)
            found = minimise(
                working,
                problem.linear - pulled + working.pull(working.weights * corner[..., undecided]),
                z,
                start,
                shape=shape.at(undecided),
                totals=totals,
                tol=0.1 * tol if exact else (COARSE * angle) ** 2,
                floor=problem.floor,
                budget=self.budget,
                sigma=STEEP / max(width, 1e-12),
            )
            del working  # before the next one is loaded
            moved = _angle_between(self._seen(z), self._seen(found.z))
            z, q = found.z, corner
            q[..., undecided] = found.q
        return None

    def _pair(self, z: Vector, t: Vector, q: Vector) -> DualSolution:
        """Return a dual point and the soft labels of its working set as a solution for all rows."""
        problem = self.problem
        gap = duality_gap(t, q, problem.weights, problem.shape)
        if problem.totals is not None:
            total = self.hinges.pull(problem.weights * q)[..., -1]
            gap += totals_gap(problem.totals, z[..., -1], total)
        return DualSolution(z, q, gap, half_square(z, problem.totals))

    def _count_within(self, margin: Vector, width: float) -> int:
        return int(np.count_nonzero((margin <= width) & (self.problem.weights > 0.0)))

    def _undecided(self, margin: Vector, width: float, exact: bool) -> tuple[Indices, float]:
        """Return rows at most `width` from their kink, and how many rows each stands for."""
        undecided = np.flatnonzero((margin <= width) & (self.problem.weights > 0.0))
        if len(undecided) <= self.most:
            return undecided, 1.0
        if exact:
            nearest = np.argpartition(margin[undecided], self.most)[: self.most]
            return np.sort(undecided[nearest]), 1.0
        return self._choose(undecided, self.most), len(undecided) / self.most

    def _choose(self, rows: Indices, size: int) -> Indices:
        """Return so many of the rows at random, in their order."""
        return np.sort(self.random.choice(rows, size, replace=False, shuffle=False))

    def _with_best_length(self, z: Vector, t: Vector, q: Vector, pulled: Vector) -> DualSolution:
        """Return the multiple of z at which the dual is lowest, with the labels of its signs.

        Hinges are linear along a ray, so that the dual is a parabola there. Scales t as well.
        """
        problem, totals = self.problem, self.problem.totals
        slope = float(np.vdot(problem.linear, z))
        slope -= _weighted_dot(q, t, problem.weights)
        if totals is not None:
            slope += totals.support(z[..., -1])
        if slope < 0.0:
            length = -slope / (2.0 * half_square(z, totals))
            z, slope = length * z, length * slope
            t *= length
        point = pulled - problem.linear
        gap = half_square(point, totals) + half_square(z, totals) + slope
        if totals is not None:  # the corners' own totals need not be allowed
            off = point[..., -1] - totals.nearest(point[..., -1])
            gap += float(np.sum(np.abs(z[..., -1] * off) + 0.5 * off**2))
        return DualSolution(z, q, gap, half_square(z, totals))

    def _angle(
        self, moved: float, factor: float, z: Vector, margin: Vector, typical: float
    ) -> float:
        """Return how far the direction of z is off in radians, where it comes from a sample.

        Let p be the density of the scores t at zero. When z turns by an angle `moved`, a fraction
        of about 0.8 p · moved · typical of the rows changes sign. One in `factor` of them was
        sampled, so the sum over them has, in a coordinate of spectrum λ, an error of
        sqrt(λ · factor · fraction). It turns z the less, the larger z is, and the more rows on
        their kink stand against it: by a factor of 1 + p λ.
        """
        near = 0.2 * typical
        density = max(1, self._count_within(margin, near)) / (2.0 * near * self.n_unlabeled)
        fraction = min(1.0, 0.8 * density * moved * typical)
        spectrum = self.problem.spectrum
        error = factor * fraction * np.sum(spectrum / (1.0 + density * spectrum) ** 2)
        error *= z.size / spectrum.size  # as many times as there are classes
        return float(np.sqrt(error) / np.linalg.norm(self._seen(z)))

    def _seen(self, z: Vector) -> Vector:
        """Return z as scores see it: intercept and multiplier shift them alike, and may cancel."""
        if self.problem.totals is None:
            return z
        whitening = self.problem.whitening
        shifts = whitening.shifts
        seen = np.where(shifts, 0.0, z)
        seen[..., -1] = z[..., shifts] @ (whitening.offset[shifts] / whitening.offset[-1])
        return seen


def _corners(t: Vector, shape: Shape) -> Vector:
    return shape.extreme(t)


def _margin(shape: Shape, t: Vector) -> Vector:
    """Return the margins of scores that are not needed any more: in their place, if they fit."""
    if t.ndim > 1:
        return shape.margin(t)
    for rows in blocks(t):
        t[rows] = shape.at(rows).margin(t[rows])
    return t


def _weighted_dot(a: Vector, b: Vector, weights: Vector) -> float:
    """Return Σ s_j a_j·b_j without making anything as long as a."""
    return float(np.einsum("...i,...i,i->...", a, b, weights).sum())


def _angle_between(a: Vector, b: Vector) -> float:
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    if lengths == 0.0:
        return np.pi / 2
    return float(np.arccos(np.clip(np.vdot(a, b) / lengths, -1.0, 1.0)))
