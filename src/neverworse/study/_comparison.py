"""Methods compared on held-out labeled rows, and the columns that each relies on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse._words import interval, listed, points
from neverworse.estimators import has_class_scores
from neverworse.model_selection import RepeatedStratifiedLabeledKFold
from neverworse.study._held_out import (
    HeldOut,
    Progress,
    Truth,
    brier_scores,
    draw_sample,
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
N_SHUFFLES = 3
MOST_COLUMNS = 200  # whose importance is found; more take too long
MOST_NUMBERS = 2_000_000  # of shuffled rows in memory at a time


class Compared:
    """Methods compared by repeated cross-validation on the labeled rows.

    All others are compared with the first, and the comparison is about the second. All methods get
    the same folds and the same unlabeled rows: `max_unlabeled` at most, drawn at random, and fewer
    if X has many columns or classes, or with label spreading, whose time grows with their square.
    They train in every fold and are never scored. Whatever a method tunes, it tunes in its own
    `fit`, which sees no label of a test row. A method that fails is left out, unless it is one of
    the first two. y has codes of the classes, NaN where unlabeled. `ValueError` if a class has one
    label only.

    Intervals of differences allow for overlapping training folds, see `mean_over_folds`. Those of
    the second method hold with a probability of 95 %; those of all further ones together.

    `better` names methods, besides the first two and the stacked one, that are clearly better than
    all of these in error or Brier score, and not clearly worse in the other. The best Brier score
    comes first; methods without one come last, by error.
    """

    def __init__(
        self,
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
    ) -> None:
        if any(isinstance(method, NearestLabelSpreading) for method in methods.values()):
            max_unlabeled = min(max_unlabeled, MOST_NEIGHBOURS)
        cost = len(methods) / USUAL_METHODS
        sample = draw_sample(X, y, sample_weight, max_unlabeled, seed, fits_per_split=cost)
        truth = Truth.of(sample, classes, positive)
        self._sample, self.truth, self._seed = sample, truth, seed
        folds = RepeatedStratifiedLabeledKFold(
            sample.n_folds, sample.n_repeats, seed, missing_label=np.nan
        )
        self._splits = list(folds.split(sample.X, sample.y))
        self._models: dict[str, list[Any]] = {}  # of each split
        self._by_fold: dict[str, dict[str, Vector]] = {}  # mean losses over test rows, by measure
        self.held_out: dict[str, HeldOut] = {}
        failures: dict[str, str] = {}

        @cache
        def fitted_to(split: int, method: Any) -> Any:
            if isinstance(method, SteppedClassifier):  # its parts may be compared as well
                return clone(method).take([fitted_to(split, part) for part in method.parts])
            return fit_fold(method, sample, self._splits[split][0])

        for k, (name, method) in enumerate(methods.items()):
            notify(f"comparing {name}", k / len(methods))
            try:
                models = [fitted_to(split, method) for split in range(len(self._splits))]
                self.held_out[name] = HeldOut.of(models, self._splits, sample, sample.n_repeats)
            except Exception as error:
                if k < N_OURS:
                    raise
                failures[name] = reason_of(error)
            else:
                self._models[name] = models
                self._by_fold[name] = self._fold_means(name)
        self._n_tests = max(1, 2 * (len(self._models) - 2))  # error and Brier score of others
        facts = [self._facts(name, guarantee_of(methods[name])) for name in self._models]
        self.better = self._better()
        self.comparison = Comparison(
            sample.n_folds,
            sample.n_repeats,
            sample.n_labeled,
            sample.n_unlabeled,
            truth.classes[self._largest],
            numbers(truth, self._majority()),
            tuple(facts),
            failures,
            " ".join(self._words(facts)),
        )

    def importance(self, name: str, columns: Sequence[str]) -> Importance:
        """Return how much worse a method predicts held-out rows if a column is shuffled.

        `columns` has the column of each feature: features of a column are shuffled together. The
        measure is about the positive class, if there is one.
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
        """Return the mean loss on each copy of the test rows."""
        rows, positive = np.vstack(copies), self.truth.positive
        codes = np.tile(self.truth.codes[test], len(copies))
        if hasattr(model, "predict_proba"):
            shares = np.asarray(model.predict_proba(rows))
            if positive is None:
                losses = brier_scores(codes, shares)
            else:
                losses = (shares[:, positive] - (codes == positive)) ** 2
        elif positive is None:
            losses = model.predict(rows) != codes
        else:
            losses = (model.predict(rows) == positive) != (codes == positive)
        weights = self.truth.weights[test]
        return np.average(losses.reshape(len(copies), -1), weights=weights, axis=1)

    def _fold_means(self, name: str) -> dict[str, Vector]:
        """Return the mean loss over the test rows of each split, by measure, where there is one."""
        codes, held_out = self.truth.codes, self.held_out[name]
        splits, weights = held_out.folds.ravel(), self.truth.weights
        losses: dict[str, AnyArray] = {"error": held_out.predictions != codes}
        if held_out.probabilities is not None:
            losses["brier"] = brier_scores(codes, held_out.probabilities)
        if has_class_scores(self._models[name][0]) and held_out.scores is not None:
            losses["loss"] = brier_scores(codes, held_out.scores)
        totals = np.bincount(splits, np.tile(weights, self._sample.n_repeats))
        return {
            measure: np.bincount(splits, (weights * values).ravel()) / totals
            for measure, values in losses.items()
        }

    def _majority(self) -> HeldOut:
        """Predict the largest class for all rows, with the shares of classes as probabilities."""
        models, codes = [], self.truth.codes
        for train, _ in self._splits:
            rows = train[train < self._sample.n_labeled]
            model = DummyClassifier(strategy="prior")
            models.append(model.fit(rows[:, None], codes[rows], self.truth.weights[rows]))
        found = HeldOut.of(models, self._splits, self._sample, self._sample.n_repeats)
        # The largest class of the training rows may be another one in some of the folds.
        return replace(found, predictions=np.full_like(found.predictions, self._largest))

    @property
    def _largest(self) -> int:
        return int(np.bincount(self.truth.codes, self.truth.weights).argmax())

    def _difference(self, name: str, measure: str, other: str, n_tests: int) -> Estimate | None:
        """Return the difference of a method from another one; None if it is not known."""
        ours, theirs = (self._by_fold[each].get(measure) for each in (name, other))
        if name == other or ours is None or theirs is None:
            return None
        most = 1.0 if measure == "error" else np.inf
        share = self._sample.test_share
        return mean_over_folds(ours - theirs, share, n_tests=n_tests, least=-most, most=most)

    def _facts(self, name: str, guarantee: str) -> MethodFacts:
        names = list(self._models)
        n_tests = 1 if name in names[:N_OURS] else self._n_tests
        losses = self._by_fold[name].get("loss")
        return MethodFacts(
            name,
            guarantee,
            numbers(self.truth, self.held_out[name]),
            None if losses is None else mean_over_folds(losses, self._sample.test_share),
            *(
                self._difference(name, measure, names[0], n_tests)
                for measure in ("error", "brier", "loss")
            ),
        )

    def _better(self) -> tuple[str, ...]:
        names = list(self._models)
        ours = [name for k, name in enumerate(names) if k < N_OURS or name == STACKED]

        def is_better(name: str, other: str) -> bool:
            found = (self._difference(name, m, other, self._n_tests) for m in ("error", "brier"))
            signs = [each.sign for each in found if each is not None]
            return min(signs) < 0 and max(signs) <= 0

        def rank(name: str) -> tuple[float, float]:
            means = {measure: each.mean() for measure, each in self._by_fold[name].items()}
            return means.get("brier", np.inf), means["error"]

        others = [name for name in names if name not in ours]
        better = [name for name in others if all(is_better(name, other) for other in ours)]
        return tuple(sorted(better, key=rank))

    def _words(self, methods: Sequence[MethodFacts]) -> Iterator[str]:
        """Yield what follows about errors and quadratic loss, and what weakens it."""
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
        for name in SELF_TAUGHT:
            yield from self._collapse(name, self._models.get(name, []))

    def _collapse(self, name: str, models: Sequence[Any]) -> Iterator[str]:
        """Say it if most fits of a method predict one class for nearly all unlabeled rows."""
        n_labeled, found = self._sample.n_labeled, Counter[int | None]()
        for model, (train, _) in zip(models, self._splits, strict=False):
            predicted = np.asarray(model.predict(self._sample.X[n_labeled:])).astype(np.intp)
            found[collapsed_to(predicted, self.truth.codes[train[train < n_labeled]])] += 1
        for code, n_collapsed in found.items():
            if code is not None and 2 * n_collapsed > len(models):
                yield (
                    f"{name} has collapsed: in {n_collapsed} of {len(models)} fits it gives "
                    f"{self.truth.classes[code]!r} to nearly all unlabeled rows."
                )


def _shuffled(rows: Matrix, features: Indices, rng: np.random.Generator) -> Matrix:
    shuffled = rows.copy()
    shuffled[:, features] = rows[rng.permutation(len(rows))][:, features]
    return shuffled
