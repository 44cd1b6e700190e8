"""The choice of the penalty of a regression by leave-one-out, against fits without each row."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from neverworse import (
    LeastSquaresRegressor,
    LeastSquaresRegressorCV,
    ProjectedLeastSquaresRegressor,
)

NAN = np.nan
ALPHAS = [0.0, 0.1, 3.0, 50.0, 1e4]


def make(n=60, d=4, n_labeled=25, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    truth = 3.0 + X @ rng.normal(size=d) + 2.0 * rng.normal(size=n)
    return X, np.where(np.arange(n) < n_labeled, truth, NAN), truth


# A row of weight two is left out as a whole; of a row that occurs twice, one copy stays.
REPEATED = "leaving out a row is not leaving out one of its copies"


@parametrize_with_checks(
    [LeastSquaresRegressorCV()],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": REPEATED,
        "check_sample_weight_equivalence_on_sparse_data": REPEATED,
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("shape", [(60, 4, 25), (60, 30, 12), (30, 4, 30)])
def test_leave_one_out_is_what_refits_give(shape, fit_intercept, weighted):
    X, y, _ = make(*shape)
    s = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    weights = np.ones(len(y)) if s is None else s
    if weighted:
        weights[[3, 7, -1]] = 0.0
    labeled = np.flatnonzero(~np.isnan(y) & (weights > 0))
    reg = LeastSquaresRegressorCV(ALPHAS, fit_intercept=fit_intercept).fit(X, y, sample_weight=s)
    for alpha, mse in zip(ALPHAS, reg.loo_mse_, strict=True):
        losses = []
        for i in labeled:
            rest = np.setdiff1d(labeled, [i])
            one = LeastSquaresRegressor(alpha, fit_intercept=fit_intercept)
            one.fit(X[rest], y[rest], sample_weight=weights[rest])
            losses.append((one.predict(X[[i]])[0] - y[i]) ** 2)
        assert mse == pytest.approx(np.average(losses, weights=weights[labeled]), rel=1e-8)
    assert reg.alpha_ == ALPHAS[int(np.argmin(reg.loo_mse_))]
    chosen = LeastSquaresRegressor(reg.alpha_, fit_intercept=fit_intercept)
    chosen.fit(X, y, sample_weight=s)
    np.testing.assert_allclose(reg.coef_, chosen.coef_, rtol=1e-10)
    assert reg.intercept_ == pytest.approx(chosen.intercept_, rel=1e-10)


def test_same_choice_as_ridge_with_leave_one_out():
    X, y, _ = make(n_labeled=40)
    reg = LeastSquaresRegressorCV(ALPHAS[1:]).fit(X, y)
    ridge = RidgeCV(ALPHAS[1:], scoring="neg_mean_squared_error").fit(X[:40], y[:40])
    assert reg.alpha_ == ridge.alpha_
    assert reg.loo_mse_.min() == pytest.approx(-ridge.best_score_, rel=1e-9)


def test_same_choice_as_a_search():
    X, y, _ = make()
    reg = LeastSquaresRegressorCV(ALPHAS).fit(X, y)
    labeled = ~np.isnan(y)
    search = GridSearchCV(
        LeastSquaresRegressor(),
        {"alpha": ALPHAS},
        cv=LeaveOneOut(),
        scoring="neg_mean_squared_error",
    ).fit(X[labeled], y[labeled])
    np.testing.assert_allclose(-search.cv_results_["mean_test_score"], reg.loo_mse_, rtol=1e-9)
    assert search.best_params_["alpha"] == reg.alpha_


def test_of_equally_good_penalties_the_largest():
    X, _, _ = make()
    reg = LeastSquaresRegressorCV(ALPHAS).fit(X, np.ones(len(X)))
    np.testing.assert_allclose(reg.loo_mse_, 0.0, atol=1e-25)
    X = np.zeros((6, 2))  # a column that says nothing has no weight, whatever the penalty
    reg = LeastSquaresRegressorCV(ALPHAS).fit(X, np.arange(6.0))
    assert reg.alpha_ == max(ALPHAS)


@pytest.mark.parametrize("unit", [1e-5, 1e5])
def test_units_of_features_and_targets_do_not_matter(unit):
    X, y, _ = make()
    one = LeastSquaresRegressorCV().fit(X, y)
    features = LeastSquaresRegressorCV().fit(unit * X, y)
    targets = LeastSquaresRegressorCV().fit(X, unit * y)
    assert features.alpha_ == pytest.approx(unit**2 * one.alpha_, rel=1e-9)
    assert targets.alpha_ == pytest.approx(one.alpha_, rel=1e-12)
    np.testing.assert_allclose(features.predict(unit * X), one.predict(X), rtol=1e-7)
    np.testing.assert_allclose(targets.predict(X), unit * one.predict(X), rtol=1e-9)


def test_a_constant_column_makes_no_difference():
    X, y, _ = make()
    one = LeastSquaresRegressorCV().fit(X, y)
    other = LeastSquaresRegressorCV().fit(np.column_stack([X, np.full(len(X), 0.1)]), y)
    assert other.alpha_ == pytest.approx(one.alpha_, rel=1e-12)
    np.testing.assert_allclose(other.coef_, [*one.coef_, 0.0], rtol=1e-9)


def test_rows_without_a_target_make_no_difference():
    X, y, _ = make()
    labeled = ~np.isnan(y)
    bounds = np.full((len(y), 2), [0.0, 5.0])
    bounds[labeled] = NAN
    some = LeastSquaresRegressorCV().fit(X[labeled], y[labeled])
    for reg in (
        LeastSquaresRegressorCV().fit(X, y),
        LeastSquaresRegressorCV().fit(X, y, target_bounds=bounds),
        LeastSquaresRegressorCV(missing_label=-99).fit(X, np.where(labeled, y, -99)),
    ):
        assert reg.alpha_ == pytest.approx(some.alpha_, rel=1e-12)
        np.testing.assert_allclose(reg.coef_, some.coef_, rtol=1e-10)


def test_equal_bounds_are_targets():
    X, y, truth = make()
    bounds = np.full((len(y), 2), NAN)
    bounds[30:50] = truth[30:50, None]
    reg = LeastSquaresRegressorCV().fit(X, y, target_bounds=bounds)
    given = LeastSquaresRegressorCV().fit(X, np.where(np.isnan(bounds[:, 0]), y, truth))
    assert reg.alpha_ == given.alpha_
    np.testing.assert_allclose(reg.coef_, given.coef_, rtol=1e-12)


def test_sparse_rows():
    X, y, _ = make(d=12)
    X[np.abs(X) < 0.7] = 0.0
    dense, thin = (LeastSquaresRegressorCV().fit(A, y) for A in (X, sparse.csr_array(X)))
    assert thin.alpha_ == pytest.approx(dense.alpha_, rel=1e-12)
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-9)


def test_projection_of_the_chosen_supervised_solution():
    X, y, _ = make(n=300, d=12, n_labeled=20)
    reg = ProjectedLeastSquaresRegressor((-9, 15)).fit(X, y)
    alone = LeastSquaresRegressorCV().fit(X, y)
    assert type(reg.supervised_) is LeastSquaresRegressorCV
    assert reg.supervised_.alpha_ == alone.alpha_
    np.testing.assert_array_equal(reg.supervised_.coef_, alone.coef_)
    given = ProjectedLeastSquaresRegressor((-9, 15), alpha=alone.alpha_).fit(X, y)
    np.testing.assert_allclose(reg.coef_, given.coef_, rtol=1e-9, atol=1e-12)
    assert reg.certificate_ == given.certificate_
    assert reg.certificate_.penalty == reg.certificate_.supervised_penalty == alone.alpha_


def test_in_a_search():
    X, y, _ = make(n_labeled=60)
    pipe = make_pipeline(StandardScaler(), LeastSquaresRegressorCV())
    grid = {"leastsquaresregressorcv__fit_intercept": [True, False]}
    search = GridSearchCV(pipe, grid, cv=5).fit(X, y)
    assert search.best_params_["leastsquaresregressorcv__fit_intercept"]
    assert 0.0 < search.best_score_ < 1.0


@pytest.mark.parametrize(
    ("alphas", "message"),
    [([-1.0, 1.0], "non-negative"), ([[1.0]], "one-dimensional"), ([NAN], "NaN"), ([], "0 ")],
)
def test_bad_penalties(alphas, message):
    X, y, _ = make()
    with pytest.raises(ValueError, match=message):
        LeastSquaresRegressorCV(alphas).fit(X, y)


def test_one_target_is_too_few():
    X, y, _ = make(n_labeled=1)
    for reg in (LeastSquaresRegressorCV(), ProjectedLeastSquaresRegressor((-9, 15))):
        with pytest.raises(ValueError, match=r"at least two labeled rows .* set alpha to a number"):
            reg.fit(X, y)
    assert ProjectedLeastSquaresRegressor((-9, 15), alpha=0.0).fit(X, y).certificate_.holds


def test_one_target_that_outweighs_all_others_is_too_few():
    X = 10.0 * np.random.default_rng(7).normal(size=(2, 1))  # the first row is their mean
    with pytest.raises(ValueError, match=r"one that outweighs all others.* alpha to a number"):
        LeastSquaresRegressorCV().fit(X, [0.0, 1.0], [1e20, 1e-20])


def test_no_cut_off_beside_a_chosen_penalty():
    X, y, _ = make()
    with pytest.raises(ValueError, match="alpha='loo' takes no rcond"):
        ProjectedLeastSquaresRegressor("labeled", rcond=1e-8).fit(X, y)
