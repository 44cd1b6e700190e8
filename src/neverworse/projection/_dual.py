"""Project through the dual: a sample, a few passes over all rows, small working sets.

With n rows the optimum of a sample of m rows is off by about sqrt(rank / m). So a small sample
gives the first dual point; a pass over all rows gives the exact gradient there, and the rows near
their kink, of which again a sample models the curvature; the next pass finds so few rows near
their kink that the problem restricted to them is solved exactly, and the last pass proves that no
other row has changed its sign. Every pass reads the rows once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neverworse._typing import Indices, Vector
from neverworse.projection._budget import Budget
from neverworse.projection._hinges import LoadedHinges, StreamedHinges
from neverworse.projection._inside import reproduce_supervised
from neverworse.projection._newton import DualSolution, duality_gap, minimise
from neverworse.projection._whitening import EPS, Whitening

SAMPLE_ROWS = 2000  # at least, and ...
SAMPLE_PER_COLUMN = (40, 200)  # ... so many rows per coordinate, in the first and second sample
SAMPLE_FRACTION = 0.05  # the second sample is no larger than this, unless the first is
WORKING_PER_COLUMN = 30  # rows per coordinate in a working set, or ...
WORKING_FRACTION = 0.02  # ... this fraction of all rows if that is more
PUSH = 0.05  # how far samples are pushed out of the constraint set, see `_Search.sample`
BAND = 3.0  # a row is undecided up to so many times the expected change of its score, ...
WIDE_BAND = 5.0  # ... or so many where the working set shall be final
MOST_ROUNDS = 12
SLOW = 0.7  # give up on samples when a round leaves more of the uncertainty than this
ZERO = 8 * EPS  # a squared distance of so small a fraction of what is added up is zero


@dataclass(frozen=True)
class Projection:
    """The problem that the dual solver solves.

    Attributes
    ----------
    whitening : Whitening
        Coordinates z of the dual directions, in which the distance is Euclidean.
    linear : array of shape (rank,)
        The linear term l of the dual.
    weights : array of shape (n_rows,)
        Weights of the unlabeled rows; zero for all other rows.
    scores : array of shape (n_rows,)
        Supervised scores.
    """

    whitening: Whitening
    linear: Vector
    weights: Vector
    scores: Vector

    @property
    def floor(self) -> float:
        """A squared distance (halved) that cannot be told from zero."""
        size = float(np.linalg.norm(self.linear) + np.sqrt(self.weights.sum()))
        return ZERO * size**2


def solve_dual(problem: Projection, tol: float, budget: Budget) -> DualSolution:
    """Minimise the dual of the projection over all unlabeled rows to a relative gap of `tol`."""
    hinges = StreamedHinges(problem.whitening, problem.weights)
    unlabeled = np.flatnonzero(problem.weights)
    first, most = (max(SAMPLE_ROWS, k * hinges.rank) for k in SAMPLE_PER_COLUMN)
    if len(unlabeled) <= 2 * first:
        return _solve_loaded(problem, hinges, unlabeled, tol, budget)
    second = min(most, int(SAMPLE_FRACTION * len(unlabeled)))
    sizes = [first, second] if second > 2 * first else [first]
    solution = _Search(problem, hinges, unlabeled, budget).run(sizes, tol)
    if solution is not None:
        return solution
    # So many rows on their kink that no working set holds them, or a few rows so heavy that
    # no sample stands for them. Newton's method on all rows, with passes for each step.
    return minimise(
        hinges,
        problem.linear,
        np.zeros(hinges.rank),
        np.clip(problem.scores, 0.0, 1.0),
        tol=tol,
        floor=problem.floor,
        budget=budget,
    )


def _solve_loaded(
    problem: Projection, hinges: StreamedHinges, unlabeled: Indices, tol: float, budget: Budget
) -> DualSolution:
    """Solve a problem that is small enough to have all of its whitened rows in memory."""
    q = np.clip(problem.scores, 0.0, 1.0)
    solution = minimise(
        hinges.load(unlabeled),
        problem.linear,
        np.zeros(hinges.rank),
        q[unlabeled],
        tol=tol,
        floor=problem.floor,
        budget=budget,
    )
    q[unlabeled] = solution.q
    return DualSolution(solution.z, q, solution.gap)


class _Search:
    """Rounds of one pass over all rows and one small problem."""

    def __init__(
        self, problem: Projection, hinges: StreamedHinges, unlabeled: Indices, budget: Budget
    ) -> None:
        self.problem = problem
        self.hinges = hinges
        self.unlabeled = unlabeled
        self.budget = budget
        self.random = np.random.default_rng(0)  # only the path depends on it, not the result
        self.total = float(problem.weights.sum())
        self.most = max(WORKING_PER_COLUMN * hinges.rank, int(WORKING_FRACTION * len(unlabeled)))

    def run(self, sizes: list[int], tol: float) -> DualSolution | None:
        """Solve by samples and working sets; None where these do not lead to the end."""
        z = np.zeros(self.hinges.rank)
        for size in sizes:
            chosen = np.sort(self.random.choice(self.unlabeled, size, replace=False))
            sample = self.hinges.load(chosen, len(self.unlabeled) / size)
            z = self._solve_sample(sample, chosen, z)
        if 0.5 * float(z @ z) > self.problem.floor:
            return self._refine(z, sizes[-1], tol)
        return reproduce_supervised(
            self.hinges,
            self.problem.linear,
            self.problem.scores,
            sample,
            self.problem.scores[chosen],
            floor=self.problem.floor,
            budget=self.budget,
        )

    def _solve_sample(self, sample: LoadedHinges, chosen: Indices, z: Vector) -> Vector:
        """Solve a random sample of the rows, no better than a sample deserves, for a direction.

        Where the supervised weights are just outside the constraint set, a sample may place them
        inside, and then has no direction to give. So they are pushed away from its centre: the
        nearest point moves little, and the length of z is found on all rows anyway.
        """
        centre = 0.5 * sample.pull(sample.weights)
        solution = minimise(
            sample,
            centre + (1.0 + PUSH) * (self.problem.linear - centre),
            z,
            np.clip(self.problem.scores[chosen], 0.0, 1.0),
            tol=0.1 * self.hinges.rank / len(chosen),
            floor=self.problem.floor,
            budget=self.budget,
        )
        return solution.z

    def _refine(self, z: Vector, n_sample: int, tol: float) -> DualSolution | None:
        """Alternate passes over all rows with working sets until the gap is closed.

        Returns None where that does not happen; what was found so far if the budget is used up.
        """
        problem, s = self.problem, self.problem.weights
        angle = self._angle(1.0, len(self.unlabeled) / n_sample)
        exact, q = False, np.empty(0)
        best = DualSolution(z, q, np.inf)
        for _ in range(MOST_ROUNDS):
            if not exact and 0.5 * float(z @ z) <= problem.floor:
                return None  # the sample gave no direction
            t, pulled = self.hinges.scores_and_pull(z, lambda t, _: (t < 0.0).astype(np.float64))
            if exact:
                solution = DualSolution(z, q, duality_gap(t, q, s))
            else:
                z, t = self._best_length(z, t)
                q = (t < 0.0).astype(np.float64)
                solution = self._with_hard_labels(z, t, q, pulled)
            if solution.gap < best.gap:
                best = solution
            if self.budget.exhausted:
                return best
            if exact and solution.is_optimal(tol, problem.floor):
                return solution
            uncertain = angle * float(np.sqrt(s @ (t * t) / self.total))
            distance = np.where(s > 0.0, np.abs(t), np.inf)
            width = WIDE_BAND * uncertain
            if exact:  # all rows that have changed their sign become undecided
                width = max(width, 2.0 * float(distance[q != (t < 0.0)].max(initial=0.0)))
            exact = exact or int(np.count_nonzero(distance <= width)) <= self.most
            if not exact:
                width = BAND * uncertain
            undecided, factor = self._undecided(distance, width, exact)
            working = self.hinges.load(undecided, factor)
            signs = (t < 0.0).astype(np.float64)
            rest = problem.linear - pulled + working.pull(working.weights * signs[undecided])
            moved = minimise(
                working,
                rest,
                z,
                q[undecided],
                tol=0.1 * tol if exact else 0.1 * self.hinges.rank / self.most,
                floor=problem.floor,
                budget=self.budget,
                sigma=1.0 / max(width, 1e-12),
            )
            if not exact:
                before, angle = angle, self._angle(_angle_between(z, moved.z), factor)
                if angle > SLOW * before:
                    return None
            z, q = moved.z, signs
            q[undecided] = moved.q
        return None

    def _undecided(self, distance: Vector, width: float, exact: bool) -> tuple[Indices, float]:
        """Return rows at most `width` from their kink, and how many rows each stands for."""
        undecided = np.flatnonzero(distance <= width)
        if len(undecided) <= self.most:
            return undecided, 1.0
        if exact:
            return np.sort(np.argpartition(distance, self.most)[: self.most]), 1.0
        chosen = self.random.choice(undecided, self.most, replace=False)
        return np.sort(chosen), len(undecided) / self.most

    def _best_length(self, z: Vector, t: Vector) -> tuple[Vector, Vector]:
        """Return the multiple of z at which the dual is lowest: hinges are linear along a ray."""
        slope = float(self.problem.linear @ z) - float(self.problem.weights @ np.minimum(t, 0.0))
        if slope >= 0.0:
            return z, t
        length = -slope / float(z @ z)
        return length * z, length * t

    def _with_hard_labels(self, z: Vector, t: Vector, q: Vector, pulled: Vector) -> DualSolution:
        """Pair z with the labels that its signs give."""
        linear = self.problem.linear
        point = pulled - linear
        dual = 0.5 * float(z @ z) + float(linear @ z) - float(self.problem.weights @ (q * t))
        return DualSolution(z, q, 0.5 * float(point @ point) + dual)

    def _angle(self, moved: float, factor: float) -> float:
        """Return how far the direction of a sampled optimum is off, in radians.

        Of n rows a fraction moved / π has changed its sign, and one in `factor` of them was
        sampled: the sum over them has a sampling error of sqrt(rank · factor · moved / π) against
        a sum over all of 0.4 sqrt(n) (for normal scores).
        """
        return 2.5 * float(
            np.sqrt(self.hinges.rank * factor * moved / (np.pi * len(self.unlabeled)))
        )


def _angle_between(a: Vector, b: Vector) -> float:
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    if lengths == 0.0:
        return np.pi / 2
    return float(np.arccos(np.clip(a @ b / lengths, -1.0, 1.0)))
