"""Self-learning: what it converges to, how, and where that helps and hurts."""

import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils._param_validation import InvalidParameterError

from neverworse import LeastSquaresClassifier, audit
from neverworse.estimators import LabeledRows
from neverworse.methods import L2SVMClassifier, SelfLearningClassifier
from neverworse.model_selection import LabeledKFold
from neverworse.rows import DenseRows
from tests.problems import KINDS, make_problem


class Refitted(LeastSquaresClassifier):
    """The same classifier, which self-learning does not know and so fits anew every time."""


def make(n_classes=2, n=150, d=5, n_labeled=16, seed=0, distance=1.2):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + distance * rng.normal(size=(n_classes, d))[truth]
    labeled = np.r_[np.arange(n_classes), n_classes + rng.permutation(n - n_classes)]
    y = truth.copy()
    y[labeled[n_labeled:]] = -1
    return X, y, truth


def run(max_iter, X, y, weights=None, estimator=None):
    """Self-learning stopped after so many retrainings, converged or not."""
    clf = SelfLearningClassifier(estimator, max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clf.fit(X, y, weights)


def one_hot(codes, n_classes):
    return codes.astype(float) if n_classes == 2 else np.eye(n_classes)[codes]


def loss(model, X, labels, weights=None):
    """What self-learning of least squares minimises, over weights and labels."""
    target = one_hot(labels, len(model.classes_))
    errors = (model.decision_function(X) + 0.5 - target) ** 2
    errors = errors if errors.ndim == 1 else errors.sum(axis=1)
    s = np.ones(len(X)) if weights is None else weights
    return s @ errors + model.alpha * np.sum(model.coef_**2)


def completed(clf, y):
    labels = y.copy()
    labels[y == -1] = clf.labels_
    return labels


# What it converges to


def test_labels_that_can_be_worked_out_by_hand():
    # Fitted to 0 -> 0 and 10 -> 1, the boundary is at 5. Retrained on all rows, it stays between 2
    # and 7, where no row is: all labels agree after one retraining.
    X = np.array([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0], [10.0]])
    clf = SelfLearningClassifier().fit(X, [0, -1, -1, -1, -1, -1, 1])
    assert clf.labels_.tolist() == [0, 0, 1, 1, 1]
    assert (clf.n_iter_, clf.stop_reason_, clf.cycle_length_) == (1, "converged", 1)
    # The mean of x is 37/7, of y 4/7; sum of squares 724/7; of products 90/7.
    assert clf.estimator_.coef_[0, 0] == pytest.approx(90 / 724, rel=1e-12)
    intercept = 4 / 7 - 90 / 724 * 37 / 7
    assert clf.estimator_.intercept_[0] + 0.5 == pytest.approx(intercept, rel=1e-12)
    assert clf.supervised_.coef_[0, 0] == pytest.approx(0.1, rel=1e-12)


def test_boundary_that_moves_from_row_to_row():
    # The labeled rows at 1 and 4 put the boundary at 2.5. The row at 20 makes the line flatter, and
    # the boundary moves beyond the row at 3, and then beyond the one at 6.
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [6.0], [20.0]])
    y = np.array([-1, 0, -1, -1, 1, -1, -1])
    paths = [run(k, X, y).labels_.tolist() for k in (1, 2, 3, 4)]
    assert paths == [[0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1]]
    clf = SelfLearningClassifier().fit(X, y)
    assert clf.n_iter_ == 3
    # Seven rows with sums 36 of x, 466 of its squares, 2 of y and 24 of products.
    slope = (7 * 24 - 36 * 2) / (7 * 466 - 36**2)
    assert clf.estimator_.coef_[0, 0] == pytest.approx(slope, rel=1e-12)
    assert clf.estimator_.intercept_[0] + 0.5 == pytest.approx((2 - 36 * slope) / 7, rel=1e-12)


def straightforward(X, y, n_classes):
    """Self-learning of least squares in a few lines, without anything from the package."""
    E, unlabeled = np.c_[X, np.ones(len(X))], y == -1

    def fit(rows, labels):
        return np.linalg.lstsq(E[rows], one_hot(labels, n_classes), rcond=None)[0]

    def predict(w):
        scores = E[unlabeled] @ w
        return (scores > 0.5).astype(int) if n_classes == 2 else scores.argmax(axis=1)

    w, labels, n_iter = fit(~unlabeled, y[~unlabeled]), y.copy(), 0
    while not np.array_equal(predict(w), labels[unlabeled]):
        labels[unlabeled] = predict(w)
        w, n_iter = fit(slice(None), labels), n_iter + 1
    return w, labels[unlabeled], n_iter


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("seed", range(5))
def test_against_a_straightforward_version(n_classes, seed):
    X, y, _ = make(n_classes, n_labeled=30, seed=seed)
    w, labels, n_iter = straightforward(X, y, n_classes)
    for estimator in (None, Refitted()):
        clf = SelfLearningClassifier(estimator).fit(X, y)
        np.testing.assert_array_equal(clf.labels_, labels)
        assert clf.n_iter_ == n_iter
        np.testing.assert_allclose(clf.estimator_.coef_, np.atleast_2d(w[:-1].T), atol=1e-12)
        np.testing.assert_allclose(clf.estimator_.intercept_ + 0.5, w[-1], atol=1e-12)


@pytest.mark.parametrize(
    "estimator",
    [
        None,
        LeastSquaresClassifier(2.0),
        GaussianNB(),
        DecisionTreeClassifier(max_depth=2, random_state=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_at_convergence_labels_and_classifier_agree(estimator, n_classes):
    X, y, _ = make(n_classes, n_labeled=24)
    clf = SelfLearningClassifier(estimator).fit(X, y)
    labels = completed(clf, y)
    template = LeastSquaresClassifier() if estimator is None else estimator
    fitted_to_labels = clone(template).fit(X, labels)
    supervised = clone(template).fit(X[y >= 0], y[y >= 0])
    assert clf.stop_reason_ == "converged"
    np.testing.assert_array_equal(clf.labels_, clf.predict(X[y == -1]))
    np.testing.assert_allclose(clf.predict_proba(X), fitted_to_labels.predict_proba(X), atol=1e-10)
    np.testing.assert_array_equal(clf.estimator_.predict(X), clf.predict(X))
    np.testing.assert_allclose(
        clf.supervised_.predict_proba(X), supervised.predict_proba(X), atol=1e-10
    )


# Least squares: descent


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("options", [{}, {"alpha": 5.0}, {"fit_intercept": False}], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_labeling_and_every_retraining_lowers_the_loss(n_classes, options, weighted):
    X, y, _ = make(n_classes, n=400, n_labeled=12, seed=3)
    s = np.random.default_rng(0).uniform(0.2, 3.0, len(y)) if weighted else None
    estimator = LeastSquaresClassifier(**options)
    n_iter = SelfLearningClassifier(estimator).fit(X, y, s).n_iter_
    assert n_iter >= 3
    runs = [run(k, X, y, s, estimator) for k in range(1, n_iter + 1)]
    losses = []
    for clf, following in pairwise(runs):
        labels, next_labels = completed(clf, y), completed(following, y)
        np.testing.assert_array_equal(next_labels[y == -1], clf.predict(X)[y == -1])
        losses += [
            loss(clf.estimator_, X, labels, s),  # weights for these labels,
            loss(clf.estimator_, X, next_labels, s),  # then labels for these weights
        ]
    losses.append(loss(runs[-1].estimator_, X, completed(runs[-1], y), s))
    assert (np.diff(losses) < 0.0).all()


@pytest.mark.parametrize("seed", range(3))
def test_no_weights_and_no_single_label_would_be_better(seed):
    X, y, _ = make(seed=seed)
    clf = SelfLearningClassifier(LeastSquaresClassifier(0.5)).fit(X, y)
    labels, model = completed(clf, y), clf.estimator_
    residual = model.decision_function(X) + 0.5 - labels
    np.testing.assert_allclose(X.T @ residual + 0.5 * model.coef_[0], 0.0, atol=1e-10)
    assert residual.sum() == pytest.approx(0.0, abs=1e-10)
    best = loss(model, X, labels)
    for row in np.flatnonzero(y == -1):
        flipped = labels.copy()
        flipped[row] = 1 - flipped[row]
        assert loss(model, X, flipped) > best


# Least squares: the fast path is the same as refitting


@pytest.mark.parametrize("kind", KINDS)
def test_fast_path_equals_refits_on_every_kind_of_rows(kind):
    compared = 0
    for seed in range(12):  # every penalty with and without `rcond`
        p = make_problem(kind, np.random.default_rng(seed))
        alpha = (0.0, 0.0, 0.1, 10.0)[seed % 4]
        options = {"alpha": alpha, "fit_intercept": p.settings["fit_intercept"]}
        options["rcond"] = 1e-8 if seed % 3 == 2 else None
        fast = SelfLearningClassifier(LeastSquaresClassifier(**options)).fit(p.X, p.y, p.weights)
        slow = SelfLearningClassifier(Refitted(**options)).fit(p.X, p.y, p.weights)
        assert fast.stop_reason_ == "converged"
        # A row that lies on the boundary but for rounding errors may go either way.
        if not np.array_equal(fast.labels_, slow.labels_):
            continue
        compared += 1
        assert fast.n_iter_ == slow.n_iter_
        # Scores of features far from zero have no more digits than this.
        size = np.abs(p.X).max(axis=0) @ np.abs(fast.estimator_.coef_[0]) + 1.0
        atol = max(1e-10 if options["rcond"] is None else 1e-8, 1e-14 * size)
        np.testing.assert_allclose(
            fast.decision_function(p.X), slow.decision_function(p.X), rtol=0.0, atol=atol
        )
    assert compared >= 11


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.coo_matrix])
@pytest.mark.parametrize("options", [{}, {"alpha": 3.0}, {"rcond": 0.2}, {"fit_intercept": False}])
def test_fast_path_equals_refits(n_classes, container, options):
    X, y, _ = make(n_classes, n=400, d=30, n_labeled=60, distance=0.4)
    # Some numbers are zero, and the cut-off leaves some columns out.
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.5, X, 0.0) * np.linspace(0.3, 1, 30)
    for weights in (None, np.linspace(2.0, 0.0, len(y))):
        check_against_refits(options, X, y, weights, container)


def test_fast_path_equals_refits_where_threads_share_the_rows():
    X, y, _ = make(n=3000, d=90, n_labeled=150, distance=0.4)
    assert X.size > 2**18
    check_against_refits({}, X, y, None, np.asarray)


def check_against_refits(options, X, y, weights, container):
    fast = SelfLearningClassifier(LeastSquaresClassifier(**options)).fit(container(X), y, weights)
    slow = SelfLearningClassifier(Refitted(**options)).fit(X, y, weights)
    assert fast.n_iter_ == slow.n_iter_ > 1
    assert type(fast.estimator_) is type(fast.supervised_) is LeastSquaresClassifier
    np.testing.assert_array_equal(fast.labels_, slow.labels_)
    for name in ("estimator_", "supervised_"):
        ours, theirs = getattr(fast, name), getattr(slow, name)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0.0, atol=1e-10)


def test_fast_path_stopped_early_equals_refits():
    X, y, _ = make(n=400, n_labeled=12, seed=3)
    for max_iter in (1, 2, 3):
        fast, slow = (run(max_iter, X, y, estimator=e) for e in (None, Refitted()))
        assert fast.stop_reason_ == slow.stop_reason_ == "max_iter"
        np.testing.assert_array_equal(fast.labels_, slow.labels_)
        np.testing.assert_allclose(fast.estimator_.coef_, slow.estimator_.coef_, atol=1e-12)


def test_rows_too_ill_conditioned_for_steps_are_solved_anew(monkeypatch):
    solved = []
    fit = LabeledRows.fit
    monkeypatch.setattr(LabeledRows, "fit", lambda rows, e: solved.append(1) or fit(rows, e))
    X, y, _ = make(seed=2)
    SelfLearningClassifier().fit(X, y)
    assert not solved
    rng = np.random.default_rng(0)
    X = np.c_[X, X[:, 0] + 1e-8 * rng.normal(size=len(X))]
    fast = SelfLearningClassifier().fit(X, y)
    assert len(solved) == fast.n_iter_ + 1
    slow = SelfLearningClassifier(Refitted()).fit(X, y)
    np.testing.assert_array_equal(fast.labels_, slow.labels_)
    np.testing.assert_allclose(fast.decision_function(X), slow.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fast_path_adds_up_one_gram_matrix_and_reads_rows_twice_per_retraining(
    n_classes, monkeypatch
):
    X, y, _ = make(n_classes, n=4000, n_labeled=30, seed=1)  # so few that they are copied out
    passes, grams = [], []

    def count(name, calls):
        method = getattr(DenseRows, name)

        def counted(self, *args):
            if self.n_rows == len(X):
                calls.append(name)
            return method(self, *args)

        monkeypatch.setattr(DenseRows, name, counted)

    count("gram", grams)
    count("_pass", passes)
    count("weighted_sum", passes)
    clf = SelfLearningClassifier().fit(X, y)
    assert clf.n_iter_ > 1
    assert len(grams) == 1
    # The first labels are those of the supervised weights, and the last ones are refined.
    assert len(passes) <= 2 * clf.n_iter_ + 4


def test_fast_path_needs_little_memory_beside_the_rows():
    X, y, _ = make(n=40_000, d=50, n_labeled=200)
    tracemalloc.start()
    SelfLearningClassifier().fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * X.nbytes


# How it ends


class OthersNearby(KNeighborsClassifier):
    """Nearest neighbours in which no row is its own neighbour."""

    def __init__(self, n_neighbors=2):
        super().__init__(n_neighbors, weights=self._near)

    @staticmethod
    def _near(distances):
        return np.divide(1.0, distances, out=np.zeros_like(distances), where=distances > 0.0)


def test_cycle_is_detected():
    # Two rows in the middle are each other's neighbour: they swap labels for ever.
    X, y = [[0.0], [4.9], [5.1], [10.0]], [0, -1, -1, 1]
    clf = SelfLearningClassifier(OthersNearby())
    with pytest.warns(ConvergenceWarning, match="labels run in a cycle of 2"):
        clf.fit(X, y)
    assert (clf.stop_reason_, clf.cycle_length_, clf.n_iter_) == ("cycle", 2, 2)
    assert clf.labels_.tolist() == [1, 0]  # what estimator_ was fitted to
    assert clf.predict(X)[1:3].tolist() == [0, 1]


@pytest.mark.parametrize("estimator", [None, Refitted()])
def test_retrainings_run_out(estimator):
    X, y, _ = make(n=400, n_labeled=12, seed=3)
    needed = SelfLearningClassifier(estimator).fit(X, y).n_iter_
    with pytest.warns(ConvergenceWarning, match="still change after max_iter=2 retrainings"):
        clf = SelfLearningClassifier(estimator, max_iter=2).fit(X, y)
    assert (clf.stop_reason_, clf.cycle_length_, clf.n_iter_) == ("max_iter", None, 2)
    assert (clf.labels_ != clf.predict(X[y == -1])).any()
    exact = SelfLearningClassifier(estimator, max_iter=needed).fit(X, y)
    assert exact.stop_reason_ == "converged"


@pytest.mark.parametrize("estimator", [None, Refitted(), LogisticRegression()])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_unlabeled_rows_it_is_the_supervised_classifier(estimator, weighted):
    X, _, truth = make(3)
    s = np.linspace(0.5, 2.0, len(X)) if weighted else None
    clf = SelfLearningClassifier(estimator).fit(X, truth, s)
    alone = clone(clf.estimator_).fit(X, truth, s)
    np.testing.assert_array_equal(clf.estimator_.coef_, alone.coef_)
    np.testing.assert_array_equal(clf.supervised_.coef_, alone.coef_)
    assert clf.labels_.shape == (0,)
    assert (clf.stop_reason_, clf.n_iter_) == ("converged", 1)


def test_verbose_writes_a_line_for_every_retraining(capsys):
    X, y, _ = make(n=400, n_labeled=12, seed=3)
    clf = SelfLearningClassifier(verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == clf.n_iter_
    assert all("[SelfLearningClassifier]" in line for line in lines)
    assert "then 0 labels changed" in lines[-1]
    assert "388 rows" in lines[-1]
    SelfLearningClassifier().fit(X, y)
    assert capsys.readouterr().err == ""


class Watch:
    """Sees all stages, and stops at one of them."""

    def __init__(self, stop_at=None):
        self.stop_at, self.stages = stop_at, []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if "retraining" in context.task_name:
            self.stages.append(context.task_name)
        return len(self.stages) == self.stop_at


@pytest.mark.parametrize("estimator", [None, Refitted()])
def test_callbacks_see_every_retraining_and_may_stop(estimator):
    pytest.importorskip("sklearn.callback")
    X, y, _ = make(n=400, n_labeled=12, seed=3)
    watch = Watch()
    clf = SelfLearningClassifier(estimator).set_callbacks(watch).fit(X, y)
    assert len(watch.stages) == clf.n_iter_ > 2
    stopped = SelfLearningClassifier(estimator).set_callbacks(Watch(stop_at=2)).fit(X, y)
    assert (stopped.stop_reason_, stopped.n_iter_) == ("callback", 2)
    np.testing.assert_array_equal(stopped.labels_, run(2, X, y).labels_)


# Where it helps, and where it hurts


def test_better_where_classes_are_clusters():
    errors = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = np.arange(600) % 2
        X = rng.normal(size=(600, 8))
        X[:, 0] += 5.0 * truth
        clf = SelfLearningClassifier().fit(X, np.where(np.arange(600) < 12, truth, -1))
        errors.append([1 - clf.supervised_.score(X, truth), 1 - clf.score(X, truth)])
    supervised, self_learned = np.mean(errors, axis=0)
    assert supervised > 0.08
    assert self_learned < 0.3 * supervised


def test_worse_where_a_small_class_overlaps_a_large_one():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = (rng.random(600) < 0.25).astype(int)
        truth[:2] = 0, 1
        X = rng.normal(size=(600, 1)) + 1.5 * truth[:, None]
        y = np.where(np.arange(600) < 20, truth, -1)
        clf = SelfLearningClassifier().fit(X, y)
        # Each retraining shrinks the small class, until it has almost no rows left.
        assert np.mean(clf.labels_) < 0.5 * np.mean(clf.supervised_.predict(X[20:]))
        assert clf.score(X, truth) < clf.supervised_.score(X, truth)
        assert loss(clf.estimator_, X, truth) > 1.2 * loss(clf.supervised_, X, truth)


def test_audit_says_that_nothing_is_certain():
    X, y, _ = make()
    clf = SelfLearningClassifier().fit(X, y)
    found = audit(clf, clf.supervised_, X, y)
    assert found.response == "predict_proba"
    assert not found.holds
    assert found.best_case < 0.0 < found.worst_case


# Any estimator, and X as it is


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_of_strings_and_numbers_in_a_pipeline(frame):
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 2
    data = frame(
        {
            "colour": np.where(rng.random(120) < 0.2 + 0.6 * truth, "red", "blue"),
            "size": rng.normal(size=120) + 2.0 * truth,
        }
    )
    y = np.where(np.arange(120) < 20, truth, -1)
    # Beside sparse columns, scikit-learn 1.7 lets no frame of polars pass.
    encoder = OneHotEncoder(sparse_output=False)
    columns = make_column_transformer((encoder, ["colour"]), ("passthrough", ["size"]))
    clf = SelfLearningClassifier(make_pipeline(columns, LogisticRegression())).fit(data, y)
    assert clf.stop_reason_ == "converged"
    assert clf.feature_names_in_.tolist() == ["colour", "size"]
    assert clf.score(data, truth) > 0.8


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("estimator", [None, Refitted()])
def test_names_of_columns(frame, estimator):
    X, y, _ = make()
    names = list("abcde")
    data = frame(dict(zip(names, X.T, strict=True)))
    clf = SelfLearningClassifier(estimator).fit(data, y)
    for model in (clf, clf.estimator_, clf.supervised_):
        assert model.feature_names_in_.tolist() == names
        assert model.n_features_in_ == 5
    reference = SelfLearningClassifier(estimator).fit(X, y)
    assert not hasattr(reference, "feature_names_in_")
    np.testing.assert_allclose(clf.decision_function(data), reference.decision_function(X))
    assert not hasattr(clf.fit(X, y), "feature_names_in_")


@pytest.mark.parametrize("fmt", ["csr", "csc", "coo", "lil", "bsr"])
def test_sparse_rows_reach_the_estimator_as_sparse_rows(fmt):
    X, y, _ = make(n_labeled=30)
    X = np.where(X > 0.5, X, 0.0)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    clf = SelfLearningClassifier(tree).fit(sparse.coo_array(X).asformat(fmt), y)
    reference = SelfLearningClassifier(tree).fit(X, y)
    np.testing.assert_array_equal(clf.labels_, reference.labels_)
    np.testing.assert_array_equal(clf.predict_proba(X), reference.predict_proba(X))


def test_only_the_methods_that_the_estimator_has():
    X, y, _ = make()
    clf = SelfLearningClassifier(Perceptron())
    for _ in ("not fitted", "fitted"):
        assert not hasattr(clf, "predict_proba")
        assert hasattr(clf, "decision_function")
        clf.fit(X, y)
    assert hasattr(SelfLearningClassifier(), "predict_proba")
    assert not hasattr(SelfLearningClassifier(KNeighborsClassifier()), "decision_function")


def test_in_a_search_over_parameters_of_the_estimator():
    X, y, truth = make(n_labeled=40)
    pipeline = make_pipeline(StandardScaler(), SelfLearningClassifier(LeastSquaresClassifier()))
    grid = {"selflearningclassifier__estimator__alpha": [0.0, 1.0, 1e3]}
    cv = LabeledKFold(4, shuffle=True, random_state=0)
    search = GridSearchCV(pipeline, grid, cv=cv, scoring="accuracy").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.score(X, truth) > 0.7


def test_estimator_is_cloned_and_parameters_stay_untouched():
    X, y, _ = make()
    inner = LogisticRegression(C=2.0)
    clf = SelfLearningClassifier(inner, max_iter=7, missing_label=-1, verbose=0)
    parameters = clf.get_params()
    clf.fit(X, y)
    assert clf.get_params() == parameters
    assert clf.estimator is inner
    assert not hasattr(inner, "coef_")
    assert clone(clf).estimator.C == 2.0
    assert repr(SelfLearningClassifier()) == "SelfLearningClassifier()"


# Row weights


@pytest.mark.parametrize("estimator", [None, Refitted(), GaussianNB()])
def test_weights_are_repetitions(estimator):
    X, y, _ = make(n_labeled=30)
    s = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    again = np.repeat(np.arange(len(y)), s.astype(int))
    clf = SelfLearningClassifier(estimator).fit(X, y, s)
    repeated = SelfLearningClassifier(estimator).fit(X[again], y[again])
    np.testing.assert_allclose(clf.predict_proba(X), repeated.predict_proba(X), atol=1e-8)
    plain = SelfLearningClassifier(estimator).fit(X, y)
    assert not np.allclose(clf.predict_proba(X), plain.predict_proba(X), atol=1e-3)
    assert clf.labels_.shape == ((y == -1).sum(),)


@pytest.mark.parametrize("wild", [1e3, 1e200])
def test_weight_zero_is_as_good_as_absent(wild):
    X, y, _ = make()
    dropped = np.r_[np.flatnonzero(y == 0)[0], np.flatnonzero(y == -1)[:3]]
    s = np.linspace(0.5, 3.0, len(y))
    s[dropped] = 0.0
    X[dropped] *= wild
    kept = s > 0.0
    clf = SelfLearningClassifier().fit(X, y, s)
    reference = SelfLearningClassifier().fit(X[kept], y[kept], s[kept])
    np.testing.assert_allclose(clf.estimator_.coef_, reference.estimator_.coef_, rtol=1e-9)


@np.errstate(over="ignore", invalid="ignore")
def test_weight_zero_of_rows_whose_scores_overflow():
    X, y, _ = make(n=300)
    row, s = np.flatnonzero(y == -1)[0], np.ones(len(y))
    reference = SelfLearningClassifier().fit(np.delete(X, row, 0), np.delete(y, row))
    X *= 0.1  # coefficients grow by as much
    X[row], s[row] = 1e308 * np.sign(reference.estimator_.coef_[0]), 0.0
    clf = SelfLearningClassifier().fit(X, y, s)
    assert np.isinf(clf.decision_function(X)[row])
    np.testing.assert_allclose(0.1 * clf.estimator_.coef_, reference.estimator_.coef_, rtol=1e-9)


def test_weights_that_the_estimator_does_not_take():
    X, y, _ = make()
    with pytest.raises(ValueError, match="KNeighborsClassifier does not take it in fit"):
        SelfLearningClassifier(KNeighborsClassifier()).fit(X, y, np.ones(len(y)))
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.raises(ValueError, match="with scikit-learn's metadata routing"):
        SelfLearningClassifier(pipeline).fit(X, y, np.ones(len(y)))


def test_weights_are_routed_to_and_through_it():
    X, y, _ = make(n_labeled=30)
    s = np.linspace(0.1, 3.0, len(y))
    expected = SelfLearningClassifier(GaussianNB()).fit(X, y, s)
    with sklearn.config_context(enable_metadata_routing=True):
        outer = make_pipeline(
            StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False),
            SelfLearningClassifier(GaussianNB()).set_fit_request(sample_weight=True),
        )
        outer.fit(X, y, sample_weight=s)
        inner = SelfLearningClassifier(
            make_pipeline(
                StandardScaler(with_mean=False, with_std=False).set_fit_request(
                    sample_weight=False
                ),
                GaussianNB().set_fit_request(sample_weight=True),
            )
        ).fit(X, y, sample_weight=s)
        unasked = SelfLearningClassifier(make_pipeline(StandardScaler(), GaussianNB()))
        with pytest.raises(ValueError, match="Pipeline does not take it"):
            unasked.fit(X, y, sample_weight=s)
    for clf in (outer, inner):
        np.testing.assert_allclose(clf.predict_proba(X), expected.predict_proba(X))


# Labels


def test_other_markers():
    X, y, _ = make()
    reference = SelfLearningClassifier().fit(X, y)
    classes = np.where(y == 0, -1.0, 1.0)
    clf = SelfLearningClassifier(missing_label=np.nan).fit(X, np.where(y < 0, np.nan, classes))
    np.testing.assert_array_equal(clf.estimator_.coef_, reference.estimator_.coef_)
    named = SelfLearningClassifier(missing_label="?").fit(X, np.array(["no", "yes", "?"])[y])
    assert set(named.labels_) == {"no", "yes"}
    np.testing.assert_array_equal(named.estimator_.coef_, reference.estimator_.coef_)


@pytest.mark.parametrize("estimator", [LeastSquaresClassifier(), L2SVMClassifier()])
def test_minus_one_stays_a_class_for_classifiers_that_would_take_it_for_a_marker(estimator):
    X, y, _ = make(n_classes=3)
    names = np.array([-1, 1, 2])
    reference = SelfLearningClassifier(estimator).fit(X, y)
    clf = SelfLearningClassifier(estimator, missing_label=0).fit(X, np.where(y < 0, 0, names[y]))
    assert clf.estimator_.classes_.tolist() == clf.supervised_.classes_.tolist() == [-1, 1, 2]
    np.testing.assert_array_equal(clf.predict(X), names[reference.predict(X)])
    np.testing.assert_array_equal(clf.labels_, names[reference.labels_])


# Bad input


def spoiled(X, value):
    X = X.copy()
    X[-1, 0] = value
    return X


BAD_FITS = {
    "NaN": ("contains NaN", lambda X, y: (spoiled(X, np.nan), y, None)),
    "infinity": ("contains infinity", lambda X, y: (spoiled(X, np.inf), y, None)),
    "overflow": ("so large .* Rescale the columns", lambda X, y: (spoiled(X, 1e200), y, None)),
    "underflow": ("so small .* Rescale the column", lambda X, y: (X * 1e-200, y, None)),
    "no label": ("no labeled row", lambda X, y: (X, np.full(len(y), np.nan), None)),
    "one class": ("one class only", lambda X, y: (X, np.where(y == 0, "a", None), None)),
    "y is None": ("y to be passed", lambda X, y: (X, None, None)),
    "y too short": ("inconsistent numbers", lambda X, y: (X, y[:-1], None)),
    "targets": ("continuous", lambda X, y: (X, X[:, 0], None)),
    "ambiguous": ("which may be two classes", lambda X, y: (X, np.where(y == 0, -1, y), None)),
    "negative weight": ("Negative values", lambda X, y: (X, y, np.full(len(y), -1.0))),
    "short weights": ("sample_weight.shape", lambda X, y: (X, y, np.ones(3))),
    "weights of one class": ("of one class only", lambda X, y: (X, y, (y == 1).astype(float))),
    "strings": ("could not convert string", lambda X, y: (np.full(X.shape, "a"), y, None)),
    "one dimension": ("Expected 2D array", lambda X, y: (X[:, 0], y, None)),
}


@pytest.mark.parametrize("name", BAD_FITS)
@pytest.mark.parametrize("estimator", [None, Refitted()])
def test_bad_input_is_explained_and_leaves_it_unfitted(name, estimator):
    X, y, _ = make()
    message, spoil = BAD_FITS[name]
    clf = SelfLearningClassifier(estimator).fit(X, y)
    with pytest.raises(ValueError, match=message):
        clf.fit(*spoil(X, y))
    with pytest.raises(NotFittedError):
        clf.predict(X)
    assert not [name for name in vars(clf) if name.endswith("_")]


@pytest.mark.parametrize(
    "change", [lambda X: spoiled(X, np.nan), lambda X: X[:0], lambda X: X[..., None]]
)
def test_errors_name_no_class_that_nobody_knows(change):
    X, y, _ = make()
    X = change(X)
    with pytest.raises(ValueError, match=r"by SelfLearningClassifier|SelfLearningClassifier does"):
        SelfLearningClassifier().fit(X, y[: len(X)])


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_predict_before_fit(method):
    with pytest.raises(NotFittedError, match="SelfLearningClassifier instance is not fitted yet"):
        getattr(SelfLearningClassifier(), method)(make()[0])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"max_iter": 0}, InvalidParameterError, "'max_iter' parameter"),
        ({"max_iter": 1.5}, InvalidParameterError, "'max_iter' parameter"),
        ({"estimator": "svm"}, InvalidParameterError, "'estimator' parameter"),
        ({"estimator": StandardScaler()}, InvalidParameterError, "'estimator' parameter"),
        ({"estimator": LinearRegression()}, ValueError, "is not a classifier"),
        ({"estimator": LeastSquaresClassifier(-1.0)}, InvalidParameterError, "'alpha' parameter"),
        ({"estimator": SVC(kernel="precomputed")}, ValueError, "square"),
        ({"missing_label": [1, 2]}, ValueError, "is not a scalar"),
    ],
    ids=repr,
)
def test_parameters_that_cannot_be_used(parameters, error, message):
    X, y, _ = make()
    with pytest.raises(error, match=message):
        SelfLearningClassifier(**parameters).fit(X, y)


class Rejecting(GaussianNB):
    """Gives no class to some rows."""

    def predict(self, X):
        return np.where(X[:, 0] > 2.0, 99, super().predict(X))


def test_predictions_that_are_no_class():
    X, y, _ = make()
    assert X[y < 0, 0].max() > 2.0
    clf = SelfLearningClassifier(Rejecting())
    with pytest.raises(ValueError, match=r"Rejecting predicts 99, .* none of the classes .*0, 1"):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        clf.predict(X)


class Interrupted(ClassifierMixin, BaseEstimator):
    """A classifier whose user loses patience once it is fitted to all rows."""

    def fit(self, X, y):
        if len(X) > 100:
            raise KeyboardInterrupt
        self.model_ = GaussianNB().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


def test_interrupted_fit_leaves_it_unfitted():
    X, y, _ = make()
    clf = SelfLearningClassifier(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert not hasattr(clf, "supervised_")
    with pytest.raises(NotFittedError):
        clf.predict(X)


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_fit_changes_nothing(estimator):
    X, y, _ = make()
    s = np.linspace(0.5, 2.0, len(y))
    before = [a.tobytes() for a in (X, y, s)]
    SelfLearningClassifier(estimator).fit(X, y, s)
    assert [a.tobytes() for a in (X, y, s)] == before
