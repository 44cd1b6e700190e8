"""Methods compared on labeled rows that were held out, and the columns that each relies on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import clone

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse._words import interval, listed, points
from neverworse.estimators import class_scores, has_class_scores
from neverworse.model_selection import RepeatedStratifiedLabeledKFold
from neverworse.study._held_out import (
    HeldOut,
    Progress,
    Sample,
    Truth,
    brier_scores,
    draw_sample,
    fold_words,
    mean_over_folds,
    numbers,
    silent,
)
from neverworse.study._methods import (
    SELF_TAUGHT,
    STACKED,
    NearestLabelSpreading,
    SteppedClassifier,
    collapsed_to,
    fit_fold,
    guarantee_of,
    reason_of,
)
from neverworse.study._study import ColumnImportance, Comparison, Estimate, Importance, MethodFacts

USUAL_METHODS = 3
MOST_NEIGHBOURS = 3_000  # unlabeled rows, if a method looks at all pairs of rows
N_OURS = 2  # the first two methods, without which there is no comparison
MEASURES = ("error", "brier", "loss")
N_SHUFFLES = 3
MOST_COLUMNS = 200  # whose importance is found; more take too long
MOST_NUMBERS = 2_000_000  # of shuffled rows in memory at a time


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
    notify: Progress = silent,
) -> Compared:
    """Compare methods by repeated cross-validation on the labeled rows.

    All others are compared with the first, and the comparison is about the second. All methods get
    the same folds and the same unlabeled rows: `max_unlabeled` at most, drawn at random, and fewer
    if X has many columns or classes, or with label spreading, whose time grows with their square.
    They train in every fold and are never scored. Whatever a method chooses, such as a penalty, it
    chooses in its own `fit`, which sees no label of a test row. A method that fails is left out,
    unless it is one of the first two. `notify` is told which method is fitted, and the share of
    methods that are done.

    Intervals of differences allow for training folds that overlap, see `mean_over_folds`. Those of
    the second method are right with a probability of 95 %; those of all further ones together.

    y has codes of the classes, NaN where unlabeled. The positive class is that of the calibration
    curve and of the columns that matter. `ValueError`, with a message for people, if a class has
    one label only.
    """
    if any(isinstance(method, NearestLabelSpreading) for method in methods.values()):
        max_unlabeled = min(max_unlabeled, MOST_NEIGHBOURS)
    sample = draw_sample(
        X, y, sample_weight, max_unlabeled, seed, fits_per_split=len(methods) / USUAL_METHODS
    )
    return Compared(methods, sample, Truth.of(sample, classes, positive), seed, notify)


class Compared:
    """Methods that were fitted to the folds, and their predictions for test rows.

    The better ones are methods, besides the first two and the stacked one, that are clearly better
    than all of these: in error or in Brier score, and not clearly worse in the other. The best
    Brier score comes first; methods without one come last, by error.
    """

    def __init__(
        self, methods: Mapping[str, Any], sample: Sample, truth: Truth, seed: int, notify: Progress
    ) -> None:
        self._sample, self.truth, self._seed = sample, truth, seed
        folds = RepeatedStratifiedLabeledKFold(
            sample.n_folds, sample.n_repeats, seed, missing_label=np.nan
        )
        self._splits = list(folds.split(sample.X, sample.y))
        self._folds = np.zeros((sample.n_repeats, len(truth.codes)), dtype=np.intp)
        for split, (_, test) in enumerate(self._splits):
            self._folds[split // sample.n_folds, test] = split
        self._models: dict[str, list[Any]] = {}  # of each split
        self._by_fold: dict[str, dict[str, Vector]] = {}  # means over test rows, by measure
        self.held_out: dict[str, HeldOut] = {}
        failures: dict[str, str] = {}

        @cache
        def fitted_to(split: int, method: Any) -> Any:
            if isinstance(method, SteppedClassifier):  # whose parts may be compared as well
                return clone(method).take([fitted_to(split, part) for part in method.parts])
            return fit_fold(method, sample, self._splits[split][0])

        for k, (name, method) in enumerate(methods.items()):
            notify(f"comparing {name}", k / len(methods))
            try:
                models = [fitted_to(split, method) for split in range(len(self._splits))]
                self.held_out[name] = self._predicted(models)
            except Exception as error:
                if k < N_OURS:
                    raise
                failures[name] = reason_of(error)
            else:
                self._models[name] = models
                self._by_fold[name] = self._fold_means(name)
        names = list(self.held_out)
        self._n_tests = max(1, 2 * (len(names) - 2))  # errors and Brier scores of further methods
        facts = [self._facts(name, guarantee_of(methods[name])) for name in names]
        self.better = self._better(names)
        self.comparison = Comparison(
            sample.n_folds,
            sample.n_repeats,
            sample.n_labeled,
            sample.n_unlabeled,
            truth.classes[int(np.bincount(truth.codes, truth.weights).argmax())],
            numbers(truth, self._majority()),
            tuple(facts),
            failures,
            " ".join(self._words(facts)),
        )

    def importance(self, name: str, columns: Sequence[str]) -> Importance:
        """Return how much worse a method predicts held-out rows without what a column says.

        The column is shuffled among the held-out rows of a fold: all of its features together,
        because the indicators of a category say the same thing. What is measured is the Brier
        score, or the error of methods that have no probabilities; of the positive class against
        all others, if there is one. `columns` says from which column of the table each feature
        comes. `ValueError`, with a message for people, if there are too many.
        """
        of_column = {column: np.flatnonzero(np.asarray(columns) == column) for column in columns}
        if len(of_column) > MOST_COLUMNS:
            raise ValueError(f"There are {len(of_column):,} columns, more than {MOST_COLUMNS}.")
        rng = np.random.default_rng(self._seed)
        increases = np.zeros((len(of_column), self._sample.n_folds))
        models = self._models[name][: self._sample.n_folds]  # one repeat
        for fold, (model, (_, test)) in enumerate(zip(models, self._splits, strict=False)):
            rows = self._sample.X[test]
            rows = rows.toarray() if hasattr(rows, "toarray") else np.array(rows)
            (before,) = self._losses(model, [rows], test)
            # Many small predictions take much longer than a large one.
            n_together = max(1, MOST_NUMBERS // (N_SHUFFLES * rows.size))
            for start in range(0, len(of_column), n_together):
                copies = [
                    _shuffled(rows, features, rng)
                    for features in list(of_column.values())[start : start + n_together]
                    for _ in range(N_SHUFFLES)
                ]
                after = self._losses(model, copies, test).reshape(-1, N_SHUFFLES).mean(axis=1)
                increases[start : start + n_together, fold] = after - before
        found = [
            ColumnImportance(column, mean_over_folds(values, self._sample.test_share))
            for column, values in zip(of_column, increases, strict=True)
        ]
        found.sort(key=lambda each: -each.increase.value)
        has_shares = hasattr(models[0], "predict_proba")
        return Importance(name, "Brier score" if has_shares else "error", tuple(found))

    def _losses(self, model: Any, copies: Sequence[Matrix], test: Indices) -> Vector:
        """Return the mean loss on each copy of the test rows, of all classes or of one."""
        rows, positive = np.vstack(copies), self.truth.positive
        codes = np.tile(self.truth.codes[test], len(copies))
        if positive is not None:
            codes = (codes == positive).astype(np.intp)
        if hasattr(model, "predict_proba"):
            shares = np.asarray(model.predict_proba(rows))
            if positive is not None:
                own = shares[:, positive]
                shares = np.column_stack([1.0 - own, own])
            losses = brier_scores(codes, shares)
        else:
            predicted = model.predict(rows)
            losses = (predicted if positive is None else predicted == positive) != codes
        means: Vector = np.average(
            losses.reshape(len(copies), -1), weights=self.truth.weights[test], axis=1
        )
        return means

    def _predicted(self, models: Sequence[Any]) -> HeldOut:
        """Return what the models of all splits say about their test rows."""
        shape = self._sample.n_repeats, len(self.truth.codes)
        found: dict[str, AnyArray] = {}
        for split, (model, (_, test)) in enumerate(zip(models, self._splits, strict=True)):
            for kind, values in self._said(model, self._sample.X[test]).items():
                every = found.setdefault(kind, np.zeros((*shape, *values.shape[1:]), values.dtype))
                every[split // self._sample.n_folds, test] = values
        return HeldOut(
            found["predictions"], found.get("probabilities"), found.get("scores"), self._folds
        )

    def _said(self, model: Any, X: Any) -> dict[str, AnyArray]:
        """Return what a model says about rows: see `HeldOut`."""
        said: dict[str, AnyArray] = {"predictions": np.asarray(model.predict(X)).astype(np.intp)}
        if hasattr(model, "predict_proba"):
            said["probabilities"] = np.asarray(model.predict_proba(X), dtype=np.float64)
        if has_class_scores(model):
            said["scores"] = class_scores(model, X)
        elif "probabilities" in said:
            said["scores"] = said["probabilities"]
        elif len(self.truth.classes) == 2 and hasattr(model, "decision_function"):
            decision = np.asarray(model.decision_function(X), dtype=np.float64)
            said["scores"] = np.column_stack([-decision, decision])
        return said

    def _fold_means(self, name: str) -> dict[str, Vector]:
        """Return the mean loss over the test rows of each split, by measure, where there is one."""
        codes, said = self.truth.codes, self.held_out[name]
        losses: dict[str, AnyArray] = {"error": said.predictions != codes}
        if said.probabilities is not None:
            losses["brier"] = brier_scores(codes, said.probabilities)
        if has_class_scores(self._models[name][0]) and said.scores is not None:
            losses["loss"] = brier_scores(codes, said.scores)
        means = {measure: np.zeros(len(self._splits)) for measure in losses}
        for split, (_, test) in enumerate(self._splits):
            repeat, weights = split // self._sample.n_folds, self.truth.weights[test]
            for measure, values in losses.items():
                means[measure][split] = np.average(values[repeat, test], weights=weights)
        return means

    def _majority(self) -> HeldOut:
        """Return predictions of the largest class, and the shares of the classes."""
        codes, n_classes = self.truth.codes, len(self.truth.classes)
        shares = np.zeros((self._sample.n_repeats, len(codes), n_classes))
        weighted = np.eye(n_classes)[codes] * self.truth.weights[:, None]
        for split, (train, test) in enumerate(self._splits):
            counts = weighted[train[train < self._sample.n_labeled]].sum(axis=0)
            shares[split // self._sample.n_folds, test] = counts / counts.sum()
        return HeldOut(shares.argmax(axis=2), shares, shares, self._folds)

    def _difference(self, name: str, measure: str, other: str, n_tests: int) -> Estimate | None:
        """Return the difference of a method from another one; None if it is not known."""
        if name == other or not all(measure in self._by_fold[each] for each in (name, other)):
            return None
        values = self._by_fold[name][measure] - self._by_fold[other][measure]
        most = 1.0 if measure == "error" else np.inf  # shares differ by no more
        share = self._sample.test_share
        return mean_over_folds(values, share, n_tests=n_tests, least=-most, most=most)

    def _facts(self, name: str, guarantee: str) -> MethodFacts:
        names = list(self.held_out)
        n_tests = 1 if name in names[:N_OURS] else self._n_tests
        losses = self._by_fold[name].get("loss")
        return MethodFacts(
            name,
            guarantee,
            numbers(self.truth, self.held_out[name]),
            None if losses is None else mean_over_folds(losses, self._sample.test_share),
            *(self._difference(name, measure, names[0], n_tests) for measure in MEASURES),
        )

    def _better(self, names: Sequence[str]) -> tuple[str, ...]:
        ours = [name for k, name in enumerate(names) if k < N_OURS or name == STACKED]
        found: list[tuple[float, float, str]] = []
        for name in (each for each in names if each not in ours):
            signs = [
                [
                    0 if difference is None else difference.sign
                    for measure in ("error", "brier")
                    for difference in [self._difference(name, measure, other, self._n_tests)]
                ]
                for other in ours
            ]
            if all(min(each) < 0 and max(each) <= 0 for each in signs):
                means = {measure: each.mean() for measure, each in self._by_fold[name].items()}
                found.append((means.get("brier", np.inf), means["error"], name))
        return tuple(name for *_, name in sorted(found))

    def _words(self, methods: Sequence[MethodFacts]) -> Iterator[str]:
        """Yield what follows, honestly: errors, quadratic loss, and how little may be known."""
        base, *others = methods
        clear = [
            f"{each.method} ({points(each.error_difference.value, sign=True)} percentage points)"
            for each in others
            if each.error_difference is not None and each.error_difference.sign
        ]
        if clear:
            yield (
                f"On held-out rows, the error differs from that of the {base.method} method by "
                f"more than chance would explain: {listed(clear)}."
            )
        else:
            yield (
                f"No method's error on held-out rows differs from that of the {base.method} method "
                "by more than chance would explain."
            )
        for each in others:
            if each.guarantee != "none" and each.loss_difference is not None:
                yield (
                    "In squared loss per held-out row, which the guarantee is about, the "
                    f"{each.method} method differs from the {base.method} one by "
                    f"{interval(each.loss_difference, sign=True)}."
                )
        yield from fold_words(self.truth.classes, self.truth.codes, self._sample.n_folds)
        for name in SELF_TAUGHT:
            if name in self._models:
                yield from self._collapse(name, self._models[name])

    def _collapse(self, name: str, models: Sequence[Any]) -> Iterator[str]:
        """Say it if most fits of a method give nearly all unlabeled rows to one class."""
        n_labeled, found = self._sample.n_labeled, Counter[int | None]()
        for model, (train, _) in zip(models, self._splits, strict=True):
            predicted = np.asarray(model.predict(self._sample.X[n_labeled:])).astype(np.intp)
            found[collapsed_to(predicted, self.truth.codes[train[train < n_labeled]])] += 1
        code, n_collapsed = found.most_common(1)[0]
        if code is not None and 2 * n_collapsed > len(models):
            yield (
                f"{name} has collapsed: in {n_collapsed} of {len(models)} fits it gives "
                f"{self.truth.classes[code]!r} to nearly all unlabeled rows."
            )


def _shuffled(rows: Matrix, features: Indices, rng: np.random.Generator) -> Matrix:
    shuffled = rows.copy()
    shuffled[:, features] = rows[rng.permutation(len(rows))][:, features]
    return shuffled
