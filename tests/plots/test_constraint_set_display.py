"""The constraint set is drawn where it is: against brute force over all labelings."""

from __future__ import annotations

import itertools
import sys

import matplotlib as mpl
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from neverworse import (
    ICLSClassifier,
    LeastSquaresClassifier,
    ProjectedLeastSquaresClassifier,
)
from neverworse.plots import ConstraintSetDisplay
from neverworse.plots._constraint_set import equidistant, zonotope_vertices
from tests.exact import loss_penalty

mpl.use("Agg")

import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def outside(polygon, points):
    """How far points lie outside a convex polygon, as a share of its size; zero inside."""
    centre = polygon.mean(axis=0)
    size = np.ptp(polygon, axis=0)
    corners = (polygon - centre) / size
    points = (np.atleast_2d(points) - centre) / size
    edges = np.roll(corners, -1, axis=0) - corners
    x, y = corners.T
    turn = np.sign(x @ np.roll(y, -1) - y @ np.roll(x, -1))
    inwards = turn * np.column_stack([-edges[:, 1], edges[:, 0]])
    inwards /= np.linalg.norm(inwards, axis=1)[:, None]
    depth = np.einsum("pkd,kd->pk", points[:, None, :] - corners[None], inwards)
    return np.maximum(0.0, -depth.min(axis=1))


def problem(seed, n_unlabeled, *, fit_intercept, n_labeled=5):
    """Rows for two weights; the first rows carry a label of each class."""
    rng = np.random.default_rng(seed)
    n = n_labeled + n_unlabeled
    y_true = rng.integers(0, 2, n)
    y_true[:2] = 0, 1
    d = 1 if fit_intercept else 2
    X = rng.normal(size=(n, d)) * [3.0, 0.5][:d] + (2 * y_true[:, None] - 1) + 0.3
    y = np.where(np.arange(n) < n_labeled, y_true, -1)
    return X, y, y_true


def design(X, fit_intercept):
    return np.column_stack([X, np.ones(len(X))]) if fit_intercept else X


def brute_force(X, y, fit_intercept, *, alpha=0.0, weights=None, transductive=False):
    """Least squares for every labeling of the unlabeled rows."""
    E = design(X, fit_intercept)
    s = np.ones(len(y)) if weights is None else weights
    if transductive:
        s = np.where(y < 0, s, 0.0)
    P = np.diag([1.0, 0.0 if fit_intercept else 1.0])
    H = E.T @ (s[:, None] * E) + alpha * P
    unlabeled = np.flatnonzero(y < 0)
    target = np.where(y < 0, 0, y).astype(float)
    points = []
    for labels in itertools.product((0.0, 1.0), repeat=len(unlabeled)):
        target[unlabeled] = labels
        points.append(np.linalg.solve(H, E.T @ (s * target)))
    return np.array(points)


def assert_same_polygon(vertices, points):
    """Vertices are the corners of the convex hull of the points, in order and none twice."""
    hull = points[ConvexHull(points).vertices]
    size = np.abs(hull).max()
    distances = np.abs(vertices[:, None] - hull[None]).max(axis=2)
    assert distances.min(axis=0).max() < 1e-12 * size, "a corner is missing"
    assert distances.min(axis=1).max() < 1e-12 * size, "a vertex is no corner"
    assert len(vertices) == len(hull)
    assert ConvexHull(vertices).volume == pytest.approx(_shoelace(vertices), rel=1e-10)


def _shoelace(vertices):
    """Area of the polygon with these vertices in this order."""
    x, y = (vertices - vertices.mean(axis=0)).T
    return 0.5 * abs(x @ np.roll(y, -1) - y @ np.roll(x, -1))


@pytest.mark.parametrize("n", [2, 3, 7, 10])
@pytest.mark.parametrize("seed", range(5))
def test_zonotope_is_the_hull_of_all_sums(n, seed):
    rng = np.random.default_rng(seed)
    start, generators = rng.normal(size=2), rng.normal(size=(n, 2))
    sums = np.array([start + np.array(q) @ generators for q in itertools.product((0, 1), repeat=n)])
    vertices = zonotope_vertices(start, generators)
    assert_same_polygon(vertices, sums)
    x, y = vertices.T
    assert x @ np.roll(y, -1) - y @ np.roll(x, -1) > 0, "counterclockwise"


def test_zonotope_of_axis_parallel_generators_is_a_rectangle():
    generators = np.array([[1.0, 0.0], [0.0, -2.0], [-3.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    vertices = zonotope_vertices(np.zeros(2), generators)
    np.testing.assert_array_equal(vertices, [[-3, -2], [1, -2], [1, 1], [-3, 1]])


def test_zonotope_merges_parallel_generators():
    base = np.random.default_rng(0).normal(size=(4, 2))
    generators = np.vstack([base, -3.0 * base, 0.7 * base])
    assert len(zonotope_vertices(np.zeros(2), generators)) == 8


@pytest.mark.parametrize(
    ("generators", "expected"),
    [
        (np.empty((0, 2)), [[1.0, 2.0]]),
        (np.zeros((3, 2)), [[1.0, 2.0]]),
        (np.array([[1.0, 1.0], [-2.0, -2.0]]), [[-1.0, 0.0], [2.0, 3.0]]),
    ],
)
def test_degenerate_zonotopes(generators, expected):
    np.testing.assert_array_equal(zonotope_vertices(np.array([1.0, 2.0]), generators), expected)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_unlabeled", [2, 5, 10])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"distance": "labeled"},
        {"distance": "unlabeled"},
        {"alpha": 0.0},
        {"constraint_alpha": 2.0},
        {"alpha": "loo"},
        {"weights": True},
    ],
    ids=str,
)
def test_constraint_set_is_the_hull_of_all_labelings(fit_intercept, n_unlabeled, options):
    options = dict(options)
    X, y, _ = problem(n_unlabeled, n_unlabeled, fit_intercept=fit_intercept)
    weights = None
    if options.pop("weights", False):
        weights = np.random.default_rng(1).uniform(0.5, 3.0, len(y))
    clf = ProjectedLeastSquaresClassifier(
        **{"alpha": 0.0, "fit_intercept": fit_intercept, **options}
    )
    clf.fit(X, y, sample_weight=weights)
    display = ConstraintSetDisplay.from_estimator(clf, X, y, sample_weight=weights)
    points = brute_force(
        X,
        y,
        fit_intercept,
        alpha=float(loss_penalty(clf)),
        weights=weights,
        transductive=options.get("distance") == "unlabeled",
    )
    assert_same_polygon(display.constraint_set, points)


@pytest.mark.parametrize("distance", ["all", "labeled", "unlabeled", "euclidean", "array"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_points_are_where_they_belong(distance, fit_intercept, seed):
    X, y, y_true = problem(seed, 80, fit_intercept=fit_intercept)
    D = np.random.default_rng(9).normal(size=(6, X.shape[1]))
    clf = ProjectedLeastSquaresClassifier(
        D if distance == "array" else distance, fit_intercept=fit_intercept
    ).fit(X, y)
    display = ConstraintSetDisplay.from_estimator(clf, X, y, y_true=y_true)
    polygon = display.constraint_set
    assert outside(polygon, display.oracle) < 1e-9
    assert outside(polygon, display.projected) < 1e-6
    if outside(polygon, display.supervised) == 0.0:
        np.testing.assert_allclose(display.projected, display.supervised, atol=1e-6)
    else:
        # The ellipse touches the constraint set: no corner is nearer than the projected weights.
        steps = polygon - display.supervised
        nearest = display.projected - display.supervised
        corners = np.einsum("ki,ij,kj->k", steps, display.metric, steps)
        assert corners.min() >= nearest @ display.metric @ nearest * (1 - 1e-6)
        # And the line through the projected weights along the ellipse separates it from the set.
        normal = display.metric @ nearest
        assert ((polygon - display.projected) @ normal).min() >= -1e-6 * (nearest @ normal)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_soft_labeling_lies_in_the_set(fit_intercept):
    X, y, _ = problem(4, 60, fit_intercept=fit_intercept)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, fit_intercept=fit_intercept).fit(X, y)
    polygon = ConstraintSetDisplay.from_estimator(clf, X, y).constraint_set
    rng = np.random.default_rng(0)
    for _ in range(200):
        q = rng.choice([rng.random(60), rng.integers(0, 2, 60).astype(float)])
        target = y.astype(float)
        target[y < 0] = q
        weights = LinearRegression(fit_intercept=False).fit(design(X, fit_intercept), target).coef_
        assert outside(polygon, weights) < 1e-12


def test_oracle_is_least_squares_with_all_labels():
    X, y, y_true = problem(0, 30, fit_intercept=True)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    display = ConstraintSetDisplay.from_estimator(clf, X, y, y_true=y_true)
    oracle = LeastSquaresClassifier(clf.certificate_.penalty).fit(X, y_true)
    expected = [oracle.coef_[0, 0], oracle.intercept_[0] + 0.5]
    np.testing.assert_allclose(display.oracle, expected, rtol=1e-10)


def test_feature_far_from_zero_keeps_its_digits():
    X, y, y_true = problem(1, 40, fit_intercept=True)
    near = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    far = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X + 1e6, y)
    a = ConstraintSetDisplay.from_estimator(near, X, y, y_true=y_true)
    b = ConstraintSetDisplay.from_estimator(far, X + 1e6, y, y_true=y_true)
    np.testing.assert_allclose(b.oracle[0], a.oracle[0], rtol=1e-6)
    np.testing.assert_allclose(
        np.sort(b.constraint_set[:, 0]), np.sort(a.constraint_set[:, 0]), atol=1e-6
    )


def test_ellipse_goes_through_the_point_at_constant_distance():
    metric = np.array([[4.0, 1.0], [1.0, 2.0]])
    centre, through = np.array([1.0, -1.0]), np.array([2.0, 0.5])
    steps = equidistant(centre, through, metric) - centre
    distances = np.einsum("ki,ij,kj->k", steps, metric, steps)
    np.testing.assert_allclose(distances, (through - centre) @ metric @ (through - centre))
    assert equidistant(centre, through, np.diag([1.0, 0.0])) is None


def test_draws_into_axes_and_saves(tmp_path):
    X, y, y_true = problem(6, 40, fit_intercept=True)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    assert not clf.certificate_.reason
    figure, axes = plt.subplots(1, 2)
    display = ConstraintSetDisplay.from_estimator(clf, X, y, y_true=y_true, ax=axes[1])
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert axes[1].get_xlabel() == "weight of x1"
    assert axes[1].get_ylabel() == "intercept"
    assert axes[1].get_title() == ""
    names = [text.get_text() for text in axes[1].get_legend().get_texts()]
    assert names == [
        "constraint set",
        "equal distance",
        "supervised",
        "projected",
        "oracle",
    ]
    figure.savefig(tmp_path / "figure.png")
    pixels = plt.imread(tmp_path / "figure.png")
    right = pixels[:, pixels.shape[1] // 2 :, :3]
    assert len(np.unique(right.reshape(-1, 3), axis=0)) > 50


def test_plots_again_in_a_new_figure():
    X, y, _ = problem(2, 40, fit_intercept=False)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, fit_intercept=False).fit(X, y)
    display = ConstraintSetDisplay.from_estimator(clf, X, y)
    first = display.ax_
    assert display.plot().ax_ is not first


def test_supervised_inside_is_one_point():
    X, y = np.array([[0.0], [1.0], [0.4], [0.6], [0.5]]), np.array([0, 1, -1, -1, -1])
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    assert clf.certificate_.reason == "inside"
    display = ConstraintSetDisplay.from_estimator(clf, X, y)
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["constraint set", "supervised = projected"]


def test_no_or_one_unlabeled_row_still_draws():
    X, y, _ = problem(0, 1, fit_intercept=True)
    for rows, corners in ((slice(None), 2), (slice(-1), 1)):
        clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X[rows], y[rows])
        display = ConstraintSetDisplay.from_estimator(clf, X[rows], y[rows])
        assert len(display.constraint_set) == corners
        display.figure_.canvas.draw()


def test_names_come_from_the_data_frame():
    pd = pytest.importorskip("pandas")
    X, y, _ = problem(0, 20, fit_intercept=False)
    frame = pd.DataFrame(X, columns=["height", "width"])
    clf = ICLSClassifier(fit_intercept=False).fit(frame, y)
    display = ConstraintSetDisplay.from_estimator(clf, frame, y)
    assert display.weight_names == ("weight of height", "weight of width")


def test_string_labels():
    X, y, y_true = problem(0, 20, fit_intercept=True)
    names = np.array(["no", "yes"], dtype=object)
    labels = np.where(y < 0, None, names[y])
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, labels)
    display = ConstraintSetDisplay.from_estimator(clf, X, labels, y_true=names[y_true].astype(str))
    coded = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    expected = ConstraintSetDisplay.from_estimator(coded, X, y, y_true=y_true)
    np.testing.assert_array_equal(display.oracle, expected.oracle)


@pytest.mark.parametrize(("n_features", "fit_intercept"), [(2, True), (3, False), (1, False)])
def test_other_dimensions_are_refused(n_features, fit_intercept):
    X = np.random.default_rng(0).normal(size=(12, n_features))
    y = np.array([0, 1] * 3 + [-1] * 6)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, fit_intercept=fit_intercept).fit(X, y)
    with pytest.raises(ValueError, match="two dimensions: fit one to two"):
        ConstraintSetDisplay.from_estimator(clf, X, y)


def test_rows_on_a_line_are_refused():
    x = np.random.default_rng(0).normal(size=(12, 1))
    y = np.array([0, 1] * 3 + [-1] * 6)
    X = np.column_stack([x, 2 * x])
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, fit_intercept=False).fit(X, y)
    with pytest.raises(ValueError, match="two dimensions, but the rows of X all lie on a line"):
        ConstraintSetDisplay.from_estimator(clf, X, y)


def test_not_fitted_and_other_estimators_are_refused():
    X, y, _ = problem(0, 5, fit_intercept=True)
    with pytest.raises(NotFittedError):
        ConstraintSetDisplay.from_estimator(ProjectedLeastSquaresClassifier(alpha=0.0), X, y)
    with pytest.raises(ValueError, match=r"Got LeastSquaresClassifier\(\)"):
        ConstraintSetDisplay.from_estimator(LeastSquaresClassifier().fit(X, y), X, y)


def test_other_rows_and_wrong_true_labels_are_refused():
    X, y, y_true = problem(0, 10, fit_intercept=True)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    with pytest.raises(ValueError, match="that the classifier was fitted to"):
        ConstraintSetDisplay.from_estimator(clf, X[1:], y[1:])
    with pytest.raises(ValueError, match="y_true must have"):
        ConstraintSetDisplay.from_estimator(clf, X, y, y_true=y)
    with pytest.raises(ValueError, match="y_true must have"):
        ConstraintSetDisplay.from_estimator(clf, X, y, y_true=2 * y_true)
    with pytest.raises(ValueError, match="y_true must have"):
        ConstraintSetDisplay.from_estimator(clf, X, y, y_true=1 - y_true)


def test_estimator_is_left_alone():
    X, y, _ = problem(0, 10, fit_intercept=True)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    before = dict(vars(clf))
    ConstraintSetDisplay.from_estimator(clf, X, y)
    assert vars(clf) == before


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    X, y, _ = problem(0, 10, fit_intercept=True)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        ConstraintSetDisplay.from_estimator(clf, X, y)
