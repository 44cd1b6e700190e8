"""Methods compared on labeled rows that were held out, and the columns that each relies on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse._words import listed, points
from neverworse.estimators import class_scores, has_class_scores
from neverworse.model_selection import RepeatedStratifiedLabeledKFold
from neverworse.study._held_out import (
    HeldOut,
    Mean,
    Progress,
    Sample,
    Truth,
    brier_scores,
    draw_sample,
    fold_words,
    numbers,
    silent,
)
from neverworse.study._methods import (
    STACKED,
    NearestLabelSpreading,
    SteppedClassifier,
    collapsed_to,
    fit_fold,
    guarantee_of,
    learns_from_itself,
    reason_of,
)
from neverworse.study._study import (
    ColumnImportance,
    Comparison,
    Estimate,
    Importance,
    MethodFacts,
)

USUAL_METHODS = 3
MOST_NEIGHBOURS = 3_000  # unlabeled rows, if a method looks at all pairs of rows
N_OURS = 2  # the first two methods, without which there is no comparison
MEASURES = ("error", "brier", "loss")
SMALLEST_LOSS = 5e-5  # per row; less is not shown
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
    unless it is one of the first two.

    Intervals of differences allow for training folds that overlap, see `Mean`. Those of the second
    method are right with a probability of 95 %; those of all further ones together.

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
        self._methods = methods
        self._fits: dict[str, list[tuple[Any, float]]] = {}  # models and seconds, of each split
        self._by_fold: dict[str, dict[str, Vector]] = {}  # means over test rows, by measure
        self._collapsed: dict[str, Counter[str]] = {}  # fits, by the class that they give to all
        self.held_out: dict[str, HeldOut] = {}
        failures = self._fit_all(notify)
        names = list(self.held_out)
        self._n_tests = max(1, 2 * (len(names) - 2))  # errors and Brier scores of further methods
        facts = [self._facts(name) for name in names]
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
            " ".join(self._words(facts, failures, len(methods) - N_OURS)),
        )

    def importance(
        self, name: str, columns: Sequence[str], notify: Progress = silent
    ) -> Importance:
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
        increases = {column: np.zeros(self._sample.n_folds) for column in of_column}
        models = [model for model, _ in self._fits[name][: self._sample.n_folds]]  # one repeat
        for fold, (model, (_, test)) in enumerate(zip(models, self._splits, strict=False)):
            rows = self._sample.X[test]
            rows = rows.toarray() if hasattr(rows, "toarray") else np.array(rows)
            (before,) = self._losses(model, [rows], test)
            # Many small predictions take much longer than a large one.
            n_together = max(1, MOST_NUMBERS // (N_SHUFFLES * rows.size))
            for start in range(0, len(of_column), n_together):
                some = list(of_column)[start : start + n_together]
                copies = [
                    _shuffled(rows, of_column[column], rng)
                    for column in some
                    for _ in range(N_SHUFFLES)
                ]
                after = self._losses(model, copies, test).reshape(len(some), N_SHUFFLES)
                for column, mean in zip(some, after.mean(axis=1), strict=True):
                    increases[column][fold] = mean - before
            notify("importance of columns", (fold + 1) / len(models))
        found = [
            ColumnImportance(column, self._mean(values).estimate())
            for column, values in increases.items()
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
            shares = self._shares(model, rows)
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

    def _fit_all(self, notify: Progress) -> dict[str, str]:
        """Fit all methods, and return those that failed with the reason."""
        failures: dict[str, str] = {}
        n_fits = len(self._splits) * len(self._methods)
        for k, (name, method) in enumerate(self._methods.items()):
            try:
                for split in self._fit(name, method):
                    notify("comparing methods", (k * len(self._splits) + split + 1) / n_fits)
            except Exception as error:
                if k < N_OURS:
                    raise
                failures[name] = reason_of(error)
        return failures

    def _fit(self, name: str, method: Any) -> Iterator[int]:
        """Fit a method to all splits, and yield each that is done."""
        shape = self._sample.n_repeats, len(self.truth.codes)
        found = {"predictions": np.zeros(shape, dtype=np.intp)}
        means = {measure: np.full(len(self._splits), np.nan) for measure in MEASURES}
        fits: list[tuple[Any, float]] = []
        for split, (train, test) in enumerate(self._splits):
            fits.append(self._model(method, split))
            model, _ = fits[-1]
            self._check_collapse(name, model, train)
            said = self._said(model, self._sample.X[test])
            codes, weights = self.truth.codes[test], self.truth.weights[test]
            losses = {"error": said["predictions"] != codes}
            if "probabilities" in said:
                losses["brier"] = brier_scores(codes, said["probabilities"])
            if has_class_scores(model):
                losses["loss"] = brier_scores(codes, said["scores"])
            for measure, values in losses.items():
                means[measure][split] = np.average(values, weights=weights)
            for kind, values in said.items():
                if kind not in found:
                    found[kind] = np.full((*shape, values.shape[-1]), np.nan)
                found[kind][split // self._sample.n_folds, test] = values
            yield split
        self._fits[name], self._by_fold[name] = fits, means
        self.held_out[name] = HeldOut(
            found["predictions"], found.get("probabilities"), found.get("scores"), self._folds
        )

    def _model(self, method: Any, split: int) -> tuple[Any, float]:
        """Return a method fitted to a split, and how long that took; parts are fitted once."""
        if isinstance(method, SteppedClassifier):
            known = {id(self._methods[name]): fits[split] for name, fits in self._fits.items()}
            fits = [known.get(id(part)) or self._model(part, split) for part in method.parts]
            return method.of(*(model for model, _ in fits)), sum(seconds for _, seconds in fits)
        start = perf_counter()
        model = fit_fold(method, self._sample, self._splits[split][0])
        return model, perf_counter() - start

    def _said(self, model: Any, X: Any) -> dict[str, AnyArray]:
        """Return what a model says about rows: see `HeldOut`."""
        said: dict[str, AnyArray] = {"predictions": np.asarray(model.predict(X)).astype(np.intp)}
        if hasattr(model, "predict_proba"):
            said["probabilities"] = self._shares(model, X)
        if has_class_scores(model):
            said["scores"] = class_scores(model, X)
        elif "probabilities" in said:
            said["scores"] = said["probabilities"]
        elif len(self.truth.classes) == 2 and hasattr(model, "decision_function"):
            decision = np.asarray(model.decision_function(X), dtype=np.float64)
            said["scores"] = np.column_stack([-decision, decision])
        return said

    def _shares(self, model: Any, X: Any) -> AnyArray:
        """Return probabilities of all classes; a method need not know all, nor in this order."""
        found = model.predict_proba(X)
        shares = np.zeros((len(found), len(self.truth.classes)))
        shares[:, np.asarray(model.classes_, dtype=np.intp)] = found
        return shares

    def _check_collapse(self, name: str, model: Any, train: Indices) -> None:
        """Count a fit whose model gives nearly all unlabeled rows to one class."""
        if learns_from_itself(model):
            n_labeled = self._sample.n_labeled
            predicted = np.asarray(model.predict(self._sample.X[n_labeled:])).astype(np.intp)
            to = collapsed_to(predicted, self.truth.codes[train[train < n_labeled]])
            if to is not None:
                self._collapsed.setdefault(name, Counter())[self.truth.classes[to]] += 1

    def _majority(self) -> HeldOut:
        """Return predictions of the largest class, and the shares of the classes."""
        codes, n_classes = self.truth.codes, len(self.truth.classes)
        shares = np.zeros((self._sample.n_repeats, len(codes), n_classes))
        weighted = np.eye(n_classes)[codes] * self.truth.weights[:, None]
        for split, (train, test) in enumerate(self._splits):
            counts = weighted[train[train < self._sample.n_labeled]].sum(axis=0)
            shares[split // self._sample.n_folds, test] = counts / counts.sum()
        return HeldOut(shares.argmax(axis=2), shares, shares, self._folds)

    def _mean(self, values: Vector) -> Mean:
        return Mean.over_folds(values, self._sample.test_share)

    def _difference(self, name: str, measure: str, other: str, n_tests: int) -> Estimate | None:
        """Return the difference of a method from another one; None if it is not known."""
        values = self._by_fold[name][measure] - self._by_fold[other][measure]
        if np.isnan(values).any():
            return None
        most = 1.0 if measure == "error" else np.inf  # shares differ by no more
        return self._mean(values).estimate(n_tests, least=-most, most=most)

    def _facts(self, name: str) -> MethodFacts:
        first, second, *_ = [*self.held_out, ""]
        n_tests = 1 if name == second else self._n_tests
        losses = self._by_fold[name]["loss"]
        return MethodFacts(
            name,
            guarantee_of(self._methods[name]),
            float(np.mean([seconds for _, seconds in self._fits[name]])),
            numbers(self.truth, self.held_out[name]),
            None if np.isnan(losses).any() else self._mean(losses).estimate(),
            *(
                None if name == first else self._difference(name, measure, first, n_tests)
                for measure in MEASURES
            ),
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
                error, brier = (self._by_fold[name][each].mean() for each in ("error", "brier"))
                found.append((np.inf if np.isnan(brier) else brier, error, name))
        return tuple(name for *_, name in sorted(found))

    def _words(
        self, methods: Sequence[MethodFacts], failures: Mapping[str, str], n_others: int
    ) -> Iterator[str]:
        """Yield what follows, honestly: errors, quadratic loss, and how little may be known."""
        base, *others = methods
        yield _errors(base, others)
        for each in others:
            if each.guarantee != "none" and each.loss_difference is not None:
                yield _loss(each.method, each.loss_difference, base.method)
        differences = [each.error_difference for each in others]
        widest = max((each.margin for each in differences if each is not None), default=0.0)
        if widest:
            yield (
                f"With {self._sample.rows_in_words}, differences between error rates are known to "
                f"within about ±{points(widest)} percentage points."
            )
        yield from fold_words(self.truth.classes, self.truth.codes, self._sample.n_folds)
        n_fits = len(self._splits)
        for method, counts in self._collapsed.items():
            name, n_collapsed = max(counts.items(), key=lambda pair: pair[1])
            if 2 * n_collapsed > n_fits:
                yield (
                    f"{method} has collapsed: in {n_collapsed} of {n_fits} fits it gives {name!r} "
                    "to nearly all unlabeled rows."
                )
        if failures and len(failures) == n_others:
            yield "None of the other methods could be fitted."
        for method, reason in failures.items():
            yield f"{method} failed: {reason}"


def _shuffled(rows: Matrix, features: Indices, rng: np.random.Generator) -> Matrix:
    shuffled = rows.copy()
    shuffled[:, features] = rows[rng.permutation(len(rows))][:, features]
    return shuffled


def _errors(base: MethodFacts, others: Sequence[MethodFacts]) -> str:
    clear: dict[int, list[str]] = {-1: [], 0: [], 1: []}
    for each in others:
        found = each.error_difference
        if found is not None:
            change = points(found.value, sign=True)
            clear[found.sign].append(f"{each.method} ({change} percentage points)")
    if not clear[-1] and not clear[1]:
        return (
            f"No method's error on held-out rows differs from that of the {base.method} method by "
            "more than chance would explain."
        )
    parts = [
        f"{kind} errors: {listed(names)}"
        for kind, names in (("fewer", clear[-1]), ("more", clear[1]))
        if names
    ]
    return (
        f"On held-out rows, these differ from the {base.method} method by more than chance would "
        f"explain; {'; '.join(parts)}."
    )


def _loss(method: str, difference: Estimate, base: str) -> str:
    start = f"In squared loss, which the guarantee is about, the {method} method is "
    if max(abs(difference.value), difference.margin) < SMALLEST_LOSS:
        return f"{start}the same as the {base} one."
    way = "lower" if difference.value < 0.0 else "higher"
    change = f"{abs(difference.value):.4f} (±{difference.margin:.4f}) per held-out row"
    if not difference.sign:
        return f"{start}not clearly different: {way} by {change}."
    return f"{start}{way} than the {base} one by {change}."
