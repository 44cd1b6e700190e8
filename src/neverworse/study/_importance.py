"""Which columns a model relies on, whatever kind of model it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from neverworse._typing import Vector
from neverworse.model_selection import RepeatedStratifiedLabeledKFold
from neverworse.study._methods import fitted
from neverworse.study._numbers import brier_scores
from neverworse.study._resampling import Mean
from neverworse.study._sample import draw_sample
from neverworse.study._study import ColumnImportance, Importance

N_SHUFFLES = 3
MOST_UNLABELED = 2_000  # rows that train in every fold
MOST_COLUMNS = 200  # more take too long

Progress = Callable[[int, int], None]


def permutation_importance(
    name: str,
    method: Any,
    X: Any,
    y: Vector,
    columns: Sequence[str],
    *,
    sample_weight: Vector | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Importance:
    """Return how much worse a method predicts held-out rows without what a column says.

    The column is shuffled among the held-out rows of a fold: all of its features together, because
    the indicators of a category say the same thing. What is measured is the Brier score, or the
    error of methods that have no probabilities.

    Parameters
    ----------
    name : str
        Of the method.
    method : classifier
        Unfitted.
    X : array, sparse array or Rows of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        Codes of the classes, NaN where unlabeled.
    columns : sequence of str
        From which column of the table each feature comes.
    sample_weight : array of shape (n_rows,), optional
    seed : int, default=0
    progress : callable, optional
        Called with the number of folds so far and of all folds.

    Raises
    ------
    ValueError
        If a class has one label only, or there are too many columns. The message is for people.
    """
    of_column = {column: np.flatnonzero(np.asarray(columns) == column) for column in columns}
    if len(of_column) > MOST_COLUMNS:
        raise ValueError(f"There are {len(of_column):,} columns, more than {MOST_COLUMNS}.")
    sample = draw_sample(X, y, sample_weight, MOST_UNLABELED, seed)
    folds = RepeatedStratifiedLabeledKFold(sample.n_folds, 1, seed, missing_label=np.nan)
    rng = np.random.default_rng(seed)
    increases: dict[str, list[float]] = {column: [] for column in of_column}
    measure: Literal["Brier score", "error"] = "error"
    for done, (train, test) in enumerate(folds.split(sample.X, sample.y)):
        weights = None if sample.weights is None else sample.weights[train]
        model = fitted(method, sample.X[train], sample.y[train], weights)
        measure = "Brier score" if hasattr(model, "predict_proba") else "error"
        rows = sample.X[test]
        rows = rows.toarray() if hasattr(rows, "toarray") else np.array(rows)
        of_rows = None if sample.weights is None else sample.weights[test]
        codes = sample.y[test].astype(np.intp)
        before = _loss(model, rows, codes, of_rows)
        for column, features in of_column.items():
            losses = []
            for _ in range(N_SHUFFLES):
                shuffled = rows.copy()
                shuffled[:, features] = rows[rng.permutation(len(rows))][:, features]
                losses.append(_loss(model, shuffled, codes, of_rows))
            increases[column].append(float(np.mean(losses)) - before)
        if progress is not None:
            progress(done + 1, sample.n_folds)
    found = [
        ColumnImportance(column, Mean.over_folds(np.array(values), sample.test_share).estimate())
        for column, values in increases.items()
    ]
    found.sort(key=lambda each: -each.increase.value)
    return Importance(name, measure, tuple(found))


def _loss(model: Any, rows: Any, codes: Any, weights: Vector | None) -> float:
    if not hasattr(model, "predict_proba"):
        return float(np.average(model.predict(rows) != codes, weights=weights))
    place = np.searchsorted(model.classes_, codes)
    return float(np.average(brier_scores(place, model.predict_proba(rows)), weights=weights))
