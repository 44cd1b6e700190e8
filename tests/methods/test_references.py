"""References for experiments: fewer labels, all labels, and one y for everybody."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_validate, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils._param_validation import InvalidParameterError

from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier, audit
from neverworse.methods import (
    HiddenLabels,
    OracleClassifier,
    SelfLearningClassifier,
    SupervisedClassifier,
    UpdatedSecondMomentClassifier,
)
from neverworse.model_selection import mask_labels
from tests.label_encodings import CODES, ENCODINGS, UNLABELED
from tests.label_encodings import X as ENCODED_X

BOTH = [SupervisedClassifier, OracleClassifier]
both = pytest.mark.parametrize("reference", BOTH)


def make(n_classes=2, n=150, d=4, n_labeled=20, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[truth]
    labeled = np.r_[np.arange(n_classes), n_classes + rng.permutation(n - n_classes)]
    y = truth.copy()
    y[labeled[n_labeled:]] = -1
    return X, y, truth


# The labeled rows, and nothing else


ESTIMATORS = [
    None,
    LeastSquaresClassifier(1.0),
    GaussianNB(),
    DecisionTreeClassifier(random_state=0),
    make_pipeline(StandardScaler(), KNeighborsClassifier(3)),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_supervised_sees_labeled_rows_only(estimator, n_classes):
    X, y, _ = make(n_classes)
    X[y == -1, 0] = np.nan  # nobody looks
    clf = SupervisedClassifier(estimator).fit(X, y)
    alone = clone(LeastSquaresClassifier() if estimator is None else estimator)
    alone.fit(X[y >= 0], y[y >= 0])
    X = np.nan_to_num(X)
    np.testing.assert_allclose(clf.predict_proba(X), alone.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), alone.predict(X))
    assert clf.classes_.tolist() == list(range(n_classes))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_oracle_sees_all_labels(estimator, n_classes):
    X, y, truth = make(n_classes)
    clf = OracleClassifier(estimator).fit(X, HiddenLabels(y, truth))
    alone = clone(LeastSquaresClassifier() if estimator is None else estimator).fit(X, truth)
    np.testing.assert_allclose(clf.predict_proba(X), alone.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), alone.predict(X))


@both
@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_without_unlabeled_rows_both_are_the_classifier_itself(reference, estimator):
    X, _, truth = make()
    s = np.linspace(0.5, 2.0, len(X))
    clf = reference(estimator).fit(X, truth, s)
    alone = clone(LeastSquaresClassifier() if estimator is None else estimator).fit(X, truth, s)
    np.testing.assert_array_equal(clf.predict_proba(X), alone.predict_proba(X))


def test_true_labels_count_only_where_y_has_none():
    X, y, truth = make()
    wrong = truth.copy()
    wrong[y >= 0] = 1 - wrong[y >= 0]
    clf = OracleClassifier().fit(X, HiddenLabels(y, wrong))
    np.testing.assert_array_equal(
        clf.estimator_.coef_, OracleClassifier().fit(X, HiddenLabels(y, truth)).estimator_.coef_
    )


def test_oracle_knows_classes_that_no_labeled_row_has():
    X, y, truth = make(3)
    y[y == 2] = -1
    assert SupervisedClassifier().fit(X, y).classes_.tolist() == [0, 1]
    assert OracleClassifier().fit(X, HiddenLabels(y, truth)).classes_.tolist() == [0, 1, 2]


def test_the_order_that_everybody_expects():
    scores = []
    for seed in range(10):
        X, y, truth = make(n=400, d=8, n_labeled=14, seed=seed)
        hidden = HiddenLabels(y, truth)
        scores.append([m().fit(X, hidden).score(X, truth) for m in BOTH])
    supervised, oracle = np.mean(scores, axis=0)
    assert oracle > supervised + 0.05


# One y for everybody


EVERYBODY = [
    LeastSquaresClassifier(),
    ProjectedLeastSquaresClassifier(),
    SelfLearningClassifier(),
    SelfLearningClassifier(GaussianNB()),
    UpdatedSecondMomentClassifier(),
    SupervisedClassifier(GaussianNB()),
    SelfTrainingClassifier(GaussianNB()),  # of another package
]


@pytest.mark.parametrize("estimator", EVERYBODY, ids=repr)
def test_nobody_but_an_oracle_sees_behind_the_markers(estimator):
    X, y, truth = make()
    one = clone(estimator).fit(X, HiddenLabels(y, truth))
    other = clone(estimator).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_oracle_sees_behind_the_markers():
    X, y, truth = make()
    clf = OracleClassifier(GaussianNB()).fit(X, HiddenLabels(y, truth))
    expected = GaussianNB().fit(X, truth)
    np.testing.assert_array_equal(clf.predict_proba(X), expected.predict_proba(X))


def test_an_experiment_without_special_cases():
    X, _, truth = make(3, n=240)
    y = HiddenLabels(mask_labels(truth, n_labeled=30, stratify=True, random_state=0), truth)
    methods = [*EVERYBODY, OracleClassifier(GaussianNB())]
    results = {}
    for method in methods:
        pipeline = make_pipeline(StandardScaler(), method)
        rows, test_rows, y_train, y_test = train_test_split(X, y, random_state=0)
        assert isinstance(y_train, HiddenLabels)
        results[repr(method)] = pipeline.fit(rows, y_train).score(test_rows, y_test.y_true)
    assert len(results) == len(methods)
    assert results[repr(methods[-1])] == max(results.values())


def test_hidden_labels_in_cross_validation_and_searches():
    X, y, truth = make(n=200, n_labeled=80)
    hidden = HiddenLabels(y, truth)
    folds = [(np.arange(200) % 4 != k, np.arange(200) % 4 == k) for k in range(4)]
    folds = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in folds]

    def score(model, X, y):
        return model.score(X, y.y_true)

    result = cross_validate(
        OracleClassifier(GaussianNB()), X, hidden, cv=folds, scoring=score, return_estimator=True
    )
    for clf, (train, _) in zip(result["estimator"], folds, strict=True):
        expected = GaussianNB().fit(X[train], truth[train])
        np.testing.assert_array_equal(clf.predict_proba(X), expected.predict_proba(X))
    grid = {"estimator__alpha": [0.0, 1.0]}
    search = GridSearchCV(OracleClassifier(LeastSquaresClassifier()), grid, cv=folds, scoring=score)
    search.fit(X, hidden)
    full = OracleClassifier(search.best_estimator_.estimator).fit(X, HiddenLabels(y, truth))
    np.testing.assert_allclose(search.decision_function(X), full.decision_function(X))


def test_hidden_labels_are_an_array_of_labels_with_markers():
    y, truth = np.array([0, -1, 1, -1]), np.array([0, 1, 1, 0])
    hidden = HiddenLabels(y, truth)
    assert len(hidden) == 4
    assert hidden.shape == (4,)
    np.testing.assert_array_equal(np.asarray(hidden), y)
    assert np.asarray(hidden, dtype=float).dtype == np.float64
    assert repr(hidden) == "HiddenLabels(array([ 0, -1,  1, -1]))"
    copied = np.array(hidden)
    copied[0] = 7
    assert hidden.y[0] == 0
    for rows in (slice(1, 3), [1, 2], np.array([False, True, True, False])):
        assert np.asarray(hidden[rows]).tolist() == [-1, 1]
        assert hidden[rows].y_true.tolist() == [1, 1]
    with pytest.raises(TypeError, match="by a slice, a mask or a list"):
        hidden[1]
    with pytest.raises(ValueError, match="inconsistent numbers"):
        HiddenLabels(y, truth[:-1])
    loaded = pickle.loads(pickle.dumps(hidden))
    np.testing.assert_array_equal(loaded.y_true, truth)


# Labels


@pytest.mark.parametrize("name", ENCODINGS)
def test_same_fit_whatever_the_encoding_of_labels(name):
    y, classes = ENCODINGS[name]
    truth = np.where(UNLABELED, np.arange(30) % 2, CODES)
    named = [classes[code] for code in truth]
    supervised = SupervisedClassifier(GaussianNB()).fit(ENCODED_X, y)
    expected = GaussianNB().fit(ENCODED_X[~UNLABELED], CODES[~UNLABELED])
    np.testing.assert_array_equal(
        supervised.predict_proba(ENCODED_X), expected.predict_proba(ENCODED_X)
    )
    expected = GaussianNB().fit(ENCODED_X, truth)
    for oracle in (
        OracleClassifier(GaussianNB()).fit(ENCODED_X, HiddenLabels(y, named)),
        OracleClassifier(GaussianNB()).fit(ENCODED_X, HiddenLabels(y, pd.Series(named))),
    ):
        np.testing.assert_array_equal(
            oracle.predict_proba(ENCODED_X), expected.predict_proba(ENCODED_X)
        )
        assert oracle.classes_.tolist() == oracle.estimator_.classes_.tolist() == classes


def test_other_markers():
    X, y, truth = make()
    marked = np.where(y < 0, np.nan, 2.0 * y - 1.0)  # classes -1 and 1
    clf = OracleClassifier(GaussianNB(), missing_label=np.nan)
    clf.fit(X, HiddenLabels(marked, 2.0 * truth - 1.0))
    assert clf.classes_.tolist() == [-1.0, 1.0]
    expected = GaussianNB().fit(X, truth)
    np.testing.assert_array_equal(clf.predict_proba(X), expected.predict_proba(X))
    named = np.array(["no", "yes", "?"])
    clf = SupervisedClassifier(GaussianNB(), missing_label="?").fit(X, named[y])
    assert clf.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "estimator",
    [
        LeastSquaresClassifier(),
        make_pipeline(StandardScaler(), LeastSquaresClassifier()),
        SelfLearningClassifier(),
    ],
    ids=["plain", "in a pipeline", "with another inside"],
)
def test_minus_one_stays_a_class_for_classifiers_that_would_take_it_for_a_marker(
    estimator, n_classes
):
    X, y, truth = make(n_classes)
    names = np.array([-1, 1, 2])  # and 0 where there is no label
    marked = np.where(y < 0, 0, names[y])
    supervised = SupervisedClassifier(estimator, missing_label=0).fit(X, marked)
    expected = clone(estimator).fit(X[y >= 0], y[y >= 0])
    assert supervised.estimator_.classes_.tolist() == names[:n_classes].tolist()
    np.testing.assert_array_equal(supervised.predict(X), names[expected.predict(X)])
    hidden = HiddenLabels(marked, names[truth])
    oracle = OracleClassifier(estimator, missing_label=0).fit(X, hidden)
    expected = clone(estimator).fit(X, truth)
    np.testing.assert_array_equal(oracle.predict(X), names[expected.predict(X)])
    if isinstance(estimator, LeastSquaresClassifier):
        assert estimator.missing_label == "auto"


# Rows of every kind, weights and metadata


@both
@pytest.mark.parametrize(
    "container",
    [pd.DataFrame, pl.DataFrame, np.ndarray.tolist, sparse.coo_array, sparse.csc_matrix],
)
def test_containers_of_rows(reference, container):
    X, y, truth = make()
    hidden = HiddenLabels(y, truth)
    tree = DecisionTreeClassifier(random_state=0)
    clf = reference(tree).fit(container(X), hidden)
    assert clf.n_features_in_ == 4
    np.testing.assert_array_equal(
        clf.predict(container(X)), reference(tree).fit(X, hidden).predict(X)
    )


@both
def test_names_of_columns(reference):
    X, y, truth = make()
    data = pd.DataFrame(X, columns=list("abcd"))
    clf = reference(GaussianNB()).fit(data, HiddenLabels(y, truth))
    assert clf.feature_names_in_.tolist() == list("abcd")
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clf.predict(X)
    assert not hasattr(clf.fit(X, HiddenLabels(y, truth)), "feature_names_in_")


def test_weights_go_with_their_rows():
    X, y, truth = make()
    s = np.linspace(0.1, 3.0, len(y))
    labeled = y >= 0
    supervised = SupervisedClassifier(GaussianNB()).fit(X, y, s)
    expected = GaussianNB().fit(X[labeled], y[labeled], s[labeled])
    np.testing.assert_array_equal(supervised.predict_proba(X), expected.predict_proba(X))
    oracle = OracleClassifier(GaussianNB()).fit(X, HiddenLabels(y, truth), s)
    expected = GaussianNB().fit(X, truth, s)
    np.testing.assert_array_equal(oracle.predict_proba(X), expected.predict_proba(X))


@both
def test_weights_that_the_estimator_does_not_take(reference):
    X, y, truth = make()
    with pytest.raises(ValueError, match="KNeighborsClassifier does not take it in fit"):
        reference(KNeighborsClassifier()).fit(X, HiddenLabels(y, truth), np.ones(len(y)))


def test_metadata_are_routed():
    X, y, truth = make()
    s = np.linspace(0.1, 3.0, len(y))
    expected = GaussianNB().fit(X, truth, s)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler(with_mean=False, with_std=False)
        pipeline = make_pipeline(
            scaler.set_fit_request(sample_weight=False),
            OracleClassifier(GaussianNB()).set_fit_request(sample_weight=True),
        )
        pipeline.fit(X, HiddenLabels(y, truth), sample_weight=s)
        np.testing.assert_allclose(pipeline.predict_proba(X), expected.predict_proba(X))


def test_audit_of_an_oracle():
    X, y, truth = make(n_labeled=140)
    hidden = HiddenLabels(y, truth)
    oracle, supervised = (m(GaussianNB()).fit(X, hidden) for m in (OracleClassifier, BOTH[0]))
    found = audit(oracle, supervised, X, hidden)
    assert found.best_case < 0.0 < found.worst_case
    known = audit(oracle, supervised, X, truth)  # with all labels there is one case only
    assert known.best_case == pytest.approx(known.worst_case, rel=1e-9)
    assert found.best_case < known.best_case <= known.worst_case < found.worst_case


@both
def test_parameters_and_methods(reference):
    X, y, truth = make()
    inner = GaussianNB(var_smoothing=1e-3)
    clf = reference(inner, missing_label=-1)
    parameters = clf.get_params()
    clf.fit(X, HiddenLabels(y, truth))
    assert clf.get_params() == parameters
    assert not hasattr(inner, "classes_")
    assert clone(clf).estimator.var_smoothing == 1e-3
    assert not hasattr(clf, "decision_function")
    assert hasattr(reference(), "decision_function")
    loaded = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))


# Bad input


BAD_FITS = {
    "no label": ("no labeled row|no true label", lambda X, y: (X, np.full(len(y), np.nan), None)),
    "one class": ("one class only", lambda X, y: (X, np.where(y == -1, None, "a"), None)),
    "y is None": ("y to be passed", lambda X, y: (X, None, None)),
    "y too short": ("inconsistent numbers", lambda X, y: (X, y[:-1], None)),
    "targets": ("continuous", lambda X, y: (X, X[:, 0], None)),
    "ambiguous": ("which may be two classes", lambda X, y: (X, np.where(y == 0, -1, y), None)),
    "negative weight": ("Negative values", lambda X, y: (X, y, np.full(len(y), -1.0))),
    "weights of one class": ("of one class only", lambda X, y: (X, y, (y == 1).astype(float))),
    "NaN": ("contains NaN", lambda X, y: (np.where(X > 1.0, np.nan, X), y, None)),
}


@pytest.mark.parametrize("name", BAD_FITS)
@both
def test_bad_input_is_explained_and_leaves_it_unfitted(reference, name):
    X, y, truth = make()
    message, spoil = BAD_FITS[name]
    clf = reference(GaussianNB()).fit(X, HiddenLabels(y, truth))
    bad_X, bad_y, weights = spoil(X, y)
    if reference is OracleClassifier and bad_y is not None:
        bad_y = HiddenLabels(bad_y, spoil(X, truth)[1])
    with pytest.raises(ValueError, match=message):
        clf.fit(bad_X, bad_y, weights)
    with pytest.raises(NotFittedError, match=f"{reference.__name__} instance is not fitted yet"):
        clf.predict(X)


def test_oracle_without_the_truth():
    X, y, truth = make()
    clf = OracleClassifier().fit(X, HiddenLabels(y, truth))
    with pytest.raises(ValueError, match=r"130 rows have no true label.*HiddenLabels\(y, y_true\)"):
        clf.fit(X, y)
    assert not hasattr(clf, "estimator_")
    with pytest.raises(ValueError, match="130 rows have no true label"):
        clf.fit(X, HiddenLabels(y, y))


@both
@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (LinearRegression(), ValueError, "is not a classifier"),
        ("tree", InvalidParameterError, "'estimator' parameter"),
        (LeastSquaresClassifier(-1.0), InvalidParameterError, "'alpha' parameter"),
    ],
)
def test_estimators_that_cannot_be_used(reference, estimator, error, message):
    X, y, truth = make()
    with pytest.raises(error, match=message):
        reference(estimator).fit(X, HiddenLabels(y, truth))
