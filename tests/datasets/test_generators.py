"""Moments of the generators, and of the data sets that two of them imitate."""

import numpy as np
import pytest
from scipy.stats import norm

from neverworse.datasets import (
    load_g241c,
    load_g241d,
    make_g241c,
    make_g241d,
    make_two_gaussians,
)
from tests.datasets.data import DATA, needs_data

MAKERS = [make_g241c, make_g241d, make_two_gaussians]


def distance(A, B):
    """Distance of two means; what is due to their noise is taken out."""
    squared = np.sum((A.mean(axis=0) - B.mean(axis=0)) ** 2)
    return np.sqrt(squared - A.shape[1] * (1 / len(A) + 1 / len(B)))


def components(X, y):
    """Rows of the four Gaussians of g241d: the two of a class lie on both sides of its mean."""
    parts = []
    for label in (0, 1):
        rows = X[y == label]
        main = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][0]
        side = (rows - rows.mean(axis=0)) @ main > 0
        parts += [rows[side], rows[~side]]
    return parts


@pytest.fixture
def raw(monkeypatch):
    """Leave the columns as they are drawn, to look at their moments."""
    monkeypatch.setattr("neverworse.datasets._generators.scale", lambda X: X)


@pytest.mark.parametrize("make", MAKERS)
def test_seeds(make):
    X, y = make(50, random_state=3)
    again, y_again = make(50, random_state=3)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, y_again)
    assert not np.array_equal(X, make(50, random_state=4)[0])
    assert not np.array_equal(
        *(make(50, random_state=rng)[0] for rng in [np.random.RandomState(0)] * 2)
    )
    assert make(50)[0].shape == X.shape
    assert X.dtype == np.float64
    assert y.dtype == np.int64


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("n_samples", [0, -3, 2.5, "many", None])
def test_impossible_sizes(make, n_samples):
    with pytest.raises((TypeError, ValueError), match="n_samples"):
        make(n_samples)


def test_defaults_are_those_of_the_book_and_the_paper():
    for make in (make_g241c, make_g241d):
        X, y = make(random_state=0)
        assert X.shape == (1500, 241)
        np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(X.std(axis=0), 1.0, rtol=1e-12)
        assert set(y) == {0, 1}
    X, y = make_two_gaussians(random_state=0)
    assert X.shape == (10_000, 100)
    assert np.bincount(y).tolist() == [5000, 5000]


def test_g241c(raw):
    X, y = make_g241c(20_000, random_state=0)
    assert np.bincount(y).tolist() == [10_000, 10_000]
    assert distance(X[y == 0], X[y == 1]) == pytest.approx(2.5, abs=0.06)
    for label in (0, 1):
        covariance = np.cov(X[y == label].T)
        assert abs(np.trace(covariance) / 241 - 1.0) < 0.005
        assert np.abs(covariance - np.eye(241)).max() < 0.06
    direction = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    error = np.mean((X @ direction > 0) != y)
    assert error == pytest.approx(norm.cdf(-1.25), abs=0.01)


def test_g241d(raw):
    X, y = make_g241d(20_000, random_state=0)
    assert abs(y.mean() - 0.5) < 0.02
    zero, also_zero, one, also_one = components(X, y)
    assert distance(one, also_one) == pytest.approx(6.0, abs=0.1)
    nearest = [
        min(distance(part, other) for other in (one, also_one)) for part in (zero, also_zero)
    ]
    np.testing.assert_allclose(nearest, 3.1, atol=0.1)
    for part in (zero, also_zero, one, also_one):
        assert abs(len(part) - 5000) < 300
        assert abs(np.trace(np.cov(part.T)) / 241 - 1.0) < 0.01


@needs_data
def test_g241c_is_like_the_books():
    made, y_made = make_g241c(random_state=0)
    X, y = load_g241c(data_home=DATA, return_X_y=True)
    distances = [distance(A[b == 0], A[b == 1]) for A, b in ((made, y_made), (X, y))]
    assert distances[0] == pytest.approx(distances[1], abs=0.25)


@needs_data
def test_g241d_is_like_the_books():
    """Distances of the four means, which standardisation has shrunk in both."""
    made, y_made = make_g241d(random_state=0)
    X, y = load_g241d(data_home=DATA, return_X_y=True)

    def distances(X, y):
        parts = components(X, y)
        return sorted(distance(a, b) for i, a in enumerate(parts) for b in parts[:i])

    np.testing.assert_allclose(distances(made, y_made), distances(X, y), rtol=0.12)


def test_two_gaussians():
    X, y = make_two_gaussians(40_001, 7, random_state=0)
    assert np.bincount(y).tolist() == [20_001, 20_000]
    for label, sign in ((0, -1), (1, 1)):
        rows = X[y == label]
        np.testing.assert_allclose(rows.mean(axis=0), sign, atol=0.03)
        np.testing.assert_allclose(np.cov(rows.T), np.eye(7), atol=0.05)
    assert 0.4 < y[:1000].mean() < 0.6


def test_number_of_features():
    with pytest.raises(ValueError, match="n_features == 0, must be >= 1"):
        make_two_gaussians(10, 0)
