"""The experiments: rows that are drawn, models that are fitted, and what is measured."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline, make_pipeline

from neverworse._typing import AnyArray, Mask, Matrix
from neverworse.datasets import PAPER_DATASETS, make_two_gaussians
from neverworse.estimators import LeastSquaresClassifierCV, ProjectedLeastSquaresClassifier
from neverworse.evidence import SafeStackingClassifier, SequentialAudit, default_candidates, moved
from neverworse.experiments._methods import METHODS, Protocol, counterpart, losses, truncation
from neverworse.methods import HiddenLabels

Record = dict[str, Any]
Data = tuple[Matrix, AnyArray]
Run = Callable[[Data, Protocol, np.random.Generator, int], list[Record]]

ROBUSTNESS_METHODS = ("Supervised", "Self-Learning", "ICLS", "Projection", "SVM", "TSVM")
CURVE_METHODS = ("Supervised", "Self-Learning", "USM", "ICLS", "Projection", "Oracle")
TABLE_METHODS = ("Supervised", "Self-Learning", "ICLS", "Projection", "SVM", "TSVM", "Oracle")
TIMING_METHODS = ("Supervised", "Projection", "SVM", "TSVM")

N_DRAWN = 1000  # unlabeled rows of the robustness experiment, and as many for tests
EXPLAINED = 0.99  # of the variance, by the principal components
N_FOLDS = 10
TWO_GAUSSIANS = "Two Gaussians"  # the data of the timing experiment
N_LABELED, N_FEATURES, PUBLISHED_SIZE = 200, 100, 1024
LARGE_SIZES = (4096, 16_384, 65_536, 262_144, 1_000_000)
LARGE_REPEATS = 1  # with these sizes, which take long
# The experiment on evidence: numbers of labels, the largest share of rows that may be labeled, and
# the most labels that a sequential audit may ask for.
EVIDENCE_SIZES, LARGEST_SHARE, MOST_QUESTIONS = (40, 100, 200), 0.7, 40
BASELINE = "baseline"
PROJECTION = ProjectedLeastSquaresClassifier(missing_label=-1)
STACKING = SafeStackingClassifier(LeastSquaresClassifierCV(), missing_label=-1)
STACKED: dict[str, dict[str, Any]] = {  # settings of `Evidence`
    "safe stacking": {},
    "safe stacking, best": {"combine": "best"},
    "safe stacking, control variates": {"control_variate": True},
}
EXPERIMENTS: dict[str, Experiment] = {}


@dataclass
class Experiment:
    """An experiment: decorates the function that runs a repeat, and has the name of that."""

    title: str  # what it is in the paper, if it is there
    repeats: int  # as published, or as many as make sense
    methods: Sequence[str] = ()  # of the paper
    datasets: Sequence[str] = PAPER_DATASETS
    prepare: Callable[[Matrix, Protocol], Matrix] = lambda X, _: X  # once, for all repeats
    settings: Callable[[], dict[str, Any]] = dict  # what else results depend on
    alone: bool = False  # measures time, so repeats must not run in parallel
    published: bool = True  # whether it is in the paper

    def __call__(self, run: Run) -> Run:
        self.name, self.run = run.__name__, run
        EXPERIMENTS[self.name] = self
        return run


class Sample:
    """Training rows drawn from a data set by their indices, labeled ones first, and test rows."""

    def __init__(self, data: Data, labeled: AnyArray, unlabeled: AnyArray, test: AnyArray) -> None:
        X, y = data
        train = np.concatenate([labeled, unlabeled])
        known = np.where(np.arange(len(train)) < len(labeled), y[train], -1)
        self.X, self.y = X[train], HiddenLabels(known, y[train])
        self.X_test, self.y_test = X[test], y[test]

    def fit(self, names: Sequence[str], protocol: Protocol) -> Iterator[tuple[str, Pipeline]]:
        """Fit one method after another to the training rows.

        Least squares methods share the directions that the protocol keeps of these rows.
        """
        kept = [] if protocol.cutoff is None else [truncation(self.X, protocol.cutoff)]
        for name in names:
            first = kept if counterpart(name) == "Supervised" else []
            yield name, make_pipeline(*first, METHODS[name](protocol)).fit(self.X, self.y)

    def measure(self, method: str, model: Any, *, training: bool = True) -> Record:
        """Return the error on the test rows, and mean losses on these and on the training rows.

        The latter also for the supervised model that the method started from, if it has one.
        """
        wrong = model.predict(self.X_test) != self.y_test
        test = losses(method, model, self.X_test, self.y_test)
        record = {"error": float(wrong.mean()), "test_loss": float(test.mean())}
        if training:
            models = {"training_loss": model, "own_supervised_loss": supervised_of(model)}
            for name, each in models.items():
                if each is not None:
                    record[name] = float(losses(method, each, self.X, self.y.y_true).mean())
        return record


def supervised_of(model: Any) -> Any:
    """Return the supervised model that a model, or a pipeline, started from; None if none."""
    if not isinstance(model, Pipeline):
        return getattr(model, "supervised_", None)
    start = supervised_of(model[-1])
    return None if start is None else make_pipeline(*(step for _, step in model.steps[:-1]), start)


def draw_labeled(
    y: AnyArray, rows: AnyArray, n_labeled: int, rng: np.random.Generator
) -> tuple[AnyArray, AnyArray]:
    """Draw labeled rows, at least one of each class; return them and the rest, in random order."""
    first = [rng.choice(rows[y[rows] == label]) for label in (0, 1)]
    others = rng.permutation(rows[~np.isin(rows, first)])
    n_others = n_labeled - len(first)
    return np.concatenate([first, others[:n_others]]), others[n_others:]


def draw_folds(y: AnyArray, rng: np.random.Generator) -> Iterator[AnyArray]:
    """Return the test rows of ten folds with both classes; all but the last have ⌊n / 10⌋ rows."""
    pairs = np.column_stack(
        [rng.permutation(np.flatnonzero(y == label))[:N_FOLDS] for label in (0, 1)]
    )
    others = rng.permutation(np.setdiff1d(np.arange(len(y)), pairs))
    ends = (len(y) // N_FOLDS - 2) * np.arange(1, N_FOLDS)
    return map(np.concatenate, zip(pairs, np.split(others, ends), strict=True))


def unlabeled_sizes(largest: int) -> list[int]:
    """Return 2, 4, 8, … up to `largest`."""
    return [2**k for k in range(1, largest.bit_length())]


def principal_components(X: Matrix, protocol: Protocol) -> Matrix:
    """Return principal components with 99 % of the variance, if the protocol has them."""
    if not protocol.principal_components:
        return X
    return np.asarray(PCA(EXPLAINED, svd_solver="full").fit_transform(X))


@Experiment("Figure 1: robustness", 100, ROBUSTNESS_METHODS, prepare=principal_components)
def robustness(data: Data, protocol: Protocol, rng: np.random.Generator, _: int) -> list[Record]:
    """Draw unlabeled and test rows with replacement from all rows, labeled ones included."""
    X, y = data
    labeled, _rest = draw_labeled(y, np.arange(len(y)), protocol.n_labeled(X.shape[1]), rng)
    unlabeled, test = rng.integers(0, len(y), (2, N_DRAWN))
    sample = Sample(data, labeled, unlabeled, test)
    return [
        {"method": method, "n_labeled": len(labeled), **sample.measure(method, model)}
        for method, model in sample.fit(ROBUSTNESS_METHODS, protocol)
    ]


@Experiment("Figure 2: learning curves", 1000, CURVE_METHODS, ("Ionosphere", "SPECT", "USPS"))
def curves(data: Data, protocol: Protocol, rng: np.random.Generator, _: int) -> list[Record]:
    """Fit to growing sets of unlabeled rows, and test on the rest, as long as there is one."""
    X, y = data
    labeled, rest = draw_labeled(y, np.arange(len(y)), protocol.n_labeled(X.shape[1]), rng)
    supervised: list[tuple[str, Pipeline]] = []
    records = []
    for size in unlabeled_sizes(min(protocol.largest_size, len(rest) - 1)):
        sample = Sample(data, labeled, rest[:size], rest[size:])
        supervised = supervised or list(sample.fit(CURVE_METHODS[:1], protocol))
        for method, model in [*supervised, *sample.fit(CURVE_METHODS[1:], protocol)]:
            measured = sample.measure(method, model, training=False)
            records.append({"method": method, "n_unlabeled": size, **measured})
    return records


def draw_cross_validation(
    data: Data, protocol: Protocol, rng: np.random.Generator
) -> Iterator[Sample]:
    """Yield the rows of each of ten folds: all but the tested ones are for training."""
    X, y = data
    n_labeled = protocol.n_labeled_in_folds(X.shape[1])
    for test in draw_folds(y, rng):
        rows = np.setdiff1d(np.arange(len(y)), test)
        yield Sample(data, *draw_labeled(y, rows, n_labeled, rng), test)


@Experiment("Table 1: cross-validation", 20, TABLE_METHODS)
def table(data: Data, protocol: Protocol, rng: np.random.Generator, _: int) -> list[Record]:
    """Measure all methods in ten-fold cross-validation, with few labeled training rows."""
    return [
        {"method": method, **facts, **sample.measure(method, model)}
        for fold, sample in enumerate(draw_cross_validation(data, protocol, rng))
        for facts in [{"fold": fold, "n_test": len(sample.y_test)}]
        for method, model in sample.fit(TABLE_METHODS, protocol)
    ]


@Experiment(
    "Training time",
    10,
    TIMING_METHODS,
    [TWO_GAUSSIANS],
    settings=lambda: {"sizes": LARGE_SIZES},
    alone=True,
)
def timing(_: Data, protocol: Protocol, rng: np.random.Generator, repeat: int) -> list[Record]:
    """Time training on growing sets of unlabeled rows, from two Gaussians."""
    sizes = unlabeled_sizes(PUBLISHED_SIZE)
    if repeat < LARGE_REPEATS:
        sizes = [*sizes, *LARGE_SIZES]
    seed = int(rng.integers(2**31))
    X, truth = make_two_gaussians(N_LABELED + sizes[-1], N_FEATURES, random_state=seed)
    y = np.where(np.arange(len(truth)) < N_LABELED, truth, -1)
    protocol = replace(protocol, cutoff=None)  # no direction of these rows would be left out
    records = []
    for size in [sizes[0], *sizes]:  # the first once more, to warm up
        for name in TIMING_METHODS:
            rows = slice(N_LABELED + (0 if counterpart(name) == name else size))
            model = METHODS[name](protocol)
            start = time.perf_counter()
            model.fit(X[rows], y[rows])
            seconds = time.perf_counter() - start
            records.append({"method": name, "n_unlabeled": size, "seconds": seconds})
    return records[len(TIMING_METHODS) :]


def _evidence_settings() -> dict[str, Any]:
    return {
        "stacking": STACKING,
        "projection": PROJECTION,
        **dict(default_candidates(max(EVIDENCE_SIZES), random_state=0)),
        "constants": (EVIDENCE_SIZES, LARGEST_SHARE, MOST_QUESTIONS, STACKED),
    }


@Experiment("Beyond the paper: evidence", 20, settings=_evidence_settings, published=False)
def evidence(data: Data, _: Protocol, rng: np.random.Generator, __: int) -> list[Record]:
    """Hide all but 40, 100 and 200 labels, and measure all methods on the unlabeled rows."""
    X, y = data
    order = rng.permutation(len(y))
    # Two rows of each class come first, so that every training fold has both classes.
    first = np.concatenate([order[y[order] == label][:2] for label in (0, 1)])
    order = np.concatenate([first, order[~np.isin(order, first)]])
    seed = int(rng.integers(2**31))
    records = []
    for n in EVIDENCE_SIZES:
        if n > LARGEST_SHARE * len(y):
            break
        unlabeled = ~np.isin(np.arange(len(y)), order[:n])
        rows, truth = X[unlabeled], y[unlabeled]
        for name, model, n_asked in _evidence_models(X, y, unlabeled, seed):
            brier = float(np.mean((model.predict_proba(rows)[:, 1] - truth) ** 2))
            error = float(np.mean(model.predict(rows) != truth))
            measured = {"brier": brier, "error": error, "asked": n_asked}
            records.append({"method": name, "n_labeled": n, **measured})
    return records


def _evidence_models(
    X: Matrix, y: AnyArray, unlabeled: Mask, seed: int
) -> Iterator[tuple[str, Any, int]]:
    """Yield names of fitted models, the models, and how many labels they asked for."""
    known = np.where(unlabeled, -1, y)
    # Only the loss matters.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        stacked = clone(STACKING).set_params(random_state=seed).fit(X, known)
        projected = clone(PROJECTION).fit(X, known)
    baseline, found = stacked.baseline_, stacked.evidence_
    yield BASELINE, baseline, 0
    yield "projection", projected, 0
    candidates = list(stacked.candidates_.items())
    yield from ((name, model, 0) for name, model in candidates)
    for name, settings in STACKED.items():
        steps = replace(found, **settings).steps
        yield name, moved(baseline, candidates, steps, "predict_proba"), 0
    differences = found.differences.mean(axis=0)
    best = stacked.candidates_[found.names[np.argmin(differences)]]
    picked = best if differences.min() < 0.0 else baseline
    yield "picked by cross-validation", picked, 0
    for loss, name in (("error", "sequential audit, errors"), ("brier", "sequential audit, Brier")):
        audit = SequentialAudit(baseline, picked, X[unlabeled], loss=loss, random_state=seed)
        while audit.verdict_ == "undecided" and audit.n_labels_ < MOST_QUESTIONS:
            questions = audit.next()
            audit.record(questions, y[unlabeled][questions])
        yield name, audit.model_, audit.n_labels_
