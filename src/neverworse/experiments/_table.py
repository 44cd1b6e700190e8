"""Experiment 3: cross-validation, in which most training rows lose their labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neverworse.datasets import PAPER_DATASETS
from neverworse.experiments._experiments import Data, Experiment, Record, Sample
from neverworse.experiments._protocol import Protocol
from neverworse.experiments._samples import N_FOLDS, draw_folds, draw_labeled

METHODS = ("Supervised", "Self-Learning", "ICLS", "Projection", "SVM", "TSVM", "Oracle")


def draw_samples(data: Data, protocol: Protocol, rng: np.random.Generator) -> Iterator[Sample]:
    """Yield the rows of each of ten folds: all but the tested ones are for training."""
    X, y = data
    n_labeled = protocol.n_labeled_in_folds(X.shape[1])
    for test in draw_folds(y, rng):
        rows = np.setdiff1d(np.arange(len(y)), test)
        yield Sample.of(data, *draw_labeled(y, rows, n_labeled, rng), test)


def run(data: Data, protocol: Protocol, rng: np.random.Generator, _: int) -> list[Record]:
    """Measure all methods in each of ten folds."""
    return [
        {
            "method": method.name,
            "fold": fold,
            "n_test": len(sample.y_test),
            **sample.measure_test(method, model),
            **sample.measure_training(method, model),
        }
        for fold, sample in enumerate(draw_samples(data, protocol, rng))
        for method, model in sample.fit(METHODS, protocol)
    ]


TABLE = Experiment(
    "table", "Table 1: cross-validation", METHODS, PAPER_DATASETS, 20, run, rounds=N_FOLDS
)
