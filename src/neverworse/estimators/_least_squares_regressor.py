"""Least squares regression: the supervised baseline, and its projection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import _fit_context
from sklearn.linear_model import LinearRegression
from sklearn.utils.validation import check_consistent_length

from neverworse._typing import Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators._input import FitInput, explains_conversion, lazy_on_dask
from neverworse.estimators._kernels import KernelModel
from neverworse.estimators._known_labels import UNBOUNDED, KnownLabels, known_targets
from neverworse.estimators._least_squares import (
    ChosenPenalty,
    GivenPenalty,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
)
from neverworse.estimators._linear import LinearClassifier, LinearModel, RegressorMixin
from neverworse.estimators._projected import ProjectedLeastSquaresClassifier, ProjectedModel
from neverworse.projection import Weights


class LinearRegressor(RegressorMixin, LinearModel):
    """Base of regressions with the prediction coef·x + intercept."""

    _threshold: ClassVar[float] = 0.0

    fit_intercept: bool
    missing_label: Any
    coef_: Vector
    intercept_: float

    @documented_like(LinearClassifier.fit)
    @explains_conversion
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, target_bounds: Any = None) -> Self:
        """Fit the regression.

        Parameters
        ----------
        {X}
        y : array-like of shape (n_samples,)
            Targets, and a marker (NaN, unless `missing_label` says otherwise) for rows without one.
        {sample_weight}
        target_bounds : array-like of shape (n_samples, 2), optional
            Smallest and largest possible target of each row; NaN where nothing is known but what
            was said in the constructor. A row whose bounds are equal counts as labeled.

        Returns
        -------
        self : object
        """
        return self._fit(X, y, sample_weight, target_bounds)

    @lazy_on_dask
    def predict(self, X: Any) -> Vector:
        """Return ``X @ coef_ + intercept_``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        targets : array of shape (n_samples,)
        """
        return self._scores(X)

    def _read_labels(self, given: FitInput) -> KnownLabels:
        # Supervised models ignore rows without a target, whatever its bounds.
        common_range = getattr(self, "target_bounds", UNBOUNDED)
        known = known_targets(
            given.y, self.missing_label, given.weights, given.bounds, common_range
        )
        check_consistent_length(np.empty((given.rows.n_rows, 0)), known.labels.width)
        return known

    def _plain_model(self) -> Any:
        return LinearRegression(fit_intercept=self.fit_intercept)

    def _set_weights(self, weights: Weights) -> None:
        setattr(self, self._coef_name, weights.coef[0])
        self.intercept_ = float(weights.intercept[0]) + 0.0  # without intercept, it may be -0.0


@documented_like(LeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class LeastSquaresRegressor(KernelModel, GivenPenalty, LinearRegressor):
    r"""Least squares regression on the rows that have a target.

    Rows without a target are ignored. Where all rows have one, this is scikit-learn's `Ridge`.

    Parameters
    ----------
    {alpha, fit_intercept}
    missing_label : scalar, default=np.nan
        The value that marks rows without a target in y. NaN, None or pd.NA: any null value.
    {rcond}
    {kernel, gamma, degree, coef0, n_components, random_state}

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        The weights w.
    intercept_ : float
        b; zero without intercept.
    {dual_coef_, landmarks_, gamma_, alpha_, n_features_in_, feature_names_in_}

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import LeastSquaresRegressor
    >>> X = [[0.0], [1.0], [2.0], [10.0]]
    >>> reg = LeastSquaresRegressor().fit(X, [1.0, 3.0, 5.0, np.nan])
    >>> reg.predict([[3.0]]).round(6)
    array([7.])
    """

    missing_label: Any = np.nan


@documented_like(LeastSquaresRegressor, LeastSquaresClassifierCV)
@dataclass(eq=False, repr=False, kw_only=True)
class LeastSquaresRegressorCV(KernelModel, ChosenPenalty, LinearRegressor):
    """Least squares regression that chooses its ridge penalty by exact leave-one-out.

    In closed form, as in `LeastSquaresClassifierCV`. Rows without a target are ignored.

    Parameters
    ----------
    {alphas, fit_intercept, missing_label}
    {kernel, gamma, degree, coef0, n_components, random_state}

    Attributes
    ----------
    {alpha_, alphas_}
    loo_mse_ : array of shape (n_alphas,)
        Mean squared error of the left-out predictions.
    {coef_, intercept_, dual_coef_, landmarks_, gamma_, n_features_in_, feature_names_in_}

    Examples
    --------
    >>> from neverworse import LeastSquaresRegressorCV
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 3.0, 1.0, 4.0]
    >>> LeastSquaresRegressorCV(alphas=[0.1, 1, 10]).fit(X, y).alpha_
    0.1
    """

    _loss_name: ClassVar[str] = "loo_mse_"

    missing_label: Any = np.nan


@documented_like(LeastSquaresRegressor, ProjectedLeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class ProjectedLeastSquaresRegressor(KernelModel, ProjectedModel, LinearRegressor):
    r"""Semi-supervised least squares regression that is never worse than the supervised one.

    For targets that are known to lie within bounds, such as shares, ratings or marks. As in
    `ProjectedLeastSquaresClassifier`, with unknown targets in place of soft labels: in the distance
    "all", the squared error on all training rows is at most that of the supervised regression,
    whatever these targets are. The narrower the bounds, the more there is to gain.

    Parameters
    ----------
    target_bounds : (low, high), "labeled" or None, default=None
        Smallest and largest possible target of the unlabeled rows.

        - (low, high): two finite numbers. All known targets have to lie between them.
        - "labeled": the smallest and the largest known target. The fewer these are, the bolder is
          this assumption.
        - None: every unlabeled row needs bounds of its own, see `target_bounds` in `fit`.
    {distance}
    alpha : float or "loo", default="loo"
        Ridge penalty of the supervised baseline: chosen by exact leave-one-out on the rows with a
        target, or a number.
    {constraint_alpha, fit_intercept, rcond, missing_label}
    {solver, tol, max_iter, max_time, verbose}
    {kernel, gamma, degree, coef0, n_components, random_state}

    Attributes
    ----------
    {coef_, intercept_}
    supervised_ : LeastSquaresRegressor or LeastSquaresRegressorCV
        The supervised baseline, fitted to the labeled rows.
    imputed_targets_ : array of shape (n_unlabeled,)
        Targets of the unlabeled rows, in their order and within their bounds, for which least
        squares on all rows gives the projected weights. They are not predictions.
    {certificate_, n_iter_, dual_coef_, landmarks_, gamma_, n_features_in_, feature_names_in_}

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import ProjectedLeastSquaresRegressor
    >>> X, y = [[0.0], [1.0], [3.0], [-2.0]], [2.0, 4.0, np.nan, np.nan]
    >>> reg = ProjectedLeastSquaresRegressor((1, 5), alpha=0.0).fit(X, y)  # one to five stars
    >>> print(f"lower by {reg.certificate_.guaranteed_improvement:.2f} at least")
    lower by 17.31 at least
    """

    _baselines: ClassVar[tuple[Any, Any]] = (LeastSquaresRegressor, LeastSquaresRegressorCV)

    target_bounds: Any = field(default=None, kw_only=False)
    missing_label: Any = np.nan

    def _set_labels(self, known: KnownLabels, soft_labels: Matrix) -> None:
        # The lower bound plus a share of the range may be off by a rounding error.
        unlabeled, upper = known.labels.unlabeled, cast("Vector", known.upper)
        self.imputed_targets_ = np.minimum(soft_labels[0], upper[unlabeled])
