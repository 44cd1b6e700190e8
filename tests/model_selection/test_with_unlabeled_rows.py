"""Labeled rows in fit, unlabeled rows in the estimator: what scikit-learn's own tools need."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import StrOptions

from neverworse import ProjectedLeastSquaresClassifier
from neverworse.methods import L2SVMClassifier, SelfLearningClassifier
from neverworse.model_selection import StratifiedLabeledKFold, WithUnlabeledRows


def problem(n_classes=2, n=240, n_labeled=60, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, 4)) + 2.0 * rng.normal(size=(n_classes, 4))[truth]
    labeled = np.zeros(n, bool)
    labeled[rng.permutation(n)[:n_labeled]] = True
    return X, truth, labeled


def classifier(**settings):
    return ProjectedLeastSquaresClassifier(alpha=1.0, **settings)


NAMES = {
    "integers": np.array([0, 1, 2]),
    "strings": np.array(["a", "b", "c"]),
    "objects": np.array(["a", "b", "c"], dtype=object),
    "-1 and 1": np.array([-1, 1, 3]),
    "booleans": np.array([False, True]),
}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibration_has_all_unlabeled_rows_in_every_fold(names, n_classes):
    if len(NAMES[names]) < n_classes:
        pytest.skip("There are two booleans.")
    X, truth, labeled = problem(n_classes)
    y = NAMES[names][truth]
    pipe = make_pipeline(StandardScaler(), classifier())
    wrapped = WithUnlabeledRows(pipe, X[~labeled])
    folds = StratifiedKFold(4)
    calibrated = CalibratedClassifierCV(wrapped, cv=folds).fit(X[labeled], y[labeled])
    assert calibrated.classes_.tolist() == NAMES[names][:n_classes].tolist()
    splits = folds.split(X[labeled], truth[labeled])
    for found, (train, _) in zip(calibrated.calibrated_classifiers_, splits, strict=True):
        known = np.full(len(X), -1)
        rows = np.flatnonzero(labeled)[train]
        known[rows] = truth[rows]
        kept = np.concatenate([rows, np.flatnonzero(~labeled)])
        by_hand = make_pipeline(StandardScaler(), classifier()).fit(X[kept], known[kept])
        np.testing.assert_allclose(
            found.estimator.decision_function(X), by_hand.decision_function(X), atol=1e-8
        )
    probabilities = calibrated.predict_proba(X[~labeled])
    assert probabilities.shape == ((~labeled).sum(), n_classes)
    predicted = calibrated.predict(X[~labeled])
    assert np.mean(predicted == y[~labeled]) > 0.7
    np.testing.assert_array_equal(predicted, calibrated.classes_[probabilities.argmax(axis=1)])


def test_thresholds_are_tuned():
    X, truth, labeled = problem(n_labeled=80)
    y = np.where(truth == 1, "sick", "well")
    wrapped = WithUnlabeledRows(classifier(), X[~labeled])
    tuned = TunedThresholdClassifierCV(wrapped, scoring="balanced_accuracy", cv=4)
    tuned.fit(X[labeled], y[labeled])
    second = tuned.predict_proba(X)[:, 1]
    expected = np.where(second >= tuned.best_threshold_, "well", "sick")
    np.testing.assert_array_equal(tuned.predict(X), expected)
    assert np.mean(tuned.predict(X[~labeled]) == y[~labeled]) > 0.7


def test_other_tools_of_scikit_learn():
    X, truth, labeled = problem()
    wrapped = WithUnlabeledRows(classifier(), X[~labeled])
    scores = cross_val_score(wrapped, X[labeled], truth[labeled], cv=4)
    known = np.where(labeled, truth, -1)
    same = cross_val_score(classifier(), X, known, cv=StratifiedLabeledKFold(4))
    np.testing.assert_allclose(scores, same)
    assert len(cross_val_predict(wrapped, X[labeled], truth[labeled])) == labeled.sum()
    stack = StackingClassifier([("safe", wrapped), ("other", LogisticRegression())])
    assert stack.fit(X[labeled], truth[labeled]).score(X[~labeled], truth[~labeled]) > 0.7


FORMS = {
    "array": np.asarray,
    "list": lambda X: X.tolist(),
    "sparse": sparse.csr_array,
    "coo": sparse.coo_matrix,
    "pandas": lambda X: pd.DataFrame(X, columns=list("abcd")),
    "polars": lambda X: pl.DataFrame(X, schema=list("abcd")),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_rows(form):
    X, truth, labeled = problem()
    expected = classifier().fit(X, np.where(labeled, truth, -1))
    made = FORMS[form]
    clf = WithUnlabeledRows(classifier(), made(X[~labeled])).fit(made(X[labeled]), truth[labeled])
    np.testing.assert_allclose(clf.estimator_.coef_, expected.coef_, atol=1e-8)
    assert clf.estimator_.certificate_.n_unlabeled == (~labeled).sum()
    assert clf.n_features_in_ == 4
    assert hasattr(clf, "feature_names_in_") == (form in ("pandas", "polars"))


@pytest.mark.parametrize("form", ["array", "list"])
def test_sparse_rows_and_others(form):
    X, truth, labeled = problem()
    expected = classifier().fit(X, np.where(labeled, truth, -1))
    parts = FORMS[form](X[labeled]), FORMS["sparse"](X[~labeled])
    clf = WithUnlabeledRows(classifier(), parts[1]).fit(parts[0], truth[labeled])
    np.testing.assert_allclose(clf.estimator_.coef_, expected.coef_, atol=1e-8)
    clf = WithUnlabeledRows(classifier(), FORMS[form](X[~labeled]))
    clf.fit(FORMS["sparse"](X[labeled]), truth[labeled])
    np.testing.assert_allclose(clf.estimator_.coef_, expected.coef_, atol=1e-8)


@pytest.mark.parametrize("marker", ["auto", -1, "?", None])
def test_markers_of_the_estimator_do_not_matter(marker):
    X, truth, labeled = problem()
    y = np.where(truth == 1, 1, -1)
    clf = WithUnlabeledRows(classifier(missing_label=marker), X[~labeled])
    clf.fit(X[labeled], y[labeled])
    assert clf.classes_.tolist() == [-1, 1]
    assert clf.estimator_.certificate_.n_labeled == labeled.sum()
    assert clf.estimator.missing_label is marker or clf.estimator.missing_label == marker


def test_weights_are_those_of_labeled_rows():
    X, truth, labeled = problem()
    weights = np.random.default_rng(1).random(len(X))
    all_weights = np.where(labeled, weights, 1.0)
    known = np.where(labeled, truth, -1)
    expected = classifier().fit(X, known, sample_weight=all_weights)
    clf = WithUnlabeledRows(classifier(), X[~labeled])
    clf.fit(X[labeled], truth[labeled], sample_weight=weights[labeled])
    np.testing.assert_allclose(clf.estimator_.coef_, expected.coef_, atol=1e-8)
    calibrated = CalibratedClassifierCV(clf, cv=3)
    calibrated.fit(X[labeled], truth[labeled], sample_weight=weights[labeled])
    assert calibrated.predict_proba(X).shape == (len(X), 2)


def test_copies_share_the_unlabeled_rows():
    X, truth, labeled = problem()
    clf = WithUnlabeledRows(classifier(), X[~labeled])
    with config_context(enable_metadata_routing=True):
        clf.set_fit_request(sample_weight=True)
        copied = clone(clf)
        assert copied.get_metadata_routing().fit.requests == {"sample_weight": True}
    assert copied.X_unlabeled is clf.X_unlabeled
    assert copied.estimator is not clf.estimator
    assert copied.set_params(estimator__alpha=3.0).estimator.alpha == 3.0
    assert clf.estimator.alpha == 1.0
    fitted = clf.fit(X[labeled], truth[labeled])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


@pytest.mark.parametrize(
    ("X", "y", "unlabeled", "said"),
    [
        (np.eye(4), [0, 1, None, None], np.eye(4), r"2 null values.*X_unlabeled"),
        (np.eye(4), [0.0, 1.0, np.nan, 1.0], np.eye(4), r"1 null values.*X_unlabeled"),
        (np.eye(4), [0, 0, 0, 0], np.eye(4), "one class only"),
        (np.eye(4), [0, 1, 0, 1], np.eye(3), r"same columns.*\(4, 4\) and \(3, 3\)"),
        (np.eye(4), [0, 1, 0], np.eye(4), "inconsistent numbers of samples"),
        (np.eye(2), [0, 1], [[10**400, 1]], "integers that are too large"),
        (np.eye(2), [0, 1], [[0, 1], [2]], "give all rows the same columns"),
        (np.eye(4), [0, 1, 0, 1], pd.DataFrame(np.eye(4)), "both be data frames"),
        (
            pd.DataFrame(np.eye(2), columns=["a", "b"]),
            [0, 1],
            pd.DataFrame(np.eye(2), columns=["b", "a"]),
            "same columns in the same order",
        ),
    ],
)
def test_what_cannot_be_fitted(X, y, unlabeled, said):
    clf = WithUnlabeledRows(classifier(), unlabeled)
    with pytest.raises(ValueError, match=said):
        clf.fit(X, y)
    assert not hasattr(clf, "estimator_")


def test_a_supervised_classifier_is_refused():
    clf = WithUnlabeledRows(LogisticRegression(), np.eye(2))
    with pytest.raises(ValueError, match=r"has no missing_label.*of neverworse"):
        clf.fit(np.eye(2), [0, 1])


# Calibration that would take the marker for a class.

# Those that the installed scikit-learn has: "temperature" came with 1.8.
(CALIBRATIONS,) = (
    each.options
    for each in CalibratedClassifierCV._parameter_constraints["method"]
    if isinstance(each, StrOptions)
)
ADVICE = r"CalibratedClassifierCV treats (-1|'\?').*WithUnlabeledRows\(estimator, X\[unlabeled\]\)"


@pytest.mark.parametrize(
    ("options", "n_classes"),
    [
        ({"cv": StratifiedLabeledKFold(3)}, 2),
        ({"cv": StratifiedLabeledKFold(3)}, 3),
        ({"cv": 3}, 2),
        ({"cv": 3}, 3),
        ({"n_jobs": 2}, 2),
    ],
)
def test_calibration_with_markers_is_refused(options, n_classes):
    X, truth, labeled = problem(n_classes)
    pipe = make_pipeline(StandardScaler(), classifier())
    with pytest.raises(ValueError, match=ADVICE):
        CalibratedClassifierCV(pipe, **options).fit(X, np.where(labeled, truth, -1))


@pytest.mark.parametrize(
    "make",
    [
        classifier,
        SelfLearningClassifier,
        lambda: SelfLearningClassifier(LogisticRegression()),
        L2SVMClassifier,
    ],
)
@pytest.mark.parametrize("ensemble", [True, False])
def test_whichever_estimator_is_calibrated(make, ensemble):
    X, truth, labeled = problem()
    calibrated = CalibratedClassifierCV(make(), cv=3, ensemble=ensemble)
    with pytest.raises(ValueError, match=ADVICE):
        calibrated.fit(X, np.where(labeled, truth, -1))


@pytest.mark.parametrize("method", sorted(CALIBRATIONS))
def test_markers_of_ones_own_and_all_methods(method):
    X, truth, labeled = problem()
    y = np.where(labeled, np.where(truth == 1, "a", "b"), "?")
    calibrated = CalibratedClassifierCV(classifier(missing_label="?"), method=method, cv=3)
    with pytest.raises(ValueError, match=ADVICE):
        calibrated.fit(X, y)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("marker", [None, np.nan])
def test_null_markers_are_refused_by_scikit_learn(marker):
    X, truth, labeled = problem()
    y = np.array([float(t) if k else marker for t, k in zip(truth, labeled, strict=True)])
    for tool in (CalibratedClassifierCV, TunedThresholdClassifierCV):
        with pytest.raises(ValueError, match=r"NaN|[Uu]nknown label type"):
            tool(classifier(), cv=StratifiedLabeledKFold(3)).fit(X, y)


def test_thresholds_with_markers_are_refused_by_scikit_learn():
    X, truth, labeled = problem()
    tuned = TunedThresholdClassifierCV(classifier(), cv=StratifiedLabeledKFold(3))
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        tuned.fit(X, np.where(labeled, truth, -1))


def test_a_class_that_is_no_marker_is_calibrated():
    X, truth, _ = problem()
    clf = CalibratedClassifierCV(classifier(missing_label=np.nan), cv=3)
    clf.fit(X, np.where(truth == 1, 1, -1))
    assert clf.classes_.tolist() == [-1, 1]
    assert clf.score(X, np.where(truth == 1, 1, -1)) > 0.7
