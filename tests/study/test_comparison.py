"""The comparison of methods on labeled rows that were held out."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import RepeatedStratifiedKFold

from neverworse import (
    ICLSClassifier,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    ProjectedLeastSquaresClassifier,
)
from neverworse.methods import SelfLearningClassifier
from neverworse.model_selection import StratifiedLabeledKFold
from neverworse.study._comparison import Compared
from neverworse.study._held_out import draw_sample, mean_over_folds
from neverworse.study._methods import (
    METHODS,
    NearestLabelSpreading,
    fit_fold,
    guarantee_of,
    standard_methods,
)
from tests.study.fits import quickly


def problem(n_labeled=40, n_unlabeled=300, n_features=12, n_classes=2, shift=0.5, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n_labeled + n_unlabeled) % n_classes).astype(float)
    X = rng.normal(size=(len(codes), n_features)) + shift * codes[:, None]
    y = codes.copy()
    y[rng.permutation(len(y))[n_labeled:]] = np.nan
    return X, y


def projected(**settings):
    return ProjectedLeastSquaresClassifier(missing_label=np.nan, **settings)


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers the rows of each fit and what it is asked to predict, by their first column."""

    fits: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.fitted_ = X[:, 0].astype(int), y, sample_weight
        return self

    def predict(self, X):
        Recorder.fits.append((*self.fitted_, X[:, 0].astype(int)))
        return np.zeros(len(X))


@pytest.fixture
def fits(monkeypatch):
    monkeypatch.setattr(Recorder, "fits", [])
    return Recorder.fits


def numbered(**sizes):
    X, y = problem(**sizes)
    X[:, 0] = np.arange(len(y))
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_are_those_of_a_direct_computation(n_classes, weighted):
    X, y = problem(n_labeled=30, n_unlabeled=120, n_classes=n_classes)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    methods = standard_methods(projected(alpha=0.1))
    found = Compared(methods, X, y, sample_weight=weights, seed=3).comparison
    assert (found.n_folds, found.n_repeats, found.n_unlabeled) == (5, 3, 120)

    labeled, unlabeled = np.flatnonzero(~np.isnan(y)), np.flatnonzero(np.isnan(y))
    s = np.ones(len(y)) if weights is None else weights
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=3)
    errors = {name: [] for name in methods}
    losses = {name: [] for name in methods}
    for train, test in folds.split(labeled, y[labeled]):
        rows, tested = np.concatenate([labeled[train], unlabeled]), labeled[test]
        for name, method in methods.items():
            model = clone(method).fit(X[rows], y[rows], sample_weight=s[rows])
            scores = X[tested] @ model.coef_.T + model.intercept_ + 0.5
            target = np.eye(n_classes)[y[tested].astype(int)]
            if n_classes == 2:
                target, predicted = target[:, 1:], scores[:, 0] > 0.5
            else:
                predicted = scores.argmax(axis=1)
            errors[name].append(np.average(predicted != y[tested], weights=s[tested]))
            squares = ((scores - target) ** 2).sum(axis=1)
            losses[name].append(np.average(squares, weights=s[tested]))

    correction = np.sqrt(1 / 15 + 1 / 4)
    # The projected method alone at 95 %; errors and Brier scores of the third together.
    levels = {"projected": 0.975, "ICLS": 1 - 0.05 / 4}
    for facts in found.methods:
        if facts.method == "supervised":
            assert facts.error_difference is facts.brier_difference is facts.loss_difference is None
            continue
        for kind, values in (("error", errors), ("loss", losses)):
            each = np.array(values[facts.method]) - np.array(values["supervised"])
            assert each.std() > 0
            half = stats.t.ppf(levels[facts.method], 14) * correction * each.std(ddof=1)
            given = getattr(facts, f"{kind}_difference")
            assert [given.value, given.low, given.high] == pytest.approx(
                [each.mean(), each.mean() - half, each.mean() + half], abs=1e-14
            )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_was_said_of_held_out_rows_is_kept(n_classes):
    X, y = problem(n_labeled=30, n_unlabeled=120, n_classes=n_classes)
    methods = standard_methods(projected(alpha=0.1))
    found = Compared(methods, X, y, seed=3)
    labeled, unlabeled = np.flatnonzero(~np.isnan(y)), np.flatnonzero(np.isnan(y))
    assert np.array_equal(found.truth.codes, y[labeled])
    assert list(found.held_out) == list(methods)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=3)
    for k, (train, test) in enumerate(folds.split(labeled, y[labeled])):
        rows = np.concatenate([labeled[train], unlabeled])
        model = clone(methods["ICLS"]).fit(X[rows], y[rows])
        kept = found.held_out["ICLS"]
        assert np.array_equal(kept.predictions[k // 5, test], model.predict(X[labeled[test]]))
        np.testing.assert_allclose(
            kept.probabilities[k // 5, test], model.predict_proba(X[labeled[test]]), atol=1e-12
        )
        scores = model.decision_function(X[labeled[test]])
        ranks = kept.scores[k // 5, test]
        np.testing.assert_allclose(ranks[:, 1] if n_classes == 2 else ranks, scores + 0.5)


def test_differences_of_errors_stay_possible():
    X, y = problem(n_labeled=60, n_unlabeled=40, shift=0.3)
    y[np.flatnonzero(~np.isnan(y))[8:]] = np.nan
    X[:, 0] = np.where(np.isnan(y), 0.0, y)
    found = Compared(standard_methods(projected()) | {"right": Right()}, X, y).comparison
    for facts in found.methods[1:]:
        assert -1.0 <= facts.error_difference.low <= facts.error_difference.high <= 1.0


def test_the_majority_class_stands_beside_the_methods():
    X, y = problem(n_labeled=40)
    y[np.flatnonzero(y == 1)[8:]] = np.nan
    y[np.flatnonzero(y == 0)[20:]] = np.nan
    found = Compared(standard_methods(projected()), X, y, classes=["ok", "fraud"]).comparison
    assert found.majority == "ok"
    baseline = found.baseline
    assert baseline.error.value == pytest.approx(8 / 28)
    assert baseline.balanced_accuracy.value == baseline.auc.value == 0.5
    assert baseline.brier.value == pytest.approx(8 / 28 * 20 / 28, abs=3e-3)
    assert baseline.confusion == ((20.0, 0.0), (8.0, 0.0))


def test_the_majority_class_is_the_same_in_all_folds():
    X, y = problem(n_labeled=40)
    y[np.flatnonzero(y == 1)[11:]] = np.nan
    y[np.flatnonzero(y == 0)[12:]] = np.nan
    found = Compared(standard_methods(projected()), X, y, classes=["ok", "fraud"]).comparison
    assert found.majority == "ok"
    assert found.baseline.error.value == pytest.approx(11 / 23)
    assert found.baseline.confusion == ((12.0, 0.0), (11.0, 0.0))


class Right(ClassifierMixin, BaseEstimator):
    """Knows the truth, which the first column has."""

    def __init__(self, sure=True):
        self.sure = sure

    def fit(self, X, y):
        self.classes_ = np.unique(y[~np.isnan(y)])
        return self

    def predict(self, X):
        return X[:, 0].round()

    def predict_proba(self, X):
        second = X[:, 0] if self.sure else 0.3 + 0.4 * X[:, 0]
        return np.column_stack([1.0 - second, second])


class Failing(Right):
    def fit(self, X, y):
        raise ValueError("It takes more rows.")


def test_methods_that_are_clearly_better_than_both():
    X, y = problem(n_labeled=60, n_unlabeled=40, shift=0.3)
    X[:, 0] = np.where(np.isnan(y), 0.0, y)
    settings = {"missing_label": np.nan, "alpha": 1e4}
    methods = {
        "supervised": LeastSquaresClassifier(**settings),
        "projected": ProjectedLeastSquaresClassifier(**settings),
        "unsure": Right(sure=False),
        "failing": Failing(),
        "sure": Right(),
    }
    found = Compared(methods, X, y)
    assert found.better == ("sure", "unsure")
    assert found.comparison.failures == {"failing": "It takes more rows."}
    assert [facts.method for facts in found.comparison.methods] == [
        name for name in methods if name != "failing"
    ]
    # No method is clearly better than one that knows as much.
    assert Compared(methods | {"projected": Right()}, X, y).better == ()
    # Neither than the stacked one, which is ours: it is no other method itself.
    assert Compared(methods | {"stacked": Right()}, X, y).better == ()


def test_corrected_t_test_by_hand():
    # Mean 2, variance 2.5, five folds, one test row for four training rows.
    values, error = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.sqrt((0.2 + 0.25) * 2.5)  # 1.0606...
    # For four degrees of freedom 2.5 % of Student's t are beyond 2.776, and 0.5 % beyond 4.604.
    found = mean_over_folds(values, 0.25)
    assert found.value == 2.0
    assert found.high - found.value == pytest.approx(2.776445 * error)
    assert found.low == pytest.approx(2.0 - 2.776445 * error)
    assert found.sign == 0
    assert mean_over_folds(values, 0.25, n_tests=5).high == pytest.approx(2.0 + 4.604095 * error)
    # 2.776 standard errors are 2.945.
    assert mean_over_folds(values + 0.95, 0.25).sign == 1
    assert mean_over_folds(values + 0.94, 0.25).sign == 0
    assert mean_over_folds(-values - 0.95, 0.25).sign == -1


def test_differences_that_do_not_vary():
    nothing = mean_over_folds(np.zeros(4), 0.5)
    assert (nothing.value, nothing.low, nothing.high, nothing.sign) == (0.0, 0.0, 0.0, 0)
    same = mean_over_folds(np.full(4, 0.5), 0.5)
    assert same.sign == 0


def test_labels_of_test_rows_are_not_seen(fits):
    X, y = numbered()
    Compared({"recorder": Recorder()}, X, y)
    labeled = set(np.flatnonzero(~np.isnan(y)))
    assert len(fits) == 15
    for train, labels, _, test in fits:
        assert set(test) == labeled - set(train)
        assert np.array_equal(labels, y[train], equal_nan=True)
        assert set(np.flatnonzero(np.isnan(y))) <= set(train)


def test_other_test_labels_change_no_prediction():
    sample = draw_sample(*problem(), None, 20_000, 0)
    train, test = next(StratifiedLabeledKFold(5, missing_label=np.nan).split(sample.X, sample.y))
    method = ProjectedLeastSquaresClassifier(alpha="loo", missing_label=np.nan)
    y = sample.y.copy()
    y[test] = 1.0 - y[test]
    first, second = (fit_fold(method, each, train) for each in (sample, replace(sample, y=y)))
    assert np.array_equal(first.coef_, second.coef_)


def test_unlabeled_rows_are_capped_and_the_same_for_all(fits, monkeypatch):
    monkeypatch.setattr("neverworse.study._comparison.MAX_UNLABELED", 30)
    X, y = numbered(n_unlabeled=500)
    found = Compared({"a": Recorder(), "b": Recorder()}, X, y).comparison
    assert found.n_unlabeled == 30
    subsets = {frozenset(train[np.isnan(labels)]) for train, labels, _, _ in fits}
    assert [len(subset) for subset in subsets] == [30]
    tests = [test for *_, test in fits]
    for a, b in zip(tests[:15], tests[15:], strict=True):
        assert np.array_equal(a, b)


def test_rows_of_weight_zero_are_left_out(fits):
    X, y = numbered()
    weights = np.full(len(y), 2.0)
    gone = [np.flatnonzero(~np.isnan(y))[0], np.flatnonzero(np.isnan(y))[0]]
    weights[gone] = 0.0
    found = Compared({"recorder": Recorder()}, X, y, sample_weight=weights).comparison
    assert found.n_unlabeled == 299
    for train, _, given, test in fits:
        assert not set(gone) & (set(train) | set(test))
        assert (given == 2.0).all()


@pytest.mark.parametrize(
    ("counts", "n_features", "folds", "repeats"),
    [((2, 30), 5, 2, 3), ((20, 4), 5, 4, 3), ((300, 300), 5, 5, 3), ((2000, 2000), 5, 5, 3)],
)
def test_folds_follow_from_the_number_of_labels(fits, counts, n_features, folds, repeats):
    y = np.repeat([0.0, 1.0, np.nan], [*counts, 50])
    X = np.random.default_rng(0).normal(size=(len(y), n_features))
    found = Compared({"recorder": Recorder()}, X, y).comparison
    assert (found.n_folds, found.n_repeats) == (folds, repeats)


def test_many_columns_and_labels_cost_repeats_and_rows(fits):
    y = np.repeat([0.0, 1.0, np.nan], [20, 20, 9_000])
    X = np.zeros((len(y), 2_000))
    found = Compared({"recorder": Recorder()}, X, y).comparison
    assert (found.n_folds, found.n_repeats) == (5, 1)
    assert 1_000 <= found.n_unlabeled < 9_000
    y = np.repeat([0.0, 1.0], [30_000, 10_000])
    found = Compared({"recorder": Recorder()}, np.zeros((len(y), 1)), y).comparison
    sizes = {len(train) + len(test) for train, *_, test in fits[-10:]}
    assert sizes == {20_000}
    assert found.n_labeled == 20_000


def test_progress_is_told():
    X, y = problem()
    told = []
    Compared(
        dict.fromkeys("ab", LeastSquaresClassifier(missing_label=np.nan)),
        X,
        y,
        notify=lambda what, share: told.append((what, share)),
    )
    assert told == [("comparing a", 0.0), ("comparing b", 0.5)]


def test_one_label_of_a_class_is_too_few():
    X, y = problem()
    y[y == 1] = np.nan
    for _ in range(2):
        with pytest.raises(ValueError, match="two labeled rows of every class"):
            Compared(standard_methods(projected()), X, y)
        y[np.flatnonzero(np.isnan(y))[0]] = 1.0


def test_standard_methods_share_the_settings():
    given = projected(alpha="loo", constraint_alpha=2.0, class_prior=(0.2, 0.6), tol=1e-6)
    methods = standard_methods(given)
    assert list(methods) == ["supervised", "projected", "ICLS"]
    assert type(methods["supervised"]) is LeastSquaresClassifierCV
    assert methods["projected"] is not given
    for name in ("projected", "ICLS"):
        settings = methods[name].get_params()
        assert settings.items() >= (
            given.get_params().items() - {("distance", "all"), ("distance", "labeled")}
        ), name
    assert type(methods["ICLS"]) is ICLSClassifier
    assert methods["supervised"].get_params()["missing_label"] is np.nan
    for method in standard_methods(given, METHODS).values():
        clone(method)


@pytest.fixture
def quickest(monkeypatch):
    monkeypatch.setattr("neverworse.study._held_out.MOST_FOLDS", 2)
    with quickly():
        yield


def test_all_methods_run_and_only_scores_have_a_loss(quickest):
    X, y = problem(n_labeled=30, n_unlabeled=100, shift=1.0)
    methods = standard_methods(projected(alpha=1.0), METHODS)
    found = Compared(methods, X, y, sample_weight=np.ones(len(y))).comparison
    by_name = {facts.method: facts for facts in found.methods}
    assert list(by_name) == list(methods)
    for name, facts in by_name.items():
        linear = ("projected", "ICLS", "self-learning")
        assert (facts.loss_difference is None) == (name not in linear)
        assert facts.numbers.error.value < 0.5
        assert (facts.brier_difference is None) == (
            name in ("supervised", "TSVM", "label spreading")
        )
    json.dumps(asdict(found), allow_nan=False)


def test_all_methods_run_on_several_classes_and_sparse_rows(quickest):
    X, y = problem(n_labeled=30, n_unlabeled=60, n_features=5, n_classes=3, shift=1.0)
    methods = standard_methods(projected(alpha=1.0), METHODS)
    dense = Compared(methods, X, y).comparison
    assert dense.failures.keys() == {"TSVM"}  # which is for two classes
    del methods["TSVM"]
    del methods["random forest"], methods["self-training"]  # others take a fraction of the time
    thin = Compared(methods, sparse.csr_array(X), y).comparison
    # scikit-learn's boosting takes no sparse rows: it is left out, and the reason given.
    assert list(thin.failures) == ["gradient boosting"]
    assert thin.failures["gradient boosting"].startswith("Sparse data was passed")
    for facts in thin.methods:
        same = dense.of(facts.method).numbers.error.value
        assert facts.numbers.error.value == pytest.approx(same)


def test_all_others_failing_is_said_and_not_fatal():
    X, y = problem()
    methods = standard_methods(projected(alpha=1.0))
    ours = {name: methods[name] for name in ("supervised", "projected")}
    found = Compared(ours | {"one": Failing(), "two": Failing()}, X, y).comparison
    assert [facts.method for facts in found.methods] == ["supervised", "projected"]
    assert found.failures == dict.fromkeys(("one", "two"), "It takes more rows.")
    with pytest.raises(ValueError, match="takes more rows"):
        Compared(ours | {"projected": Failing()}, X, y)


def test_methods_that_collapse_are_named():
    """Far-off unlabeled rows on one side draw the boundary of self-learning over all others."""
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0, np.nan], [20, 20, 400])
    X = np.concatenate([rng.normal(-1, 1, 20), rng.normal(1, 1, 20), rng.normal(0, 1, 400)])[
        :, None
    ]
    X[40:45] = 60.0
    methods = standard_methods(projected(alpha=0.1))
    methods["self-learning"] = SelfLearningClassifier(
        LeastSquaresClassifier(missing_label=np.nan), missing_label=np.nan
    )
    found = Compared(methods, X, y, classes=["no", "yes"]).comparison
    assert re.search(
        r"self-learning has collapsed: in \d+ of 15 fits it gives 'no' to", found.words
    )
    assert "projected has collapsed" not in found.words


def test_words_say_when_nothing_is_known():
    X, y = problem(shift=0.0, n_features=25)
    found = Compared(standard_methods(projected(alpha=0.1)), X, y).comparison
    assert found.words.endswith("by more than chance would explain: none.")


def test_words_say_when_something_is():
    class Wrong(LeastSquaresClassifier):
        def predict(self, X):
            return 1.0 - super().predict(X)

    X, y = problem(n_labeled=200, shift=0.6)
    found = Compared(
        {
            "supervised": LeastSquaresClassifier(missing_label=np.nan),
            "wrong": Wrong(missing_label=np.nan),
        },
        X,
        y,
    ).comparison
    assert found.methods[1].error_difference.low > 0.3
    change = f"+{100 * found.methods[1].error_difference.value:.1f} percentage points"
    assert f"by more than chance would explain: wrong ({change})." in found.words
    found = Compared(
        {
            "wrong": Wrong(missing_label=np.nan),
            "supervised": LeastSquaresClassifier(missing_label=np.nan),
        },
        X,
        y,
    ).comparison
    assert "by more than chance would explain: supervised (\N{MINUS SIGN}" in found.words


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (projected(), "never worse, in the terms of the certificate"),
        (projected(distance="unlabeled"), "never worse, in the terms of the certificate"),
        (projected(distance="euclidean"), "none"),
        (ICLSClassifier(), "none"),
        (LeastSquaresClassifier(), "none"),
    ],
)
def test_guarantees_in_words(method, words):
    assert guarantee_of(method) == words


def test_label_spreading_follows_neighbours():
    X = np.r_[np.linspace(0.0, 0.3, 8), np.linspace(5.0, 5.3, 8)][:, None]
    y = np.full(16, np.nan)
    y[[0, 15]] = 0.0, 1.0
    clf = NearestLabelSpreading().fit(X, y)
    assert clf.predict([[0.25], [5.05]]).tolist() == [0, 1]


def test_label_spreading_where_no_label_arrives():
    X = np.r_[np.linspace(0.0, 0.3, 8), np.linspace(9.0, 9.3, 8)][:, None]
    y = np.repeat([1.0, 0.0, np.nan], [4, 4, 8])
    clf = NearestLabelSpreading().fit(X, y)
    assert clf.predict([[9.1]]).tolist() == [0]
