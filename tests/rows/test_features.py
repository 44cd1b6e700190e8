"""Features that are computed on the way: the same as rows that hold them."""

import numpy as np
import pytest

from neverworse.rows import DenseRows, FeatureMap, TrapezoidRows, with_features


def squares_and_products(block):
    return np.column_stack([block**2, block[:, :1] * block])


@pytest.fixture
def both():
    rng = np.random.default_rng(0)
    X, lower = rng.normal(size=(5000, 3)), np.tril(rng.normal(size=(6, 6))) + 3.0 * np.eye(6)
    dense = DenseRows(squares_and_products(X) @ np.linalg.inv(lower.T))
    features = FeatureMap(squares_and_products, 6, lower)
    return with_features(DenseRows(X), features), dense


@pytest.mark.parametrize("shifted", [False, True])
def test_all_verbs(both, shifted):
    rng = np.random.default_rng(1)
    shift = rng.normal(size=6)
    rows, dense = (one.shifted(shift) if shifted else one for one in both)
    coef, intercept, s = rng.normal(size=(2, 6)), rng.normal(size=2), rng.random(5000)
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(rows.take(np.array([7, 3])), dense.take(np.array([7, 3])), **close)
    np.testing.assert_allclose(rows.block(5, 9), dense.block(5, 9), **close)
    np.testing.assert_allclose(rows.scores(coef, intercept), dense.scores(coef, intercept), **close)
    np.testing.assert_allclose(rows.weighted_sum(s), dense.weighted_sum(s), **close)
    np.testing.assert_allclose(rows.squares(s), dense.squares(s), **close)
    np.testing.assert_allclose(
        rows.ranges(np.array([1, 4]), s - 0.5), dense.ranges(np.array([1, 4]), s - 0.5), **close
    )
    found = rows.scores_and_sum(coef, intercept, lambda t, k: t * s[k])
    for one, other in zip(
        found, dense.scores_and_sum(coef, intercept, lambda t, k: t * s[k]), strict=True
    ):
        np.testing.assert_allclose(one, other, **close)
    for one, other in zip(rows.gram(s), dense.gram(s), strict=True):
        np.testing.assert_allclose(one, other, **close)
    some = np.array([4, 8])
    np.testing.assert_allclose(rows.some(some).take(np.arange(2)), dense.take(some), **close)


def test_few_features_are_kept(both):
    X = np.random.default_rng(0).normal(size=(20, 3))
    kept = with_features(DenseRows(X), FeatureMap(squares_and_products, 6), keep=True)
    assert isinstance(kept, DenseRows)
    np.testing.assert_array_equal(kept.block(0, 20), squares_and_products(X))


@pytest.mark.parametrize("n", [6, 9])
def test_gram_matrix_of_a_trapezoid(n):
    rng = np.random.default_rng(0)
    lower, order = np.tril(rng.normal(size=(n, 6))), rng.permutation(n)
    rows = TrapezoidRows(lower, order)
    dense = DenseRows(rows.take(np.arange(n)))
    np.testing.assert_array_equal(rows.take(order), lower)
    for weights in (None, rng.random(n)):
        for one, other in zip(rows.gram(weights), dense.gram(weights), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
