"""Experiment 4: training time, relative to the supervised counterpart."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from neverworse.datasets import make_two_gaussians
from neverworse.experiments._experiments import Data, Experiment, Record
from neverworse.experiments._methods import METHODS as ALL_METHODS
from neverworse.experiments._protocol import Protocol
from neverworse.experiments._samples import unlabeled_sizes

METHODS = ("Supervised", "Projection", "SVM", "TSVM")
TWO_GAUSSIANS = "Two Gaussians"
N_LABELED = 200
N_FEATURES = 100
PUBLISHED_SIZE = 1024
LARGE_SIZES = (4096, 16_384, 65_536, 262_144, 1_000_000)
# Beyond the published sizes training takes so long that one repeat has to do.
LARGE_REPEATS = 1


def run(_: Data, protocol: Protocol, rng: np.random.Generator, repeat: int) -> list[Record]:
    """Time training on growing sets of unlabeled rows, from two Gaussians."""
    sizes = unlabeled_sizes(PUBLISHED_SIZE)
    if repeat < LARGE_REPEATS:
        sizes = [*sizes, *LARGE_SIZES]
    seed = int(rng.integers(2**31))
    X, truth = make_two_gaussians(N_LABELED + sizes[-1], N_FEATURES, random_state=seed)
    y = np.where(np.arange(len(truth)) < N_LABELED, truth, -1)
    protocol = replace(protocol, cutoff=None)  # which would leave nothing out of such rows
    records = []
    for size in [sizes[0], *sizes]:  # the first once more, to warm up
        for name in METHODS:
            method = ALL_METHODS[name]
            rows = slice(N_LABELED + size * method.uses_unlabeled)
            model = method.make(protocol)
            start = time.perf_counter()
            model.fit(X[rows], y[rows])
            seconds = time.perf_counter() - start
            records.append({"method": name, "n_unlabeled": size, "seconds": seconds})
    return records[len(METHODS) :]


TIMING = Experiment(
    "timing", "Training time", METHODS, (TWO_GAUSSIANS,), 10, run, rounds=200, alone=True
)
