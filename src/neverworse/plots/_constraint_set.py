"""Draw the constraint set, the supervised weights and their projection."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from neverworse._palette import BLUE, GREEN, GREY, ORANGE, SKY
from neverworse._typing import Mask, Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators import (
    LinearClassifier,
    ProjectedLeastSquaresClassifier,
    checked_weights,
    split_labels,
    stored_weights,
)
from neverworse.plots._display import Display, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INVISIBLE = 1e-6  # as a share of the size of the constraint set
# Rows closer to a line than this (columns brought to equal length) determine one weight, not two.
SMALLEST_SINGULAR_VALUE = 1e-12
# Directions whose angles differ by no more than the rounding of an arc tangent are one direction.
SAME_ANGLE = 8 * float(np.finfo(np.float64).eps)


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
        area = {"facecolor": SKY + "40", "edgecolor": BLUE, "linewidth": 1.0}
        ax.fill(*self.constraint_set.T, **{**area, "label": "constraint set", **(set_kw or {})})
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
        """Whether the projected weights look the same as the supervised ones."""
        size = np.ptp(self.constraint_set, axis=0)
        return bool(np.all(np.abs(self.projected - self.supervised) <= INVISIBLE * size))

    def _draw_distance(self, ax: Axes, ellipse_kw: dict[str, Any]) -> None:
        """Draw the ellipse of equal distance, and the way to the projected weights."""
        ellipse = equidistant(self.supervised, self.projected, self.metric)
        if ellipse is not None:
            line = {"color": GREY, "linewidth": 1.0, "linestyle": (0, (4, 3))}
            ax.plot(*ellipse.T, **{**line, "label": "equal distance", **ellipse_kw})
        arrow: dict[str, Any] = {"arrowstyle": "-|>", "color": "black", "linewidth": 1.2}
        arrow |= {"shrinkA": 4, "shrinkB": 4}
        start, end = tuple(self.supervised), tuple(self.projected)
        ax.annotate("", xy=end, xytext=start, arrowprops=arrow)

    def _draw_points(self, ax: Axes, point_kw: dict[str, Any]) -> None:
        same = self._same_point
        points = [
            ("supervised = projected" if same else "supervised", self.supervised, "s", ORANGE)
        ]
        if not same:
            points.append(("projected", self.projected, "o", BLUE))
        if self.oracle is not None:
            points.append(("oracle", self.oracle, "^", GREEN))
        look = {"markersize": 8, "markeredgecolor": "white", "markeredgewidth": 0.8, "zorder": 3}
        for name, point, marker, colour in points:
            own = {"marker": marker, "color": colour, "linestyle": "none", "label": name}
            ax.plot(*point, **{**look, **own, **point_kw})


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


@dataclass(frozen=True)
class WeightPlane:
    """Training rows of a classifier that has two weights."""

    design: Matrix  # what the two multiply: two features, or one feature and ones
    unlabeled: Mask
    target: Vector  # 0 or 1; zero where `unlabeled`
    row_weights: Vector  # not negative; zero for rows that do not take part
    penalty: Vector  # ridge penalty of each weight

    @classmethod
    def of(
        cls, estimator: ProjectedLeastSquaresClassifier, X: Any, y: Any, sample_weight: Any
    ) -> WeightPlane:
        """Check that X and y are what the classifier was fitted to, as far as can be seen."""
        _check_estimator(estimator)
        X = validate_data(estimator, X, reset=False, accept_sparse="csr", dtype=np.float64)
        design: Matrix = X.toarray() if hasattr(X, "toarray") else X
        if estimator.fit_intercept:
            design = np.column_stack([design, np.ones(len(design))])
        _, target, unlabeled = split_labels(y, estimator.missing_label)
        check_consistent_length(design, target)
        weights = checked_weights(sample_weight, len(design))
        n_labeled = int(np.count_nonzero(weights[~unlabeled]))
        n_unlabeled = int(np.count_nonzero(weights[unlabeled]))
        certificate = estimator.certificate_
        if (n_labeled, n_unlabeled) != (certificate.n_labeled, certificate.n_unlabeled):
            raise ValueError(
                f"X and y have {n_labeled:,} labeled and {n_unlabeled:,} unlabeled rows, but the "
                f"classifier was fitted to {certificate.n_labeled:,} and "
                f"{certificate.n_unlabeled:,}. Pass the rows, labels and sample weights that it "
                "was fitted to."
            )
        if certificate.rows == "unlabeled":
            # The transductive constraint set is made of the unlabeled rows alone.
            weights = np.where(unlabeled, weights, 0.0)
        penalty = np.full(2, certificate.penalty)
        if estimator.fit_intercept:
            penalty[1] = 0.0
        plane = cls(design, unlabeled, target, weights, penalty)
        _, triangle = plane._factors
        lengths = np.linalg.norm(triangle, axis=0)
        values = np.linalg.svd(triangle / np.where(lengths > 0, lengths, 1.0), compute_uv=False)
        if values[-1] <= SMALLEST_SINGULAR_VALUE:
            raise ValueError(
                "The weight space must have two dimensions, but the rows of X all lie on a line "
                "through the origin (or their feature is constant), so they determine only one."
            )
        return plane

    def least_squares(self, soft_labels: Vector) -> Vector:
        """Return what least squares on all rows gives for soft labels of the unlabeled ones."""
        rows, triangle = self._factors
        target = self.target.copy()
        target[self.unlabeled] = soft_labels
        return np.asarray(np.linalg.solve(triangle, target @ rows), dtype=np.float64)

    def constraint_set(self) -> Matrix:
        """Return the corners of the set of weights that some soft labels give, around it."""
        rows, triangle = self._factors
        start = self.target @ rows
        vertices = zonotope_vertices(start, rows[self.unlabeled])
        return np.asarray(np.linalg.solve(triangle, vertices.T).T, dtype=np.float64)

    def metric_of(self, estimator: ProjectedLeastSquaresClassifier) -> Matrix:
        """Return the matrix of the distance in which the classifier was projected."""
        distance = estimator.distance
        if not isinstance(distance, str):
            points = np.asarray(distance, dtype=np.float64)
            if estimator.fit_intercept:
                points = np.column_stack([points, np.ones(len(points))])
        elif distance == "euclidean":
            points = np.eye(2)
        elif distance == "labeled":
            points = self.design * np.sqrt(np.where(self.unlabeled, 0.0, self.row_weights))[:, None]
        else:  # all rows of the constraint set
            _, points = self._factors
        metric: Matrix = points.T @ points
        return metric

    def oracle_of(self, estimator: ProjectedLeastSquaresClassifier, y_true: Any) -> Vector:
        """Return the weights of least squares on all rows with their true labels."""
        classes, target, missing = split_labels(y_true, estimator.missing_label)
        check_consistent_length(self.design, target)
        if missing.any():
            n_missing = int(missing.sum())
            raise ValueError(
                f"y_true has {n_missing:,} rows without a label. The oracle needs all."
            )
        if not np.array_equal(classes, estimator.classes_):
            raise ValueError(
                f"y_true has the classes {classes.tolist()}, but the classifier was fitted to "
                f"{estimator.classes_.tolist()}."
            )
        n_differ = np.count_nonzero((target != self.target) & ~self.unlabeled)
        if n_differ:
            raise ValueError(f"y_true contradicts y in {n_differ:,} labeled rows.")
        return self.least_squares(target[self.unlabeled])

    @cached_property
    def _factors(self) -> tuple[Matrix, Matrix]:
        """Rows S Q and triangle R with H = R'R and w(q) = R⁻¹ Q'S(y, q).

        Orthogonal factors keep the digits of a feature far from zero, which H would square away.
        """
        root = np.sqrt(self.row_weights)
        stacked = np.vstack([self.design * root[:, None], np.diag(np.sqrt(self.penalty))])
        orthogonal, triangle = np.linalg.qr(stacked)
        return orthogonal[: len(root)] * root[:, None], triangle


def _check_estimator(estimator: Any) -> None:
    """Raise unless it is a fitted projected classifier with two weights, the intercept included."""
    if not isinstance(estimator, ProjectedLeastSquaresClassifier):
        raise TypeError(
            "ConstraintSetDisplay shows a ProjectedLeastSquaresClassifier or an ICLSClassifier, "
            f"but got a {type(estimator).__name__}. If it is the last step of a pipeline, pass "
            "that step, and X as the steps before it leave it."
        )
    check_is_fitted(estimator)
    assumed, n_features = estimator.certificate_.assumptions, estimator.n_features_in_
    problem = ""
    if assumed.task != "binary":
        problem = f"classifiers of two classes, but this one has {len(estimator.classes_)}"
    elif estimator.kernel != "linear":
        problem = (
            "the weights of linear classifiers, and this one has a kernel. With two columns, "
            "sklearn.inspection.DecisionBoundaryDisplay shows it"
        )
    elif assumed.n_bounded or assumed.class_prior:
        problem = (
            "the constraint set of all labelings, but this classifier was fitted with label_bounds "
            "or class_prior, which make it smaller"
        )
    elif n_features + bool(estimator.fit_intercept) != 2:
        features = "1 feature" if n_features == 1 else f"{n_features} features"
        problem = (
            f"two dimensions, but this classifier has {features} and "
            f"{'an' if estimator.fit_intercept else 'no'} intercept. Fit it to two features with "
            "fit_intercept=False, or to one feature with fit_intercept=True"
        )
    if problem:
        raise ValueError(f"ConstraintSetDisplay shows {problem}.")


def as_point(classifier: LinearClassifier) -> Vector:
    """Return the two weights of a classifier, the intercept last."""
    weights = stored_weights(classifier)
    return np.append(weights.coef, weights.intercept)[:2]


def weight_names(estimator: ProjectedLeastSquaresClassifier) -> tuple[str, str]:
    features = getattr(estimator, "feature_names_in_", ("x1", "x2"))
    last = "intercept" if estimator.fit_intercept else f"weight of {features[1]}"
    return f"weight of {features[0]}", last


def zonotope_vertices(start: Vector, generators: Matrix) -> Matrix:
    """Return the corners of the polygon {start + Σ q_j g_j : 0 ≤ q_j ≤ 1}, counterclockwise.

    The polygon's edges are the generators g_j and their opposites, sorted by angle, so its corners
    are cumulative sums: exact, at the price of a sort. The first is the lowest corner (of two, the
    left one). There are two corners if all generators are parallel, and one if all are zero.
    """
    edges = generators[generators.any(axis=1)]
    # Flipping a generator and moving the start by it describes the same set (q_j becomes 1 - q_j).
    # With all of them pointing up, the start is the lowest corner.
    down = (edges[:, 1] < 0) | ((edges[:, 1] == 0) & (edges[:, 0] < 0))
    lowest = start + edges[down].sum(axis=0)
    edges = np.where(down[:, None], -edges, edges)
    if not len(edges):
        return np.atleast_2d(lowest)
    angles = np.arctan2(edges[:, 1], edges[:, 0])
    order = np.argsort(angles)
    first_of_angle = np.flatnonzero(np.diff(angles[order], prepend=-1.0) > SAME_ANGLE)
    edges = np.add.reduceat(edges[order], first_of_angle)
    right = np.vstack([np.zeros(2), np.cumsum(edges, axis=0)])
    # A zonotope is symmetric about its centre: the left side is the right one, turned by 180°.
    left = right[-1] - right[1:-1]
    return np.vstack([lowest + right, lowest + left])
