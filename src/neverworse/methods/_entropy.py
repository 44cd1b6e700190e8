"""Logistic regression with a penalty on the entropy of its predictions for unlabeled rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import optimize, special
from sklearn.linear_model import LogisticRegression

from neverworse import estimators, projection
from neverworse._budget import Budget
from neverworse._typing import Matrix, Vector
from neverworse._words import documented_like
from neverworse.methods import _base
from neverworse.rows import Rows, single_threaded_blas

COARSE_TOL = 1e-3  # of stages before the last one
MANY_COLUMNS = 2000  # from which on columns are only scaled: there is no Gram matrix
FITTED = ("classes_", "coef_", "intercept_", "objective_", "n_iter_", "converged_")
CURVATURE = 0.25  # bounds the second derivative of the log loss, times the Gram matrix


@documented_like(estimators.ProjectedLeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class EntropyRegularizedLogisticRegression(_base.LogOddsMixin, estimators.LinearClassifier):
    r"""Logistic regression with entropy regularization on the unlabeled rows.

    Minimises, over labeled rows i and unlabeled rows j,

    .. math:: J(w, b) = - \sum_i s_i \log p_{y_i}(x_i) + \lambda \sum_j s_j H(p(u_j))
              + \frac{\alpha}{2} \lVert w \rVert^2 ,
              \qquad H(p) = - \sum_k p_k \log p_k ,

    with the probabilities of logistic regression. The boundary moves to where unlabeled rows are
    few, which helps if such a region separates the classes, and hurts if not. J has local minima:
    descent starts from logistic regression on the labeled rows, and λ grows in stages.

    Parameters
    ----------
    alpha : float, default=1.0
        Ridge penalty, 1 / C of scikit-learn's `LogisticRegression`. Positive: without it, the
        entropy vanishes as the weights grow without bound.
    entropy_weight : float, default=1.0
        λ, the weight of an unlabeled row relative to a labeled one. 0: logistic regression on the
        labeled rows only.
    n_stages : int, default=10
        λ is doubled from stage to stage, and reaches `entropy_weight` in the last one.
    {fit_intercept}
    tol : float, default=1e-6
        Stop when the norm of the gradient is at most `tol` times the square root of 2J, in
        coordinates in which the curvature of the log loss is about one.
    max_iter : int, default=1000
        Maximum number of iterations of L-BFGS in each stage.
    {missing_label, verbose}

    Attributes
    ----------
    {classes_, coef_}
    intercept_ : array of shape (1,) or (n_classes,)
        b.
    supervised_ : EntropyRegularizedLogisticRegression
        Logistic regression on the labeled rows only. It has no `supervised_` of its own.
    objective_ : float
        J at the solution.
    n_iter_ : int
        Iterations of L-BFGS in all stages.
    converged_ : bool
        Whether `tol` was reached.
    {n_features_in_, feature_names_in_}

    References
    ----------
    Grandvalet and Bengio, Advances in Neural Information Processing Systems 17 (2005), 529-536.

    Examples
    --------
    >>> from neverworse.methods import EntropyRegularizedLogisticRegression
    >>> X = [[-1.0], [1.0], [-0.2], [0.0], [0.2], [0.4], [0.6]]  # a cluster between two labels
    >>> clf = EntropyRegularizedLogisticRegression().fit(X, [0, 1, -1, -1, -1, -1, -1])
    >>> clf.supervised_.predict(X[2:]), clf.predict(X[2:])
    (array([0, 0, 1, 1, 1]), array([1, 1, 1, 1, 1]))
    """

    # With many columns, there is no Gram matrix to show NaN.
    _skips_rows: ClassVar[bool] = True

    alpha: float = field(default=1.0, kw_only=False)
    entropy_weight: float = 1.0
    n_stages: int = 10
    fit_intercept: bool = True
    tol: float = 1e-6
    max_iter: int = 1000
    missing_label: Any = "auto"
    verbose: int = 0

    def _plain_model(self) -> LogisticRegression:
        model = LogisticRegression(C=1.0 / self.alpha, fit_intercept=self.fit_intercept)
        model.classes_, model.n_iter_ = self.classes_.copy(), np.array([self.n_iter_])
        return model

    def _fit_rows(self, given: estimators.FitInput) -> None:
        known, rows = estimators.known_labels(given, self.missing_label), given.rows
        labels, budget = known.labels, Budget(None, None, given.observer, "iterations")
        self.classes_ = known.classes
        alone, target, s = projection.TrainingRows(rows, labels).labeled()
        s = np.ones(alone.n_rows) if s is None else s
        self._set_weights(projection.Weights.zero(np.empty((len(target), rows.n_columns))))
        n_iter = self._descend(self._objective(alone, target, s, 0.0 * s), 0.0, budget)
        self.supervised_ = _base.with_parameters_of(self, type(self)).set_params(entropy_weight=0.0)
        for name in FITTED:
            setattr(self.supervised_, name, getattr(self, name))
        stages, unlabeled = [], labels.weights_where(labels.unlabeled)
        if self.entropy_weight > 0.0 and unlabeled.any():
            stages = [self.entropy_weight * 0.5**k for k in reversed(range(self.n_stages))]
            labeled = labels.weights_where(~labels.unlabeled)
            objective = self._objective(rows, labels.target, labeled, unlabeled)
        for entropy_weight in stages:
            if budget.exhausted:  # stopped by a callback
                self.converged_ = False
                break
            n_iter = self._descend(objective, entropy_weight, budget)
        if not (self.converged_ or budget.exhausted):
            _base.warn_not_converged(
                f"L-BFGS stopped after {n_iter} iterations in the last stage, before it reached "
                "tol. Raise max_iter or tol, or rescale the features."
            )

    def _objective(
        self, rows: Rows, target: Matrix, labeled: Vector, unlabeled: Vector
    ) -> EntropyObjective:
        """Choose coordinates in which scales and correlations of columns do not slow descent."""
        alpha, weights = float(self.alpha), CURVATURE * (labeled + unlabeled)
        found: projection.Coordinates
        if rows.n_columns <= MANY_COLUMNS:
            found = projection.whiten(rows, weights, alpha, self.fit_intercept)
        else:
            sums = _base.wide_moments(rows, weights, centre=self.fit_intercept)
            found = projection.MatrixFreeCoordinates(
                sums.rows,
                weights,
                alpha,
                sums.mean,
                unit=1.0 / np.sqrt(sums.spread + alpha),
                shifts=np.full(int(self.fit_intercept), 1.0 / np.sqrt(sums.total)),
                restricted=False,
                column_norms=np.sqrt(sums.raw),
                idle=np.flatnonzero(~sums.varies),
            )
        return EntropyObjective(found, target, labeled, unlabeled, alpha)

    @single_threaded_blas()  # of the short vectors of L-BFGS: passes over the rows use threads
    def _descend(self, objective: EntropyObjective, entropy_weight: float, budget: Budget) -> int:
        """Minimise J from the current weights on; set the attributes, return the iterations."""
        early = 0.0 < entropy_weight < self.entropy_weight
        tol = max(self.tol, COARSE_TOL) if early else self.tol
        start = estimators.stored_weights(self)
        shape = (len(start.coef), objective.coordinates.rank)
        at, n_iter, before = np.zeros(shape).ravel(), 0, np.inf
        value, slope = objective.evaluate(start, entropy_weight)

        def weights_at(z: Vector) -> projection.Weights:
            return start + objective.coordinates.to_weights(z.reshape(shape))

        def value_and_gradient(z: Vector) -> tuple[float, Vector]:
            nonlocal value, slope
            value, slope = objective.evaluate(weights_at(z), entropy_weight)
            return value, slope.ravel()

        def converged() -> bool:
            return bool(np.linalg.norm(slope) <= tol * np.sqrt(2.0 * value))

        def after_iteration(_: Vector) -> None:
            if converged():
                raise StopIteration

        # The line search may give up where another start from the same point would not.
        while not converged() and n_iter < self.max_iter and value < before:
            before = value
            limits = {"maxiter": self.max_iter - n_iter, "maxfun": 100 * self.max_iter}
            found = optimize.minimize(
                value_and_gradient,
                at,
                jac=True,
                method="L-BFGS-B",
                callback=after_iteration,
                options={"maxcor": 20, "ftol": 0.0, "gtol": 0.0, **limits},
            )
            at, n_iter = found.x, n_iter + found.nit
            value_and_gradient(at)
        self._set_weights(weights_at(at))
        budget.n_iter += n_iter
        self.objective_, self.converged_ = value, converged()
        self.n_iter_ = max(1, budget.n_iter)
        stage = f"entropy weight {entropy_weight:.3g}" if entropy_weight else "labeled rows only"
        budget.report(stage, int(np.count_nonzero(objective.labeled + objective.unlabeled)))
        return n_iter


@dataclass(frozen=True)
class EntropyObjective:
    """J, penalised log loss of labeled rows plus weighted entropy of unlabeled rows."""

    coordinates: projection.Coordinates
    target: Matrix  # (1, n_rows) for two classes, 0 or 1, or one-hot; finite where unlabeled
    labeled: Vector  # (n_rows,): weights in the log loss
    unlabeled: Vector  # (n_rows,): weights in the entropy
    alpha: float

    @np.errstate(over="ignore", invalid="ignore")  # an overflow shows in the result
    def evaluate(self, weights: projection.Weights, entropy_weight: float) -> tuple[float, Vector]:
        """Return J and its gradient over the coordinates, from one pass over the rows."""
        rows = self.coordinates.rows
        losses = np.empty(rows.n_rows)

        def weigh(t: Vector, part: slice) -> Vector:
            s, r = self.labeled[part], entropy_weight * self.unlabeled[part]
            losses[part], slopes = _derive(t, self.target[:, part], s, r)
            return slopes

        _, summed, total = rows.scores_and_sum(weights.coef, weights.intercept, weigh)
        gradient = self.coordinates.adjoint(summed, total)
        gradient += self.coordinates.adjoint_coef(self.alpha * weights.coef)
        value = float(losses.sum() + 0.5 * self.alpha * np.sum(weights.coef**2))
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise projection.NonFiniteError("the objective overflows")
        return value, gradient


def _derive(t: Vector, y: Vector, s: Vector, r: Vector) -> tuple[Vector, Vector]:
    """Return s times the log loss plus r times the entropy for scores t, and the derivatives."""
    first = 0
    if len(t) == 1:  # the score of the second of two classes; that of the first is zero
        t, y, first = np.concatenate([np.zeros_like(t), t]), np.concatenate([1.0 - y, y]), 1
    log_p = special.log_softmax(t, axis=0)
    p = np.exp(log_p)
    loss, entropy = -(y * log_p).sum(axis=0), -(p * log_p).sum(axis=0)
    return s * loss + r * entropy, (s * (p - y) - r * p * (log_p + entropy))[first:]
