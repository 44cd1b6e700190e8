"""Real clusters of several processes, some of which die."""

import itertools
import os
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.rows import Engine, LostClusterError, _dask
from tests.fuzz.cluster import KILL, all_workers_die, start
from tests.rows.fits import CASES, assert_same_model

# Sockets and pipes of processes that were killed are found unclosed sooner or later.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client():
    with start(3) as cluster, Client(cluster) as client:
        yield client


def slowly(block, seconds):
    time.sleep(seconds)
    return block


def when_running(client, name, action):
    """Do something as soon as tasks of that name have been run; return the thread that does."""

    def wait():
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if any(name in str(key) for keys in client.processing().values() for key in keys):
                break
            time.sleep(0.02)
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("name", ["weights", "three classes"])
def test_same_model_as_in_memory(name, client):
    case = CASES[name]
    X, y, weights = case.data()
    lazy = da.from_array(X, chunks=(1500, -1)).persist()
    labels = da.from_array(y, chunks=1500)
    assert_same_model(case.fit(lazy, labels, weights), case.in_memory())


def test_data_frame(client):
    case = CASES["few labels"]
    X, y, weights = case.data()
    lazy = dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=4).persist()
    found = case.fit(lazy, y, weights)
    assert_same_model(found, case.in_memory())
    predicted = found.predict(lazy)
    assert isinstance(predicted, da.Array)
    np.testing.assert_array_equal(predicted.compute(), case.in_memory().predict(X))


def test_persisted_chunks_stay_where_they_are(client):
    X, y, _ = CASES["few labels"].data()
    lazy = da.from_array(X, chunks=(1500, -1)).persist()
    client.gather(client.futures_of(lazy))
    before = client.who_has(client.futures_of(lazy))
    ProjectedLeastSquaresClassifier().fit(lazy, y)
    assert client.who_has(client.futures_of(lazy)) == before


def assert_survives(client, lazy, arrange):
    """Fit while a worker is killed: `arrange` is told how, and sees to it that it happens."""
    case = CASES["few labels"]
    _, y, weights = case.data()
    victim = next(iter(client.run(os.getpid).values()))
    arrange(lambda: os.kill(victim, KILL))
    found = case.fit(lazy, y, weights)
    client.wait_for_workers(3, timeout=30)
    assert victim not in client.run(os.getpid).values()
    assert_same_model(found, case.in_memory())
    assert found.certificate_.holds


def test_a_worker_is_killed_in_the_middle_of_a_pass(client):
    X, _, _ = CASES["few labels"].data()
    lazy = da.from_array(X, chunks=(1000, -1)).map_blocks(slowly, 0.05, dtype=X.dtype)
    assert_survives(client, lazy, lambda kill: when_running(client, "neverworse-", kill))


def test_a_worker_is_killed_and_what_it_held_is_lost(client, monkeypatch):
    X, _, _ = CASES["few labels"].data()
    lazy = da.from_array(X, chunks=(1000, -1)).persist()
    distributed.wait(lazy)
    n_passes, run = itertools.count(1), Engine.run

    def arrange(kill):
        def run_and_kill(self, tasks):
            if next(n_passes) == 4:
                kill()
            return run(self, tasks)

        monkeypatch.setattr(Engine, "run", run_and_kill)

    assert_survives(client, lazy, arrange)
    assert next(n_passes) > 6


@pytest.mark.parametrize("seed", [1, 10])
def test_all_workers_are_killed_and_what_they_held_is_lost(seed, monkeypatch):
    monkeypatch.setattr(_dask, "POLL", 0.2)
    assert all_workers_die(seed) is None


def test_rows_that_nobody_can_compute_again_are_lost():
    X, y, _ = CASES["few labels"].data()
    with start(1) as cluster, Client(cluster) as client:
        blocks = [da.from_delayed(f, (3000, 6), X.dtype) for f in client.scatter(np.split(X, 4))]
        lazy = da.concatenate(blocks).map_blocks(slowly, 0.2, dtype=X.dtype)
        (victim,) = client.run(os.getpid).values()
        killer = when_running(client, "neverworse-", lambda: os.kill(victim, KILL))
        with pytest.raises(LostClusterError, match="lost with a worker"):
            ProjectedLeastSquaresClassifier().fit(lazy, y)
        killer.join()


def test_rows_that_no_worker_may_compute(client, monkeypatch):
    monkeypatch.setattr(_dask, "POLL", 0.2)
    monkeypatch.setattr(_dask, "MOST_IDLE", 1.0)
    X, y, _ = CASES["few labels"].data()
    lazy = client.persist(da.from_array(X, chunks=(1000, -1)), workers=["tcp://127.0.0.1:1"])
    with pytest.raises(LostClusterError, match="none of its workers is allowed to run"):
        ProjectedLeastSquaresClassifier().fit(lazy, y)


def test_cluster_shuts_down():
    X, y, _ = CASES["few labels"].data()
    clf = ProjectedLeastSquaresClassifier().fit(X, y)
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        start(1) as cluster,
        Client(cluster) as client,
    ):
        lazy = da.from_array(X, chunks=(1000, -1)).map_blocks(slowly, 0.2, dtype=X.dtype)
        closer = when_running(client, "neverworse-", cluster.close)
        begin = time.monotonic()
        with pytest.raises(LostClusterError, match="cluster went away"):
            clf.fit(lazy, y)
        closer.join()
        assert time.monotonic() - begin < 120  # it would wait for ever
    with pytest.raises(NotFittedError):
        check_is_fitted(clf)


def test_cluster_loses_all_workers(monkeypatch):
    monkeypatch.setattr(_dask, "POLL", 0.2)
    monkeypatch.setattr(_dask, "MOST_IDLE", 1.0)
    X, y, _ = CASES["few labels"].data()
    with start(1) as cluster, Client(cluster) as client:
        lazy = da.from_array(X, chunks=(1000, -1)).map_blocks(slowly, 0.3, dtype=X.dtype)
        closer = when_running(client, "neverworse-", lambda: cluster.scale(0))
        with pytest.raises(LostClusterError, match="no workers left"):
            ProjectedLeastSquaresClassifier().fit(lazy, y)
        closer.join()
