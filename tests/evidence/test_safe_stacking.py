"""Safe stacking: the step and its evidence, all kinds of candidates, and what it refuses."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from neverworse import (
    ICLSClassifier,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    SafeStackingClassifier,
    audit,
)
from neverworse.estimators import has_class_scores
from neverworse.evidence import default_candidates
from neverworse.methods import SelfLearningClassifier
from neverworse.tables import load_model, save_model

FEW = [("tree", DecisionTreeClassifier(max_depth=3, random_state=0)), ("bayes", GaussianNB())]


def quick(**settings):
    """Cheap candidates, and folds that do not depend on chance."""
    return SafeStackingClassifier(**({"candidates": FEW, "random_state": 0} | settings))


@parametrize_with_checks(
    [
        quick(missing_label=np.nan, cv=3, control_variate=True),
        SafeStackingClassifier(
            candidates=[("strong", LeastSquaresClassifier(10.0))], missing_label=np.nan, cv=3
        ),
    ],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "rows of weight 2 are one row in folds",
        "check_sample_weight_equivalence_on_sparse_data": "rows of weight 2 are one row in folds",
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make(n=400, n_labeled=80, n_classes=2, seed=0, noise=0.0):
    """Classes that no linear classifier can tell apart; labeled rows first."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    truth = (np.sum(X**2, axis=1) > 0.6).astype(int) + (n_classes == 3) * (X[:, 0] > 0.3)
    truth = np.where(rng.uniform(size=n) < noise, rng.integers(0, n_classes, n), truth)
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def brier(model, X, truth):
    errors = model.predict_proba(X) - (truth[:, None] == model.classes_)
    return np.mean(np.sum(errors**2, axis=1))


@pytest.mark.parametrize("combine", ["best", "joint"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_better_candidate_is_moved_to(n_classes, combine):
    X, y, truth = make(n_classes=n_classes)
    clf = quick(combine=combine).fit(X, y)
    assert clf.evidence_.chosen
    unlabeled = y == -1
    better, worse = (brier(m, X[unlabeled], truth[unlabeled]) for m in (clf, clf.baseline_))
    assert better < 0.8 * worse
    assert clf.evidence_.largest_change < 0


@pytest.mark.parametrize("combine", ["best", "joint"])
def test_zero_steps_are_the_baseline_itself(combine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    truth = (X[:, 0] + 0.3 * rng.normal(size=200) > 0).astype(int)
    y = np.where(np.arange(200) < 60, truth, -1)
    noise = DummyClassifier(strategy="uniform", random_state=0)
    clf = SafeStackingClassifier(candidates=[("noise", noise)], combine=combine).fit(X, y)
    assert clf.model_ is clf.baseline_
    assert clf.evidence_.steps.tolist() == [0.0]
    assert clf.evidence_.chosen == []
    assert clf.evidence_.largest_change == 0.0
    assert (clf.predict_proba(X) == LeastSquaresClassifierCV().fit(X, y).predict_proba(X)).all()
    assert clf.certificate_.worst_case == clf.certificate_.best_case == 0.0
    assert "The model is the baseline" in clf.evidence_.summary()


def test_predictions_are_the_moved_probabilities():
    X, y, _ = make(n_classes=3)
    clf = quick(combine="joint").fit(X, y)
    g = clf.baseline_.predict_proba(X)
    expected = g.copy()
    for step, model in zip(clf.evidence_.steps, clf.candidates_.values(), strict=True):
        expected += step * (model.predict_proba(X) - g)
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), expected.argmax(axis=1))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_evidence_equals_a_computation_by_hand(n_classes):
    """One candidate; folds given as a list; every mean written out."""
    X, y, truth = make(n=300, n_labeled=60, n_classes=n_classes, noise=0.2)
    folds = [np.arange(k, 60, 4) for k in range(4)]
    splits = [(np.setdiff1d(np.arange(60), fold), fold) for fold in folds]
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    clf = SafeStackingClassifier(LogisticRegression(), [("tree", tree)], cv=splits).fit(X, y)
    products, differences, squares = np.zeros(60), np.zeros(60), 0.0
    scale = 0.5 if n_classes == 2 else 1.0  # the Brier score of two classes is that of one
    for train, fold in splits:
        base = LogisticRegression().fit(X[train], truth[train])
        cand = clone(tree).fit(X[train], truth[train])
        g, c = base.predict_proba(X[fold]), cand.predict_proba(X[fold])
        target = np.eye(n_classes)[truth[fold]]
        products[fold] = scale * np.sum((c - g) * (target - g), axis=1)
        differences[fold] = scale * np.sum((c - target) ** 2 - (g - target) ** 2, axis=1)
        t = cand.predict_proba(X[60:]) - base.predict_proba(X[60:])
        squares += scale * np.mean(np.sum(t**2, axis=1)) / 4
    error = np.sqrt(products.var(ddof=1) * (1 / 60 + 1 / 240))
    low = products.mean() - 1.6710930 * error  # Student's distribution, 59 degrees of freedom
    found = clf.evidence_
    np.testing.assert_allclose(found.differences[:, 0], differences, atol=1e-12)
    np.testing.assert_allclose(found.estimates, products.mean())
    np.testing.assert_allclose(found.gram, [[squares]])
    np.testing.assert_allclose(found.lower_bounds, low, rtol=1e-6)
    np.testing.assert_allclose(found.steps, np.clip(low / squares, 0, 1), rtol=1e-6)


def test_control_variates_narrow_the_bounds():
    widths = {}
    X, y, _ = make()
    for control in (False, True):
        found = quick(control_variate=control, cv=4).fit(X, y).evidence_
        widths[control] = found.estimates - found.lower_bounds
        assert found.control_variate is control
    assert (widths[True] < widths[False]).all()


def test_certificate_is_the_audit_of_the_model_against_the_baseline():
    X, y, _ = make()
    clf = quick().fit(X, y)
    expected = audit(clf, clf.baseline_, X, y)
    assert clf.certificate_.worst_case == pytest.approx(expected.worst_case)
    assert clf.certificate_.best_case == pytest.approx(expected.best_case)
    assert not clf.certificate_.holds


@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_candidates_give_a_linear_model(n_classes):
    rng = np.random.default_rng(1)
    truth = np.arange(400) % n_classes
    X = rng.normal(size=(400, 5)) + rng.normal(size=(n_classes, 5))[truth]
    y = np.where(np.arange(400) < 100, truth, -1)
    baseline = LeastSquaresClassifier(1e4)  # so much penalty that anything is better
    candidates = [("loo", LeastSquaresClassifierCV()), ("icls", ICLSClassifier())]
    clf = SafeStackingClassifier(baseline, candidates, combine="joint").fit(X, y)
    assert clf.response_ == "score"
    assert clf.evidence_.steps.sum() > 0.5
    decision = X @ clf.coef_.T + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(X), decision.squeeze(), atol=1e-10)
    assert clf.certificate_.response == "score"
    proba = clf.predict_proba(X)
    assert proba.min() >= 0.0
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(
        clf.predict(X), (decision > 0).ravel() if n_classes == 2 else decision.argmax(axis=1)
    )
    probabilities = clone(clf).set_params(response="predict_proba").fit(X, y)
    assert not hasattr(probabilities, "coef_")
    assert not hasattr(probabilities, "decision_function")


def test_self_learning_keeps_the_model_linear():
    X, y, _ = make(n_labeled=60)
    candidates = [("self", SelfLearningClassifier(LeastSquaresClassifier()))]
    clf = SafeStackingClassifier(LeastSquaresClassifier(1e4), candidates).fit(X, y)
    assert clf.coef_.shape == (1, 2)


class Seen(ClassifierMixin, BaseEstimator):
    """Remembers how many rows it was fitted to."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.n_rows_, self.weights_ = len(y), sample_weight
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_supervised_candidates_get_labeled_rows_only():
    X, y, _ = make(n_labeled=30)
    clf = SafeStackingClassifier(candidates=[("seen", Seen())]).fit(X, y)
    assert clf.candidates_["seen"].n_rows_ == 30


@pytest.mark.parametrize(
    "candidate",
    [
        ICLSClassifier(),
        make_pipeline(StandardScaler(), ICLSClassifier()),
        SelfTrainingClassifier(GaussianNB()),
        make_pipeline(StandardScaler(), LabelSpreading(kernel="knn")),
        GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, cv=2),
    ],
)
@pytest.mark.parametrize("names", [["no", "yes"], [False, True], [-1, 1], [2.0, 7.0]], ids=str)
def test_candidates_of_all_kinds_take_labels_of_all_kinds(candidate, names):
    X, y, truth = make(n=150, n_labeled=50)
    labels = np.array(names, dtype=object)[truth]
    labels[y == -1] = None
    clf = SafeStackingClassifier(
        GaussianNB(), [("other", candidate)], cv=3, random_state=0, missing_label=None
    ).fit(X, labels)
    assert clf.classes_.tolist() == names
    assert set(clf.predict(X).tolist()) <= set(names)
    assert clf.candidates_["other"].predict_proba(X).shape == (150, 2)


def test_default_candidates():
    X, y, _ = make(n=150, n_labeled=40)
    clf = SafeStackingClassifier(random_state=0, cv=2).fit(X, y)
    expected = ["ICLS", "self-learning", "logistic regression", "random forest", "self-training"]
    expected += ["kernel least squares"]
    assert list(clf.candidates_) == clf.evidence_.names == expected
    assert isinstance(clf.baseline_, LeastSquaresClassifierCV)
    again = SafeStackingClassifier(random_state=0, cv=2).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    sparse_clf = SafeStackingClassifier(random_state=0, cv=2).fit(sparse.csr_array(X), y)
    assert sparse_clf.predict(sparse.csr_array(X)).shape == (150,)
    assert len(clf.candidates_["kernel least squares"].landmarks_) == 40
    assert dict(default_candidates(201, 0))["kernel least squares"].n_components == 50


def test_data_frames_keep_their_names():
    X, y, _ = make(n=150, n_labeled=40)
    frame = pd.DataFrame(X, columns=["a", "b"])
    clf = quick(cv=2).fit(frame, pd.Series(y))
    assert clf.feature_names_in_.tolist() == ["a", "b"]
    assert clf.predict(frame).shape == (150,)


def test_parameters_of_candidates_are_reached_by_name():
    clf = quick()
    assert clf.get_params()["tree__max_depth"] == 3
    clf.set_params(tree__max_depth=5, bayes=LogisticRegression())
    assert dict(clf.candidates)["tree"].max_depth == 5
    assert isinstance(dict(clf.candidates)["bayes"], LogisticRegression)
    assert SafeStackingClassifier(LeastSquaresClassifier()).get_params()["baseline__alpha"] == 0.0
    copied = clone(clf)
    assert dict(copied.candidates)["tree"] is not dict(clf.candidates)["tree"]


def test_rows_without_weight_are_as_good_as_absent():
    X, y, _ = make(n=200, n_labeled=60)
    weights = np.where(np.arange(200) % 5 == 0, 0.0, 1.0)
    with_zeros = quick().fit(X, y, sample_weight=weights)
    kept = weights > 0
    without = quick().fit(X[kept], y[kept], sample_weight=weights[kept])
    np.testing.assert_array_equal(with_zeros.predict_proba(X), without.predict_proba(X))


def test_weights_reach_candidates_and_evidence():
    X, y, _ = make(n=200, n_labeled=60, noise=0.2)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, 200)
    candidates = [("seen", Seen()), ("knn", KNeighborsClassifier())]  # the second takes none
    clf = SafeStackingClassifier(candidates=candidates).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(clf.candidates_["seen"].weights_, weights[:60])
    plain = SafeStackingClassifier(candidates=candidates).fit(X, y)
    assert not np.allclose(clf.evidence_.estimates, plain.evidence_.estimates)
    scaled = SafeStackingClassifier(LogisticRegression(), FEW, random_state=0)
    found = [scaled.fit(X, y, sample_weight=w).evidence_ for w in (None, np.ones(200))]
    np.testing.assert_allclose(found[0].lower_bounds, found[1].lower_bounds)


def test_without_unlabeled_rows_it_is_about_new_ones():
    X, _, truth = make(n=100)
    clf = quick(control_variate=True).fit(X, truth)
    assert clf.evidence_.n_unlabeled == 0
    assert not clf.evidence_.control_variate
    assert "new rows from the same distribution" in clf.evidence_.statement


def test_repeated_folds_are_averaged():
    X, y, _ = make(n=200, n_labeled=60)
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    assert quick(cv=cv).fit(X, y).evidence_.differences.shape == (60, 2)


def test_a_fitted_model_can_be_stored():
    X, y, _ = make()
    clf = quick().fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert "probability 0.95" in again.evidence_.summary()
    vars(again.evidence_)["largest_change"] = -3e-5
    assert "by at least 3e-5 (bound)" in again.evidence_.summary()  # as Windows can print it


def test_steps_of_other_settings_follow_from_the_same_folds():
    X, y, _ = make(noise=0.1)
    for settings in ({"combine": "best"}, {"control_variate": True}, {"level": 0.99}):
        same = dataclasses.replace(quick().fit(X, y).evidence_, **settings)
        expected = quick(**settings).fit(X, y).evidence_
        np.testing.assert_array_equal(same.steps, expected.steps)
        assert same.summary() == expected.summary()


def test_a_moved_model_comes_back_from_a_model_file(tmp_path):
    X, y, _ = make(n=200)
    candidates = [("loo", LeastSquaresClassifierCV())]
    X[:, 0] += np.where(y == 1, 1.0, 0.0)
    clf = SafeStackingClassifier(LeastSquaresClassifier(1e4), candidates).fit(X, y)
    assert clf.evidence_.chosen == ["loo"]
    save_model(clf, tmp_path / "model", facts={})
    again = load_model(tmp_path / "model").model
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.evidence_.summary() == clf.evidence_.summary()


@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        (
            [("svm", LinearSVC())],
            "classifier with predict_proba.*CalibratedClassifierCV",
        ),
        ([("svc", SVC())], r"not a classifier with predict_proba.*: SVC\(\)"),
        ([("class", GaussianNB)], "is not a classifier.*GaussianNB.*Pass an instance"),
        ([("number", 3)], "'number' is not a classifier.*: 3. Pass"),
        ([], "at least one"),
        ([GaussianNB()], r"list of \(name, classifier\)"),
        ([("a", GaussianNB()), ("a", GaussianNB())], "unique names"),
    ],
)
def test_candidates_that_will_not_do_are_refused(candidates, words):
    X, y, _ = make()
    with pytest.raises(ValueError, match=words):
        SafeStackingClassifier(candidates=candidates).fit(X, y)


class OtherClasses(Seen):
    """Claims a class more than there are."""

    def fit(self, X, y):
        super().fit(X, y)
        self.classes_ = np.append(self.classes_, 99)
        return self


def test_candidates_with_other_classes_are_refused():
    X, y, _ = make()
    with pytest.raises(ValueError, match=r"candidate 'other' .* has the classes \[0, 1, 99\],"):
        SafeStackingClassifier(candidates=[("other", OtherClasses())]).fit(X, y)


class NeedsMany(Seen):
    """Refuses to be fitted to fewer than 40 rows."""

    def fit(self, X, y):
        if len(y) < 40:
            raise ValueError("too few rows for me")
        return super().fit(X, y)


def test_a_candidate_that_cannot_be_fitted_without_a_fold_is_named_with_it():
    X, y, _ = make(n_labeled=40)
    with pytest.raises(ValueError, match="too few rows") as raised:
        SafeStackingClassifier(candidates=[("many", NeedsMany())]).fit(X, y)
    assert "candidate 'many' (NeedsMany) was fitted to 32 labels" in raised.value.__notes__[0]


@pytest.mark.parametrize("cv", [[], [(np.arange(40), np.empty(0, int))]])
def test_folds_without_rows_to_test_on_are_refused(cv):
    X, y, _ = make(n_labeled=40)
    with pytest.raises(ValueError, match="has no fold with labeled rows to test on"):
        quick(cv=cv).fit(X, y)


def test_few_labels_are_refused_with_another_way():
    X, y, _ = make(n_labeled=9)
    with pytest.raises(ValueError, match=r"at least 10.*SequentialAudit"):
        quick().fit(X, y)


def test_a_class_with_one_label_is_refused():
    X, y, _ = make(n_labeled=30)
    y[:30] = np.where(np.arange(30) == 4, 1, 0)
    with pytest.raises(ValueError, match="labels of one class only") as raised:
        quick().fit(X, y)
    assert "fits have fewer labels" in raised.value.__notes__[0]
    y[:20] = np.where(np.arange(20) % 2, 2, y[:20])
    with pytest.raises(ValueError, match=r"has the classes \[0, 2\].*more rows of that class"):
        quick(baseline=GaussianNB()).fit(X, y)


@pytest.mark.parametrize("level", [0.0, 0.4, 1.0, 95])
def test_levels_have_to_be_probabilities_of_a_half_or_more(level):
    X, y, _ = make()
    with pytest.raises(ValueError, match="level"):
        quick(level=level).fit(X, y)


def test_rows_that_no_fold_tests_are_left_out_of_the_evidence():
    X, y, _ = make()
    cv = ShuffleSplit(1, test_size=30, random_state=0)
    clf = quick(cv=cv).fit(X, y, sample_weight=np.linspace(1.0, 2.0, len(y)))
    assert clf.evidence_.n_labeled == len(clf.evidence_.weights) == 30
    assert np.isfinite(clf.evidence_.differences).all()
    twice = quick(cv=[*cv.split(X[:80]), *cv.split(X[:80])]).fit(X, y).evidence_
    np.testing.assert_allclose(twice.gram, quick(cv=cv).fit(X, y).evidence_.gram)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_dask_collections_are_refused_with_the_fix(kind):
    X, y, _ = make(n=60, n_labeled=20)
    if kind == "array":
        lazy = pytest.importorskip("dask.array").from_array(X, chunks=(20, -1))
    else:
        lazy = pytest.importorskip("dask.dataframe").from_pandas(pd.DataFrame(X), npartitions=2)
    with pytest.raises(TypeError, match=r"all rows in memory.*X\.compute\(\)"):
        quick().fit(lazy, y)
    quick().fit(lazy.compute(), y)


def test_a_failed_fit_leaves_it_unfitted():
    X, y, _ = make()
    clf = quick().fit(X, y)
    with pytest.raises(ValueError, match="at least 10"):
        clf.fit(
            X[:20], np.r_[y[:5], np.full(15, -1)] if len(set(y[:5])) > 1 else [0, 1, *[-1] * 18]
        )
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_useless_candidates_rarely_make_it_worse():
    """400 runs each, also with 100 labels: `python benchmarks/evidence.py useless`."""
    worse = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 300)
        X = rng.normal(size=(300, 6))
        X[:, 0] += 1.5 * truth
        y = np.where(np.arange(300) < 40, truth, -1)
        candidates = [
            ("noise", DummyClassifier(strategy="uniform", random_state=seed)),
            ("penalised", LeastSquaresClassifier(1e3)),
            ("neighbours", KNeighborsClassifier(3)),
        ]
        clf = SafeStackingClassifier(candidates=candidates, random_state=seed).fit(X, y)
        unlabeled = slice(40, None)
        losses = [
            brier_score_loss(truth[unlabeled], m.predict_proba(X[unlabeled])[:, 1])
            for m in (clf, clf.baseline_)
        ]
        worse += losses[0] > losses[1]
    assert worse <= 4  # more have a probability of 1 % at the limit of 5 %


def test_steps_of_a_model_that_has_moved_are_not_those_of_a_pipeline():
    X, y, _ = make()
    clf = quick().fit(X, y)
    assert clf.model_.steps
    assert not has_class_scores(clf.model_)
