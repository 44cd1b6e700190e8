"""Calibration and thresholds from held-out rows: as scikit-learn does it, and tested honestly."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold

from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.methods import SupervisedClassifier
from neverworse.model_selection import StratifiedLabeledKFold, WithUnlabeledRows
from neverworse.study import FitSettings, ThresholdRule, _choice
from neverworse.study._choice import decide, nested_numbers, platt
from neverworse.study._held_out import Truth, draw_sample
from neverworse.tables import DecidedClassifier, outputs

FIXED, BALANCED = ThresholdRule(), ThresholdRule("balanced")
METHODS = {
    "projected": ProjectedLeastSquaresClassifier(alpha=1.0, missing_label=np.nan),
    "logistic": SupervisedClassifier(LogisticRegression(), missing_label=np.nan),
    "forest": SupervisedClassifier(
        RandomForestClassifier(20, min_samples_leaf=3, random_state=0), missing_label=np.nan
    ),
}


def made(n_labeled=60, n=200, n_classes=2, shift=1.0, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n).astype(float)
    X = rng.normal(size=(n, 3)) + shift * np.eye(3)[truth.astype(int)]
    y = truth.copy()
    y[n_labeled:] = np.nan
    return X, y, truth


def wanting(threshold=FIXED, calibrate=False):
    return FitSettings("y", threshold=threshold, calibrate=calibrate)


def sample_of(X, y, weights=None):
    return draw_sample(X, y, weights, 10_000, 0)


def decided(method, X, y, wanted, weights=None):
    """What `decide` finds for all rows, around a fit to all rows."""
    sample = sample_of(X, y, weights)
    settings = decide(method, sample, np.arange(len(sample.y)), wanted, 1, seed=0)
    passed = {} if weights is None else {"sample_weight": weights}
    return DecidedClassifier(method.fit(X, y, **passed), **settings)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", METHODS)
def test_calibrated_probabilities_are_those_of_scikit_learn(name, n_classes):
    X, y, _ = made(n_classes=n_classes)
    labeled = ~np.isnan(y)
    found = decided(METHODS[name], X, y, wanting(calibrate=True))
    theirs = CalibratedClassifierCV(
        WithUnlabeledRows(METHODS[name], X[~labeled]),
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        ensemble=False,
    ).fit(X[labeled], y[labeled])
    np.testing.assert_allclose(found.predict_proba(X), theirs.predict_proba(X), atol=2e-3)
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1.0)
    assert np.mean(found.predict(X) == theirs.predict(X)) > 0.99


def test_sigmoids_are_the_maximum_of_the_likelihood():
    rng = np.random.default_rng(0)
    scores, weights = 1000.0 + 5.0 * rng.normal(size=80), rng.uniform(0.5, 2.0, 80)
    positive = scores + 5.0 * rng.normal(size=80) > 1001.0
    slope, offset = platt(scores, positive, weights)
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    targets = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    # As an unpenalised logistic regression, in which each row is of both classes in part.
    z = np.tile((scores - 1000.0)[:, None], (2, 1))
    both = LogisticRegression(C=1e12, tol=1e-10).fit(
        z, np.repeat([1, 0], 80), np.concatenate([weights * targets, weights * (1 - targets)])
    )
    assert slope == pytest.approx(both.coef_[0, 0], rel=1e-3)
    assert offset + 1000.0 * slope == pytest.approx(both.intercept_[0], rel=1e-3)


def test_scores_that_separate_the_classes_or_say_nothing_give_finite_sigmoids():
    positive = np.arange(20) < 8
    for scores in (positive.astype(float), np.zeros(20)):
        slope, offset = platt(scores, positive, np.ones(20))
        assert np.isfinite([slope, offset]).all()
    assert 1.0 / (1.0 + np.exp(-offset)) == pytest.approx(0.4, abs=0.03)


def test_calibration_mends_probabilities_that_are_too_sure():
    X, y, truth = made(n_labeled=200, n=1200, shift=0.7)
    method = LeastSquaresClassifier(class_weight={0.0: 1.0, 1.0: 8.0}, missing_label=np.nan)
    found = decided(method, X, y, wanting(calibrate=True))
    before, after = (
        log_loss(truth[200:], np.clip(model.predict_proba(X[200:])[:, 1], 1e-3, 1.0 - 1e-3))
        for model in (method, found)
    )
    assert after < before - 0.1


@pytest.mark.parametrize("calibrate", [False, True])
def test_thresholds_are_best_on_the_rows_that_were_held_out(calibrate):
    X, y, _ = made(n_labeled=80)
    y[(y == 1.0) & (np.arange(len(y)) % 3 > 0)] = np.nan  # a rare class
    method = METHODS["projected"]
    settings = vars(decided(method, X, y, wanting(BALANCED, calibrate)))
    sample = sample_of(X, y)
    p, known = np.zeros(len(y)), ~np.isnan(sample.y)
    folds = StratifiedLabeledKFold(5, shuffle=True, random_state=0, missing_label=np.nan)
    for train, test in folds.split(sample.X, sample.y):
        model = method.fit(sample.X[train], sample.y[train])
        calibrated = DecidedClassifier(model, sigmoids=settings["sigmoids"])
        p[test] = calibrated.predict_proba(sample.X[test])[:, 1]
    expected = BALANCED.threshold(p[known], sample.y[known] == 1.0, np.ones(known.sum()))
    assert settings["threshold"] == pytest.approx(expected)


def test_tests_see_no_row_that_was_decided_by(monkeypatch):
    X, y, _ = made()
    sample = sample_of(X, y)
    seen = []
    inner = _choice.decide

    def spy(method, sample, rows, *more):
        seen.append(rows[rows < sample.n_labeled])
        return inner(method, sample, rows, *more)

    monkeypatch.setattr(_choice, "decide", spy)
    truth = Truth.of(sample, ["a", "b"], 1)
    wanted = wanting(BALANCED)
    numbers = nested_numbers(METHODS["projected"], sample, truth, wanted, 1, 0)
    held_out = [np.setdiff1d(np.arange(sample.n_labeled), rows) for rows in seen]
    assert sorted(np.concatenate(held_out)) == list(range(sample.n_labeled))
    assert np.sum(numbers.confusion) == pytest.approx(sample.n_labeled)


def test_numbers_are_those_of_models_decided_on_without_the_test_rows():
    X, y, _ = made()
    sample = sample_of(X, y)
    truth = Truth.of(sample, ["a", "b"], 1)
    wanted = wanting(ThresholdRule("f1"), calibrate=True)
    numbers = nested_numbers(METHODS["projected"], sample, truth, wanted, 1, 0)
    predicted = np.zeros(sample.n_labeled)
    folds = StratifiedLabeledKFold(5, shuffle=True, random_state=0, missing_label=np.nan)
    for train, test in folds.split(sample.X, sample.y):
        model = decided(METHODS["projected"], sample.X[train], sample.y[train], wanted)
        predicted[test] = model.predict(sample.X[test])
    expected = balanced_accuracy_score(truth.codes, predicted)
    assert numbers.balanced_accuracy.value == pytest.approx(expected)


def test_what_is_decided_on_by_noise_is_found_to_be_worth_nothing():
    """The best of all thresholds looks better than chance on the rows that it was found by."""
    inside, outside = [], []
    for seed in range(12):
        X, y, _ = made(n_labeled=60, n=62, shift=0.0, seed=seed)
        sample = sample_of(X, y)
        truth = Truth.of(sample, ["a", "b"], 1)
        wanted = wanting(BALANCED)
        method = LeastSquaresClassifier(1.0, missing_label=np.nan)
        outside.append(nested_numbers(method, sample, truth, wanted, 1, 0))
        model = decided(method, X, y, wanted)
        inside.append(balanced_accuracy_score(y[:60], model.predict(X[:60])))
    assert np.mean(inside) > 0.58
    assert np.mean([each.balanced_accuracy.value for each in outside]) < 0.53


# Classifiers with what was decided on


def test_thresholds_and_largest_probabilities():
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0], y[y > 0] - 1
    model = LogisticRegression().fit(X, y)
    p = model.predict_proba(X)
    for positive, threshold in ((1, 0.2), (0, 0.9)):
        found = DecidedClassifier(model, positive, threshold)
        expected = np.where(p[:, positive] >= threshold, positive, 1 - positive)
        assert found.predict(X).tolist() == expected.tolist()
        codes, scores, shares = outputs(found, X)
        np.testing.assert_array_equal(codes, expected)
        np.testing.assert_array_equal(scores, p[np.arange(len(p)), expected])
        np.testing.assert_array_equal(shares, p)
    assert DecidedClassifier(model).predict(X).tolist() == model.predict(X).tolist()
    assert not hasattr(DecidedClassifier(model), "decision_function")


def test_several_classes_of_which_no_sigmoid_is_sure_are_equally_probable():
    model = LogisticRegression(max_iter=1000).fit(*load_iris(return_X_y=True))
    sigmoids = np.array([[0.0, -1e6]] * 3)
    shares = DecidedClassifier(model, sigmoids=sigmoids).predict_proba(np.zeros((2, 4)))
    np.testing.assert_allclose(shares, 1.0 / 3.0)
