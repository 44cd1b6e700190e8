"""Very many columns: conjugate gradients find what the Gram matrix gives."""

import re
import time
import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from neverworse import ICLSClassifier, LeastSquaresClassifier, LeastSquaresClassifierCV
from neverworse._iterations import conjugate_gradients
from neverworse.projection import coordinates
from neverworse.projection.coordinates.matrix_free import MatrixFreeCoordinates
from neverworse.projection.geometry import choose_coordinates
from neverworse.projection.label_sets import Box, Curvature, Simplex
from neverworse.projection.solver.label_descent import RowSystem
from neverworse.rows import as_rows
from tests.projection.high_dimensions import (
    assert_same,
    choose,
    fit,
    make,
    text_like,
    worst_difference,
)

PENALTIES = [(0.0, 0.0), (1.0, 1.0), (0.1, 3.0)]
SHAPES = [(90, 40), (60, 90)]


def compare(monkeypatch, X, y, weights=None, rtol=1e-7, **settings):
    settings = {"tol": 1e-13, **settings}
    choose(monkeypatch, "gram")
    with warnings.catch_warnings():
        # Factors of several classes leave a little more of the gap than iterations do.
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference = fit(X, y, weights, **settings)
    choose(monkeypatch, "free")
    model = fit(X, y, weights, **settings)
    assert_same(model, reference, rtol)
    return model


@pytest.fixture
def always_free(monkeypatch):
    """Let problems of more than 5,000 columns have no row space."""
    monkeypatch.setattr(coordinates, "MOST_ROWS", 0)


def test_conjugate_gradients_stay_in_the_range_of_singular_matrices():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(5, 12))
    A, right = B.T @ B, B.T @ rng.normal(size=5)
    solved = conjugate_gradients(lambda x: A @ x, right, lambda r: np.linalg.norm(r) < 1e-10)
    np.testing.assert_allclose(solved.x, np.linalg.pinv(A) @ right, atol=1e-9)
    np.testing.assert_allclose(solved.residual, right - A @ solved.x, atol=1e-9)
    assert solved.n_products <= 12


def test_conjugate_gradients_stop_where_they_are_told():
    A = np.diag(np.arange(1.0, 101.0))
    steps = iter([False, False, True])
    solved = conjugate_gradients(
        lambda x: A @ x, np.ones(100), lambda _: False, stop=lambda: next(steps)
    )
    assert solved.n_products == 2
    assert np.linalg.norm(solved.residual) < 10.0


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("with_total", [True, False])
@pytest.mark.parametrize("shape", [Box(), Simplex()])
def test_products_are_those_of_the_matrices(monkeypatch, fit_intercept, with_total, shape):
    X, _ = make(30, 12)
    rng = np.random.default_rng(0)
    s, alpha, sigma = rng.uniform(0.5, 2.0, 30), 0.7, 5.0
    choose(monkeypatch, "free")
    space = choose_coordinates(as_rows(X), s, alpha, fit_intercept, None)
    assert isinstance(space, MatrixFreeCoordinates)
    space = space.with_total(0.3) if with_total else space
    basis = space.to_weights(np.eye(space.rank))
    K = (basis.coef @ X.T + np.reshape(basis.intercept, (-1, 1))).T
    seen = K.copy()
    if with_total:
        seen[:, -1] = 0.0
    M = seen.T @ (s[:, None] * seen) + alpha * basis.coef @ basis.coef.T
    if with_total:
        M[-1, -1] = 1.0
    n_classes = 3 if isinstance(shape, Simplex) else 1
    z = rng.normal(size=(n_classes, space.rank))
    np.testing.assert_allclose(space.matvec(z), z @ M, atol=1e-11)
    np.testing.assert_allclose(space.solve(z @ M, 0.0).x[:, :12], z[:, :12], atol=1e-9)
    soft = shape.project(rng.normal(scale=0.5, size=(n_classes, 30)) + 0.3)
    curvature = Curvature.of(shape, soft, s, sigma)
    curve = np.full(z.shape, 4.0)
    expected = z @ M
    if with_total:
        expected[:, -1] = 4.0 * z[:, -1]
    t = z @ K.T
    inner = (soft > 0.0) & (soft < 1.0)
    moved = np.where(inner, t, 0.0)
    if shape.is_coupled:
        moved -= inner * (moved.sum(axis=0) / np.maximum(inner.sum(axis=0), 1))
    expected = expected + (sigma * s * moved) @ K
    np.testing.assert_allclose(space.curved(curvature, curve, z), expected, atol=1e-10)


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("alpha", "constraint_alpha"), PENALTIES)
def test_agrees_with_the_gram_matrix(
    monkeypatch, n, d, is_sparse, n_classes, alpha, constraint_alpha
):
    X, y = make(n, d, n_classes, is_sparse=is_sparse)
    model = compare(monkeypatch, X, y, alpha=alpha, constraint_alpha=constraint_alpha)
    assert model.certificate_.converged
    assert worst_difference(model, X, y) <= model.certificate_.worst_case + 1e-12


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("distance", ["all", "unlabeled"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weights(monkeypatch, n, d, distance, fit_intercept):
    X, y = make(n, d, is_sparse=True)
    weights = np.random.default_rng(1).uniform(0.2, 2.0, n)
    weights[[5, 40, 41]] = 0.0
    compare(
        monkeypatch,
        X,
        y,
        weights,
        distance=distance,
        alpha=0.1,
        constraint_alpha=2.0,
        fit_intercept=fit_intercept,
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_prior(monkeypatch, n_classes):
    X, y = make(90, 40, n_classes)
    settings = {"class_prior": "confidence", "alpha": 0.1, "constraint_alpha": 2.0}
    model = compare(monkeypatch, X, y, **settings)
    assert model.certificate_.assumptions.class_prior


@pytest.mark.parametrize("distance", ["labeled", "array"])
def test_distances_by_points(monkeypatch, distance):
    X, y = make(90, 40, n_labeled=60)
    if distance == "array":
        distance = np.random.default_rng(2).normal(size=(80, 40))
    compare(monkeypatch, X, y, distance=distance, alpha=0.01, constraint_alpha=30.0, rtol=1e-6)


def test_columns_of_very_different_scales(monkeypatch):
    X, y = make(90, 40)
    X *= 10.0 ** np.random.default_rng(0).uniform(-3, 3, 40)
    compare(monkeypatch, X, y, alpha=0.01, constraint_alpha=0.01, rtol=1e-5, tol=1e-10)


def test_supervised_weights(monkeypatch):
    X, y = make(80, 50, 3, n_labeled=80, is_sparse=True)
    model = LeastSquaresClassifier(0.3)
    choose(monkeypatch, "gram")
    expected = model.fit(X, y).coef_
    choose(monkeypatch, "free")
    np.testing.assert_allclose(model.fit(X, y).coef_, expected, atol=1e-11)


def test_text(always_free):
    """No matrix of columns by columns, or of rows by rows, and no dense copy of the rows."""
    X, truth = text_like(5000, 30_000)
    y = np.where(np.arange(5000) < 400, truth, -1)
    tracemalloc.start()
    model = fit(X, y, alpha=0.1, constraint_alpha=1.0, tol=1e-9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    certificate = model.certificate_
    assert certificate.holds
    assert certificate.converged
    assert certificate.guaranteed_improvement > 0
    assert worst_difference(model, X, y) <= certificate.worst_case + 1e-9
    vectors = 8 * (30 * 30_000 + 60 * 5000)
    assert peak < 4 * (12 * X.nnz) + vectors  # a matrix of rows by rows alone would be 200 MB
    assert np.mean(model.predict(X) == truth) > 0.7


def test_text_of_several_classes_agrees_with_the_kernel(monkeypatch):
    X, truth = text_like(400, 6000, 4)
    y = np.where(np.arange(400) < 80, truth, -1)
    settings = {"alpha": 0.01, "constraint_alpha": 1.0, "tol": 1e-10}
    reference = fit(X, y, **settings)
    monkeypatch.setattr(coordinates, "MOST_ROWS", 0)
    assert_same(fit(X, y, **settings), reference, 1e-6)


def test_implicitly_constrained_text_agrees_with_the_kernel(monkeypatch):
    X, truth = text_like(400, 6000)
    y = np.where(np.arange(400) < 200, truth, -1)
    settings = {"alpha": 1e-3, "constraint_alpha": 20.0}
    reference = ICLSClassifier(**settings).fit(X, y)
    monkeypatch.setattr(coordinates, "MOST_ROWS", 0)
    assert_same(ICLSClassifier(**settings).fit(X, y), reference, 1e-6)


def test_nothing_to_improve(always_free):
    X, truth = text_like(300, 6000)
    y = np.where(np.arange(300) < 60, truth, -1)
    model = fit(X, y, alpha=1.0, constraint_alpha=1.0, tol=1e-9)
    assert model.certificate_.reason == "inside"
    assert np.array_equal(model.coef_, model.supervised_.coef_)


def test_stopped_early_is_certified(always_free):
    X, truth = text_like(1000, 6000, 3)
    y = np.where(np.arange(1000) < 100, truth, -1)
    settings = {"alpha": 0.01, "constraint_alpha": 1.0, "tol": 1e-9}
    model = fit(X, y, max_iter=2, **settings)
    assert model.n_iter_ == 2
    assert model.certificate_.stopped_early
    assert model.certificate_.holds
    start = time.process_time()
    model = fit(X, y, max_time=0.05, **settings)
    assert time.process_time() - start < 5.0
    assert model.certificate_.holds


@pytest.mark.parametrize("distance", ["all", "labeled", "unlabeled"])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_no_iteration_goes_on_when_time_is_up(always_free, monkeypatch, distance, penalty):
    X, truth = text_like(1000, 6000, 3)
    y = np.where(np.arange(1000) < 100, truth, -1)
    products = []
    lower, rough_kernel = MatrixFreeCoordinates.matvec, RowSystem.rough_kernel
    monkeypatch.setattr(
        MatrixFreeCoordinates, "matvec", lambda s, x: (products.append(x), lower(s, x))[1]
    )
    monkeypatch.setattr(
        RowSystem, "rough_kernel", lambda s, x: (products.append(x), rough_kernel(s, x))[1]
    )
    settings = {"alpha": 0.01, "constraint_alpha": penalty, "distance": distance}
    LeastSquaresClassifier(alpha=0.01).fit(X, y)
    n_supervised = len(products)
    model = fit(X, y, max_time=0.0, **settings)
    assert len(products) - 2 * n_supervised <= 4
    certificate = model.certificate_
    assert certificate.stopped_early
    assert certificate.reason == "stopped early"
    assert certificate.holds
    assert np.array_equal(model.coef_, model.supervised_.coef_)
    assert model.soft_labels_.shape == (900, 3)


@pytest.mark.parametrize("most_rows", [3000, 0], ids=["kernel", "conjugate gradients"])
def test_chunks_of_a_dask_array(monkeypatch, most_rows):
    array = pytest.importorskip("dask.array")
    X, truth = text_like(200, 6000)
    y = np.where(np.arange(200) < 40, truth, -1)
    settings = {"alpha": 0.01, "constraint_alpha": 1.0, "tol": 1e-10}
    reference = fit(X, y, **settings)
    monkeypatch.setattr(coordinates, "MOST_ROWS", most_rows)
    model = fit(array.from_array(X.toarray(), chunks=(64, 6000)), y, **settings)
    assert_same(model, reference, 1e-6)


def test_progress_is_told(always_free, capfd):
    X, truth = text_like(500, 6000)
    y = np.where(np.arange(500) < 60, truth, -1)
    fit(X, y, alpha=0.01, constraint_alpha=1.0, tol=1e-9, verbose=1)
    lines = capfd.readouterr().err.splitlines()
    passes = [int(re.search(r"(\d+) passes", line).group(1)) for line in lines]
    assert passes == sorted(passes)
    assert passes[-1] > 20
    assert sum("labels (" in line for line in lines) >= 2
    assert any(re.search(r"about \S+ s left, gap \S+", line) for line in lines)


def test_what_cannot_be_done(always_free):
    X, truth = text_like(200, 6000)
    y = np.where(np.arange(200) < 60, truth, -1)
    with pytest.raises(ValueError, match="'euclidean' takes an"):
        fit(X, y, distance="euclidean", alpha=1.0, constraint_alpha=1.0)
    with pytest.raises(ValueError, match="solver='exact'"):
        fit(X, y, solver="lbfgs", alpha=0.01, constraint_alpha=1.0)
    with pytest.raises(ValueError, match="Use alpha instead"):
        fit(X, y, rcond=1e-8, constraint_alpha=1.0)
    with pytest.raises(ValueError, match="Set alpha yourself"):
        LeastSquaresClassifierCV(alphas=[1.0]).fit(X, y)
    many = np.broadcast_to(np.ones(6000), (9000, 6000))
    with pytest.raises(ValueError, match="measured at 9,000 points"):
        fit(X, y, distance=many, alpha=0.01, constraint_alpha=1.0)


def test_values_that_are_not_finite_or_too_large(always_free):
    X, truth = text_like(50, 6000)
    y = np.where(np.arange(50) < 10, truth, -1)
    X.data[7] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        fit(X, y, alpha=1.0, constraint_alpha=1.0)
    X.data[7] = 1e160
    with pytest.raises(ValueError, match="so large"):
        fit(X, y, alpha=1.0, constraint_alpha=1.0)
    assert sparse.issparse(X)
