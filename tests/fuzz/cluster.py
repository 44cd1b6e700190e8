"""Fits on a Dask cluster all of whose workers are killed once."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from functools import cache
from itertools import count

import dask
import dask.array as da
import distributed
import numpy as np
from distributed import Client, LocalCluster

from neverworse.rows import Engine
from tests.rows.fits import CASES, assert_same_model

# A machine that is busy may need longer than Dask's 15 seconds to start a worker again.
PATIENT = {"distributed.deploy.lost-worker-timeout": "120s"}
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # which is as final on Windows
LONGEST = 150.0  # seconds; workers start again within a few
NAMES = ["few labels", "weights", "three classes", "ICLS", "many labels", "penalty"]


def start(n_workers):
    """Return a cluster of processes that are started again when they die."""
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        memory_limit=None,
    )


def all_workers_die(seed):
    """Kill all workers at a random moment of a fit to rows that they hold.

    Returns
    -------
    str or None
        What went wrong, if anything did: no end, an error, or another model than in memory.
    """
    rng = np.random.default_rng(seed)
    name, n_workers = str(rng.choice(NAMES)), int(rng.integers(1, 4))
    fatal = int(rng.integers(1, n_runs(name) + 1))
    delay = float(rng.choice([0.0, rng.uniform(0.0, 0.1)]))
    chunks = (int(rng.choice([1000, 3000])), -1)
    X, y, weights = CASES[name].data()
    found = []
    with dask.config.set(PATIENT), start(n_workers) as cluster, Client(cluster) as client:
        lazy = da.from_array(X, chunks=chunks).persist()
        distributed.wait(lazy)
        victims = client.run(os.getpid).values()

        def kill():
            time.sleep(delay)
            for victim in victims:
                os.kill(victim, KILL)

        def fit():
            try:
                found.append(CASES[name].fit(lazy, y, weights))
            except Exception as error:  # whatever it is, it is what the attack looks for
                found.append(error)

        killer = threading.Thread(target=kill)
        with observed(lambda number: killer.start() if number == fatal else None):
            fitting = threading.Thread(target=fit, daemon=True)
            fitting.start()
            fitting.join(LONGEST)
        if not found:
            return f"{name}, {n_workers} workers, run {fatal}: no end after {LONGEST:.0f} seconds"
        killer.join()
        if not set(victims).isdisjoint(client.run(os.getpid).values()):
            return f"{name}: workers have survived their death"
    if isinstance(found[0], Exception):
        return f"{name}, {n_workers} workers, run {fatal}: {found[0]!r}"
    try:
        assert_same_model(found[0], CASES[name].in_memory())
    except AssertionError as error:
        return f"{name}, {n_workers} workers, run {fatal}: another model, {error}"
    return None


@cache
def n_runs(name):
    """Count how often the rows are asked for something in a fit."""
    X, y, weights = CASES[name].data()
    numbers = []
    with dask.config.set(scheduler="synchronous"), observed(numbers.append):
        CASES[name].fit(da.from_array(X, chunks=(3000, -1)), y, weights)
    return len(numbers)


@contextmanager
def observed(tell):
    """Call a function with 1, 2, ... whenever something is about to be computed."""
    numbers, run = count(1), Engine.run

    def told(self, tasks):
        tell(next(numbers))
        return run(self, tasks)

    Engine.run = told
    try:
        yield
    finally:
        Engine.run = run
