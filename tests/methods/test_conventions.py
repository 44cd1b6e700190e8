"""What all methods have in common: scikit-learn's checks, labels of every kind, frames, copies."""

import inspect
import pickle
import re
from copy import deepcopy
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

from neverworse.methods import (
    ContrastivePessimisticDiscriminantAnalysis,
    EMDiscriminantAnalysis,
    EntropyRegularizedLogisticRegression,
    HiddenLabels,
    ImplicitlyConstrainedDiscriminantAnalysis,
    L2SVMClassifier,
    LaplacianLeastSquaresClassifier,
    LinearDiscriminantClassifier,
    MetricModelSelection,
    MomentConstrainedDiscriminantAnalysis,
    NearestMeanClassifier,
    NullCategoryNoiseModel,
    OracleClassifier,
    SafeSVMClassifier,
    SelfLearningClassifier,
    SupervisedClassifier,
    TransductiveSVMClassifier,
    UpdatedSecondMomentClassifier,
)
from tests.estimators.callbacks import Callback, interrupt
from tests.label_encodings import CODES, ENCODINGS

CLASSIFIERS = {
    "supervised": SupervisedClassifier(GaussianNB()),
    "oracle": OracleClassifier(),
    "self-learning": SelfLearningClassifier(),
    "self-learning by refits": SelfLearningClassifier(GaussianNB()),
    "self-learning of soft labels": SelfLearningClassifier(labels="soft"),
    "Laplacian": LaplacianLeastSquaresClassifier(),
    "updated second moments": UpdatedSecondMomentClassifier(),
    "entropy": EntropyRegularizedLogisticRegression(),
    "metric": MetricModelSelection(
        [("strong", LogisticRegression(C=0.01)), ("weak", LogisticRegression(C=1.0))]
    ),
    "null category": NullCategoryNoiseModel(optimize=False),
    "discriminant": LinearDiscriminantClassifier(),
    "nearest mean": NearestMeanClassifier(),
    "EM": EMDiscriminantAnalysis(),
    "moment-constrained": MomentConstrainedDiscriminantAnalysis(),
    "implicitly constrained": ImplicitlyConstrainedDiscriminantAnalysis(),
    "contrastive pessimistic": ContrastivePessimisticDiscriminantAnalysis(),
    "SVM": L2SVMClassifier(),
    "switching": TransductiveSVMClassifier(),
    "annealing": TransductiveSVMClassifier(method="annealing"),
    "safe": SafeSVMClassifier(n_samples=4, random_state=0),
}
REGRESSOR = MetricModelSelection([("strong", Ridge(10.0)), ("weak", Ridge(1.0))])
# One of each kind: how labels are read is tested with all encodings where it is done.
KINDS_OF_LABELS = [
    "list of int",
    "float64",
    "str and None",
    "object bool None",
    "pandas Int64",
    "pandas category str",
    "polars int",
]
PREDICTIONS = (
    "predict",
    "decision_function",
    "predict_proba",
    "predict_log_proba",
)
EXPECTED_FAILURES = {
    "check_classifiers_classes": "uses the classes -1 and +1, which the default refuses to guess"
}
BINARY_FAILURES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "has three classes for everybody, in 1.6"
    for kind in ("dense", "sparse")
    if sklearn.__version__.startswith("1.6")
}
COPIES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "copies of a row are neighbours"
    for kind in ("dense", "sparse")
}
every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)


def make(n=90, d=3, n_labeled=24, seed=4):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    X = rng.normal(size=(n, d)) + 2.0 * rng.normal(size=(2, d))[truth]
    return X, HiddenLabels(np.where(np.arange(n) < n_labeled, truth, -1), truth)


def predictions(model, X):
    return {name: getattr(model, name)(X) for name in PREDICTIONS if hasattr(model, name)}


@parametrize_with_checks(
    [*CLASSIFIERS.values(), REGRESSOR],
    expected_failed_checks=lambda estimator: {
        **({} if estimator is REGRESSOR else EXPECTED_FAILURES),
        **({} if estimator.__sklearn_tags__().classifier_tags is None else BINARY_FAILURES),
        **(COPIES if isinstance(estimator, LaplacianLeastSquaresClassifier) else {}),
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every_classifier
def test_classes_minus_one_and_plus_one_where_the_marker_is_named(name):
    clf = clone(CLASSIFIERS[name]).set_params(missing_label=np.nan)
    check_classifiers_classes(type(clf).__name__, clf)


@cache
def fitted_to_codes(name):
    X = np.random.default_rng(3).normal(size=(30, 3)) + CODES[:, None]
    clf = clone(CLASSIFIERS[name]).fit(X, HiddenLabels(CODES, np.arange(30) % 2))
    return X, clf, predictions(clf, X)


@every_classifier
@pytest.mark.parametrize("kind", KINDS_OF_LABELS)
def test_same_fit_whatever_the_encoding_of_labels(name, kind):
    y, classes = ENCODINGS[kind]
    X, reference, expected = fitted_to_codes(name)
    named = [classes[code] for code in np.arange(30) % 2]
    clf = clone(CLASSIFIERS[name])
    clf.fit(X, HiddenLabels(y, named) if name == "oracle" else y)
    assert clf.classes_.tolist() == classes
    found = predictions(clf, X)
    assert found.keys() == expected.keys()
    assert found.pop("predict").tolist() == [classes[k] for k in expected["predict"]]
    for scores in found:
        np.testing.assert_array_equal(found[scores], expected[scores])
    if hasattr(clf, "labels_"):
        assert clf.labels_.dtype == clf.classes_.dtype
        assert clf.labels_.tolist() == [classes[k] for k in reference.labels_]


@every_classifier
def test_every_parameter_is_validated_and_documented_in_the_order_of_the_signature(name):
    kind = type(CLASSIFIERS[name])
    parameters = list(inspect.signature(kind).parameters)
    assert set(parameters) <= set(kind._parameter_constraints)
    section = inspect.getdoc(kind).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    assert re.findall(r"(?m)^(\w+) : ", section) == parameters


@every_classifier
def test_fit_changes_no_parameter_and_a_pickle_predicts_the_same(name):
    X, y = make()
    clf = clone(CLASSIFIERS[name])
    before = clf.get_params()
    assert clf.fit(X, y) is clf
    assert clf.get_params() == before
    assert repr(clone(clf)) == repr(CLASSIFIERS[name])
    loaded = pickle.loads(pickle.dumps(clf))
    assert vars(loaded).keys() == vars(clf).keys()
    for found, expected in zip(
        predictions(loaded, X).values(), predictions(clf, X).values(), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@every_classifier
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_give_the_same_fit_and_names_of_columns(name, frame):
    X, y = make()
    data = frame(dict(zip("abc", X.T, strict=True)))
    clf, reference = clone(CLASSIFIERS[name]).fit(data, y), clone(CLASSIFIERS[name]).fit(X, y)
    for model in (clf, getattr(clf, "supervised_", clf)):
        assert model.feature_names_in_.tolist() == list("abc")
        assert model.predict(data).shape == (90,)
    found, expected = predictions(clf, data), predictions(reference, X)
    for scores in expected:
        np.testing.assert_allclose(found[scores], expected[scores], rtol=1e-7, atol=1e-9)
    assert not hasattr(clf.fit(X, y), "feature_names_in_")


@every_classifier
def test_dask_tells_fits_to_different_rows_apart(name):
    tokenize = pytest.importorskip("dask.base").tokenize
    X, y = make()
    one, same, other = (clone(CLASSIFIERS[name]).fit(rows, y) for rows in (X, X, X + 0.1 * X**2))
    assert tokenize(one) == tokenize(same) != tokenize(other)


# Fits that do not come to an end


def spoiled(X, value):
    X = X.copy()
    X[0, 0] = value
    return X


BAD_FITS = {
    "NaN": ("contains NaN", lambda X, y: (spoiled(X, np.nan), y)),
    "infinity": ("contains infinity", lambda X, y: (spoiled(X, np.inf), y)),
    "strings": (
        "could not convert|arrays of bytes/strings",
        lambda X, y: (np.full(X.shape, "a"), y),
    ),
    "no labels": ("no labeled row", lambda X, y: (X, np.full(len(y), np.nan))),
    "one class": ("one class only", lambda X, y: (X, np.where(y == 0, "a", None))),
    "targets": ("continuous", lambda X, y: (X, X[:, 0])),
    "y too short": ("inconsistent numbers", lambda X, y: (X, y[:-1])),
    "ambiguous": ("which may be two classes", lambda X, y: (X, np.where(y == 0, -1, y))),
    "negative weight": ("Negative values", lambda X, y: (X, y, np.full(len(y), -1.0))),
    "weights of one class": ("of one class only", lambda X, y: (X, y, (y == 1).astype(float))),
}


def check_unfitted(clf, X):
    assert not [name for name in vars(clf) if name.endswith("_") and not name.startswith("_")]
    with pytest.raises(NotFittedError):
        clf.predict(X)


@cache
def fitted(name):
    return clone(CLASSIFIERS[name]).fit(*make())


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "oracle"])
@pytest.mark.parametrize("case", BAD_FITS)
def test_bad_input_is_explained_and_leaves_it_unfitted(name, case):
    message, change = BAD_FITS[case]
    X, y = make()
    given = change(X, y.y)
    if len(given) > 2 and not has_fit_parameter(CLASSIFIERS[name], "sample_weight"):
        pytest.skip("takes no weights")
    clf = deepcopy(fitted(name))
    with pytest.raises(ValueError, match=message):
        clf.fit(*given)
    check_unfitted(clf, X)


@pytest.mark.parametrize(
    "name", [name for name, clf in CLASSIFIERS.items() if "verbose" in clf.get_params()]
)
def test_interrupted_fit_leaves_it_unfitted(name):
    pytest.importorskip("sklearn.callback")
    X, y = make()
    clf = clone(CLASSIFIERS[name]).fit(X, y).set_callbacks(Callback(interrupt))
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    check_unfitted(clf, X)
