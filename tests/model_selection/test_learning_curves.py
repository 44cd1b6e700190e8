"""Learning curves over unlabeled and over labeled rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB

from neverworse import (
    LeastSquaresClassifier,
    ProjectedLeastSquaresClassifier,
    ProjectedLeastSquaresRegressor,
)
from neverworse.methods import SupervisedClassifier
from neverworse.model_selection import (
    StratifiedLabeledKFold,
    learning_curve,
)
from neverworse.model_selection._learning_curves import stratified_order


@pytest.fixture
def rows():
    """60 labeled rows of three classes, 240 unlabeled ones; the first column is the row number."""
    rng = np.random.default_rng(5)
    classes = np.repeat([0, 1, 2], [100, 150, 50])
    X = np.column_stack([np.arange(300), rng.normal(size=(300, 3)) + classes[:, None]])
    shuffled = rng.permutation(300)
    y = classes[shuffled]
    X = np.column_stack([np.arange(300), X[shuffled, 1:]])
    y[60:] = -1
    return X, y


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers which rows it was fitted to and which it predicts, by their first column."""

    fits: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y[y >= 0])
        self.fitted_ = X[:, 0].astype(int), np.asarray(y), sample_weight
        return self

    def predict(self, X):
        Recorder.fits.append((*self.fitted_, X[:, 0].astype(int)))
        return np.full(len(X), self.classes_[0])


@pytest.fixture
def fits(monkeypatch):
    monkeypatch.setattr(Recorder, "fits", [])
    return Recorder.fits


def test_unlabeled_rows_grow_and_nothing_else_changes(rows, fits):
    X, y = rows
    curve = learning_curve(Recorder(), X, y, sizes=[0, 7, 240], cv=4, n_repeats=3, random_state=0)
    assert curve.rows == "unlabeled"
    assert curve.sizes.tolist() == [0, 7, 240]
    assert curve.test_scores.shape == (3, 12)
    assert curve.n_others.tolist() == [45] * 12
    table = np.array(Recorder.fits, dtype=object).reshape(3, 12, 4)
    for split in range(12):
        subsets = []
        for size, (train, labels, _, test) in zip(curve.sizes, table[:, split], strict=True):
            labeled, unlabeled = train[labels >= 0], train[labels < 0]
            assert set(labeled) == set(range(60)) - set(test)
            assert (labels == y[train]).all()
            assert len(unlabeled) == size
            subsets.append(set(unlabeled))
        assert subsets[0] < subsets[1] < subsets[2]
        same_repeat = table[1, 4 * (split // 4)]
        assert set(same_repeat[0][same_repeat[1] < 0]) == subsets[1]
    for repeat in range(3):
        tested = np.concatenate([table[0, split, 3] for split in range(4 * repeat, 4 * repeat + 4)])
        assert sorted(tested) == list(range(60))
    first, second = table[1, 0], table[1, 4]
    assert set(first[0][first[1] < 0]) != set(second[0][second[1] < 0])


def test_labeled_rows_grow_with_all_classes_in_them(rows, fits):
    X, y = rows
    curve = learning_curve(
        Recorder(), X, y, rows="labeled", sizes=[3, 10, 20, 48], cv=5, n_repeats=2, random_state=1
    )
    assert curve.rows == "labeled"
    assert curve.n_others.tolist() == [240] * 10
    table = np.array(Recorder.fits, dtype=object).reshape(4, 10, 4)
    shares = np.bincount(y[:60]) / 60
    for split in range(10):
        before = set()
        for size, (train, labels, _, test) in zip(curve.sizes, table[:, split], strict=True):
            labeled = set(train[labels >= 0])
            assert set(train[labels < 0]) == set(range(60, 300))
            assert len(labeled) == size
            assert before <= labeled
            assert not labeled & set(test)
            counts = np.bincount(labels[labels >= 0], minlength=3)
            assert counts.min() >= 1
            assert np.abs(counts - shares * size).max() < 2.5
            before = labeled


def test_scores_are_those_of_a_direct_fit(rows):
    X, y = rows
    cv = StratifiedLabeledKFold(5)
    clf = ProjectedLeastSquaresClassifier(alpha=0.1)
    curve = learning_curve(clf, X, y, sizes=[1.0], cv=cv, n_repeats=1)
    direct = [clf.fit(X[train], y[train]).score(X[test], y[test]) for train, test in cv.split(X, y)]
    assert curve.test_scores.tolist() == [direct]
    curve = learning_curve(clf, X, y, rows="labeled", sizes=[48], cv=cv, n_repeats=1)
    assert curve.test_scores.tolist() == [direct]


@pytest.mark.parametrize("kind", ["unlabeled", "labeled"])
def test_a_seed_gives_all_estimators_the_same_rows(rows, kind):
    X, y = rows
    first, second = (
        learning_curve(clf, X, y, rows=kind, n_repeats=2, random_state=3)
        for clf in (LeastSquaresClassifier(), SupervisedClassifier(LeastSquaresClassifier()))
    )
    assert (first.test_scores == second.test_scores).all()
    other = learning_curve(LeastSquaresClassifier(), X, y, rows=kind, n_repeats=2, random_state=4)
    assert (first.test_scores != other.test_scores).any()


def test_default_sizes_double(rows):
    X, y = rows
    clf = LeastSquaresClassifier()
    assert learning_curve(clf, X, y, n_repeats=1).sizes.tolist() == [8, 15, 30, 60, 120, 240]
    assert learning_curve(clf, X, y, rows="labeled", n_repeats=1).sizes.tolist() == [
        3,
        6,
        12,
        24,
        48,
    ]


def test_shares_are_of_the_smallest_training_fold(rows):
    X, y = rows
    clf = LeastSquaresClassifier()
    curve = learning_curve(clf, X, y, sizes=[1e-6, 0.5, 1.0], n_repeats=1)
    assert curve.sizes.tolist() == [1, 120, 240]
    curve = learning_curve(clf, X, y, rows="labeled", sizes=[0.01, 0.5], cv=7, n_repeats=1)
    assert curve.sizes.tolist() == [3, round(0.5 * 51)]


def test_several_scores(rows):
    X, y = rows
    names = ["accuracy", "balanced_accuracy"]
    curve = learning_curve(
        LeastSquaresClassifier(), X, y, scoring=names, cv=3, n_repeats=1, random_state=0
    )
    assert list(curve.test_scores) == names
    alone = learning_curve(
        LeastSquaresClassifier(), X, y, scoring=names[1], cv=3, n_repeats=1, random_state=0
    )
    assert (curve.test_scores[names[1]] == alone.test_scores).all()

    def both(model, X, y):
        return {"rows": len(y), "features": X.shape[1]}

    curve = learning_curve(
        LeastSquaresClassifier(), X, y, rows="labeled", scoring=both, cv=3, n_repeats=1
    )
    assert (curve.test_scores["rows"] == 20).all()
    assert (curve.test_scores["features"] == 4).all()


def test_weights_go_to_fits_and_scores(rows, fits):
    X, y = rows
    weights = np.random.default_rng(0).uniform(1, 2, 300)
    curve = learning_curve(
        Recorder(), X, y, cv=3, n_repeats=1, sample_weight=weights, random_state=0
    )
    for train, _, given, _ in fits:
        assert (given == weights[train]).all()
    for k, (*_, test) in enumerate(fits):
        expected = np.average(y[test] == 0, weights=weights[test])
        assert curve.test_scores.ravel()[k] == pytest.approx(expected)


def test_weights_need_an_estimator_that_takes_them(rows):
    class Simple(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            return self

    X, y = rows
    with pytest.raises(ValueError, match="Simple does not take it in fit"):
        learning_curve(Simple(), X, y, sample_weight=np.ones(300))


def test_a_splitter_of_scikit_learn_holds_unlabeled_rows_back(rows, fits):
    X, y = rows
    curve = learning_curve(Recorder(), X, y, cv=KFold(3, shuffle=True, random_state=0), n_repeats=1)
    assert curve.sizes[-1] < 240
    for train, _, _, test in fits:
        assert set(test) <= set(range(60))
        assert not set(test) & set(train)


def test_folds_that_can_be_read_once_serve_all_repeats(rows):
    X, y = rows
    folds = (fold for fold in StratifiedLabeledKFold(3).split(X, y))
    curve = learning_curve(LeastSquaresClassifier(), X, y, cv=folds, n_repeats=2)
    assert curve.test_scores.shape[1] == 6


def test_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X.sum(axis=1) + 0.1 * rng.normal(size=200)
    y[50:] = np.nan
    curve = learning_curve(
        ProjectedLeastSquaresRegressor((-10, 10)), X, y, rows="labeled", cv=4, random_state=0
    )
    assert curve.sizes[0] == 2
    assert curve.test_scores[-1].mean() > 0.95


def test_sparse_rows_and_strings(rows):
    X, y = rows
    names = np.array(["a", "b", "c", None], dtype=object)[y]
    clf = ProjectedLeastSquaresClassifier(alpha=1.0)
    dense, other = (
        learning_curve(clf, given, labels, cv=3, n_repeats=1, random_state=0)
        for given, labels in ((X, y), (sparse.csr_array(X), names))
    )
    assert (dense.test_scores == other.test_scores).all()


def test_jobs_change_nothing(rows):
    X, y = rows
    one, two = (
        learning_curve(
            SupervisedClassifier(GaussianNB()), X, y, n_repeats=1, random_state=0, n_jobs=n
        )
        for n in (None, 2)
    )
    assert (one.test_scores == two.test_scores).all()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([], "must be a list of integers"),
        ([[1, 2]], "must be a list of integers"),
        (["all"], "must be a list of integers"),
        ([True], "must be a list of integers"),
        ([0.0, 0.5], "above 0 and at most 1"),
        ([1.5], "above 0 and at most 1"),
        ([-1], "integers from 0 to 240"),
        ([241], "to 240"),
    ],
)
def test_wrong_unlabeled_sizes(rows, sizes, message):
    with pytest.raises(ValueError, match=message):
        learning_curve(LeastSquaresClassifier(), *rows, sizes=sizes)


def test_wrong_labeled_sizes(rows):
    with pytest.raises(ValueError, match="integers from 3 to 48"):
        learning_curve(LeastSquaresClassifier(), *rows, rows="labeled", sizes=[2])


def test_other_wrong_input(rows):
    X, y = rows
    clf = LeastSquaresClassifier()
    with pytest.raises(ValueError, match="0 unlabeled rows"):
        learning_curve(clf, X[:60], y[:60])
    with pytest.raises(ValueError, match="label some"):
        learning_curve(clf, X[60:], np.full(240, np.nan))
    with pytest.raises(ValueError, match="n_repeats=0"):
        learning_curve(clf, X, y, n_repeats=0)
    with pytest.raises(ValueError, match="rows='all' must be"):
        learning_curve(clf, X, y, rows="all")
    with pytest.raises(ValueError, match="test fold without a labeled row"):
        learning_curve(clf, X, y, cv=KFold(300))
    with pytest.raises(ValueError, match="inconsistent"):
        learning_curve(clf, X[:-1], y)


def test_order_takes_one_of_each_stratum_first():
    strata = np.repeat([0, 1, 2], [1, 10, 89])
    for seed in range(20):
        order = stratified_order(strata, np.random.RandomState(seed))
        assert sorted(order) == list(range(100))
        assert set(strata[order[:3]]) == {0, 1, 2}
        for n in (20, 50, 80):
            assert abs(np.count_nonzero(strata[order[:n]] == 1) - n / 10) <= 1.5
