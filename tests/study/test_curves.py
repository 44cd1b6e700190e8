"""Learning curves of a report, and what they say."""

from __future__ import annotations

import json
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from neverworse import ProjectedLeastSquaresClassifier, model_selection
from neverworse.study._comparison import MOST_UNLABELED, _curve, learning_curve
from neverworse.study._held_out import draw_sample

CLASSIFIER = ProjectedLeastSquaresClassifier(missing_label=np.nan, alpha=0.1)


def problem(n_labeled=60, n_unlabeled=600, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n_labeled + n_unlabeled) % n_classes).astype(float)
    X = rng.normal(size=(len(codes), 15)) + 0.4 * codes[:, None]
    y = codes.copy()
    y[rng.permutation(len(y))[n_labeled:]] = np.nan
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
def test_unlabeled_curve_has_the_numbers_of_direct_fits(n_classes):
    X, y = problem(n_unlabeled=150, n_classes=n_classes)
    curve = learning_curve("unlabeled", CLASSIFIER, X, y, seed=1)
    assert curve.rows == "unlabeled"
    assert curve.sizes == (38, 75, 150)
    assert curve.n_other == 48
    assert curve.n_repeats == 2
    supervised, projected = curve.lines
    assert (supervised.method, projected.method) == ("supervised", "projected")
    # The supervised model sees no unlabeled row, so that their number does not matter to it.
    assert len(set(supervised.error)) == len(set(supervised.loss)) == 1

    # At the largest size all unlabeled rows train, so that only the folds are random.
    errors, losses = [], []

    def remember(model, X_test, y_test):
        scores = X_test @ model.coef_.T + model.intercept_ + 0.5
        target = np.eye(n_classes)[y_test.astype(int)]
        target = target[:, 1:] if n_classes == 2 else target
        losses.append(((scores - target) ** 2).sum(axis=1).mean())
        errors.append((model.predict(X_test) != y_test).mean())
        return errors[-1]

    sample = draw_sample(X, y, None, 20_000, 1)
    model_selection.learning_curve(
        *(clone(CLASSIFIER), sample.X, sample.y),
        sizes=[150],
        cv=5,
        n_repeats=2,
        scoring=remember,
        missing_label=np.nan,
        random_state=1,
    )
    margin = stats.t.ppf(0.975, 9) * np.sqrt(1 / 10 + 1 / 4)
    for found, values in ((projected.error[-1], errors), (projected.loss[-1], losses)):
        mean, half = np.mean(values), margin * np.std(values, ddof=1)
        assert [found.value, found.low, found.high] == pytest.approx(
            [mean, mean - half, mean + half]
        )
    json.dumps(asdict(curve), allow_nan=False)


def test_labeled_curve():
    X, y = problem()
    curve = learning_curve("labeled", CLASSIFIER, X, y)
    assert curve.rows == "labeled"
    assert curve.sizes == (12, 24, 48)
    assert curve.n_other == 600
    for line in curve.lines:
        assert line.loss[-1].value < line.loss[0].value
        assert all(each.low < each.value < each.high for each in (*line.error, *line.loss))
    before, after = (each.value for each in curve.lines[1].error[-2:])
    assert curve.error_step.value == pytest.approx(after - before)
    json.dumps(asdict(curve), allow_nan=False)


def test_rows_are_capped(monkeypatch):
    X, y = problem(30, 90)
    monkeypatch.setitem(MOST_UNLABELED, "unlabeled", 60)
    monkeypatch.setitem(MOST_UNLABELED, "labeled", 50)
    assert learning_curve("unlabeled", CLASSIFIER, X, y).sizes[-1] == 60
    assert learning_curve("labeled", CLASSIFIER, X, y).n_other == 50


def test_weights_count():
    X, y = problem(30, 60)
    weights = np.random.default_rng(0).uniform(0.1, 5.0, len(y))
    plain, weighted = (
        learning_curve("unlabeled", CLASSIFIER, X, y, sample_weight=given)
        for given in (None, weights)
    )
    same = learning_curve("unlabeled", CLASSIFIER, X, y, sample_weight=np.full(len(y), 1.0))
    assert plain.lines[0].loss[-1].value == pytest.approx(same.lines[0].loss[-1].value)
    assert plain.lines[0].loss[-1].value != pytest.approx(weighted.lines[0].loss[-1].value)


def test_a_curve_takes_two_labels_of_each_class():
    X, y = problem()
    y[y == 1] = np.nan
    for rows in ("unlabeled", "labeled"):
        with pytest.raises(ValueError, match="two labeled rows of every class"):
            learning_curve(rows, CLASSIFIER, X, y)


def made(error_steps, loss_steps):
    """A curve of two sizes whose last step changes error and loss by so much in each fold."""
    n = len(error_steps)
    return SimpleNamespace(
        rows="unlabeled",
        sizes=np.array([100, 200]),
        test_scores={
            "supervised error": np.full((2, n), 0.4),
            "supervised loss": np.full((2, n), 0.3),
            "projected error": np.array([np.full(n, 0.3), 0.3 + np.array(error_steps)]),
            "projected loss": np.array([np.full(n, 0.2), 0.2 + np.array(loss_steps)]),
        },
        n_others=np.full(n, 40),
        n_repeats=2,
    )


NOISE = np.array([-0.04, 0.03, 0.01, -0.02, 0.02, -0.01, 0.04, -0.03, 0.0, 0.0])


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (NOISE - 0.1, "More unlabeled rows are worth collecting"),
        (NOISE + 0.1, "More unlabeled rows have not helped here"),
        (NOISE, "It is unclear whether more unlabeled rows would lower the error"),
        (0 * NOISE, "did not change on average (95 % interval 0.0 to 0.0 points)"),
    ],
)
def test_verdicts(error, verdict):
    sample = draw_sample(*problem(), None, 1_000, 0)
    words = _curve(made(error, NOISE), sample).words
    assert words.startswith("From 100 to 200 unlabeled rows, the error of the projected model")
    assert verdict in words


def test_words_have_the_numbers():
    sample = draw_sample(*problem(), None, 1_000, 0)
    words = _curve(made(NOISE - 0.02, NOISE), sample).words
    margin = 2.262157 * np.sqrt((1 / 10 + 1 / 4) * NOISE.var(ddof=1)) * 100
    ends = f"\N{MINUS SIGN}{margin + 2:.1f} to +{margin - 2:.1f}"
    assert f"changed by \N{MINUS SIGN}2.0 points (95 % interval {ends})." in words


def test_rounding_errors_are_no_change():
    """The mean of these steps is 0, but for rounding."""
    sample = draw_sample(*problem(), None, 1_000, 0)
    steps = np.array([0.1, 0.2, -0.3, 0.1, -0.1])
    assert 0.0 < abs(steps.mean()) < 1e-16
    words = _curve(made(steps, steps), sample).words
    assert "on held-out rows did not change on average (95 % interval" in words
    assert "e\N{MINUS SIGN}" not in words


def test_no_interval_reaches_beyond_what_is_possible():
    sample = draw_sample(*problem(), None, 1_000, 0)
    curve = _curve(made(20 * NOISE - 0.2, 10 * NOISE), sample)
    error, loss = curve.lines[1].error[-1], curve.lines[1].loss[-1]
    assert (error.low, loss.low) == (0.0, 0.0)
    assert error.value < error.high <= 1.0
    assert loss.value < loss.high


def test_too_few_rows_for_a_curve():
    X, y = problem(n_unlabeled=1)
    with pytest.raises(ValueError, match=r"There are too few unlabeled rows\."):
        learning_curve("unlabeled", CLASSIFIER, X, y)
