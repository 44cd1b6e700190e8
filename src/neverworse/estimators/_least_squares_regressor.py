"""Least squares regression on the rows that have a target: the supervised baseline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.linear_model import LinearRegression
from sklearn.utils.validation import check_is_fitted

from neverworse._typing import Indices, Vector
from neverworse._words import documented_like
from neverworse.estimators._input import FitInput, explains_conversion, lazy_on_dask
from neverworse.estimators._kernels import KernelModel
from neverworse.estimators._known_targets import known_targets
from neverworse.estimators._least_squares import (
    GivenPenalty,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    SupervisedModel,
    fit_by_leave_one_out,
)
from neverworse.estimators._linear import (
    LinearClassifier,
    LinearModel,
    after_kernel,
    columns_coef,
)
from neverworse.projection import Labels, TrainingRows, Weights


class LinearRegressor(RegressorMixin, LinearModel):  # type: ignore[misc]
    """Base of regressions with the prediction coef·x + intercept."""

    _reads_chunks: ClassVar[bool] = True
    _threshold: ClassVar[float] = 0.0

    fit_intercept: bool
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
            Smallest and largest possible target of each row. NaN where nothing is known but what
            was said in the constructor; what is given here takes precedence over that. A row whose
            bounds are equal counts as labeled with that target.

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

    def to_sklearn(self) -> Any:
        check_is_fitted(self, "intercept_")
        model = LinearRegression(fit_intercept=self.fit_intercept)
        model.coef_, model.intercept_ = columns_coef(self), self.intercept_
        return after_kernel(self, model)

    def _set_weights(self, weights: Weights) -> None:
        setattr(self, self._coef_name, weights.coef[0])
        self.intercept_ = float(weights.intercept[0]) + 0.0  # without intercept, it may be -0.0


@dataclass(eq=False, repr=False, kw_only=True)
class SupervisedRegressor(SupervisedModel, LinearRegressor):
    """Base of regressions on the rows that have a target."""

    missing_label: Any = np.nan

    def _fit_rows(self, given: FitInput) -> None:
        targets = known_targets(given, self.missing_label)
        # The bounds of unknown targets do not matter to this model.
        ignored = (~targets.known).astype(np.float64)
        labels = Labels(targets.target[None], ignored, given.weights)
        self._fit_training(TrainingRows(given.rows, labels))


@documented_like(LeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class LeastSquaresRegressor(KernelModel, GivenPenalty, SupervisedRegressor):
    r"""Least squares regression on the rows that have a target.

    Minimises, over these rows,

    .. math:: \sum_i s_i (x_i \cdot w + b - y_i)^2 + \alpha \lVert w \rVert^2 .

    Rows without a target are ignored. This is the supervised counterpart of
    `ProjectedLeastSquaresRegressor`. Where all rows have a target, it is scikit-learn's
    `LinearRegression` or `Ridge`.

    Parameters
    ----------
    {alpha}
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is never penalised.
    {rcond}
    missing_label : scalar, default=np.nan
        The value that marks rows without a target in y. NaN, None or pd.NA: any null value. Unlike
        for classes, -1 is a target unless it is given here.
    {kernel, gamma, degree, coef0, n_components, random_state}

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        The weights w.
    intercept_ : float
        b; zero without intercept.
    {dual_coef_, landmarks_, gamma_}
    {alpha_, n_features_in_, feature_names_in_}

    See Also
    --------
    LeastSquaresRegressorCV : Chooses the penalty.
    ProjectedLeastSquaresRegressor : Never worse, and uses rows without a target.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import LeastSquaresRegressor
    >>> X = [[0.0], [1.0], [2.0], [10.0]]
    >>> reg = LeastSquaresRegressor().fit(X, [1.0, 3.0, 5.0, np.nan])
    >>> reg.predict([[3.0]]).round(6)
    array([7.])
    """


@documented_like(LeastSquaresRegressor, LeastSquaresClassifierCV)
@dataclass(eq=False, repr=False, kw_only=True)
class LeastSquaresRegressorCV(KernelModel, SupervisedRegressor):
    """Least squares regression that chooses its ridge penalty by exact leave-one-out.

    Every row with a target is predicted by the fit to all others, in closed form, as in
    `LeastSquaresClassifierCV`. Rows without a target are ignored.

    Parameters
    ----------
    {alphas, fit_intercept, missing_label}
    {kernel, gamma, degree, coef0, n_components, random_state}

    Attributes
    ----------
    {alpha_, alphas_}
    loo_mse_ : array of shape (n_alphas,)
        Mean squared error of the left-out predictions.
    {gammas_, loo_gammas_, coef_, intercept_, dual_coef_, landmarks_, gamma_}
    {n_features_in_, feature_names_in_}

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import LeastSquaresRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 20))
    >>> y = X[:, 0] + rng.normal(size=40)
    >>> reg = LeastSquaresRegressorCV(alphas=[0.1, 1, 10, 100]).fit(X, y)
    >>> reg.alpha_
    10.0
    """

    alphas: Any = field(default=None, kw_only=False)

    def _fit_training(self, training: TrainingRows, landmarks: Indices | None = None) -> None:
        self.alphas_, self.loo_mse_ = fit_by_leave_one_out(self, training, landmarks, self.alphas)
