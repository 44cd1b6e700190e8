"""Rules for thresholds, against a search through all of them with scikit-learn's metrics."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, f1_score

from neverworse.study import ThresholdRule


def cost(truth, predicted, weights):
    table = confusion_matrix(truth, predicted, labels=[False, True], sample_weight=weights)
    return -(5.0 * table[1, 0] + 2.0 * table[0, 1])


def weighted(score):
    return lambda truth, predicted, weights: score(truth, predicted, sample_weight=weights)


RULES = {
    "balanced": (ThresholdRule("balanced"), weighted(balanced_accuracy_score)),
    "f1": (ThresholdRule("f1"), weighted(f1_score)),
    "cost": (ThresholdRule("cost", miss=5.0, alarm=2.0), cost),
}


def held_out(seed, n=30):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    positive[:2] = True, False
    p = np.clip(rng.normal(0.3 + 0.2 * positive, 0.25), 0.0, 1.0)
    return np.round(p, 2), positive, rng.uniform(0.5, 2.0, n)  # with ties, zeros and ones


@pytest.mark.parametrize("kind", RULES)
def test_no_threshold_is_better_on_these_rows(kind):
    rule, score = RULES[kind]
    for seed in range(8):
        p, positive, weights = held_out(seed)
        found = score(positive, p >= rule.threshold(p, positive, weights), weights)
        tried = np.append(np.unique(p), 1.1 if p.max() < 1.0 else [])
        best = max(score(positive, p >= t, weights) for t in tried)
        assert found == pytest.approx(best, abs=1e-12)


def test_separated_classes_are_divided_half_way():
    p, positive = np.array([0.1, 0.2, 0.6, 0.9]), np.array([False, False, True, True])
    for rule, _ in RULES.values():
        assert rule.threshold(p, positive, np.ones(4)) == pytest.approx(0.4)


def test_of_equally_good_thresholds_the_middle_one_is_taken():
    # Thresholds of 0.1, 0.5 and 0.9 cost 2, those between them 3.
    p, positive = np.array([0.2, 0.4, 0.6, 0.8]), np.array([True, False, True, False])
    assert ThresholdRule("cost").threshold(p, positive, np.ones(4)) == pytest.approx(0.5)


@pytest.mark.parametrize(("miss", "alarm", "expected"), [(100.0, 1.0, 10), (1.0, 100.0, 0)])
def test_costs_decide_between_all_and_none(miss, alarm, expected):
    rng = np.random.default_rng(0)
    p, positive = rng.uniform(0.2, 0.8, 10), np.arange(10) < 5
    t = ThresholdRule("cost", miss=miss, alarm=alarm).threshold(p, positive, np.ones(10))
    assert np.sum(p >= t) == expected
    assert 0.0 < t < 1.0


def test_probabilities_that_differ_in_the_last_digit_are_told_apart():
    p = np.array([0.5, np.nextafter(0.5, 1.0)])
    t = ThresholdRule("balanced").threshold(p, np.array([False, True]), np.ones(2))
    assert (p >= t).tolist() == [False, True]


def test_nothing_is_above_one():
    """Where a negative row has the probability 1, no threshold calls no row positive."""
    p, positive = np.array([1.0, 1.0, 0.0]), np.array([False, False, True])
    t = ThresholdRule("cost", miss=1.0, alarm=100.0).threshold(p, positive, np.ones(3))
    assert 0.0 <= t <= 1.0


def test_words():
    assert str(ThresholdRule()) == "0.5"
    assert str(ThresholdRule("f1")) == "f1"
    assert str(ThresholdRule("cost", miss=5.0, alarm=0.5)) == "cost=5:0.5"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0.5", ThresholdRule()),
        ("0.25", ThresholdRule(value=0.25)),
        ("f1", ThresholdRule("f1")),
        ("balanced", ThresholdRule("balanced")),
        ("cost=5:0.5", ThresholdRule("cost", miss=5.0, alarm=0.5)),
    ],
)
def test_thresholds_as_they_are_written(text, rule):
    assert ThresholdRule.parse(text) == rule
    assert ThresholdRule.parse(str(rule)) == rule


@pytest.mark.parametrize(
    "text", ["", "nan", "inf", "0", "1", "cost=1", "cost=1:2:3", "cost=a:b", "cost=", "cost=-1:2"]
)
def test_thresholds_that_mean_nothing(text):
    with pytest.raises(ValueError, match="--threshold"):
        ThresholdRule.parse(text)
