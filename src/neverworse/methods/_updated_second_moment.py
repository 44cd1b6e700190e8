"""Least squares in which unlabeled rows update the second moments of the features only."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from neverworse._words import documented_like
from neverworse.estimators import (
    FitInput,
    IndicatorClassifier,
    LeastSquaresClassifier,
    known_labels,
)
from neverworse.projection import Weights, solve_least_squares


@documented_like(LeastSquaresClassifier)
class UpdatedSecondMomentClassifier(IndicatorClassifier):
    r"""Least squares classifier with the second moments of labeled and unlabeled rows.

    The least squares weights are made of two moments: the second moments of the features, and
    their products with the target. Unlabeled rows have features, so that the first can be
    estimated from all rows, and the second only from the labeled ones. With targets
    :math:`y_i \in \{0, 1\}`,

    .. math:: w = \left( \frac{n_l}{n_l + n_u} E'SE + \alpha I \right)^{-1} X'S (y - \bar y) ,
              \qquad b = \bar y - \bar e \cdot w ,

    where X and E are the labeled and all rows, centred at the mean :math:`\bar e` of *all* rows,
    :math:`\bar y` is the mean target of the labeled rows, S holds row weights, and
    :math:`n_l` and :math:`n_u` are their sums over labeled and unlabeled rows. These weights
    minimise

    .. math:: \frac{n_l}{n_l + n_u} \sum_{i \in \text{all}} s_i (e_i \cdot w)^2
              - 2 \sum_{i \in \text{labeled}} s_i (y_i - \bar y) \, x_i \cdot w
              + \alpha \lVert w \rVert^2 ,

    which for labeled rows alone is the loss of `LeastSquaresClassifier`, up to a constant. It helps
    where labeled rows are hardly more than columns, so that their own second moments are almost
    singular. It hurts where errors of the two moments cancelled before: least squares reproduces
    targets that are linear in the features from a handful of labeled rows, and this does not.

    Parameters
    ----------
    alpha : float, default=0.0
        Ridge penalty, on the scale of the labeled rows: the same as in `LeastSquaresClassifier`.
    fit_intercept : bool, default=True
        Whether to fit b. Without it nothing is centred, neither rows nor targets.
    rcond : float or None, default=None
        How rank deficiency is decided, as in `LeastSquaresClassifier`, from the second moments of
        all rows.
    {missing_label}

    Attributes
    ----------
    {classes_, coef_, intercept_, n_features_in_, feature_names_in_}

    See Also
    --------
    LeastSquaresClassifier : The supervised counterpart, and the same without unlabeled rows.

    Notes
    -----
    *The intercept.* It is no feature with moments of its own, but what centring leaves: on average
    over all rows the score is the share of the second class among the labeled rows. Were a column
    of ones updated like the other columns, targets would enter as y instead of
    :math:`y - \bar y`, and the classifier would depend on which class is coded 1. Centring at the
    mean of the *labeled* rows, as the supervised classifier does, is another choice: it corrects
    the share for labeled rows that happen to lie on one side, which pays once w is accurate and
    costs where it is not. The intercept here is that of the published experiments of Krijthe and
    Loog.

    *Computation.* Since :math:`X'S(y - \bar y) = E'Sr` with r the residuals of the labeled rows and
    zero for unlabeled ones, w is :math:`(n_l + n_u) / n_l` times a least squares solution on all
    rows. So it is found as accurately, for rank-deficient rows too, where it is the shortest one.

    References
    ----------
    J. P. Shaffer, "The Gauss-Markov theorem and random regressors", The American Statistician 45
    (1991), 269-273.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import LeastSquaresClassifier
    >>> from neverworse.methods import UpdatedSecondMomentClassifier
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 50)) + 0.5 * truth[:, None]
    >>> y = np.where(np.arange(1000) < 52, truth, -1)
    >>> round(LeastSquaresClassifier().fit(X, y).score(X, truth), 2)
    0.6
    >>> round(UpdatedSecondMomentClassifier().fit(X, y).score(X, truth), 2)
    0.83
    """

    _skips_rows: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = (
        LeastSquaresClassifier._parameter_constraints
    )

    def __init__(
        self,
        alpha: float = 0.0,
        *,
        fit_intercept: bool = True,
        rcond: float | None = None,
        missing_label: Any = "auto",
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.rcond = rcond
        self.missing_label = missing_label

    def _fit_rows(self, given: FitInput) -> None:
        known = known_labels(given, self.missing_label)
        rows, weights, target = given.rows, given.weights, known.labels.target
        labeled = ~known.labels.unlabeled
        s = known.labels.weights_where(labeled)
        total = float(rows.n_rows if weights is None else weights.sum())
        ratio = total / float(s.sum())
        mean = np.zeros(len(target))
        if self.fit_intercept:
            mean = np.average(target, axis=1, weights=s)
        residual = np.where(labeled, target - mean[:, None], 0.0)
        solution = solve_least_squares(
            rows,
            ratio * residual,
            weights,
            alpha=ratio * float(self.alpha),
            fit_intercept=self.fit_intercept,
            rcond=self.rcond,
        )
        solution += Weights(np.zeros_like(solution.coef), mean)
        self._set_weights(solution.snapped(self._threshold))
        self.classes_ = known.classes
