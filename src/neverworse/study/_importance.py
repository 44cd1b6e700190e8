"""What matters most: weights before and after the projection, and columns that a model needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from neverworse._typing import Indices, Matrix, Vector
from neverworse.estimators import ProjectedLeastSquaresClassifier, stored_weights
from neverworse.model_selection import RepeatedStratifiedLabeledKFold
from neverworse.rows import Rows, as_rows
from neverworse.study._methods import fit_fold
from neverworse.study._numbers import brier_scores
from neverworse.study._sample import Mean, Progress, draw_sample, silent
from neverworse.study._study import Coefficient, ColumnImportance, Importance
from neverworse.tables import TablePreparation

N_SHUFFLES = 3
MOST_UNLABELED = 2_000  # rows that train in every fold
MOST_COLUMNS = 200  # more take too long


def permutation_importance(
    name: str,
    method: Any,
    X: Any,
    y: Vector,
    columns: Sequence[str],
    *,
    sample_weight: Vector | None = None,
    positive: int | None = None,
    seed: int = 0,
    told: Progress = silent,
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
    positive : int, optional
        The class that is looked for: it is told from all others together.
    seed : int, default=0
    told : callable

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
        model = fit_fold(method, sample, train)
        measure = "Brier score" if hasattr(model, "predict_proba") else "error"
        rows = sample.X[test]
        rows = rows.toarray() if hasattr(rows, "toarray") else np.array(rows)
        of_rows = None if sample.weights is None else sample.weights[test]
        codes = sample.y[test].astype(np.intp)
        before = _loss(model, rows, codes, of_rows, positive)
        for column, features in of_column.items():
            losses = []
            for _ in range(N_SHUFFLES):
                shuffled = rows.copy()
                shuffled[:, features] = rows[rng.permutation(len(rows))][:, features]
                losses.append(_loss(model, shuffled, codes, of_rows, positive))
            increases[column].append(float(np.mean(losses)) - before)
        told("importance of columns", (done + 1) / sample.n_folds)
    found = [
        ColumnImportance(column, Mean.over_folds(np.array(values), sample.test_share).estimate())
        for column, values in increases.items()
    ]
    found.sort(key=lambda each: -each.increase.value)
    return Importance(name, measure, tuple(found))


def _loss(
    model: Any, rows: Any, codes: Indices, weights: Vector | None, positive: int | None
) -> float:
    """Return the mean loss on test rows, of all classes or of one against all others."""
    if not hasattr(model, "predict_proba"):
        wrong = model.predict(rows) != codes
        if positive is not None:
            wrong = (model.predict(rows) == positive) != (codes == positive)
        return float(np.average(wrong, weights=weights))
    place, shares = np.searchsorted(model.classes_, codes), model.predict_proba(rows)
    if positive is not None:
        own = shares[:, model.classes_ == positive].sum(axis=1)  # it need not know the class
        place, shares = (codes == positive).astype(np.intp), np.column_stack([1.0 - own, own])
    return float(np.average(brier_scores(place, shares), weights=weights))


def coefficients(
    classifier: ProjectedLeastSquaresClassifier,
    preparation: TablePreparation,
    features: Matrix | Rows,
    classes: Sequence[str],
    positive: int | None = None,
) -> tuple[tuple[Coefficient, ...], tuple[Coefficient, ...]]:
    """Return the weights of all features, and the intercepts.

    A weight is what the score gains with one more unit of the feature: a year, a kilogram, or being
    at a level of a category instead of the most frequent one. Times the standard deviation of the
    feature, weights of different features can be compared. The intercept is the score where all
    features are 0: in original units, or if each is counted in standard deviations from its mean,
    which is the score at the mean of all rows. Of two classes, all are those of the positive one,
    which is the second unless it is given.
    """
    two = len(classes) == 2
    shown = [1 if positive is None else positive] if two else list(range(len(classes)))
    means, deviations = _moments(features)
    units, offsets = preparation.units(), preparation.offsets()
    named = list(
        zip(preparation.get_feature_names_out().tolist(), preparation.feature_columns_, strict=True)
    )
    weights, intercepts = [], []
    for k in shown:
        # Scores of two classes add up to 1, and the model has those of the second.
        row, sign, base = (0, 2.0 * k - 1.0, 1.0 - k) if two else (k, 1.0, 0.0)
        models = classifier.supervised_, classifier
        before, after = (sign * model.coef_[row] for model in models)
        values = before / units, after / units, before * deviations, after * deviations
        weights += [
            Coefficient(*words, classes[k], *map(float, of_feature))
            for words, *of_feature in zip(named, *values, strict=True)
        ]
        constants = [base + sign * stored_weights(model).intercept[row] for model in models]
        at_zero, at_mean = (
            [
                float(constant + weight @ place)
                for constant, weight in zip(constants, (before, after), strict=True)
            ]
            for place in (-offsets / units, means)
        )
        intercepts.append(Coefficient("intercept", "", classes[k], *at_zero, *at_mean))
    return tuple(weights), tuple(intercepts)


def _moments(features: Matrix | Rows) -> tuple[Vector, Vector]:
    """Return the means and the standard deviations of the features, without a copy of them."""
    rows = features if isinstance(features, Rows) else as_rows(features)
    mean = rows.weighted_sum(np.ones(rows.n_rows)) / rows.n_rows
    return mean, np.sqrt(np.maximum(rows.squares() / rows.n_rows - mean**2, 0.0))
