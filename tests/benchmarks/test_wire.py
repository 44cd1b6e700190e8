"""What crosses the network is weighed by the names of tasks, and nothing stays patched."""

import pickle

import dask.array as da
import numpy as np
import pytest

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.rows import DaskRows, Engine

N_ROWS, N_COLUMNS, N_CHUNKS = 40_000, 10, 4


@pytest.fixture
def weighed(load):
    return load("wire").weighed


@pytest.fixture
def problem(load):
    X, y, _ = load("data").two_gaussians(20, N_ROWS - 20, N_COLUMNS)
    return da.from_array(X, chunks=(N_ROWS // N_CHUNKS, -1)), y


def patched():
    return Engine.task, Engine.run, Engine.persist


def test_tasks_and_bytes(weighed, problem):
    rows, weights = DaskRows(problem[0]), np.random.default_rng(1).normal(size=N_ROWS)
    with weighed() as wire:
        rows.gram()
        scores = rows.scores(np.ones(N_COLUMNS))
        rows.weighted_sum(weights)
        rows.weighted_sum(weights)
    sums = {"weighted_sum": 8, "weighted_sum-combine": 2}
    assert wire.tasks == {"gram": 4, "gram-combine": 1, "scores": 4, **sums}
    # Sums are combined where they are; scores come back, and weights are sent.
    assert wire.down.keys() == {"gram-combine", "scores", "weighted_sum-combine"}
    assert wire.down["scores"] == pytest.approx(scores.nbytes, rel=0.01)
    assert wire.up["weighted_sum"] == pytest.approx(2 * weights.nbytes, rel=0.01)
    gram = (np.eye(N_COLUMNS), np.ones(N_COLUMNS))
    assert wire.down["gram-combine"] == len(pickle.dumps(gram, protocol=pickle.HIGHEST_PROTOCOL))
    others = wire.up["gram"] + wire.up["scores"] + wire.up["gram-combine"]
    assert wire.up_for_each_task(*sums) == others / 9


def test_a_fit(weighed, problem):
    before = patched()
    plain = ProjectedLeastSquaresClassifier(alpha=0.0).fit(*problem)
    with weighed() as wire:
        clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(*problem)
    assert patched() == before
    assert np.array_equal(clf.coef_, plain.coef_)
    assert wire.workers > 0.0
    # Labels go to the workers once, and soft labels come back once, in less than a byte each.
    for found in (wire.up["scatter"], wire.down["unlabeled_labels"]):
        assert 0 < found < N_ROWS
    assert wire.tasks["scatter"] == wire.tasks["unlabeled_labels"] == N_CHUNKS
    assert wire.tasks["soften"] == N_CHUNKS
    assert "scores" not in wire.down
