"""The supervised baseline: least squares on 0/1 targets."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from neverworse._typing import AnyArray, Vector
from neverworse.estimators._class_weight import CLASS_WEIGHT
from neverworse.estimators._classifier import IndicatorClassifier
from neverworse.estimators._known_labels import known_labels
from neverworse.estimators._linear import fit_least_squares
from neverworse.projection import Observer, TrainingRows
from neverworse.rows import Rows


class LabeledRowsClassifier(IndicatorClassifier):
    """Base of classifiers that ignore unlabeled rows, and are fitted by `_fit_training`."""

    _reads_chunks: ClassVar[bool] = True
    _skips_rows: ClassVar[bool] = True

    class_weight: Any
    alpha_: float

    def _fit_rows(
        self,
        rows: Rows,
        y: Any,
        weights: Vector | None,
        bounds: Any,
        observer: Observer | None,  # noqa: ARG002
    ) -> None:
        known = known_labels(y, self.missing_label, rows.n_rows, weights, bounds, self.class_weight)
        self._fit_training(TrainingRows(rows, known.labels), known.classes)

    @abstractmethod
    def _fit_training(self, training: TrainingRows, classes: AnyArray) -> None:
        """Fit to the labeled ones of checked rows."""


class LeastSquaresClassifier(LabeledRowsClassifier):
    r"""Least squares classifier on the labeled rows only.

    Minimises, over the labeled rows with targets :math:`y_i \in \{0, 1\}` for the classes in
    sorted order,

    .. math:: \sum_i s_i (x_i \cdot w + b - y_i)^2 + \alpha \lVert w \rVert^2 .

    More than two classes have one such target each, 1 for the rows of the class.

    Unlabeled rows are ignored. This is the supervised counterpart of
    `ProjectedLeastSquaresClassifier`, and is also known as Fisher's linear discriminant.

    Parameters
    ----------
    alpha : float, default=0.0
        Ridge penalty, as in scikit-learn's `Ridge`: not scaled by the number of rows, and without
        the intercept.
    class_weight : None, "balanced" or dict, default=None
        What the weights :math:`s_i` of labeled rows are multiplied by, for each class. "balanced":
        the rows of every class weigh the same together, and all rows as much as before, as in
        scikit-learn. A dict from classes to numbers; classes that it lacks have 1.
    fit_intercept : bool, default=True
        Whether to fit b. Without it, the score still has to approximate 0 and 1.
    rcond : float or None, default=None
        How rank deficiency is decided. None: an accurate solve that does not depend on the scales
        of the columns, with the shortest solution where there are many. A number: directions whose
        singular value in the Gram matrix of the centred, unscaled columns is at most `rcond` times
        the largest are left out. The published experiments of Krijthe and Loog use 1.49e-8, which
        acts as a strong regulariser where columns have very different scales.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y. "auto": -1 among integers, NaN among floats, and any null
        value among objects; an error where that would be a guess. NaN, None or pd.NA: any null
        value, so that -1 may be a class. Any other value: that value.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes in sorted order; the second of two is coded 1.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        The weights w.
    intercept_ : array of shape (1,) or (n_classes,)
        b - 0.5, so that ``X @ coef_.T + intercept_`` is the decision function.
    alpha_ : float
        The penalty that was used.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X has column names that are all strings.

    See Also
    --------
    ProjectedLeastSquaresClassifier : Never worse, and uses unlabeled rows.

    Examples
    --------
    >>> from neverworse import LeastSquaresClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0], [10.0]]
    >>> y = [0, 0, 1, 1, -1]
    >>> clf = LeastSquaresClassifier().fit(X, y)
    >>> clf.predict([[1.4], [1.6]])
    array([0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "class_weight": CLASS_WEIGHT,
        "fit_intercept": ["boolean"],
        "rcond": [Interval(Real, 0, 1, closed="left"), None],
        "missing_label": "no_validation",
    }

    def __init__(
        self,
        alpha: float = 0.0,
        *,
        class_weight: Any = None,
        fit_intercept: bool = True,
        rcond: float | None = None,
        missing_label: Any = "auto",
    ) -> None:
        self.alpha = alpha
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.rcond = rcond
        self.missing_label = missing_label

    def _fit_training(self, training: TrainingRows, classes: AnyArray) -> None:
        fit_least_squares(self, training, float(self.alpha), self.rcond)
        self.classes_ = classes
