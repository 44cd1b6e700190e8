"""What passes know about the labels of rows, chunk by chunk."""

import numpy as np
import pytest

from neverworse.projection.label_sets import Box, Simplex
from neverworse.projection.labels import Few, Labels, implied_labels

N = 200
RNG = np.random.default_rng(0)
CAPS = np.maximum(RNG.choice([0.0, 0.3, 0.5, 1.0], (4, N)), 0.25)  # they add up to one at least
SHAPES = {
    "box": (Box(), 1),
    "simplex": (Simplex(), 4),
    "many classes": (Simplex(), 300),
    "capped": (Simplex(CAPS), 4),
}


@pytest.fixture(params=SHAPES)
def case(request):
    """A shape, scores of which some are ties, and labels of which a few are in no corner."""
    shape, classes = SHAPES[request.param]
    t = np.round(np.random.default_rng(1).normal(size=(classes, N)), 1)
    q = shape.minimizer(t)
    inner = np.sort(np.random.default_rng(2).permutation(N)[:20])
    q[:, inner] = 0.5 * (q[:, inner] + shape.at(inner).minimizer(-t[:, inner]))
    return shape, t, q


def test_changes_of_chunks_are_changes_of_all(case):
    shape, t, q = case
    before = shape.minimizer(t)
    changed = np.flatnonzero((before != q).any(axis=0))
    changes = Few(changed, q[:, changed])
    parts = [
        changes.at(rows).replaced(before[:, rows])
        for rows in (slice(0, 60), slice(60, 60), slice(60, 199), slice(199, N))
    ]
    np.testing.assert_array_equal(np.concatenate(parts, axis=-1), q)


def test_no_changes(case):
    shape, t, _ = case
    labels = shape.minimizer(t)
    np.testing.assert_array_equal(Few().replaced(labels), labels)
    np.testing.assert_array_equal(Few().at(slice(5, 9)).replaced(labels[:, 5:9]), labels[:, 5:9])


def test_known_labels_of_some_rows(case):
    shape, t, _ = case
    weights = RNG.choice([0.0, 1.0, 2.0], N)
    width = RNG.choice([0.0, 1.0], N)
    labels = Labels(t, width, weights, shape, unit=2.0)
    some = labels.at(slice(50, 90)).at(slice(10, 30))
    np.testing.assert_array_equal(some.target, t[:, 60:80])
    np.testing.assert_array_equal(some.hinge_weights(), (weights * width)[60:80] / 2.0)
    np.testing.assert_array_equal(some.shape.minimizer(some.target), shape.minimizer(t)[:, 60:80])
    assert Labels(t, width, None, shape).at(slice(0, 9)).weights is None


def test_labels_that_reproduce_scores():
    target, width = RNG.normal(size=(3, N)), RNG.choice([0.0, 0.5, 2.0], N)
    scores = RNG.normal(size=(3, N))
    implied = implied_labels(scores, target, width)
    free = width > 0.0
    found = target + width * implied
    np.testing.assert_allclose(found[:, free], scores[:, free], rtol=1e-12)
