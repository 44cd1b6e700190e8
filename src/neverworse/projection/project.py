"""Project supervised weights onto the constraint set, and certify the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from neverworse._budget import Budget, Observer
from neverworse._typing import Matrix, Vector
from neverworse.projection.certificate import Assumptions, Certificate, Reason
from neverworse.projection.certificate.certify import Certifier, Evaluated
from neverworse.projection.coordinates import LARGEST_GRAM, Weights
from neverworse.projection.coordinates.matrix_free import MatrixFreeCoordinates
from neverworse.projection.geometry import Distance, Geometry
from neverworse.projection.label_sets import sparsify_labels
from neverworse.projection.labels import TrainingRows, implied_labels
from neverworse.projection.solver.label_descent import solve_matrix_free
from neverworse.projection.solver.problem import (
    DualSolution,
    Projection,
    StreamedHinges,
    duality_gap,
    solve_lbfgs,
)
from neverworse.projection.solver.working_set import solve
from neverworse.rows import single_threaded_blas

Solver = Literal["exact", "lbfgs"]


@dataclass(frozen=True)
class ProjectionResult:
    """Projected weights, what was imputed, and what is proved."""

    weights: Weights
    soft_labels: Matrix  # (n_classes, n_unlabeled): imputed labels, in the units of the target
    certificate: Certificate
    # Newton steps (steps of the labels with very many columns, function evaluations of L-BFGS-B)
    n_iter: int


@single_threaded_blas()
def project(
    training: TrainingRows,
    supervised: Weights,
    *,
    distance: Distance = "all",
    alpha: float = 0.0,
    supervised_alpha: float = 0.0,
    fit_intercept: bool = True,
    threshold: float = 0.5,
    assumptions: Assumptions | None = None,
    solver: Solver = "exact",
    tol: float = 1e-9,
    max_iter: int | None = None,
    max_time: float | None = None,
    observer: Observer | None = None,
    start: Start | None = None,
) -> ProjectionResult:
    """Project `supervised` onto the weights that some labeling of the unlabeled rows gives.

    Parameters as of `neverworse.ProjectedLeastSquaresClassifier`, but for these.

    Parameters
    ----------
    supervised : Weights
        Any weights, with a snapped intercept (see `Weights.snapped`).
    alpha, supervised_alpha : float
        Ridge penalty inside the constraint set and in the loss of the guarantee; and that with
        which `supervised` was fitted, for the certificate.
    threshold : float
        What is subtracted from the intercept when weights are stored.
    assumptions : Assumptions, optional
        What is known about the labels, in words for the certificate.
    observer : callable, optional
        Told about the progress of the solver; stops it by returning True.
    start : Start, optional
        What may well be the solution: nothing is solved if it is.
    """
    assumptions = assumptions or Assumptions()
    steps = "steps" if solver == "exact" else "function evaluations"
    budget = Budget(max_iter, max_time, observer, steps, tol)
    outcome, loss = None, (training, supervised, distance, alpha, fit_intercept)
    if start is not None:
        geometry = Geometry(*loss, factored=False)
        outcome = start.checked(geometry, tol)
    if outcome is None:
        geometry = Geometry(*loss)
    budget.n_passes += 2  # for the sums of squares, and for the supervised scores
    budget.report("Gram matrix", training.rows.n_rows)
    if outcome is None:
        outcome = _solve(geometry, solver, tol, budget)
    certifier = Certifier(geometry, threshold)
    evaluated = certifier.certified(outcome.direction, outcome.multiplier, outcome.converged)
    moved = not (evaluated.weights - supervised).is_zero
    soft = _soft_labels(geometry, outcome.solution)
    labels = training.labels
    counts = (geometry.hinge_weights > 0.0)[labels.unlabeled]
    counted = soft if counts.all() else soft[:, counts]
    difference, bound = evaluated.difference, evaluated.bound
    worst = float(difference.worst + bound)
    probabilities = (None, None) if assumptions.task == "regression" else evaluated.probabilities
    n_one = int(np.sum((counted == 1.0).any(axis=0)))
    n_zero = int(np.sum(~counted.any(axis=0)))
    certificate = Certificate(
        worst_case=worst,
        best_case=float(difference.best - bound),
        supervised_loss=evaluated.supervised_loss,
        duality_gap=outcome.relative_gap,
        converged=outcome.converged,
        stopped_early=not outcome.converged and budget.exhausted,
        rounding_bound=float(bound),
        n_labeled=labels.n_labeled,
        n_unlabeled=counted.shape[1],
        n_zero=n_zero,
        n_one=n_one,
        n_fractional=counted.shape[1] - n_zero - n_one,
        distance=geometry.name,
        rows="unlabeled" if geometry.transductive else "all",
        penalty=geometry.alpha,
        supervised_penalty=supervised_alpha,
        penalty_share=_penalty_share(geometry, evaluated, supervised_alpha, worst),
        probability_worst_case=probabilities[0],
        probability_best_case=probabilities[1],
        reason=outcome.reason(moved, budget),
        assumptions=assumptions,
    )
    labels.complete(soft)
    budget.n_passes += 1
    budget.report("certificate", training.rows.n_rows)
    return ProjectionResult(evaluated.weights, soft, certificate, budget.n_iter)


def _penalty_share(
    geometry: Geometry, evaluated: Evaluated, supervised_alpha: float, worst: float
) -> float:
    """Return which share of the guaranteed improvement is owed to the penalty alone.

    That is (α - β) w'Pv over what is gained along the step v to first order, where α and β are the
    penalties of the supervised weights w and of the loss: "Like with like" in docs/mathematics.md.
    """
    if worst >= 0.0:
        return 0.0
    # A loss of the unlabeled rows alone has no part in what the penalty was balanced with.
    alpha = 0.0 if geometry.transductive else supervised_alpha
    owed = (alpha - geometry.alpha) * float(np.vdot(geometry.supervised.coef, evaluated.step.coef))
    return owed / (0.5 * (evaluated.squared_step(geometry.alpha) - worst)) + 0.0  # never -0.0


@dataclass(frozen=True)
class _Outcome:
    """What the solver found."""

    direction: Weights  # the projected less the supervised weights
    multiplier: Vector | None  # (n_classes,): of restricted totals
    solution: DualSolution | None  # None if there was nothing to solve, or no time to begin
    converged: bool
    floor: float = 0.0  # a squared distance (halved) that cannot be told from zero

    @property
    def relative_gap(self) -> float:
        """The gap relative to the distance; zero where a distance of zero was reached."""
        if self.solution is None:
            return 0.0 if self.converged else float("inf")
        value = self.solution.value
        if self.converged and (self.direction.is_zero or value <= self.floor):
            return 0.0
        return self.solution.gap / value if value > 0.0 else float("inf")

    def reason(self, moved: bool, budget: Budget) -> Reason:
        """Return why nothing was improved; empty if something was."""
        if moved:
            return ""
        if not self.converged:
            return "stopped early" if budget.exhausted else "no progress"
        if self.solution is None:
            return "no unlabeled rows"
        return "inside" if self.direction.is_zero else "rounding"


@dataclass(frozen=True)
class Start:
    """What may be the solution of a projection in the distance of the loss, without totals."""

    direction: Weights  # the projected less the supervised weights
    labels: Matrix  # (n_classes, n_rows): of all rows, in the units of the target

    def checked(self, geometry: Geometry, tol: float) -> _Outcome | None:
        """Return it as the outcome if it is optimal, in spite of rounding errors."""
        problem, known = geometry.problem_in_all_rows(), geometry.training.labels
        space = cast("MatrixFreeCoordinates", problem.coordinates)
        hinges = StreamedHinges(space, problem.weights)
        q = problem.shape.project(implied_labels(self.labels, known.target, known.width))
        z = space.point(self.direction.scaled(1.0 / geometry.unit))
        primal = hinges.adjoint(problem.weights * q) - problem.linear
        value = 0.5 * float(np.vdot(z, primal))
        gap = space.half_error(space.matvec(z) - primal)
        gap += duality_gap(hinges.scores(z), q, problem.weights, problem.shape)
        if not gap <= max(tol * value, problem.floor):
            return None
        solution = DualSolution(z, q[:, problem.unlabeled], gap, value)
        direction = geometry.direction(problem, solution)
        return _Outcome(direction, None, solution, converged=True, floor=problem.floor)


def _solve(geometry: Geometry, solver: Solver, tol: float, budget: Budget) -> _Outcome:
    needed = bool(geometry.hinge_weights.any())
    problem = geometry.problem(lambda: budget.exhausted) if needed else None
    if problem is None:
        nowhere = Weights.zero(geometry.supervised.coef)
        return _Outcome(nowhere, None, None, converged=not needed)
    solution, floor = _solve_by(solver, problem, tol, budget), problem.floor
    converged, all_rows = solution.is_optimal(tol, floor), geometry.problem_in_all_rows()
    if solution.value <= floor and not geometry.guaranteed:
        # No farther than rounding errors in this distance, which may not tell all weights apart.
        # If the supervised weights are in the constraint set, they are their own projection.
        in_all_rows = _solve_by("exact", all_rows, tol, budget)
        if in_all_rows.value <= all_rows.floor:
            solution, floor = in_all_rows, all_rows.floor
    if problem.shape.is_coupled and solution.value > floor:
        # With the same sum in the loss: this distance may be blind to some weights.
        solution = replace(solution, q=_sparsified(all_rows, solution.q))
    direction = geometry.direction(problem, solution)
    multiplier = geometry.multiplier(problem, solution)
    return _Outcome(direction, multiplier, solution, converged, problem.floor)


def _solve_by(solver: Solver, problem: Projection, tol: float, budget: Budget) -> DualSolution:
    if solver == "lbfgs":
        if not problem.coordinates.is_whitened:
            raise ValueError(
                f"solver='lbfgs' is a reference for at most {LARGEST_GRAM:,} columns (or fewer "
                "rows than columns). Use solver='exact'."
            )
        return solve_lbfgs(problem, tol, budget)
    by = solve if problem.coordinates.is_whitened else solve_matrix_free
    return by(problem, tol, budget)


def _sparsified(problem: Projection, q: Matrix) -> Matrix:
    """Return soft labels with the same sum, of which few are shared by two classes."""
    seen = np.flatnonzero(problem.unlabeled)
    two = np.count_nonzero(problem.shape.at(seen).inner(q), axis=0) == 2
    shared = np.flatnonzero(two & (problem.weights[seen] > 0.0))
    if len(shared) <= problem.coordinates.rank:  # always so, where rows are too long to be taken
        return q
    loaded = StreamedHinges(problem.coordinates, problem.weights).load(seen[shared])
    q = q.copy()
    rows, shape = loaded.take(np.arange(len(shared))), problem.shape.at(seen[shared])
    q[:, shared] = sparsify_labels(rows, loaded.weights, shape, q[:, shared])
    return q


def _soft_labels(geometry: Geometry, solution: DualSolution | None) -> Matrix:
    """Return the soft labels of the unlabeled rows; any will do for rows without a weight."""
    labels = geometry.training.labels
    free = (geometry.hinge_weights <= 0.0)[labels.unlabeled]
    if solution is not None and not free.any():
        return solution.q
    unlabeled = np.flatnonzero(labels.unlabeled)
    start = geometry.problem_in_all_rows().start(unlabeled)
    nearest = labels.shape.at(unlabeled).project(start)
    return nearest if solution is None else np.where(free, nearest, solution.q)
