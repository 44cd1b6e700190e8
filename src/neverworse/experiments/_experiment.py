"""What an experiment is: repeats that draw rows, fit methods and measure them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline

from neverworse._typing import AnyArray, Matrix
from neverworse.experiments._design import Truncation
from neverworse.experiments._methods import METHODS, Method
from neverworse.experiments._protocol import Protocol
from neverworse.methods import HiddenLabels

Record = dict[str, Any]
Data = tuple[Matrix, AnyArray]


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper.

    Attributes
    ----------
    name : str
    title : str
        What it is in the paper.
    methods : sequence of str
        Names in `METHODS`.
    datasets : sequence of str
    repeats : int
        As published.
    run : callable
        ``run(data, protocol, rng, repeat)`` returns the records of one repeat: dictionaries with
        the method, what was varied, and what was measured.
    rounds : int
        How often each method is fitted in a repeat, about.
    prepare : callable
        ``prepare(X, protocol)`` returns the features that all repeats are run on.
    alone : bool
        Whether repeats must not run beside each other, because time is measured.
    """

    name: str
    title: str
    methods: Sequence[str]
    datasets: Sequence[str]
    repeats: int
    run: Callable[[Data, Protocol, np.random.Generator, int], list[Record]]
    rounds: int
    prepare: Callable[[Matrix, Protocol], Matrix] = lambda X, _: X
    alone: bool = False


@dataclass(frozen=True)
class Sample:
    """Rows drawn from a data set: labeled ones first, then unlabeled ones, and others for tests."""

    X: Matrix
    y: HiddenLabels
    X_test: Matrix
    y_test: AnyArray
    n_labeled: int

    @classmethod
    def of(cls, data: Data, labeled: AnyArray, unlabeled: AnyArray, test: AnyArray) -> Sample:
        """Take rows of the data by their indices, and hide the labels of unlabeled ones."""
        X, y = data
        train = np.concatenate([labeled, unlabeled])
        known = np.where(np.arange(len(train)) < len(labeled), y[train], -1)
        return cls(X[train], HiddenLabels(known, y[train]), X[test], y[test], len(labeled))

    def fit(self, names: Sequence[str], protocol: Protocol) -> Iterator[tuple[Method, Pipeline]]:
        """Fit one method after another to the training rows.

        Least squares methods share the directions that the protocol keeps of these rows.
        """
        kept = []
        if protocol.cutoff is not None:
            kept = [FrozenEstimator(Truncation(protocol.cutoff).fit(self.X))]
        for method in (METHODS[name] for name in names):
            first = kept if method.loss == "quadratic" else []
            yield method, make_pipeline(*first, method.make(protocol)).fit(self.X, self.y)

    def measure_test(self, method: Method, model: Any) -> Record:
        """Return the error and the mean loss on the tested rows."""
        wrong = model.predict(self.X_test) != self.y_test
        losses = method.losses(model, self.X_test, self.y_test)
        return {"error": float(wrong.mean()), "test_loss": float(losses.mean())}

    def measure_training(self, method: Method, model: Pipeline) -> Record:
        """Return the mean loss on labeled rows, and on all training rows with their true labels.

        Where the method has started from a supervised model of its own, also the loss of that one
        on all training rows.
        """
        losses = method.losses(model, self.X, self.y.y_true)
        labeled = losses[: self.n_labeled]
        record = {"labeled_loss": float(labeled.mean()), "training_loss": float(losses.mean())}
        start = supervised_of(model)
        if start is not None:
            own = method.losses(start, self.X, self.y.y_true)
            record["own_supervised_loss"] = float(own.mean())
        return record


def supervised_of(model: Any) -> Any:
    """Return the supervised model that a model started from, for the same rows; None if none."""
    if not isinstance(model, Pipeline):
        return getattr(model, "supervised_", None)
    start = supervised_of(model[-1])
    return None if start is None else make_pipeline(*(step for _, step in model.steps[:-1]), start)
