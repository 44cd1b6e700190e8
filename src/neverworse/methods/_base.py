"""Shared by several methods: parameter constraints, probabilities, checks and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import special
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils._param_validation import Interval, StrOptions

from neverworse import estimators
from neverworse._budget import Budget
from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.projection import Moments, column_moments
from neverworse.rows import Rows, SparseRows

POSITIVE = [Interval(Real, 0, None, closed="neither")]
NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]
AT_LEAST_ONE = [Interval(Integral, 1, None, closed="left")]
SHARE = Interval(Real, 0, 1, closed="both")
Constraints = dict[str, list[Any] | str]
# Constraints of the parameters of all methods, in scikit-learn's form. The few that have another
# meaning in some method stand there.
CONSTRAINTS: Constraints = {
    **estimators.DelegatingClassifier._parameter_constraints,
    **{name: ["boolean"] for name in ("fit_intercept", "penalise_intercept", "optimize")},
    **dict.fromkeys(("tol", "alpha", "unlabeled_weight"), POSITIVE),
    **dict.fromkeys(("beta", "entropy_weight", "risk"), NOT_NEGATIVE),
    **dict.fromkeys(("max_iter", "n_stages", "max_switches"), AT_LEAST_ONE),
    **dict.fromkeys(("n_neighbors", "max_active", "n_samples", "n_separators"), AT_LEAST_ONE),
    "max_time": [*NOT_NEGATIVE, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "labels": [StrOptions({"hard", "soft"})],
    "estimators": [list],
    "method": [StrOptions({"adj", "tri"})],
    "kernel": [Kernel, None],
    "width": [Interval(Real, 0, 1e6, closed="both")],
    "unlabeled_rates": [tuple, list, np.ndarray, None],
    "covariance": [StrOptions({"full", "spherical"})],
    "priors": [None, StrOptions({"uniform"}), "array-like"],
    "scaling": [StrOptions({"sum", "mean"})],
    "positive_fraction": [SHARE, None],
    "positive_rounding": [StrOptions({"score", "svmlin"})],
    "fraction_tolerance": [SHARE],
}


class LogOddsMixin(estimators.ScoringClassifier):
    """Probabilities of classifiers whose scores are log odds, or for several classes, logits."""

    _parameter_constraints: ClassVar[Constraints] = CONSTRAINTS

    def predict_proba(self, X: Any) -> Matrix:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Matrix:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : array of shape (n_samples, n_classes)
        """
        scores = self._scores(X)
        if scores.ndim > 1:
            return special.log_softmax(scores, axis=0).T
        return np.column_stack([special.log_expit(-scores), special.log_expit(scores)])


def check_two_classes(classes: AnyArray) -> None:
    """Raise an error if there are more than two classes."""
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"labels of {len(classes)} classes ({estimators.shown_classes(classes)}). Fit one "
            "classifier for each class against the rest, or use ProjectedLeastSquaresClassifier."
        )


def wide_moments(rows: Rows, weights: Vector, centre: bool) -> Moments:
    """Return the moments of each column; sparse rows are not shifted, so that they stay sparse."""
    sums = column_moments(rows, weights, centre)
    return replace(sums, rows=rows, mean=sums.centre) if isinstance(rows, SparseRows) else sums


class ObservedMixin(estimators.CallbackSupportMixin):
    """Base of data classes, other than linear models, that report the progress of a fit."""

    _parameter_constraints: ClassVar[Constraints] = CONSTRAINTS
    verbose: int

    # Dask would compare the parameters of data classes alone, not what was fitted.
    __dask_tokenize__ = estimators.LinearClassifier.__dask_tokenize__

    @contextmanager
    def _observed(
        self, X: Any, y: Any, weights: Vector | None = None, max_iter: int | None = None
    ) -> Iterator[Budget]:
        """Yield the budget of the fit inside, through which callbacks may stop it."""
        metadata = {} if weights is None else {"sample_weight": weights}
        with estimators.observed_fit(self, X, y, metadata, self.verbose) as observer:
            yield Budget(max_iter, None, observer, "iterations")


def with_parameters_of(model: Any, kind: Any) -> Any:
    """Return an unfitted estimator of another kind with the parameters and columns of the model."""
    made = kind(**{name: getattr(model, name) for name in kind._get_param_names()})
    estimators.copy_input_checks(model, made)
    return made


def warn_not_converged(message: str) -> None:
    """Warn as solvers of scikit-learn do."""
    warnings.warn(message, ConvergenceWarning, stacklevel=3)
