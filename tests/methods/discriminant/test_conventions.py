"""Estimators like any other: scikit-learn's checks, labels, bad input, storage, composition."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neverworse import audit
from neverworse.methods import (
    ContrastivePessimisticDiscriminantAnalysis,
    EMDiscriminantAnalysis,
    ImplicitlyConstrainedDiscriminantAnalysis,
    LinearDiscriminantClassifier,
    MomentConstrainedDiscriminantAnalysis,
    NearestMeanClassifier,
)

from .samples import ALL, SEMI, SOFT, log_joint, make

every_classifier = pytest.mark.parametrize("classifier", ALL)
semi_supervised = pytest.mark.parametrize("classifier", SEMI)
with_soft_labels = pytest.mark.parametrize("classifier", SOFT)


SHARED = {"covariance": "spherical", "priors": [0.5, 0.5], "alpha": 2.0, "missing_label": "?"}
STEPS = {"tol": 1e-3, "max_iter": 7, "max_time": 3.0, "verbose": 1}
PARAMETERS = [
    LinearDiscriminantClassifier(**SHARED),
    NearestMeanClassifier(alpha=2.0, missing_label="?"),
    EMDiscriminantAnalysis(**SHARED, **STEPS),
    MomentConstrainedDiscriminantAnalysis(**SHARED),
    ImplicitlyConstrainedDiscriminantAnalysis(**SHARED, **STEPS),
    ContrastivePessimisticDiscriminantAnalysis(**SHARED, **STEPS),
]


@pytest.mark.parametrize("estimator", PARAMETERS, ids=lambda e: type(e).__name__)
def test_parameters(estimator):
    parameters = estimator.get_params()
    assert clone(estimator).get_params() == parameters
    other = type(estimator)()
    assert other.get_params() != parameters
    assert other.set_params(**parameters).get_params() == parameters
    for name in parameters:
        assert name in type(estimator)._parameter_constraints
        assert name in type(estimator).__doc__


@every_classifier
@pytest.mark.parametrize(
    ("name", "value"), [("alpha", -1.0), ("alpha", "large"), ("alpha", np.nan)]
)
def test_parameters_out_of_range(classifier, name, value):
    X, y, _ = make()
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        classifier(**{name: value}).fit(X, y)


@with_soft_labels
@pytest.mark.parametrize(
    ("name", "value"),
    [("tol", 0.0), ("max_iter", 0), ("max_time", -1.0), ("covariance", "diagonal")],
)
def test_parameters_of_steps_out_of_range(classifier, name, value):
    X, y, _ = make()
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        classifier(**{name: value}).fit(X, y)


# Labels


@every_classifier
def test_missing_label_that_is_given(classifier):
    X, y, _ = make()
    names = np.array(["no", "yes", "?"], dtype=object)
    clf = classifier(missing_label="?").fit(X, names[y])
    np.testing.assert_array_equal(clf.coef_, classifier().fit(X, y).coef_)
    assert clf.classes_.tolist() == ["no", "yes"]
    signs = np.where(y < 0, np.nan, 2.0 * y - 1.0)
    clf = classifier(missing_label=np.nan).fit(X, signs)
    assert clf.classes_.tolist() == [-1.0, 1.0]


# Input that cannot be used


def spoiled(X, row, column, value):
    X = X.copy()
    X[row, column] = value
    return X


BAD_FITS = {
    "NaN in an unlabeled row": (
        "Input X contains NaN",
        lambda X, y: (spoiled(X, np.argmax(y < 0), 1, np.nan), y),
    ),
    "too large": (r"X are so large .* Rescale the columns", lambda X, y: (X * 1e200, y)),
    "too small": (r"so small .* Rescale the column", lambda X, y: (X * 1e-200, y)),
    "no y": ("requires y", lambda X, y: (X, None)),
    "identical rows": ("alpha > 0", lambda X, y: (np.ones_like(X), y)),
}


@every_classifier
@pytest.mark.parametrize("name", BAD_FITS)
def test_bad_input_leaves_the_classifier_unfitted(classifier, name):
    X, y, _ = make()
    message, spoil = BAD_FITS[name]
    for clf in (classifier(), classifier().fit(X, y)):
        with pytest.raises(ValueError, match=message):
            clf.fit(*spoil(X, y))
        with pytest.raises(NotFittedError):
            clf.predict(X)


@with_soft_labels
def test_steps_are_told(classifier, capsys):
    X, y, _ = make()
    clf = classifier(verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= clf.n_iter_
    assert all(line.startswith(f"[{classifier.__name__}]") for line in lines)
    assert "(96 rows)" in lines[0]
    assert "iterations" in lines[0]


class Watch:
    """A callback that counts the steps, and asks to stop after a number of them."""

    def __init__(self, stop_at=None):
        self.n_tasks, self.stop_at = 0, stop_at

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **kwargs):
        pass

    def on_fit_task_end(self, estimator, context, **kwargs):
        if context.task_name in ("expectation maximisation", "soft labels"):
            self.n_tasks += 1
        return self.n_tasks == self.stop_at

    def teardown(self, estimator, context):
        pass


@with_soft_labels
def test_callbacks_see_every_step_and_may_stop(classifier):
    pytest.importorskip("sklearn.callback")
    X, y, _ = make(n_classes=3)
    watch = Watch()
    clf = classifier().set_callbacks(watch).fit(X, y)
    assert watch.n_tasks > clf.n_iter_ > 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stopped = classifier().set_callbacks(Watch(stop_at=2)).fit(X, y)
    assert not stopped.converged_
    assert stopped.n_iter_ == 1
    if classifier is ContrastivePessimisticDiscriminantAnalysis:
        assert stopped.certificate_.holds
        assert stopped.certificate_.stopped_early


# Unusual input with a correct answer


@semi_supervised
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_unlabeled_rows_gives_the_supervised_classifier(classifier, n_classes, weighted):
    X, y, _ = make(60, 3, n_classes, 60)
    s = np.linspace(0.5, 2.0, 60) if weighted else None
    clf = classifier().fit(X, y, s)
    supervised = LinearDiscriminantClassifier().fit(X, y, s)
    for model in (clf, clf.supervised_):
        np.testing.assert_array_equal(model.coef_, supervised.coef_)
        np.testing.assert_array_equal(model.intercept_, supervised.intercept_)
        np.testing.assert_array_equal(model.covariance_, supervised.covariance_)
    if classifier in SOFT:
        assert clf.converged_
        assert clf.n_iter_ == 1
        assert clf.soft_labels_.size == 0


@semi_supervised
def test_unlabeled_rows_of_weight_zero_only(classifier):
    X, y, _ = make()
    clf = classifier().fit(X, y, (y >= 0).astype(float))
    np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)
    if classifier in SOFT:
        expected = clf.supervised_.predict_proba(X[y < 0])[:, 1]
        np.testing.assert_allclose(clf.soft_labels_, expected, atol=1e-12)


@semi_supervised
@pytest.mark.parametrize("weighted", [False, True])
def test_supervised_is_the_baseline_exactly(classifier, weighted):
    X, y, _ = make(n_classes=3)
    s = np.linspace(0.5, 2.0, len(y)) if weighted else None
    clf = classifier(alpha=0.1, covariance="spherical").fit(X, y, s)
    reference = LinearDiscriminantClassifier(alpha=0.1, covariance="spherical").fit(X, y, s)
    assert clf.supervised_.get_params() == reference.get_params()
    np.testing.assert_array_equal(clf.supervised_.coef_, reference.coef_)
    np.testing.assert_array_equal(clf.supervised_.intercept_, reference.intercept_)
    np.testing.assert_array_equal(clf.supervised_.predict(X), reference.predict(X))
    assert clf.supervised_.n_features_in_ == 3
    assert np.abs(clf.means_ - reference.means_).max() > 1e-3


@every_classifier
@pytest.mark.parametrize("wild", [0.0, 1e3, 1e100, 1e200])
def test_weight_zero_is_as_good_as_absent(classifier, wild):
    X, y, _ = make()
    dropped = [*np.flatnonzero(y >= 0)[:3], *np.flatnonzero(y < 0)[:4]]
    s = np.linspace(0.5, 3.0, len(y))
    s[dropped] = 0.0
    X[dropped] *= wild
    kept = s > 0
    clf = classifier().fit(X, y, s)
    reference = classifier().fit(X[kept], y[kept], s[kept])
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(clf.intercept_, reference.intercept_, rtol=1e-5, atol=1e-7)


@every_classifier
def test_repeated_rows_count_as_weights(classifier):
    X, y, _ = make()
    s = np.arange(len(y)) % 2 + 1
    clf = classifier().fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    np.testing.assert_allclose(clf.coef_, classifier().fit(X, y, s).coef_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("classifier", [LinearDiscriminantClassifier, *SEMI])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_columns_of_other_units_and_far_from_zero(classifier, n_classes):
    X, y, _ = make(n_classes=n_classes)
    moved = X * [1e-4, 1.0, 1e4] + [1.0, 1e6, -1e9]
    clf, reference = classifier().fit(moved, y), classifier().fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(moved), reference.predict_proba(X), atol=1e-4)


@every_classifier
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_equals_dense(classifier, container, n_classes):
    X, y, _ = make(n_classes=n_classes)
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.5, X, 0.0)
    s = np.linspace(0.5, 2.0, len(y))
    clf, reference = classifier().fit(container(X), y, s), classifier().fit(X, y, s)
    np.testing.assert_allclose(clf.coef_, reference.coef_, atol=1e-7)
    for method in ("predict_proba", "decision_function"):
        sparse_result = getattr(clf, method)(container(X))
        np.testing.assert_allclose(sparse_result, getattr(reference, method)(X), atol=1e-6)


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(classifier, n_classes):
    X, y, _ = make(n_classes=n_classes)
    clf = classifier().fit(X, y)
    far = np.r_[X, 1e3 * X]
    probabilities = clf.predict_proba(far)
    assert probabilities.shape == (240, n_classes)
    assert probabilities.min() >= 0.0
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(clf.classes_[probabilities.argmax(axis=1)], clf.predict(far))
    joint = log_joint(clf, X)
    posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X), posterior, atol=1e-10)
    if n_classes == 2:
        assert set(clf.predict(X)[clf.decision_function(X) > 0]) == {1}


@semi_supervised
def test_fewer_labeled_rows_than_columns(classifier):
    X, y, _ = make(200, 12, 2, 8)
    clf = classifier().fit(X, y)
    assert clf.rank_ == clf.supervised_.rank_ == 6
    assert np.isfinite(clf.coef_).all()
    penalised = classifier(alpha=0.5).fit(X, y)
    assert penalised.rank_ == 12
    if classifier is ContrastivePessimisticDiscriminantAnalysis:
        assert clf.certificate_.holds
        assert clf.certificate_.guaranteed_improvement > 0.0


@semi_supervised
def test_column_in_which_only_unlabeled_rows_vary_is_left_out(classifier):
    X, y, _ = make()
    X[y >= 0, 1] = 5.0
    clf, reference = classifier().fit(X, y), classifier().fit(np.delete(X, 1, axis=1), y)
    assert clf.rank_ == 2
    assert not clf.coef_[:, 1].any()
    np.testing.assert_allclose(np.delete(clf.coef_, 1, axis=1), reference.coef_, atol=1e-6)


# Storage, composition, other libraries


@every_classifier
def test_pickle(classifier):
    X, y, _ = make(n_classes=3)
    clf = classifier().fit(X, y)
    loaded = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    assert loaded.get_params() == clf.get_params()
    if classifier is ContrastivePessimisticDiscriminantAnalysis:
        assert loaded.certificate_ == clf.certificate_


@every_classifier
def test_to_sklearn(classifier):
    X, y, _ = make(n_classes=3)
    clf = classifier().fit(X, y)
    plain = clf.to_sklearn()
    assert type(plain) is LinearDiscriminantAnalysis
    np.testing.assert_allclose(plain.predict_proba(X), clf.predict_proba(X), atol=1e-12)
    with pytest.raises(NotFittedError):
        classifier().to_sklearn()


@every_classifier
def test_grid_search_in_a_pipeline(classifier):
    X, _, truth = make()
    pipeline = make_pipeline(StandardScaler(), classifier())
    name = f"{classifier.__name__.lower()}__alpha"
    search = GridSearchCV(pipeline, {name: [0.0, 1.0]}, cv=3).fit(X, truth)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_[name] in (0.0, 1.0)


@every_classifier
def test_sample_weight_is_routed(classifier):
    X, y, _ = make()
    s = np.linspace(0.1, 3.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        clf = classifier().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), clf)
        pipeline[0].set_fit_request(sample_weight=False)
        pipeline.fit(X, y, sample_weight=s)
    expected = classifier().fit(X, y, sample_weight=s)
    np.testing.assert_allclose(pipeline[-1].coef_, expected.coef_, rtol=1e-9)
    assert not np.allclose(expected.coef_, classifier().fit(X, y).coef_)


@semi_supervised
@pytest.mark.parametrize("n_classes", [2, 3])
def test_audit(classifier, n_classes):
    X, y, _ = make(n_classes=n_classes)
    clf = classifier().fit(X, y)
    found = audit(clf, clf.supervised_, X, y)
    assert found.response == "predict_proba"
    f, g = clf.predict_proba(X), clf.supervised_.predict_proba(X)
    scale = 2.0 if n_classes == 2 else 1.0  # the Brier score of two classes counts one of them
    labels = np.eye(n_classes)
    differences = [((f - label) ** 2 - (g - label) ** 2).sum(axis=1) for label in labels]
    table = np.array(differences).T / scale
    known = table[y >= 0, y[y >= 0]].sum()
    worst = (known + table[y < 0].max(axis=1).sum()) / len(y)
    assert found.worst_case == pytest.approx(worst, abs=1e-12)


@every_classifier
def test_large_enough_for_threads(classifier):
    X, y, _ = make(9000, 30, 2, 200)
    assert X.size > 2**18
    clf = classifier().fit(X, y)
    np.testing.assert_array_equal(clf.coef_, classifier().fit(X, y).coef_)
    assert np.isfinite(clf.coef_).all()
