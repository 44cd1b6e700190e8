"""Choice among models by distances: by hand, where it helps, and where it harms."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils._param_validation import InvalidParameterError

from neverworse import LeastSquaresClassifier, audit
from neverworse.methods import L2SVMClassifier, MetricModelSelection
from neverworse.model_selection import LabeledKFold
from tests.estimators.callbacks import Callback

CLASSIFIERS = [("strong", LogisticRegression(C=0.01)), ("weak", LogisticRegression(C=1.0))]
REGRESSORS = [("strong", Ridge(100.0)), ("weak", Ridge(0.1))]


def make(n_classes=2, n=120, d=4, n_labeled=24, seed=0):
    """Labeled rows first, of all classes in turn."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[truth]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def polynomials(*degrees):
    return [(str(k), make_pipeline(PolynomialFeatures(k), LinearRegression())) for k in degrees]


class Slope(RegressorMixin, BaseEstimator):
    """A line through the origin that learns nothing."""

    def __init__(self, slope=1.0):
        self.slope = slope

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return self.slope * np.asarray(X)[:, 0]


# Distances and choices by hand


def test_three_lines_with_known_distances():
    X = np.array([[1.0]] * 4 + [[2.0]] * 6)
    y = np.r_[np.ones(4), np.full(6, np.nan)]
    lines = [("flat", Slope(0.0)), ("right", Slope(1.0)), ("steep", Slope(3.0))]
    adj = MetricModelSelection(lines).fit(X, y)
    np.testing.assert_array_equal(adj.target_distances_, [1, 0, 2])
    np.testing.assert_array_equal(adj.labeled_distances_, [[0, 1, 3], [1, 0, 2], [3, 2, 0]])
    np.testing.assert_array_equal(adj.unlabeled_distances_, 2 * adj.labeled_distances_)
    np.testing.assert_array_equal(adj.adjusted_distances_, [1, 0, 4])
    assert (adj.best_name_, adj.best_index_) == ("right", 1)
    assert adj.best_estimator_ is adj.estimators_[1]
    # From the flat line, both others are farther than the targets would allow.
    tri = MetricModelSelection(lines, method="tri").fit(X, y)
    np.testing.assert_array_equal(tri.consistent_, [True, False, False])
    assert tri.best_name_ == "flat"
    # The order matters: in this one, the right line is the only one that is not in question.
    tri = MetricModelSelection(lines[::-1], method="tri").fit(X, y)
    np.testing.assert_array_equal(tri.consistent_, [True, False, False])
    assert tri.best_name_ == "steep"


def test_hypotheses_that_only_unlabeled_rows_tell_apart():
    X, y = np.array([[0.0]] * 3 + [[1.0]] * 3), np.r_[np.ones(3), np.full(3, np.nan)]
    lines = [("flat", Slope(0.0)), ("same", Slope(0.0)), ("steep", Slope(1.0))]
    reg = MetricModelSelection(lines).fit(X, y)
    np.testing.assert_array_equal(reg.adjusted_distances_, [1.0, 1.0, np.inf])
    assert reg.best_name_ == "flat"  # the simpler one of two that are alike


def ratio(a, b):
    return a / b if b else np.inf if a else 1.0


def brute_force(predictions, truth, unlabeled, distance):
    """Chosen positions, by loops over the definitions."""
    n = len(predictions)
    target = [distance(p[~unlabeled], truth[~unlabeled]) for p in predictions]
    adjusted, consistent = [], []
    for i in range(n):
        ratios = [
            ratio(
                distance(predictions[k][unlabeled], predictions[i][unlabeled]),
                distance(predictions[k][~unlabeled], predictions[i][~unlabeled]),
            )
            for k in range(i)
        ]
        adjusted.append(target[i] * max(ratios, default=1.0))
        consistent.append(
            all(
                distance(predictions[k][unlabeled], predictions[i][unlabeled])
                <= target[k] + target[i]
                for k in range(i)
            )
        )
    return adjusted, consistent


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_definitions_for_classifiers(kind, n_classes):
    X, y, _ = make(n_classes, n_labeled=40, seed=3)
    candidates = [(f"C={C:.0e}", kind(C=C)) for C in (1e-3, 1e-2, 1e-1, 1, 10)]
    clf = MetricModelSelection(candidates).fit(X, y)
    if kind is LogisticRegression:
        said = [e.predict_proba(X) for e in clf.estimators_]
        truth = np.eye(n_classes)[y]

        def measure(p, q):
            return np.sqrt(0.5 * np.mean(np.sum((p - q) ** 2, axis=1)))
    else:
        said = [e.predict(X) for e in clf.estimators_]
        truth = y

        def measure(p, q):
            return np.mean(p != q)

    adjusted, consistent = brute_force(said, truth, y < 0, measure)
    np.testing.assert_allclose(clf.adjusted_distances_, adjusted, rtol=1e-10)
    np.testing.assert_array_equal(clf.consistent_, consistent)
    assert clf.best_index_ == np.argmin(adjusted)
    assert len(set(np.round(adjusted, 6))) > 2


@pytest.mark.parametrize("seed", range(5))
def test_definitions_for_regressors(seed):
    X, y = curve(seed)[:2]
    adj = MetricModelSelection(polynomials(*range(8))).fit(X, y)
    said = [e.predict(X) for e in adj.estimators_]
    adjusted, consistent = brute_force(
        said, y, np.isnan(y), lambda p, q: np.sqrt(np.mean((p - q) ** 2))
    )
    np.testing.assert_allclose(adj.adjusted_distances_, adjusted, rtol=1e-10)
    np.testing.assert_array_equal(adj.consistent_, consistent)
    assert adj.best_index_ == np.argmin(adjusted)
    tri = MetricModelSelection(polynomials(*range(8)), method="tri").fit(X, y)
    assert tri.best_index_ == max(np.flatnonzero(consistent))
    np.testing.assert_array_equal(tri.predict(X), tri.estimators_[tri.best_index_].predict(X))


@pytest.mark.parametrize("method", ["adj", "tri"])
def test_candidates_are_fitted_to_the_labeled_rows(method):
    X, y, _ = make()
    clf = MetricModelSelection(CLASSIFIERS, method=method).fit(X, y)
    for fitted, (_, candidate) in zip(clf.estimators_, CLASSIFIERS, strict=True):
        expected = clone(candidate).fit(X[:24], y[:24])
        np.testing.assert_array_equal(fitted.coef_, expected.coef_)
        assert not hasattr(candidate, "coef_")


# Its supervised counterpart


def test_no_unlabeled_rows():
    X, y = curve(0)[:2]
    X, y = X[:20], y[:20]
    reg = MetricModelSelection(polynomials(*range(8))).fit(X, y)
    np.testing.assert_allclose(reg.adjusted_distances_, reg.target_distances_)
    assert reg.best_index_ == 7
    assert reg.best_estimator_ is reg.supervised_
    tri = MetricModelSelection(polynomials(*range(8)), method="tri").fit(X, y)
    assert tri.consistent_.all()
    assert tri.best_index_ == 7


def test_interpolating_candidates_deceive_the_adjustment_but_not_the_triangle_inequality():
    X, y = curve(1)[:2]
    neighbours = [(f"k={k}", KNeighborsRegressor(k)) for k in (15, 5, 1)]
    assert MetricModelSelection(neighbours).fit(X, y).best_name_ == "k=1"
    steps = [("mean", KNeighborsRegressor(20)), ("one", make_pipeline(_Spikes()))]
    noise = np.random.default_rng(0).normal(size=len(y))
    y = np.where(np.isnan(y), np.nan, noise)
    assert MetricModelSelection(steps, method="tri").fit(X, y).best_name_ == "mean"
    assert MetricModelSelection(steps, method="adj").fit(X, y).best_name_ == "one"


class _Spikes(RegressorMixin, BaseEstimator):
    """Right where it has been fitted, and far off everywhere else."""

    def fit(self, X, y):
        self.known_ = dict(zip(np.ravel(X).tolist(), y, strict=True))
        return self

    def predict(self, X):
        return np.array([self.known_.get(x, 100.0) for x in np.ravel(X).tolist()])


# Where its assumption holds, and where it does not


def curve(seed, n=220, n_labeled=20):
    """A cubic with noise, on a uniform sample."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 1))
    y = X[:, 0] ** 3 - X[:, 0] + 0.05 * rng.normal(size=n)
    y[n_labeled:] = np.nan
    return X, y, rng.uniform(-1, 1, (2000, 1))


def errors(reg, T, truth):
    return np.array([np.sqrt(np.mean((e.predict(T) - truth) ** 2)) for e in reg.estimators_])


def test_degree_of_a_polynomial():
    """The experiment of Schuurmans and Southey: polynomials on few points."""
    found = []
    for seed in range(10):
        X, y, T = curve(seed)
        reg = MetricModelSelection(polynomials(*range(13))).fit(X, y)
        error = errors(reg, T, T[:, 0] ** 3 - T[:, 0])
        assert np.argmin(reg.target_distances_) == 12
        assert reg.supervised_ is reg.estimators_[12]
        assert 2 <= reg.best_index_ <= 7
        tri = int(np.flatnonzero(reg.consistent_)[-1])
        found.append([error[reg.best_index_], error[tri], error[12], error.min()])
    adj, tri, training, best = np.median(found, axis=0)
    assert adj < 1.6 * best
    assert adj < training / 3
    assert tri < training / 2


def test_unlabeled_rows_from_elsewhere_mislead():
    """Waves, but unlabeled rows where they can hardly be seen: simple models look best."""
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (220, 1))
        y = np.sin(np.pi * X[:, 0]) ** 2 + 0.05 * rng.normal(size=220)
        y[20:] = np.nan
        T = rng.uniform(-1, 1, (2000, 1))
        truth = np.sin(np.pi * T[:, 0]) ** 2
        reg = MetricModelSelection(polynomials(*range(9))).fit(X, y)
        error = errors(reg, T, truth)
        X[20:] *= 0.1
        misled = MetricModelSelection(polynomials(*range(9))).fit(X, y)
        supervised = error[np.argmin(reg.target_distances_)]
        found.append([error[reg.best_index_], error[misled.best_index_], supervised])
    adj, misled, supervised = np.median(found, axis=0)
    assert misled > 2 * adj
    assert misled > 2 * supervised


def test_smoothness_of_a_classifier():
    """Noisy labels: the training error prefers the weakest penalty."""
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1000, 12))
        truth = (X[:, 0] + rng.normal(size=1000) > 0).astype(int)
        y = np.where(np.arange(1000) < 60, truth, -1)
        candidates = [(f"{C:.0e}", LogisticRegression(C=C)) for C in 10.0 ** np.arange(-3, 4)]
        clf = MetricModelSelection(candidates).fit(X, y)
        assert np.argmin(clf.target_distances_) >= 4
        found.append([brier(e, X, truth) for e in (clf, clf.supervised_)])
    chosen, supervised = np.mean(found, axis=0)
    assert chosen < 0.95 * supervised


def brier(clf, X, truth):
    return np.mean((clf.predict_proba(X)[:, 1] - truth) ** 2)


# Row weights


def test_weight_zero_is_as_good_as_absent():
    X, y, _ = make()
    s = np.linspace(0.5, 3.0, len(y))
    s[[0, 1, 30, 31]] = 0.0
    X[s == 0.0] *= 1e3
    clf = MetricModelSelection(CLASSIFIERS).fit(X, y, s)
    kept = s > 0.0
    reference = MetricModelSelection(CLASSIFIERS).fit(X[kept], y[kept], s[kept])
    np.testing.assert_allclose(clf.adjusted_distances_, reference.adjusted_distances_, rtol=1e-3)
    plain = MetricModelSelection(CLASSIFIERS).fit(X[kept], y[kept])
    assert not np.allclose(clf.adjusted_distances_, plain.adjusted_distances_, rtol=1e-3)


def test_weights_count_as_copies():
    X, y = curve(0)[:2]
    s = np.random.default_rng(1).integers(1, 4, len(y))
    models = [(str(a), Ridge(a)) for a in (10.0, 1.0, 0.1)]
    weighted = MetricModelSelection(models).fit(X, y, s)
    copied = MetricModelSelection(models).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    np.testing.assert_allclose(weighted.adjusted_distances_, copied.adjusted_distances_)
    np.testing.assert_allclose(weighted.unlabeled_distances_, copied.unlabeled_distances_)


def test_weights_that_a_candidate_does_not_take():
    X, y, _ = make()
    neighbours = MetricModelSelection([("five", KNeighborsClassifier())])
    with pytest.raises(ValueError, match="KNeighborsClassifier does not take it"):
        neighbours.fit(X, y, np.ones(len(y)))
    neighbours.fit(X, y)


def test_weights_are_routed():
    X, y, _ = make()
    s = np.linspace(0.1, 3.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        clf = MetricModelSelection(CLASSIFIERS).set_fit_request(sample_weight=True)
        scaler = StandardScaler(with_mean=False, with_std=False).set_fit_request(
            sample_weight=False
        )
        pipeline = make_pipeline(scaler, clf).fit(X, y, sample_weight=s)
    expected = MetricModelSelection(CLASSIFIERS).fit(X, y, s)
    np.testing.assert_allclose(pipeline[-1].adjusted_distances_, expected.adjusted_distances_)


# Labels and data of all kinds


MINUS_ONE = -1.0  # a target, unless it is said to be none


def test_minus_one_stays_a_class_for_candidates_that_would_take_it_for_a_marker():
    X, y, _ = make(n_classes=3)
    names = np.array([-1, 1, 2])
    candidates = [("ls", LeastSquaresClassifier()), ("svm", L2SVMClassifier())]
    reference = MetricModelSelection(candidates).fit(X, y)
    clf = MetricModelSelection(candidates, missing_label=0).fit(X, np.where(y < 0, 0, names[y]))
    assert [e.classes_.tolist() for e in clf.estimators_] == [[-1, 1, 2]] * 2
    np.testing.assert_array_equal(clf.predict(X), names[reference.predict(X)])
    np.testing.assert_array_equal(clf.unlabeled_distances_, reference.unlabeled_distances_)


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA, MINUS_ONE])
def test_missing_targets(missing):
    X, y = curve(2)[:2]
    reference = MetricModelSelection(REGRESSORS).fit(X, y)
    marked = np.where(np.isnan(y), 0, y).astype(object)
    marked[np.isnan(y)] = missing
    mark = -1.0 if missing is MINUS_ONE else "auto"
    reg = MetricModelSelection(REGRESSORS, missing_label=mark).fit(X, marked)
    np.testing.assert_array_equal(reg.adjusted_distances_, reference.adjusted_distances_)


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, pd.DataFrame])
def test_containers(container):
    X, y, _ = make()
    data = container(X) if container is not pd.DataFrame else container(X, columns=list("abcd"))
    clf = MetricModelSelection(CLASSIFIERS).fit(data, y)
    reference = MetricModelSelection(CLASSIFIERS).fit(X, y)
    np.testing.assert_allclose(clf.adjusted_distances_, reference.adjusted_distances_, rtol=1e-4)
    if container is pd.DataFrame:
        assert clf.feature_names_in_.tolist() == list("abcd")
    assert clf.n_features_in_ == 4


def test_polars():
    X, y, _ = make()
    data = pl.DataFrame(dict(zip("abcd", X.T, strict=True)))
    clf = MetricModelSelection(CLASSIFIERS).fit(data, pl.Series(y))
    assert clf.feature_names_in_.tolist() == list("abcd")
    assert clf.predict(data).shape == (120,)


def test_texts():
    texts = ["good good", "fine good", "bad", "bad awful", "good", "awful bad", "fine", "bad fine"]
    y = ["+", "+", "-", "-", None, None, None, None]
    models = [
        (f"C={C}", make_pipeline(CountVectorizer(), LogisticRegression(C=C))) for C in (0.1, 1)
    ]
    clf = MetricModelSelection(models).fit(texts, y)
    assert clf.predict(["good fine", "awful"]).tolist() == ["+", "-"]
    assert clf.best_name_ in ("C=0.1", "C=1")


# Use with scikit-learn


def test_it_is_what_its_candidates_are():
    assert is_classifier(MetricModelSelection(CLASSIFIERS))
    assert is_regressor(MetricModelSelection(REGRESSORS))
    assert is_regressor(MetricModelSelection(polynomials(1, 2)))
    assert hasattr(MetricModelSelection(CLASSIFIERS), "predict_proba")
    machines = MetricModelSelection([("svc", LinearSVC())])
    assert not hasattr(machines, "predict_proba")
    assert hasattr(machines, "decision_function")
    assert not hasattr(MetricModelSelection(REGRESSORS), "decision_function")
    X, y, truth = make()
    machines.fit(X, y)
    assert not hasattr(machines, "predict_proba")
    np.testing.assert_array_equal(machines.decision_function(X) > 0, machines.predict(X) == 1)
    assert machines.score(X, truth) == accuracy_score(truth, machines.predict(X))
    s = np.linspace(0, 1, len(y))
    expected = accuracy_score(truth, machines.predict(X), sample_weight=s)
    assert machines.score(X, truth, sample_weight=s) == pytest.approx(expected)


def test_parameters_of_candidates():
    clf = MetricModelSelection(CLASSIFIERS, method="tri")
    assert clf.get_params()["weak__C"] == 1.0
    copied = clone(clf)
    assert copied.get_params(deep=False)["method"] == "tri"
    copied.set_params(weak__C=7.0, strong=LogisticRegression(C=3.0))
    assert [e.C for _, e in copied.estimators] == [3.0, 7.0]
    assert clf.get_params()["weak__C"] == 1.0


def test_search_for_the_method():
    X, y, truth = make(n=200, n_labeled=40)
    pipeline = make_pipeline(StandardScaler(), MetricModelSelection(CLASSIFIERS))
    grid = {"metricmodelselection__method": ["adj", "tri"]}
    search = GridSearchCV(pipeline, grid, cv=LabeledKFold(4)).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.score(X, truth) > 0.7


def test_audit_of_the_choice():
    X, y, truth = make(n=300, n_labeled=30)
    clf = MetricModelSelection(CLASSIFIERS).fit(X, y)
    found = audit(clf, clf.supervised_, X, y)
    known = audit(clf, clf.supervised_, X, truth)
    assert found.best_case <= known.best_case <= known.worst_case <= found.worst_case


# Progress, and fits that do not come to an end


def test_verbose_writes_a_line_for_every_candidate(capsys):
    X, y, _ = make()
    MetricModelSelection(CLASSIFIERS, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "candidate 'strong' (24 rows)" in lines[0]


def test_callback_may_stop_it():
    pytest.importorskip("sklearn.callback")
    X, y, _ = make()
    stop = Callback(lambda stage: stage == "candidate 'strong'")
    clf = MetricModelSelection(CLASSIFIERS).set_callbacks(stop).fit(X, y)
    assert clf.best_name_ == "strong"
    assert len(clf.estimators_) == 1


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        (np.full(220, np.nan), None, "no target at all"),
        (np.full(220, np.inf), None, "infinity"),
        (np.where(np.arange(220) < 20, "a", None), None, "not numbers"),
        (None, None, "y is None"),
        (np.where(np.arange(220) < 20, 1.0, np.nan), np.arange(220) >= 20, "zero for all rows"),
    ],
)
def test_bad_targets(y, weights, message):
    with pytest.raises(ValueError, match=message):
        MetricModelSelection(REGRESSORS).fit(curve(0)[0], y, weights)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"estimators": []}, "non-empty list"),
        ({"estimators": [LogisticRegression()]}, "list of .name, estimator."),
        ({"estimators": [("a", LogisticRegression()), ("a", LinearSVC())]}, "not unique"),
        ({"estimators": [("a__b", LogisticRegression())]}, "must not contain __"),
        ({"estimators": [*CLASSIFIERS, ("r", Ridge())]}, "all classifiers, or all regressors"),
        ({"estimators": [("scale", StandardScaler())]}, "'scale': neither"),
    ],
)
def test_candidates_that_cannot_be_used(parameters, message):
    X, y, _ = make()
    with pytest.raises(ValueError, match=message):
        MetricModelSelection(**parameters).fit(X, y)


@pytest.mark.parametrize(("name", "value"), [("method", "best"), ("estimators", 3)])
def test_parameters_out_of_range(name, value):
    X, y, _ = make()
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter"):
        MetricModelSelection(**{"estimators": CLASSIFIERS, name: value}).fit(X, y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_candidate_that_predicts_no_number(value):
    X, y = curve(0)[:2]
    lines = [("flat", Slope(0.0)), ("broken", Slope(value))]
    with pytest.raises(ValueError, match=r"'broken' gives predict.*finite"):
        MetricModelSelection(lines).fit(X, y)


def test_candidate_with_several_targets():
    X, y = curve(0)[:2]

    class Two(Slope):
        def predict(self, X):
            return np.asarray(X)[:, [0, 0]]

    with pytest.raises(ValueError, match=r"'two' gives predict of shape \(220, 2\)"):
        MetricModelSelection([("two", Two())]).fit(X, y)
