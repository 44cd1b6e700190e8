"""Draw the constraint set, the supervised weights and their projection."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neverworse._docs import documented_like
from neverworse._palette import BLUE, GREEN, GREY, ORANGE, SKY
from neverworse._typing import Matrix, Vector
from neverworse.estimators import ProjectedLeastSquaresClassifier
from neverworse.plots._drawing import Display, legend_above
from neverworse.plots._weight_plane import WeightPlane, as_point, weight_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INVISIBLE = 1e-6  # as a share of the size of the constraint set


@documented_like(Display)
@dataclass(eq=False, repr=False)
class ConstraintSetDisplay(Display):
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
    {ax_, figure_}

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

    constraint_set: Matrix
    supervised: Vector
    projected: Vector
    metric: Matrix
    _: KW_ONLY
    oracle: Vector | None = None
    weight_names: tuple[str, str] = ("weight of x1", "weight of x2")

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
        plane = WeightPlane.of(estimator, X, y, sample_weight)
        display = cls(
            plane.constraint_set(),
            as_point(estimator.supervised_),
            as_point(estimator),
            plane.metric_of(estimator),
            oracle=None if y_true is None else plane.oracle_of(estimator, y_true),
            weight_names=weight_names(estimator),
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
        ax = self._axes(ax)
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
            legend_above(ax, **(legend_kw or {}))
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
    """Return points of the ellipse about `centre` that goes through `through`, a closed curve.

    None where the distance, of which the metric is the matrix, does not tell all weights apart, so
    that points at equal distance form no ellipse.
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
