"""Experiment 1: how often semi-supervised classifiers are worse than supervised ones."""

from __future__ import annotations

import numpy as np

from neverworse._typing import Matrix
from neverworse.datasets import PAPER_DATASETS
from neverworse.experiments._experiments import Data, Experiment, Record, Sample
from neverworse.experiments._protocol import Protocol
from neverworse.experiments._samples import draw_labeled

METHODS = ("Supervised", "Self-Learning", "ICLS", "Projection", "SVM", "TSVM")
N_DRAWN = 1000  # unlabeled rows, and as many for tests
EXPLAINED = 0.99  # of the variance, by the principal components


def principal_components(X: Matrix, protocol: Protocol) -> Matrix:
    """Return principal components with 99 % of the variance, if the protocol wants them."""
    if not protocol.principal_components:
        return X
    centred = X - X.mean(axis=0)
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    share = np.cumsum(singular**2) / np.sum(singular**2)
    n_components = 1 + int(np.sum(share < EXPLAINED))
    components: Matrix = centred @ directions[:n_components].T
    return components


def run(data: Data, protocol: Protocol, rng: np.random.Generator, _: int) -> list[Record]:
    """Draw labeled, unlabeled and tested rows, and measure the losses on all of them.

    Unlabeled and tested rows are drawn with replacement from all rows, labeled ones included.
    """
    X, y = data
    labeled, _rest = draw_labeled(y, np.arange(len(y)), protocol.n_labeled(X.shape[1]), rng)
    unlabeled, test = rng.integers(0, len(y), (2, N_DRAWN))
    sample = Sample.of(data, labeled, unlabeled, test)
    return [
        {
            "method": method.name,
            "n_labeled": len(labeled),
            **sample.measure_test(method, model),
            **sample.measure_training(method, model),
        }
        for method, model in sample.fit(METHODS, protocol)
    ]


ROBUSTNESS = Experiment(
    "robustness",
    "Figure 1: robustness",
    METHODS,
    PAPER_DATASETS,
    100,
    run,
    rounds=1,
    prepare=principal_components,
)
