"""Draw the constraint set, the supervised weights and their projection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from neverworse._typing import Matrix, Vector
from neverworse.estimators import ProjectedLeastSquaresClassifier
from neverworse.estimators._labels import split_labels
from neverworse.estimators._linear import LinearBinaryClassifier, stored_weights
from neverworse.plots._weight_plane import WeightPlane

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours of Okabe and Ito, which people with any colour vision can tell apart. Markers and line
# styles differ as well, for print without colour.
BLUE, ORANGE, GREEN, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#56B4E9", "#595959"
INVISIBLE = 1e-6  # as a share of the size of the constraint set


class ConstraintSetDisplay:
    """The projection of a classifier with two weights, seen from above.

    Shows the constraint set (a polygon: every point is what least squares on all rows gives for
    some labels of the unlabeled rows), the supervised weights, the nearest point of the set to
    them, and the ellipse of all weights that are equally far from the supervised ones. The ellipse
    touches the set in the projected weights and nowhere else.

    Create it with `from_estimator`.

    Parameters
    ----------
    constraint_set : array of shape (n_vertices, 2)
        Corners of the constraint set, in order around it.
    supervised, projected : arrays of shape (2,)
        Weights before and after the projection.
    metric : array of shape (2, 2)
        Matrix M of the distance: squared, it is (w - w')'M(w - w').
    oracle : array of shape (2,), optional
        Weights of least squares on all rows with their true labels.
    weight_names : pair of str
        Names of the two weights.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.plots import ConstraintSetDisplay
    >>> rng = np.random.default_rng(3)
    >>> y_true = rng.integers(0, 2, 50)
    >>> X = rng.normal(size=(50, 1)) + 2 * y_true[:, None] - 1
    >>> y = np.where(np.arange(50) < 6, y_true, -1)
    >>> clf = ProjectedLeastSquaresClassifier().fit(X, y)
    >>> display = ConstraintSetDisplay.from_estimator(clf, X, y, y_true=y_true)
    >>> display.weight_names
    ('weight of x1', 'intercept')
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        constraint_set: Matrix,
        supervised: Vector,
        projected: Vector,
        metric: Matrix,
        *,
        oracle: Vector | None = None,
        weight_names: tuple[str, str] = ("weight of x1", "weight of x2"),
    ) -> None:
        self.constraint_set = constraint_set
        self.supervised = supervised
        self.projected = projected
        self.metric = metric
        self.oracle = oracle
        self.weight_names = weight_names

    @classmethod
    def from_estimator(
        cls,
        estimator: ProjectedLeastSquaresClassifier,
        X: Any,
        y: Any,
        *,
        y_true: Any = None,
        sample_weight: Any = None,
        ax: Axes | None = None,
        **plot_params: Any,
    ) -> ConstraintSetDisplay:
        """Draw the constraint set of a fitted classifier.

        Parameters
        ----------
        estimator : ProjectedLeastSquaresClassifier
            Fitted, with two weights: either two features and ``fit_intercept=False``, or one
            feature and ``fit_intercept=True``. The intercept is that of the score for targets 0
            and 1, ``intercept_ + 0.5``.
        X, y : array-likes
            The rows and labels that it was fitted to, with markers for unlabeled rows.
        y_true : array-like of shape (n_samples,), optional
            The true labels of all rows, to show the oracle.
        sample_weight : array-like of shape (n_samples,), optional
            The row weights that it was fitted with.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        **plot_params
            Passed to `plot`.
        """
        _check_estimator(estimator)
        _check_two_weights(estimator)
        plane = _weight_plane(estimator, X, y, sample_weight)
        display = cls(
            plane.constraint_set(),
            _as_point(estimator.supervised_),
            _as_point(estimator),
            _metric(estimator, plane),
            oracle=None if y_true is None else _oracle(estimator, plane, y_true),
            weight_names=_weight_names(estimator),
        )
        return display.plot(ax=ax, **plot_params)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        set_kw: dict[str, Any] | None = None,
        ellipse_kw: dict[str, Any] | None = None,
        point_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
        legend: bool = True,
    ) -> ConstraintSetDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        set_kw, ellipse_kw, point_kw, legend_kw : dict, optional
            What to draw differently: passed to matplotlib's `fill` for the constraint set, to
            `plot` for the ellipse and for the points, and to `legend`.
        legend : bool, default=True
            Whether to explain the parts in a legend.
        """
        if ax is None:
            ax = _new_axes()
        ax.fill(
            *self.constraint_set.T,
            **{
                "facecolor": SKY + "40",
                "edgecolor": BLUE,
                "linewidth": 1.0,
                "label": "constraint set",
                **(set_kw or {}),
            },
        )
        if not self._same_point:
            self._draw_distance(ax, ellipse_kw or {})
        self._draw_points(ax, point_kw or {})
        ax.set_xlabel(self.weight_names[0])
        ax.set_ylabel(self.weight_names[1])
        if legend:
            # Above the axes: inside, there is no place that never hides a point.
            ax.legend(
                **{
                    "loc": "lower center",
                    "bbox_to_anchor": (0.5, 1.0),
                    "ncols": 3,
                    "columnspacing": 1.2,
                    "handlelength": 1.6,
                    "fontsize": "small",
                    "frameon": False,
                    **(legend_kw or {}),
                }
            )
        self.ax_ = ax
        self.figure_ = ax.figure  # type: ignore[assignment]  # a subfigure has all that matters
        return self

    @property
    def _same_point(self) -> bool:
        """Whether nobody could see that the projected weights differ from the supervised ones."""
        size = np.ptp(self.constraint_set, axis=0)
        return bool(np.all(np.abs(self.projected - self.supervised) <= INVISIBLE * size))

    def _draw_distance(self, ax: Axes, ellipse_kw: dict[str, Any]) -> None:
        """Draw the ellipse of equal distance, and the way to the projected weights."""
        ellipse = equidistant(self.supervised, self.projected, self.metric)
        if ellipse is not None:
            ax.plot(
                *ellipse.T,
                **{
                    "color": GREY,
                    "linewidth": 1.0,
                    "linestyle": (0, (4, 3)),
                    "label": "equal distance",
                    **ellipse_kw,
                },
            )
        ax.annotate(
            "",
            xy=tuple(self.projected),
            xytext=tuple(self.supervised),
            arrowprops={
                "arrowstyle": "-|>",
                "color": "black",
                "linewidth": 1.2,
                "shrinkA": 4,
                "shrinkB": 4,
            },
        )

    def _draw_points(self, ax: Axes, point_kw: dict[str, Any]) -> None:
        if self._same_point:
            points = [("supervised = projected", self.supervised, "s", ORANGE)]
        else:
            points = [
                ("supervised", self.supervised, "s", ORANGE),
                ("projected", self.projected, "o", BLUE),
            ]
        if self.oracle is not None:
            points.append(("oracle", self.oracle, "^", GREEN))
        for name, point, marker, colour in points:
            ax.plot(
                *point,
                **{
                    "marker": marker,
                    "markersize": 8,
                    "markeredgecolor": "white",
                    "markeredgewidth": 0.8,
                    "color": colour,
                    "linestyle": "none",
                    "zorder": 3,
                    "label": name,
                    **point_kw,
                },
            )


def equidistant(centre: Vector, through: Vector, metric: Matrix) -> Matrix | None:
    """Return points of the ellipse about `centre` that goes through `through`.

    Parameters
    ----------
    centre, through : arrays of shape (2,)
    metric : array of shape (2, 2)
        Matrix of the distance.

    Returns
    -------
    points : array of shape (n_points, 2) or None
        A closed curve; None where the distance does not tell all weights apart, so that points at
        equal distance form no ellipse.
    """
    try:
        triangle = np.linalg.cholesky(metric)
    except np.linalg.LinAlgError:
        return None
    radius = np.linalg.norm(triangle.T @ (through - centre))
    angles = np.linspace(0.0, 2.0 * np.pi, 361)
    circle = radius * np.array([np.cos(angles), np.sin(angles)])
    points: Matrix = centre + np.linalg.solve(triangle.T, circle).T
    return points


def _new_axes() -> Axes:
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            "ConstraintSetDisplay draws with matplotlib, which is not installed. Install it with: "
            "pip install neverworse[plots]"
        ) from error
    return plt.figure(layout="constrained").add_subplot()


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, ProjectedLeastSquaresClassifier):
        raise TypeError(
            "ConstraintSetDisplay shows a ProjectedLeastSquaresClassifier or an ICLSClassifier, "
            f"but got a {type(estimator).__name__}. If it is the last step of a pipeline, pass "
            "that step, and X as the steps before it leave it."
        )
    check_is_fitted(estimator)


def _check_two_weights(estimator: ProjectedLeastSquaresClassifier) -> None:
    n_features = estimator.n_features_in_
    if n_features + bool(estimator.fit_intercept) == 2:
        return
    features = "1 feature" if n_features == 1 else f"{n_features} features"
    intercept = "an intercept" if estimator.fit_intercept else "no intercept"
    raise ValueError(
        f"The weight space must have two dimensions, but this classifier has {features} and "
        f"{intercept}. Fit it to two features with fit_intercept=False, or to one feature with "
        "fit_intercept=True."
    )


def _weight_plane(
    estimator: ProjectedLeastSquaresClassifier, X: Any, y: Any, sample_weight: Any
) -> WeightPlane:
    """Check that X and y are what the classifier was fitted to, as far as can be seen."""
    X = validate_data(estimator, X, reset=False, accept_sparse="csr", dtype=np.float64)
    design: Matrix = X.toarray() if hasattr(X, "toarray") else X
    if estimator.fit_intercept:
        design = np.column_stack([design, np.ones(len(design))])
    _, target, unlabeled = split_labels(y, estimator.missing_label)
    check_consistent_length(design, target)
    weights: Vector = _check_sample_weight(
        sample_weight, design, dtype=np.float64, ensure_non_negative=True
    )
    n_labeled = int(np.count_nonzero(weights[~unlabeled]))
    n_unlabeled = int(np.count_nonzero(weights[unlabeled]))
    certificate = estimator.certificate_
    if (n_labeled, n_unlabeled) != (certificate.n_labeled, certificate.n_unlabeled):
        raise ValueError(
            f"X and y have {n_labeled:,} labeled and {n_unlabeled:,} unlabeled rows, but the "
            f"classifier was fitted to {certificate.n_labeled:,} and {certificate.n_unlabeled:,}. "
            "Pass the rows, labels and sample weights that it was fitted to."
        )
    if certificate.rows == "unlabeled":
        # The transductive constraint set is made of the unlabeled rows alone.
        weights = np.where(unlabeled, weights, 0.0)
    penalty = np.full(2, float(estimator.constraint_alpha))
    if estimator.fit_intercept:
        penalty[1] = 0.0
    plane = WeightPlane(design, unlabeled, target, weights, penalty)
    if not plane.has_two_dimensions:
        raise ValueError(
            "The weight space must have two dimensions, but the rows of X all lie on a line "
            "through the origin (or their feature is constant), so they determine only one."
        )
    return plane


def _metric(estimator: ProjectedLeastSquaresClassifier, plane: WeightPlane) -> Matrix:
    """Return the matrix of the distance in which the classifier was projected."""
    distance = estimator.distance
    if isinstance(distance, str):
        if distance in ("all", "unlabeled"):
            return plane.metric
        if distance == "euclidean":
            return np.eye(2)
        points = plane.design * np.sqrt(np.where(plane.unlabeled, 0.0, plane.row_weights))[:, None]
    else:
        points = np.asarray(distance, dtype=np.float64)
        if estimator.fit_intercept:
            points = np.column_stack([points, np.ones(len(points))])
    metric: Matrix = points.T @ points
    return metric


def _oracle(estimator: ProjectedLeastSquaresClassifier, plane: WeightPlane, y_true: Any) -> Vector:
    classes, target, missing = split_labels(y_true, estimator.missing_label)
    check_consistent_length(plane.design, target)
    if missing.any():
        raise ValueError(
            f"y_true has {int(missing.sum()):,} rows without a label. The oracle is least squares "
            "on all rows with their true labels, so it needs every one."
        )
    if not np.array_equal(classes, estimator.classes_):
        raise ValueError(
            f"y_true has the classes {classes.tolist()}, but the classifier was fitted to "
            f"{estimator.classes_.tolist()}."
        )
    differs = (target != plane.target) & ~plane.unlabeled
    if differs.any():
        raise ValueError(
            f"y_true contradicts y in {int(differs.sum()):,} labeled rows. The labels of labeled "
            "rows are taken as true."
        )
    return plane.least_squares(target[plane.unlabeled])


def _as_point(classifier: LinearBinaryClassifier) -> Vector:
    """Return the two weights of a classifier, the intercept last."""
    weights = stored_weights(classifier)
    return np.array([*weights.coef, weights.intercept])[:2]


def _weight_names(estimator: ProjectedLeastSquaresClassifier) -> tuple[str, str]:
    features = getattr(estimator, "feature_names_in_", ("x1", "x2"))
    if estimator.fit_intercept:
        return f"weight of {features[0]}", "intercept"
    return f"weight of {features[0]}", f"weight of {features[1]}"
