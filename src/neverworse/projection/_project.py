"""Project supervised weights onto the constraint set, and certify the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import linalg

from neverworse._typing import Mask, Matrix, Vector
from neverworse.projection._budget import Budget
from neverworse.projection._certificate import Certificate, Reason
from neverworse.projection._dual import Projection, solve_dual
from neverworse.projection._hinges import StreamedHinges
from neverworse.projection._lbfgs import minimise_lbfgs
from neverworse.projection._loss import LossDifference, loss_difference
from neverworse.projection._moments import NonFiniteError
from neverworse.projection._newton import DualSolution
from neverworse.projection._weights import Weights
from neverworse.projection._whitening import EPS, whiten
from neverworse.rows import Rows, as_rows
from neverworse.rows._threads import single_threaded_blas

Distance = Literal["all", "labeled", "unlabeled", "euclidean"] | Matrix
Solver = Literal["exact", "lbfgs"]


@dataclass(frozen=True)
class TrainingRows:
    """Rows of which some carry a label.

    Attributes
    ----------
    rows : Rows
        All rows, labeled and unlabeled in any order.
    unlabeled : boolean array of shape (n_rows,)
    target : array of shape (n_rows,)
        0 or 1; zero where `unlabeled`.
    weights : array of shape (n_rows,) or None
        Row weights, not negative; ones if None.
    """

    rows: Rows
    unlabeled: Mask
    target: Vector
    weights: Vector | None = None

    def weights_where(self, mask: Mask) -> Vector:
        """Return the weights of some rows, and zero for all others."""
        return mask.astype(np.float64) if self.weights is None else np.where(mask, self.weights, 0)

    def labeled(self) -> tuple[Rows, Vector, Vector | None]:
        """Return rows, target and weights of the labeled rows.

        A few rows are copied out; many are left in place, and the others given no weight.
        """
        n_labeled = len(self.unlabeled) - int(np.count_nonzero(self.unlabeled))
        if n_labeled == len(self.unlabeled):
            return self.rows, self.target, self.weights
        if 10 * n_labeled > len(self.unlabeled):
            return self.rows, self.target, self.weights_where(~self.unlabeled)
        chosen = np.flatnonzero(~self.unlabeled)
        weights = None if self.weights is None else self.weights[chosen]
        return as_rows(self.rows.take(chosen)), self.target[chosen], weights


@dataclass(frozen=True)
class ProjectionResult:
    """Projected weights, what was imputed, and what is proved.

    Attributes
    ----------
    weights : Weights
    soft_labels : array of shape (n_unlabeled,)
    certificate : Certificate
    n_iter : int
        Newton steps (or function evaluations of L-BFGS-B).
    """

    weights: Weights
    soft_labels: Vector
    certificate: Certificate
    n_iter: int


@single_threaded_blas()
def project(
    training: TrainingRows,
    supervised: Weights,
    *,
    distance: Distance = "all",
    alpha: float = 0.0,
    fit_intercept: bool = True,
    solver: Solver = "exact",
    tol: float = 1e-9,
    max_iter: int | None = None,
    max_time: float | None = None,
) -> ProjectionResult:
    """Project `supervised` onto the weights that some labeling of the unlabeled rows gives.

    Parameters
    ----------
    training : TrainingRows
    supervised : Weights
        Any weights, with a snapped intercept (see `Weights.snapped`).
    distance : {"all", "labeled", "unlabeled", "euclidean"} or array of shape (k, n_columns)
        See `neverworse.ProjectedLeastSquaresClassifier`.
    alpha : float
        Ridge penalty inside the constraint set, and in the loss of the guarantee.
    fit_intercept : bool
    solver : {"exact", "lbfgs"}
    tol : float
        Relative duality gap to reach.
    max_iter, max_time
        Limits; a solution that was stopped early is certified all the same.
    """
    budget = Budget(max_iter, max_time)
    geometry = _Geometry(training, supervised, distance, alpha, fit_intercept)
    if not geometry.hinge_weights.any():
        return geometry.result(Weights(np.zeros_like(supervised.coef)), None, True, budget)
    problem = geometry.problem()
    if solver == "exact":
        solution = solve_dual(problem, tol, budget)
    else:
        solution = _solve_lbfgs(problem, tol, budget)
    converged = solution.is_optimal(tol, problem.floor)
    if solution.value <= problem.floor and not geometry.guaranteed:
        # No farther than rounding errors in this distance, which may not tell all weights apart.
        # If the supervised weights are in the constraint set, they are their own projection.
        in_all_rows = solve_dual(geometry.problem_in_all_rows(), tol, budget)
        if in_all_rows.value <= geometry.problem_in_all_rows().floor:
            solution = in_all_rows
    return geometry.result(geometry.direction(problem, solution), solution, converged, budget)


def _solve_lbfgs(problem: Projection, tol: float, budget: Budget) -> DualSolution:
    unlabeled = np.flatnonzero(problem.weights)
    loaded = StreamedHinges(problem.whitening, problem.weights).load(unlabeled)
    solution = minimise_lbfgs(loaded, problem.linear, tol=tol, floor=problem.floor, budget=budget)
    q = np.zeros(len(problem.weights))
    q[unlabeled] = solution.q
    return DualSolution(solution.z, q, solution.gap)


def _unfinished(budget: Budget) -> Reason:
    return "stopped early" if budget.exhausted else "no progress"


class _Geometry:
    """The loss, the constraint set and the distance of one projection."""

    def __init__(
        self,
        training: TrainingRows,
        supervised: Weights,
        distance: Distance,
        alpha: float,
        fit_intercept: bool,
    ) -> None:
        self.training = training
        self.supervised = supervised
        self.distance = distance
        self.alpha = float(alpha)
        self.fit_intercept = fit_intercept
        self.name = distance if isinstance(distance, str) else "user's matrix"
        self.guaranteed = self.name in ("all", "unlabeled")
        self.hinge_weights = training.weights_where(training.unlabeled)
        # The transductive variant drops the labeled rows from everything but the start.
        self.transductive = self.name == "unlabeled" and bool(self.hinge_weights.any())
        self.weights = self.hinge_weights if self.transductive else training.weights
        self.whitening = whiten(training.rows, self.weights, alpha, fit_intercept)
        self.scores, self.linear = self._supervised_scores()

    def _supervised_scores(self) -> tuple[Vector, Vector]:
        """Return the supervised scores, and c = H w_sup - X'Sy in whitened coordinates."""
        s, target = self.weights, self.training.target

        def residual(scores: Vector, rows: slice) -> Vector:
            difference = scores - target[rows]
            return difference if s is None else s[rows] * difference

        w, whitening = self.supervised, self.whitening
        scores, summed, total = whitening.rows.scores_and_sum(w.coef, w.intercept, residual)
        linear = whitening.pull(summed, total) + whitening.pull_coef(self.alpha * w.coef)
        return scores, linear

    def problem(self) -> Projection:
        """Return the dual problem, in coordinates in which its distance is Euclidean."""
        if self.guaranteed or not self.whitening.rank:
            return self.problem_in_all_rows()
        values, vectors = linalg.eigh(self._quadratic_form())
        largest = float(values.max(initial=0.0))
        kept = values > len(values) * 16 * EPS * largest
        spectrum = values[kept] / largest
        rotation = vectors[:, kept] * np.sqrt(spectrum)
        return Projection(
            self.whitening.rotated(rotation),
            self.linear @ rotation,
            self.hinge_weights,
            self.scores,
            spectrum,
        )

    def problem_in_all_rows(self) -> Projection:
        """Return the dual problem in the distance of the loss itself."""
        ones = np.ones(self.whitening.rank)
        return Projection(self.whitening, self.linear, self.hinge_weights, self.scores, ones)

    def _quadratic_form(self) -> Matrix:
        """Return T'D'DT for the distance D."""
        whitening = self.whitening
        if isinstance(self.distance, str):
            if self.distance == "labeled":
                rows, _, weights = self.training.labeled()
                return whitening.quadratic_form(rows, weights, self.fit_intercept)
            weights_of = [whitening.push(z) for z in np.eye(whitening.rank)]
            columns = np.array([[*w.coef, w.intercept] for w in weights_of])
            return columns @ columns.T
        try:
            return whitening.quadratic_form(as_rows(self.distance), None, self.fit_intercept)
        except NonFiniteError:
            raise ValueError(
                "The values of distance are so large that their squares overflow. Rescale the "
                "array; a factor makes no difference to the projection."
            ) from None

    def direction(self, problem: Projection, solution: DualSolution) -> Weights:
        """Return the projected less the supervised weights."""
        z = solution.z
        if self.guaranteed:
            if solution.value <= problem.floor:
                z = np.zeros_like(z)
        else:
            x = self.hinge_weights * solution.q
            summed = self.whitening.rows.weighted_sum(x)
            z = self.whitening.pull(summed, float(x.sum())) - self.linear
            if 0.5 * float(z @ z) <= self.problem_in_all_rows().floor:
                z = np.zeros_like(z)
        return self.whitening.push(z)

    def result(
        self, direction: Weights, solution: DualSolution | None, converged: bool, budget: Budget
    ) -> ProjectionResult:
        """Return the weights in that direction that can be certified, with the certificate."""
        reason: Reason = ""
        if solution is None:
            reason = "no unlabeled rows"
        elif direction.is_zero:
            reason = "inside" if converged else _unfinished(budget)
        weights, difference, bound = self._certified(direction, converged)
        if not reason and (weights - self.supervised).is_zero:
            reason = "rounding" if converged else _unfinished(budget)
        seen = self.training.unlabeled
        soft = np.clip(self.scores, 0.0, 1.0)[seen] if solution is None else solution.q[seen]
        has_hinge = self.hinge_weights[seen] > 0.0
        if not has_hinge.all():  # any label would do for rows without a weight
            soft[~has_hinge] = np.clip(self.scores[seen][~has_hinge], 0.0, 1.0)
        counted = soft[has_hinge]
        n_zero, n_one = int(np.sum(counted == 0.0)), int(np.sum(counted == 1.0))
        penalty = self.alpha * float(self.supervised.coef @ self.supervised.coef)
        gap = 0.0
        if solution is not None and not (converged and direction.is_zero):
            gap = solution.gap / solution.value if solution.value > 0.0 else float("inf")
        certificate = Certificate(
            worst_case=float(difference.worst + bound),
            best_case=float(difference.best - bound),
            supervised_loss=(difference.baseline[0] + penalty, difference.baseline[1] + penalty),
            duality_gap=gap,
            converged=converged,
            stopped_early=not converged and budget.exhausted,
            rounding_bound=float(bound),
            n_labeled=self._n_labeled(),
            n_unlabeled=len(counted),
            n_zero=n_zero,
            n_one=n_one,
            n_fractional=len(counted) - n_zero - n_one,
            distance=self.name,
            rows="unlabeled" if self.transductive else "all",
            penalty=self.alpha,
            reason=reason,
        )
        return ProjectionResult(weights, soft, certificate, budget.n_iter)

    def _n_labeled(self) -> int:
        labeled = ~self.training.unlabeled
        s = self.training.weights
        return int(np.count_nonzero(labeled if s is None else s[labeled]))

    def _certified(
        self, direction: Weights, converged: bool
    ) -> tuple[Weights, LossDifference, float]:
        """Return weights, loss difference and rounding bound; never worse where that is promised.

        The worst case along a ray is a parabola through zero, so its lowest point is known. If
        even that cannot be told from zero, the supervised weights themselves are returned.
        """
        weights, difference, bound = self._evaluate(direction)
        if not self.guaranteed or (converged and difference.worst + bound <= 0.0):
            return weights, difference, bound
        quadratic = difference.norm_t**2 + self.alpha * float(direction.coef @ direction.coef)
        if quadratic > 0.0:
            length = (quadratic - difference.worst) / (2.0 * quadratic)
            if length > 0.0:
                weights, difference, bound = self._evaluate(direction.scaled(length))
                if difference.worst + bound <= 0.0:
                    return weights, difference, bound
        return self._evaluate(direction.scaled(0.0))

    def _evaluate(self, direction: Weights) -> tuple[Weights, LossDifference, float]:
        """Return the weights in that direction as they will be stored, and their loss."""
        training, supervised, alpha = self.training, self.supervised, self.alpha
        weights = (supervised + direction).snapped()
        step = weights - supervised
        rows = self.whitening.rows
        t = np.zeros(rows.n_rows) if step.is_zero else rows.scores(step.coef, step.intercept)
        difference = loss_difference(
            t, self.scores, training.target, training.unlabeled, self.weights
        )
        bound = 0.0
        if not step.is_zero:
            bound = difference.rounding + difference.score_error(
                self._score_error(step), self._score_error(supervised)
            )
        if alpha > 0.0:
            both = step.coef + 2.0 * supervised.coef
            change = alpha * float(step.coef @ both)
            size = alpha * float(np.abs(step.coef) @ np.abs(both))
            difference = difference.plus(change)
            bound += (len(both) + 4) * EPS * size
        return weights, difference, bound

    def _score_error(self, w: Weights) -> float:
        """Return a bound of the weighted norm of the rounding errors of all scores of w.

        Each score of d terms is off by at most (d + 4) ε Σ|w_k||x_k|; the norm over the rows is
        at most the sum of the norms of the columns. Where the rows are shifted, the intercept and
        the shift only nearly cancel: what was rounded is the size of both.
        """
        shift = self.whitening.rows.shift
        total = self.whitening.rows.n_rows if self.weights is None else float(self.weights.sum())
        columns = self.whitening.column_norms
        if shift is not None:
            columns = columns + np.abs(shift) * np.sqrt(total)
        size = np.abs(w.coef) @ columns + abs(w.intercept) * np.sqrt(total)
        return (len(w.coef) + 4) * EPS * float(size)
