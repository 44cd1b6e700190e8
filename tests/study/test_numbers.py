"""Numbers of held-out rows: scikit-learn's values, and intervals that cover the truth."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics
from sklearn.calibration import calibration_curve

from neverworse.study._held_out import HeldOut, Truth, mean_of, newcombe, numbers, wilson
from neverworse.study._study import Estimate


def example(n_classes, n=200, n_repeats=3, seed=0):
    """Classes of different sizes, and probabilities that say something about them."""
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.geometric(0.5, n) - 1, n_classes - 1)
    scores = rng.normal(size=(n_repeats, n, n_classes)) + 1.2 * np.eye(n_classes)[codes]
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    names = [f"class {k}" for k in range(n_classes)]
    weights = rng.uniform(0.2, 2.0, n)
    truth = Truth(codes, weights, names, 1 if n_classes == 2 else None)
    one_fold = np.zeros((n_repeats, n), int)
    return truth, HeldOut(probabilities.argmax(axis=2), probabilities, probabilities, one_fold)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_scikit_learn(n_classes, weighted):
    truth, held_out = example(n_classes)
    if not weighted:
        truth = dataclasses.replace(truth, weights=np.ones(len(truth.codes)))
    found = numbers(truth, held_out)
    given = {"sample_weight": truth.weights}
    y, labels = truth.codes, range(n_classes)

    def mean(metric, said=held_out.predictions, **options):
        return pytest.approx(np.mean([metric(y, each, **options, **given) for each in said]))

    assert 1.0 - found.error.value == mean(metrics.accuracy_score)
    assert np.ravel(found.confusion) == pytest.approx(
        np.mean(
            [metrics.confusion_matrix(y, each, **given) for each in held_out.predictions], 0
        ).ravel()
    )
    assert found.log_loss.value == mean(metrics.log_loss, held_out.probabilities)
    assert found.brier.value == mean(metrics.brier_score_loss, held_out.probabilities)
    second = held_out.probabilities[..., 1] if n_classes == 2 else held_out.probabilities
    assert found.auc.value == mean(metrics.roc_auc_score, second, multi_class="ovr")
    # The recall of a class is the same in every repeat's denominator, the precision is not.
    assert found.balanced_accuracy.value == mean(metrics.balanced_accuracy_score)
    for k, each in enumerate(found.classes):
        assert each.recall.value == mean(
            metrics.recall_score, labels=[k], average="macro", zero_division=0
        )
        assert each.n_labeled == np.sum(y == k)
    alone = HeldOut(*(each[:1] for each in dataclasses.astuple(held_out)))
    for k, each in enumerate(numbers(truth, alone).classes):
        for kind in ("precision", "recall", "f1"):
            metric = getattr(metrics, f"{kind}_score")
            value = metric(y, alone.predictions[0], labels=labels, average=None, **given)[k]
            assert getattr(each, kind).value == pytest.approx(value), kind


def test_rows_are_ranked_within_their_folds():
    truth, held_out = example(2, n_repeats=1)
    folds = np.arange(200)[None] % 2
    truth = dataclasses.replace(truth, weights=np.ones(200))
    # Another model scores the second fold, on another scale.
    scores = held_out.scores + 100.0 * folds[..., None]
    found = numbers(truth, dataclasses.replace(held_out, scores=scores, folds=folds)).auc.value
    each = [metrics.roc_auc_score(truth.codes[k::2], held_out.scores[0, k::2, 1]) for k in (0, 1)]
    assert found == pytest.approx(np.mean(each))


def test_every_value_lies_in_its_interval():
    for n_classes in (2, 3):
        found = numbers(*example(n_classes, n=25))
        estimates = [found.error, found.balanced_accuracy, found.auc, found.brier, found.log_loss]
        estimates += [e for c in found.classes for e in (c.precision, c.recall, c.f1) if e]
        assert all(each.low < each.value < each.high for each in estimates)


@pytest.mark.parametrize(("k", "n"), [(0, 60), (3, 60), (30, 60), (60, 60), (1, 2)])
def test_shares_have_wilsons_interval(k, n):
    found = wilson(k / n, n)
    expected = stats.binomtest(k, n).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_the_interval_of_an_auc_covers_it_even_near_one():
    rng = np.random.default_rng(0)
    for shift in (0.0, 1.0, 3.0):
        true = stats.norm.cdf(shift / np.sqrt(2))
        covered = []
        for _ in range(400):
            positive, negative = rng.normal(shift, size=20), rng.normal(size=30)
            u = stats.mannwhitneyu(positive, negative).statistic / 600
            found = newcombe(u, 20, 30)
            assert 0.0 <= found.low <= u <= found.high <= 1.0
            covered.append(found.low <= true <= found.high)
        assert np.mean(covered) > 0.92, shift
    assert newcombe(1.0, 20, 30).low < 0.99
    assert newcombe(0.0, 20, 30).high > 0.01


def test_an_auc_of_many_rows_has_the_interval_of_hanley_and_mcneil():
    auc, m, n = 0.8, 5_000, 5_000
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = (auc * (1 - auc) + (m - 1) * (q1 - auc**2) + (n - 1) * (q2 - auc**2)) / (m * n)
    found = newcombe(auc, m, n)
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.sqrt(variance), rel=0.01)


def test_intervals_of_balanced_accuracy_and_f1_cover_them():
    rng = np.random.default_rng(1)
    codes = np.repeat([0, 1], [60, 15])
    covered = []
    truth = Truth(codes, np.ones(75), ["no", "yes"], 1)
    for _ in range(400):
        said = np.where(rng.random(75) < np.where(codes == 1, 0.7, 0.9), codes, 1 - codes)
        found = numbers(truth, HeldOut(said[None], None, None, np.zeros((1, 75), int)))
        recall, precision = 0.7, 0.7 * 15 / (0.7 * 15 + 0.1 * 60)
        f1 = found.classes[1].f1
        covered.append(
            [
                found.balanced_accuracy.low <= 0.8 <= found.balanced_accuracy.high,
                f1.low <= 2 * recall * precision / (recall + precision) <= f1.high,
            ]
        )
    assert (np.mean(covered, axis=0) > 0.92).all()


def test_means_of_estimates():
    one = Estimate(0.5, 0.2, 0.6)
    assert mean_of([one]) == one
    both = mean_of([one, Estimate(0.7, 0.3, 0.8)])
    assert (both.value, both.low, both.high) == pytest.approx(
        (0.6, 0.6 - 0.5 * 0.5, 0.6 + 0.5 * np.hypot(0.1, 0.1))
    )


def test_no_error_is_no_certainty():
    codes = np.repeat([0, 1], 10)
    truth = Truth(codes, np.ones(20), ["no", "yes"], 1)
    sure = np.eye(2)[codes][None]
    found = numbers(truth, HeldOut(codes[None], sure, sure, np.zeros((1, 20), int)))
    assert found.error.value == 0.0
    assert found.error.high > 0.1
    assert found.auc.low < found.auc.value == found.balanced_accuracy.value == 1.0
    assert found.balanced_accuracy.low < 0.9
    assert found.classes[1].f1.low < 0.9


def test_a_class_that_is_never_predicted_has_no_precision():
    codes = np.repeat([0, 1], [15, 5])
    truth = Truth(codes, np.ones(20), ["no", "yes"], 1)
    found = numbers(truth, HeldOut(np.zeros((1, 20), int), None, None, np.zeros((1, 20), int)))
    assert found.classes[1].precision is None
    assert found.classes[1].recall.value == found.classes[1].f1.value == 0.0
    assert found.auc is found.brier is found.log_loss is found.calibration is None


def test_equal_weights_count_as_rows_do():
    truth, held_out = example(2)
    plain = numbers(dataclasses.replace(truth, weights=np.ones(200)), held_out)
    scaled = numbers(dataclasses.replace(truth, weights=np.full(200, 7.0)), held_out)
    for kind in ("error", "balanced_accuracy", "auc", "brier", "log_loss"):
        a, b = (dataclasses.astuple(getattr(each, kind)) for each in (plain, scaled))
        assert a == pytest.approx(b), kind
    a, b = (each.classes[1].precision.high for each in (plain, scaled))
    assert a == pytest.approx(b)
    uneven = numbers(dataclasses.replace(truth, weights=np.geomspace(1, 1e4, 200)), held_out)
    assert uneven.error.high - uneven.error.low > plain.error.high - plain.error.low


def test_the_calibration_curve_is_that_of_scikit_learn():
    truth, held_out = example(2, n_repeats=1)
    truth = dataclasses.replace(truth, weights=np.ones(200))
    found = numbers(truth, held_out).calibration
    observed, predicted = calibration_curve(
        truth.codes, held_out.probabilities[0, :, 1], n_bins=10, strategy="quantile"
    )
    assert [each.predicted for each in found] == pytest.approx(predicted)
    assert [each.observed.value for each in found] == pytest.approx(observed)
    of_first = numbers(dataclasses.replace(truth, positive=0), held_out).calibration
    assert of_first[0].predicted == pytest.approx(1.0 - predicted[-1])


def test_few_rows_have_few_points_of_calibration():
    truth, held_out = example(2, n=35)
    assert len(numbers(truth, held_out).calibration) == 3
    same = SimpleNamespace(**vars(held_out))
    same.probabilities = np.full_like(held_out.probabilities, 0.5)
    assert len(numbers(truth, same).calibration) == 1
