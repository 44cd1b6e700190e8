"""The transductive machine: descent, balance, and where its assumption holds or fails."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning

from neverworse.methods import L2SVMClassifier, TransductiveSVMClassifier
from neverworse.methods.svm._transductive import label_shares, share_probabilities
from tests.methods.svm.problems import clusters, errors, make, objective, rare_class, raw_units

METHODS = ["switching", "annealing"]
every_method = pytest.mark.parametrize("method", METHODS)


def transductive_objective(clf, X, y, sample_weight=None):
    """Return the documented objective for the labels that the classifier has given."""
    unlabeled = y < 0
    s = np.ones(len(y)) if sample_weight is None else sample_weight
    target = np.where(unlabeled, 0.0, 2.0 * y - 1.0)
    target[unlabeled] = 2.0 * clf.labels_ - 1.0
    weights = np.where(unlabeled, clf.unlabeled_weight, 1.0) * s
    if clf.scaling == "mean":
        weights = weights / np.where(unlabeled, s[unlabeled].sum(), s[~unlabeled].sum())
    return objective(clf, X, target, weights, clf.penalise_intercept), target, weights


# The objective


@every_method
@pytest.mark.parametrize("scaling", ["mean", "sum"])
@pytest.mark.parametrize("penalise_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_is_the_documented_one_and_stationary(
    method, scaling, penalise_intercept, weighted
):
    X, y, _ = make(n_labeled=10)
    s = np.linspace(0.2, 2.0, len(y)) if weighted else None
    clf = TransductiveSVMClassifier(
        0.05,
        method=method,
        unlabeled_weight=0.7,
        scaling=scaling,
        penalise_intercept=penalise_intercept,
    ).fit(X, y, s)
    value, target, weights = transductive_objective(clf, X, y, s)
    assert clf.converged_
    assert clf.objective_ == pytest.approx(value, rel=1e-10)
    pull = weights * np.maximum(0.0, 1.0 - target * clf.decision_function(X)) * target
    size = np.abs(X).T @ np.abs(pull)
    np.testing.assert_allclose((0.05 * clf.coef_[0] - X.T @ pull) / size, 0.0, atol=1e-5)


@every_method
def test_no_exchange_of_two_labels_within_the_margin_lowers_the_loss(method):
    X, y, _ = make(n=80, n_labeled=6)
    clf = TransductiveSVMClassifier(method=method).fit(X, y)
    scores, positive = clf.decision_function(X[y < 0]), clf.labels_ == 1
    up, down = scores[positive & (scores < 1.0)], scores[~positive & (scores > -1.0)]
    assert len(up)
    assert len(down)
    assert up.min() >= down.max()


@every_method
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("options", [{}, {"scaling": "sum"}, {"max_switches": 1}], ids=repr)
def test_objective_never_increases_within_a_stage(method, seed, options):
    X, y, _ = clusters(seed, n=300, d=20, gap=2.0, n_labeled=10)
    clf = TransductiveSVMClassifier(method=method, **options).fit(X, y)
    stages = np.split(clf.history_[:, 1], np.flatnonzero(np.diff(clf.history_[:, 0])) + 1)
    for values in stages:
        assert np.all(np.diff(values) <= 1e-11 * np.abs(values[:-1]))
    assert len(clf.history_) > len(stages) + 3  # or there would be little to see
    assert clf.objective_ == pytest.approx(clf.history_[-1, 1], rel=1e-12)


def test_schedule_of_svmlin():
    X, y, _ = make(n_labeled=10)
    clf = TransductiveSVMClassifier(unlabeled_weight=0.3).fit(X, y)
    weights = np.unique(clf.history_[:, 0])
    assert weights[0] == 1e-5
    assert weights[-1] == 0.3
    np.testing.assert_allclose(weights[1:-1] / weights[:-2], 1.5)
    assert weights[-1] / weights[-2] <= 1.5
    tiny = TransductiveSVMClassifier(unlabeled_weight=1e-6).fit(X, y)
    assert np.unique(tiny.history_[:, 0]).tolist() == [1e-6]


def test_temperatures_fall_to_hard_labels():
    X, y, _ = make(n_labeled=10)
    temperatures = TransductiveSVMClassifier(method="annealing").fit(X, y).history_[:, 0]
    stages = np.unique(temperatures)[::-1]
    assert stages[0] == 10.0
    np.testing.assert_allclose(stages[1:-1] / stages[:-2], 1.0 / 1.5)
    assert stages[-1] == 0.0
    assert np.all(np.diff(temperatures) <= 0.0)


def test_vanishing_weight_is_the_supervised_machine():
    X, y, _ = make()
    clf = TransductiveSVMClassifier(unlabeled_weight=1e-12).fit(X, y)
    supervised = L2SVMClassifier(0.1, scaling="mean").fit(X, y)
    np.testing.assert_allclose(clf.coef_, supervised.coef_, rtol=1e-9)
    np.testing.assert_array_equal(clf.supervised_.coef_, supervised.coef_)
    assert type(clf.supervised_) is L2SVMClassifier


def test_all_labelings_by_hand():
    """Ten unlabeled rows: the best of all 252 balanced labelings is found."""
    X, y, truth = clusters(1, n=12, n_labeled=2)
    best = np.inf
    for positive in itertools.combinations(range(10), 5):
        labels = np.isin(np.arange(10), positive).astype(int)
        s = np.where(y < 0, 1.0 / 10.0, 1.0 / 2.0)
        machine = L2SVMClassifier(0.1).fit(X, np.append(y[:2], labels), s)
        best = min(best, machine.objective_)
    for method in ("switching", "annealing"):
        clf = TransductiveSVMClassifier(method=method).fit(X, y)
        assert clf.objective_ == pytest.approx(best, rel=1e-9)
        assert clf.labels_.tolist() == truth[2:].tolist()


# Where the assumption holds, and where it fails


@every_method
@pytest.mark.parametrize("seed", range(5))
def test_reaches_the_oracle_on_separated_gaussians_with_four_labels(method, seed):
    X, y, truth = clusters(seed, d=5, gap=8.0)
    clf = TransductiveSVMClassifier(method=method).fit(X, y)
    oracle = L2SVMClassifier(0.1, scaling="mean").fit(X, truth)
    X_new, _, truth_new = clusters(100 + seed, n=2000, d=5, gap=8.0)
    assert clf.score(X_new, truth_new) >= oracle.score(X_new, truth_new)
    np.testing.assert_array_equal(clf.labels_, truth[y < 0])


@every_method
def test_better_than_supervised_where_classes_are_clusters(method):
    clf = TransductiveSVMClassifier(method=method)
    supervised, transductive = errors(clf, lambda seed: clusters(seed, d=5, gap=5.0), 6)
    assert transductive < 0.5 * supervised


@every_method
def test_worse_than_supervised_where_clusters_are_not_the_classes(method):
    supervised, transductive = errors(TransductiveSVMClassifier(method=method), raw_units, 4)
    assert transductive > supervised + 0.02


@every_method
def test_worse_than_supervised_where_the_share_is_wrong(method):
    supervised, transductive = errors(TransductiveSVMClassifier(method=method), rare_class, 4)
    assert supervised < 0.1
    assert transductive > 0.2
    # It is the share: with the right one, the clusters help.
    clf = TransductiveSVMClassifier(method=method, positive_fraction=0.1)
    assert errors(clf, rare_class, 4)[1] < supervised


# Scales


@every_method
@pytest.mark.parametrize("penalise_intercept", [False, True])
def test_measurements_in_raw_units(method, penalise_intercept):
    """What SVMlin answers with NaN."""
    for seed in range(2):
        X, y, truth = raw_units(seed)
        clf = TransductiveSVMClassifier(method=method, penalise_intercept=penalise_intercept)
        clf.fit(X, y)
        assert clf.converged_
        assert np.isfinite(clf.coef_).all()
        assert np.isfinite(clf.history_).all()
        assert clf.score(X, truth) > 0.7
        value = transductive_objective(clf, X, y)[0]
        assert clf.objective_ == pytest.approx(value, rel=1e-9)


@every_method
def test_scales_from_tiny_to_huge(method):
    for seed in range(5):
        X, y, _ = make(n=100, d=10, n_labeled=12, seed=seed)
        X *= 10.0 ** np.random.default_rng(seed).integers(-8, 9, 10)
        clf = TransductiveSVMClassifier(method=method).fit(X, y)
        assert clf.converged_
        assert np.isfinite(clf.coef_).all()


# The share of positive rows


@every_method
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.25, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("n_unlabeled", [1, 3, 10, 61])
def test_share_of_positive_rows(method, fraction, n_unlabeled):
    X, y, _ = make(n=10 + n_unlabeled, n_labeled=10)
    clf = TransductiveSVMClassifier(positive_fraction=fraction, method=method).fit(X, y)
    n_positive = np.count_nonzero(clf.labels_ == 1)
    exact = fraction * n_unlabeled
    assert np.floor(exact) <= n_positive <= np.ceil(exact)
    assert clf.converged_


@every_method
@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_all_rows_of_one_class(method, fraction):
    X, y, _ = make(n_labeled=20)
    clf = TransductiveSVMClassifier(positive_fraction=fraction, method=method).fit(X, y)
    s = np.where(y < 0, 1.0 / 100.0, 1.0 / 20.0)
    filled = L2SVMClassifier(0.1).fit(X, np.where(y < 0, int(fraction), y), s)
    np.testing.assert_allclose(clf.coef_, filled.coef_, rtol=1e-6)


@every_method
def test_default_share_is_that_of_the_labeled_rows(method):
    X, _, truth = make(n=100)
    y = np.where(np.arange(100) < 20, truth, -1)
    y[[1, 3, 5, 7, 9]] = -1  # five of fifteen remain
    clf = TransductiveSVMClassifier(method=method).fit(X, y)
    assert np.count_nonzero(clf.labels_ == 1) in (28, 29)
    exact = TransductiveSVMClassifier(positive_fraction=5 / 15, method=method).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, exact.coef_)


@pytest.mark.parametrize("side", [-1, 1])
def test_single_unlabeled_row_gets_the_label_of_its_score(side):
    X = np.array([[-2.0], [2.0], [3.0 * side]])
    clf = TransductiveSVMClassifier().fit(X, [0, 1, -1])
    assert clf.labels_.tolist() == [int(side > 0)]


@every_method
def test_all_unlabeled_scores_equal(method):
    X = np.r_[[[-1.0, 0.0], [1.0, 0.0]], np.tile([[0.3, 0.4]], (8, 1))]
    clf = TransductiveSVMClassifier(method=method).fit(X, [0, 1, *[-1] * 8])
    assert clf.converged_
    assert np.isfinite(clf.coef_).all()
    assert np.count_nonzero(clf.labels_ == 1) == 4


@every_method
def test_columns_without_information(method):
    X = np.zeros((10, 3))
    clf = TransductiveSVMClassifier(method=method).fit(X, [0, 1, *[-1] * 8])
    np.testing.assert_array_equal(clf.coef_, 0.0)
    assert np.isfinite(clf.intercept_).all()


def test_labels_by_shares_are_the_best():
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = rng.normal(size=7) + rng.normal()
        low, high = np.sort(rng.random(2))
        found = label_shares(scores, low, high)
        allowed = range(int(np.floor(7 * low)), int(np.ceil(7 * high)) + 1)
        loss = np.maximum(0, 1 - scores) ** 2, np.maximum(0, 1 + scores) ** 2
        losses = [
            np.where(np.isin(np.arange(7), chosen), *loss).sum()
            for k in allowed
            for chosen in itertools.combinations(range(7), k)
        ]
        assert np.where(found, *loss).sum() == pytest.approx(min(losses))


@pytest.mark.parametrize("temperature", [1e-8, 0.1, 1e3])
@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("share", [1e-3, 0.3, 0.999])
def test_probabilities_have_the_share_and_balance_cost_and_entropy(temperature, size, share):
    costs = size * np.random.default_rng(0).normal(size=1000)
    p = share_probabilities(costs, share, temperature)
    assert p.mean() == pytest.approx(share, abs=1e-3 if size / temperature > 1e5 else 1e-9)
    soft = (p > 1e-9) & (p < 1.0 - 1e-9)
    if soft.sum() > 1:  # costs and the slope of the entropy add up to a multiplier
        multiplier = costs[soft] + temperature * np.log(p[soft] / (1.0 - p[soft]))
        np.testing.assert_allclose(multiplier, multiplier[0], atol=1e-5 * temperature + 1e-9 * size)


def test_probabilities_are_the_minimum():
    rng = np.random.default_rng(1)
    costs = rng.normal(size=6)
    p = share_probabilities(costs, 0.4, 0.7)

    def free_energy(p):
        return costs @ p + 0.7 * np.sum(xlogy(p, p) + xlogy(1 - p, 1 - p))

    for _ in range(200):
        move = rng.normal(size=6) * 1e-3
        assert free_energy(p) < free_energy(p + move - move.mean())


# How it ends, and costs


def test_max_iter_is_heeded_with_a_warning():
    X, y, _ = make(n_labeled=6)
    with pytest.warns(ConvergenceWarning, match="max_iter=4"):
        clf = TransductiveSVMClassifier(max_iter=4).fit(X, y)
    assert not clf.converged_
    assert clf.n_iter_ == 4
    assert clf.objective_ == pytest.approx(transductive_objective(clf, X, y)[0], rel=1e-10)


def test_max_switches_limits_the_pairs_of_a_round():
    X, y, _ = clusters(0, n=1000, d=20, gap=2.0, n_labeled=10)
    many = TransductiveSVMClassifier().fit(X, y)
    few = TransductiveSVMClassifier(max_switches=1).fit(X, y)
    assert TransductiveSVMClassifier(max_switches=True).fit(X, y).n_switches_ == few.n_switches_
    n_stages = len(np.unique(few.history_[:, 0]))
    assert few.n_switches_ == len(few.history_) - n_stages
    assert many.n_switches_ > len(many.history_) - n_stages


@every_method
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_weight_zero_is_as_good_as_absent(method, container):
    X, y, _ = make(n_labeled=20)
    dropped = [0, 7, 40, 41, 119]
    s = np.ones(120)
    s[dropped] = 0.0
    wild = X.copy()
    wild[dropped] *= 1e150
    clf = TransductiveSVMClassifier(method=method).fit(container(wild), y, s)
    kept = np.setdiff1d(np.arange(120), dropped)
    reference = TransductiveSVMClassifier(method=method).fit(container(X[kept]), y[kept])
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-6)
    assert clf.labels_.shape == (100,)
    counted = np.isin(np.flatnonzero(y < 0), kept)
    np.testing.assert_array_equal(clf.labels_[counted], reference.labels_)
    ignored = np.flatnonzero(y < 0)[~counted]
    np.testing.assert_array_equal(clf.labels_[~counted], clf.predict(wild[ignored]))


@every_method
@pytest.mark.parametrize("n_labeled", [120, 30])
def test_no_unlabeled_rows(method, n_labeled):
    X, y, _ = make(n_labeled=n_labeled)
    s = (y >= 0).astype(float)
    clf = TransductiveSVMClassifier(method=method).fit(X, y, s)
    supervised = L2SVMClassifier(0.1, scaling="mean").fit(X, y)
    np.testing.assert_allclose(clf.coef_, supervised.coef_, rtol=1e-9)
    np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)
    assert clf.objective_ == pytest.approx(supervised.objective_, rel=1e-12)
    assert clf.history_.shape == (0, 2)
    assert clf.labels_.shape == (120 - n_labeled,)
    assert clf.n_switches_ == 0


def test_sample_weight_of_unlabeled_rows_weighs_their_loss():
    X, y, _ = make(n_labeled=10)
    s = np.where(np.arange(120) < 60, 1.0, 3.0)
    clf = TransductiveSVMClassifier().fit(X, y, s)
    assert clf.objective_ == pytest.approx(transductive_objective(clf, X, y, s)[0], rel=1e-10)
    assert not np.allclose(clf.coef_, TransductiveSVMClassifier().fit(X, y).coef_)
    # All weights of one kind times the same number is the same mean.
    scaled = TransductiveSVMClassifier().fit(X, y, np.where(y < 0, 5.0 * s, 2.0 * s))
    np.testing.assert_allclose(scaled.coef_, clf.coef_, rtol=1e-6)
