"""Scores on held-out labeled rows as training gets more unlabeled, or more labeled, rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from neverworse._typing import Indices, Matrix
from neverworse._words import documented_like
from neverworse.estimators import is_continuous, weights_for
from neverworse.model_selection._mask import labeled_rows, shuffled_strata
from neverworse.model_selection._split import LabeledKFold, StratifiedLabeledKFold
from neverworse.model_selection._wrappers import labeled_scorer

LARGEST_SEED = 2**31 - 1
Rows = Literal["unlabeled", "labeled"]
_OTHER = {"unlabeled": "labeled", "labeled": "unlabeled"}


@dataclass(frozen=True)
class LearningCurve:
    """What `unlabeled_learning_curve` and `labeled_learning_curve` return.

    Attributes
    ----------
    rows : {"unlabeled", "labeled"}
        Which training rows grow in number.
    sizes : array of shape (n_sizes,)
        Their numbers, ascending.
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

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.model_selection import unlabeled_learning_curve
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = np.where(np.arange(60) < 20, X[:, 0] > 0, -1)
    >>> clf = ProjectedLeastSquaresClassifier()
    >>> curve = unlabeled_learning_curve(clf, X, y, unlabeled_sizes=[0, 40], random_state=0)
    >>> curve.rows, curve.test_scores.shape == (2, len(curve.n_tests))
    ('unlabeled', True)
    """

    rows: Rows
    sizes: Indices
    test_scores: Any
    fit_times: Matrix
    n_others: Indices
    n_tests: Indices
    n_repeats: int


def unlabeled_learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    unlabeled_sizes: Any = None,
    cv: Any = None,
    n_repeats: int = 5,
    groups: Any = None,
    scoring: Any = None,
    sample_weight: Any = None,
    missing_label: Any = "auto",
    random_state: Any = None,
    n_jobs: int | None = None,
) -> LearningCurve:
    """Score an estimator that gets more and more unlabeled rows.

    It shows whether collecting more of them is worthwhile. In every split, some labeled rows are
    held out to be scored. Training rows are all other labeled rows, and a random subset of the
    unlabeled ones. Within a repeat, all folds share these subsets, and each contains the smaller
    ones.

    Parameters
    ----------
    estimator : classifier or regressor
        Cloned, and fitted to labeled and unlabeled rows.
    X : array-like or sparse matrix of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Labels, or targets of a regression, with a marker where there is none.
    unlabeled_sizes : array-like, default=None
        Integers: numbers of unlabeled rows; 0 is allowed. Floats: shares of all unlabeled rows,
        above 0 and at most 1. None: all of them, a half, a quarter, and so on down to 1/32.
    cv : int, splitter, iterable or None, default=None
        An integer is a number of folds, None is 5: of `StratifiedLabeledKFold`, or of
        `LabeledKFold` for a regression, reshuffled in every repeat. With anything else,
        unlabeled rows train only where the splitter puts them in the training fold, and are never
        scored.
    n_repeats : int, default=5
        Number of times that all folds are scored, with new random subsets each time.
    groups : array-like of shape (n_rows,), optional
        Passed to the splitter.
    scoring : str, callable, list, tuple, dict or None, default=None
        As in `labeled_scorer`. A callable may return a dict of scores.
    sample_weight : array-like of shape (n_rows,), optional
        Passed to `fit`, and to all scorers that take it.
    missing_label : "auto" or scalar, default="auto"
        What marks unlabeled rows in y, as in `neverworse.LeastSquaresClassifier`.
    random_state : int, RandomState or None, default=None
        Seed. With an int, all estimators get the same folds and the same subsets.
    n_jobs : int, default=None
        Number of parallel jobs, as in scikit-learn.

    Returns
    -------
    curve : LearningCurve

    See Also
    --------
    labeled_learning_curve : The same for labeled rows.
    neverworse.plots.UnlabeledLearningCurveDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.model_selection import unlabeled_learning_curve
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 60)) + 0.3 * y[:, None]
    >>> y[100:] = -1
    >>> curve = unlabeled_learning_curve(
    ...     ProjectedLeastSquaresClassifier(), X, y, unlabeled_sizes=[0, 100, 900], random_state=0
    ... )
    >>> curve.sizes
    array([  0, 100, 900])
    >>> curve.test_scores.shape
    (3, 25)
    >>> curve.test_scores.mean(axis=1).round(2)
    array([0.82, 0.82, 0.82])
    """
    run = _Run(estimator, X, y, sample_weight, scoring, missing_label)
    return run.curve("unlabeled", unlabeled_sizes, cv, groups, n_repeats, random_state, n_jobs)


@documented_like(unlabeled_learning_curve)
def labeled_learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    labeled_sizes: Any = None,
    cv: Any = None,
    n_repeats: int = 5,
    groups: Any = None,
    scoring: Any = None,
    sample_weight: Any = None,
    missing_label: Any = "auto",
    random_state: Any = None,
    n_jobs: int | None = None,
) -> LearningCurve:
    """Score an estimator that gets more and more labeled rows.

    It shows whether labeling more rows is worthwhile. In every split, some labeled rows are held
    out to be scored. Training rows are all unlabeled rows, and a random subset of the other labeled
    ones, with the same share of each class as far as possible and every class at least once. Each
    subset contains the smaller ones. Labeled rows outside of it are left out, also as unlabeled
    rows.

    Parameters
    ----------
    {estimator, X, y}
    labeled_sizes : array-like, default=None
        Integers: numbers of labeled rows, at least one for each class. Floats: shares, above 0
        and at most 1, of those in the smallest training fold. None: all of them, a half, a
        quarter, and so on down to 1/16.
    {cv, n_repeats, groups, scoring, sample_weight, missing_label, random_state, n_jobs}

    Returns
    -------
    curve : LearningCurve

    See Also
    --------
    unlabeled_learning_curve : The same for unlabeled rows.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.model_selection import labeled_learning_curve
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 20)) + 0.5 * y[:, None]
    >>> y[200:] = -1
    >>> curve = labeled_learning_curve(
    ...     ProjectedLeastSquaresClassifier(), X, y, labeled_sizes=[40, 160], random_state=0
    ... )
    >>> curve.test_scores.mean(axis=1).round(2)
    array([0.81, 0.87])
    """
    run = _Run(estimator, X, y, sample_weight, scoring, missing_label)
    return run.curve("labeled", labeled_sizes, cv, groups, n_repeats, random_state, n_jobs)


class _Run:
    """Estimator, rows and scorers of a learning curve."""

    def __init__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, scoring: Any, missing_label: Any
    ) -> None:
        self.estimator = estimator
        self.X, self.y = indexable(X, y)
        self.missing_label = missing_label
        self.labeled, self.known = labeled_rows(
            self.y, missing_label, "A learning curve is scored on labeled rows: label some."
        )
        self.weights = None
        if sample_weight is not None:
            self.weights = weights_for([estimator], self.X, sample_weight)
        # Test labels are all known, so that only null values could mark others.
        self.scorers = labeled_scorer(scoring, missing_label=None)
        self.is_regression = is_continuous(self.known)
        self.strata = np.zeros(len(self.known), np.intp)
        if not self.is_regression:
            self.strata = np.unique(self.known, return_inverse=True)[1]

    def curve(
        self,
        rows: Rows,
        sizes: Any,
        cv: Any,
        groups: Any,
        n_repeats: int,
        random_state: Any,
        n_jobs: int | None,
    ) -> LearningCurve:
        splits = list(self._splits(cv, groups, n_repeats, random_state))
        growing, others = ([split[kind] for split in splits] for kind in (rows, _OTHER[rows]))
        numbers = self._sizes(rows, sizes, min(map(len, growing)))
        results = Parallel(n_jobs=n_jobs)(
            delayed(self._fit_and_score)(np.sort(np.concatenate([grow[:n], other])), split["test"])
            for n in numbers.tolist()
            for grow, other, split in zip(growing, others, splits, strict=True)
        )

        def table(values: list[Any]) -> Any:
            if isinstance(values[0], dict):
                return {name: table([each[name] for each in values]) for name in values[0]}
            return np.array(values, dtype=np.float64).reshape(len(numbers), len(splits))

        return LearningCurve(
            rows,
            numbers,
            table([scores for scores, _ in results]),
            table([seconds for _, seconds in results]),
            np.array([len(other) for other in others]),
            np.array([len(split["test"]) for split in splits]),
            n_repeats,
        )

    def _splits(
        self, cv: Any, groups: Any, n_repeats: int, random_state: Any
    ) -> Iterator[dict[str, Indices]]:
        """Yield labeled and unlabeled training rows, in the order in which they join; test rows."""
        if n_repeats < 1:
            raise ValueError(f"n_repeats={n_repeats} must be at least 1.")
        rng = check_random_state(random_state)
        n_rows = _num_samples(self.X)
        unlabeled = np.setdiff1d(np.arange(n_rows), self.labeled, assume_unique=True)
        for _ in range(n_repeats):
            splitter = self._splitter(cv, rng)
            order = rng.permutation(unlabeled)
            for train, test in splitter.split(self.X, self.y, groups):
                trains = np.zeros(n_rows, bool)
                trains[train] = True
                joins, chosen = trains[order], trains[self.labeled]
                tested = np.intersect1d(test, self.labeled)
                if not len(tested):
                    raise ValueError(
                        "cv has a test fold without a labeled row. Pass a number of folds, or a "
                        "splitter of neverworse.model_selection: all its test rows are labeled."
                    )
                yield {
                    "labeled": self.labeled[chosen][stratified_order(self.strata[chosen], rng)],
                    # They may be many: no copy for each split if all of them train.
                    "unlabeled": order if joins.all() else order[joins],
                    "test": tested,
                }

    def _splitter(self, cv: Any, rng: np.random.RandomState) -> Any:
        if cv is not None and not isinstance(cv, int):
            return check_cv(cv)
        kind = LabeledKFold if self.is_regression else StratifiedLabeledKFold
        return kind(
            5 if cv is None else cv,
            shuffle=True,
            random_state=rng.randint(LARGEST_SEED),
            missing_label=self.missing_label,
        )

    def _sizes(self, rows: Rows, sizes: Any, largest: int) -> Indices:
        """Return numbers of rows in ascending order, from numbers, shares of `largest`, or None.

        The largest is how many such rows the smallest training fold has.
        """
        smallest, n_default = (0, 6) if rows == "unlabeled" else (int(self.strata.max()) + 1, 5)
        if largest < max(1, smallest):
            raise ValueError(
                f"The smallest training fold has {largest} {rows} rows, too few for a curve. Mark "
                "unlabeled rows in y, or label more rows or use more folds, so that each training "
                "fold has labeled rows of all classes."
            )
        given = 0.5 ** np.arange(n_default) if sizes is None else np.asarray(sizes)
        are_shares, are_numbers = given.dtype.kind == "f", given.dtype.kind in "iu"
        low, high = (smallest, largest) if are_numbers else (np.nextafter(0.0, 1.0), 1.0)
        is_list = given.ndim == 1 and given.size > 0 and (are_shares or are_numbers)
        if not is_list or given.min() < low or given.max() > high:
            raise ValueError(
                f"{rows}_sizes={sizes!r} must be a list of integers from {smallest} to {largest}, "
                "numbers of rows in the smallest training fold (with a labeled one of each class), "
                "or of floats above 0 and at most 1, shares of these."
            )
        if are_shares:
            given = np.maximum(max(1, smallest), np.round(given * largest))
        return np.unique(given).astype(np.intp)

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


def stratified_order(strata: Indices, rng: np.random.RandomState) -> Indices:
    """Return a random order in which every beginning has all strata in about the same shares.

    The first rows are one of each stratum.
    """
    grouped, rank, counts = shuffled_strata(strata, rng)
    # The i-th of n rows stands for the middle of the i-th of n equal parts.
    place = np.where(rank == 0, -1.0, (rank + 0.5) / np.repeat(counts, counts))
    # Ties between strata are broken at random as well.
    return grouped[np.lexsort((rng.random_sample(len(strata)), place))]
