"""The choice of the penalty by leave-one-out, against fits without each row."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from neverworse import (
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    ProjectedLeastSquaresClassifier,
)
from neverworse.model_selection import LabeledKFold

ALPHAS = [0.0, 0.1, 3.0, 50.0, 1e4]


def make(n_classes=2, n=60, d=4, n_labeled=25, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[truth]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


# A row of weight two is left out as a whole; of a row that occurs twice, one copy stays.
REPEATED = "leaving out a row is not leaving out one of its copies"


@parametrize_with_checks(
    [LeastSquaresClassifierCV(missing_label=np.nan)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": REPEATED,
        "check_sample_weight_equivalence_on_sparse_data": REPEATED,
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_leave_one_out_is_what_refits_give(n_classes, weighted):
    X, y, _ = make(n_classes)
    labeled = np.flatnonzero(y >= 0)
    s = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    clf = LeastSquaresClassifierCV(ALPHAS).fit(X, y, sample_weight=s)
    weights = np.ones(len(y)) if s is None else s
    for alpha, brier in zip(ALPHAS, clf.loo_brier_, strict=True):
        losses = []
        for i in labeled:
            rest = np.setdiff1d(labeled, [i])
            one = LeastSquaresClassifier(alpha).fit(X[rest], y[rest], sample_weight=weights[rest])
            score = one.decision_function(X[[i]])[0] + 0.5
            target = float(y[i]) if n_classes == 2 else (np.arange(n_classes) == y[i])
            losses.append(np.sum((score - target) ** 2))
        assert brier == pytest.approx(np.average(losses, weights=weights[labeled]), rel=1e-9)
    assert clf.alpha_ == ALPHAS[int(np.argmin(clf.loo_brier_))]
    chosen = LeastSquaresClassifier(clf.alpha_).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(clf.coef_, chosen.coef_, rtol=1e-10)


def test_same_choice_as_ridge_with_leave_one_out():
    X, y, _ = make(n_labeled=40)
    clf = LeastSquaresClassifierCV(ALPHAS[1:]).fit(X, y)
    ridge = RidgeCV(ALPHAS[1:], scoring="neg_mean_squared_error").fit(X[:40], y[:40])
    assert clf.alpha_ == ridge.alpha_
    assert clf.loo_brier_.min() == pytest.approx(-ridge.best_score_, rel=1e-9)


def test_the_default_penalties_follow_the_units_of_the_features():
    X, y, _ = make()
    one, other = (LeastSquaresClassifierCV().fit(scale * X, y) for scale in (1.0, 1e5))
    assert other.alpha_ == pytest.approx(1e10 * one.alpha_, rel=1e-9)
    np.testing.assert_array_equal(one.predict(X), other.predict(1e5 * X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_of_equally_good_penalties_the_largest(n_classes, seed):
    # Whatever one of two rows predicts about the other, no penalty makes it better.
    X, y, _ = make(2, n_labeled=2, seed=seed)
    clf = LeastSquaresClassifierCV().fit(X, y)
    np.testing.assert_allclose(clf.loo_brier_, 1.0, rtol=1e-12)
    assert clf.alpha_ == clf.alphas_.max()
    # A column that says nothing has no weight, whatever the penalty.
    X, y, _ = make(n_classes, seed=seed)
    assert LeastSquaresClassifierCV(ALPHAS).fit(np.ones((len(y), 1)), y).alpha_ == max(ALPHAS)


def test_unlabeled_rows_make_no_difference():
    X, y, _ = make()
    labeled = y >= 0
    all_rows, some = (LeastSquaresClassifierCV().fit(X[m], y[m]) for m in (slice(None), labeled))
    np.testing.assert_array_equal(all_rows.coef_, some.coef_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_projection_of_the_chosen_supervised_solution(n_classes):
    X, y, truth = make(n_classes, n=300, d=12, n_labeled=20)
    clf = ProjectedLeastSquaresClassifier(alpha="loo").fit(X, y)
    alone = LeastSquaresClassifierCV().fit(X, y)
    assert clf.supervised_.alpha_ == alone.alpha_
    np.testing.assert_array_equal(clf.supervised_.coef_, alone.coef_)
    given = ProjectedLeastSquaresClassifier(alpha=alone.alpha_).fit(X, y)
    np.testing.assert_allclose(clf.coef_, given.coef_, rtol=1e-9, atol=1e-12)
    assert clf.certificate_.holds
    assert clf.supervised_.score(X, truth) > 1.0 / n_classes


def test_in_a_search():
    X, y, _ = make()
    pipe = make_pipeline(StandardScaler(), LeastSquaresClassifierCV())
    grid = {"leastsquaresclassifiercv__alphas": [None, [1.0, 10.0]]}
    search = GridSearchCV(pipe, grid, cv=LabeledKFold(5, shuffle=True, random_state=0)).fit(X, y)
    assert 0.5 < search.best_score_ <= 1.0


@pytest.mark.parametrize(
    ("alphas", "message"),
    [([-1.0, 1.0], "non-negative"), ([[1.0]], "one-dimensional"), ([np.nan], "NaN"), ([], "0 ")],
)
def test_bad_penalties(alphas, message):
    X, y, _ = make()
    with pytest.raises(ValueError, match=message):
        LeastSquaresClassifierCV(alphas).fit(X, y)


def test_no_cut_off_beside_a_chosen_penalty():
    X, y, _ = make()
    with pytest.raises(ValueError, match="alpha='loo' takes no rcond"):
        ProjectedLeastSquaresClassifier(alpha="loo", rcond=1e-8).fit(X, y)
