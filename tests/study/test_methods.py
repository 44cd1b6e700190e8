"""The methods of a comparison: tuned on labeled rows alone, and told from collapsed ones."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.study._methods import (
    METHODS,
    TUNED,
    TunedClassifier,
    collapsed_to,
    standard_methods,
    tuned_classifier,
)


def rows(n_labeled=40, n=200, seed=0):
    """Real rows, with codes of classes as a table has them."""
    X, y = load_breast_cancer(return_X_y=True)
    chosen = np.random.default_rng(seed).permutation(len(y))[:n]
    X, y = StandardScaler().fit_transform(X)[chosen], y[chosen].astype(float)
    return X, np.where(np.arange(n) < n_labeled, y, np.nan), y


def test_comparisons_have_what_people_would_try_instead():
    projected = ProjectedLeastSquaresClassifier(missing_label=np.nan)
    names = list(standard_methods(projected, METHODS))
    assert names[:3] == ["supervised", "projected", "ICLS"]
    assert set(names[3:]) == {*TUNED, "self-learning", "TSVM", "label spreading"}
    assert list(standard_methods(projected)) == names[:3]


@pytest.mark.parametrize("name", TUNED)
def test_settings_are_chosen_on_labeled_rows_and_predictions_are_good(name):
    X, y, truth = rows()
    method = tuned_classifier(name)
    model = clone(method).fit(X, y)
    assert set(model.best_params_) == set(method.grid)
    assert method.estimator.get_params() == clone(method).estimator.get_params()
    unlabeled = np.isnan(y)
    assert np.mean(model.predict(X[unlabeled]) == truth[unlabeled]) > 0.85
    np.testing.assert_array_equal(model.classes_, [0.0, 1.0])
    shares = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), shares.argmax(axis=1))
    if name != "self-training":
        # Unlabeled rows change nothing, so nothing of them can leak into the choice.
        alone = clone(method).fit(X[~unlabeled], y[~unlabeled])
        np.testing.assert_array_equal(alone.predict_proba(X), shares)


def test_the_choice_is_that_of_a_search_over_labeled_rows():
    X, y, _ = rows()
    labeled = ~np.isnan(y)
    method = tuned_classifier("logistic regression")
    search = GridSearchCV(
        LogisticRegression(max_iter=1000),
        {"C": method.grid["C"]},
        scoring="neg_brier_score",
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
    ).fit(X[labeled], y[labeled])
    model = clone(method).fit(X, y)
    assert model.best_params_ == search.best_params_
    np.testing.assert_allclose(model.estimator_.coef_, search.best_estimator_.coef_, rtol=1e-6)


def test_a_forest_keeps_nothing_about_its_rows():
    X, y, _ = rows()
    labeled = ~np.isnan(y)
    method = tuned_classifier("random forest")
    model = clone(method).fit(X, y)
    alone = clone(method.estimator).set_params(**model.best_params_).fit(X[labeled], y[labeled])
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    assert vars(model.estimator_).keys() == vars(alone).keys()


def test_self_training_is_that_of_scikit_learn_with_the_chosen_penalty():
    X, y, _ = rows()
    model = tuned_classifier("self-training").fit(X, y)
    learner = SelfTrainingClassifier(LogisticRegression(max_iter=1000, **model.best_params_))
    learner.fit(X, np.where(np.isnan(y), -1, y).astype(int))
    np.testing.assert_allclose(model.predict_proba(X), learner.predict_proba(X), rtol=1e-6)


def test_one_label_of_a_class_leaves_nothing_to_choose_by():
    X, y, _ = rows()
    y[np.flatnonzero(y == 1.0)[1:]] = np.nan
    model = tuned_classifier("logistic regression").fit(X, y)
    assert model.best_params_ == {"C": 1.0}
    assert set(model.predict(X)) <= {0.0, 1.0}


def test_fewer_labels_of_a_class_than_folds_are_enough():
    X, y, _ = rows()
    y[np.flatnonzero(y == 1.0)[2:]] = np.nan
    model = tuned_classifier("logistic regression").fit(X, y)
    assert model.best_params_["C"] in (1.0, 0.001, 0.01, 0.1, 10.0)


def test_weights_of_rows_and_classes_reach_the_classifier():
    X, y, _ = rows()
    weights = np.where(y == 1.0, 5.0, 1.0)
    grid = {"C": [1.0]}
    weighted = TunedClassifier(LogisticRegression(), grid)
    weighted.fit(X, y, sample_weight=weights)
    by_class = LogisticRegression(class_weight={0.0: 1.0, 1.0: 5.0})
    same = TunedClassifier(by_class, grid).fit(X, y)
    np.testing.assert_allclose(weighted.predict_proba(X), same.predict_proba(X), rtol=1e-4)
    for name in TUNED:
        method = tuned_classifier(name, "balanced")
        assert method.estimator.class_weight == "balanced"


# Collapsed methods


@pytest.mark.parametrize(
    ("n_others", "expected"), [(0, 0), (19, 0), (20, None), (100, None), (999, 1)]
)
def test_a_tenth_of_the_share_of_other_classes_is_the_edge(n_others, expected):
    """A fifth of the labels is of the second class: 2 % of 1,000 unlabeled rows are 20."""
    labels = np.repeat([0, 1], [80, 20])
    predicted = np.repeat([0, 1], [1000 - n_others, n_others])
    found = collapsed_to(predicted, labels)
    # Of the first class, four fifths are expected, so 1 of 1,000 is a collapse the other way.
    assert found == expected
