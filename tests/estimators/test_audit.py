"""Audits against brute force over all labelings, and for real classifiers."""

import dataclasses
import json
from fractions import Fraction
from inspect import signature
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC

import neverworse
from neverworse import (
    Audit,
    LeastSquaresClassifier,
    ProjectedLeastSquaresClassifier,
    audit,
)
from neverworse.model_selection import StratifiedLabeledKFold

has_multiclass_brier = "scale_by_half" in signature(brier_score_loss).parameters


def random_proba(rng, n, n_classes):
    return rng.dirichlet(np.full(n_classes, 0.7), n)


def random_labels(rng, n, n_classes, share=0.4):
    """Some labels, each class at least once if there is room, and -1 for the others."""
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    return np.where((np.arange(n) < n_classes) | (rng.random(n) < share), y, -1)


def data(n=120, d=4, n_labeled=24, n_classes=2, seed=0, shift=1.0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, d))
    X[:, : min(d, n_classes)] += shift * np.eye(n_classes)[truth, :d]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


# Exact references


def fractions(array):
    return [[Fraction(float(v)) for v in row] for row in np.atleast_2d(np.asarray(array).T).T]


def one_hot(n_classes):
    """The coding of labels: one number for two classes, one for each of several."""
    if n_classes == 2:
        return [[Fraction(0)], [Fraction(1)]]
    return [[Fraction(int(i == k)) for i in range(n_classes)] for k in range(n_classes)]


def of_class(proba):
    return proba[:, 1] if proba.ndim > 1 and proba.shape[1] == 2 else proba


def row_difference(f, g, label):
    return sum((a - q) ** 2 - (b - q) ** 2 for a, b, q in zip(f, g, label, strict=True))


def enumerate_differences(f, g, y, weights, choices):
    """Sums of the loss difference for all labelings, in rational arithmetic."""
    f, g, s = fractions(of_class(f)), fractions(of_class(g)), [Fraction(float(w)) for w in weights]
    coding = one_hot(2 if len(f[0]) == 1 else len(f[0]))
    possible = [
        choices[j]
        if choices is not None and y[j] == -1
        else (coding if y[j] == -1 else [coding[y[j]]])
        for j in range(len(y))
    ]
    per_row = [
        [s[j] * row_difference(f[j], g[j], label) for label in possible[j]] for j in range(len(y))
    ]
    return [sum(terms) for terms in product(*per_row)]


def check_exact(found, sums, weights, tight=1e-11):
    """The numbers contain the truth, and nothing but the truth up to rounding."""
    total = sum(Fraction(float(w)) for w in weights)
    assert Fraction(found.worst_case_sum) >= max(sums)
    assert Fraction(found.best_case_sum) <= min(sums)
    assert Fraction(found.worst_case) >= max(sums) / total
    assert Fraction(found.best_case) <= min(sums) / total
    assert found.worst_case_sum == pytest.approx(float(max(sums)), abs=tight)
    assert found.best_case_sum == pytest.approx(float(min(sums)), abs=tight)
    assert found.worst_case == pytest.approx(float(max(sums) / total), abs=tight)
    assert found.best_case == pytest.approx(float(min(sums) / total), abs=tight)
    assert found.total_weight == pytest.approx(float(total))


def linear_program(f, g, y, weights, bounds=None, shares=None):
    """Largest and smallest sum over soft labels, as a linear program in all of them."""
    n, n_classes = f.shape
    s = np.ones(n) if weights is None else weights
    if n_classes == 2:  # the loss of the second class only
        constant, cost = s * (f[:, 1] ** 2 - g[:, 1] ** 2), np.zeros((n, 2))
        cost[:, 1] = -2 * s * (f[:, 1] - g[:, 1])
    else:
        constant, cost = s * (f**2 - g**2).sum(axis=1), -2 * s[:, None] * (f - g)
    box = np.tile([0.0, 1.0], (n, n_classes, 1)) if bounds is None else bounds.copy()
    box = np.where(np.isnan(box), [0.0, 1.0], box)
    labeled = y != -1
    box[labeled] = np.eye(n_classes)[y[labeled]][:, :, None]
    A_ub = b_ub = None
    if shares is not None:
        free = np.where(labeled, 0.0, s)
        total = sparse.kron(free[None, :], sparse.eye_array(n_classes))
        low, high = np.asarray(shares).T * free.sum()
        A_ub, b_ub = sparse.vstack([total, -total]), np.concatenate([high, -low]) + 1e-13
    extremes = []
    for sign in (-1.0, 1.0):
        solved = optimize.linprog(
            sign * cost.ravel(),
            A_ub=A_ub,
            b_ub=b_ub,
            A_eq=sparse.kron(sparse.eye_array(n), np.ones((1, n_classes))),
            b_eq=np.ones(n),
            bounds=box.reshape(-1, 2),
        )
        assert solved.status == 0, solved.message
        extremes.append(constant.sum() + sign * solved.fun)
    return extremes


# Numbers


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_all_labelings(n_classes, weighted, seed):
    rng = np.random.default_rng(seed)
    n = {2: 9, 3: 7, 4: 6}[n_classes]
    f, g = random_proba(rng, n, n_classes), random_proba(rng, n, n_classes)
    y = random_labels(rng, n, n_classes, share=0.2)
    weights = rng.uniform(0.1, 5.0, n) if weighted else None
    s = weights if weighted else np.ones(n)
    found = audit(f, g, None, y, response="predict_proba", sample_weight=weights)
    check_exact(found, enumerate_differences(f, g, y, s, None), s)
    assert found.n_labeled == np.sum(y != -1)
    assert found.n_unlabeled == np.sum(y == -1)
    labeled = y != -1
    known = enumerate_differences(f[labeled], g[labeled], y[labeled], s[labeled], None)
    assert found.known_difference == pytest.approx(float(known[0]) / s[labeled].sum(), abs=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_scores_far_from_the_coding(seed):
    """Scores may be anything; for them, the two can be certain to differ."""
    rng = np.random.default_rng(seed)
    for n_classes, n in ((2, 8), (3, 6)):
        shape = n if n_classes == 2 else (n, n_classes)
        f, g = (
            rng.normal(0.5, 3.0, shape),
            rng.normal(0.5, 3.0, shape) * 10.0 ** rng.integers(-8, 8),
        )
        y = random_labels(rng, n, n_classes)
        sums = enumerate_differences(f, g, y, np.ones(n), None)
        found = audit(f, g, None, y)
        size = float(np.sum((np.abs(f) + np.abs(g) + 1) ** 2))
        check_exact(found, sums, np.ones(n), tight=1e-13 * size)
        assert found.response == "score"


@pytest.mark.parametrize("seed", range(10))
def test_bounds_are_corners_of_boxes(seed):
    rng = np.random.default_rng(seed)
    n = 8
    f, g = random_proba(rng, n, 2), random_proba(rng, n, 2)
    y = random_labels(rng, n, 2, share=0.2)
    bounds = np.sort(np.round(rng.random((n, 2)), 2), axis=1)
    bounds[y != -1] = np.nan
    choices = [
        [[Fraction(float(b))] for b in pair] if y[j] == -1 else None
        for j, pair in enumerate(bounds)
    ]
    found = audit(f, g, None, y, label_bounds=bounds)
    check_exact(found, enumerate_differences(f, g, y, np.ones(n), choices), np.ones(n))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("prior", [False, True])
def test_bounds_and_priors_against_a_linear_program(n_classes, weighted, bounded, prior):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n = 30
        f, g = random_proba(rng, n, n_classes), random_proba(rng, n, n_classes)
        y = random_labels(rng, n, n_classes)
        weights = rng.uniform(0.1, 5.0, n) if weighted else None
        truth = random_proba(rng, n, n_classes)
        bounds = shares = None
        if bounded:
            bounds = np.stack([truth - 0.3, truth + 0.3], axis=-1).clip(0.0, 1.0)
            bounds[rng.random(n) < 0.3] = np.nan
            bounds[y != -1] = np.nan
        if prior:
            s = np.where(y == -1, 1.0 if weights is None else weights, 0.0)
            middle = s @ truth / s.sum()
            shares = np.column_stack([middle - 0.02, middle + 0.05]).clip(0.0, 1.0)
        worst, best = linear_program(f, g, y, weights, bounds, shares)
        found = audit(
            f,
            g,
            None,
            y,
            sample_weight=weights,
            label_bounds=bounds,
            class_prior={k: tuple(pair) for k, pair in enumerate(shares)} if prior else None,
        )
        assert found.worst_case_sum == pytest.approx(worst, abs=1e-9)
        assert found.best_case_sum == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_a_prior_is_attained_by_whole_labels(seed):
    """With unit weights, the worst labels of two classes for a whole number of rows are whole."""
    rng = np.random.default_rng(seed)
    n_unlabeled, n_positive = 9, int(rng.integers(0, 10))
    f, g = rng.random(n_unlabeled + 2), rng.random(n_unlabeled + 2)
    y = np.r_[0, 1, np.full(n_unlabeled, -1)]
    sums = []
    for chosen in product([0, 1], repeat=n_unlabeled):
        if sum(chosen) == n_positive:
            q = np.r_[0, 1, chosen]
            sums.append(np.sum((f - q) ** 2 - (g - q) ** 2))
    found = audit(f, g, None, y, class_prior=n_positive / n_unlabeled)
    assert found.worst_case_sum == pytest.approx(max(sums), abs=1e-11)
    assert found.best_case_sum == pytest.approx(min(sums), abs=1e-11)


@pytest.mark.parametrize("seed", range(10))
def test_rounding_is_outwards_where_digits_are_lost(seed):
    """Large scores that nearly agree: the difference is much smaller than what is added up."""
    rng = np.random.default_rng(seed)
    n = 8
    g = rng.normal(size=n) * 10.0 ** rng.integers(0, 9, n)
    f = g * (1.0 + 1e-14 * rng.integers(-9, 10, n))
    y = random_labels(rng, n, 2)
    s = rng.uniform(0.1, 1.0, n)
    sums = enumerate_differences(f, g, y, s, None)
    found = audit(f, g, None, y, sample_weight=s)
    total = sum(map(Fraction, s))
    assert Fraction(found.worst_case) >= max(sums) / total
    assert Fraction(found.best_case) <= min(sums) / total
    assert Fraction(found.worst_case_sum) >= max(sums)
    assert Fraction(found.best_case_sum) <= min(sums)


@pytest.mark.parametrize("size", [1e-150, 1e-170, 1e-200, 1e-320])
@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0], [1e50, 1.0, 1e-50]])
def test_squares_that_vanish_prove_nothing(size, weights):
    y, baseline, candidate = [0, 1, 0], [0.0, 1.0, 0.0], [0.0, 1.0, size]
    assert not audit(candidate, baseline, None, y, sample_weight=weights).holds
    assert audit(baseline, baseline, None, y, sample_weight=weights).holds


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_brier_scores_of_scikit_learn_lie_between(n_classes, weighted):
    if n_classes > 2 and not has_multiclass_brier:
        pytest.skip("this scikit-learn has no Brier score for several classes")
    more = {"labels": np.arange(n_classes), "scale_by_half": False} if n_classes > 2 else {}
    rng = np.random.default_rng(0)
    n = 40
    f, g = random_proba(rng, n, n_classes), random_proba(rng, n, n_classes)
    y = random_labels(rng, n, n_classes)
    weights = rng.uniform(0.0, 2.0, n) if weighted else None
    found = audit(f, g, None, y, response="predict_proba", sample_weight=weights)
    for _ in range(50):
        truth = np.where(y == -1, rng.integers(0, n_classes, n), y)
        of_f, of_g = (
            brier_score_loss(truth, of_class(p), sample_weight=weights, **more) for p in (f, g)
        )
        assert found.best_case <= of_f - of_g <= found.worst_case
        assert found.candidate_loss[0] <= of_f <= found.candidate_loss[1]
        assert found.baseline_loss[0] <= of_g <= found.baseline_loss[1]
    known = audit(f, g, None, truth, sample_weight=weights)
    assert known.worst_case == pytest.approx(of_f - of_g, abs=1e-12)
    assert known.best_case == pytest.approx(of_f - of_g, abs=1e-12)
    assert known.known_difference == pytest.approx(of_f - of_g, abs=1e-12)
    assert known.candidate_loss == pytest.approx((of_f, of_f), abs=1e-12)
    assert known.baseline_loss == pytest.approx((of_g, of_g), abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_loss_ranges_are_attained(n_classes):
    rng = np.random.default_rng(1)
    n = 6
    f, g = random_proba(rng, n, n_classes), random_proba(rng, n, n_classes)
    y = random_labels(rng, n, n_classes, share=0.0)
    found = audit(f, g, None, y)
    for scores, (low, high) in ((f, found.candidate_loss), (g, found.baseline_loss)):
        hard = [
            np.mean(
                [
                    np.sum((np.atleast_1d(of_class(scores)[j]) - np.array(label, float)) ** 2)
                    for j, label in enumerate(labels)
                ]
            )
            for labels in product(
                *[
                    one_hot(n_classes) if y[j] == -1 else [one_hot(n_classes)[y[j]]]
                    for j in range(n)
                ]
            )
        ]
        assert high == pytest.approx(max(hard), abs=1e-12)
        assert low <= min(hard) + 1e-12  # soft labels may come nearer


def test_monotone_in_what_is_known():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n_classes = int(rng.integers(2, 5))
        n = 40
        f, g = random_proba(rng, n, n_classes), random_proba(rng, n, n_classes)
        truth = rng.integers(0, n_classes, n)
        truth[:n_classes] = np.arange(n_classes)
        few = np.where(np.arange(n) < n_classes + 3, truth, -1)
        more = np.where(np.arange(n) < n_classes + 12, truth, -1)
        exact = np.eye(n_classes)[truth]
        wide = np.stack([exact - 0.8, exact + 0.8], axis=-1).clip(0.0, 1.0)
        narrow = np.stack([exact - 0.5, exact + 0.5], axis=-1).clip(0.0, 1.0)
        share = np.mean(truth[few == -1] == 1)

        def interval(y=few, f=f, g=g, **known):
            found = audit(f, g, None, y, **known)
            assert found.best_case <= found.worst_case
            return found.best_case, found.worst_case

        chains = [
            [{}, {"y": more}, {"y": truth}],
            [{}, {"label_bounds": wide}, {"label_bounds": narrow}, {"y": truth}],
            [
                {},
                {"class_prior": {1: (max(0.0, share - 0.2), min(1.0, share + 0.2))}},
                {"class_prior": {1: share}},
                {"class_prior": {1: share}, "label_bounds": wide},
                {"y": truth},
            ],
            [{}, {"class_prior": "confidence"}],
            [
                {"class_prior": "confidence", "prior_level": 0.99},
                {"class_prior": "confidence", "prior_level": 0.8},
            ],
        ]
        for chain in chains:
            intervals = [interval(**known) for known in chain]
            for (low, high), (inner_low, inner_high) in pairwise(intervals):
                assert low - 1e-12 <= inner_low <= inner_high <= high + 1e-12


def test_exchanged_roles():
    rng = np.random.default_rng(2)
    f, g = random_proba(rng, 30, 3), random_proba(rng, 30, 3)
    y = random_labels(rng, 30, 3)
    one, other = audit(f, g, None, y), audit(g, f, None, y)
    assert one.worst_case == pytest.approx(-other.best_case, abs=1e-14)
    assert one.best_case == pytest.approx(-other.worst_case, abs=1e-14)
    assert one.candidate_loss == pytest.approx(other.baseline_loss)


def test_equal_scores_have_no_difference():
    y = [0, 1, -1, -1]
    found = audit([0.1, 0.9, 0.3, 0.7], [0.1, 0.9, 0.3, 0.7], None, y)
    assert found.worst_case == found.best_case == 0.0
    assert str(found.best_case) == "0.0"
    assert found.holds
    assert found.summary().startswith("No difference: on these 4 rows, ")


def test_rows_without_weight_are_absent():
    rng = np.random.default_rng(3)
    for n_classes in (2, 3):
        f, g = random_proba(rng, 20, n_classes), random_proba(rng, 20, n_classes)
        y = random_labels(rng, 20, n_classes)
        weights = np.where(np.arange(20) % 4 == 3, 0.0, 1.0)
        weights[:n_classes] = 1.0
        kept = weights > 0
        f[~kept], g[~kept, 0] = np.nan, np.inf
        found = audit(f, g, None, y, response="predict_proba", sample_weight=weights)
        expected = audit(f[kept], g[kept], None, y[kept], response="predict_proba")
        for name in ("worst_case", "best_case", "known_difference", "candidate_loss"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-14)
        assert found.n_labeled == expected.n_labeled
        assert found.n_unlabeled == expected.n_unlabeled


def test_many_rows():
    rng = np.random.default_rng(4)
    n = 100_000
    for n_classes in (2, 3):
        f, g = random_proba(rng, n, n_classes), random_proba(rng, n, n_classes)
        y = random_labels(rng, n, n_classes, share=0.01)
        found = audit(f, g, None, y)
        terms = np.array(
            [
                np.sum((f[:, 1:] - q) ** 2 - (g[:, 1:] - q) ** 2, axis=1)
                if n_classes == 2
                else np.sum((f - q) ** 2 - (g - q) ** 2, axis=1)
                for q in (np.eye(n_classes) if n_classes > 2 else np.array([[0.0], [1.0]]))
            ]
        )
        known = np.where(y == -1, 0.0, terms[np.maximum(y, 0), np.arange(n)])
        worst = np.where(y == -1, terms.max(axis=0), known).mean()
        best = np.where(y == -1, terms.min(axis=0), known).mean()
        assert found.worst_case == pytest.approx(worst, rel=1e-10)
        assert found.best_case == pytest.approx(best, rel=1e-10)
        assert found.worst_case > worst - 1e-15


# The certificate of our own classifiers


CERTIFIED = {
    "binary": {},
    "multiclass": {"n_classes": 3},
    "weights": {"weighted": True},
    "multiclass, weights": {"n_classes": 4, "weighted": True},
    "bounds": {"bounded": True},
    "multiclass, bounds": {"n_classes": 3, "bounded": True},
    "prior": {"class_prior": (0.4, 0.6)},
    "confidence": {"class_prior": "confidence"},
    "multiclass, prior": {"n_classes": 3, "class_prior": {0: (0.2, 0.4), 2: (0.3, 0.5)}},
    "everything": {
        "n_classes": 3,
        "class_prior": {0: (0.2, 0.5)},
        "bounded": True,
        "weighted": True,
    },
}


@pytest.mark.parametrize("case", CERTIFIED)
@pytest.mark.parametrize("distance", ["all", "labeled"])
def test_scores_reproduce_the_certificate(case, distance):
    setting = {"n_classes": 2, "weighted": False, "bounded": False, "class_prior": None}
    setting |= CERTIFIED[case]
    n_classes, class_prior = setting["n_classes"], setting["class_prior"]
    X, y, truth = data(n=200, d=12, n_classes=n_classes, n_labeled=30)
    rng = np.random.default_rng(5)
    weights = rng.uniform(0.2, 2.0, len(y)) if setting["weighted"] else None
    bounds = None
    if setting["bounded"]:
        bounds = np.full((len(y), n_classes, 2), np.nan)
        exact = np.eye(n_classes)[truth]
        bounds[60:140] = np.stack([exact - 0.7, exact + 0.7], axis=-1).clip(0, 1)[60:140]
        bounds[140:150] = 1.0 / n_classes
        X = X * (1.0 + 4.0 * (y == -1)[:, None])  # scores so far out that no label explains them
    clf = ProjectedLeastSquaresClassifier(distance, alpha=0.0, class_prior=class_prior)
    clf.fit(X, y, sample_weight=weights, label_bounds=bounds)
    found = audit(
        clf,
        clf.supervised_,
        X,
        y,
        response="score",
        sample_weight=weights,
        label_bounds=bounds,
        class_prior=class_prior,
    )
    certificate = clf.certificate_
    assert abs(certificate.worst_case) > 1e-3
    assert found.worst_case_sum == pytest.approx(certificate.worst_case, rel=1e-7, abs=1e-8)
    assert found.best_case_sum == pytest.approx(certificate.best_case, rel=1e-7, abs=1e-8)
    assert found.holds == certificate.holds
    assert found.assumptions == certificate.assumptions
    assert (found.n_labeled, found.n_unlabeled) == (certificate.n_labeled, certificate.n_unlabeled)
    low, high = np.array(found.baseline_loss) * found.total_weight
    assert (low, high) == pytest.approx(certificate.supervised_loss, rel=1e-9)


def test_scores_inside_a_pipeline_and_a_search():
    X, y, _ = data(n=200, d=12)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0)
    pipe = make_pipeline(StandardScaler(), clf).fit(X, y)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), ProjectedLeastSquaresClassifier()),
        {"projectedleastsquaresclassifier__alpha": [0.0]},
        cv=StratifiedLabeledKFold(3),
    ).fit(X, y)
    baseline = make_pipeline(StandardScaler().fit(X), clf.supervised_)
    for candidate in (pipe, search):
        found = audit(candidate, baseline, X, y, response="score")
        assert found.response == "score"
        assert found.holds
        assert found.worst_case_sum == pytest.approx(clf.certificate_.worst_case, rel=1e-8)


def test_probabilities_are_not_worse_than_the_scores_of_the_baseline():
    """Clipped scores are nearer to every label, so the certificate carries over to them."""
    X, y, _ = data(n=200, d=12)
    clf = ProjectedLeastSquaresClassifier().fit(X, y)
    scores = clf.supervised_.decision_function(X) + 0.5
    found = audit(clf.predict_proba(X)[:, 1], scores, X, y)
    assert found.worst_case_sum <= clf.certificate_.worst_case + 1e-9
    assert found.holds


# Classifiers of scikit-learn


def _estimators():
    base = LogisticRegression()
    yield "self-training", SelfTrainingClassifier(LogisticRegression()), True
    yield "label spreading", LabelSpreading(kernel="knn", n_neighbors=7), True
    yield "projected", ProjectedLeastSquaresClassifier(), True
    yield "boosting", HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=3), False
    yield "calibrated", CalibratedClassifierCV(LinearSVC(), cv=2), False
    yield "forest", RandomForestClassifier(10, random_state=0), False
    yield "naive Bayes", GaussianNB(), False
    yield "pipeline", make_pipeline(StandardScaler(), base), False
    yield (
        "semi-supervised pipeline",
        make_pipeline(StandardScaler(), SelfTrainingClassifier(GaussianNB())),
        True,
    )
    yield "search", GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3, 5]}, cv=2), False


@pytest.mark.parametrize(
    ("estimator", "takes_unlabeled"),
    [pytest.param(e, u, id=name) for name, e, u in _estimators()],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers_of_all_kinds(estimator, takes_unlabeled, n_classes):
    X, y, truth = data(n_classes=n_classes, n_labeled=30)
    rows = slice(None) if takes_unlabeled else y != -1
    candidate = estimator.fit(X[rows], y[rows])
    baseline = LogisticRegression().fit(X[y != -1], y[y != -1])
    found = audit(candidate, baseline, X, y)
    assert found.response == "predict_proba"
    assert found.assumptions.task == ("binary" if n_classes == 2 else "multiclass")
    losses = [
        np.mean(((p - np.eye(n_classes)[truth])[:, 1 if n_classes == 2 else slice(None)]) ** 2)
        * (1 if n_classes == 2 else n_classes)
        for p in (candidate.predict_proba(X), baseline.predict_proba(X))
    ]
    assert found.best_case < losses[0] - losses[1] < found.worst_case
    assert found.candidate_loss[0] < losses[0] < found.candidate_loss[1]
    # Reproduced from plain arrays, and by exchanging nothing but the containers.
    same = audit(
        candidate.predict_proba(X), baseline.predict_proba(X), None, y, response="predict_proba"
    )
    assert same == found


def test_strings_and_data_frames():
    X, y, truth = data()
    names = np.array(["no", "yes"], dtype=object)
    labels = np.where(y == -1, None, names[truth])
    frame = pd.DataFrame(X, columns=list("abcd"))
    candidate = ProjectedLeastSquaresClassifier().fit(frame, labels)
    baseline = LogisticRegression().fit(frame[y != -1], labels[y != -1].astype(str))
    found = audit(candidate, baseline, frame, labels)
    expected = audit(candidate.predict_proba(frame), baseline.predict_proba(frame), None, y)
    assert found.worst_case == expected.worst_case
    assert found.best_case == expected.best_case
    series = audit(candidate, baseline, frame, pd.Series(labels, dtype="category"))
    assert series == found


def test_text_and_sparse_rows():
    texts = ["good fine", "bad poor", "fine nice", "poor awful", "nice good", "awful bad"] * 4
    y = np.array([1, 0, 1, 0, -1, -1] * 4)
    candidate = make_pipeline(TfidfVectorizer(), SelfTrainingClassifier(LogisticRegression())).fit(
        texts, y
    )
    known = [t for t, label in zip(texts, y, strict=True) if label != -1]
    baseline = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(known, y[y != -1])
    found = audit(candidate, baseline, texts, y)
    assert found.n_unlabeled == 8
    X = TfidfVectorizer().fit_transform(texts)
    one = ProjectedLeastSquaresClassifier(alpha=0.1).fit(X, y)
    assert audit(one, one.supervised_, X, y).n_labeled == 16


class Reversed(ClassifierMixin, BaseEstimator):
    """A classifier whose classes are not in sorted order."""

    def __init__(self, inner=None):
        self.inner = inner

    def fit(self, X, y):
        self.inner_ = self.inner.fit(X, y)
        self.classes_ = self.inner_.classes_[::-1]
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)[:, ::-1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_order_of_classes_is_respected(n_classes):
    X, y, _ = data(n_classes=n_classes, n_labeled=30)
    labeled = y != -1
    plain = GaussianNB().fit(X[labeled], y[labeled])
    turned = Reversed(GaussianNB()).fit(X[labeled], y[labeled])
    baseline = LogisticRegression().fit(X[labeled], y[labeled])
    assert audit(turned, baseline, X, y) == audit(plain, baseline, X, y)
    assert audit(baseline, turned, X, y) == audit(baseline, plain, X, y)
    assert audit(plain, turned, X, y).worst_case == 0.0


class Duck:
    """No estimator of scikit-learn at all."""

    def __init__(self, classes, proba):
        self.classes_, self._proba = classes, proba

    def predict(self, X):
        raise NotImplementedError

    def predict_proba(self, X):
        return self._proba


def test_ducks():
    rng = np.random.default_rng(6)
    f, g = random_proba(rng, 10, 2), random_proba(rng, 10, 2)
    y = random_labels(rng, 10, 2)
    X = np.zeros((10, 1))
    found = audit(Duck([0, 1], f), Duck(np.array([0, 1]), g.astype(np.float32)), X, y)
    assert found.worst_case == pytest.approx(audit(f, g, None, y).worst_case, abs=1e-6)
    assert audit(Duck([0, 1], f), g, X, y).response == "predict_proba"


def test_classes_that_y_lacks():
    X, y, _ = data(n_classes=3, n_labeled=30)
    fitted = y != -1
    candidate = GaussianNB().fit(X[fitted], y[fitted])
    baseline = LogisticRegression().fit(X[fitted], y[fitted])
    f, g = candidate.predict_proba(X), baseline.predict_proba(X)
    for known in ([0, 2], [1], []):
        part = np.where(np.isin(y, known), y, -1)
        found = audit(candidate, baseline, X, part, missing_label=-1)
        worst, best = linear_program(f, g, part, None)
        assert found.worst_case_sum == pytest.approx(worst, abs=1e-10)
        assert found.best_case_sum == pytest.approx(best, abs=1e-10)
        assert found.n_labeled == np.sum(part != -1)
        assert (found.known_difference is None) == (not known)
    nothing = audit(candidate, baseline, X, np.full(len(y), -1), class_prior=[0.3, 0.3, 0.4])
    assert len(nothing.assumptions.class_prior) == 3
    # Counts of zero are counts: the confidence of a class without labels is a bound from above.
    part = np.where(np.isin(y, [0, 2]), y, -1)
    found = audit(candidate, baseline, X, part, class_prior="confidence")
    assert found.assumptions.class_prior[1][:2] == ("1", 0.0)


@pytest.mark.parametrize("nothing", [[-1] * 4, [None] * 4, [np.nan] * 4])
def test_no_labels_at_all(nothing):
    found = audit([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], None, nothing)
    assert found.n_labeled == 0
    assert found.known_difference is None
    assert "labeled rows alone" not in found.summary()
    json.dumps(found.to_dict())
    with pytest.raises(ValueError, match="counts the labeled rows of each class, but"):
        audit([0.1] * 4, [0.2] * 4, None, nothing, class_prior="confidence")


def test_markers_and_types_of_labels():
    X, y, truth = data()
    labeled = y != -1
    expected = None
    for marked in (
        y,
        np.where(labeled, y, np.nan),
        np.where(labeled, y, None),
        [int(v) if v >= 0 else None for v in y],
        pd.Series(y).replace(-1, pd.NA).astype("Int64"),
        np.ma.masked_array(truth, ~labeled),
    ):
        candidate = GaussianNB().fit(X[labeled], y[labeled])
        baseline = LogisticRegression().fit(X[labeled], y[labeled].astype(float))
        found = audit(candidate, baseline, X, marked)
        expected = expected or found
        assert found == expected
    signs = np.where(y == -1, np.nan, 2.0 * y - 1.0)
    one, two = (c().fit(X[labeled], signs[labeled]) for c in (GaussianNB, LogisticRegression))
    found = audit(one, two, X, signs, missing_label=np.nan)
    assert found.worst_case == expected.worst_case
    stars = audit(candidate, baseline, X, np.where(y == -1, 99, y), missing_label=99)
    assert stars == expected


# What cannot be audited


@pytest.fixture
def fitted():
    X, y, _ = data()
    labeled = y != -1
    return X, y, LogisticRegression().fit(X[labeled], y[labeled])


@pytest.mark.parametrize("other", [LinearSVC(), RidgeClassifier()])
@pytest.mark.parametrize("response", ["auto", "predict_proba", "score"])
def test_scores_without_a_coding(fitted, other, response):
    X, y, _ = fitted
    labeled = y != -1
    ours = ProjectedLeastSquaresClassifier().fit(X, y)
    other.fit(X[labeled], y[labeled])
    name = type(other).__name__
    match = rf"The baseline \({name}\) has no .*wrap .*CalibratedClassifierCV"
    with pytest.raises(ValueError, match=match + ".*arrays of scores on targets coded 0 and 1"):
        audit(ours, other, X, y, response=response)
    # What the message says is possible: the coding of RidgeClassifier is -1 and 1.
    scores = (other.decision_function(X) + 1.0) / 2.0
    found = audit(ours.decision_function(X) + 0.5, scores, X, y)
    assert found.best_case < found.worst_case
    assert audit(ours, scores, X, y, response="score").worst_case == found.worst_case


def test_response_score_of_foreign_classifiers(fitted):
    X, y, clf = fitted
    match = r"The candidate \(LogisticRegression\) has no decision_function that is known"
    with pytest.raises(ValueError, match=match + r".*response='predict_proba'"):
        audit(clf, clf, X, y, response="score")
    with pytest.raises(ValueError, match=r"response='proba' is unknown. Pass 'auto'"):
        audit(clf, clf, X, y, response="proba")


def test_different_classes(fitted):
    X, y, clf = fitted
    other = GaussianNB().fit(X, y)  # takes -1 for a class
    with pytest.raises(ValueError, match=r"candidate has the classes 0, 1, but .* has -1, 0, 1"):
        audit(clf, other, X, y)
    with pytest.raises(ValueError, match="-1 marks unlabeled rows in y, but is a class of"):
        audit(other, LogisticRegression().fit(X, y), X, y)
    strings = GaussianNB().fit(X, np.where(y == 1, "1", "0"))
    with pytest.raises(ValueError, match="classes 0, 1, but the baseline has '0', '1'"):
        audit(clf, strings, X, y)
    with pytest.raises(ValueError, match=r"not know: 2, 3. Their classes are 0, 1. Fit them"):
        audit(clf, clf, X, np.where(np.arange(len(y)) > 100, [2, 3] * 60, y))
    with pytest.raises(ValueError, match=r"not know: '0', '1'"):
        audit(clf, clf, X, np.array([None if v == -1 else str(v) for v in y], dtype=object))


def test_minus_one_as_a_class():
    X, y, _ = data(n_classes=3)
    y = y.copy()
    y[y == -1] = np.arange(np.sum(y == -1)) % 3
    one, two = (c().fit(X, y - 1) for c in (GaussianNB, LogisticRegression))
    with pytest.raises(ValueError, match=r"missing_label=np.nan if it is a class"):
        audit(one, two, X, y - 1)
    assert audit(one, two, X, y - 1, missing_label=np.nan).n_unlabeled == 0


def test_one_class_and_several_outputs(fitted):
    X, y, clf = fitted
    single = GaussianNB().fit(X, np.zeros(len(X), int))
    with pytest.raises(ValueError, match=r"\(GaussianNB\) has .* one class only"):
        audit(single, clf, X, y)
    both = MultiOutputClassifier(GaussianNB()).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=r"\(MultiOutputClassifier\) .* several outputs"):
        audit(both, clf, X, y)


@pytest.mark.parametrize(
    "unfitted",
    [
        LogisticRegression(),
        ProjectedLeastSquaresClassifier(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [1.0]}),
        SelfTrainingClassifier(LogisticRegression()),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_not_fitted(fitted, unfitted):
    X, y, clf = fitted
    for pair in ((unfitted, clf), (clf, unfitted)):
        with pytest.raises(NotFittedError):
            audit(*pair, X, y)


def test_what_is_no_classifier(fitted):
    X, y, clf = fitted
    with pytest.raises(TypeError, match="is a class, not an instance"):
        audit(LogisticRegression, clf, X, y)

    class Nothing:
        def predict(self, X):
            return X

    with pytest.raises(ValueError, match=r"\(Nothing\) has no classes_"):
        audit(Nothing(), clf, X, y)
    with pytest.raises(ValueError, match="is not an array of numbers"):
        audit("classifier", clf, X, y)
    with pytest.raises(ValueError, match="estimators, or arrays of scores"):
        audit(None, None, X, y)


def test_arrays_of_wrong_shapes(fitted):
    X, y, clf = fitted
    n = len(y)
    for wrong in (np.zeros(n - 1), np.zeros((n, 1)), np.full((n, 3), 1 / 3), np.zeros((n, 2, 1))):
        with pytest.raises(ValueError, match=rf"has scores of shape .*, but \({n}, 2\) is needed"):
            audit(clf, wrong, X, y)
    with pytest.raises(ValueError, match=r"have the shapes \(120,\) and \(120, 3\)"):
        audit(np.zeros(n), np.zeros((n, 3)), X, y)
    three = np.full((n, 3), 1 / 3)
    with pytest.raises(ValueError, match=r"classes in y \(0, 1\) .* shapes \(120, 3\)"):
        audit(three, three, X, y)
    with pytest.raises(ValueError, match=r"classes in y \('a'\) .* shapes \(3,\)"):
        audit(np.zeros(3), np.zeros(3), None, ["a", None, None])
    bad = np.tile([0.25, 0.75], (n, 1))
    bad[4] = 0.2, 0.7
    with pytest.raises(ValueError, match=r"do not add up to 1, first in row 4.*second of two"):
        audit(bad, np.zeros(n), X, y)


def test_values_that_are_no_probabilities(fitted):
    X, y, clf = fitted
    n = len(y)
    good = clf.predict_proba(X)
    for value in (np.nan, np.inf, 1e200):
        bad = good.copy()
        bad[7, 0] = value
        with pytest.raises(ValueError, match=r"NaN, infinite or too large .* first in row 7"):
            audit(clf, bad, X, y)
        with pytest.raises(ValueError, match=r"The candidate \(an array\) has values"):
            audit(bad[:, 0], good[:, 1], X, y)
        with pytest.raises(ValueError, match=r"The candidate \(Duck\) has values"):
            audit(Duck(clf.classes_, bad), clf, X, y)
    bad = good.copy()
    bad[9] *= 0.9
    with pytest.raises(ValueError, match="values that do not add up to 1, first in row 9"):
        audit(clf, bad, X, y)
    bad[5] = -0.2, 1.2
    with pytest.raises(ValueError, match=r"outside \[0, 1\], first in row 5.*response='score'"):
        audit(clf, bad, X, y)
    with pytest.raises(ValueError, match=r"outside \[0, 1\], first in row 0"):
        audit(np.full(n, 1.5), good, X, y, response="predict_proba")


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_label_propagation_that_gives_nan():
    """Rows that are far from all labeled ones get no probability at all."""
    X, y, _ = data()
    X = X.copy()
    X[-3:] = 1e3 * np.arange(1, 4)[:, None]
    y[:24] = np.arange(24) % 2
    candidate = LabelPropagation(gamma=20, max_iter=200).fit(X, y)
    proba = candidate.predict_proba(X + 5.0)
    baseline = LogisticRegression().fit(X[:24], y[:24])
    wrong = np.isnan(proba).any(axis=1)
    assert wrong.any()
    with pytest.raises(ValueError, match=r"\(LabelPropagation\) has values that are NaN.*weight"):
        audit(candidate, baseline, X + 5.0, y)
    if not wrong.all():
        weights = (~wrong).astype(float)
        found = audit(candidate, baseline, X + 5.0, y, sample_weight=weights)
        assert found.n_labeled + found.n_unlabeled == weights.sum()


def test_rows_that_do_not_match(fitted):
    X, y, clf = fitted
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        audit(clf, clf, X[1:], y)
    with pytest.raises(ValueError, match=r"minimum of 1 is required|no rows of positive weight"):
        audit(clf, clf, X[:0], y[:0])
    with pytest.raises(ValueError, match="X is None"):
        audit(clf, clf, None, y)
    with pytest.raises(ValueError, match="target y is None"):
        audit(clf, clf, X, None)
    with pytest.raises(ValueError, match="which may be two classes"):
        audit(clf, clf, X, np.where(y == 0, -1, y))


def test_bad_weights_bounds_and_priors(fitted):
    X, y, clf = fitted
    other = GaussianNB().fit(X[y != -1], y[y != -1])
    n = len(y)
    with pytest.raises(ValueError, match="zero"):
        audit(clf, other, X, y, sample_weight=np.zeros(n))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        audit(clf, other, X, y, sample_weight=np.full(n, -1.0))
    with pytest.raises(ValueError, match=r"sample_weight.shape"):
        audit(clf, other, X, y, sample_weight=np.ones(n - 1))
    with pytest.raises(ValueError, match="label_bounds has shape"):
        audit(clf, other, X, y, label_bounds=np.zeros((n, 3)))
    with pytest.raises(ValueError, match="label_bounds exclude the label in y in row 1"):
        audit(clf, other, X, y, label_bounds=np.tile([0.0, 0.5], (n, 1)))
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        audit(clf, other, X, y, class_prior=40)
    with pytest.raises(ValueError, match="class_prior is 'guess'"):
        audit(clf, other, X, y, class_prior="guess")
    with pytest.raises(ValueError, match="names the class 'a'"):
        audit(clf, other, X, y, class_prior={"a": 0.5})
    with pytest.raises(ValueError, match="prior_level must lie between 0 and 1"):
        audit(clf, other, X, y, class_prior="confidence", prior_level=1.5)
    with pytest.raises(ValueError, match="another sample_weight"):
        audit(clf, other, X, y, class_prior="confidence", sample_weight=np.arange(n) + 1.0)


# In words


WORDS = {
    "Never worse": (
        ([0.5, 0.9, 0.5], [3.0, 0.8, -2.0]),
        "auto",
        (
            "Never worse: whatever the true labels of the 1 unlabeled row, the mean squared "
            "loss of the scores of the candidate on these 3 rows is between 4.177 lower and 2.51 "
            "lower than that of the baseline (between 2.68 and 4.347). On the 2 "
            "labeled rows alone, it is 1.89 lower. This is about these rows, not about "
            "others, and about squared losses, not accuracy."
        ),
    ),
    "Not guaranteed": (
        ([0.2, 0.9, 0.3], [0.6, 0.8, 0.2]),
        "predict_proba",
        (
            "Not guaranteed: whatever the true labels of the 1 unlabeled row, the Brier "
            "score of the candidate on these 3 rows is between 0.1 lower and 0.1667 higher "
            "than that of the baseline (between 0.02667 and 0.1467). On the 2 labeled "
            "rows alone, it is 0.01 higher. This is about these rows, not about others, and "
            "about squared losses, not accuracy."
        ),
    ),
    "Never better": (
        ([3.0, 0.9, 0.2], [0.5, 0.8, 0.2]),
        "score",
        (
            "Never better: whatever the true labels of the 1 unlabeled row, the mean squared "
            "loss of the scores of the candidate on these 3 rows is between 1.24 higher and 2.907 "
            "higher than that of the baseline (between 0.02667 and 0.11). On the 2 "
            "labeled rows alone, it is 0.015 lower. This is about these rows, not about "
            "others, and about squared losses, not accuracy."
        ),
    ),
}


def test_a_summary_can_be_printed_in_the_code_page_of_windows():
    pair, response, _ = WORDS["Never better"]
    found = audit(*pair, None, [-1, 1, 0], response=response)
    dataclasses.replace(found, best_case=3e-5).summary().encode("cp1252")


@pytest.mark.parametrize("verdict", WORDS)
def test_in_words(verdict):
    pair, response, text = WORDS[verdict]
    found = audit(*pair, None, [-1, 1, 0], response=response)
    assert found.summary() == str(found) == text
    assert found.holds == (verdict == "Never worse")
    assert found.guaranteed_improvement == max(0.0, -found.worst_case)


def test_everything_known_in_words():
    better = audit([0.1, 0.9], [0.2, 0.8], None, [0, 1], response="predict_proba")
    assert better.summary().startswith(
        "Better: all labels are known, and the Brier score of the candidate on these 2 rows is "
        "0.03 lower than that of the baseline (0.04). This is about these rows"
    )
    worse = audit([0.2, 0.8], [0.1, 0.9], None, [0, 1])
    assert worse.summary().startswith("Worse: all labels are known, and ")
    assert "0.03 higher than" in worse.summary()
    same = audit([0.2, 0.9], [0.1, 0.8], None, [0, 1])
    assert same.summary().startswith("No difference: on these 2 rows, candidate and baseline have")


def test_assumptions_in_words():
    rng = np.random.default_rng(9)
    f, g = random_proba(rng, 40, 3), random_proba(rng, 40, 3)
    y = random_labels(rng, 40, 3)
    found = audit(f, g, None, y, class_prior="confidence", response="predict_proba")
    assert "(as long as class 0 makes up between " in found.summary()
    assert "the Brier score (summed over the classes) of the candidate" in found.summary()
    met = "If labels are missing completely at random, the condition on the shares is met"
    assert met in found.summary()
    bounds = np.full((40, 3, 2), np.nan)
    bounds[np.flatnonzero(y == -1)[:4], 0, 1] = 0.5
    found = audit(f, g, None, y, label_bounds=bounds)
    assert "(as long as the 4 with bounds are within their bounds)" in found.summary()


@pytest.mark.parametrize(
    ("f", "y", "verdict"),
    [
        ([0.5, 0.5, 0.9], [None, None, "<b>"], "No difference"),
        ([0.5, 0.2, 0.9], ["a", None, "<b>"], "Not guaranteed"),
        ([0.5, 0.5, 0.9], [None, None, None], "No difference"),
    ],
)
def test_json(f, y, verdict):
    classifiers = [
        Duck(np.array(["<b>", "a"]), np.column_stack([1 - np.array(p), p]))
        for p in (f, [0.5, 0.5, 0.9])
    ]
    found = audit(*classifiers, np.zeros((3, 1)), y, class_prior={"<b>": (0.0, 0.9)})
    assert found.summary().startswith(verdict)
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert values["worst_case"] == found.worst_case
    assert values["holds"] is found.holds
    assert values["summary"] == found.summary()
    assert values["assumptions"]["task"] == "binary"


def test_public_names():
    assert neverworse.audit is audit
    assert isinstance(audit([0.5], [0.5], None, [None]), Audit)
    assert {"audit", "Audit"} <= set(neverworse.__all__)
    with pytest.raises(AttributeError, match="cannot assign"):
        audit([0.5], [0.5], None, [None]).worst_case = 1.0


def test_nothing_is_changed():
    X, y, _ = data()
    clf = LogisticRegression().fit(X[y != -1], y[y != -1])
    f, g = clf.predict_proba(X), GaussianNB().fit(X[y != -1], y[y != -1]).predict_proba(X)
    bounds = np.full((len(y), 2), np.nan)
    weights = np.ones(len(y))
    copies = [a.copy() for a in (X, y, f, g, bounds, weights)]
    for a in (X, y, f, g, bounds, weights):
        a.setflags(write=False)
    audit(f, g, X, y, label_bounds=bounds, sample_weight=weights)
    for a, copy in zip((X, y, f, g, bounds, weights), copies, strict=True):
        np.testing.assert_array_equal(a, copy)


def test_probabilities_promise_nothing_about_unlabeled_rows():
    """Whichever way a probability moves, for one of the labels that is worse."""
    X, y, _ = data(n=200, d=12)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    unlabeled = y == -1
    found = audit(clf, clf.supervised_, X[unlabeled], y[unlabeled])
    assert found.worst_case > 0 > found.best_case
    ours = LeastSquaresClassifier().fit(X, y)
    assert audit(ours, clf.supervised_, X, y).worst_case == 0.0
