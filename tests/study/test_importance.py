"""Which columns a model relies on: known answers, and scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
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
    return found.increases


def test_columns_are_ordered_by_how_much_is_lost_without_them():
    X, y = problem()
    found = permutation_importance("m", METHOD, X[:, :3], y, ["much", "little", "nothing"])
    assert found.model == "m"
    assert list(found.increases) == ["much", "little", "nothing"]
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


def test_too_many_columns_are_refused():
    _, y = problem()
    many = [f"c{k}" for k in range(MOST_COLUMNS + 1)]
    with pytest.raises(ValueError, match="more than 200"):
        permutation_importance("m", METHOD, np.zeros((len(y), len(many))), y, many)
