import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

from neverworse import (
    ICLSClassifier,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    LeastSquaresRegressor,
    ProjectedLeastSquaresClassifier,
)
from neverworse.methods import (
    LinearDiscriminantClassifier,
    NullCategoryNoiseModel,
    SupervisedClassifier,
)

ALL = [LeastSquaresClassifier, ProjectedLeastSquaresClassifier, ICLSClassifier]
SEMI = [ProjectedLeastSquaresClassifier, ICLSClassifier]
VARIANTS = [
    LeastSquaresClassifier(),
    ProjectedLeastSquaresClassifier(alpha=0.0),
    ProjectedLeastSquaresClassifier("unlabeled", alpha=0.0),
    ICLSClassifier(alpha=0.0),
]
every_classifier = pytest.mark.parametrize("classifier", ALL)
semi_supervised = pytest.mark.parametrize("classifier", SEMI)
# A penalty depends on the units of the features, and one row of weight two is not two rows to
# leave out.
without_penalty = pytest.mark.parametrize(
    "classifier",
    [partial(classifier, alpha=0.0) for classifier in ALL],
    ids=lambda c: c.func.__name__,
)


def make(n=80, d=4, n_labeled=16, seed=4):
    """Labeled rows first, of both classes in turn."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d)) + y[:, None]
    y[n_labeled:] = -1
    return X, y


@pytest.mark.parametrize("weighted", [False, True])
@semi_supervised
def test_the_rows_of_these_tests_are_not_a_trivial_case(classifier, weighted):
    for X, y in (make(), make(n=200), make(n_labeled=6), make(n_labeled=30), small_integers()):
        clf = classifier(alpha=0.0).fit(X, y, np.linspace(0.5, 3.0, len(y)) if weighted else None)
        assert np.abs(clf.coef_ - clf.supervised_.coef_).max() > 1e-3


def scores(clf, X):
    """Scores, which unlike weights are unique where columns depend on each other."""
    return clf.decision_function(X)


# Values of X that cannot be used


@every_classifier
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_nan_or_infinity_in_a_labeled_row(classifier, value, dtype, container):
    X, y = make()
    X = X.astype(dtype)
    X[3, 1] = value
    message = "Input X contains NaN" if np.isnan(value) else "Input X contains infinity"
    with pytest.raises(ValueError, match=message):
        classifier().fit(container(X), y)


@semi_supervised
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("row", [20, -1])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_nan_or_infinity_in_an_unlabeled_row(classifier, value, row, container):
    X, y = make()
    X[row, 2] = value
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        classifier().fit(container(X), y)


@every_classifier
def test_nan_in_the_last_row_of_labeled_rows_only(classifier):
    X, y = make(n=20, n_labeled=20)
    X[-1, -1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        classifier().fit(X, y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_supervised_classifier_treats_bad_unlabeled_rows_alike_for_few_and_many_labels(value):
    raised = []
    for n_labeled in (6, 60):
        X, y = make(n_labeled=n_labeled)
        X[-1, 0] = value
        try:
            LeastSquaresClassifier().fit(X, y)
        except ValueError:
            raised.append(True)
        else:
            raised.append(False)
    assert raised[0] == raised[1]


@every_classifier
@pytest.mark.parametrize("fmt", ["csc", "coo", "bsr", "lil", "dok", "dia"])
def test_nan_in_sparse_formats(classifier, fmt):
    X, y = make()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        classifier().fit(sparse.csr_array(X).asformat(fmt), y)


@semi_supervised
@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "contains NaN"), (np.inf, "contains infinity"), (1e200, "Rescale")],
)
def test_bad_values_among_so_many_rows_that_threads_share_them(classifier, value, message):
    X, y = make(n=3000, d=100, n_labeled=400)
    X[-1, -1] = value
    with pytest.raises(ValueError, match=message):
        classifier().fit(X, y)


@every_classifier
@pytest.mark.parametrize("where", [(3, 1), (slice(None), 2), slice(None)])
def test_squares_that_overflow(classifier, where):
    X, y = make()
    X[where] = X[where] * 1e200
    with pytest.raises(ValueError, match=r"X are so large .* Rescale the columns"):
        classifier().fit(X, y)


@every_classifier
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_squares_that_vanish(classifier, fit_intercept):
    X, y = make()
    X[:, 2] *= 1e-200
    with pytest.raises(ValueError, match=r"column 2 of X .* so small .* Rescale the column"):
        classifier(fit_intercept=fit_intercept).fit(X, y)


@every_classifier
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_nan_in_predict(classifier, method):
    X, y = make()
    clf = classifier().fit(X, y)
    X[5, 0] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        getattr(clf, method)(X)


@every_classifier
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((80, 4)) * 1j, "Complex data not supported"),
        (np.full((80, 4), "a"), "could not convert string to float"),
        (np.arange(80.0), "Expected 2D array, got 1D array"),
        (np.ones((80, 4, 2)), "dim"),
        (np.empty((0, 4)), "0 sample"),
        (np.empty((80, 0)), "0 feature"),
        (np.ones((79, 4)), "inconsistent numbers of samples"),
    ],
    ids=["complex", "strings", "1-d", "3-d", "no rows", "no columns", "other length"],
)
def test_x_of_the_wrong_kind(classifier, X, message):
    with pytest.raises(ValueError, match=message):
        classifier().fit(X, make()[1])


# Parameters


@every_classifier
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", -1.0),
        ("alpha", np.nan),
        ("alpha", np.inf),
        ("alpha", "large"),
        ("rcond", -1e-8),
        ("rcond", 1.0),
        ("fit_intercept", "yes"),
    ],
)
def test_parameters_out_of_range(classifier, name, value):
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter"):
        classifier(**{name: value}).fit(*make())


@semi_supervised
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("constraint_alpha", -1.0),
        ("solver", "newton"),
        ("tol", 0.0),
        ("tol", -1e-9),
        ("max_iter", 0),
        ("max_iter", 1.5),
        ("max_time", -1.0),
    ],
)
def test_parameters_of_the_projection_out_of_range(classifier, name, value):
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter"):
        classifier(**{name: value}).fit(*make())


@pytest.mark.parametrize("distance", ["ALL", "mahalanobis", None, 3])
def test_unknown_distance(distance):
    with pytest.raises(InvalidParameterError, match=r"'distance' parameter.*'unlabeled'"):
        ProjectedLeastSquaresClassifier(distance).fit(*make())
    assert issubclass(InvalidParameterError, ValueError)


@pytest.mark.parametrize(
    ("D", "message"),
    [
        (np.ones((5, 3)), "distance is an array with 3 columns, but X has 4 features"),
        (np.ones((5, 5)), "distance is an array with 5 columns, but X has 4 features"),
        (np.full((5, 4), np.nan), "Input distance contains NaN"),
        (np.full((5, 4), np.inf), "Input distance contains infinity"),
        (np.ones(4), "Expected 2D array"),
        (np.ones((5, 4)) * 1j, "Complex data not supported"),
        (np.full((5, 4), 1e200), "[Rr]escale"),
    ],
    ids=["narrow", "wide", "NaN", "infinity", "1-d", "complex", "overflow"],
)
def test_distance_matrix_that_cannot_be_used(D, message):
    with pytest.raises(ValueError, match=message):
        ProjectedLeastSquaresClassifier(distance=D).fit(*make())


def test_distance_matrix_of_zeros_needs_an_intercept():
    X, y = make()
    clf = ProjectedLeastSquaresClassifier(distance=np.zeros((2, 4)), fit_intercept=False)
    with pytest.raises(ValueError, match="distance is an array of zeros"):
        clf.fit(X, y)
    # With an intercept, this is one point at which two classifiers are compared: the origin.
    clf.set_params(fit_intercept=True).fit(X, y)
    assert clf.certificate_.distance == "user's matrix"


def test_icls_has_no_distance():
    with pytest.raises(ValueError, match="Invalid parameter 'distance'"):
        ICLSClassifier().set_params(distance="all")


# Row weights


@every_classifier
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: np.r_[-1.0, s[1:]], "Negative values in data passed to `sample_weight`"),
        (lambda s: np.r_[s[:-1], np.nan], "Input sample_weight contains NaN"),
        (lambda s: np.r_[np.inf, s[1:]], "Input sample_weight contains infinity"),
        (lambda s: s[:-1], r"sample_weight.shape == \(79,\), expected \(80,\)"),
        (lambda s: np.c_[s, s], "[Ss]ample.weights must be 1D"),
        (lambda s: np.where(np.arange(80) % 2, s, 0.0), "positive for labeled rows of one class"),
        (lambda s: np.r_[np.zeros(16), s[16:]], "sample_weight is positive for|zero"),
    ],
    ids=["negative", "NaN", "infinity", "short", "2-d", "one class", "no labeled row"],
)
def test_weights_that_cannot_be_used(classifier, change, message):
    X, y = make()
    with pytest.raises(ValueError, match=message):
        classifier().fit(X, y, sample_weight=change(np.ones(80)))


# No predictions without a fit


@every_classifier
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_predict_before_fit(classifier, method):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(classifier(), method)(make()[0])


@every_classifier
@pytest.mark.parametrize("method", ["predict", "decision_function"])
@pytest.mark.parametrize("width", [3, 5])
def test_predict_with_another_number_of_features(classifier, method, width):
    clf = classifier().fit(*make())
    message = f"X has {width} features, but {classifier.__name__} is expecting 4 features"
    with pytest.raises(ValueError, match=message):
        getattr(clf, method)(np.ones((2, width)))


def spoil_x(X, y):
    X = X.copy()
    X[0, 0] = np.nan
    return X, y, None


# How a fit fails: the message, and the X, y and sample_weight that make it fail.
BAD_FITS = {
    "NaN": ("contains NaN", spoil_x),
    "overflow": ("so large", lambda X, y: (X * 1e200, y, None)),
    "underflow": ("so small", lambda X, y: (X * 1e-200, y, None)),
    "one class": ("one class only", lambda X, y: (X, np.where(y == -1, None, "a"), None)),
    "y too short": ("inconsistent numbers", lambda X, y: (X, y[:-1], None)),
    "negative weight": ("Negative values", lambda X, y: (X, y, np.full(len(y), -1.0))),
    "weights of one class": ("of one class only", lambda X, y: (X, y, (y == 1).astype(float))),
}


@every_classifier
@pytest.mark.parametrize("name", BAD_FITS)
def test_failed_fit_leaves_the_classifier_unfitted(classifier, name):
    X, y = make()
    message, spoil = BAD_FITS[name]
    bad_X, bad_y, weights = spoil(X, y)
    clf = classifier()
    with pytest.raises(ValueError, match=message):
        clf.fit(bad_X, bad_y, weights)
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_bad_distance_matrix_leaves_the_classifier_unfitted():
    X, y = make()
    clf = ProjectedLeastSquaresClassifier(distance=np.ones((5, 3)))
    with pytest.raises(ValueError, match="distance"):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        clf.predict(X)


@every_classifier
@pytest.mark.parametrize("name", BAD_FITS)
def test_failed_refit_never_pairs_old_weights_with_new_classes(classifier, name):
    X, y = make()
    clf = classifier().fit(X, y)
    before = clf.predict(X)
    message, spoil = BAD_FITS[name]
    bad_X, bad_y, weights = spoil(X, y)
    names = np.array(["no", "yes", None], dtype=object)
    with pytest.raises(ValueError, match=message):
        clf.fit(bad_X, [v if isinstance(v, str) or v is None else names[v] for v in bad_y], weights)
    try:
        after = clf.predict(X)
    except NotFittedError:
        return
    np.testing.assert_array_equal(after, before)


# Unusual input with a correct answer


@semi_supervised
@pytest.mark.parametrize("weighted", [False, True])
def test_no_unlabeled_rows(classifier, weighted):
    X, y = make(n=30, n_labeled=30)
    s = np.linspace(0.5, 2.0, 30) if weighted else None
    clf = classifier().fit(X, y, s)
    supervised = LeastSquaresClassifierCV().fit(X, y, s)
    np.testing.assert_array_equal(clf.coef_, supervised.coef_)
    np.testing.assert_array_equal(clf.intercept_, supervised.intercept_)
    assert clf.certificate_.reason == "no unlabeled rows"
    assert clf.certificate_.holds
    assert clf.certificate_.worst_case == clf.certificate_.best_case == 0.0
    assert clf.certificate_.n_labeled == 30
    assert clf.soft_labels_.shape == (0,)


@semi_supervised
def test_unlabeled_rows_of_weight_zero_only(classifier):
    X, y = make()
    s = (y >= 0).astype(float)
    clf = classifier().fit(X, y, s)
    np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)
    supervised = LeastSquaresClassifierCV().fit(X, y)
    np.testing.assert_allclose(clf.coef_, supervised.coef_, rtol=1e-10)
    assert clf.certificate_.reason == "no unlabeled rows"
    assert clf.certificate_.n_unlabeled == 0


@every_classifier
@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1, 1e8 / 3])
def test_constant_column(classifier, constant):
    X, y = make()
    with_constant = np.insert(X, 1, constant, axis=1)
    clf = classifier().fit(with_constant, y)
    reference = classifier().fit(X, y)
    assert clf.coef_[0, 1] == 0.0
    np.testing.assert_allclose(np.delete(clf.coef_, 1, axis=1), reference.coef_, rtol=1e-8)
    np.testing.assert_allclose(clf.intercept_, reference.intercept_, rtol=1e-8)


@without_penalty
def test_constant_column_without_intercept_plays_its_part(classifier):
    X, y = make()
    with_one = np.insert(X, 0, 1.0, axis=1)
    clf = classifier(fit_intercept=False).fit(with_one, y)
    reference = classifier().fit(X, y)
    np.testing.assert_allclose(clf.coef_[0, 1:], reference.coef_[0], rtol=1e-7)
    assert clf.coef_[0, 0] - 0.5 == pytest.approx(reference.intercept_[0], rel=1e-7)


@every_classifier
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_all_columns_constant(classifier, alpha):
    X = np.tile([3.0, 0.0, -0.1], (20, 1))
    y = np.r_[1, 1, 1, 0, np.full(16, -1)]
    clf = classifier(alpha=alpha).fit(X, y)
    np.testing.assert_allclose(clf.coef_, 0.0, atol=1e-14)
    np.testing.assert_allclose(scores(clf, X), 0.25, rtol=1e-12)
    assert clf.predict(X).tolist() == [1] * 20


@every_classifier
def test_column_that_only_unlabeled_rows_have(classifier):
    X, y = make(n_labeled=30)
    X[:30, 1] = 0.0
    clf = classifier().fit(X, y)
    supervised = getattr(clf, "supervised_", clf)
    labeled = LeastSquaresClassifier(supervised.alpha_).fit(X[:30], y[:30])
    np.testing.assert_allclose(supervised.coef_, labeled.coef_, rtol=1e-9, atol=1e-12)
    assert supervised.coef_[0, 1] == 0.0


@every_classifier
def test_column_that_only_rows_of_weight_zero_have(classifier):
    X, y = make()
    X[:, 1] = 0.0
    X[[2, 40], 1] = 1.0
    s = np.ones(80)
    s[[2, 40]] = 0.0
    clf = classifier().fit(X, y, s)
    reference = classifier().fit(X[s > 0], y[s > 0])
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_duplicate_columns(variant):
    X, y = make()
    clf, reference = clone(variant), clone(variant)
    clf.fit(np.c_[X, X[:, 0]], y)
    reference.fit(X, y)
    np.testing.assert_allclose(
        scores(clf, np.c_[X, X[:, 0]]), scores(reference, X), rtol=1e-8, atol=1e-9
    )
    # The shortest of all solutions shares the weight among the copies.
    np.testing.assert_allclose(clf.coef_[0, 0], clf.coef_[0, -1], rtol=1e-6)


@without_penalty
def test_column_that_is_a_sum_of_others(classifier):
    X, y = make()
    dependent = np.c_[X, X @ [1.0, -2.0, 0.5, 3.0]]
    clf = classifier().fit(dependent, y)
    reference = classifier().fit(X, y)
    np.testing.assert_allclose(scores(clf, dependent), scores(reference, X), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_columns_of_very_different_scales(variant):
    X, y = make(n=200, n_labeled=16)
    X = X * [1e-6, 1.0, 1e6, 1e3]
    clf, reference = clone(variant), clone(variant)
    standardised = StandardScaler().fit_transform(X)
    clf.fit(X, y)
    reference.fit(standardised, y)
    np.testing.assert_allclose(
        scores(clf, X), scores(reference, standardised), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_array_equal(clf.predict(X), reference.predict(standardised))


@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_columns_far_from_zero(variant):
    X, y = make(n=200, n_labeled=16)
    offset = np.array([1e8, -1e8, 0.0, 1e8])
    far = X + offset
    clf, reference = clone(variant), clone(variant)
    clf.fit(far, y)
    reference.fit(far - offset, y)  # with the rounding of `far`
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(scores(clf, far), scores(reference, far - offset), atol=1e-6)


@pytest.mark.parametrize("n_labeled", [2, 4])
@pytest.mark.parametrize("n", [12, 200], ids=["fewer rows than features", "many rows"])
@pytest.mark.parametrize("distance", ["all", "labeled", "unlabeled", "euclidean"])
def test_fewer_labeled_rows_than_features(n, n_labeled, distance):
    X, y = make(n=n, d=20, n_labeled=n_labeled)
    clf = ProjectedLeastSquaresClassifier(distance, alpha=0.0).fit(X, y)
    # So many weights fit the labeled rows exactly; the supervised ones are the shortest.
    labeled = np.c_[X[:n_labeled] - X[:n_labeled].mean(axis=0)]
    shortest = np.linalg.lstsq(labeled, y[:n_labeled] - y[:n_labeled].mean(), rcond=None)[0]
    np.testing.assert_allclose(clf.supervised_.coef_[0], shortest, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        scores(clf.supervised_, X[:n_labeled]), y[:n_labeled] - 0.5, atol=1e-10
    )
    assert clf.certificate_.converged
    assert np.isfinite(scores(clf, X)).all()
    if distance in ("all", "unlabeled"):
        assert clf.certificate_.holds


def test_fewer_rows_than_features_gives_every_row_a_label_between_zero_and_one():
    X, y = make(n=12, d=20, n_labeled=4)
    clf = ProjectedLeastSquaresClassifier().fit(X, y)
    # Any labels can be fitted exactly, so the scores are those of the soft labels ...
    np.testing.assert_allclose(scores(clf, X[4:]) + 0.5, clf.soft_labels_, atol=1e-8)
    # ... and the nearest labels to the supervised scores are the clipped ones.
    nearest = np.clip(scores(clf.supervised_, X[4:]) + 0.5, 0.0, 1.0)
    np.testing.assert_allclose(clf.soft_labels_, nearest, atol=1e-8)


def small_integers():
    """X that every number type holds exactly."""
    rng = np.random.default_rng(1)
    X, y = make(n=60, n_labeled=12)
    return np.clip(np.rint(2 * X) + rng.integers(-1, 2, X.shape), -8, 8), y


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def column_strided(X):
    wide = np.zeros((X.shape[0], 2 * X.shape[1]))
    wide[:, ::2] = X
    return wide[:, ::2]


def row_strided(X):
    tall = np.zeros((2 * X.shape[0], X.shape[1]))
    tall[::2] = X
    return tall[::2]


def read_only_sparse(X):
    X = sparse.csr_array(X)
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    return X


LAYOUTS = {
    "read-only": read_only,
    "Fortran order": np.asfortranarray,
    "X[:, ::2]": column_strided,
    "X[::2]": row_strided,
    "reversed": lambda X: X[::-1].copy()[::-1],
    "big endian": lambda X: X.astype(">f8"),
    "int64": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "float32": lambda X: X.astype(np.float32),
    "float32 Fortran": lambda X: np.asfortranarray(X, dtype=np.float32),
    "float16": lambda X: X.astype(np.float16),
    "object": lambda X: X.astype(object),
    "list of lists": lambda X: X.tolist(),
    "pandas": pd.DataFrame,
    "pandas nullable": lambda X: pd.DataFrame(X).astype("Int64"),
    "read-only sparse": read_only_sparse,
}


@every_classifier
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_layouts_and_number_types(classifier, layout):
    X, y = small_integers()
    data = LAYOUTS[layout](X)
    reference = classifier().fit(X, y)
    clf = classifier().fit(data, y)
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scores(clf, data), scores(reference, X), rtol=1e-9, atol=1e-12)
    assert clf.coef_.dtype == np.float64


@every_classifier
def test_bool_columns(classifier):
    X, y = make()
    X = X > 0.5
    clf = classifier().fit(X, y)
    np.testing.assert_array_equal(clf.coef_, classifier().fit(X.astype(float), y).coef_)


@every_classifier
@pytest.mark.parametrize("wild", [0.0, 1e3, 1e100, 1e200])
def test_weight_zero_is_as_good_as_absent(classifier, wild):
    X, y = make()
    dropped = [0, 7, 8, 30, 31, 79]  # labeled rows, of both classes, and unlabeled ones
    s = np.linspace(0.5, 3.0, 80)
    s[dropped] = 0.0
    X[dropped] = wild * X[dropped]
    kept = s > 0
    clf = classifier().fit(X, y, s)
    reference = classifier().fit(X[kept], y[kept], s[kept])
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-7)
    np.testing.assert_allclose(clf.intercept_, reference.intercept_, rtol=1e-7)
    if classifier is not LeastSquaresClassifier:
        ours, theirs = clf.certificate_, reference.certificate_
        assert ours.worst_case == pytest.approx(theirs.worst_case, rel=1e-6, abs=1e-9)
        assert (ours.n_labeled, ours.n_unlabeled) == (theirs.n_labeled, theirs.n_unlabeled)
        assert (clf.soft_labels_ >= 0.0).all()
        assert (clf.soft_labels_ <= 1.0).all()


@every_classifier
def test_nan_in_a_row_of_weight_zero_is_an_error_all_the_same(classifier):
    X, y = make()
    X[5, 1] = np.nan
    s = np.ones(80)
    s[5] = 0.0
    with pytest.raises(ValueError, match="Input X contains NaN"):
        classifier().fit(X, y, s)


@every_classifier
def test_scalar_weight_changes_nothing(classifier):
    X, y = make()
    np.testing.assert_allclose(
        classifier().fit(X, y, 3.0).coef_, classifier().fit(X, y).coef_, rtol=1e-8
    )


@without_penalty
def test_duplicate_rows_count_as_weights(classifier):
    X, y = make()
    s = np.ones(80)
    s[::3] = 2.0
    doubled = np.r_[np.arange(80), np.arange(0, 80, 3)]
    clf = classifier().fit(X[doubled], y[doubled])
    np.testing.assert_allclose(clf.coef_, classifier().fit(X, y, s).coef_, rtol=1e-7)


@without_penalty
def test_all_rows_of_a_class_identical(classifier):
    X = np.tile([[0.0, 1.0], [1.0, 1.0]], (10, 1))
    y = np.r_[0, 1, np.full(18, -1)]
    clf = classifier().fit(X, y)
    assert clf.predict([[0.0, 1.0], [1.0, 1.0]]).tolist() == [0, 1]
    np.testing.assert_allclose(scores(clf, X[:2]), [-0.5, 0.5], atol=1e-9)


def least_squares(X, target):
    return np.linalg.lstsq(np.c_[X, np.ones(len(X))], target, rcond=None)[0]


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("position", [0, 5, 11])
def test_single_unlabeled_row(d, position):
    X, y = make(n=12, d=d, n_labeled=12)
    y = y.astype(float)
    X[position] = 10.0  # scored far beyond one
    y[position] = np.nan
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    supervised = least_squares(np.delete(X, position, 0), np.delete(y, position))
    assert X[position] @ supervised[:-1] + supervised[-1] > 1.0
    # The constraint set is a segment, and its end with label 1 is the nearest point.
    expected = least_squares(X, np.nan_to_num(y, nan=1.0))
    np.testing.assert_allclose(clf.coef_[0], expected[:-1], rtol=1e-8)
    np.testing.assert_allclose(clf.intercept_[0] + 0.5, expected[-1], rtol=1e-8, atol=1e-10)
    assert clf.soft_labels_.tolist() == [1.0]
    assert clf.certificate_.holds
    assert clf.certificate_.guaranteed_improvement > 0.0


@without_penalty
def test_single_feature(classifier):
    X, y = make(d=1, n_labeled=6)
    clf = classifier().fit(X, y)
    expected = least_squares(X[:6], y[:6])
    supervised = getattr(clf, "supervised_", clf)
    np.testing.assert_allclose(supervised.coef_[0], expected[:1], rtol=1e-10)
    np.testing.assert_allclose(supervised.intercept_ + 0.5, expected[1:], rtol=1e-10)
    assert clf.coef_.shape == (1, 1)
    assert scores(clf, X).shape == (80,)


@without_penalty
def test_one_labeled_row_of_each_class(classifier):
    X, y = make(n_labeled=2)
    clf = classifier().fit(X, y)
    supervised = getattr(clf, "supervised_", clf)
    np.testing.assert_allclose(scores(supervised, X[:2]), [-0.5, 0.5], rtol=1e-9)
    # The shortest weights point from one row to the other.
    step = X[1] - X[0]
    np.testing.assert_allclose(supervised.coef_[0], step / (step @ step), rtol=1e-8)


# X, y and weights are never changed


CASES = {
    "plain": lambda X: X,
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "int": lambda X: np.rint(X).astype(np.int64),
    "far from zero": lambda X: X + 1e8,
    "rank deficient": lambda X: np.c_[X, X[:, 0]],
    "constant column": lambda X: np.c_[X, np.ones(len(X))],
}


@every_classifier
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_changes_nothing(classifier, case, weighted):
    X, y = make()
    X = CASES[case](X)
    s = np.linspace(0.0, 2.0, 80) if weighted else None
    before = [a.tobytes() for a in (X, y, s) if a is not None]
    clf = classifier().fit(X, y, s)
    clf.predict(X)
    assert [a.tobytes() for a in (X, y, s) if a is not None] == before


@every_classifier
@pytest.mark.parametrize("n_labeled", [4, 40])
def test_fit_changes_nothing_in_a_sparse_matrix(classifier, n_labeled):
    dense, y = make(n_labeled=n_labeled)
    # Neither sorted nor without duplicates: what SciPy likes to tidy up in place.
    data = np.c_[dense[:, ::-1], dense[:, 0]].ravel()
    X = sparse.csr_matrix((data, np.tile([3, 2, 1, 0, 0], 80), np.arange(0, 401, 5)))
    before = [a.tobytes() for a in (X.data, X.indices, X.indptr)]
    clf = classifier().fit(X, y)
    assert [a.tobytes() for a in (X.data, X.indices, X.indptr)] == before
    dense[:, 0] *= 2.0  # what the duplicates add up to
    np.testing.assert_allclose(clf.coef_, classifier().fit(dense, y).coef_, atol=1e-9)


def test_fit_does_not_change_the_distance_matrix():
    X, y = make()
    D = np.random.default_rng(5).normal(size=(6, 4))
    before = D.tobytes()
    clf = ProjectedLeastSquaresClassifier(distance=D).fit(X, y)
    assert D.tobytes() == before
    assert clf.distance is D


# Numbers beyond the range of floating point


@semi_supervised
@pytest.mark.parametrize("alpha", [0.0, 1.0, "loo"])
def test_rows_of_zeros_without_an_intercept(classifier, alpha):
    y = np.where(np.arange(6000) < 20, np.arange(6000) % 2, -1)
    clf = classifier(alpha=alpha, fit_intercept=False).fit(np.zeros((6000, 2)), y)
    np.testing.assert_array_equal(clf.coef_, 0.0)
    assert clf.certificate_.holds


@every_classifier
@pytest.mark.parametrize("weight", [1e-51, 1e-200, 1e51, 1e200])
def test_weights_beyond_use_are_named(classifier, weight):
    X, y = make()
    s = np.ones(len(y))
    s[7] = weight
    with pytest.raises(ValueError, match=r"sample_weight is .* in row 7, .* between 1e-50 and 1e"):
        classifier().fit(X, y, s)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@semi_supervised
@pytest.mark.parametrize("span", [20, 50])
def test_certificates_are_finite_for_all_weights_that_are_taken(classifier, span):
    rng = np.random.default_rng(span)
    X, y = make()
    for _ in range(10):
        clf = classifier().fit(X, y, 10.0 ** (span * rng.uniform(-1, 1, len(y))))
        json.dumps(clf.certificate_.to_dict(), allow_nan=False)


@every_classifier
@pytest.mark.parametrize("seed", range(10))
def test_rows_that_vanish_beside_a_heavy_one(classifier, seed):
    rng = np.random.default_rng(seed)
    X, y = make(n=12, n_labeled=4, seed=seed)
    span = 10.0 ** rng.uniform(25, 49)
    clf = classifier(alpha=0.0).fit(X, y, np.where(np.arange(12) == seed % 2, span, 1.0 / span))
    assert np.isfinite(clf.coef_).all()
    assert clf.predict(X)[seed % 2] == y[seed % 2]


@every_classifier
def test_integers_beyond_the_range(classifier):
    X, y = make()
    labels = np.where(y == -1, None, y.astype(object) + 2**70)
    with pytest.raises(ValueError, match=r"integers beyond 64 bits.*strings"):
        classifier().fit(X, labels)
    names = np.where(y == -1, None, labels.astype(str).astype(object))
    assert set(classifier().fit(X, names).predict(X)) <= set(names)
    with pytest.raises(ValueError, match="too large for a floating point number"):
        classifier().fit([[10**400, 1], *X[1:, :2].tolist()], y)
    with pytest.raises(ValueError, match="too large for a floating point number"):
        classifier().fit(X, y, [10**400] * len(y))


NOT_NUMBERS = {
    "text": ([[1, 2], [1, "x"]], ValueError, "could not convert string to float: 'x'. Encode text"),
    "rows of several lengths": ([[1, 2], [3]], ValueError, "give all rows the same columns"),
    "an object": ([[1, 2], [1, {}]], TypeError, "must be a string or a real number, not 'dict'."),
    "large integers": ([[1, 2], [10**400, 1]], ValueError, "integers that are too large"),
}


@pytest.mark.parametrize("rows", NOT_NUMBERS)
@pytest.mark.parametrize(
    "estimator",
    [
        LeastSquaresClassifier(),
        LeastSquaresRegressor(missing_label=-1),
        NullCategoryNoiseModel(),
        LinearDiscriminantClassifier(),
        SupervisedClassifier(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_what_is_no_number_is_said_in_words(estimator, rows):
    X, y = make(d=2)
    wrong, error, said = NOT_NUMBERS[rows]
    fitted = clone(estimator).fit(X, y)
    names = {"predict", "decision_function", "predict_proba"}
    methods = [getattr(fitted, name) for name in names if hasattr(fitted, name)]
    for use in (*methods, lambda X: clone(estimator).fit(X, [0, 1])):
        with pytest.raises(error, match=f"X, y, sample_weight.*{re.escape(said)}"):
            use(wrong)
    with pytest.raises(ValueError, match="is not an array of numbers: could not convert"):
        LeastSquaresClassifier().fit(X, y, ["a"] * len(y))


def test_targets_beyond_the_range():
    X, _ = make()
    with pytest.raises(ValueError, match="too large"):
        LeastSquaresRegressor().fit(X, [10**400, *range(len(X) - 1)])
