"""Labels that are shared by two classes without need become whole, and add up to the same."""

import numpy as np
import pytest

from neverworse import ICLSClassifier
from neverworse.projection import Simplex
from neverworse.projection.label_sets import sparsify_labels


def make(kind, n=900, rank=5, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, rank))
    if kind == "duplicates":
        rows = rows[rng.integers(0, 4, n)]
    elif kind == "binary":
        rows = (rows > 0).astype(float)
    elif kind == "huge":
        rows *= 1e8
    weights = rng.uniform(0.1, 2.0, n)
    weights[rng.random(n) < 0.1] = 0.0
    caps = rng.uniform(0.5, 1.0, (n_classes, n)) if kind == "capped" else None
    shape = Simplex(caps)
    x = rng.normal(size=(n_classes, n))
    x[1, ::2] = x[0, ::2] + rng.uniform(-0.5, 0.5, n)[::2]
    return rows, weights, shape, shape.project(x)


@pytest.mark.parametrize("kind", ["plain", "duplicates", "binary", "huge", "capped"])
def test_few_rows_are_shared_by_two_classes(kind):
    rows, s, shape, q = make(kind)
    before = q.copy()
    found = sparsify_labels(rows, s, shape, q)
    np.testing.assert_array_equal(q, before)
    # Allowed, with the same sums.
    assert found.min() >= 0.0
    assert (found <= (1.0 if shape.caps is None else shape.caps)).all()
    np.testing.assert_allclose(found.sum(axis=0), 1.0, atol=1e-14)
    size = np.abs(rows).max()
    np.testing.assert_allclose((s * found) @ rows, (s * q) @ rows, atol=1e-11 * size)
    # Few rows for every pair of classes; all others, and rows without a weight, stay as they are.
    inner = shape.inner(q)
    two = (inner.sum(axis=0) == 2) & (s > 0.0)
    np.testing.assert_array_equal(found[:, ~two], q[:, ~two])
    left = shape.inner(found) & two
    for a in range(4):
        for b in range(a):
            of_pair = inner[a] & inner[b] & two
            if of_pair.sum() > 5:
                assert (left[a] & left[b] & of_pair).sum() <= 5
    if shape.caps is None:
        whole = (left.sum(axis=0) < 2) & two
        assert set(np.unique(found[:, whole])) == {0.0, 1.0}
    assert two.sum() > 100


def test_nothing_to_do():
    rows, s, shape, q = make("plain")
    once = sparsify_labels(rows, s, shape, q)
    np.testing.assert_array_equal(sparsify_labels(rows, s, shape, once), once)


def few_distinct_labeled_rows(seed, n=100, n_features=5):
    """Rows in three copies; four of them have contradictory labels, too few for the features."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n, n_features)), 3, axis=0)
    y = rng.integers(0, 4, len(X))
    y[:4], y[12:] = range(4), -1
    return X, y, rng


@pytest.mark.parametrize("seed", range(6))
def test_weights_stay_the_same_where_the_distance_is_blind_to_some(seed):
    """Sparse labels of the same sum in the distance, but not in the loss, depend on the order."""
    X, y, rng = few_distinct_labeled_rows(seed)
    order = rng.permutation(len(X))
    one = ICLSClassifier(alpha=0.0).fit(X, y)
    other = ICLSClassifier(alpha=0.0).fit(X[order], y[order])
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-3 * np.abs(one.coef_).max())


def test_supervised_weights_that_labels_reproduce_are_kept_in_any_distance():
    X, y, rng = few_distinct_labeled_rows(9, n=300)
    w = rng.exponential(size=len(X)) * (rng.random(len(X)) > 0.3)
    w[:12] = 1.0
    certificate = ICLSClassifier(alpha=0.0).fit(X, y, sample_weight=w).certificate_
    assert certificate.reason == "inside"
    assert certificate.worst_case == 0.0
