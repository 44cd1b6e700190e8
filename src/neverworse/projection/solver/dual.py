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
from neverworse.projection.coordinates.gram import Whitening
from neverworse.projection.coordinates.matrix_free import WeightSpace
from neverworse.projection.labels import Changes, split_labels
from neverworse.projection.problem import Projection
from neverworse.projection.solver.budget import Budget
from neverworse.projection.solver.hinge_pass import Band
from neverworse.projection.solver.hinges import LoadedHinges, StreamedHinges
from neverworse.projection.solver.imputed import ImputedHere
from neverworse.projection.solver.inside import reproduce_supervised
from neverworse.projection.solver.matrix_free import solve_matrix_free
from neverworse.projection.solver.metric import half_square
from neverworse.projection.solver.newton import DualSolution, is_optimal, minimise, totals_gap
from neverworse.projection.solver.passes import TINY, Pass, TypicalScores, load_undecided, pass_over
from neverworse.projection.solver.sampling import SAMPLE_ROWS, draw, sample_sizes
from neverworse.projection.solver.solution import Solution
from neverworse.rows._kept import Kept

WORKING_PER_COLUMN = 30  # rows per coordinate in a working set, or ...
WORKING_FRACTION = 0.02  # ... this fraction of all rows if that is more, ...
WORKING_BYTES = 2**26  # ... and does not take more than this
PUSH = 0.05  # how far samples are pushed out of the constraint set, see `_Search._solve_sample`
NEAR = 0.2  # the density of scores at zero is measured up to this fraction of a typical one
BAND = 3.5  # a row is undecided up to so many times the expected change of its score, ...
WIDE_BAND = 4.5  # ... or so many where the working set shall be final
COARSE = 0.5  # a sampled model is solved to this fraction of the angle that its sample leaves ...
FINE = 1e-14  # ... uncertain, a final one to this gap: then weights do not depend on the path
STEEP = 3.0  # σ at the start, in units of one over the width of the band
MOST_ROUNDS = 12
ENOUGH = 1e-3  # a gap at which working sets can take over from Newton's method on all rows, ...
FEW = 2  # ... if they hold at most one in so many rows
MANY = 0.25  # rows that left their corner are added to a working set unless this share of it
WORSE = 10.0  # give up on working sets when one leaves a gap so many times the smallest, ...
MOST_IDLE = 3  # ... or so many in a row do not make it smaller
SPARE = 1.25  # rows are copied in a pass so many times as far from their kink as seems needed
SLOW = 0.7  # give up on samples when a round leaves more of the uncertainty than this


def solve_dual(problem: Projection, tol: float, budget: Budget) -> Solution:
    """Minimise the dual of the projection over all unlabeled rows to a relative gap of `tol`."""
    if isinstance(problem.whitening, WeightSpace):
        return imputed_here(problem, solve_matrix_free(problem, problem.whitening, tol, budget))
    n_unlabeled = int(np.count_nonzero(problem.weights))
    search = _Search(problem, n_unlabeled, budget)
    n_classes, rank = np.atleast_2d(problem.linear).shape
    sizes = sample_sizes(n_classes, rank, n_unlabeled)
    if sizes:
        solution = search.run(sizes, tol)
        if solution is not None:
            return solution
    # A small problem; or so many rows on their kink that no working set holds them, or a few rows
    # so heavy that no sample stands for them. Newton's method on all rows.
    return search.run_on_all_rows(not sizes, tol)


def imputed_here(problem: Projection, solution: DualSolution) -> Solution:
    """Return the same solution with its soft labels, which are those of all rows."""
    imputed = ImputedHere(solution.q, problem.start.labels.unlabeled)
    return Solution(solution.z, imputed, solution.gap, solution.value)


class _Search:
    """Rounds of one pass over all rows and one small problem."""

    def __init__(self, problem: Projection, n_unlabeled: int, budget: Budget) -> None:
        self.problem = problem
        self.hinges = StreamedHinges(problem.whitening, problem.weights)
        self.n_unlabeled = n_unlabeled
        self.budget = budget
        self.seed = 0  # of samples; only the path depends on it, not the result
        self.total = float(problem.weights.sum())
        self.last = np.zeros_like(problem.linear)  # where samples have led to
        self.expected = TypicalScores(0.0, 0.0)
        fitting = WORKING_BYTES // (8 * max(self.hinges.rank, 1))
        most = min(int(WORKING_FRACTION * n_unlabeled), fitting)
        self.most = max(SAMPLE_ROWS, WORKING_PER_COLUMN * problem.linear.size, most)

    def run(self, sizes: list[int], tol: float) -> Solution | None:
        """Solve by samples and working sets; None where these do not lead to the end."""
        z = np.zeros_like(self.problem.linear)
        for size in sizes:
            chosen, sample = self._load_sample(size)
            z = self._solve_sample(sample, chosen, z)
        if half_square(z, self.problem.totals) > self.problem.floor:
            self.expected = self._scores_of(sample, chosen, z)
            del sample  # its memory is better used by working sets
            solution = self._refine(z, self.n_unlabeled / sizes[-1], None, tol)
            if solution is not None:
                return solution
            # Perhaps there is no direction to be found.
            chosen, sample = self._load_sample(sizes[-1])
        return reproduce_supervised(self.hinges, self.problem, sample, chosen, self.budget)

    def _scores_of(self, sample: LoadedHinges, chosen: Indices, z: Vector) -> TypicalScores:
        """Return what scores are like in a sample."""
        t, s = sample.scores(z), sample.weights
        typical = float(np.sqrt(np.sum(t**2 * s) / s.sum()))
        within = np.count_nonzero(self.problem.shape.at(chosen).margin(t) <= NEAR * typical)
        return TypicalScores(typical, within / max(2.0 * NEAR * typical * len(chosen), TINY))

    def _load_sample(self, size: int) -> tuple[Indices, LoadedHinges]:
        """Return a sample of the unlabeled rows."""
        chosen = draw(self.problem.weights, size)
        factor = self.n_unlabeled / len(chosen)
        at_hand = self.problem.sample
        if at_hand is not None and len(chosen) <= len(at_hand.indices):
            rows = at_hand.rows[np.searchsorted(at_hand.indices, chosen)]
            return chosen, self.hinges.load_copies(chosen, [rows], factor)
        return chosen, self.hinges.load(chosen, factor)

    def run_on_all_rows(self, in_memory: bool, tol: float) -> Solution:
        """Solve by Newton's method on all rows, roughly at first if working sets can take over."""
        problem = self.problem
        rows = np.flatnonzero(problem.weights) if in_memory else None
        hinges = self.hinges if rows is None else self.hinges.load(rows)
        shape = problem.shape if rows is None else problem.shape.at(rows)
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

        def for_all(solution: DualSolution) -> Solution:
            if rows is None:
                return imputed_here(problem, solution)
            q = np.zeros((*solution.q.shape[:-1], len(problem.weights)))
            q[..., rows] = solution.q
            return imputed_here(problem, replace(solution, q=q))

        rough = solve(self.last, start, roughly)
        if roughly == tol or self.budget.exhausted or rough.is_optimal(tol, problem.floor):
            return for_all(rough)
        finished = self._refine(rough.z, 1.0, for_all(rough), tol)
        if finished is None:
            finished = for_all(solve(rough.z, rough.q, tol))
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
        self, z: Vector, factor: float, rough: Solution | None, tol: float
    ) -> Solution | None:
        """Alternate passes over all rows with working sets until the gap is closed.

        Returns None where that does not happen; what was found so far if the budget is used up.

        Parameters
        ----------
        z : array
            Where to start.
        factor : float
            How many rows each row stands for that z comes from.
        rough : Solution or None
            What z belongs to, if it comes from all rows.
        tol : float
        """
        problem, shape, totals = self.problem, self.problem.shape, self.problem.totals
        exact, fine = rough is not None, min(0.1 * tol, FINE)
        before, changes = self._corners_of(rough)
        moved, angle, lowest, width, idle = 1.0, np.inf, np.inf, 0.0, 0
        for _ in range(MOST_ROUNDS):
            if not exact and half_square(z, totals) <= problem.floor:
                return None  # the sample gave no direction
            uncertain = width / WIDE_BAND
            if not exact:
                uncertain = self._angle(moved, factor, z) * self.expected.size
            made = self._pass_over(z, before, changes, self._band(uncertain, exact))
            if exact:
                gap = self._gap(z, made)
                lowest, idle = (gap, 0) if gap < lowest else (lowest, idle + 1)
                if gap > WORSE * lowest or idle == MOST_IDLE:
                    return None
            else:
                z, gap = self._best_length(z, made)
            value = half_square(z, totals)
            self.budget.n_passes += 1
            self.budget.report("pass over all rows", len(problem.weights), gap, value)
            optimal = exact and is_optimal(gap, value, tol, problem.floor)
            if self.budget.exhausted or optimal:
                return Solution(z, made.imputed(), gap, value)
            self.expected = made.scores(self.total, self.n_unlabeled)
            if not exact:
                last, angle = angle, self._angle(moved, factor, z)
                if angle > SLOW * last:
                    self.last = z
                    return None
            elif rough is not None:
                # The dual is strongly convex: the gap bounds the distance to the optimum.
                angle = float(np.sqrt(max(gap, 0.0) / value))
            if made.sums.n_left > MANY * self.most:
                # No working set holds all rows that have left their corner: back to samples.
                exact, lowest = False, np.inf
                angle = made.sums.farthest / (BAND * self.expected.size)
            uncertain = angle * self.expected.size
            made.count([BAND * uncertain, WIDE_BAND * uncertain])
            exact = exact or made.count_within(BAND * uncertain) <= self.most
            width = (WIDE_BAND if exact else BAND) * uncertain
            found, factor = made.undecided(width, self.most, exact)
            pulled, before = made.pulled, made.corners()
            del made  # has the scores of all rows
            working = load_undecided(self.hinges, found, factor)
            del found
            solved = minimise(
                working.hinges,
                problem.linear
                - pulled
                + working.hinges.pull(working.hinges.weights * working.corner),
                z,
                working.soft,
                shape=shape.at(working.indices),
                totals=totals,
                tol=fine if exact else (COARSE * self._angle(angle, factor, z)) ** 2,
                floor=problem.floor,
                budget=self.budget,
                sigma=STEEP / max(width, 1e-12),
            )
            moved = _angle_between(self._seen(z), self._seen(solved.z))
            z, changes = solved.z, Changes(working.indices, solved.q)
            del working  # before the next one is loaded
            if not exact:
                before = None
        return None

    def _corners_of(self, rough: Solution | None) -> tuple[Kept | None, Changes]:
        """Return where the soft labels of a solution are, but for some changes."""
        if rough is None:
            return None, Changes.none(self.problem.linear)
        assert isinstance(rough.imputed, ImputedHere)
        corners, changes = split_labels(self.problem.shape, rough.imputed.q)
        return self.problem.whitening.rows.place(corners), changes

    def _band(self, uncertain: float, exact: bool) -> Band:
        """Return which rows a pass shall copy, because they will probably be undecided.

        Parameters
        ----------
        uncertain : float
            How far scores are off, probably.
        exact : bool
            Whether the working set is going to be final.
        """
        rows = self.problem.whitening.rows
        if not (rows.takes_by_reading and isinstance(self.problem.whitening, Whitening)):
            return Band()
        rows_per_width = 2.0 * self.expected.density * self.n_unlabeled
        final = exact or rows_per_width * BAND * uncertain <= self.most
        width = SPARE * (WIDE_BAND if final else BAND) * uncertain
        share = SPARE**2 * self.most / max(rows_per_width * width, TINY)
        if final and share < 1.0 / SPARE:
            return Band()  # too many to be copied, and a sample will not do
        return Band(width, 1.0 if final else min(1.0, share))

    def _pass_over(self, z: Vector, before: Kept | None, changes: Changes, band: Band) -> Pass:
        self.seed += 1
        near, placed = NEAR * self.expected.size, self.problem.placed
        return pass_over(self.hinges, placed, z, before, changes, near, band, self.seed)

    def _gap(self, z: Vector, made: Pass) -> float:
        """Return the gap of a dual point and the soft labels of its working set."""
        gap, totals = made.sums.gap, self.problem.totals
        if totals is not None:
            gap += totals_gap(totals, z[..., -1], made.soft_total)
        return gap

    def _best_length(self, z: Vector, made: Pass) -> tuple[Vector, float]:
        """Return the multiple of z at which the dual is lowest, and its gap to the corners there.

        Hinges are linear along a ray, so that the dual is a parabola there.
        """
        problem, totals = self.problem, self.problem.totals
        slope = float(np.vdot(problem.linear, z)) - made.sums.along
        if totals is not None:
            slope += totals.support(z[..., -1])
        if slope < 0.0:
            made.length = -slope / (2.0 * half_square(z, totals))
            z, slope = made.length * z, made.length * slope
        point = made.pulled - problem.linear
        gap = half_square(point, totals) + half_square(z, totals) + slope
        if totals is not None:  # the corners' own totals need not be allowed
            off = point[..., -1] - totals.nearest(point[..., -1])
            gap += float(np.sum(np.abs(z[..., -1] * off) + 0.5 * off**2))
        return z, gap

    def _angle(self, moved: float, factor: float, z: Vector) -> float:
        """Return how far the direction of z is off in radians, where it comes from a sample.

        Let p be the density of the scores t at zero. When z turns by an angle `moved`, a fraction
        of about 0.8 p · moved · typical of the rows changes sign. One in `factor` of them was
        sampled, so the sum over them has, in a coordinate of spectrum λ, an error of
        sqrt(λ · factor · fraction). It turns z the less, the larger z is, and the more rows on
        their kink stand against it: by a factor of 1 + p λ.
        """
        density = self.expected.density
        fraction = min(1.0, 0.8 * density * moved * self.expected.size)
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


def _angle_between(a: Vector, b: Vector) -> float:
    """Return the angle in radians; a cosine would not tell the smallest ones from zero."""
    lengths = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if 0.0 in lengths:
        return np.pi / 2
    chord = float(np.linalg.norm(a / lengths[0] - b / lengths[1]))
    return 2.0 * float(np.arcsin(min(1.0, 0.5 * chord)))
