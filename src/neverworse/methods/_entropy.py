"""Logistic regression that prefers to be sure about unlabeled rows."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from neverworse._docs import documented_like
from neverworse._typing import AnyArray
from neverworse.estimators import (
    FitInput,
    ProjectedLeastSquaresClassifier,
    copy_input_checks,
    known_labels,
)
from neverworse.methods._base import LogOddsClassifier, Stages
from neverworse.methods._entropy_objective import Descent, EntropyObjective, descend
from neverworse.projection import Labels, TrainingRows, Weights
from neverworse.rows import Rows

# Stages before the last one only have to lead to its start.
COARSE = 1e-3


@documented_like(ProjectedLeastSquaresClassifier)
class EntropyRegularizedLogisticRegression(LogOddsClassifier):
    r"""Logistic regression with minimum entropy on the unlabeled rows.

    Minimises, over labeled rows i and unlabeled rows j,

    .. math:: J(w, b) = - \sum_i s_i \log p_{y_i}(x_i) + \lambda \sum_j s_j H(p(u_j))
              + \frac{\alpha}{2} \lVert w \rVert^2 ,
              \qquad H(p) = - \sum_k p_k \log p_k ,

    with the probabilities of logistic regression: one function :math:`w \cdot x + b` for two
    classes, and one for each class in a softmax for more. The entropy is small where the classifier
    is sure of a row's class, so the boundary moves to where unlabeled rows are few. That helps if
    the classes are separated by such a region, and harms if they are not.

    J has local minima. Descent starts from logistic regression on the labeled rows, and λ grows to
    its final value in stages, each of which starts where the last one ended. There is no guarantee
    of any kind; `neverworse.audit` says what the result may cost.

    Parameters
    ----------
    alpha : float, default=1.0
        Ridge penalty, the inverse of `C` in scikit-learn's `LogisticRegression`: not scaled by the
        number of rows, and without the intercept. It has to be positive: without it, the entropy
        vanishes as the weights grow without bound.
    entropy_weight : float, default=1.0
        λ, how much an unlabeled row counts beside a labeled one. 0: logistic regression on the
        labeled rows only.
    n_stages : int, default=10
        λ is doubled from stage to stage, and reaches `entropy_weight` in the last of them.
    {fit_intercept}
    tol : float, default=1e-6
        Descent ends where the norm of the gradient is at most `tol` times the square root of 2J,
        in coordinates in which the curvature of the log loss is about one.
    max_iter : int, default=1000
        Maximum number of iterations of L-BFGS in each stage.
    {missing_label, verbose}

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes in sorted order.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The weights w.
    intercept_ : array of shape (1,) or (n_classes,)
        b.
    supervised_ : EntropyRegularizedLogisticRegression
        Logistic regression on the labeled rows only. It has no `supervised_` of its own.
    objective_ : float
        J at the weights.
    objective_paths_ : list of arrays
        J after every iteration, of the fit to the labeled rows and of every stage. Within each, it
        never increases.
    n_iter_ : int
        Iterations of L-BFGS in all stages.
    converged_ : bool
        Whether the gradient is as small as `tol` asks for.
    {n_features_in_, feature_names_in_}

    References
    ----------
    Y. Grandvalet and Y. Bengio, "Semi-supervised learning by entropy minimization", Advances in
    Neural Information Processing Systems 17 (2005), 529-536.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.methods import EntropyRegularizedLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> truth = np.arange(400) % 2
    >>> X = rng.normal(size=(400, 2)) + [4, 0] * truth[:, None]
    >>> y = np.where(np.arange(400) < 8, truth, -1)
    >>> clf = EntropyRegularizedLogisticRegression().fit(X, y)
    >>> clf.converged_
    True
    >>> print(f"{clf.score(X, truth):.3f} instead of {clf.supervised_.score(X, truth):.3f}")
    0.983 instead of 0.960
    """

    # Every number is looked at beforehand: with many columns, no Gram matrix would show NaN.
    _skips_rows: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "entropy_weight": [Interval(Real, 0, None, closed="left")],
        "n_stages": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "missing_label": "no_validation",
        "verbose": ["verbose"],
    }

    supervised_: EntropyRegularizedLogisticRegression

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        entropy_weight: float = 1.0,
        n_stages: int = 10,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        missing_label: Any = "auto",
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.entropy_weight = entropy_weight
        self.n_stages = n_stages
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.missing_label = missing_label
        self.verbose = verbose

    def to_sklearn(self) -> LogisticRegression:
        check_is_fitted(self, "coef_")
        model = LogisticRegression(C=1.0 / self.alpha, fit_intercept=self.fit_intercept)
        model.coef_, model.intercept_ = self.coef_.copy(), self.intercept_.copy()
        model.classes_, model.n_iter_ = self.classes_.copy(), np.array([self.n_iter_])
        copy_input_checks(self, model)
        return model

    def _fit_rows(self, given: FitInput) -> None:
        known, rows = known_labels(given, self.missing_label), given.rows
        stages = Stages(given.observer)
        first = self._fit_labeled(TrainingRows(rows, known.labels), stages)
        supervised = clone(self).set_params(entropy_weight=0.0)
        supervised._set_descents([first], known.classes)
        copy_input_checks(self, supervised)
        schedule = self._schedule(known.labels)
        descents = [first, *self._anneal(rows, known.labels, first.weights, schedule, stages)]
        self.supervised_ = supervised
        self._set_descents(descents, known.classes)
        if len(descents) <= len(schedule):  # a callback has stopped it
            self.converged_ = False
        elif not self.converged_:
            warnings.warn(
                f"L-BFGS ended after {descents[-1].n_iter} iterations in the last stage, before "
                "the gradient was as small as tol asks for. Raise max_iter or tol, or rescale the "
                "features.",
                ConvergenceWarning,
                stacklevel=2,
            )

    def _fit_labeled(self, training: TrainingRows, stages: Stages) -> Descent:
        """Fit logistic regression to the labeled rows."""
        rows, target, weights = training.labeled()
        weights = np.ones(rows.n_rows) if weights is None else weights
        objective = EntropyObjective(
            rows, target, weights, np.zeros(rows.n_rows), float(self.alpha), self.fit_intercept
        )
        start = Weights.zero(np.empty((len(target), rows.n_columns)))
        descent = descend(objective, start, 0.0, self.tol, self.max_iter)
        stages.report("labeled rows only", descent.n_iter, int(np.count_nonzero(weights)))
        return descent

    def _schedule(self, labels: Labels) -> list[float]:
        """Return the weight of the entropy in each stage; none if there is no entropy."""
        if self.entropy_weight == 0.0 or not labels.weights_where(labels.unlabeled).any():
            return []
        return [self.entropy_weight * 0.5**k for k in reversed(range(self.n_stages))]

    def _anneal(
        self, rows: Rows, labels: Labels, weights: Weights, schedule: list[float], stages: Stages
    ) -> list[Descent]:
        """Minimise J for one weight of the entropy after another."""
        descents: list[Descent] = []
        if not schedule:
            return descents
        labeled = labels.weights_where(~labels.unlabeled)
        unlabeled = labels.weights_where(labels.unlabeled)
        objective = EntropyObjective(
            rows, labels.target, labeled, unlabeled, float(self.alpha), self.fit_intercept
        )
        n_rows = int(np.count_nonzero(labeled + unlabeled))
        while len(descents) < len(schedule) and not stages.stopped:
            entropy_weight = schedule[len(descents)]
            tol = self.tol if entropy_weight == schedule[-1] else max(self.tol, COARSE)
            descents.append(descend(objective, weights, entropy_weight, tol, self.max_iter))
            weights = descents[-1].weights
            n_iter = sum(descent.n_iter for descent in descents)
            stages.report(f"entropy weight {entropy_weight:.3g}", n_iter, n_rows)
        return descents

    def _set_descents(self, descents: list[Descent], classes: AnyArray) -> None:
        """Set what a fitted classifier has but its supervised counterpart."""
        self._set_weights(descents[-1].weights)
        self.classes_ = classes
        self.objective_paths_ = [descent.path for descent in descents]
        self.objective_ = float(descents[-1].path[-1])
        self.n_iter_ = max(1, sum(descent.n_iter for descent in descents))
        self.converged_ = descents[-1].converged
