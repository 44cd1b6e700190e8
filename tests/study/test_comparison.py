"""The comparison of methods on labeled rows that were held out."""

from __future__ import annotations

import json
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
from neverworse.model_selection import StratifiedLabeledKFold
from neverworse.study._comparison import _fit_and_test, compare
from neverworse.study._methods import NearestLabelSpreading, guarantee_of, standard_methods
from neverworse.study._resampling import Mean, holm
from neverworse.study._sample import draw_sample


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
    X, y = problem(n_labeled=30, n_classes=n_classes)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    methods = standard_methods(projected(alpha=0.1))
    found = compare(methods, X, y, sample_weight=weights, seed=3)
    assert (found.n_folds, found.n_repeats, found.n_unlabeled) == (5, 10, 300)

    labeled, unlabeled = np.flatnonzero(~np.isnan(y)), np.flatnonzero(np.isnan(y))
    s = np.ones(len(y)) if weights is None else weights
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=10, random_state=3)
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

    raw = []
    for facts in found.methods:
        e, loss = np.array(errors[facts.method]), np.array(losses[facts.method])
        difference = e - np.array(errors["supervised"])
        correction = np.sqrt(1 / 50 + 1 / 4)
        assert facts.error == pytest.approx(e.mean())
        assert facts.error_se == pytest.approx(correction * e.std(ddof=1))
        assert facts.loss == pytest.approx(loss.mean())
        assert facts.loss_se == pytest.approx(correction * loss.std(ddof=1))
        assert facts.difference == pytest.approx(difference.mean(), abs=1e-15)
        assert facts.difference_se == pytest.approx(correction * difference.std(ddof=1))
        if facts.method != "supervised":
            assert difference.std() > 0
            t = difference.mean() / (correction * difference.std(ddof=1))
            raw.append(2 * stats.t.sf(abs(t), 49))
    assert found.methods[0].p_value is None
    given = sorted(facts.p_value for facts in found.methods[1:])
    low, high = sorted(raw)
    first = min(1.0, 2 * low)
    assert given == pytest.approx([first, max(first, high)])
    assert all(facts.seconds > 0 for facts in found.methods)


def test_corrected_t_test_by_hand():
    # Mean 2, variance 2.5, five folds, one test row for four training rows.
    mean = Mean.over_folds(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), 0.25)
    assert mean.value == 2.0
    assert mean.se == pytest.approx(np.sqrt((0.2 + 0.25) * 2.5))  # 1.0606...
    # t = 1.8856; for four degrees of freedom the tail has a closed form.
    t = 2.0 / mean.se
    x = t / np.sqrt(4 + t * t)
    assert mean.p_value == pytest.approx(1 - x * (3 - x * x) / 2)
    assert mean.margin == pytest.approx(2.776445 * mean.se)
    assert mean.sign == 0


def test_differences_that_do_not_vary():
    nothing = Mean.over_folds(np.zeros(4), 0.5)
    assert nothing.p_value == 1.0
    assert nothing.sign == 0
    same = Mean.over_folds(np.full(4, 0.5), 0.5)
    assert same.p_value is None
    assert same.sign == 0


def test_holm():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, None, 0.9]) == [1.0, None, 1.0]
    assert holm([]) == []


def test_labels_of_test_rows_are_not_seen(fits):
    X, y = numbered()
    compare({"recorder": Recorder()}, X, y)
    labeled = set(np.flatnonzero(~np.isnan(y)))
    assert len(fits) == 50
    for train, labels, _, test in fits:
        assert set(test) == labeled - set(train)
        assert np.array_equal(labels, y[train], equal_nan=True)
        assert set(np.flatnonzero(np.isnan(y))) <= set(train)


def test_other_test_labels_change_no_prediction():
    predictions = []

    class Keeping(ProjectedLeastSquaresClassifier):
        def predict(self, X):
            predictions.append(super().decision_function(X))
            return super().predict(X)

    sample = draw_sample(*problem(), None, 20_000, 0)
    train, test = next(StratifiedLabeledKFold(5, missing_label=np.nan).split(sample.X, sample.y))
    method = Keeping(alpha="loo", missing_label=np.nan)
    error, *_ = _fit_and_test(method, sample, train, test)
    y = sample.y.copy()
    y[test] = 1.0 - y[test]
    exchanged, *_ = _fit_and_test(method, replace(sample, y=y), train, test)
    assert exchanged == 1.0 - error
    assert (predictions[0] == predictions[1]).all()


def test_unlabeled_rows_are_capped_and_the_same_for_all(fits):
    X, y = numbered(n_unlabeled=500)
    found = compare({"a": Recorder(), "b": Recorder()}, X, y, max_unlabeled=30)
    assert found.n_unlabeled == 30
    subsets = {frozenset(train[np.isnan(labels)]) for train, labels, _, _ in fits}
    assert [len(subset) for subset in subsets] == [30]
    tests = [test for *_, test in fits]
    for a, b in zip(tests[::2], tests[1::2], strict=True):
        assert np.array_equal(a, b)


def test_rows_of_weight_zero_are_left_out(fits):
    X, y = numbered()
    weights = np.ones(len(y))
    gone = [np.flatnonzero(~np.isnan(y))[0], np.flatnonzero(np.isnan(y))[0]]
    weights[gone] = 0.0
    found = compare({"recorder": Recorder()}, X, y, sample_weight=weights)
    assert found.n_unlabeled == 299
    for train, _, given, test in fits:
        assert not set(gone) & (set(train) | set(test))
        assert (given == 1.0).all()


@pytest.mark.parametrize(
    ("counts", "n_features", "folds", "repeats"),
    [((2, 30), 5, 2, 10), ((20, 4), 5, 4, 10), ((300, 300), 5, 5, 3), ((2000, 2000), 5, 10, 1)],
)
def test_folds_follow_from_the_number_of_labels(fits, counts, n_features, folds, repeats):
    y = np.repeat([0.0, 1.0, np.nan], [*counts, 50])
    X = np.random.default_rng(0).normal(size=(len(y), n_features))
    found = compare({"recorder": Recorder()}, X, y)
    assert (found.n_folds, found.n_repeats) == (folds, repeats)


def test_many_columns_and_labels_cost_repeats_and_rows(fits):
    y = np.repeat([0.0, 1.0, np.nan], [20, 20, 9_000])
    X = np.zeros((len(y), 2_000))
    found = compare({"recorder": Recorder()}, X, y)
    assert (found.n_folds, found.n_repeats) == (5, 1)
    assert 1_000 <= found.n_unlabeled < 9_000
    y = np.repeat([0.0, 1.0], [30_000, 10_000])
    found = compare({"recorder": Recorder()}, np.zeros((len(y), 1)), y)
    sizes = {len(train) + len(test) for train, *_, test in fits[-10:]}
    assert sizes == {20_000}
    assert "20,000 of the 40,000 labeled rows" in found.words


def test_progress_is_told():
    X, y = problem()
    told = []
    compare(
        {"a": LeastSquaresClassifier(missing_label=np.nan)},
        X,
        y,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(k + 1, 50) for k in range(50)]


def test_one_label_of_a_class_is_too_few():
    X, y = problem()
    y[y == 1] = np.nan
    for _ in range(2):
        with pytest.raises(ValueError, match="two labeled rows of every class"):
            compare(standard_methods(projected()), X, y)
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
    all_methods = standard_methods(given, compare=True)
    assert list(all_methods)[3:] == ["self-learning", "TSVM", "label spreading"]
    assert "TSVM" not in standard_methods(given, compare=True, n_classes=3)
    for method in all_methods.values():
        clone(method)


def test_all_methods_run_and_only_scores_have_a_loss():
    X, y = problem(n_labeled=30, n_unlabeled=100, shift=1.0)
    methods = standard_methods(projected(alpha=1.0), compare=True)
    found = compare(methods, X, y, sample_weight=np.ones(len(y)))
    by_name = {facts.method: facts for facts in found.methods}
    assert list(by_name) == list(methods)
    for name, facts in by_name.items():
        assert (facts.loss is None) == (name in ("TSVM", "label spreading"))
        assert facts.error < 0.3
    json.dumps(asdict(found), allow_nan=False)


def test_all_methods_run_on_several_classes_and_sparse_rows():
    X, y = problem(n_labeled=30, n_unlabeled=60, n_classes=3, shift=1.0)
    methods = standard_methods(projected(alpha=1.0), compare=True, n_classes=3)
    dense = compare(methods, X, y)
    thin = compare(methods, sparse.csr_array(X), y)
    for a, b in zip(dense.methods, thin.methods, strict=True):
        assert a.error == pytest.approx(b.error)


def test_words_say_when_nothing_is_known():
    X, y = problem(shift=0.0)
    found = compare(standard_methods(projected()), X, y)
    assert found.words.startswith("No method's error on held-out rows differs")
    assert "In quadratic loss, which the guarantee is about, the projected one is" in found.words
    assert "With 40 labeled rows, error rates are known to within about ±" in found.words


def test_words_say_when_something_is():
    class Wrong(LeastSquaresClassifier):
        def predict(self, X):
            return 1.0 - super().predict(X)

    X, y = problem(n_labeled=200, shift=0.6)
    found = compare(
        {
            "supervised": LeastSquaresClassifier(missing_label=np.nan),
            "wrong": Wrong(missing_label=np.nan),
        },
        X,
        y,
    )
    assert found.methods[1].p_value < 1e-6
    change = f"+{100 * found.methods[1].difference:.1f} percentage points"
    assert f"more errors: wrong ({change})" in found.words
    assert "guarantee" not in found.words
    found = compare(
        {
            "wrong": Wrong(missing_label=np.nan),
            "supervised": LeastSquaresClassifier(missing_label=np.nan),
        },
        X,
        y,
    )
    assert "fewer errors: supervised (-" in found.words


def test_words_about_equal_losses():
    X, y = problem(n_labeled=200)
    found = compare(standard_methods(projected(alpha=1e9)), X, y)
    assert "the projected one is the same as the supervised one." in found.words
    assert "differences between methods" not in found.words


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (projected(), "never worse in penalised quadratic loss on all training rows"),
        (projected(alpha=0.0), "never worse in quadratic loss on all training rows"),
        (projected(constraint_alpha=0.0), "never worse in quadratic loss on all training rows"),
        (projected(constraint_alpha=1.0), "never worse in penalised quadratic loss on all"),
        (projected(distance="unlabeled"), "on the unlabeled training rows"),
        (projected(class_prior="confidence"), "all training rows, with probability 95%"),
        (projected(class_prior=(0.2, 0.4)), "all training rows, if the class prior is right"),
        (projected(distance="euclidean"), "none"),
        (projected(distance=np.eye(3)), "none"),
        (ICLSClassifier(), "none"),
        (LeastSquaresClassifier(), "none"),
    ],
)
def test_guarantees_in_words(method, words):
    assert words in guarantee_of(method)


def test_label_spreading_follows_neighbours():
    X = np.array([[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]])
    y = np.array(["a", None, None, None, None, None, None, "b"], dtype=object)
    clf = NearestLabelSpreading(n_neighbors=3).fit(X, y)
    assert clf.predict([[0.25], [5.05]]).tolist() == ["a", "b"]


def test_label_spreading_where_no_label_arrives():
    X = np.array([[0.0], [0.1], [0.2], [0.3], [9.0], [9.1], [9.2]])
    y = np.array([1.0, 0.0, 1.0, 1.0, np.nan, np.nan, np.nan])
    clf = NearestLabelSpreading(n_neighbors=2).fit(X, y)
    assert clf.predict([[9.1]]).tolist() == [1.0]
