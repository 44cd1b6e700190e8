"""Experiment 2: learning curves for growing numbers of unlabeled rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from neverworse.experiments._experiments import Data, Experiment, Record, Sample
from neverworse.experiments._methods import METHODS as ALL_METHODS
from neverworse.experiments._protocol import Protocol
from neverworse.experiments._samples import draw_labeled, unlabeled_sizes

METHODS = ("Supervised", "Self-Learning", "USM", "ICLS", "Projection", "Oracle")
DATASETS = ("Ionosphere", "SPECT", "USPS")


def run(data: Data, protocol: Protocol, rng: np.random.Generator, _: int) -> list[Record]:
    """Fit to growing sets of unlabeled rows, and test on all rows that are left.

    A size that leaves no row for tests is left out.
    """
    X, y = data
    labeled, rest = draw_labeled(y, np.arange(len(y)), protocol.n_labeled(X.shape[1]), rng)
    independent = [name for name in METHODS if not ALL_METHODS[name].uses_unlabeled]
    dependent = [name for name in METHODS if ALL_METHODS[name].uses_unlabeled]
    fitted: list[tuple[Any, Any]] = []
    records = []
    for size in unlabeled_sizes(protocol.largest_size):
        if size >= len(rest):
            break
        sample = Sample.of(data, labeled, rest[:size], rest[size:])
        fitted = fitted or list(sample.fit(independent, protocol))
        records += [
            {"method": method.name, "n_unlabeled": size, **sample.measure_test(method, model)}
            for method, model in [*fitted, *sample.fit(dependent, protocol)]
        ]
    return records


CURVES = Experiment("curves", "Figure 2: learning curves", METHODS, DATASETS, 1000, run, rounds=8)
