"""Fits and scores of a learning curve: what both curves have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from neverworse._typing import AnyArray, Indices, Matrix, Vector
from neverworse.estimators import weights_for
from neverworse.model_selection._curve_sizes import stratified_order
from neverworse.model_selection._labeled import is_continuous, labeled_rows
from neverworse.model_selection._scorer import labeled_scorer
from neverworse.model_selection._split import LabeledKFold, StratifiedLabeledKFold

LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class LearningCurve:
    """What `unlabeled_learning_curve` and `labeled_learning_curve` return.

    Attributes
    ----------
    rows : {"unlabeled", "labeled"}
        Which training rows grow in number.
    sizes : array of shape (n_sizes,)
        How many of them there were, ascending.
    test_scores : array of shape (n_sizes, n_splits), or dict of str to such arrays
        Scores on the labeled rows that were held out, one column for each split: all folds of the
        first repeat, then those of the second. A dict if several scores were asked for.
    fit_times : array of shape (n_sizes, n_splits)
        Seconds that each fit took.
    n_others : array of shape (n_splits,)
        Training rows of the other kind in each split, the same for all sizes.
    n_tests : array of shape (n_splits,)
        Test rows in each split.
    n_repeats : int
    """

    rows: Literal["unlabeled", "labeled"]
    sizes: Indices
    test_scores: Any
    fit_times: Matrix
    n_others: Indices
    n_tests: Indices
    n_repeats: int


@dataclass(frozen=True)
class Split:
    """Positions of training rows, in the order in which they join, and of test rows."""

    labeled: Indices
    unlabeled: Indices
    test: Indices


@dataclass(frozen=True)
class CurveRun:
    """What is fitted, to which rows, and how it is scored."""

    estimator: Any
    X: Any
    y: Any
    weights: Vector | None
    scorers: dict[str, Any] | Any
    missing_label: Any
    labeled: Indices
    known: AnyArray

    @classmethod
    def prepare(
        cls, estimator: Any, X: Any, y: Any, sample_weight: Any, scoring: Any, missing_label: Any
    ) -> CurveRun:
        X, y = indexable(X, y)
        labeled, known = labeled_rows(
            y, missing_label, "A learning curve is scored on labeled rows: label some."
        )
        weights = None if sample_weight is None else weights_for([estimator], X, sample_weight)
        # Test labels are all known, so that only null values could mark others.
        scorers = labeled_scorer(scoring, missing_label=None)
        return cls(estimator, X, y, weights, scorers, missing_label, labeled, known)

    def splits(self, cv: Any, groups: Any, n_repeats: int, random_state: Any) -> Iterator[Split]:
        """Yield all splits of all repeats."""
        if n_repeats < 1:
            raise ValueError(f"n_repeats={n_repeats} must be 1 at least.")
        rng = check_random_state(random_state)
        n_rows = _num_samples(self.X)
        unlabeled = np.setdiff1d(np.arange(n_rows), self.labeled, assume_unique=True)
        for _ in range(n_repeats):
            splitter = self._splitter(cv, rng)
            order = rng.permutation(unlabeled)
            for train, test in splitter.split(self.X, self.y, groups):
                trains = np.zeros(n_rows, bool)
                trains[train] = True
                joins = trains[order]
                tested = np.intersect1d(test, self.labeled)
                if not len(tested):
                    raise ValueError(
                        "cv has a test fold without a labeled row. Pass a number of folds, or a "
                        "splitter of neverworse.model_selection: all its test rows are labeled."
                    )
                # Unlabeled rows may be many: no copy for each split if all of them train.
                others = order if joins.all() else order[joins]
                yield Split(self._labeled_order(trains, rng), others, tested)

    def _splitter(self, cv: Any, rng: np.random.RandomState) -> Any:
        if cv is not None and not isinstance(cv, int):
            return check_cv(cv)
        kind = LabeledKFold if is_continuous(self.known) else StratifiedLabeledKFold
        return kind(
            5 if cv is None else cv,
            shuffle=True,
            random_state=rng.randint(LARGEST_SEED),
            missing_label=self.missing_label,
        )

    def _labeled_order(self, trains: AnyArray, rng: np.random.RandomState) -> Indices:
        chosen = trains[self.labeled]
        strata = np.zeros(np.count_nonzero(chosen), np.intp)
        if not is_continuous(self.known):
            strata = np.unique(self.known[chosen], return_inverse=True)[1]
        return self.labeled[chosen][stratified_order(strata, rng)]

    def curve(
        self,
        rows: Literal["unlabeled", "labeled"],
        sizes: Indices,
        splits: list[Split],
        training: Callable[[Split, int], Indices],
        n_others: Indices,
        n_repeats: int,
        n_jobs: int | None,
    ) -> LearningCurve:
        """Fit and score everything."""
        results = Parallel(n_jobs=n_jobs)(
            delayed(self._fit_and_score)(np.sort(training(split, size)), split.test)
            for size in sizes.tolist()
            for split in splits
        )
        shape = len(sizes), len(splits)

        def table(values: list[Any]) -> Matrix:
            return np.array(values, dtype=np.float64).reshape(shape)

        scores = [score for score, _ in results]
        several = isinstance(scores[0], dict)
        return LearningCurve(
            rows,
            sizes,
            {name: table([s[name] for s in scores]) for name in scores[0]}
            if several
            else table(scores),
            table([seconds for _, seconds in results]),
            n_others,
            np.array([len(split.test) for split in splits]),
            n_repeats,
        )

    def _fit_and_score(self, train: Indices, test: Indices) -> tuple[Any, float]:
        model = clone(self.estimator)
        X, y = _safe_indexing(self.X, train), _safe_indexing(self.y, train)
        weights = {} if self.weights is None else {"sample_weight": self.weights[train]}
        start = perf_counter()
        model.fit(X, y, **weights)
        seconds = perf_counter() - start
        X_test = _safe_indexing(self.X, test)
        y_test = self.known[np.searchsorted(self.labeled, test)]

        def score(scorer: Any) -> Any:
            if self.weights is None or not scorer._accept_sample_weight():
                return scorer(model, X_test, y_test)
            return scorer(model, X_test, y_test, sample_weight=self.weights[test])

        if isinstance(self.scorers, dict):
            return {name: score(scorer) for name, scorer in self.scorers.items()}, seconds
        return score(self.scorers), seconds
