"""Methods compared on labeled rows that were held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Indices, Vector
from neverworse._words import listed, points
from neverworse.estimators import class_scores, has_class_scores
from neverworse.model_selection import RepeatedStratifiedLabeledKFold
from neverworse.study._methods import (
    STACKED,
    NearestLabelSpreading,
    collapsed_to,
    fit_fold,
    guarantee_of,
    learns_from_itself,
    reason_of,
)
from neverworse.study._numbers import HeldOut, Truth, brier_scores, numbers
from neverworse.study._sample import Mean, Progress, Sample, draw_sample, fold_words, silent
from neverworse.study._study import Comparison, Estimate, MethodFacts

USUAL_METHODS = 3
MOST_NEIGHBOURS = 3_000  # unlabeled rows, if a method looks at all pairs of rows
N_OURS = 2  # the first two methods, without which there is no comparison
MEASURES = ("error", "brier", "loss")
SMALLEST_LOSS = 5e-5  # per row; less is not shown


@dataclass(frozen=True)
class Compared:
    """A comparison, the labeled rows, and what each method said of them when they were held out.

    The better ones are methods, besides the first two and the stacked one, that are clearly better
    than all of these: in error or in Brier score, and not clearly worse in the other. The best
    Brier score comes first; methods without one come last, by error.
    """

    comparison: Comparison
    truth: Truth
    held_out: dict[str, HeldOut]
    better: tuple[str, ...]


def compare(
    methods: Mapping[str, Any],
    X: Any,
    y: Vector,
    *,
    classes: Sequence[str] | None = None,
    positive: int | None = None,
    sample_weight: Vector | None = None,
    max_unlabeled: int = 20_000,
    seed: int = 0,
    told: Progress = silent,
) -> Compared:
    """Compare methods by repeated cross-validation on the labeled rows.

    All methods get the same folds and the same unlabeled rows. Unlabeled rows train in every fold
    and are never scored. Whatever a method chooses, such as a penalty, it chooses in its own `fit`,
    which sees no label of a test row. A method that fails is left out, unless it is one of the
    first two.

    Parameters
    ----------
    methods : mapping of str to classifier
        Unfitted; the first is the one that all others are compared with, and the second the one
        that the comparison is about.
    X : array or sparse array of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        Codes of the classes, NaN where unlabeled.
    classes : sequence of str, optional
        Names of the classes.
    positive : int, optional
        The class of the calibration curve.
    sample_weight : array of shape (n_rows,), optional
        For fits of all methods that take it, and for the means over test rows.
    max_unlabeled : int, default=20_000
        So many unlabeled rows at most, drawn at random; fewer if X has many columns or classes, and
        with label spreading, whose time grows with their square.
    seed : int, default=0
    told : callable

    Raises
    ------
    ValueError
        If a class has one label only. The message is meant for people.

    Notes
    -----
    Intervals of differences allow for training folds that overlap, see `Mean`. Those of the second
    method are right with a probability of 95 %; those of all further ones are right together.
    """
    if any(isinstance(method, NearestLabelSpreading) for method in methods.values()):
        max_unlabeled = min(max_unlabeled, MOST_NEIGHBOURS)
    sample = draw_sample(
        X, y, sample_weight, max_unlabeled, seed, fits_per_split=len(methods) / USUAL_METHODS
    )
    truth = Truth.of(sample, classes, positive)
    run = _Run(sample, truth, seed)
    failures = run.all(methods, told)
    names = [name for name in methods if name not in failures]
    facts = tuple(
        _facts(run, names, k, guarantee_of(methods[name])) for k, name in enumerate(names)
    )
    majority = int(np.bincount(truth.codes, truth.weights).argmax())
    comparison = Comparison(
        sample.n_folds,
        sample.n_repeats,
        sample.n_labeled,
        sample.n_unlabeled,
        truth.classes[majority],
        numbers(truth, run.majority()),
        facts,
        failures,
        " ".join(
            [
                _words_of(facts, sample.rows_in_words),
                *fold_words(truth.classes, truth.codes, sample.n_folds),
                *_collapse_words(run.collapsed, len(run.splits)),
                *_failure_words(failures, len(methods) - N_OURS),
            ]
        ),
    )
    return Compared(
        comparison, truth, {name: run.held_out[name] for name in names}, _better(run, names)
    )


class _Run:
    """Fits to the folds, and what the models said of test rows."""

    def __init__(self, sample: Sample, truth: Truth, seed: int) -> None:
        self.sample, self.truth = sample, truth
        folds = RepeatedStratifiedLabeledKFold(
            sample.n_folds, sample.n_repeats, seed, missing_label=np.nan
        )
        self.splits = list(folds.split(sample.X, sample.y))
        self.folds = np.zeros((sample.n_repeats, len(truth.codes)), dtype=np.intp)
        for split, (_, test) in enumerate(self.splits):
            self.folds[split // sample.n_folds, test] = split
        self.held_out: dict[str, HeldOut] = {}
        self.seconds: dict[str, float] = {}
        self.by_fold: dict[str, dict[str, Vector]] = {}  # means over test rows, by measure
        self.collapsed: dict[str, Counter[str]] = {}  # fits, by the class that they give to all

    def all(self, methods: Mapping[str, Any], told: Progress) -> dict[str, str]:
        """Fit all methods, and return those that failed with the reason."""
        failures: dict[str, str] = {}
        n_fits = len(self.splits) * len(methods)
        for k, (name, method) in enumerate(methods.items()):
            try:
                for split in self._fit(name, method):
                    told("comparing methods", (k * len(self.splits) + split + 1) / n_fits)
            except Exception as error:
                if k < N_OURS:
                    raise
                failures[name] = reason_of(error)
        return failures

    def _fit(self, name: str, method: Any) -> Iterator[int]:
        """Fit a method to all splits, and yield each that is done."""
        shape = self.sample.n_repeats, len(self.truth.codes)
        found = {"predictions": np.zeros(shape, dtype=np.intp)}
        losses = np.full(len(self.splits), np.nan)
        seconds = 0.0
        for split, (train, test) in enumerate(self.splits):
            start = perf_counter()
            model = fit_fold(method, self.sample, train)
            seconds += perf_counter() - start
            self._check_collapse(name, model, train)
            said = _said(model, self.sample.X[test], len(self.truth.classes))
            for kind, values in said.items():
                if kind not in found:
                    found[kind] = np.full((*shape, values.shape[-1]), np.nan)
                found[kind][split // self.sample.n_folds, test] = values
            if has_class_scores(model):
                squares = brier_scores(self.truth.codes[test], said["scores"])
                losses[split] = np.average(squares, weights=self.truth.weights[test])
            yield split
        held_out = HeldOut(
            found["predictions"], found.get("probabilities"), found.get("scores"), self.folds
        )
        self.held_out[name], self.seconds[name] = held_out, seconds / len(self.splits)
        self.by_fold[name] = self._by_fold(held_out) | {"loss": losses}

    def _check_collapse(self, name: str, model: Any, train: Indices) -> None:
        """Count a fit whose model gives nearly all unlabeled rows to one class."""
        if learns_from_itself(model):
            n_labeled = self.sample.n_labeled
            predicted = np.asarray(model.predict(self.sample.X[n_labeled:])).astype(np.intp)
            to = collapsed_to(predicted, self.truth.codes[train[train < n_labeled]])
            if to is not None:
                self.collapsed.setdefault(name, Counter())[self.truth.classes[to]] += 1

    def _by_fold(self, held_out: HeldOut) -> dict[str, Vector]:
        wrong = (held_out.predictions != self.truth.codes).astype(np.float64)
        brier = np.full_like(wrong, np.nan)
        if held_out.probabilities is not None:
            brier = brier_scores(self.truth.codes, held_out.probabilities)
        return {"error": self._means(wrong), "brier": self._means(brier)}

    def _means(self, values: AnyArray) -> Vector:
        """Return means over test rows, for each split."""
        weights = self.truth.weights
        return np.array(
            [
                np.average(values[split // self.sample.n_folds, test], weights=weights[test])
                for split, (_, test) in enumerate(self.splits)
            ]
        )

    def majority(self) -> HeldOut:
        """Return predictions of the largest class, and the shares of the classes."""
        n_repeats, n_classes = self.sample.n_repeats, len(self.truth.classes)
        shares = np.zeros((n_repeats, len(self.truth.codes), n_classes))
        for split, (train, test) in enumerate(self.splits):
            known = train[train < self.sample.n_labeled]
            counts = np.bincount(
                self.truth.codes[known], self.truth.weights[known], minlength=n_classes
            )
            shares[split // self.sample.n_folds, test] = counts / counts.sum()
        return HeldOut(shares.argmax(axis=2), shares, shares, self.folds)

    def mean(self, name: str, measure: str, other: str | None = None) -> Mean | None:
        """Return the mean over the folds, or of the difference from another method."""
        values = self.by_fold[name][measure]
        if other is not None:
            values = values - self.by_fold[other][measure]
        return None if np.isnan(values).any() else Mean.over_folds(values, self.sample.test_share)

    def difference(self, name: str, measure: str, other: str, n_tests: int) -> Estimate | None:
        """Return the difference of a method from another one, with its interval."""
        mean = self.mean(name, measure, other)
        if mean is None:
            return None
        found = mean.estimate(n_tests)
        if measure == "error":  # shares differ by no more than 1
            return Estimate(found.value, max(-1.0, found.low), min(1.0, found.high))
        return found


def _said(model: Any, X: Any, n_classes: int) -> dict[str, AnyArray]:
    """Return what a model says about rows: see `HeldOut`."""
    said: dict[str, AnyArray] = {"predictions": np.asarray(model.predict(X)).astype(np.intp)}
    if hasattr(model, "predict_proba"):
        said["probabilities"] = np.zeros((len(said["predictions"]), n_classes))
        # A method need not know all classes, nor in this order.
        said["probabilities"][:, np.asarray(model.classes_, dtype=np.intp)] = model.predict_proba(X)
    if has_class_scores(model):
        said["scores"] = class_scores(model, X)
    elif "probabilities" in said:
        said["scores"] = said["probabilities"]
    elif n_classes == 2 and hasattr(model, "decision_function"):
        decision = np.asarray(model.decision_function(X), dtype=np.float64)
        said["scores"] = np.column_stack([-decision, decision])
    return said


def _n_tests(names: Sequence[str]) -> int:
    """Return how many intervals of further methods are to be right together."""
    return max(1, 2 * (len(names) - 2))  # errors and Brier scores


def _facts(run: _Run, names: Sequence[str], k: int, guarantee: str) -> MethodFacts:
    name, first = names[k], names[0]
    n_tests = 1 if k == 1 else _n_tests(names)
    loss = run.mean(name, "loss")
    differences = [run.difference(name, measure, first, n_tests) for measure in MEASURES]
    return MethodFacts(
        name,
        guarantee,
        run.seconds[name],
        numbers(run.truth, run.held_out[name]),
        None if loss is None else loss.estimate(),
        *(differences if k else [None] * len(MEASURES)),
    )


def _better(run: _Run, names: Sequence[str]) -> tuple[str, ...]:
    """Return the methods that are clearly better than our own; see `Compared`."""
    found: list[tuple[float, float, str]] = []
    ours = [name for k, name in enumerate(names) if k < N_OURS or name == STACKED]
    for name in (each for each in names if each not in ours):
        signs = [
            [
                0 if difference is None else difference.sign
                for measure in ("error", "brier")
                for difference in [run.difference(name, measure, other, _n_tests(names))]
            ]
            for other in ours
        ]
        if all(min(each) < 0 and max(each) <= 0 for each in signs):
            brier, error = (
                np.inf if mean is None else mean.value
                for mean in (run.mean(name, "brier"), run.mean(name, "error"))
            )
            found.append((brier, error, name))
    return tuple(name for *_, name in sorted(found))


def _words_of(methods: Sequence[MethodFacts], rows: str) -> str:
    """Return what follows, honestly: errors, quadratic loss, and how little may be known."""
    base, *others = methods
    sentences = [_errors(base, others)]
    sentences += [
        _loss(each.method, each.loss_difference, base.method)
        for each in others
        if each.guarantee != "none" and each.loss_difference is not None
    ]
    differences = [each.error_difference for each in others if each.error_difference is not None]
    widest = max((each.margin for each in differences), default=0.0)
    if widest:
        sentences.append(
            f"With {rows}, differences between error rates are known to within about "
            f"±{points(widest)} percentage points."
        )
    return " ".join(sentences)


def _collapse_words(collapsed: Mapping[str, Mapping[str, int]], n_fits: int) -> Iterator[str]:
    """Yield which methods have collapsed to one class in most of their fits."""
    for method, counts in collapsed.items():
        name, n_collapsed = max(counts.items(), key=lambda pair: pair[1])
        if 2 * n_collapsed > n_fits:
            yield (
                f"{method} has collapsed: in {n_collapsed} of {n_fits} fits it gives {name!r} to "
                "nearly all unlabeled rows."
            )


def _failure_words(failures: Mapping[str, str], n_others: int) -> Iterator[str]:
    """Yield which methods failed, and why."""
    if failures and len(failures) == n_others:
        yield "None of the other methods could be fitted."
    for method, reason in failures.items():
        yield f"{method} failed: {reason}"


def _errors(base: MethodFacts, others: Sequence[MethodFacts]) -> str:
    differences = [(each.method, each.error_difference) for each in others]
    fewer = [_named(name, d) for name, d in differences if d is not None and d.sign < 0]
    more = [_named(name, d) for name, d in differences if d is not None and d.sign > 0]
    if not fewer and not more:
        return (
            f"No method's error on held-out rows differs from that of the {base.method} one by "
            "more than chance would explain."
        )
    parts = [
        f"{kind} errors: {listed(names)}"
        for kind, names in (("fewer", fewer), ("more", more))
        if names
    ]
    return (
        f"On held-out rows, these differ from the {base.method} one by more than chance would "
        f"explain; {'; '.join(parts)}."
    )


def _named(method: str, difference: Estimate) -> str:
    return f"{method} ({points(difference.value, sign=True)} percentage points)"


def _loss(method: str, difference: Estimate, base: str) -> str:
    start = f"In squared loss, which the guarantee is about, the {method} one is "
    if max(abs(difference.value), difference.margin) < SMALLEST_LOSS:
        return f"{start}the same as the {base} one."
    way = "lower" if difference.value < 0.0 else "higher"
    change = f"{abs(difference.value):.4f} (±{difference.margin:.4f}) per held-out row"
    if not difference.sign:
        return f"{start}not clearly different: {way} by {change}."
    return f"{start}{way} than the {base} one by {change}."
