"""The supervised support vector classifier with squared hinge loss."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from neverworse._budget import Budget
from neverworse._docs import documented_like
from neverworse._typing import Vector
from neverworse.estimators import (
    FitInput,
    KnownLabels,
    LinearClassifier,
    ProjectedLeastSquaresClassifier,
    known_labels,
)
from neverworse.methods.svm._newton import Design, Hinges, System, minimise
from neverworse.methods.svm._systems import choose, prepare
from neverworse.projection import Observer, Weights
from neverworse.rows import Rows

# Labeled rows are copied if there are more than this many times as many rows.
MIN_UNUSED_RATIO = 10


class SVMClassifier(LinearClassifier):
    """Base of linear classifiers with the squared hinge loss, whose scores aim at -1 and +1."""

    _skips_rows: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "scaling": [StrOptions({"sum", "mean"})],
        "fit_intercept": ["boolean"],
        "penalise_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "missing_label": "no_validation",
        "verbose": ["verbose"],
    }

    alpha: float
    scaling: str
    penalise_intercept: bool
    tol: float
    max_iter: int
    missing_label: Any
    converged_: bool
    n_iter_: int

    def _prepare(self, rows: Rows, weights: Vector) -> tuple[Design, System]:
        return prepare(
            rows, weights, float(self.alpha), self.fit_intercept, self.penalise_intercept
        )

    def _scaled(self, weights: Vector) -> Vector:
        """Return weights of rows in a loss that is their sum or their mean."""
        return weights / weights.sum() if self.scaling == "mean" else weights

    def _set_end(self, converged: bool, n_iter: int, budget: Budget) -> None:
        """Say how the solver ended, with a warning if it did so early for no known reason."""
        self.converged_ = converged
        self.n_iter_ = max(1, n_iter)  # scikit-learn wants at least one
        if converged:
            return
        if n_iter >= self.max_iter:
            reason = f"did not converge in max_iter={self.max_iter} Newton steps. Raise max_iter"
        elif not budget.exhausted:
            reason = "made no more progress before it converged. Raise tol or alpha"
        else:
            return  # stopped by a callback
        warnings.warn(
            f"The solver {reason}, or rescale the features, for example with "
            "sklearn.preprocessing.StandardScaler.",
            ConvergenceWarning,
            stacklevel=2,
        )


@documented_like(ProjectedLeastSquaresClassifier)
class L2SVMClassifier(SVMClassifier):
    r"""Linear support vector classifier with squared hinge loss, on the labeled rows only.

    Minimises, over the labeled rows with targets :math:`y_i = -1` for the first and :math:`+1` for
    the second class in sorted order,

    .. math::

        \frac{\alpha}{2} \lVert w \rVert^2
        + \frac{1}{2} \sum_i s_i \max(0, 1 - y_i (x_i \cdot w + b))^2

    with ``scaling="sum"``; with ``scaling="mean"`` the second term is divided by
    :math:`\sum_i s_i`. With ``penalise_intercept=True`` the first term is
    :math:`\frac{\alpha}{2} (\lVert w \rVert^2 + b^2)`. More than two classes have one such problem
    each, their rows against all others.

    Unlabeled rows are ignored: this is the supervised counterpart of `TransductiveSVMClassifier`
    and `SafeSVMClassifier`. It is solved by Newton's method on the rows within the margin, with
    the Gram matrix of these rows, or by conjugate gradients where there are many columns. Scales of
    columns that differ by many orders of magnitude do no harm to the solver (but the penalty
    depends on them: standardise the columns if it should not).

    There are no probabilities. For calibrated ones, fit scikit-learn's `CalibratedClassifierCV` to
    the labeled rows: it knows no unlabeled ones, and takes their marker for a class.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty of the weights, positive. With ``scaling="sum"`` it is 1 / (2 C) in terms of
        scikit-learn's `LinearSVC`.
    scaling : {"sum", "mean"}, default="sum"
        Whether the loss is the sum over rows, or the mean. SVMlin takes the sum in its supervised
        and the mean in its transductive SVM.
    fit_intercept : bool, default=True
        Whether to fit b.
    penalise_intercept : bool, default=False
        Whether the penalty includes b. True, with ``scaling="sum"``: the objective of SVMlin, and
        of `LinearSVC`.
    tol : float, default=1e-12
        Stop when a Newton step promises less than this fraction of the objective. Close to the
        solution Newton's method is exact, so that little time can be saved with a larger one.
    max_iter : int, default=1000
        Maximum number of Newton steps, for each class.
    {missing_label, verbose}

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes in sorted order.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The weights w.
    intercept_ : array of shape (1,) or (n_classes,)
        b, zero without intercept.
    objective_ : float, or array of shape (n_classes,)
        The minimum that was found.
    n_iter_ : int
        Newton steps; the most that a class took.
    converged_ : bool
        Whether the minimum was reached, for all classes.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    TransductiveSVMClassifier : Uses unlabeled rows.
    sklearn.svm.LinearSVC : The same objective with a penalised intercept, another solver.

    References
    ----------
    S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast solution of large scale
    linear SVMs", Journal of Machine Learning Research 6 (2005), 341-361.

    Examples
    --------
    >>> from neverworse.methods import L2SVMClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0]]
    >>> clf = L2SVMClassifier(alpha=0.01).fit(X, [0, 0, 1, 1, -1])
    >>> clf.predict([[1.4], [1.6]])
    array([0, 1])
    """

    objective_: Any

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        scaling: str = "sum",
        fit_intercept: bool = True,
        penalise_intercept: bool = False,
        tol: float = 1e-12,
        max_iter: int = 1000,
        missing_label: Any = "auto",
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.scaling = scaling
        self.fit_intercept = fit_intercept
        self.penalise_intercept = penalise_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.missing_label = missing_label
        self.verbose = verbose

    def _fit_rows(self, given: FitInput) -> None:
        self._fit_known(given.rows, known_labels(given, self.missing_label), given.observer)

    def _fit_known(self, rows: Rows, known: KnownLabels, observer: Observer | None) -> None:
        """Fit to the rows whose label is known."""
        labels = known.labels
        weights = self._scaled(labels.weights_where(~labels.unlabeled))
        targets = labels.target
        used = np.flatnonzero(weights)
        if MIN_UNUSED_RATIO * len(used) < rows.n_rows:
            rows, weights, targets = choose(rows, used), weights[used], targets[:, used]
        design, system = self._prepare(rows, weights)
        solutions, n_iter = [], 0
        for target in targets:
            budget = Budget(self.max_iter, None, observer)
            hinges = Hinges(weights * target, weights * (1.0 - target))
            solutions.append(
                minimise(design, hinges, system.fresh(), budget, self.tol, stage="Newton step")
            )
            n_iter = max(n_iter, budget.n_iter)
        found = [design.weights(solution.parameters) for solution in solutions]
        coef, intercept = [w.coef for w in found], [w.intercept for w in found]
        self._set_weights(Weights(np.concatenate(coef), np.concatenate(intercept)))
        self.classes_ = known.classes
        values = [solution.value for solution in solutions]
        self.objective_ = np.array(values) if len(values) > 1 else values[0]
        self._set_end(all(solution.converged for solution in solutions), n_iter, budget)
