"""Audits of predicted classes: the error rate, whatever the labels."""

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import LinearSVC

from neverworse import LeastSquaresClassifier, audit


def fitted(n_classes, seed=0, n=9, n_labeled=5):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, 2)) + rng.normal(size=(n_classes, 2))[truth]
    more, labels = rng.normal(size=(40, 2)), rng.permutation(np.arange(40) % n_classes)
    models = LinearSVC().fit(more, labels), RidgeClassifier().fit(more[::-1], labels)
    return (*models, X, np.where(np.arange(n) < n_labeled, truth, -1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_brute_force_over_all_labelings(n_classes, seed, weighted):
    candidate, baseline, X, y = fitted(n_classes, seed)
    s = np.random.default_rng(seed).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    f, g = candidate.predict(X), baseline.predict(X)
    differences, losses = [], []
    for labels in product(range(n_classes), repeat=int(np.sum(y == -1))):
        full = y.copy()
        full[y == -1] = labels
        wrong_f, wrong_g = (np.average(p != full, weights=s) for p in (f, g))
        differences.append(wrong_f - wrong_g)
        losses.append(wrong_g)
    found = audit(candidate, baseline, X, y, response="error", sample_weight=s)
    assert found.worst_case == pytest.approx(max(differences), abs=1e-12)
    assert found.best_case == pytest.approx(min(differences), abs=1e-12)
    assert found.baseline_loss == pytest.approx((min(losses), max(losses)), abs=1e-12)
    known = y != -1
    errors = [np.average(p[known] != y[known], weights=s[known]) for p in (f, g)]
    assert found.known_difference == pytest.approx(errors[0] - errors[1], abs=1e-12)
    assert "error rate" in found.summary()


def test_any_classifier_will_do():
    candidate, baseline, X, y = fitted(2)
    with pytest.raises(ValueError, match=r" no decision_function .*response='error'"):
        audit(candidate, baseline, X, y)
    assert audit(candidate, baseline, X, y, response="error").response == "error"
    ours = LeastSquaresClassifier().fit(X, y)
    logistic = LogisticRegression().fit(X[y != -1], y[y != -1])
    found = audit(ours, logistic, X, y, response="error")
    changed = np.mean((ours.predict(X) != logistic.predict(X))[y == -1]) * np.mean(y == -1)
    width = found.worst_case - found.best_case
    assert width == pytest.approx(2 * changed, abs=1e-12)


def test_arrays_predict_no_classes():
    _, baseline, X, y = fitted(2)
    with pytest.raises(
        ValueError, match=r"The candidate \(an array\) has no predict.*two classifiers"
    ):
        audit(np.zeros(len(y)), baseline, X, y, response="error")
