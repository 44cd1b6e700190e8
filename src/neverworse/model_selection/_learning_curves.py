"""Scores on held-out labeled rows as training gets more unlabeled, or more labeled, rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, _num_samples

from neverworse._typing import Indices
from neverworse.estimators import is_continuous, weights_for
from neverworse.model_selection._mask import labeled_rows, shuffled_strata
from neverworse.model_selection._split import LabeledKFold, StratifiedLabeledKFold
from neverworse.model_selection._wrappers import labeled_scorer

LARGEST_SEED = 2**31 - 1
N_DEFAULT = {"unlabeled": 6, "labeled": 5}  # sizes, each half of the one before
Rows = Literal["unlabeled", "labeled"]


@dataclass(frozen=True)
class LearningCurve:
    """What `learning_curve` returns; see there."""

    rows: Rows
    sizes: Indices
    test_scores: Any
    n_others: Indices
    n_repeats: int


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    rows: Rows = "unlabeled",
    sizes: Any = None,
    cv: Any = None,
    n_repeats: int = 5,
    groups: Any = None,
    scoring: Any = None,
    sample_weight: Any = None,
    missing_label: Any = "auto",
    random_state: Any = None,
    n_jobs: int | None = None,
) -> LearningCurve:
    """Score an estimator that gets more and more unlabeled, or more and more labeled, rows.

    It shows whether collecting or labeling more rows is worthwhile. In every split, some labeled
    rows are held out to be scored. Training rows are a random subset of the unlabeled rows and all
    other labeled ones, or a random subset of these and all unlabeled rows. Each subset contains the
    smaller ones. One of labeled rows has the same share of each class as far as possible and every
    class at least once; labeled rows outside of it are left out, also as unlabeled rows.

    Parameters
    ----------
    estimator : classifier or regressor
        Cloned, and fitted to labeled and unlabeled rows.
    X : array-like or sparse matrix of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Labels, or targets of a regression, with a marker where there is none.
    rows : {"unlabeled", "labeled"}, default="unlabeled"
        Which training rows grow in number.
    sizes : array-like, default=None
        Integers: numbers of rows; unlabeled ones may be 0, labeled ones at least one for each
        class. Floats: shares, above 0 and at most 1, of the rows in the smallest training fold.
        None: all of them, a half, a quarter, and so on down to 1/32 (labeled: 1/16).
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
        With `rows`; `sizes`, the numbers of rows, ascending; `n_repeats`; `test_scores`, an array
        of shape (n_sizes, n_splits) with scores on the labeled rows that were held out (all folds
        of the first repeat, then those of the second), or a dict of such arrays if several scores
        were asked for; and `n_others`, of shape (n_splits,), the numbers of training rows of the
        other kind, the same for all sizes.

    See Also
    --------
    neverworse.plots.UnlabeledLearningCurveDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse import ProjectedLeastSquaresClassifier
    >>> from neverworse.model_selection import learning_curve
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = rng.normal(size=(1000, 20)) + 0.5 * y[:, None]
    >>> y[200:] = -1
    >>> clf = ProjectedLeastSquaresClassifier()
    >>> curve = learning_curve(clf, X, y, rows="labeled", sizes=[40, 160], random_state=0)
    >>> curve.test_scores.shape
    (2, 25)
    >>> curve.test_scores.mean(axis=1).round(2)
    array([0.81, 0.87])
    """
    if rows not in N_DEFAULT:
        raise ValueError(f"rows={rows!r} must be 'unlabeled' or 'labeled'.")
    if n_repeats < 1:
        raise ValueError(f"n_repeats={n_repeats} must be at least 1.")
    X, y = indexable(X, y)
    weighted = {}
    if sample_weight is not None:
        weighted = {"sample_weight": weights_for([estimator], X, sample_weight)}
    labeled, known = labeled_rows(
        y, missing_label, "A learning curve is scored on labeled rows: label some."
    )
    kfold, strata = LabeledKFold, np.zeros(len(known), np.intp)
    if not is_continuous(known):
        kfold, strata = StratifiedLabeledKFold, np.unique(known, return_inverse=True)[1]
    rng = check_random_state(random_state)
    n_folds = 5 if cv is None else cv if isinstance(cv, int) else None
    splitter: Any = None if n_folds else check_cv(cv)
    splits: list[dict[str, Indices]] = []
    for _ in range(n_repeats):
        if n_folds:
            options = {"shuffle": True, "random_state": rng.randint(LARGEST_SEED)}
            splitter = kfold(n_folds, missing_label=missing_label, **options)
        order = rng.permutation(np.setdiff1d(np.arange(_num_samples(X)), labeled))
        for train, test in splitter.split(X, y, groups):
            chosen, tested = np.isin(labeled, train), np.intersect1d(test, labeled)
            if not len(tested):
                raise ValueError(
                    "cv has a test fold without a labeled row. Pass a number of folds, or a "
                    "splitter of neverworse.model_selection: all its test rows are labeled."
                )
            # Training rows are in the order in which they join.
            split = {"labeled": labeled[chosen][stratified_order(strata[chosen], rng)]}
            split |= {"unlabeled": order[np.isin(order, train)], "test": tested}
            splits.append(split)
    other_rows = "labeled" if rows == "unlabeled" else "unlabeled"
    growing, others = ([split[kind] for split in splits] for kind in (rows, other_rows))
    smallest = 0 if rows == "unlabeled" else int(strata.max()) + 1
    numbers = _sizes(rows, sizes, smallest, min(map(len, growing)))
    several = isinstance(scoring, (list, tuple, dict))
    # Test labels are all known, so that only null values could mark others.
    scorers = labeled_scorer(scoring if several else {"": scoring}, missing_label=None)
    scores = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_score)(
            estimator, X, y, weighted, scorers, np.sort(np.append(grow[:n], other)), split["test"]
        )
        for n in numbers.tolist()
        for grow, other, split in zip(growing, others, splits, strict=True)
    )

    def table(values: list[Any]) -> Any:
        if isinstance(values[0], dict):
            return {name: table([each[name] for each in values]) for name in values[0]}
        return np.array(values, dtype=np.float64).reshape(len(numbers), len(splits))

    tables = table(scores)
    n_others = np.array([len(other) for other in others])
    return LearningCurve(rows, numbers, tables if several else tables[""], n_others, n_repeats)


def _sizes(rows: Rows, sizes: Any, smallest: int, largest: int) -> Indices:
    """Return numbers of rows in ascending order, from numbers, shares of `largest`, or None."""
    if largest < max(1, smallest):
        raise ValueError(
            f"The smallest training fold has {largest} {rows} rows, too few for a curve. Mark "
            "unlabeled rows in y, or label more rows or use more folds, so that each training "
            "fold has labeled rows of all classes."
        )
    given = 0.5 ** np.arange(N_DEFAULT[rows]) if sizes is None else np.asarray(sizes)
    valid = given.ndim == 1 and given.size > 0 and given.dtype.kind in "iuf"
    if valid and given.dtype.kind == "f":
        valid = bool(given.min() > 0.0)
        given = np.maximum(max(1, smallest), np.round(given * largest))
    if not valid or given.min() < smallest or given.max() > largest:
        raise ValueError(
            f"sizes={sizes!r} must be a list of integers from {smallest} to {largest}, numbers of "
            f"{rows} rows in the smallest training fold (with a labeled one of each class), or of "
            "floats above 0 and at most 1, shares of these."
        )
    return np.unique(given).astype(np.intp)


def _fit_and_score(
    estimator: Any, X: Any, y: Any, weighted: Any, scorers: Any, train: Indices, test: Indices
) -> dict[str, Any]:
    model, own = clone(estimator), _check_method_params(X, weighted, train)
    model.fit(_safe_indexing(X, train), _safe_indexing(y, train), **own)
    X_test, y_test = _safe_indexing(X, test), _safe_indexing(y, test)
    own = _check_method_params(X, weighted, test)
    return {
        name: scorer(model, X_test, y_test, **(own if scorer._accept_sample_weight() else {}))
        for name, scorer in scorers.items()
    }


def stratified_order(strata: Indices, rng: np.random.RandomState) -> Indices:
    """Return a random order in which every beginning has all strata in about the same shares.

    The first rows are one of each stratum.
    """
    grouped, rank, counts = shuffled_strata(strata, rng)
    # The i-th of n rows stands for the middle of the i-th of n equal parts.
    place = np.where(rank == 0, -1.0, (rank + 0.5) / np.repeat(counts, counts))
    # Ties between strata are broken at random as well.
    return grouped[np.lexsort((rng.random_sample(len(strata)), place))]
