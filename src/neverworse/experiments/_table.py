"""Experiment 3: cross-validation, in which most training rows lose their labels."""

from __future__ import annotations

import numpy as np

from neverworse.datasets import PAPER_DATASETS
from neverworse.experiments._experiment import Data, Experiment, Record, Sample
from neverworse.experiments._protocol import Protocol
from neverworse.experiments._samples import N_FOLDS, draw_folds, draw_labeled

METHODS = ("Supervised", "Self-Learning", "ICLS", "Projection", "SVM", "TSVM", "Oracle")


def run(data: Data, protocol: Protocol, rng: np.random.Generator, _: int) -> list[Record]:
    """Measure all methods in each of ten folds."""
    X, y = data
    n_labeled = protocol.n_labeled_in_folds(X.shape[1])
    records = []
    for fold, test in enumerate(draw_folds(y, rng)):
        rows = np.setdiff1d(np.arange(len(y)), test)
        sample = Sample.of(data, *draw_labeled(y, rows, n_labeled, rng), test)
        records += [
            {
                "method": method.name,
                "fold": fold,
                "n_test": len(test),
                **sample.measure_test(method, model),
                **sample.measure_training(method, model),
            }
            for method, model in sample.fit(METHODS, protocol)
        ]
    return records


TABLE = Experiment(
    "table", "Table 1: cross-validation", METHODS, PAPER_DATASETS, 20, run, rounds=N_FOLDS
)
