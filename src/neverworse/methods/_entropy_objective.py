"""Log loss of labeled rows and entropy of unlabeled ones: values, gradients, and descent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from neverworse._typing import Scalars, Vector
from neverworse.projection import NonFiniteError, Weights
from neverworse.projection.coordinates.gram import Whitening, whiten
from neverworse.projection.coordinates.moments import LARGEST_SQUARE
from neverworse.rows import Rows, SparseRows
from neverworse.rows._threads import single_threaded_blas

# With more columns, no matrix of columns by columns is made: each is only brought to scale.
MANY_COLUMNS = 2000
# The second derivative of the log loss is at most this much times the weighted Gram matrix.
CURVATURE = 0.25


@dataclass(frozen=True)
class WideCoordinates:
    """Coordinates for many columns: every weight and the intercept in a unit of its own.

    They have what `Whitening` has.

    Attributes
    ----------
    rows : Rows
    unit : array of shape (n_columns,)
        Of the weights.
    intercept_unit : float or None
        None without intercept.
    """

    rows: Rows
    unit: Vector
    intercept_unit: float | None

    @property
    def rank(self) -> int:
        """The number of coordinates."""
        return self.rows.n_columns + (self.intercept_unit is not None)

    def to_weights(self, z: Vector) -> Weights:
        """See `Whitening.to_weights`."""
        if self.intercept_unit is None:
            return Weights(self.unit * z, np.zeros(z.shape[:-1]))
        return Weights(self.unit * z[..., :-1], self.intercept_unit * z[..., -1])

    def adjoint(self, weighted_sum: Vector, total: Scalars) -> Vector:
        """See `Whitening.adjoint`."""
        scale = self.intercept_unit
        return self._joined(weighted_sum, 0.0 if scale is None else scale * np.asarray(total))

    def adjoint_coef(self, gradient: Vector) -> Vector:
        """See `Whitening.adjoint_coef`."""
        return self._joined(gradient, np.zeros(gradient.shape[:-1]))

    def _joined(self, gradient: Vector, last: Scalars) -> Vector:
        if self.intercept_unit is None:
            return self.unit * gradient
        return np.concatenate([self.unit * gradient, np.asarray(last)[..., None]], axis=-1)


def coordinates(
    rows: Rows, weights: Vector, alpha: float, fit_intercept: bool
) -> Whitening | WideCoordinates:
    """Return coordinates in which neither scales nor correlations of the columns slow descent."""
    if rows.n_columns <= MANY_COLUMNS:
        return whiten(rows, CURVATURE * weights, alpha, fit_intercept)
    squares = CURVATURE * _column_squares(rows, weights)
    if not (squares < LARGEST_SQUARE).all():
        raise NonFiniteError("the squares of the columns are too large")
    intercept_unit = 1.0 / np.sqrt(CURVATURE * weights.sum()) if fit_intercept else None
    return WideCoordinates(rows, 1.0 / np.sqrt(squares + alpha), intercept_unit)


@np.errstate(over="ignore")  # an overflow shows in the result
def _column_squares(rows: Rows, weights: Vector) -> Vector:
    """Return the weighted sum of squares of every column."""
    if isinstance(rows, SparseRows):  # what is zero need not be looked at
        weighted = rows._X.multiply(np.sqrt(weights)[:, None])
        squares: Vector = weighted.power(2).sum(axis=0)
        return squares
    total = np.zeros(rows.n_columns)
    for lo in range(0, rows.n_rows, rows.block_rows):
        hi = min(lo + rows.block_rows, rows.n_rows)
        block = rows.block(lo, hi) * np.sqrt(weights[lo:hi])[:, None]
        total += np.einsum("ij,ij->j", block, block)
    return total


class EntropyObjective:
    r"""Penalised log loss of labeled rows plus weighted entropy of unlabeled rows.

    .. math:: J_\lambda(w, b) = - \sum_i s_i \log p_{y_i}(x_i) + \lambda \sum_j s_j H(p(u_j))
              + \frac{\alpha}{2} \lVert w \rVert^2

    Parameters
    ----------
    rows : Rows
    target : array of shape (n_rows,) or (n_classes, n_rows)
        0 or 1 for two classes, or one-hot; anything finite where unlabeled.
    labeled, unlabeled : arrays of shape (n_rows,)
        Weights of the rows in the log loss and in the entropy.
    alpha : float
    fit_intercept : bool
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
        """Return J and its gradient over the coordinates, from one reading of the rows."""
        rows = self.coordinates.rows
        losses = np.empty(rows.n_rows)
        derive = _two_classes if self.target.ndim == 1 else _several_classes

        def weigh(t: Vector, part: slice) -> Vector:
            s, r = self.labeled[part], entropy_weight * self.unlabeled[part]
            losses[part], slopes = derive(t, self.target[..., part], s, r)
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
    return s * loss + r * entropy, s * (p - y) - r * t * p * q


def _several_classes(t: Vector, y: Vector, s: Vector, r: Vector) -> tuple[Vector, Vector]:
    """Return the same for one row of scores and of targets for each class."""
    log_p = special.log_softmax(t, axis=0)
    p = np.exp(log_p)
    loss, entropy = -(y * log_p).sum(axis=0), -(p * log_p).sum(axis=0)
    return s * loss + r * entropy, s * (p - y) - r * p * (log_p + entropy)


@dataclass(frozen=True)
class Descent:
    """Where L-BFGS ended.

    Attributes
    ----------
    weights : Weights
    path : array of shape (n_iter + 1,)
        The objective at the start and after every iteration; it never increases.
    converged : bool
    """

    weights: Weights
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
    shape = (*start.coef.shape[:-1], objective.coordinates.rank)
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
