"""Log loss of labeled rows and entropy of unlabeled ones: values, gradients, and descent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from neverworse._typing import Vector
from neverworse.methods._base import column_squares
from neverworse.projection import LARGEST_SQUARE, GramCoordinates, NonFiniteError, Weights, whiten
from neverworse.rows import Rows, single_threaded_blas

# With more columns, no n_columns × n_columns matrix is made: each column is only scaled.
MANY_COLUMNS = 2000
# The second derivative of the log loss is at most this much times the weighted Gram matrix.
CURVATURE = 0.25


@dataclass(frozen=True)
class WideCoordinates:
    """Coordinates for many columns: every weight and the intercept in a unit of its own.

    They have what `GramCoordinates` has.
    """

    rows: Rows
    unit: Vector  # (n_columns,): of the weights
    intercept_unit: float | None  # None without intercept

    @property
    def rank(self) -> int:
        """The number of coordinates."""
        return self.rows.n_columns + (self.intercept_unit is not None)

    def to_weights(self, z: Vector) -> Weights:
        """See `GramCoordinates.to_weights`."""
        if self.intercept_unit is None:
            return Weights(self.unit * z, np.zeros(len(z)))
        return Weights(self.unit * z[:, :-1], self.intercept_unit * z[:, -1])

    def adjoint(self, weighted_sum: Vector, total: Vector) -> Vector:
        """See `GramCoordinates.adjoint`."""
        scale = self.intercept_unit
        return self._joined(weighted_sum, total if scale is None else scale * total)

    def adjoint_coef(self, gradient: Vector) -> Vector:
        """See `GramCoordinates.adjoint_coef`."""
        return self._joined(gradient, np.zeros(len(gradient)))

    def _joined(self, gradient: Vector, last: Vector) -> Vector:
        if self.intercept_unit is None:
            return self.unit * gradient
        return np.column_stack([self.unit * gradient, last])


def coordinates(
    rows: Rows, weights: Vector, alpha: float, fit_intercept: bool
) -> GramCoordinates | WideCoordinates:
    """Return coordinates in which neither scales nor correlations of the columns slow descent."""
    if rows.n_columns <= MANY_COLUMNS:
        return whiten(rows, CURVATURE * weights, alpha, fit_intercept)
    squares = CURVATURE * column_squares(rows, weights)
    if not (squares < LARGEST_SQUARE).all():
        raise NonFiniteError("the squares of the columns are too large")
    intercept_unit = 1.0 / np.sqrt(CURVATURE * weights.sum()) if fit_intercept else None
    return WideCoordinates(rows, 1.0 / np.sqrt(squares + alpha), intercept_unit)


class EntropyObjective:
    r"""Penalised log loss of labeled rows plus weighted entropy of unlabeled rows.

    .. math:: J_\lambda(w, b) = - \sum_i s_i \log p_{y_i}(x_i) + \lambda \sum_j s_j H(p(u_j))
              + \frac{\alpha}{2} \lVert w \rVert^2

    The target is of shape (1, n_rows) for two classes, 0 or 1, or one-hot, and anything finite
    where unlabeled. `labeled` and `unlabeled` are the weights of the rows in the log loss and in
    the entropy.
    """

    def __init__(
        self,
        rows: Rows,
        target: Vector,
        labeled: Vector,
        unlabeled: Vector,
        alpha: float,
        fit_intercept: bool,
    ) -> None:
        self.target, self.labeled, self.unlabeled = target, labeled, unlabeled
        self.alpha = alpha
        self.coordinates = coordinates(rows, labeled + unlabeled, alpha, fit_intercept)

    @np.errstate(over="ignore", invalid="ignore")  # an overflow shows in the result
    def evaluate(self, weights: Weights, entropy_weight: float) -> tuple[float, Vector]:
        """Return J and its gradient over the coordinates, from one pass over the rows."""
        rows = self.coordinates.rows
        losses = np.empty(rows.n_rows)
        derive = _two_classes if len(self.target) == 1 else _several_classes

        def weigh(t: Vector, part: slice) -> Vector:
            s, r = self.labeled[part], entropy_weight * self.unlabeled[part]
            losses[part], slopes = derive(t, self.target[:, part], s, r)
            return slopes

        _, summed, total = rows.scores_and_sum(weights.coef, weights.intercept, weigh)
        gradient = self.coordinates.adjoint(summed, total)
        gradient += self.coordinates.adjoint_coef(self.alpha * weights.coef)
        value = float(losses.sum() + 0.5 * self.alpha * np.sum(weights.coef**2))
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise NonFiniteError("the objective overflows")
        return value, gradient


def _two_classes(t: Vector, y: Vector, s: Vector, r: Vector) -> tuple[Vector, Vector]:
    """Return s times the log loss plus r times the entropy for scores t, and the derivatives."""
    p, q = special.expit(t), special.expit(-t)
    size = np.abs(t)
    rest = np.log1p(np.exp(-size))  # what the log loss of the likelier class is
    loss = rest + np.maximum(t, 0.0) - y * t
    entropy = rest + size * np.minimum(p, q)
    return (s * loss + r * entropy)[0], s * (p - y) - r * t * p * q


def _several_classes(t: Vector, y: Vector, s: Vector, r: Vector) -> tuple[Vector, Vector]:
    """Return the same for one row of scores and of targets for each class."""
    log_p = special.log_softmax(t, axis=0)
    p = np.exp(log_p)
    loss, entropy = -(y * log_p).sum(axis=0), -(p * log_p).sum(axis=0)
    return s * loss + r * entropy, s * (p - y) - r * p * (log_p + entropy)


@dataclass(frozen=True)
class Descent:
    """Where L-BFGS ended."""

    weights: Weights
    # (n_iter + 1,): the objective at the start and after every iteration; it never increases
    path: Vector
    converged: bool

    @property
    def n_iter(self) -> int:
        """How many iterations were made."""
        return len(self.path) - 1


@single_threaded_blas()  # for the short vectors of L-BFGS; passes over the rows have their threads
def descend(
    objective: EntropyObjective, start: Weights, entropy_weight: float, tol: float, max_iter: int
) -> Descent:
    """Minimise J from `start` on, until its gradient is at most `tol` times sqrt(2 J).

    The gradient is measured in coordinates in which the curvature is about one, so that half of
    its square is about what could still be gained.
    """
    shape = (len(start.coef), objective.coordinates.rank)
    path: list[float] = []
    at = np.zeros(shape)
    last = 0.0, np.zeros(shape)

    def value_and_gradient(z: Vector) -> tuple[float, Vector]:
        nonlocal last
        weights = start + objective.coordinates.to_weights(z.reshape(shape))
        last = objective.evaluate(weights, entropy_weight)
        return last[0], last[1].ravel()

    def converged() -> bool:
        return bool(np.linalg.norm(last[1]) <= tol * np.sqrt(2.0 * last[0]))

    def note(_: Vector) -> None:
        path.append(last[0])
        if converged() or len(path) > max_iter:
            raise StopIteration

    value_and_gradient(at.ravel())
    path.append(last[0])
    # The line search may give up where another start from the same point would not.
    while not converged() and len(path) <= max_iter:
        before = path[-1]
        at = optimize.minimize(
            value_and_gradient,
            at.ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=note,
            options={
                "maxiter": max_iter,
                "maxfun": 100 * max_iter,
                "ftol": 0.0,
                "gtol": 0.0,
                "maxcor": 20,
            },
        ).x
        value_and_gradient(at)
        if path[-1] >= before:
            break
    weights = start + objective.coordinates.to_weights(at.reshape(shape))
    return Descent(weights, np.array(path), converged())
