"""What all classifiers of neverworse have in common, for the null category noise model."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.gaussian_process.kernels import RBF, PairwiseKernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

from neverworse.methods import NullCategoryNoiseModel
from neverworse.methods._null_category_inference import BATCH
from neverworse.model_selection import LabeledKFold
from tests.methods.null_category.problems import fixed, make

# Parameters


def test_fit_does_not_change_parameters():
    X, y, _ = make()
    clf = NullCategoryNoiseModel(RBF(10.0), width=0.5)
    before = clf.get_params()
    assert clf.fit(X, y) is clf
    assert clf.get_params() == before
    assert clf.kernel.length_scale == 10.0 != clf.kernel_.length_scale
    assert is_classifier(clf)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", "rbf"),
        ("width", -1.0),
        ("width", np.inf),
        ("unlabeled_rates", "half"),
        ("optimize", "yes"),
        ("tol", 0.0),
        ("max_iter", 0),
        ("max_active", 0),
        ("random_state", "seed"),
        ("verbose", -1),
    ],
)
def test_parameters_out_of_range(name, value):
    X, y, _ = make()
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter"):
        NullCategoryNoiseModel(**{name: value}).fit(X, y)


@pytest.mark.parametrize("rates", [(0.5,), (0.5, 0.5, 0.5), (0.0, 0.5), (0.5, 1.0)])
def test_rates_out_of_range(rates):
    X, y, _ = make()
    with pytest.raises(ValueError, match="two probabilities between 0 and 1"):
        NullCategoryNoiseModel(unlabeled_rates=rates).fit(X, y)


# Data of all kinds


def test_order_of_rows_does_not_matter():
    X, y, _ = make()
    order = np.random.default_rng(0).permutation(len(y))
    clf, other = fixed(tol=1e-9).fit(X, y), fixed(tol=1e-9).fit(X[order], y[order])
    np.testing.assert_allclose(other.predict_proba(X), clf.predict_proba(X), atol=1e-6)


def test_identical_rows():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    y = np.r_[0, np.full(9, -1), 1, np.full(9, -1)]
    clf = NullCategoryNoiseModel().fit(X, y)
    assert clf.score(X, np.repeat([0, 1], 10)) == 1.0
    same = NullCategoryNoiseModel().fit(np.zeros((20, 2)), y)
    np.testing.assert_allclose(same.predict_proba(np.zeros((1, 2))), 0.5, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-3, 1e6, 1e150, 1e300])
def test_units_of_the_features_do_not_matter(scale):
    X, y, _ = make(40, 8)
    clf = NullCategoryNoiseModel().fit(X, y)
    other = NullCategoryNoiseModel().fit(scale * X, y)
    np.testing.assert_allclose(
        other.predict_proba(scale * X), clf.predict_proba(X), rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize("variance", [1e-300, 1e-8, 1e12, 1e300])
def test_extreme_variances_of_the_kernel(variance):
    X, y, _ = make()
    clf = fixed(variance).fit(X, y)
    assert clf.converged_
    assert np.isfinite(clf.log_marginal_likelihood_)
    found = clf.predict_proba(X)
    assert np.isfinite(found).all()
    if variance > 1.0:
        assert clf.score(X[:12], y[:12]) == 1.0
    else:
        np.testing.assert_allclose(found, 0.5, atol=1e-3)


def test_variance_that_is_too_large_for_labels_that_contradict_each_other():
    X = np.repeat(np.random.default_rng(0).normal(size=(15, 1)), 4, axis=0)
    y = np.arange(60) % 2
    found = fixed(1e6, 1.0).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(found, 0.5, atol=1e-3)
    with pytest.raises(ValueError, match="smaller variance"):
        fixed(1e100, 1.0).fit(X, y)


@pytest.mark.parametrize("width", [0.0, 30.0, 1e6])
def test_extreme_widths(width):
    X, y, _ = make()
    clf = fixed(width=width).fit(X, y)
    assert clf.converged_
    assert np.isfinite(clf.predict_proba(X)).all()


def test_outlier():
    X, y, truth = make()
    X[-1] = 1e30
    clf = NullCategoryNoiseModel().fit(X, y)
    assert clf.score(X[:-1], truth[:-1]) > 0.9


def test_many_new_rows_are_predicted_in_batches():
    X, y, _ = make()
    clf = NullCategoryNoiseModel().fit(X, y)
    T = np.random.default_rng(1).normal(size=(2 * BATCH + 1, 2))
    pieces = [clf.predict_proba(T[rows : rows + 1]) for rows in (0, BATCH - 1, BATCH, 2 * BATCH)]
    found = clf.predict_proba(T)[[0, BATCH - 1, BATCH, 2 * BATCH]]
    np.testing.assert_allclose(found, np.vstack(pieces), rtol=1e-9)


def test_rows_far_away_have_what_all_rows_have_in_common():
    X, y, _ = make()
    np.testing.assert_allclose(fixed().fit(X, y).predict_proba([[1e6, 1e6]]), 0.5)
    rare = np.r_[0, 0, 0, 0, 0, 1, np.full(54, -1)]
    far = NullCategoryNoiseModel(optimize=False).fit(X, rare).predict_proba([[1e6, 1e6]])
    assert 0.5 < far[0, 0] < 0.9


def test_sparse_rows():
    X, y, _ = make()
    clf = fixed().fit(X, y)
    with pytest.raises(TypeError, match="dense data is required"):
        clf.predict(sparse.csr_array(X))
    with pytest.raises(TypeError, match="dense data is required"):
        clf.fit(sparse.csr_array(X), y)


# Use with scikit-learn


def test_pickle_and_clone():
    X, y, _ = make()
    clf = fixed(width=2.0).fit(X, y)
    loaded = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    assert clone(clf).get_params()["kernel__k2__length_scale"] == 1.5
    assert clone(clf).set_params(kernel__k2__length_scale=2.5).kernel.k2.length_scale == 2.5


def test_search_for_the_width():
    X, y, truth = make(n=80, n_labeled=24)
    pipeline = make_pipeline(StandardScaler(), fixed())
    grid = {"nullcategorynoisemodel__width": [0.5, 2.0]}
    search = GridSearchCV(pipeline, grid, cv=LabeledKFold(3), scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.score(X, truth) > 0.85


# Bad input


def test_three_classes_are_an_error_that_names_the_fix():
    X, _, _ = make()
    with pytest.raises(ValueError, match=r"Only binary.*one classifier for each"):
        fixed().fit(X, np.arange(len(X)) % 3)


def test_a_kernel_that_is_not_positive_definite_is_an_error_with_words():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)) + 1e8, np.where(np.arange(30) < 8, np.arange(30) % 2, -1)
    clf = NullCategoryNoiseModel(kernel=PairwiseKernel(metric="rbf"), optimize=False)
    with pytest.raises(ValueError, match="not positive definite in floating point"):
        clf.fit(X, y)
