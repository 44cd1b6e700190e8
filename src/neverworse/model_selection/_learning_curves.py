"""Scores on held-out labeled rows as training gets more unlabeled, or more labeled, rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from neverworse._typing import Indices
from neverworse.model_selection._curve_run import CurveRun, LearningCurve, Split
from neverworse.model_selection._curve_sizes import chosen_sizes
from neverworse.model_selection._labeled import is_continuous


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

    It answers whether more of them are worth collecting. In every split, some labeled rows are held
    out to be scored. Training rows are all other labeled rows, and a random subset of the unlabeled
    ones. Within a repeat, all folds share these subsets, and each contains the smaller ones.

    Parameters
    ----------
    estimator : classifier or regressor
        Cloned, and fitted to labeled and unlabeled rows.
    X : array-like or sparse matrix of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Labels, or targets of a regression, with a marker where there is none.
    unlabeled_sizes : array-like, default=None
        Integers: numbers of unlabeled rows, 0 included. Floats: shares, above 0 and at most 1, of
        those that are there. None: all of them, and five times half as many.
    cv : int, splitter, iterable or None, default=None
        An integer is a number of folds, None is 5: of `StratifiedLabeledKFold`, or of
        `LabeledKFold` for a regression, shuffled anew in every repeat. With anything else,
        unlabeled rows train only where the splitter puts them in the training fold, and are never
        scored.
    n_repeats : int, default=5
        How often all folds are scored, with new random subsets.
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
        How many fits run at the same time, as in scikit-learn.

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

    def training(split: Split, size: int) -> Indices:
        return np.concatenate([split.labeled, split.unlabeled[:size]])

    run = CurveRun.prepare(estimator, X, y, sample_weight, scoring, missing_label)
    splits = list(run.splits(cv, groups, n_repeats, random_state))
    n_max = min(len(split.unlabeled) for split in splits)
    if n_max == 0:
        raise ValueError(
            "There are no unlabeled rows in training, so that there is nothing to grow. Pass "
            "unlabeled rows too, marked in y, or use labeled_learning_curve."
        )
    sizes = chosen_sizes("unlabeled_sizes", unlabeled_sizes, 0, n_max, 6)
    n_others = np.array([len(split.labeled) for split in splits])
    return run.curve("unlabeled", sizes, splits, training, n_others, n_repeats, n_jobs)


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

    It answers whether more of them are worth labeling. In every split, some labeled rows are held
    out to be scored. Training rows are all unlabeled rows, and a random subset of the other labeled
    ones, with the same share of each class as far as possible and every class at least once. Each
    subset contains the smaller ones. Labeled rows outside of it are left out, also as unlabeled
    rows.

    Parameters
    ----------
    estimator, X, y
        See `unlabeled_learning_curve`.
    labeled_sizes : array-like, default=None
        Integers: numbers of labeled rows, at least one for each class. Floats: shares, above 0
        and at most 1, of those in the smallest training fold. None: all of them, and four times
        half as many.
    cv, n_repeats, groups, scoring, sample_weight, missing_label, random_state, n_jobs
        See `unlabeled_learning_curve`.

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
    run = CurveRun.prepare(estimator, X, y, sample_weight, scoring, missing_label)
    splits = list(run.splits(cv, groups, n_repeats, random_state))
    n_max = min(len(split.labeled) for split in splits)
    n_classes = 1 if is_continuous(run.known) else len(np.unique(run.known))
    sizes = chosen_sizes("labeled_sizes", labeled_sizes, n_classes, n_max, 5)

    def training(split: Split, size: int) -> Indices:
        return np.concatenate([split.labeled[:size], split.unlabeled])

    n_others = np.array([len(split.unlabeled) for split in splits])
    return run.curve("labeled", sizes, splits, training, n_others, n_repeats, n_jobs)
