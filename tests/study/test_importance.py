"""Which columns a model relies on: known answers, and scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance as of_scikit_learn
from sklearn.model_selection import StratifiedKFold

from neverworse import LeastSquaresClassifier
from neverworse.study._comparison import MOST_COLUMNS, Compared


@pytest.fixture(autouse=True)
def one_repeat(monkeypatch):
    monkeypatch.setattr("neverworse.study._held_out.MOST_REPEATS", 1)


METHOD = LeastSquaresClassifier(alpha=1.0, missing_label=np.nan)


def problem(n_labeled=300, n_unlabeled=50, seed=0):
    """Two classes; the first feature says most, the second little, the third nothing."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_labeled + n_unlabeled) % 2).astype(float)
    X = rng.normal(size=(len(y), 4)) + y[:, None] * [2.0, 0.7, 0.0, 0.0]
    X[:, 3] = X[:, 0]
    y[n_labeled:] = np.nan
    return X, y


def permutation_importance(name, method, X, y, columns, **options):
    """Of a comparison with one method."""
    return Compared({name: method}, X, y, **options).importance(name, columns)


def by_name(found):
    return {each.column: each.increase for each in found.columns}


def test_columns_are_ordered_by_how_much_is_lost_without_them():
    X, y = problem()
    found = permutation_importance("m", METHOD, X[:, :3], y, ["much", "little", "nothing"])
    assert (found.model, found.measure) == ("m", "Brier score")
    assert [each.column for each in found.columns] == ["much", "little", "nothing"]
    increases = by_name(found)
    assert increases["much"].sign == 1
    assert increases["nothing"].sign == 0
    assert increases["much"].value > 3 * increases["little"].value


def test_values_are_those_of_scikit_learn():
    X, y = problem(n_unlabeled=0)
    found = by_name(permutation_importance("m", METHOD, X[:, :3], y, ["a", "b", "c"], seed=4))
    means = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model = LeastSquaresClassifier(alpha=1.0).fit(X[train, :3], y[train])
        means.append(
            of_scikit_learn(
                model, X[test, :3], y[test], scoring="neg_brier_score", n_repeats=20, random_state=0
            ).importances_mean
        )
    expected = np.mean(means, axis=0)
    for name, value in zip("abc", expected, strict=True):
        assert found[name].value == pytest.approx(value, rel=0.2, abs=0.01), name


def test_features_of_a_column_are_shuffled_together():
    X, y = problem()
    apart = by_name(permutation_importance("m", METHOD, X, y, ["a", "b", "c", "a again"]))
    together = by_name(permutation_importance("m", METHOD, X, y, ["a", "b", "c", "a"]))
    # The copy stands in for the other feature, as long as it is not shuffled along.
    assert together["a"].value > 2 * max(apart["a"].value, apart["a again"].value)
    thin = by_name(permutation_importance("m", METHOD, sparse.csr_array(X), y, [*"abca"]))
    assert thin["a"].value == pytest.approx(together["a"].value)


class NoProbabilities(ClassifierMixin, BaseEstimator):
    """Predicts by the sign of the first column."""

    def fit(self, X, y):
        self.classes_ = np.array([0.0, 1.0])
        return self

    def predict(self, X):
        return (X[:, 0] > 1.0).astype(float)


def test_without_probabilities_it_is_the_error_that_rises():
    X, y = problem()
    found = permutation_importance("m", NoProbabilities(), X[:, :2], y, ["used", "unused"])
    assert found.measure == "error"
    increases = by_name(found)
    assert 0.2 < increases["used"].value < 0.5
    assert increases["unused"].value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("method", [METHOD, None])
def test_the_class_that_is_looked_for_is_told_from_all_others(method):
    """The first feature tells the first class from the rest, the second one the other two."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(300) % 3).astype(float)
    X = rng.normal(size=(300, 2))
    X[:, 0] += 3.0 * (y == 0)
    X[:, 1] += 3.0 * (y == 1)
    forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=0)
    found = permutation_importance("m", method or forest, X, y, ["first", "second"])
    for positive, order in ((0, ["first", "second"]), (1, ["second", "first"])):
        one = permutation_importance(
            "m", method or forest, X, y, ["first", "second"], positive=positive
        )
        assert [each.column for each in one.columns] == order
        # Where all classes count, both features do.
        assert (
            min(each.increase.value for each in found.columns) > 2 * one.columns[1].increase.value
        )


def test_too_many_columns_are_refused():
    _, y = problem()
    many = [f"c{k}" for k in range(MOST_COLUMNS + 1)]
    with pytest.raises(ValueError, match="more than 200"):
        permutation_importance("m", METHOD, np.zeros((len(y), len(many))), y, many)
