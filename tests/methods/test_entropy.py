"""Entropy regularisation: the objective at the solution, where it helps, and where it harms."""

import numpy as np
import pytest
import sklearn
from scipy import optimize, sparse, special
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

from neverworse import audit
from neverworse.methods import EntropyRegularizedLogisticRegression
from neverworse.methods._entropy import MANY_COLUMNS
from neverworse.model_selection import LabeledKFold
from tests.estimators.callbacks import Callback


def make(n_classes=2, n=120, d=4, n_labeled=24, seed=0):
    """Labeled rows first, of all classes in turn."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(n_classes, d))[truth]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def two_clusters(seed, classes_are_clusters, n=600, n_labeled=8):
    """Rows in two clusters, whose classes are the clusters, or cut both of them in two."""
    rng = np.random.default_rng(seed)
    cluster = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + [4, 0] * (cluster[:, None] - 0.5)
    truth = cluster if classes_are_clusters else (X[:, 1] > 0).astype(int)
    y = np.full(n, -1)
    for k in (0, 1):
        chosen = rng.choice(np.flatnonzero(truth == k), n_labeled // 2, replace=False)
        y[chosen] = k
    return X, y, truth


# The objective, written down a second time


def objective(clf, X, y, s, coef, intercept):
    """J, from probabilities for all classes."""
    scores = X @ coef.T + intercept
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    log_p = special.log_softmax(scores, axis=1)
    labeled = y >= 0
    log_loss = -log_p[labeled, y[labeled]] @ s[labeled]
    entropy = special.entr(np.exp(log_p[~labeled])).sum(axis=1) @ s[~labeled]
    return log_loss + clf.entropy_weight * entropy + clf.alpha / 2 * np.sum(coef**2)


def gradient(clf, X, y, s, step=1e-5):
    """Its derivative at the weights of a classifier, by central differences."""
    at = np.hstack([clf.coef_, clf.intercept_[:, None]])
    found = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        e = np.zeros_like(at)
        e[index] = step
        values = [
            objective(clf, X, y, s, w[:, :-1], w[:, -1])
            for w in (at - 2 * e, at - e, at + e, at + 2 * e)
        ]
        found[index] = np.dot([1, -8, 8, -1], values) / (12 * step)
    return found if clf.fit_intercept else found[:, :-1]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"alpha": 0.1, "entropy_weight": 0.05}, {"fit_intercept": False}, {"n_stages": 1}],
    ids=repr,
)
def test_gradient_vanishes_at_the_solution(n_classes, weighted, options):
    X, y, _ = make(n_classes)
    s = np.linspace(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    clf = EntropyRegularizedLogisticRegression(tol=1e-8, **options).fit(X, y, s)
    assert clf.converged_
    at_start = gradient(clf.supervised_.set_params(entropy_weight=clf.entropy_weight), X, y, s)
    assert np.abs(at_start).max() > 0.1
    assert np.abs(gradient(clf, X, y, s)).max() < 2e-6
    value = objective(clf, X, y, s, clf.coef_, clf.intercept_)
    assert clf.objective_ == pytest.approx(value, rel=1e-10)


def test_objective_is_lower_than_that_of_the_supervised_weights():
    for seed in range(5):
        X, y, _ = make(seed=seed)
        clf = EntropyRegularizedLogisticRegression().fit(X, y)
        w = clf.supervised_
        assert clf.objective_ < objective(clf, X, y, np.ones(len(y)), w.coef_, w.intercept_)


@pytest.mark.parametrize("u", [0.5, 3.0])
def test_four_rows_with_a_known_answer(u):
    X, y = np.array([[-1.0], [1.0], [-u], [u]]), [0, 1, -1, -1]

    def value(w):  # two rows are mirror images of the other two
        return (
            2 * np.log1p(np.exp(-w))
            + 2 * special.entr(special.expit([w * u, -w * u])).sum()
            + (0.25 * w**2)
        )

    best = optimize.minimize_scalar(
        value, bounds=(0, 20), method="bounded", options={"xatol": 1e-12}
    )
    clf = EntropyRegularizedLogisticRegression(0.5, tol=1e-9).fit(X, y)
    assert clf.coef_[0, 0] == pytest.approx(best.x, rel=1e-6)
    assert clf.intercept_[0] == pytest.approx(0.0, abs=1e-7)
    assert clf.objective_ == pytest.approx(best.fun, rel=1e-12)
    p = special.expit(best.x * u)
    np.testing.assert_allclose(clf.predict_proba([[-u], [u]]), [[p, 1 - p], [1 - p, p]], rtol=1e-6)


# Its supervised counterpart


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_entropy_it_is_the_logistic_regression_of_scikit_learn(
    n_classes, fit_intercept, weighted
):
    X, y, _ = make(n_classes, n_labeled=40)
    X = X * [1.0, 100.0, 0.01, 1.0] + [0.0, 50.0, 1.0, 0.0]
    s = np.linspace(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    options = {"fit_intercept": fit_intercept}
    clf = EntropyRegularizedLogisticRegression(0.2, entropy_weight=0.0, tol=1e-7, **options)
    clf.fit(X, y, s)
    theirs = LogisticRegression(C=5.0, solver="newton-cholesky", tol=1e-10, **options)
    theirs.fit(X[:40], y[:40], s[:40])
    # tol allows a gradient of 1e-7 √(2J), where √(2J) is about ten
    np.testing.assert_allclose(clf.coef_, theirs.coef_, rtol=1e-5, atol=1e-6)
    if fit_intercept:  # of several classes, all intercepts may be shifted alike
        ours, expected = clf.intercept_, theirs.intercept_
        if n_classes > 2:
            ours, expected = ours - ours.mean(), expected - expected.mean()
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(clf.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    semi = EntropyRegularizedLogisticRegression(0.2, tol=1e-7, **options).fit(X, y, s)
    np.testing.assert_array_equal(semi.supervised_.coef_, clf.coef_)
    assert np.abs(semi.coef_ - clf.coef_).max() > 1e-3


@pytest.mark.parametrize("weights_vanish", [False, True])
def test_no_unlabeled_rows(weights_vanish):
    X, y, _ = make()
    s = (y >= 0).astype(float)
    if not weights_vanish:
        X, y, s = X[y >= 0], y[y >= 0], None
    clf = EntropyRegularizedLogisticRegression().fit(X, y, s)
    np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)
    assert clf.objective_ == clf.supervised_.objective_


def test_supervised_follows_the_same_conventions():
    X, y, _ = make()
    supervised = EntropyRegularizedLogisticRegression(0.3).fit(X, y).supervised_
    assert supervised.get_params()["entropy_weight"] == 0.0
    assert supervised.alpha == 0.3
    assert supervised.converged_
    assert not hasattr(supervised, "supervised_")
    again = clone(supervised).fit(X, y)
    np.testing.assert_array_equal(again.coef_, supervised.coef_)


# Where its assumption holds, and where it does not


@pytest.mark.parametrize("entropy_weight", [0.1, 1.0])
def test_it_helps_where_classes_are_clusters(entropy_weight):
    errors = []
    for seed in range(10):
        X, y, truth = two_clusters(seed, classes_are_clusters=True)
        clf = EntropyRegularizedLogisticRegression(0.1, entropy_weight=entropy_weight).fit(X, y)
        errors.append([1 - clf.score(X, truth), 1 - clf.supervised_.score(X, truth)])
    ours, supervised = np.mean(errors, axis=0)
    assert ours < 0.03  # the best boundary has 0.023
    assert ours < 0.75 * supervised


@pytest.mark.parametrize("entropy_weight", [0.1, 1.0])
def test_it_harms_where_classes_cut_clusters(entropy_weight):
    errors = []
    for seed in range(10):
        X, y, truth = two_clusters(seed, classes_are_clusters=False)
        clf = EntropyRegularizedLogisticRegression(0.1, entropy_weight=entropy_weight).fit(X, y)
        errors.append([1 - clf.score(X, truth), 1 - clf.supervised_.score(X, truth)])
    ours, supervised = np.mean(errors, axis=0)
    assert ours > 1.5 * supervised
    assert np.mean(np.diff(errors, axis=1) < 0) > 0.8


def test_the_audit_sees_both():
    X, y, truth = two_clusters(1, classes_are_clusters=False)
    clf = EntropyRegularizedLogisticRegression(0.1).fit(X, y)
    found = audit(clf, clf.supervised_, X, y)
    assert found.best_case < 0.0 < found.worst_case
    known = audit(clf, clf.supervised_, X, truth)
    assert 0.0 < known.worst_case <= found.worst_case


def test_several_stages_find_a_better_minimum_than_one():
    lower = []
    for seed in range(10):
        X, y, _ = make(3, seed=seed, n_labeled=9)
        one = EntropyRegularizedLogisticRegression(0.1, n_stages=1).fit(X, y)
        ten = EntropyRegularizedLogisticRegression(0.1, n_stages=10).fit(X, y)
        if abs(one.objective_ - ten.objective_) > 1e-3:
            lower.append(ten.objective_ < one.objective_)
    assert len(lower) >= 5
    assert np.mean(lower) > 0.5


# Data of all kinds


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("d", [6, MANY_COLUMNS + 1])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_equals_dense(n_classes, d, fit_intercept):
    X, y, _ = make(n_classes, n=60, d=6, n_labeled=20)
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.6, X, 0.0)
    wide = np.zeros((60, d))
    wide[:, :6] = X
    # With much entropy there are several minima, and other coordinates lead to another of them.
    options = {"entropy_weight": 0.1, "tol": 1e-7, "fit_intercept": fit_intercept}
    reference = EntropyRegularizedLogisticRegression(**options).fit(X, y)
    for data in (wide, sparse.csr_matrix(wide), sparse.csc_array(wide)):
        clf = EntropyRegularizedLogisticRegression(**options).fit(data, y)
        assert clf.converged_
        np.testing.assert_allclose(clf.coef_[:, :6], reference.coef_, atol=1e-5)
        assert not clf.coef_[:, 6:].any()
        np.testing.assert_allclose(clf.predict_proba(data), reference.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("d", [3, MANY_COLUMNS + 1])
def test_scales_of_the_columns_do_not_slow_it_down(d):
    X, y, _ = make(d=3)
    X = np.hstack([X * [1e-6, 1.0, 1e9], np.zeros((len(X), d - 3))])
    clf = EntropyRegularizedLogisticRegression().fit(X, y)
    assert clf.converged_
    assert clf.n_iter_ < 200


def test_features_far_from_zero():
    X, y, _ = make()
    clf = EntropyRegularizedLogisticRegression(tol=1e-8).fit(X, y)
    far = EntropyRegularizedLogisticRegression(tol=1e-8).fit(X + 1e7, y)
    np.testing.assert_allclose(far.coef_, clf.coef_, rtol=1e-5)
    np.testing.assert_allclose(far.predict_proba(X + 1e7), clf.predict_proba(X), atol=1e-5)


def test_weight_zero_is_as_good_as_absent():
    X, y, _ = make()
    s = np.linspace(0.5, 3.0, len(y))
    s[[0, 1, 30, 31]] = 0.0
    X[s == 0.0] *= 1e100
    clf = EntropyRegularizedLogisticRegression().fit(X, y, s)
    kept = s > 0.0
    reference = EntropyRegularizedLogisticRegression().fit(X[kept], y[kept], s[kept])
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-5)


# Use with scikit-learn


@pytest.mark.parametrize("n_classes", [2, 3])
def test_plain_scikit_learn_classifier(n_classes):
    X, y, _ = make(n_classes)
    clf = EntropyRegularizedLogisticRegression().fit(X, y)
    theirs = clf.to_sklearn()
    assert type(theirs) is LogisticRegression
    np.testing.assert_allclose(
        theirs.predict_proba(X), clf.predict_proba(X), rtol=1e-10, atol=1e-14
    )
    np.testing.assert_allclose(theirs.decision_function(X), clf.decision_function(X), atol=1e-12)
    np.testing.assert_allclose(theirs.predict_log_proba(X), clf.predict_log_proba(X), rtol=1e-8)
    far = clf.predict_log_proba(1e3 * X)  # where probabilities themselves vanish
    assert np.isfinite(far).all()
    assert far.min() < -800.0
    np.testing.assert_array_equal(theirs.predict(X), clf.predict(X))


def test_search_for_the_weight_of_the_entropy():
    X, y, truth = two_clusters(3, classes_are_clusters=True, n_labeled=20)
    pipeline = make_pipeline(StandardScaler(), EntropyRegularizedLogisticRegression())
    grid = {"entropyregularizedlogisticregression__entropy_weight": [0.0, 0.01, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=LabeledKFold(4), scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.score(X, truth) > 0.95


def test_weights_are_routed():
    X, y, _ = make()
    s = np.linspace(0.1, 3.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        clf = EntropyRegularizedLogisticRegression().set_fit_request(sample_weight=True)
        scaler = StandardScaler(with_mean=False, with_std=False).set_fit_request(
            sample_weight=False
        )
        pipeline = make_pipeline(scaler, clf).fit(X, y, sample_weight=s)
    expected = EntropyRegularizedLogisticRegression().fit(X, y, s)
    np.testing.assert_allclose(pipeline[-1].coef_, expected.coef_, rtol=1e-9)
    assert not np.allclose(expected.coef_, EntropyRegularizedLogisticRegression().fit(X, y).coef_)


# Progress, and fits that do not come to an end


def test_verbose_writes_a_line_for_every_stage(capsys):
    X, y, _ = make()
    EntropyRegularizedLogisticRegression(n_stages=3, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert "labeled rows only (24 rows)" in lines[0]
    for line, weight in zip(lines[1:], ["0.25", "0.5", "1"], strict=True):
        assert f"entropy weight {weight} (120 rows)" in line
        assert "iterations" in line


def test_callback_may_stop_it():
    pytest.importorskip("sklearn.callback")
    X, y, _ = make()
    stop = Callback(lambda stage: stage == "entropy weight 0.25")
    clf = EntropyRegularizedLogisticRegression().set_callbacks(stop).fit(X, y)
    assert not clf.converged_
    assert clf.predict_proba(X).shape == (120, 2)


def test_too_few_iterations():
    X, y, _ = make()
    with pytest.warns(ConvergenceWarning, match=r"after 1 iterations.*Raise max_iter"):
        clf = EntropyRegularizedLogisticRegression(max_iter=1).fit(X, y)
    assert not clf.converged_
    assert np.isfinite(clf.coef_).all()


def spoil(X, value):
    X = X.copy()
    X[-1, 0] = value
    return X


BAD_FITS = {
    "sparse NaN": ("contains NaN", lambda X, y: (sparse.csr_array(spoil(X, np.nan)), y)),
    "too large": (r"so large.*Rescale", lambda X, y: (spoil(X, 1e200), y)),
    "too small": (r"so small.*Rescale", lambda X, y: (X * 1e-200, y)),
    "many columns": (
        r"so large.*Rescale",
        lambda X, y: (np.hstack([spoil(X, 1e200), np.zeros((len(X), MANY_COLUMNS))]), y),
    ),
}


@pytest.mark.parametrize("name", BAD_FITS)
def test_bad_input_leaves_it_unfitted(name):
    X, y, _ = make()
    message, change = BAD_FITS[name]
    clf = EntropyRegularizedLogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=message):
        clf.fit(*change(X, y))
    with pytest.raises(NotFittedError):
        clf.predict(X)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 0.0),
        ("alpha", np.inf),
        ("entropy_weight", -1.0),
        ("entropy_weight", np.inf),
        ("n_stages", 0),
        ("tol", 0.0),
        ("max_iter", 0),
        ("fit_intercept", "yes"),
        ("verbose", -1),
    ],
)
def test_parameters_out_of_range(name, value):
    X, y, _ = make()
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter"):
        EntropyRegularizedLogisticRegression(**{name: value}).fit(X, y)
