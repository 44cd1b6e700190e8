"""Regression within bounds: the guarantee in exact arithmetic, and scikit-learn's conventions."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import lsq_linear
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from neverworse import (
    LeastSquaresRegressor,
    LeastSquaresRegressorCV,
    ProjectedLeastSquaresClassifier,
    ProjectedLeastSquaresRegressor,
)
from tests.exact import check_certificate, loss_penalty
from tests.problems import REGRESSION_KINDS, distances, make_regression

NAN = np.nan
BOTH = [LeastSquaresRegressor(), ProjectedLeastSquaresRegressor("labeled")]
every_regressor = pytest.mark.parametrize("regressor", BOTH, ids=lambda r: type(r).__name__)
# A row of weight two is left out as a whole; of a row that occurs twice, one copy stays.
REPEATED = "leaving out a row is not leaving out one of its copies"


def weights_of_rows(estimator):
    """What fails where leave-one-out chooses the penalty."""
    if getattr(estimator, "alpha", "loo") != "loo":
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": REPEATED,
        "check_sample_weight_equivalence_on_sparse_data": REPEATED,
    }


def make(n=150, d=6, n_labeled=12, seed=4):
    """Labeled and unlabeled rows in random order, with targets between 1 and 5."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.clip(np.round(3 + X.sum(axis=1) + rng.normal(size=n)), 1, 5)
    y[rng.permutation(n)[n_labeled:]] = NAN
    return X, y


def own_bounds(y, seed=3):
    """Bounds of about half of the rows."""
    rng = np.random.default_rng(seed)
    low = rng.integers(1, 4, len(y)).astype(float)
    bounds = np.column_stack([low, low + rng.integers(1, 3, len(y))])
    bounds[(rng.random(len(y)) < 0.5) | ~np.isnan(y)] = NAN
    return bounds


def fit(X, y, weights=None, bounds=None, target_bounds=(1, 5), **settings_):
    # Without a penalty unless one is asked for: unlabeled rows then move more.
    reg = ProjectedLeastSquaresRegressor(target_bounds, **{"alpha": 0.0, **settings_})
    return reg.fit(X, y, sample_weight=weights, target_bounds=bounds)


def test_the_rows_of_these_tests_are_not_a_trivial_case():
    for X, y in (make(), make_sparse()):
        for target_bounds in ((1, 5), "labeled"):
            for distance in ("all", "labeled", "unlabeled", "euclidean"):
                reg = fit(X, y, target_bounds=target_bounds, distance=distance)
                assert np.abs(reg.coef_ - reg.supervised_.coef_).max() > 1e-3


# scikit-learn's own checks


@parametrize_with_checks(
    [*BOTH, ProjectedLeastSquaresRegressor(), ProjectedLeastSquaresRegressor(alpha=0.0)],
    expected_failed_checks=weights_of_rows,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# The guarantee, in rational arithmetic


def check_guarantee(reg, problem):
    check_certificate(reg, problem.exact(reg))
    unknown = problem.lower < problem.upper
    assert np.all(reg.imputed_targets_ >= problem.lower[unknown])
    assert np.all(reg.imputed_targets_ <= problem.upper[unknown])


@pytest.mark.parametrize("kind", REGRESSION_KINDS)
def test_never_worse_for_the_exact_worst_targets(kind):
    rng = np.random.default_rng(list(kind.encode()))
    improved = 0
    for _ in range(10):
        problem = make_regression(kind, rng)
        for distance in distances(rng, problem.X.shape[1]):
            reg = problem.fit(distance=distance)
            check_guarantee(reg, problem)
            improved += reg.certificate_.guaranteed_improvement > 0
    assert improved > 5  # the guarantee would be empty if nothing ever changed


@given(
    kind=st.sampled_from(REGRESSION_KINDS),
    seed=st.integers(0, 2**32 - 1),
    max_iter=st.integers(1, 6),
    solver=st.sampled_from(["exact", "lbfgs"]),
)
@settings(max_examples=80, deadline=None)
def test_early_stopping_stays_certified(kind, seed, max_iter, solver):
    problem = make_regression(kind, np.random.default_rng(seed))
    for distance in ("all", "unlabeled"):
        reg = problem.fit(distance=distance, max_iter=max_iter, solver=solver)
        check_guarantee(reg, problem)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9, 1e15])
def test_no_claim_is_false_where_targets_are_far_from_zero(offset):
    rng = np.random.default_rng(1)
    for _ in range(20):
        problem = make_regression("common range", rng)
        problem.lower, problem.upper = problem.lower + offset, problem.upper + offset
        check_guarantee(problem.fit(), problem)


def test_certificate_is_true_for_random_targets():
    X, y = make()
    reg = fit(X, y)
    rng = np.random.default_rng(2)
    for _ in range(20):
        truth = np.where(np.isnan(y), rng.uniform(1, 5, len(y)), y)
        loss = np.sum((truth - reg.predict(X)) ** 2)
        before = np.sum((truth - reg.supervised_.predict(X)) ** 2)
        assert before - loss >= reg.certificate_.guaranteed_improvement > 0.0
        assert loss - before >= reg.certificate_.best_case


# The answer is right


def projected_by_bvls(problem):
    """Nearest point of the constraint set by SciPy's solver for least squares in a box."""
    reg, n = problem.fit(), len(problem.X)
    s = np.ones(n) if problem.weights is None else problem.weights
    E = np.column_stack([problem.X, np.ones(n)]) if reg.fit_intercept else problem.X
    unknown = problem.lower < problem.upper
    penalty = np.full(E.shape[1], float(loss_penalty(reg)))
    penalty[problem.X.shape[1] :] = 0.0
    factor = np.linalg.cholesky(E.T @ (s[:, None] * E) + np.diag(penalty))  # H = factor factor'
    pulled = np.linalg.solve(factor, (s[:, None] * E).T)  # maps targets to factor' w
    supervised = reg.supervised_.coef_
    if reg.fit_intercept:
        supervised = np.append(supervised, reg.supervised_.intercept_)
    known = pulled[:, ~unknown] @ problem.lower[~unknown]
    found = lsq_linear(
        pulled[:, unknown],
        factor.T @ supervised - known,
        (problem.lower[unknown], problem.upper[unknown]),
        method="bvls",
        tol=1e-14,
        max_iter=10_000,
    )
    weights = np.linalg.solve(factor.T, known + pulled[:, unknown] @ found.x)
    return reg, weights


@pytest.mark.parametrize(
    "kind", ["common range", "own bounds", "penalty", "chosen penalty", "no intercept"]
)
def test_agrees_with_an_independent_solver(kind):
    rng = np.random.default_rng(list(kind.encode()))
    moved = 0
    for _ in range(40):
        problem = make_regression(kind, rng)
        problem.settings["tol"] = 1e-13
        reg, expected = projected_by_bvls(problem)
        d = len(reg.coef_)
        np.testing.assert_allclose(reg.coef_, expected[:d], rtol=0, atol=1e-7)
        np.testing.assert_allclose(reg.intercept_, [*expected[d:], 0.0][0], rtol=0, atol=1e-7)
        moved += np.abs(reg.coef_ - reg.supervised_.coef_).max() > 1e-3
    assert moved > 10


@pytest.mark.parametrize("distance", ["all", "labeled"])
def test_imputed_targets_reproduce_the_weights_in_the_order_of_the_rows(distance):
    X, y = make()
    unlabeled = np.isnan(y)
    assert np.count_nonzero(np.diff(unlabeled)) > 15  # interleaved
    reg = fit(X, y, distance=distance, tol=1e-13)
    target = y.copy()
    target[unlabeled] = reg.imputed_targets_
    assert np.count_nonzero(np.isin(target[unlabeled], [1.0, 5.0])) > 100
    expected = LinearRegression().fit(X, target)
    np.testing.assert_allclose(reg.coef_, expected.coef_, atol=1e-7)
    np.testing.assert_allclose(reg.intercept_, expected.intercept_, atol=1e-7)


@pytest.mark.parametrize("distance", ["all", "labeled", "unlabeled", "euclidean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options", [{"alpha": 0.0}, {"alpha": 1.0, "constraint_alpha": 2.0}, {"alpha": "loo"}], ids=repr
)
def test_same_as_the_classifier_on_targets_zero_and_one(distance, weighted, options):
    X, y = make()
    y = np.where(np.isnan(y), NAN, y > 3)
    s = np.linspace(0.5, 2.0, len(y)) if weighted else None
    reg = fit(X, y, s, target_bounds=(0, 1), distance=distance, **options)
    clf = ProjectedLeastSquaresClassifier(distance, missing_label=NAN, **options).fit(X, y, s)
    moved = np.abs(clf.coef_ - clf.supervised_.coef_).max() > 1e-3
    assert moved or options["alpha"] == "loo"
    np.testing.assert_allclose(reg.coef_, clf.coef_[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(reg.intercept_, clf.intercept_[0] + 0.5, rtol=0, atol=1e-10)
    np.testing.assert_allclose(reg.imputed_targets_, clf.soft_labels_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(
        reg.certificate_.worst_case, clf.certificate_.worst_case, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("distance", ["all", "labeled", "unlabeled"])
@pytest.mark.parametrize(("a", "b"), [(2.0, 0.0), (-1.0, 0.0), (1e6, -3.0), (-1e-6, 2.0), (3, 1e4)])
def test_linear_maps_of_the_targets(distance, a, b):
    X, y = make()
    bounds = own_bounds(y)
    options = {"distance": distance, "alpha": 0.5, "constraint_alpha": 2.0, "tol": 1e-14}
    reg = fit(X, y, None, bounds, **options)
    mapped = np.sort(a * bounds + b, axis=1)
    other = fit(X, a * y + b, None, mapped, tuple(sorted((a + b, 5 * a + b))), **options)
    rounding = 1e-15 * abs(b / a)
    np.testing.assert_allclose(other.coef_ / a, reg.coef_, rtol=0, atol=1e-8 + rounding)
    np.testing.assert_allclose(
        (other.intercept_ - b) / a, reg.intercept_, rtol=0, atol=1e-8 + rounding
    )
    assert other.certificate_.worst_case / a**2 == pytest.approx(
        reg.certificate_.worst_case, rel=1e-6
    )


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"alpha": 3.0}], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_labeled", [12, 150])
def test_baseline_is_least_squares_on_rows_with_a_target(options, weighted, n_labeled):
    X, y = make(n_labeled=n_labeled)
    s = np.linspace(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    labeled = ~np.isnan(y)
    reg = LeastSquaresRegressor(**options).fit(X, y, s if weighted else None)
    ridge = Ridge(options.get("alpha", 0.0), fit_intercept=reg.fit_intercept, solver="svd")
    ridge.fit(X[labeled], y[labeled], s[labeled])
    np.testing.assert_allclose(reg.coef_, ridge.coef_, rtol=1e-9)
    np.testing.assert_allclose(reg.intercept_, ridge.intercept_, rtol=1e-9)
    np.testing.assert_allclose(reg.predict(X), ridge.predict(X), rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_equal_bounds_of_all_rows_are_targets(alpha):
    X, y = make()
    target = np.where(np.isnan(y), np.linspace(1, 5, len(y)), y)
    bounds = np.column_stack([target, target])
    expected = Ridge(alpha, solver="svd").fit(X, target)
    for reg in (ProjectedLeastSquaresRegressor(alpha=alpha), LeastSquaresRegressor(alpha)):
        reg.fit(X, y, target_bounds=bounds)
        np.testing.assert_allclose(reg.coef_, expected.coef_, rtol=1e-9)
        np.testing.assert_allclose(reg.intercept_, expected.intercept_, rtol=1e-9)
    certificate = ProjectedLeastSquaresRegressor().fit(X, y, target_bounds=bounds).certificate_
    assert certificate.reason == "no unlabeled rows"
    assert certificate.n_labeled == len(y)


def test_equal_bounds_of_one_row_label_it():
    X, y = make()
    row = np.flatnonzero(np.isnan(y))[3]
    bounds, filled = np.full((len(y), 2), NAN), y.copy()
    bounds[row] = filled[row] = 4.0
    reg, expected = fit(X, y, None, bounds), fit(X, filled)
    np.testing.assert_array_equal(reg.coef_, expected.coef_)
    np.testing.assert_array_equal(reg.imputed_targets_, expected.imputed_targets_)
    np.testing.assert_array_equal(reg.supervised_.coef_, expected.supervised_.coef_)


def test_range_of_no_width_labels_all_rows():
    X, y = make()
    y[~np.isnan(y)] = 2.0
    reg = fit(X, y, target_bounds=(2, 2))
    np.testing.assert_allclose(reg.predict(X), 2.0)
    assert reg.certificate_.reason == "no unlabeled rows"
    assert reg.imputed_targets_.shape == (0,)


@pytest.mark.parametrize("distance", ["all", "labeled", "unlabeled", "euclidean"])
def test_wide_bounds_leave_the_supervised_weights(distance):
    X, y = make()
    reg = fit(X, y, target_bounds=(-1e4, 1e4), distance=distance)
    np.testing.assert_array_equal(reg.coef_, reg.supervised_.coef_)
    assert reg.intercept_ == reg.supervised_.intercept_
    assert reg.certificate_.reason == "inside"
    assert reg.certificate_.holds
    assert "the regression is the supervised one" in str(reg.certificate_).lower()


def test_narrower_bounds_never_guarantee_less():
    X, y = make()
    gains = [
        fit(X, y, target_bounds=(3 - width, 3 + width)).certificate_.guaranteed_improvement
        for width in (8.0, 6.0, 4.0, 3.0, 2.0)
    ]
    assert gains == sorted(gains)
    assert gains[-1] > gains[0]


@pytest.mark.parametrize("weighted", [False, True])
def test_range_of_the_known_targets(weighted):
    X, y = make()
    s = np.ones(len(y))
    if weighted:  # a row of weight zero is as good as absent
        s[np.nanargmax(y)] = 0.0
        y[np.nanargmax(y)] = 50.0
    counted = y[s > 0]
    low, high = np.nanmin(counted), np.nanmax(counted)
    reg = fit(X, y, s, target_bounds="labeled")
    assert reg.certificate_.assumptions.target_range == (low, high)
    np.testing.assert_array_equal(reg.coef_, fit(X, y, s, target_bounds=(low, high)).coef_)


def test_range_of_the_known_targets_includes_equal_bounds():
    X, y = make()
    bounds = np.full((len(y), 2), NAN)
    bounds[np.flatnonzero(np.isnan(y))[0]] = 9.0
    reg = fit(X, y, None, bounds, "labeled")
    assert reg.certificate_.assumptions.target_range == (np.nanmin(y), 9.0)


def test_bounds_of_rows_come_before_the_range():
    X, y = make()
    unlabeled, bounds = np.isnan(y), own_bounds(y)
    reg = fit(X, y, None, bounds)
    all_bounds = np.where(np.isnan(bounds), [1.0, 5.0], bounds)
    expected = fit(X, y, None, all_bounds, None)
    np.testing.assert_array_equal(reg.coef_, expected.coef_)
    assert np.all(reg.imputed_targets_ >= all_bounds[unlabeled, 0])
    assert np.all(reg.imputed_targets_ <= all_bounds[unlabeled, 1])
    assert np.abs(reg.coef_ - fit(X, y).coef_).max() > 1e-3


def test_one_bound_of_a_row_and_the_other_one_from_the_range():
    X, y = make()
    bounds, full = np.full((len(y), 2), NAN), np.full((len(y), 2), [1.0, 5.0])
    bounds[:40, 0] = full[:40, 0] = 2.0
    bounds[40:80, 1] = full[40:80, 1] = 4.0
    bounds[~np.isnan(y)] = full[~np.isnan(y)] = NAN
    reg, expected = fit(X, y, None, bounds), fit(X, y, None, full)
    np.testing.assert_array_equal(reg.coef_, expected.coef_)
    assert reg.certificate_ == expected.certificate_


def test_bounds_of_labeled_rows_may_be_anything_that_includes_the_target():
    X, y = make()
    bounds = np.full((len(y), 2), NAN)
    labeled = np.flatnonzero(~np.isnan(y))
    bounds[labeled[:6]] = [-np.inf, np.inf]
    bounds[labeled[6:]] = [-1e308, 1e308]
    bounds[labeled[0]] = y[labeled[0]]
    np.testing.assert_array_equal(fit(X, y, None, bounds).coef_, fit(X, y).coef_)
    y[labeled[1]] = 7.0  # outside of the range, but within its own bounds
    assert fit(X, y, None, bounds).certificate_.holds


def test_solvers_agree():
    X, y = make()
    bounds = own_bounds(y)
    exact = fit(X, y, None, bounds)
    reference = fit(X, y, None, bounds, solver="lbfgs", tol=1e-10)
    np.testing.assert_allclose(exact.coef_, reference.coef_, atol=1e-4)


def test_so_many_rows_that_samples_are_drawn():
    rng = np.random.default_rng(3)
    X, y = make(n=20_000, d=4, n_labeled=8)
    bounds = own_bounds(y)
    reg = fit(X, y, rng.uniform(0.5, 2.0, len(y)), bounds)
    assert reg.certificate_.converged
    assert reg.certificate_.guaranteed_improvement > 0.0
    assert np.abs(reg.coef_ - reg.supervised_.coef_).max() > 1e-3


def test_rows_of_weight_zero_are_as_good_as_absent():
    X, y = make()
    s = np.linspace(0.5, 2.0, len(y))
    s[::5] = 0.0
    y[np.flatnonzero(~np.isnan(y) & (s == 0.0))] = 1e6  # outside of the range
    reg, expected = fit(X, y, s), fit(X[s > 0], y[s > 0], s[s > 0])
    np.testing.assert_allclose(reg.coef_, expected.coef_, atol=1e-9)
    assert reg.certificate_.n_labeled == expected.certificate_.n_labeled
    assert reg.certificate_.n_unlabeled == expected.certificate_.n_unlabeled
    assert reg.certificate_.assumptions == expected.certificate_.assumptions


# What the certificate says


def test_certificate_names_the_range():
    assumptions = fit(*make()).certificate_.assumptions
    assert assumptions.task == "regression"
    assert assumptions.target_range == (1.0, 5.0)
    assert assumptions.n_bounded == 0
    summary = fit(*make()).certificate_.summary()
    assert "whatever the true targets of the 138 unlabeled rows (as long as each is" in summary
    assert "between 1 and 5)" in summary
    assert "that of the supervised regression" in summary


def test_certificate_counts_rows_with_narrower_bounds():
    X, y = make()
    bounds = own_bounds(y)
    n_bounded = np.count_nonzero(~np.isnan(bounds[:, 0]))
    assumptions = fit(X, y, None, bounds).certificate_.assumptions
    assert assumptions.target_range == (1.0, 5.0)
    assert assumptions.n_bounded == n_bounded > 0


def test_certificate_has_no_range_where_no_row_has_all_of_it():
    X, y = make()
    bounds = np.column_stack([np.linspace(0, 2, len(y)), np.linspace(4, 6, len(y))])
    bounds[~np.isnan(y)] = NAN
    assumptions = fit(X, y, None, bounds).certificate_.assumptions
    assert assumptions.target_range is None
    assert assumptions.n_bounded == np.count_nonzero(np.isnan(y))


def test_certificate_without_unlabeled_rows():
    X, y = make(n_labeled=150)
    for target_bounds in (None, (1, 5), "labeled"):
        reg = fit(X, y, target_bounds=target_bounds)
        assert reg.certificate_.reason == "no unlabeled rows"
        assert reg.certificate_.assumptions.target_range is None
        np.testing.assert_array_equal(reg.coef_, reg.supervised_.coef_)
        assert reg.n_iter_ >= 1


# Bad input


def with_bounds(row_bounds, row="unlabeled"):
    X, y = make()
    rows = np.flatnonzero(np.isnan(y) if row == "unlabeled" else ~np.isnan(y))
    bounds = np.full((len(y), 2), NAN)
    bounds[rows[2]] = row_bounds
    return X, y, bounds, rows[2]


def test_unlabeled_rows_without_bounds():
    X, y = make()
    message = (
        r"138 of 150 rows have neither .* first is row \d+. Pass target_bounds=\(low, high\) .*"
        r"constructor, or one such pair for each row"
    )
    with pytest.raises(ValueError, match=message):
        fit(X, y, target_bounds=None)
    bounds = np.full((len(y), 2), [NAN, 5.0])  # half of the bounds are no bounds
    with pytest.raises(ValueError, match="138 of 150 rows have neither"):
        fit(X, y, None, bounds, None)


@pytest.mark.parametrize(
    ("target_bounds", "message"),
    [
        ((0, np.inf), r"is no range of targets.*no improvement can be guaranteed"),
        ((-np.inf, np.inf), r"is no range of targets.*no improvement can be guaranteed"),
        ((5, 1), r"target_bounds=\(5, 1\) is no range of targets"),
        ((NAN, 5), r"Pass \(low, high\).*'labeled' or None"),
        ((1, 2, 3), r"Pass \(low, high\).*'labeled' or None"),
        (3.0, r"Pass \(low, high\).*'labeled' or None"),
        ("all", r"target_bounds='all' is no range of targets"),
        (("a", "b"), r"Pass \(low, high\)"),
        (np.ones((150, 2)), r"Pass \(low, high\).*bounds of single rows in fit"),
        ((2, 4), r"exclude the label in y in row \d+: from 2 to 4. Correct the bounds or y"),
        ((-1e200, 1e200), r"is no range of targets.* of at most 1e\+100"),
        ((1e-200, 5), None),
    ],
    ids=str,
)
def test_range_of_the_constructor(target_bounds, message):
    X, y = make()
    reg = ProjectedLeastSquaresRegressor(target_bounds)
    if message is None:
        assert reg.fit(X, y).certificate_.holds
        return
    with pytest.raises(ValueError, match=message):
        reg.fit(X, y)
    with pytest.raises(ValueError, match=message):  # where nothing is unlabeled, just the same
        reg.fit(X[~np.isnan(y)], y[~np.isnan(y)])


@every_regressor
@pytest.mark.parametrize(
    ("row", "row_bounds", "message"),
    [
        (
            "unlabeled",
            (1, np.inf),
            r"leave the range from -1e\+100 to 1e\+100 in row {}",
        ),
        ("unlabeled", (-np.inf, 3), "leave the range .* in row {}: from -inf to 3"),
        ("unlabeled", (np.inf, np.inf), "leave the range .* in row {}"),
        ("unlabeled", (3, 2), "cross .the lower one is above .* in row {}: from 3 to 2. Correct"),
        ("labeled", (3, 2), "cross .* in row {}"),
        ("labeled", (7, 8), "exclude the label in y in row {}: from 7 to 8"),
        ("labeled", (NAN, 0), "(exclude the label in y|cross .*) in row {}"),
        ("unlabeled", (1e150, 1e151), "leave the range .* in row {}"),
    ],
)
def test_bounds_of_one_row(regressor, row, row_bounds, message):
    X, y, bounds, index = with_bounds(row_bounds, row)
    with pytest.raises(ValueError, match=message.format(index)):
        clone(regressor).fit(X, y, target_bounds=bounds)


def test_bound_of_one_row_beyond_the_range():
    X, y, bounds, row = with_bounds((NAN, 0.5))
    with pytest.raises(ValueError, match=rf"cross .* in row {row}: from 1 to 0.5"):
        fit(X, y, None, bounds)


def test_bounds_that_are_too_narrow_for_their_square():
    X, y, bounds, row = with_bounds((0, 1e-150))
    with pytest.raises(ValueError, match=rf"row {row} differ by 1e-150, .* Give equal bounds"):
        fit(X, y, None, bounds)


@every_regressor
@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([1, 5], r"shape \(2,\), but \(150, 2\) is needed.* in the constructor"),
        (np.ones((149, 2)), r"shape \(149, 2\), but \(150, 2\) is needed"),
        (np.ones((150, 3)), r"shape \(150, 3\), but \(150, 2\) is needed"),
        (np.ones((150, 2, 2)), r"shape \(150, 2, 2\), but \(150, 2\) is needed"),
        (np.full((150, 2), "a"), "could not convert string"),
    ],
    ids=["pair", "short", "wide", "deep", "strings"],
)
def test_bounds_of_the_wrong_shape(regressor, bounds, message):
    with pytest.raises(ValueError, match=message):
        clone(regressor).fit(*make(), target_bounds=bounds)


def test_known_targets_that_have_no_range():
    X, y = make()
    y[~np.isnan(y)] = 2.0
    with pytest.raises(ValueError, match=r"138 of 150 rows have neither .* target_bounds=\(low"):
        fit(X, y, target_bounds="labeled")
    assert fit(X[:5], np.full(5, 2.0), target_bounds="labeled").certificate_.holds
    bounds = np.full((len(y), 2), [1.0, 5.0])  # nothing left to decide
    assert fit(X, y, None, bounds, "labeled").certificate_.holds


@every_regressor
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: np.full(len(y), NAN), "y has no target at all: all are missing"),
        (lambda y: np.where(np.isnan(y), NAN, np.inf), "Input y contains infinity"),
        (lambda y: np.where(np.isnan(y), None, "tall"), "targets that are not numbers"),
        (lambda y: 1e150 * y, "values of y are so large .* Rescale"),
        (lambda y: y[:-1], "inconsistent numbers of samples"),
        (lambda y: np.column_stack([y, y]), "1d array"),
        (lambda y: None, "requires y to be passed"),
    ],
    ids=["all missing", "infinity", "strings", "large", "short", "two columns", "none"],
)
def test_targets_that_cannot_be_used(regressor, change, message):
    X, y = make()
    with pytest.raises(ValueError, match=message):
        clone(regressor).fit(X, change(y))


@every_regressor
def test_too_few_targets_for_the_weights(regressor):
    X, y = make()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(regressor).fit(X, y[:-1], sample_weight=np.ones(len(y)))


@every_regressor
def test_weights_of_zero_for_all_rows_with_a_target(regressor):
    X, y = make()
    with pytest.raises(ValueError, match="sample_weight is zero for all rows with a target"):
        clone(regressor).fit(X, y, sample_weight=np.isnan(y).astype(float))


@every_regressor
def test_failed_fit_leaves_the_regressor_unfitted(regressor):
    X, y = make()
    reg = clone(regressor).fit(X, y)
    with pytest.raises(ValueError, match="infinity"):
        reg.fit(X, np.where(np.isnan(y), NAN, np.inf))
    for method in (reg.predict, lambda _: reg.to_sklearn()):
        with pytest.raises(NotFittedError):
            method(X)


# Markers, frames, sparse rows


@every_regressor
@pytest.mark.parametrize(
    "convert",
    [
        list,
        lambda y: [None if np.isnan(v) else v for v in y],
        pd.Series,
        lambda y: pd.Series(y).astype("Int64"),
        lambda y: pl.Series([None if np.isnan(v) else v for v in y]),
        lambda y: np.ma.masked_invalid(y),
        lambda y: y.astype(np.float32),
    ],
    ids=["list", "None", "pandas", "nullable", "polars", "masked", "float32"],
)
def test_kinds_of_missing_targets(regressor, convert):
    X, y = make()
    reg, expected = clone(regressor).fit(X, convert(y)), clone(regressor).fit(X, y)
    np.testing.assert_array_equal(reg.coef_, expected.coef_)


@every_regressor
def test_other_markers(regressor):
    X, y = make()
    marked = clone(regressor).set_params(missing_label=-99)
    marked.fit(X, np.where(np.isnan(y), -99, y).astype(int))
    np.testing.assert_array_equal(marked.coef_, clone(regressor).fit(X, y).coef_)
    with pytest.raises(ValueError, match=r"null values .* in addition to missing_label=-99"):
        marked.fit(X, y)


@every_regressor
def test_minus_one_is_a_target(regressor):
    X = np.arange(5.0)[:, None]
    reg = clone(regressor).set_params(alpha=0.0).fit(X, [-1, 0, 1, 2, 3])
    np.testing.assert_allclose(reg.predict(X), np.arange(-1, 4), atol=1e-12)


NAMES = ["age", "income", "height", "weight", "time", "rooms"]


@every_regressor
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_of_columns_are_kept(regressor, frame):
    X, y = make()
    data = frame(dict(zip(NAMES, X.T, strict=True)))
    bounds = own_bounds(y)
    table = frame({"low": bounds[:, 0], "high": bounds[:, 1]})
    reg = clone(regressor).fit(data, y, target_bounds=table)
    assert reg.feature_names_in_.tolist() == NAMES
    expected = clone(regressor).fit(X, y, target_bounds=bounds)
    np.testing.assert_allclose(reg.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(reg.predict(data), expected.predict(X), rtol=1e-9)
    supervised = getattr(reg, "supervised_", reg)
    assert supervised.feature_names_in_.tolist() == NAMES
    assert reg.to_sklearn().feature_names_in_.tolist() == NAMES


def test_nullable_bounds():
    X, y = make()
    bounds = own_bounds(y)
    nullable = pd.DataFrame(bounds).convert_dtypes()
    np.testing.assert_array_equal(fit(X, y, None, nullable).coef_, fit(X, y, None, bounds).coef_)


def make_sparse():
    X, y = make(n=200, d=8, n_labeled=10)
    return np.where(np.random.default_rng(4).random(X.shape) < 0.4, X, 0.0), y


@every_regressor
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_equals_dense(regressor, container):
    X, y = make_sparse()
    s = np.linspace(0.5, 2.0, len(y))
    for options in ({}, {"fit_intercept": False}):
        reg, expected = (clone(regressor).set_params(**options) for _ in range(2))
        reg.fit(container(X), y, s, own_bounds(y))
        expected.fit(X, y, s, own_bounds(y))
        np.testing.assert_allclose(reg.coef_, expected.coef_, rtol=0, atol=1e-10)
        np.testing.assert_allclose(reg.intercept_, expected.intercept_, rtol=0, atol=1e-10)
        np.testing.assert_allclose(reg.predict(container(X)), expected.predict(X), atol=1e-10)


# scikit-learn's conventions


@every_regressor
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_attributes_have_the_shapes_of_ridge(regressor, fit_intercept):
    X, y = make()
    reg = clone(regressor).set_params(fit_intercept=fit_intercept).fit(X, y)
    assert is_regressor(reg)
    assert reg.coef_.shape == (6,)
    assert isinstance(reg.intercept_, float)
    if not fit_intercept:
        assert str(reg.intercept_) == "0.0"
    assert reg.n_features_in_ == 6
    np.testing.assert_allclose(reg.predict(X), X @ reg.coef_ + reg.intercept_)


@every_regressor
def test_score_is_the_coefficient_of_determination(regressor):
    X, y = make()
    truth = 3 + X.sum(axis=1)
    reg = clone(regressor).fit(X, y)
    left = np.sum((truth - reg.predict(X)) ** 2) / np.sum((truth - truth.mean()) ** 2)
    assert reg.score(X, truth) == pytest.approx(1 - left)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options",
    [{"alpha": "loo"}, {"alpha": 2.0}, {"fit_intercept": False}, {"rcond": 1e-8}],
    ids=repr,
)
def test_supervised_is_the_baseline_exactly(container, weighted, options):
    X, y = make()
    s = np.linspace(0.5, 2.0, len(y)) if weighted else None
    bounds = own_bounds(y)
    bounds[np.flatnonzero(np.isnan(y))[0]] = 2.0
    reg = fit(container(X), y, s, bounds, **options)
    chosen = options.get("alpha") == "loo"
    baseline = LeastSquaresRegressorCV() if chosen else LeastSquaresRegressor(**options)
    expected = baseline.fit(container(X), y, s, bounds)
    assert type(reg.supervised_) is type(expected)
    assert reg.supervised_.alpha_ == expected.alpha_
    assert repr(reg.supervised_) == repr(expected)
    np.testing.assert_array_equal(reg.supervised_.coef_, expected.coef_)
    assert reg.supervised_.intercept_ == expected.intercept_
    np.testing.assert_array_equal(reg.supervised_.predict(X), expected.predict(X))


@every_regressor
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_plain_scikit_learn_regression(regressor, container, fit_intercept):
    X, y = make()
    reg = clone(regressor).set_params(fit_intercept=fit_intercept).fit(container(X), y)
    plain = reg.to_sklearn()
    assert type(plain) is LinearRegression
    np.testing.assert_allclose(plain.predict(container(X)), reg.predict(X), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(plain.coef_, reg.coef_)
    assert plain.intercept_ == reg.intercept_
    assert plain.n_features_in_ == 6
    plain.coef_[:] = 0.0
    assert reg.coef_.all()  # a copy
    assert "neverworse" not in str(pickle.dumps(plain))


@every_regressor
def test_every_parameter_is_documented_and_validated(regressor):
    for name in regressor.get_params():
        assert name in type(regressor)._parameter_constraints
        assert name in type(regressor).__doc__


@pytest.mark.parametrize(
    ("name", "value"), [("alpha", -1.0), ("solver", "newton"), ("tol", 0.0), ("distance", "near")]
)
def test_parameters_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        fit(*make(), **{name: value})


def test_repr_shows_what_was_changed():
    assert repr(LeastSquaresRegressor()) == "LeastSquaresRegressor()"
    reg = ProjectedLeastSquaresRegressor((0, 1), alpha=2.0)
    assert repr(reg) == "ProjectedLeastSquaresRegressor(alpha=2.0, target_bounds=(0, 1))"


@every_regressor
def test_pickle_round_trip(regressor):
    X, y = make()
    reg = clone(regressor).fit(X, y)
    loaded = pickle.loads(pickle.dumps(reg))
    np.testing.assert_array_equal(loaded.predict(X), reg.predict(X))
    if hasattr(reg, "certificate_"):
        assert loaded.certificate_ == reg.certificate_
        np.testing.assert_array_equal(loaded.imputed_targets_, reg.imputed_targets_)


def test_verbose_writes_stages(capsys):
    fit(*make(), verbose=1)
    assert "[ProjectedLeastSquaresRegressor]" in capsys.readouterr().err


class Recorder:
    """A callback that writes down the stages, and asks to stop if it shall."""

    def __init__(self, stop=False):
        self.stop, self.stages, self.metadata = stop, [], {}

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, metadata=None):
        self.metadata = metadata

    def on_fit_task_end(self, estimator, context):
        self.stages.append(context.task_name)
        return self.stop


@pytest.mark.parametrize("stop", [False, True])
def test_callbacks_see_the_stages_and_may_stop(stop):
    pytest.importorskip("sklearn.callback")
    X, y = make()
    bounds, recorder = own_bounds(y), Recorder(stop)
    reg = ProjectedLeastSquaresRegressor((1, 5), alpha=0.0).set_callbacks(recorder)
    reg.fit(X, y, target_bounds=bounds)
    assert "certificate" in recorder.stages
    assert "target_bounds" not in recorder.metadata
    assert reg.certificate_.stopped_early == stop
    assert reg.certificate_.holds
    if not stop:
        np.testing.assert_array_equal(reg.coef_, fit(X, y, None, bounds).coef_)


@every_regressor
def test_bounds_and_weights_are_routed_through_a_pipeline(regressor):
    X, y = make()
    s, bounds = np.linspace(0.1, 3.0, len(y)), own_bounds(y)
    bounds[np.flatnonzero(np.isnan(y))[:5]] = 2.0  # of these, the baseline takes notice as well
    with sklearn.config_context(enable_metadata_routing=True):
        reg = clone(regressor).set_fit_request(sample_weight=True, target_bounds=True)
        scale = StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scale, reg).fit(X, y, sample_weight=s, target_bounds=bounds)
    expected = clone(regressor).fit(X, y, s, bounds)
    np.testing.assert_allclose(pipeline[-1].coef_, expected.coef_, rtol=1e-9)
    assert not np.allclose(expected.coef_, clone(regressor).fit(X, y, s).coef_)


def test_bounds_are_split_in_a_grid_search():
    X, y = make(n_labeled=150)
    bounds = np.column_stack([y, y + 1])
    with sklearn.config_context(enable_metadata_routing=True):
        reg = ProjectedLeastSquaresRegressor().set_fit_request(target_bounds=True)
        search = GridSearchCV(reg, {"alpha": [0.0, 1.0]}, cv=3, error_score="raise")
        search.fit(X, y, target_bounds=bounds)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@every_regressor
def test_grid_search_over_labeled_rows(regressor):
    model_selection = pytest.importorskip("neverworse.model_selection")
    X, y = make(n_labeled=60)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), clone(regressor)),
        {f"{type(regressor).__name__.lower()}__alpha": [0.0, 1.0, 1e6]},
        cv=model_selection.LabeledKFold(5),
        scoring=model_selection.labeled_scorer("neg_mean_squared_error", missing_label=NAN),
        error_score="raise",
        return_train_score=True,
    ).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert np.isfinite(search.cv_results_["mean_train_score"]).all()
    assert scores[2] < scores[0]
