"""Draw the constraint set, the supervised weights and their projection."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from neverworse._palette import BLUE, GREEN, GREY, ORANGE, SKY
from neverworse._typing import Matrix, Vector
from neverworse._words import documented_like
from neverworse.estimators import (
    ProjectedLeastSquaresClassifier,
    checked_weights,
    split_labels,
    stored_weights,
)
from neverworse.plots._display import Display, legend_above, names_of_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INVISIBLE = 1e-6  # distance, as a share of the size of the constraint set
ON_A_LINE = 1e-12  # relative distance of rows from a line that is rounding error
# Directions whose angles differ by the rounding error of an arc tangent are equal.
SAME_ANGLE = 8 * float(np.finfo(np.float64).eps)


@documented_like(Display)
@dataclass(eq=False, repr=False)
class ConstraintSetDisplay(Display):
    """The projection of a classifier with two weights, seen from above.

    Shows the constraint set (a polygon: the least squares weights on all rows, for all soft labels
    of the unlabeled rows), the supervised weights, their projection onto the set, and the ellipse
    of weights at the same distance from the supervised ones. The ellipse touches the set only in
    the projected weights. Create it with `from_estimator`.

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

    {Attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.datasets import make_two_gaussians
    >>> from neverworse.plots import ConstraintSetDisplay
    >>> X, y_true = make_two_gaussians(50, 1, random_state=0)
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
    ) -> ConstraintSetDisplay:
        """Draw the constraint set of a fitted classifier.

        Parameters
        ----------
        estimator : ProjectedLeastSquaresClassifier
            Fitted, with two weights: of two features with ``fit_intercept=False``, or of one, and
            the intercept of the score for targets 0 and 1, ``intercept_ + 0.5``.
        X, y : array-likes
            The rows and labels that it was fitted to, with markers for unlabeled rows.
        y_true : array-like of shape (n_samples,), optional
            The true labels of all rows, to show the oracle.
        sample_weight : array-like of shape (n_samples,), optional
            The row weights that it was fitted with.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        """
        _check_estimator(estimator)
        design = validate_data(estimator, X, reset=False, dtype=np.float64)
        classes, target, unlabeled = split_labels(y, estimator.missing_label)
        check_consistent_length(design, target)
        weights = checked_weights(sample_weight, len(design))
        certificate = estimator.certificate_
        used = tuple(int(np.count_nonzero(weights[part])) for part in (~unlabeled, unlabeled))
        if used != (certificate.n_labeled, certificate.n_unlabeled):
            raise ValueError(
                "X, y and sample_weight must be those that the classifier was fitted to, but have "
                "other numbers of labeled or unlabeled rows."
            )
        penalty = np.full(2, certificate.penalty)
        first, *last = (f"weight of {name}" for name in names_of_features(estimator, []))
        if estimator.fit_intercept:
            design = np.column_stack([design, np.ones(len(design))])
            penalty[1] = 0.0
            last = ["intercept"]
        if certificate.rows == "unlabeled":
            weights = np.where(unlabeled, weights, 0.0)
        rows, triangle = _factors(design, weights, penalty)
        vertices = zonotope_vertices(target @ rows, rows[unlabeled])
        oracle = None
        if y_true is not None:
            true_classes, truth, missing = split_labels(y_true, estimator.missing_label)
            check_consistent_length(design, truth)
            same = np.array_equal(true_classes, classes) and (truth == target)[~unlabeled].all()
            if missing.any() or not same:
                raise ValueError("y_true must have the labels of y, and one for every other row.")
            oracle = linalg.solve_triangular(triangle, truth @ rows)
        distance = estimator.distance
        if isinstance(distance, str):
            labeled = design * np.sqrt(np.where(unlabeled, 0.0, weights))[:, None]
            known = {"euclidean": np.eye(2), "labeled": labeled}
            points = known.get(distance, triangle)
        else:
            points = np.asarray(distance, dtype=np.float64)
            intercept = np.ones((len(points), int(estimator.fit_intercept)))
            points = np.column_stack([points, intercept])
        supervised, projected = (
            np.append(each.coef, each.intercept)[:2]
            for each in map(stored_weights, (estimator.supervised_, estimator))
        )
        display = cls(
            linalg.solve_triangular(triangle, vertices.T).T,
            supervised,
            projected,
            points.T @ points,
            oracle=oracle,
            weight_names=(first, last[0]),
        )
        return display.plot(ax)

    def _draw(self, ax: Axes) -> None:
        colours = {"facecolor": SKY + "40", "edgecolor": BLUE}
        ax.fill(*self.constraint_set.T, **colours, linewidth=1.0, label="constraint set")
        size = np.ptp(self.constraint_set, axis=0)
        moved = np.any(np.abs(self.projected - self.supervised) > INVISIBLE * size)
        name = "supervised" if moved else "supervised = projected"
        points = [(name, self.supervised, "s", ORANGE)]
        if moved:
            points.append(("projected", self.projected, "o", BLUE))
            ellipse = equidistant(self.supervised, self.projected, self.metric)
            if ellipse is not None:
                ax.plot(*ellipse.T, "--", color=GREY, linewidth=1.0, label="equal distance")
            arrow = {"arrowstyle": "-|>", "color": "black", "shrinkA": 4, "shrinkB": 4}
            ax.annotate("", tuple(self.projected), tuple(self.supervised), arrowprops=arrow)
        if self.oracle is not None:
            points.append(("oracle", self.oracle, "^", GREEN))
        look: dict[str, Any] = {"markersize": 8, "markeredgecolor": "white", "zorder": 3}
        for name, point, marker, colour in points:
            ax.plot(*point, marker, color=colour, label=name, **look)
        ax.set(xlabel=self.weight_names[0], ylabel=self.weight_names[1])
        legend_above(ax)


def equidistant(centre: Vector, through: Vector, metric: Matrix) -> Matrix | None:
    """Return points of the ellipse around `centre` through `through`, a closed curve.

    None if the metric is singular: then points at equal distance form no ellipse.
    """
    try:
        triangle = np.linalg.cholesky(metric)
    except np.linalg.LinAlgError:
        return None
    radius = np.linalg.norm(triangle.T @ (through - centre))
    angles = np.linspace(0.0, 2.0 * np.pi, 361)
    circle = radius * np.array([np.cos(angles), np.sin(angles)])
    return centre + np.linalg.solve(triangle.T, circle).T


def _factors(design: Matrix, weights: Vector, penalty: Vector) -> tuple[Matrix, Matrix]:
    """Return rows S Q and a triangle R with H = R'R: weights for targets y are R⁻¹ Q'S y.

    This is more accurate than a factor of H for a feature that is far from zero.
    """
    root = np.sqrt(weights)[:, None]
    orthogonal, triangle = np.linalg.qr(np.vstack([design * root, np.diag(np.sqrt(penalty))]))
    if (np.abs(triangle.diagonal()) <= ON_A_LINE * np.linalg.norm(triangle, axis=0)).any():
        raise ValueError(
            "The weight space must have two dimensions, but the rows of X all lie on a line "
            "through the origin (or their feature is constant), so they determine only one."
        )
    return orthogonal[: len(design)] * root, triangle


def _check_estimator(estimator: Any) -> None:
    """Raise an error unless it is a fitted projected classifier with two weights."""
    fits = isinstance(estimator, ProjectedLeastSquaresClassifier)
    if fits:
        check_is_fitted(estimator)
        known = estimator.certificate_.assumptions
        n_weights = estimator.n_features_in_ + bool(estimator.fit_intercept)
        restricted = known.n_bounded or known.class_prior or estimator.kernel != "linear"
        fits = known.task == "binary" and n_weights == 2 and not restricted
    if not fits:
        raise ValueError(
            "ConstraintSetDisplay shows a ProjectedLeastSquaresClassifier or an ICLSClassifier "
            "(the last step of a pipeline) of two classes in two dimensions: fit one to two "
            "features with fit_intercept=False, or to one feature with fit_intercept=True, without "
            f"a kernel, label_bounds and class_prior. Got {estimator!r}."
        )


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
