"""Classifiers of scikit-learn that choose their settings by cross-validation on labeled rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold
from sklearn.semi_supervised import SelfTrainingClassifier
from threadpoolctl import threadpool_limits

from neverworse._typing import AnyArray, Vector
from neverworse.estimators import DelegatingClassifier, LabeledRows

MOST_FOLDS = 3  # few labels are typical, and each method is tuned in every fold of a comparison
N_TREES = 50


class TunedClassifier(DelegatingClassifier):
    """Fit a classifier of scikit-learn to the labeled rows, with the settings that they prefer.

    Settings are compared by the squared error of the probabilities: of forests on the rows that
    each tree left out (out of bag), otherwise in cross-validation with three folds, or fewer if a
    class has fewer labels. With one label of a class nothing can be compared, and the first
    settings are taken.

    Parameters
    ----------
    estimator : classifier
    grid : mapping of str to sequence
        Settings to choose from, as in `GridSearchCV`.
    self_training : bool, default=False
        Whether the classifier, with its settings from the labeled rows, learns from the unlabeled
        rows as well, by scikit-learn's `SelfTrainingClassifier`. It takes no weights of rows.
    missing_label : "auto" or scalar, default="auto"
    random_state : int, default=0
        Of the folds.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    estimator_ : classifier
        Fitted; it makes the predictions.
    best_params_ : dict
        The settings that were chosen.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **DelegatingClassifier._parameter_constraints,
        "grid": [dict],
        "self_training": ["boolean"],
        "random_state": "no_validation",
    }

    best_params_: dict[str, Any]

    def __init__(
        self,
        estimator: Any,
        grid: Mapping[str, Sequence[Any]],
        *,
        self_training: bool = False,
        missing_label: Any = "auto",
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.self_training = self_training
        self.missing_label = missing_label
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the settings, and fit with them.

        Parameters
        ----------
        X : array or sparse array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        """
        # With so few rows, threads that wait for each other take twenty times as long.
        with (
            self._fitting(X, None if self.self_training else sample_weight) as (_, X, weights),
            threadpool_limits(1),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", ConvergenceWarning)  # what is tested is what counts
            rows = LabeledRows.split(X, y, self.missing_label, weights)
            labeled = rows.labeled()
            self.best_params_ = self._best(labeled)
            tuned = clone(self.estimator).set_params(**self.best_params_)
            if self.self_training:
                codes = np.where(rows.unlabeled, -1, rows.codes)
                learner = SelfTrainingClassifier(tuned).fit(rows.X, codes)
                self.estimator_ = learner.estimator_
            else:
                self.estimator_ = labeled.fit(tuned)
            self.classes_ = rows.classes
        return self

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each row."""
        predicted: AnyArray = super().predict(X)
        return self.classes_[predicted.astype(np.intp)] if self.self_training else predicted

    def _best(self, rows: LabeledRows) -> dict[str, Any]:
        """Return the settings that do best on labeled rows."""
        n_folds = min(MOST_FOLDS, int(np.bincount(rows.codes).min()))
        if n_folds < 2:
            return {name: values[0] for name, values in self.grid.items()}
        if hasattr(self.estimator, "oob_score"):
            forest = clone(self.estimator).set_params(oob_score=True)
            return min(
                ParameterGrid(dict(self.grid)),
                key=lambda each: _out_of_bag(rows, forest.set_params(**each)),
            )
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=self.random_state)
        search = GridSearchCV(
            self.estimator,
            dict(self.grid),
            scoring=_score,
            cv=folds,
            refit=False,
            error_score="raise",
        )
        weights = {} if rows.weights is None else {"sample_weight": rows.weights}
        search.fit(rows.X, rows.codes, **weights)
        best: dict[str, Any] = search.best_params_
        return best


def _out_of_bag(rows: LabeledRows, forest: Any) -> float:
    """Return the mean squared error of a forest on the rows that its trees left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of rows that no tree left out
        shares = rows.fit(forest).oob_decision_function_
    errors = np.sum((shares - np.eye(len(rows.classes))[rows.codes]) ** 2, axis=1)
    known = np.isfinite(errors)
    if not known.any():
        return np.inf
    weights = np.ones(len(errors)) if rows.weights is None else rows.weights
    return float(np.average(errors[known], weights=weights[known]))


def _score(model: Any, X: Any, y: Vector, sample_weight: Vector | None = None) -> float:
    """Return minus the mean squared error of the probabilities."""
    errors = model.predict_proba(X) - (np.asarray(y)[:, None] == model.classes_)
    return -float(np.average(np.sum(errors**2, axis=1), weights=sample_weight))


def tuned_classifiers(
    class_weight: Any = None, missing_label: Any = "auto", seed: int = 0
) -> dict[str, TunedClassifier]:
    """Return the classifiers that people would try instead: linear, forest, boosting.

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        As in scikit-learn; all of them take it.
    missing_label : "auto" or scalar
    seed : int
    """
    shared = {"missing_label": missing_label, "random_state": seed}
    logistic = LogisticRegression(class_weight=class_weight, max_iter=1000)
    penalties = {"C": [1.0, 0.001, 0.01, 0.1, 10.0]}
    return {
        "logistic regression": TunedClassifier(logistic, penalties, **shared),
        "random forest": TunedClassifier(
            RandomForestClassifier(N_TREES, class_weight=class_weight, random_state=seed),
            {"min_samples_leaf": [1, 5]},
            **shared,
        ),
        "gradient boosting": TunedClassifier(
            # Its usual leaves of 20 rows would leave nothing to split of 40 labels.
            HistGradientBoostingClassifier(
                max_iter=50,
                min_samples_leaf=5,
                early_stopping=False,
                class_weight=class_weight,
                random_state=seed,
            ),
            {"learning_rate": [0.1, 0.03]},
            **shared,
        ),
        "self-training": TunedClassifier(logistic, penalties, self_training=True, **shared),
    }
