"""What the support vector classifiers share."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from neverworse._typing import Vector
from neverworse.estimators import LinearClassifier, explains_conversion
from neverworse.methods.svm._design import Design
from neverworse.methods.svm._local import System
from neverworse.methods.svm._prepare import prepare
from neverworse.projection.solver.budget import Budget
from neverworse.rows import Rows


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

    @explains_conversion
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Labeled and unlabeled rows, in any order.
        y : array-like of shape (n_samples,)
            Labels, and a marker for rows without one.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of the loss of each row, not negative. A row of weight zero is as good as absent.

        Returns
        -------
        self : object
        """
        return self._fit(X, y, sample_weight, None)

    def _prepare(self, rows: Rows, weights: Vector) -> tuple[Design, System]:
        return prepare(
            rows, weights, float(self.alpha), self.fit_intercept, self.penalise_intercept
        )

    def _scaled(self, weights: Vector) -> Vector:
        """Return weights of rows in a loss that is their sum or their mean."""
        return weights / weights.sum() if self.scaling == "mean" else weights

    def _settings(self) -> dict[str, Any]:
        """Return the parameters that a supervised counterpart shares."""
        names = ("alpha", "scaling", "fit_intercept", "penalise_intercept", "tol", "max_iter")
        return {name: getattr(self, name) for name in (*names, "missing_label")}

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
