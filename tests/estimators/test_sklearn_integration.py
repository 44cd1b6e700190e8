import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from neverworse import (
    ICLSClassifier,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    ProjectedLeastSquaresClassifier,
)

ALL = [LeastSquaresClassifier, ProjectedLeastSquaresClassifier, ICLSClassifier]
SEMI = [ProjectedLeastSquaresClassifier, ICLSClassifier]
every_classifier = pytest.mark.parametrize("classifier", ALL)
semi_supervised = pytest.mark.parametrize("classifier", SEMI)

DEFAULT_FAILURES = {
    "check_classifiers_classes": "uses the classes -1 and +1, which the default refuses to guess"
}
# A row of weight two is left out as a whole; of a row that occurs twice, one copy stays.
REPEATED = "leaving out a row is not leaving out one of its copies"


def weights_of_rows(estimator):
    """What fails where leave-one-out chooses the penalty."""
    if estimator.alpha != "loo":
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": REPEATED,
        "check_sample_weight_equivalence_on_sparse_data": REPEATED,
    }


def make(n=120, d=4, n_labeled=16, seed=4):
    """Labeled and unlabeled rows in random order."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d)) + 0.7 * y[:, None]
    labeled = rng.choice(n, n_labeled, replace=False)
    y[labeled[:2]] = 0, 1
    return X, np.where(np.isin(np.arange(n), labeled), y, -1)


def make_labeled(n=80, seed=4):
    return make(n=n, n_labeled=n, seed=seed)


@semi_supervised
def test_the_rows_of_these_tests_are_not_a_trivial_case(classifier):
    for X, y in (make(), make_large(), make_sparse(), make_sparse(n_labeled=14)):
        clf = classifier(alpha=0.0).fit(X, y)
        assert np.abs(clf.coef_ - clf.supervised_.coef_).max() > 1e-3


# scikit-learn's own checks


@parametrize_with_checks(
    [classifier(missing_label=np.nan) for classifier in ALL], expected_failed_checks=weights_of_rows
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_checks([classifier(alpha=0.0, missing_label=np.nan) for classifier in SEMI])
def test_scikit_learn_checks_without_a_penalty(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [classifier() for classifier in ALL],
    expected_failed_checks=lambda estimator: DEFAULT_FAILURES | weights_of_rows(estimator),
)
def test_scikit_learn_checks_with_default_parameters(estimator, check):
    check(estimator)


# Parameters


PARAMETERS = [
    LeastSquaresClassifier(0.5, fit_intercept=False, rcond=1e-8, missing_label="?"),
    ProjectedLeastSquaresClassifier(
        "unlabeled",
        alpha=0.5,
        constraint_alpha=2.0,
        fit_intercept=False,
        rcond=1e-8,
        missing_label=-1,
        solver="lbfgs",
        tol=1e-4,
        max_iter=7,
        max_time=3.0,
    ),
    ICLSClassifier(
        alpha=0.5,
        constraint_alpha=2.0,
        fit_intercept=False,
        rcond=1e-8,
        missing_label=None,
        solver="lbfgs",
        tol=1e-4,
        max_iter=7,
        max_time=3.0,
    ),
]


@pytest.mark.parametrize("estimator", PARAMETERS, ids=lambda e: type(e).__name__)
def test_parameters_survive_clone_and_set_params(estimator):
    parameters = estimator.get_params()
    assert clone(estimator).get_params() == parameters
    other = type(estimator)()
    assert other.get_params() != parameters
    assert other.set_params(**parameters) is other
    assert other.get_params() == parameters


def test_distance_matrix_is_stored_untouched():
    D = np.arange(8.0).reshape(2, 4)
    clf = ProjectedLeastSquaresClassifier(distance=D)
    assert clf.get_params()["distance"] is D
    np.testing.assert_array_equal(clone(clf).distance, D)


@pytest.mark.parametrize("estimator", PARAMETERS, ids=lambda e: type(e).__name__)
def test_every_parameter_is_documented_and_validated(estimator):
    for name in estimator.get_params():
        assert name in type(estimator)._parameter_constraints
        assert name in type(estimator).__doc__


@every_classifier
def test_fit_does_not_change_parameters(classifier):
    clf = classifier()
    before = clf.get_params()
    assert clf.fit(*make()) is clf
    assert clf.get_params() == before


def test_repr_shows_what_was_changed():
    assert repr(ProjectedLeastSquaresClassifier()) == "ProjectedLeastSquaresClassifier()"
    assert repr(LeastSquaresClassifier(alpha=2.0)) == "LeastSquaresClassifier(alpha=2.0)"
    assert repr(ICLSClassifier(solver="lbfgs")) == "ICLSClassifier(solver='lbfgs')"
    clf = ProjectedLeastSquaresClassifier("unlabeled", alpha=0.1)
    assert repr(clf) == "ProjectedLeastSquaresClassifier(alpha=0.1, distance='unlabeled')"
    assert repr(clf.fit(*make())) == repr(clone(clf))


@every_classifier
def test_html_repr_names_the_class(classifier):
    assert classifier.__name__ in classifier().fit(*make())._repr_html_()


@every_classifier
def test_is_a_classifier(classifier):
    assert is_classifier(classifier())


# Storage


@every_classifier
def test_pickle_round_trip(classifier):
    X, y = make()
    clf = classifier().fit(X, y)
    loaded = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(loaded.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), clf.predict(X))
    assert loaded.get_params() == clf.get_params()
    if classifier is not LeastSquaresClassifier:
        assert loaded.certificate_ == clf.certificate_
        assert loaded.certificate_.summary() == clf.certificate_.summary()
        np.testing.assert_array_equal(loaded.soft_labels_, clf.soft_labels_)


@semi_supervised
def test_joblib_round_trip(classifier, tmp_path):
    X, y = make()
    clf = classifier().fit(X, y)
    joblib.dump(clf, tmp_path / "clf.joblib")
    loaded = joblib.load(tmp_path / "clf.joblib")
    np.testing.assert_array_equal(loaded.decision_function(X), clf.decision_function(X))
    assert loaded.certificate_ == clf.certificate_


# Composition


def test_pipeline_with_scaler():
    X, y = make()
    X = X * [1.0, 100.0, 0.01, 1.0] + [0.0, 5.0, -3.0, 1.0]
    pipeline = make_pipeline(StandardScaler(), ProjectedLeastSquaresClassifier(alpha=0.0)).fit(X, y)
    clf = pipeline[-1]
    assert clf.certificate_.holds
    assert clf.certificate_.guaranteed_improvement > 0.0
    # Without a penalty, the distance "all" does not depend on the scales of the columns.
    bare = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    np.testing.assert_allclose(
        pipeline.decision_function(X), bare.decision_function(X), rtol=1e-7, atol=1e-8
    )
    assert clf.certificate_.worst_case == pytest.approx(bare.certificate_.worst_case, rel=1e-6)


@every_classifier
def test_grid_search_in_a_pipeline(classifier):
    X, y = make_labeled()
    pipeline = Pipeline([("scale", StandardScaler()), ("clf", classifier())])
    search = GridSearchCV(pipeline, {"clf__alpha": [0.0, 1.0, 1e6]}, cv=3).fit(X, y)
    assert search.best_params_["clf__alpha"] in (0.0, 1.0, 1e6)
    tested = [p["clf__alpha"] for p in search.cv_results_["params"]]
    assert tested == [0.0, 1.0, 1e6]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_
    assert best.named_steps["clf"].alpha == search.best_params_["clf__alpha"]
    assert search.score(X, y) == best.score(X, y) > 0.6


def test_grid_search_in_two_processes():
    X, y = make_labeled()
    grid = {"alpha": [0.0, 10.0]}
    clf = ProjectedLeastSquaresClassifier()
    serial = GridSearchCV(clf, grid, cv=2, n_jobs=1).fit(X, y)
    parallel = GridSearchCV(clf, grid, cv=2, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(
        parallel.cv_results_["mean_test_score"], serial.cv_results_["mean_test_score"]
    )
    np.testing.assert_allclose(
        parallel.best_estimator_.coef_, serial.best_estimator_.coef_, rtol=1e-10
    )


@every_classifier
def test_cross_validate(classifier):
    X, y = make_labeled()
    result = cross_validate(
        classifier(), X, y, cv=4, scoring=["accuracy", "roc_auc"], return_estimator=True
    )
    assert result["test_accuracy"].shape == (4,)
    assert result["test_roc_auc"].min() > 0.6
    assert all(isinstance(clf, classifier) for clf in result["estimator"])


@every_classifier
def test_calibration(classifier):
    X, y = make_labeled(n=200)
    clf = CalibratedClassifierCV(classifier(), cv=3).fit(X, y)
    probability = clf.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    scores = classifier().fit(X, y).decision_function(X)
    assert np.corrcoef(probability[:, 1], scores)[0, 1] > 0.9


# Metadata routing


@every_classifier
def test_sample_weight_is_routed_through_a_pipeline(classifier):
    X, y = make()
    s = np.linspace(0.1, 3.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        clf = classifier().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), clf)
        pipeline[0].set_fit_request(sample_weight=False)
        pipeline.fit(X, y, sample_weight=s)
    expected = classifier().fit(X, y, sample_weight=s)
    np.testing.assert_allclose(pipeline[-1].coef_, expected.coef_, rtol=1e-9)
    assert not np.allclose(expected.coef_, classifier().fit(X, y).coef_)


@every_classifier
def test_sample_weight_is_routed_through_grid_search(classifier):
    X, y = make_labeled()
    s = np.linspace(0.1, 3.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        clf = classifier().set_fit_request(sample_weight=True)
        clf.set_score_request(sample_weight=False)
        search = GridSearchCV(clf, {"alpha": [0.0]}, cv=2).fit(X, y, sample_weight=s)
    expected = classifier(alpha=0.0).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(search.best_estimator_.coef_, expected.coef_, rtol=1e-9)


@every_classifier
def test_sample_weight_that_was_not_requested_is_an_error(classifier):
    X, y = make()
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), classifier())
        with pytest.raises(ValueError, match=r"sample_weight.*not explicitly set"):
            pipeline.fit(X, y, sample_weight=np.ones(len(y)))


# Names of columns


NAMES = ["age", "income", "height", "weight"]


@every_classifier
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_of_columns_are_kept(classifier, frame):
    X, y = make()
    data = frame(dict(zip(NAMES, X.T, strict=True)))
    clf = classifier().fit(data, y)
    assert clf.feature_names_in_.tolist() == NAMES
    assert clf.n_features_in_ == 4
    np.testing.assert_allclose(clf.coef_, classifier().fit(X, y).coef_, rtol=1e-9)
    np.testing.assert_allclose(clf.decision_function(data), X @ clf.coef_[0] + clf.intercept_)
    supervised = getattr(clf, "supervised_", clf)
    assert supervised.feature_names_in_.tolist() == NAMES
    assert supervised.predict(data).shape == (len(y),)


@every_classifier
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_other_names_in_predict(classifier, frame):
    X, y = make()
    clf = classifier().fit(frame(dict(zip(NAMES, X.T, strict=True))), y)
    swapped = frame(dict(zip(NAMES[::-1], X.T, strict=True)))
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        clf.predict(swapped)
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame(dict(zip("abcd", X.T, strict=True))))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        clf.predict(X)


@every_classifier
def test_names_are_forgotten_in_a_fit_without_names(classifier):
    X, y = make()
    clf = classifier().fit(pd.DataFrame(X, columns=NAMES), y).fit(X, y)
    assert not hasattr(clf, "feature_names_in_")
    assert not hasattr(getattr(clf, "supervised_", clf), "feature_names_in_")


@every_classifier
def test_array_output_even_where_frames_are_asked_for(classifier):
    X, y = make()
    with sklearn.config_context(transform_output="pandas"):
        pipeline = make_pipeline(StandardScaler(), classifier())
        pipeline.fit(pd.DataFrame(X, columns=NAMES), y)
        predicted = pipeline.predict(pd.DataFrame(X, columns=NAMES))
    assert isinstance(predicted, np.ndarray)
    assert pipeline[-1].feature_names_in_.tolist() == NAMES


# Sparse input


def make_sparse(n=150, d=12, n_labeled=40):
    rng = np.random.default_rng(4)
    X, y = make(n, d, n_labeled)
    return np.where(rng.random((n, d)) < 0.4, X, 0.0), y


@every_classifier
@pytest.mark.parametrize(
    "container",
    [
        sparse.csr_matrix,
        sparse.csc_matrix,
        sparse.coo_matrix,
        sparse.csr_array,
        sparse.csc_array,
        sparse.coo_array,
    ],
)
@pytest.mark.parametrize("n_labeled", [14, 60])
def test_sparse_equals_dense(classifier, container, n_labeled):
    X, y = make_sparse(n_labeled=n_labeled)
    s = np.linspace(0.5, 2.0, len(y))
    for options, weights in [({}, None), ({}, s), ({"fit_intercept": False}, None)]:
        clf = classifier(**options).fit(container(X), y, weights)
        reference = classifier(**options).fit(X, y, weights)
        np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=0, atol=1e-10)
        np.testing.assert_allclose(clf.intercept_, reference.intercept_, rtol=0, atol=1e-10)
        np.testing.assert_allclose(
            clf.decision_function(container(X)), reference.decision_function(X), atol=1e-10
        )


@every_classifier
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_float32_is_added_up_in_float64(classifier, container):
    X, y = make_sparse()
    single = X.astype(np.float32)
    clf = classifier().fit(container(single), y)
    reference = classifier().fit(single.astype(np.float64), y)
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=0, atol=1e-10)
    scores = clf.decision_function(container(single))
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, reference.decision_function(single), rtol=0, atol=1e-10)


@pytest.mark.parametrize("distance", ["unlabeled", "euclidean", "matrix"])
def test_sparse_equals_dense_in_other_distances(distance):
    X, y = make_sparse()
    if distance == "matrix":
        distance = np.random.default_rng(8).normal(size=(30, X.shape[1]))
    clf = ProjectedLeastSquaresClassifier(distance, alpha=0.0).fit(sparse.csr_array(X), y)
    reference = ProjectedLeastSquaresClassifier(distance, alpha=0.0).fit(X, y)
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=0, atol=1e-8)
    assert np.abs(reference.coef_ - reference.supervised_.coef_).max() > 1e-3


# What the fitted attributes mean


@every_classifier
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_decision_function_is_linear(classifier, container, fit_intercept):
    X, y = make()
    clf = classifier(fit_intercept=fit_intercept).fit(container(X), y)
    assert clf.coef_.shape == (1, 4)
    assert clf.intercept_.shape == (1,)
    if not fit_intercept:
        assert clf.intercept_[0] == -0.5
    scores = clf.decision_function(container(X))
    assert scores.shape == (len(X),)
    np.testing.assert_allclose(scores, (X @ clf.coef_.T + clf.intercept_).ravel(), atol=1e-13)


@every_classifier
def test_sign_of_the_decision_function_is_the_class(classifier):
    X, y = make()
    names = np.array(["no", "yes", None], dtype=object)
    clf = classifier(alpha=0.0).fit(X, names[y])
    predicted, scores = clf.predict(X), clf.decision_function(X)
    assert set(predicted[scores > 0]) == {"yes"}
    assert set(predicted[scores < 0]) == {"no"}


@every_classifier
def test_score_of_exactly_zero_is_the_first_class_as_in_scikit_learn(classifier):
    clf = classifier().fit([[-1.0], [1.0]], [0, 1])
    assert clf.decision_function([[0.0]]).tolist() == [0.0]
    assert clf.predict([[0.0]]).tolist() == [0]
    assert clf.to_sklearn().predict([[0.0]]).tolist() == [0]


@every_classifier
def test_score_is_the_accuracy(classifier):
    X, y = make_labeled()
    clf = classifier().fit(X, y)
    s = np.linspace(0.0, 1.0, len(y))
    correct = clf.predict(X) == y
    assert clf.score(X, y) == correct.mean()
    assert clf.score(X, y, sample_weight=s) == pytest.approx(np.average(correct, weights=s))


@pytest.mark.parametrize("alpha", [0.0, 3.0])
@pytest.mark.parametrize("n_labeled", [10, 60])
def test_least_squares_classifier_is_ridge_on_zero_and_one(alpha, n_labeled):
    X, y = make(n_labeled=n_labeled)
    labeled = y >= 0
    clf = LeastSquaresClassifier(alpha).fit(X, y)
    ridge = Ridge(alpha, solver="svd").fit(X[labeled], y[labeled])
    np.testing.assert_allclose(clf.coef_[0], ridge.coef_, rtol=1e-10)
    np.testing.assert_allclose(clf.intercept_ + 0.5, ridge.intercept_, rtol=1e-10)


@semi_supervised
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 2.0},
        {"alpha": 0.0},
        {"fit_intercept": False},
        {"alpha": 0.0, "rcond": 1e-8},
        {"constraint_alpha": 1.0},
    ],
    ids=repr,
)
def test_supervised_is_the_baseline_exactly(classifier, container, weighted, options):
    X, y = make()
    s = np.linspace(0.5, 2.0, len(y)) if weighted else None
    clf = classifier(**options).fit(container(X), y, s)
    shared = {k: v for k, v in options.items() if k != "constraint_alpha"}
    baseline = LeastSquaresClassifier if "alpha" in options else LeastSquaresClassifierCV
    reference = baseline(**shared).fit(container(X), y, s)
    assert type(clf.supervised_) is baseline
    assert clf.supervised_.alpha_ == reference.alpha_
    assert clf.supervised_.get_params() == reference.get_params()
    np.testing.assert_array_equal(clf.supervised_.coef_, reference.coef_)
    np.testing.assert_array_equal(clf.supervised_.intercept_, reference.intercept_)
    np.testing.assert_array_equal(clf.supervised_.classes_, reference.classes_)
    np.testing.assert_array_equal(clf.supervised_.predict(X), reference.predict(X))
    assert clf.supervised_.n_features_in_ == 4


def test_certificate_is_true_for_random_labels():
    X, y = make()
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    unlabeled = y < 0
    ours, theirs = clf.decision_function(X) + 0.5, clf.supervised_.decision_function(X) + 0.5
    rng = np.random.default_rng(2)
    for _ in range(20):
        q = np.where(unlabeled, rng.integers(0, 2, len(y)), y)
        gain = np.sum((theirs - q) ** 2) - np.sum((ours - q) ** 2)
        assert gain >= clf.certificate_.guaranteed_improvement > 0.0
        assert -gain >= clf.certificate_.best_case


@pytest.mark.parametrize("distance", ["all", "labeled"])
def test_soft_labels_reproduce_the_weights_in_the_order_of_the_rows(distance):
    X, y = make()
    unlabeled = y < 0
    assert np.count_nonzero(np.diff(unlabeled)) > 20  # interleaved
    clf = ProjectedLeastSquaresClassifier(distance, alpha=0.0).fit(X, y)
    q = clf.soft_labels_
    assert q.shape == (unlabeled.sum(),)
    assert q.min() >= 0.0
    assert q.max() <= 1.0
    target = y.astype(float)
    target[unlabeled] = q
    expected = np.linalg.lstsq(np.c_[X, np.ones(len(X))], target, rcond=None)[0]
    np.testing.assert_allclose(clf.coef_[0], expected[:-1], atol=1e-6)
    np.testing.assert_allclose(clf.intercept_[0] + 0.5, expected[-1], atol=1e-6)


@pytest.mark.parametrize("solver", ["exact", "lbfgs"])
def test_order_of_the_rows_does_not_matter(solver):
    X, y = make()
    order = np.argsort(y, kind="stable")  # unlabeled rows first
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, solver=solver).fit(X, y)
    other = ProjectedLeastSquaresClassifier(alpha=0.0, solver=solver).fit(X[order], y[order])
    np.testing.assert_allclose(clf.coef_, other.coef_, rtol=1e-4)
    hard = (clf.soft_labels_ == 0.0) | (clf.soft_labels_ == 1.0)
    assert hard.sum() > 80
    np.testing.assert_allclose(clf.soft_labels_[hard], other.soft_labels_[hard], atol=1e-3)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "options", [{}, {"alpha": 1.0}, {"solver": "lbfgs"}, {"alpha": "loo"}], ids=repr
)
def test_icls_is_the_projection_in_the_distance_labeled(container, options):
    X, y = make()
    options = {"alpha": 0.0, **options}
    icls = ICLSClassifier(**options).fit(container(X), y)
    projected = ProjectedLeastSquaresClassifier("labeled", **options).fit(container(X), y)
    np.testing.assert_array_equal(icls.coef_, projected.coef_)
    np.testing.assert_array_equal(icls.intercept_, projected.intercept_)
    np.testing.assert_array_equal(icls.soft_labels_, projected.soft_labels_)
    assert icls.certificate_ == projected.certificate_
    assert "distance" not in icls.get_params()
    moved = np.abs(icls.coef_ - icls.supervised_.coef_).max() > 1e-3
    assert moved == (options["alpha"] != "loo")


@every_classifier
def test_refit_forgets_the_first_fit(classifier):
    X, y = make()
    first = classifier().fit(*make(d=6, seed=5))
    again = first.fit(X, y)
    fresh = classifier().fit(X, y)
    np.testing.assert_array_equal(again.coef_, fresh.coef_)
    assert again.n_features_in_ == 4


# Threads


def forget_who_controls_blas():
    """Let any thread set limits: threadpoolctl 3.8 heeds one, until it leaves its context."""
    with threadpool_limits(None):
        pass


@pytest.fixture
def clean_blas():
    """The usual number of BLAS threads before and after, whatever the test does to it."""
    before = threadpool_info()
    forget_who_controls_blas()
    yield
    for lib in before:
        threadpool_limits({lib["filepath"]: lib["num_threads"]})
    forget_who_controls_blas()


@contextmanager
def blas_threads_restored():
    before = threadpool_info()
    assert any(lib["user_api"] == "blas" for lib in before)
    yield
    assert threadpool_info() == before


def make_large():
    """So many numbers that the rows are shared among threads: more than 2**18."""
    X, y = make(n=8600, d=100, n_labeled=300)
    assert X.size > 2**18
    return X, y


@pytest.mark.usefixtures("clean_blas")
@every_classifier
def test_fits_in_several_threads_at_once(classifier):
    X, y = make_large()
    alone = classifier().fit(X, y)
    forget_who_controls_blas()
    with ThreadPoolExecutor(4) as executor, blas_threads_restored():
        fits = list(executor.map(lambda _: classifier().fit(X, y), range(6)))
    for clf in fits:
        np.testing.assert_array_equal(clf.coef_, alone.coef_)
        np.testing.assert_array_equal(clf.intercept_, alone.intercept_)
        np.testing.assert_array_equal(clf.decision_function(X), alone.decision_function(X))


@pytest.mark.usefixtures("clean_blas")
@every_classifier
def test_different_fits_in_several_threads_at_once(classifier):
    data = [make(n=3000, d=100, n_labeled=300, seed=seed) for seed in range(3)]
    alone = [classifier().fit(X, y).coef_ for X, y in data]
    with ThreadPoolExecutor(3) as executor:
        together = list(executor.map(lambda Xy: classifier().fit(*Xy).coef_, data))
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("clean_blas")
@every_classifier
def test_blas_threads_are_restored_after_a_fit(classifier):
    X, y = make_large()
    with blas_threads_restored():
        classifier().fit(X, y).predict(X)


@pytest.mark.usefixtures("clean_blas")
@every_classifier
def test_blas_threads_are_restored_after_a_failed_fit(classifier):
    X, y = make_large()
    X[:, 3] = np.nan
    with blas_threads_restored(), pytest.raises(ValueError, match="contains NaN"):
        classifier().fit(X, y)


def test_dask_tells_models_with_the_same_parameters_apart():
    dask = pytest.importorskip("dask")
    X, y = make()
    known = y != -1
    one, other = (LeastSquaresClassifier(1.0).fit(X[known], t) for t in (y[known], 1 - y[known]))
    assert dask.base.tokenize(one) == dask.base.tokenize(pickle.loads(pickle.dumps(one)))
    assert dask.base.tokenize(one) != dask.base.tokenize(other)
    assert dask.base.tokenize(one.predict) != dask.base.tokenize(other.predict)


@pytest.mark.parametrize("number", [np.float64(2.0), np.float32(2.0), np.int64(2), 2])
def test_penalties_may_be_numbers_of_any_type(number):
    X, y, *_ = make()
    found = ProjectedLeastSquaresClassifier(alpha=number, constraint_alpha=number).fit(X, y)
    expected = ProjectedLeastSquaresClassifier(alpha=2.0).fit(X, y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
