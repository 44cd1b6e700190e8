"""Updated second moments: the formula, and where it helps and hurts."""

import pickle

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

from neverworse import LeastSquaresClassifier, audit
from neverworse.methods import UpdatedSecondMomentClassifier
from neverworse.model_selection import LabeledKFold


def make(n_classes=2, n=150, d=5, n_labeled=20, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = 3.0 + rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[truth]
    labeled = np.r_[np.arange(n_classes), n_classes + rng.permutation(n - n_classes)]
    y = truth.copy()
    y[labeled[n_labeled:]] = -1
    return X, y, truth


def one_hot(y, n_classes):
    return y.astype(float)[:, None] if n_classes == 2 else np.eye(n_classes)[y]


def by_the_formula(X, y, s, n_classes, alpha=0.0, fit_intercept=True):
    """Weights and intercepts (for targets 0 and 1) as the definition has them."""
    labeled = y >= 0
    target, s_l = one_hot(y[labeled], n_classes), s[labeled]
    centre, mean = np.zeros(X.shape[1]), np.zeros(target.shape[1])
    if fit_intercept:
        centre, mean = np.average(X, axis=0, weights=s), np.average(target, axis=0, weights=s_l)
    E = X - centre
    ratio = s_l.sum() / s.sum()
    second = ratio * E.T @ (s[:, None] * E) + alpha * np.eye(X.shape[1])
    W = np.linalg.solve(second, E[labeled].T @ (s_l[:, None] * (target - mean)))
    return W.T, mean - centre @ W


# The formula


def test_answer_that_can_be_worked_out_by_hand():
    # Labeled 0 -> 0 and 2 -> 1, unlabeled 4 and 6. The mean of all rows is 3 and the sum of squares
    # 9 + 1 + 1 + 9 = 20, of which two labeled rows of four make 10. The sum of products is
    # -3 * -1/2 + -1 * 1/2 = 1. So w = 1/10, and the score at 3 is the labeled share of 1/2.
    clf = UpdatedSecondMomentClassifier().fit([[0.0], [2.0], [4.0], [6.0]], [0, 1, -1, -1])
    assert clf.coef_[0, 0] == pytest.approx(0.1, rel=1e-14)
    assert clf.intercept_[0] + 0.5 == pytest.approx(0.5 - 0.3, rel=1e-14)
    assert clf.predict([[2.9], [3.1]]).tolist() == [0, 1]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"alpha": 4.0}, {"fit_intercept": False}], ids=repr)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_it_is_what_the_formula_says(n_classes, weighted, options, container):
    X, y, _ = make(n_classes)
    s = np.random.default_rng(1).uniform(0.0, 3.0, len(y)) if weighted else None
    clf = UpdatedSecondMomentClassifier(**options).fit(container(X), y, s)
    ones = np.ones(len(y)) if s is None else s
    coef, intercept = by_the_formula(X, y, ones, n_classes, **options)
    np.testing.assert_allclose(clf.coef_, coef, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(clf.intercept_ + 0.5, intercept, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_minimise_the_objective(weighted):
    X, y, _ = make()
    s = np.linspace(0.2, 2.0, len(y)) if weighted else np.ones(len(y))
    labeled, alpha = y >= 0, 2.0
    clf = UpdatedSecondMomentClassifier(alpha).fit(X, y, s)
    E = X - np.average(X, axis=0, weights=s)
    residual = y[labeled] - np.average(y[labeled], weights=s[labeled])

    def objective(w):
        quadratic = s[labeled].sum() / s.sum() * s @ (E @ w) ** 2
        return quadratic - 2 * (s[labeled] * residual) @ (E[labeled] @ w) + alpha * w @ w

    best, rng = objective(clf.coef_[0]), np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        assert all(objective(clf.coef_[0] + size * rng.normal(size=5)) > best for _ in range(20))


@pytest.mark.parametrize("rcond", [1e-3, 0.3])
def test_cut_off_of_directions(rcond):
    X, y, _ = make()
    X = X * [1.0, 10.0, 3.0, 0.1, 1.0]
    labeled = y >= 0
    clf = UpdatedSecondMomentClassifier(rcond=rcond).fit(X, y)
    E = X - X.mean(axis=0)
    products = E[labeled].T @ (y[labeled] - y[labeled].mean())
    inverse = np.linalg.pinv(labeled.mean() * E.T @ E, rcond=rcond, hermitian=True)
    np.testing.assert_allclose(clf.coef_[0], inverse @ products, rtol=1e-9, atol=1e-12)
    assert not np.allclose(clf.coef_, UpdatedSecondMomentClassifier().fit(X, y).coef_, rtol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_mean_score_of_all_rows_is_the_share_of_the_class_among_labeled_rows(n_classes):
    X, y, _ = make(n_classes)
    clf = UpdatedSecondMomentClassifier(1.0).fit(X, y)
    shares = one_hot(y[y >= 0], n_classes).mean(axis=0)
    np.testing.assert_allclose((clf.decision_function(X) + 0.5).mean(axis=0), shares.squeeze())


def test_it_does_not_matter_which_class_is_coded_one():
    X, y, _ = make()
    clf = UpdatedSecondMomentClassifier().fit(X, y)
    swapped = UpdatedSecondMomentClassifier().fit(X, np.where(y >= 0, 1 - y, -1))
    np.testing.assert_allclose(swapped.coef_, -clf.coef_, rtol=1e-10)
    np.testing.assert_allclose(swapped.intercept_, -clf.intercept_, rtol=1e-9)


def test_scale_and_origin_of_features_do_not_matter():
    X, y, _ = make()
    moved = X * [1.0, 1e3, 1e-3, 5.0, 1.0] + [1e5, 0.0, 3.0, -1e3, 7.0]
    one = UpdatedSecondMomentClassifier().fit(X, y).decision_function(X)
    other = UpdatedSecondMomentClassifier().fit(moved, y).decision_function(moved)
    np.testing.assert_allclose(other, one, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"alpha": 4.0}, {"fit_intercept": False}, {"rcond": 0.1}])
def test_without_unlabeled_rows_it_is_least_squares(n_classes, options):
    X, _, truth = make(n_classes)
    s = np.linspace(0.5, 2.0, len(X))
    clf = UpdatedSecondMomentClassifier(**options).fit(X, truth, s)
    reference = LeastSquaresClassifier(**options).fit(X, truth, s)
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(clf.intercept_, reference.intercept_, rtol=1e-9, atol=1e-11)


def test_unlabeled_rows_of_weight_zero_are_absent():
    X, y, _ = make()
    clf = UpdatedSecondMomentClassifier().fit(X, y, (y >= 0).astype(float))
    reference = LeastSquaresClassifier().fit(X, y)
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-9)


def test_weights_are_repetitions():
    X, y, _ = make()
    s = np.random.default_rng(0).integers(0, 3, len(y))
    s[:2] = 1
    again = np.repeat(np.arange(len(y)), s)
    clf = UpdatedSecondMomentClassifier().fit(X, y, s)
    repeated = UpdatedSecondMomentClassifier().fit(X[again], y[again])
    np.testing.assert_allclose(clf.coef_, repeated.coef_, rtol=1e-9)


def test_shortest_weights_where_there_are_many():
    X, y, _ = make(n=30, n_labeled=6)
    doubled = np.c_[X, X[:, 0]]
    clf = UpdatedSecondMomentClassifier().fit(doubled, y)
    reference = UpdatedSecondMomentClassifier().fit(X, y)
    np.testing.assert_allclose(clf.coef_[0, [0, 5]], reference.coef_[0, 0] / 2, rtol=1e-8)
    np.testing.assert_allclose(
        clf.decision_function(doubled), reference.decision_function(X), atol=1e-9
    )


def test_label_that_bounds_give_away():
    X, y, truth = make()
    bounds = np.full((len(y), 2), np.nan)
    known = np.flatnonzero(y == -1)[:10]
    bounds[known] = truth[known, None]
    clf = UpdatedSecondMomentClassifier().fit(X, y, label_bounds=bounds)
    y[known] = truth[known]
    reference = UpdatedSecondMomentClassifier().fit(X, y)
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-10)


# Where it helps, and where it hurts


def test_better_where_labeled_rows_are_hardly_more_than_columns():
    losses, errors = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 1000)
        X = rng.normal(size=(1000, 50)) + 0.5 * truth[:, None]
        y = np.where(np.arange(1000) < 52, truth, -1)
        models = [m.fit(X, y) for m in (LeastSquaresClassifier(), UpdatedSecondMomentClassifier())]
        losses.append([np.mean((m.decision_function(X) + 0.5 - truth) ** 2) for m in models])
        errors.append([1 - m.score(X, truth) for m in models])
    supervised, updated = np.mean(errors, axis=0)
    assert updated < 0.6 * supervised
    supervised, updated = np.mean(losses, axis=0)
    assert updated < 0.1 * supervised


def test_worse_where_few_labels_say_it_all():
    # The class is a feature: least squares finds that out, and updated moments forget it.
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 300)
        truth[:2] = 0, 1
        X = np.c_[truth, rng.normal(size=(300, 3))].astype(float)
        y = np.where(np.arange(300) < 12, truth, -1)
        supervised = LeastSquaresClassifier().fit(X, y)
        clf = UpdatedSecondMomentClassifier().fit(X, y)
        np.testing.assert_allclose(supervised.decision_function(X) + 0.5, truth, atol=1e-10)
        assert np.mean((clf.decision_function(X) + 0.5 - truth) ** 2) > 0.005


def test_audit():
    X, y, _ = make()
    clf, supervised = UpdatedSecondMomentClassifier().fit(X, y), LeastSquaresClassifier().fit(X, y)
    by_score = audit(clf, supervised, X, y, response="score")
    assert not by_score.holds
    assert by_score.best_case < by_score.worst_case
    assert not audit(clf, supervised, X, y).holds


# As an estimator


def test_parameters_pickle_and_search():
    X, y, truth = make(n_labeled=60)
    clf = UpdatedSecondMomentClassifier(0.5, fit_intercept=False, rcond=1e-8, missing_label=-1)
    parameters = clf.get_params()
    assert clone(clf).get_params() == parameters
    loaded = pickle.loads(pickle.dumps(clf.fit(X, y)))
    assert clf.get_params() == parameters
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    pipeline = make_pipeline(StandardScaler(), UpdatedSecondMomentClassifier())
    grid = {"updatedsecondmomentclassifier__alpha": [0.0, 1.0, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=LabeledKFold(4, shuffle=True, random_state=0))
    assert search.fit(X, y).score(X, truth) > 0.7


def test_sample_weight_is_routed():
    X, y, _ = make()
    s = np.linspace(0.1, 3.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        clf = UpdatedSecondMomentClassifier().set_fit_request(sample_weight=True)
        scaler = StandardScaler(with_mean=False, with_std=False)
        pipeline = make_pipeline(scaler.set_fit_request(sample_weight=False), clf)
        pipeline.fit(X, y, sample_weight=s)
    expected = UpdatedSecondMomentClassifier().fit(X, y, s)
    np.testing.assert_allclose(pipeline[-1].coef_, expected.coef_, rtol=1e-9)


# Bad input


def spoiled(X, value):
    X = X.copy()
    X[-1, 0] = value
    return X


BAD_FITS = {
    "overflow": ("so large .* Rescale the columns", lambda X, y: (spoiled(X, 1e200), y)),
    "underflow": ("so small .* Rescale the column", lambda X, y: (X * 1e-200, y)),
}


@pytest.mark.parametrize("name", BAD_FITS)
def test_bad_input_is_explained_and_leaves_it_unfitted(name):
    X, y, _ = make()
    message, spoil = BAD_FITS[name]
    clf = UpdatedSecondMomentClassifier().fit(X, y)
    with pytest.raises(ValueError, match=message):
        clf.fit(*spoil(X, y))
    with pytest.raises(NotFittedError):
        clf.predict(X)


@pytest.mark.parametrize(
    ("name", "value"), [("alpha", -1.0), ("alpha", "loo"), ("rcond", 1.0), ("fit_intercept", "no")]
)
def test_parameters_out_of_range(name, value):
    X, y, _ = make()
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter"):
        UpdatedSecondMomentClassifier(**{name: value}).fit(X, y)
