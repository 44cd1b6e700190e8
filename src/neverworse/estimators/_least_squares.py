"""The supervised baselines: least squares with a given or a chosen penalty."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions

from neverworse._typing import Indices, Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators._input import FitInput
from neverworse.estimators._kernels import KERNEL_CONSTRAINTS, KernelModel, LinearSpace, spaces
from neverworse.estimators._linear import IndicatorClassifier, LinearModel, LinearRegressor
from neverworse.projection import (
    TrainingRows,
    Weights,
    column_moments,
    leave_one_out,
    solve_least_squares,
)
from neverworse.rows import Rows

# Penalties that are tried, in units of the mean sum of squares of the centred columns that vary.
RELATIVE_PENALTIES = np.logspace(-6, 2, 25)
# Losses that differ by less, relative to their size, differ by rounding errors.
LOSS_TOLERANCE = 1e-10


def _squared_errors(scores: Vector, target: Matrix, weights: Vector) -> Vector:
    """Return the sum over the rows for every penalty."""
    return np.sum((scores - target) ** 2, axis=1) @ weights


CONSTRAINTS: dict[str, list[Any] | str] = {
    "alpha": [Interval(Real, 0, None, closed="left")],
    "alphas": ["array-like", None],
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "fit_intercept": ["boolean"],
    "rcond": [Interval(Real, 0, 1, closed="left"), None],
    "missing_label": "no_validation",
    **KERNEL_CONSTRAINTS,
}


@dataclass(eq=False, repr=False, kw_only=True)
class SupervisedModel(LinearModel):
    """Base of least squares models of the labeled rows. All others are ignored."""

    _reads_chunks: ClassVar[bool] = True
    _skips_rows: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = CONSTRAINTS

    _fit_training: ClassVar[Any]  # a method of subclasses that fits to checked rows

    fit_intercept: bool = True
    missing_label: Any = "auto"

    def _fit_rows(self, given: FitInput) -> None:
        self._fit_training(TrainingRows(given.rows, self._read_labels(given).labels))


@dataclass(eq=False, repr=False, kw_only=True)
class GivenPenalty(SupervisedModel):
    """Fits with a given penalty."""

    alpha: float = field(default=0.0, kw_only=False)
    rcond: float | None = None

    def _fit_training(self, training: TrainingRows, landmarks: Indices | None = None) -> None:
        alpha = float(self.alpha)
        if self.kernel != "linear" and self.gamma == "loo":
            if self.rcond is not None:
                raise ValueError("gamma='loo' takes no rcond. Leave out one of them.")
            fit_by_leave_one_out(self, training, landmarks, [alpha])
        else:
            ((space, inside),) = spaces(self, training, landmarks)
            fit_least_squares(self, inside, alpha, space, self.rcond)


@dataclass(eq=False, repr=False, kw_only=True)
class ChosenPenalty(SupervisedModel):
    """Chooses the penalty by leave-one-out."""

    _loss_name: ClassVar[str]

    alphas: Any = field(default=None, kw_only=False)

    def _fit_training(self, training: TrainingRows, landmarks: Indices | None = None) -> None:
        self.alphas_, losses = fit_by_leave_one_out(self, training, landmarks, self.alphas)
        setattr(self, self._loss_name, losses)


@dataclass(eq=False, repr=False, kw_only=True)
class LeastSquaresClassifier(KernelModel, GivenPenalty, IndicatorClassifier):
    r"""Least squares classifier on the labeled rows only.

    Minimises, over the labeled rows with targets :math:`y_i \in \{0, 1\}` for the classes in
    sorted order,

    .. math:: \sum_i s_i (x_i \cdot w + b - y_i)^2 + \alpha \lVert w \rVert^2 .

    More than two classes have one such target each, 1 for the rows of the class. Unlabeled rows are
    ignored. This is also known as Fisher's linear discriminant.

    Parameters
    ----------
    alpha : float, default=0.0
        Ridge penalty, as in scikit-learn's `Ridge`: not scaled by the number of rows.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is never penalised.
    missing_label : "auto" or scalar, default="auto"
        The value that marks unlabeled rows in y. "auto": -1 among integers, NaN among floats, any
        null value among objects; an error where that is a guess. NaN, None or pd.NA: any null.
    rcond : float or None, default=None
        None: an accurate solve that does not depend on the scales of the columns, with the
        minimum-norm solution if the rank is deficient. A number: directions whose singular value in
        the Gram matrix of the centred columns is at most `rcond` times the largest are left out.
    kernel : {"linear", "rbf", "laplacian", "poly", "precomputed"} or callable, default="linear"
        Scores are functions in the space of this kernel, by scikit-learn's name, or a function of
        two rows. "precomputed": X is the kernel of all pairs of training rows, and of new rows with
        the training rows in predictions. Scale the columns first.
    gamma : float, "loo" or None, default=None
        Coefficient of the kernels "rbf", "laplacian" and "poly". None: one over the number of
        columns. "loo": chosen by exact leave-one-out on the labeled rows, like the penalty.
    degree : float, default=3
        Degree of the kernel "poly".
    coef0 : float, default=1
        Constant term of the kernel "poly".
    n_components : int or None, default=None
        None: no approximation, for at most 5,000 rows. A number: Nyström's approximation with this
        number of rows as landmarks. Everything is then exact for the features that result.
    random_state : int, RandomState instance or None, default=None
        Seed for drawing the landmarks, with `n_components`.
    class_weight : None, "balanced" or dict, default=None
        Factors for the weights of labeled rows, for each class, as in scikit-learn; unlabeled rows
        keep their weights. A certificate is about the loss with these weights, and says so.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes in sorted order; the second of two is coded 1.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The weights w.
    intercept_ : array of shape (1,) or (n_classes,)
        b - 0.5, so that ``X @ coef_.T + intercept_`` is the decision function.
    dual_coef_ : array
        With a kernel, in place of `coef_`: the weights of ``k(x, landmarks_)``.
    landmarks_ : array of shape (n_landmarks, n_features)
        With a kernel: the rows with which new rows are compared ("precomputed": their indices).
    gamma_ : float or None
        With a kernel: the gamma that was used.
    alpha_ : float
        The penalty that was used.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X has column names that are all strings.

    Examples
    --------
    >>> from neverworse import LeastSquaresClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0]]
    >>> y = [0, 0, 1, 1, -1]
    >>> clf = LeastSquaresClassifier().fit(X, y)
    >>> clf.predict([[1.4], [1.6]])
    array([0, 1])
    """

    class_weight: Any = None


@documented_like(LeastSquaresClassifier)
@dataclass(eq=False, repr=False, kw_only=True)
class LeastSquaresClassifierCV(KernelModel, ChosenPenalty, IndicatorClassifier):
    r"""Least squares classifier that chooses its ridge penalty by leave-one-out.

    For every penalty α, every labeled row i is scored by the fit to all other labeled rows, in
    closed form: with the error :math:`e_i` of the fit to all of them and its leverage :math:`h_i`,
    the error without row i is :math:`e_i / (1 - h_i)`. Unlabeled rows are ignored.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,) or None, default=None
        Penalties to choose from. None: 25 values from 1e-6 to 100 times the mean sum of squares of
        the centred columns of the labeled rows (those that vary).
    {fit_intercept, missing_label}
    {kernel, gamma, degree, coef0, n_components, random_state, class_weight}

    Attributes
    ----------
    alpha_ : float
        The penalty that was chosen; the largest of equally good ones.
    alphas_ : array of shape (n_alphas,)
        The penalties that were tried.
    loo_brier_ : array of shape (n_alphas,)
        Mean squared error of the left-out scores, summed over the classes.
    {classes_, coef_, intercept_, dual_coef_, landmarks_, gamma_, n_features_in_, feature_names_in_}

    Examples
    --------
    >>> from neverworse import LeastSquaresClassifierCV
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0]]
    >>> clf = LeastSquaresClassifierCV(alphas=[0.1, 1, 10]).fit(X, [0, 0, 1, 1, -1])
    >>> clf.alpha_
    1.0
    """

    _loss_name: ClassVar[str] = "loo_brier_"

    class_weight: Any = None
    loo_brier_: Vector = field(init=False)


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


def fit_least_squares(
    model: Any, training: TrainingRows, alpha: float, space: LinearSpace, rcond: float | None = None
) -> Weights:
    """Give a model the least squares weights of labeled rows in the features of `space`."""
    rows, target, weights = training.labeled()
    solution = solve_least_squares(
        rows,
        target,
        weights,
        alpha=alpha,
        fit_intercept=model.fit_intercept,
        rcond=rcond,
        one_unit=space.one_unit,
    ).snapped(model._threshold)
    space.store(model, solution)
    model.alpha_ = alpha
    return solution


def fit_by_leave_one_out(
    model: Any, training: TrainingRows, landmarks: Indices | None, alphas: Any
) -> tuple[Vector, Vector]:
    """Fit a model to the labeled rows with the penalty (and the gamma) that leave-one-out chooses.

    Returns the penalties that were tried, and the mean squared error of left-out rows for each.
    """
    best: Any = None
    for space, inside in spaces(model, training, landmarks):
        rows, target, weights = inside.labeled()
        penalties = _penalties(alphas, rows, weights, model.fit_intercept)
        sums = leave_one_out(
            rows, target, weights, penalties, _squared_errors, model.fit_intercept, space.one_unit
        )
        losses = sums / float(rows.n_rows if weights is None else weights.sum())
        chosen = _best(penalties, losses)
        if best is None or losses[chosen] < best[0] * (1.0 - LOSS_TOLERANCE):
            best = losses[chosen], float(penalties[chosen]), space, inside, (penalties, losses)
    _, alpha, space, inside, found = best
    fit_least_squares(model, inside, alpha, space)
    return found


def _penalties(alphas: Any, rows: Rows, weights: Vector | None, fit_intercept: bool) -> Vector:
    """Return the given penalties, checked, or a grid in units of the columns."""
    if alphas is None:
        sums = column_moments(rows, weights, fit_intercept)
        unit = sums.spread[sums.varies].mean() if sums.varies.any() else 1.0
        # Rounded, so that rows in files or in a cluster, added up in another order, have the same.
        return RELATIVE_PENALTIES * float(f"{unit:.7g}")
    penalties: Vector = check_array(
        np.atleast_1d(alphas), ensure_2d=False, dtype=np.float64, input_name="alphas"
    )
    if penalties.ndim != 1 or (penalties < 0.0).any():
        raise ValueError("alphas must be a one-dimensional list of non-negative penalties.")
    return penalties


def _best(alphas: Vector, losses: Vector) -> int:
    """Return where the loss is smallest; if equal, the largest penalty."""
    usable = np.isfinite(losses)
    if not usable.any():
        raise ValueError(
            "Leave-one-out needs at least two labeled rows of comparable weight, but there is one "
            "sample, or one that outweighs all others. Label more rows, or set alpha to a number."
        )
    least = losses[usable].min()
    equal = usable & (losses <= least + LOSS_TOLERANCE * abs(least))
    return int(np.where(equal, alphas, -1.0).argmax())
