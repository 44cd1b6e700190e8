"""Least squares with the ridge penalty that leave-one-out prefers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array
from sklearn.utils._param_validation import StrOptions

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators._class_weight import CLASS_WEIGHT
from neverworse.estimators._least_squares import LabeledRowsClassifier
from neverworse.estimators._linear import fit_least_squares
from neverworse.projection import TrainingRows, leave_one_out
from neverworse.projection.coordinates.moments import column_moments
from neverworse.rows import Rows

# Penalties that are tried, in units of the mean sum of squares of the centred columns that vary.
GRID = np.logspace(-6, 2, 25)
# Losses that differ by less, relative to their size, differ by rounding errors.
EQUAL = 1e-10


class LeastSquaresClassifierCV(LabeledRowsClassifier):
    r"""Least squares classifier that chooses its ridge penalty by leave-one-out.

    For every penalty α, every labeled row i is scored by the fit to all other labeled rows. That
    takes no fits: with the error :math:`e_i` of the fit to all of them and its leverage
    :math:`h_i`, the error without row i is :math:`e_i / (1 - h_i)`, exactly, and one
    decomposition serves all penalties. Unlabeled rows are ignored; they are never scored.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,) or None, default=None
        Penalties to choose from. None: 25 values from 1e-6 to 100 times the mean sum of squares of
        the centred columns of the labeled rows (those that vary), so that the units of the features
        do not matter.
    scoring : {"brier", "accuracy"}, default="brier"
        What is compared: the mean squared error of the left-out scores, or the accuracy of the
        left-out predictions (and the squared error where that is equal).
    class_weight : None, "balanced" or dict, default=None
        What the weights of labeled rows are multiplied by, as in `LeastSquaresClassifier`. Left-out
        rows are scored with these weights; "balanced" ones are those of all labeled rows.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is never penalised.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `LeastSquaresClassifier`.

    Attributes
    ----------
    alpha_ : float
        The penalty that was chosen; the largest of equally good ones.
    alphas_ : array of shape (n_alphas,)
        The penalties that were tried.
    loo_brier_, loo_accuracy_ : arrays of shape (n_alphas,)
        Mean squared error (summed over the classes) and accuracy of the left-out scores.
    classes_, coef_, intercept_, n_features_in_, feature_names_in_
        As in `LeastSquaresClassifier`.

    See Also
    --------
    ProjectedLeastSquaresClassifier : ``alpha="loo"`` chooses the penalty of its supervised
        solution in this way.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import LeastSquaresClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 60)
    >>> X = rng.normal(size=(60, 20)) + 0.5 * y[:, None]
    >>> y[40:] = -1
    >>> clf = LeastSquaresClassifierCV(alphas=[0.1, 1, 10, 100, 1000]).fit(X, y)
    >>> clf.alpha_
    100.0
    >>> clf.loo_brier_.round(3)
    array([0.435, 0.385, 0.25 , 0.205, 0.245])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "alphas": ["array-like", None],
        "scoring": [StrOptions({"brier", "accuracy"})],
        "class_weight": CLASS_WEIGHT,
        "fit_intercept": ["boolean"],
        "missing_label": "no_validation",
    }

    def __init__(
        self,
        alphas: Any = None,
        *,
        scoring: str = "brier",
        class_weight: Any = None,
        fit_intercept: bool = True,
        missing_label: Any = "auto",
    ) -> None:
        self.alphas = alphas
        self.scoring = scoring
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.missing_label = missing_label

    def _fit_training(self, training: TrainingRows, classes: AnyArray) -> None:
        rows, target, weights = training.labeled()
        alphas = checked_alphas(self.alphas, rows, weights, self.fit_intercept)
        sums = leave_one_out(rows, target, weights, alphas, _compare, self.fit_intercept)
        brier, accuracy = sums / total_weight(rows, weights)
        loss = brier if self.scoring == "brier" else 1.0 - accuracy
        fit_least_squares(self, training, best_alpha(alphas, loss, brier))
        self.alphas_ = alphas
        self.loo_brier_, self.loo_accuracy_ = brier, accuracy
        self.classes_ = classes


def checked_alphas(alphas: Any, rows: Rows, weights: Vector | None, fit_intercept: bool) -> Vector:
    """Return the penalties to choose from; a grid in units of the columns if there are none."""
    if alphas is None:
        sums = column_moments(rows, weights, fit_intercept)
        return GRID * (sums.spread[sums.varies].mean() if sums.varies.any() else 1.0)
    checked: Vector = check_array(
        np.atleast_1d(alphas), ensure_2d=False, dtype=np.float64, input_name="alphas"
    )
    if checked.ndim != 1 or (checked < 0.0).any():
        raise ValueError("alphas must be a list of penalties that are not negative.")
    return checked


def best_alpha(alphas: Vector, *losses: Vector) -> float:
    """Return the penalty of the smallest loss; of equal ones by the next loss, then the largest."""
    usable = np.flatnonzero(np.isfinite(losses).all(axis=0))
    if not usable.size:
        raise ValueError(
            "Leave-one-out needs at least two labeled rows of comparable weight: there is one "
            "sample, or one that outweighs all others by more digits than floating point numbers "
            "have. Label more rows, bring the weights closer together, or set alpha to a number."
        )
    for loss in losses:
        least = loss[usable].min()
        usable = usable[loss[usable] <= least + EQUAL * abs(least)]
    return float(alphas[usable].max())


def total_weight(rows: Rows, weights: Vector | None) -> float:
    """Return the sum of the weights of rows."""
    return float(rows.n_rows if weights is None else weights.sum())


def _compare(scores: Vector, target: Matrix, weights: Vector) -> Matrix:
    """Return squared errors and hits of every penalty, added up."""
    if len(target) > 1:
        hits = np.take_along_axis(target[None], scores.argmax(axis=1)[:, None], axis=1)[:, 0]
    else:  # a soft label counts as a hit in part
        hits = np.where(scores[:, 0] > 0.5, target, 1.0 - target)
    return np.stack([squared_errors(scores, target, weights), hits @ weights])


def squared_errors(scores: Vector, target: Matrix, weights: Vector) -> Vector:
    """Return the squared errors of every penalty, added up."""
    errors: Vector = np.sum((scores - target) ** 2, axis=1) @ weights
    return errors
