"""Fewer rows than columns: what comes from the rows' kernel is what the Gram matrix gives."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from neverworse import LeastSquaresClassifier, LeastSquaresClassifierCV
from neverworse.projection import GramCoordinates, whiten
from neverworse.projection.coordinates.kernel import KernelCoordinates
from neverworse.projection.geometry import choose_coordinates
from neverworse.rows import as_rows
from tests.projection.high_dimensions import (
    assert_same,
    choose,
    fit,
    make,
    text_like,
    worst_difference,
)
from tests.projection.left_out import leave_one_out

PENALTIES = [(0.0, 0.0), (1.0, 1.0), (0.1, 3.0)]


def compare(monkeypatch, path, X, y, weights=None, rtol=1e-9, **settings):
    choose(monkeypatch, "gram")
    reference = fit(X, y, weights, **settings)
    choose(monkeypatch, path)
    model = fit(X, y, weights, **settings)
    assert_same(model, reference, rtol)
    return model


@pytest.mark.parametrize("path", ["kernel", "rows"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("alpha", "constraint_alpha"), PENALTIES)
def test_agrees_with_the_gram_matrix(
    monkeypatch, path, is_sparse, n_classes, alpha, constraint_alpha
):
    X, y = make(60, 90, n_classes, is_sparse=is_sparse)
    model = compare(
        monkeypatch, path, X, y, alpha=alpha, constraint_alpha=constraint_alpha, rtol=1e-9
    )
    assert worst_difference(model, X, y) <= model.certificate_.worst_case + 1e-12


@pytest.mark.parametrize("path", ["kernel", "rows"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_same_penalty_is_chosen(monkeypatch, path, is_sparse, n_classes):
    X, y = make(60, 90, n_classes, is_sparse=is_sparse)
    choose(monkeypatch, "gram")
    reference = fit(X, y, alpha="loo", tol=1e-13)
    choose(monkeypatch, path)
    model = fit(X, y, alpha="loo", tol=1e-13)
    assert model.supervised_.alpha_ == pytest.approx(reference.supervised_.alpha_, rel=1e-12)
    assert_same(model, reference, 1e-7)
    assert worst_difference(model, X, y) <= model.certificate_.worst_case + 1e-12


@pytest.mark.parametrize("path", ["kernel", "rows"])
@pytest.mark.parametrize("distance", ["all", "unlabeled"])
@pytest.mark.parametrize(("alpha", "constraint_alpha"), PENALTIES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weights_and_rows_without_weight(
    monkeypatch, path, distance, alpha, constraint_alpha, fit_intercept
):
    X, y = make(60, 90, is_sparse=True)
    weights = np.random.default_rng(1).uniform(0.2, 2.0, 60)
    weights[[5, 40, 41]] = 0.0
    compare(
        monkeypatch,
        path,
        X,
        y,
        weights,
        distance=distance,
        alpha=alpha,
        constraint_alpha=constraint_alpha,
        fit_intercept=fit_intercept,
    )


@pytest.mark.parametrize("distance", ["labeled", "euclidean", "array"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_distances_without_guarantee(monkeypatch, distance, is_sparse):
    # Far outside the constraint set, so that the nearest point is unique in any distance.
    X, y = make(60, 90, is_sparse=is_sparse, n_labeled=30)
    if distance == "array":
        distance = np.random.default_rng(2).normal(size=(80, 90))
    compare(
        monkeypatch,
        "kernel",
        X,
        y,
        distance=distance,
        alpha=0.01,
        constraint_alpha=30.0,
        rtol=1e-7,
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_prior(monkeypatch, n_classes):
    X, y = make(60, 90, n_classes)
    model = compare(
        monkeypatch, "kernel", X, y, class_prior="confidence", constraint_alpha=3.0, alpha=0.1
    )
    assert model.certificate_.assumptions.class_prior


def test_shifted_rows(monkeypatch):
    X, y = make(40, 60)
    compare(monkeypatch, "kernel", X + 1e6, y, alpha=1.0, constraint_alpha=1.0, rtol=1e-6)


def test_repeated_rows_and_constant_columns(monkeypatch):
    X, y = make(40, 60)
    X[20:30] = X[10:20]
    X[:, 3] = 7.0
    X[:, 4] = 0.0
    compare(monkeypatch, "kernel", X, y, alpha=0.0, constraint_alpha=0.0)
    compare(monkeypatch, "kernel", X, y, alpha=0.1, constraint_alpha=2.0)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_whitened_rows(monkeypatch, alpha, fit_intercept):
    X, _ = make(30, 50)
    s = np.random.default_rng(0).uniform(0.5, 2.0, 30)
    choose(monkeypatch, "kernel")
    whitening = choose_coordinates(as_rows(X), s, alpha, fit_intercept, None)
    assert isinstance(whitening, KernelCoordinates)
    K = whitening.whitened
    basis = whitening.to_weights(np.eye(whitening.rank))
    np.testing.assert_allclose(basis.coef @ X.T + basis.intercept[:, None], K.T, atol=1e-12)
    form = K.T @ (s[:, None] * K) + alpha * basis.coef @ basis.coef.T
    np.testing.assert_allclose(form, np.eye(whitening.rank), atol=1e-12)
    x = np.random.default_rng(1).normal(size=(1, 30))
    np.testing.assert_allclose(whitening.adjoint(x @ X, x.sum(axis=1)), x @ K, atol=1e-11)


def test_doubtful_kernels_are_not_trusted(monkeypatch):
    X, _ = make(30, 50)
    X[0] = X[1] + 1e-6 * X[0]
    choose(monkeypatch, "kernel")
    assert isinstance(choose_coordinates(as_rows(X), None, 0.0, True, None), GramCoordinates)
    assert whiten(as_rows(X), None, 0.0, True).rank == 30
    assert isinstance(choose_coordinates(as_rows(X), None, 1.0, True, None), KernelCoordinates)


@pytest.mark.parametrize("rcond", [None, 1e-3])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_supervised_weights(monkeypatch, rcond, alpha):
    X, y = make(40, 70, 3, is_sparse=True, n_labeled=40)
    model = LeastSquaresClassifier(alpha, rcond=rcond)
    choose(monkeypatch, "gram")
    expected = model.fit(X, y).coef_
    choose(monkeypatch, "kernel")
    np.testing.assert_allclose(model.fit(X, y).coef_, expected, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["plain", "repeated rows", "weights", "fewer directions"])
def test_leave_one_out(monkeypatch, fit_intercept, kind):
    X, y = make(25, 60, n_labeled=25)
    weights = np.ones(25)
    if kind == "repeated rows":
        X[10:15] = X[5:10]
    elif kind == "weights":
        weights = np.random.default_rng(0).uniform(0.3, 3.0, 25)
        weights[[3, 8]] = 0.0
    elif kind == "fewer directions":
        X = X[:, :8] @ X[:8]
        X[4] += make(5, 60, seed=5)[0][0]  # alone in a direction
    alphas = np.array([0.0, 0.1, 5.0])
    choose(monkeypatch, "kernel")
    found = leave_one_out(as_rows(X), np.asarray(y, float), weights, alphas, fit_intercept)
    for a, alpha in enumerate(alphas):
        for i in np.flatnonzero(weights):
            s = weights.copy()
            s[i] = 0.0
            keep = s > 0.0
            A, t, s = X[keep], y[keep].astype(float), s[keep]
            mean, centre = (
                (s @ A / s.sum(), s @ t / s.sum()) if fit_intercept else (0.0 * X[0], 0.0)
            )
            B = np.sqrt(s)[:, None] * (A - mean)
            r = np.sqrt(s) * (t - centre)
            coef = B.T @ np.linalg.pinv(B @ B.T + alpha * np.eye(len(B)), rcond=1e-11) @ r
            assert found[a, i] == pytest.approx(centre + (X[i] - mean) @ coef, abs=1e-7)


def test_penalty_by_leave_one_out_of_sparse_rows():
    X, truth = text_like(300, 4000)
    y = np.where(np.arange(300) < 60, truth, -1)
    model = LeastSquaresClassifierCV().fit(X, y)
    assert np.isfinite(model.loo_brier_).all()
    dense = LeastSquaresClassifierCV().fit(X.toarray(), y)
    assert model.alpha_ == pytest.approx(dense.alpha_)
    np.testing.assert_allclose(model.loo_brier_, dense.loo_brier_, atol=1e-10)


def test_nothing_of_the_size_of_dense_rows_is_made():
    X, truth = text_like(800, 30_000)
    y = np.where(np.arange(800) < 100, truth, -1)
    tracemalloc.start()
    model = fit(X, y, alpha=0.1, constraint_alpha=1.0, tol=1e-9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.certificate_.holds
    assert model.certificate_.guaranteed_improvement > 0
    assert peak < 8 * X.shape[0] * X.shape[1] / 3  # a dense copy would take three times as much
    assert worst_difference(model, X, y) <= 0


def test_values_that_are_not_finite_or_too_large():
    X, truth = text_like(50, 3000)
    y = np.where(np.arange(50) < 10, truth, -1)
    X.data[7] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        fit(X, y)
    X.data[7] = 1e160
    with pytest.raises(ValueError, match="so large"):
        fit(X, y)
    assert sparse.issparse(X)


@pytest.mark.parametrize("rotated", [False, True])
def test_rows_in_coordinates_take_the_zeros_of_a_triangle_as_such(rotated):
    """Bases of many columns are multiplied in blocks, without the zeros below the diagonal."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 230)) + 3.0
    coordinates = whiten(as_rows(X), None, 0.0, True)
    if rotated:
        coordinates = coordinates.rotated(np.linalg.qr(rng.normal(size=(231, 231)))[0])
    else:
        heights = [height for _, height in coordinates._blocks]
        assert heights == [100, 200, 230]
    expected = (X - coordinates.centre) @ coordinates.basis + coordinates.offset
    np.testing.assert_allclose(coordinates.apply(X), expected, atol=1e-12)
