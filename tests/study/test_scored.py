"""Scores, changes and coefficients: identities that have to hold, computed another way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neverworse.estimators import class_scores
from neverworse.study._assess import ScoredRows, coefficients
from tests.study.fits import fitted, table


@pytest.mark.parametrize("n_classes", [2, 3])
def test_changes(n_classes):
    fit, _ = fitted(n_classes, id="name")
    rows = table(n_classes)
    unlabeled = np.array([label is None for label in rows.column("class").to_pylist()])
    changes = ScoredRows(fit).changes()
    first = fit.model.supervised().predict(rows)[unlabeled]
    second = fit.model.predict(rows)[unlabeled]
    assert changes.n_unlabeled == unlabeled.sum()
    assert changes.n_changed == np.sum(first != second)
    assert changes.n_changed > 0 or n_classes == 3
    ids = np.array(rows.column("name").to_pylist())[unlabeled]
    by_hand = {i: (a, b) for i, a, b in zip(ids, first, second, strict=True) if a != b}
    assert {row.row: (row.supervised, row.projected) for row in changes.rows} == by_hand
    for row in changes.rows:
        assert row.projected_score > row.supervised_score - 1e-9
        assert 0.0 <= row.soft_label <= 1.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes_are_those_of_least_squares_on_targets_0_and_1(n_classes):
    fit, _ = fitted(n_classes)
    scored = ScoredRows(fit)
    labeled = ~np.isnan(fit.target.codes)
    E = np.column_stack([fit.features, np.ones(len(fit.features))])
    indicators = (fit.target.codes[labeled, None] == np.arange(n_classes)).astype(float)
    weights = np.linalg.lstsq(E[labeled], indicators)[0]
    np.testing.assert_allclose(scored.supervised, E @ weights, atol=1e-8)
    np.testing.assert_allclose(scored.projected.sum(axis=1), 1.0, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_counted_once_each(n_classes):
    fit, _ = fitted(n_classes)
    found = ScoredRows(fit).scores()
    assert len(found) == (1 if n_classes == 2 else 3)
    for scores in found:
        assert len(scores.edges) == 41
        for group in scores.groups:
            assert sum(group.supervised) == sum(group.projected) == group.n_rows
        assert sum(group.n_rows for group in scores.groups) == 140


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("settings", [{}, {"alpha": "loo"}])
def test_coefficients_reproduce_scores_from_the_numbers_in_the_table(n_classes, settings):
    fit, _ = fitted(n_classes, **settings)
    clf, rows = fit.classifier, table(n_classes)
    names = fit.target.class_names
    weights, intercepts = coefficients(replace(fit, positive=None))
    shown = names[1:] if n_classes == 2 else names
    mean = fit.model.preparation_.offsets()
    gap_mean = mean[fit.model.preparation_.number_names_.index("gap")]
    for which, model in (("supervised", clf.supervised_), ("projected", clf)):
        for k, name in enumerate(shown):
            score = np.full(len(rows), getattr(intercepts[k], which))
            for each in weights:
                if each.class_name == name:
                    score += getattr(each, which) * raw(rows, each.feature, each.column, gap_mean)
            column = k + 1 if n_classes == 2 else k
            np.testing.assert_allclose(
                score, class_scores(model, fit.features)[:, column], atol=1e-8
            )


def raw(rows, feature, column, gap_mean):
    """The values of a feature as a reader of the table would find them."""
    values = rows.column(column).to_pylist()
    if feature == "gap":
        return np.array([gap_mean if v != v else v for v in values])
    if feature == "gap is missing":
        return np.array([float(v != v) for v in values])
    if " = " in feature:
        return np.array([float(v == feature.split(" = ")[1]) for v in values])
    return np.array(values)


def test_weights_and_scores_are_about_the_class_that_is_looked_for():
    fit, _ = fitted()
    names = fit.target.class_names
    second, first = (coefficients(replace(fit, positive=positive)) for positive in (1, 0))
    assert {each.class_name for part in first for each in part} == {names[0]}
    # Scores of both classes add up to 1.
    for of_first, of_second, total in zip(first, second, (0.0, 1.0), strict=True):
        for a, b in zip(of_first, of_second, strict=True):
            for kind in ("supervised", "projected", "supervised_scaled", "projected_scaled"):
                assert getattr(a, kind) + getattr(b, kind) == pytest.approx(total, abs=1e-12)
    (scores,) = ScoredRows(replace(fit, positive=0)).scores()
    assert scores.class_name == names[0]


def test_scaled_coefficients_are_per_standard_deviation():
    fit, _ = fitted()
    weights, _ = coefficients(replace(fit, positive=1))
    deviations = fit.features.std(axis=0)
    for each, weight, deviation in zip(weights, fit.classifier.coef_[0], deviations, strict=True):
        assert each.projected_scaled == pytest.approx(weight * deviation, rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_intercepts_per_standard_deviation_are_scores_at_the_mean(n_classes):
    fit, _ = fitted(n_classes)
    clf, names = fit.classifier, fit.target.class_names
    weights, intercepts = coefficients(replace(fit, positive=None))
    shown = names[1:] if n_classes == 2 else names
    features = fit.features
    standard = (features - features.mean(axis=0)) / features.std(axis=0)
    for which, scores in (("supervised", clf.supervised_), ("projected", clf)):
        scores = class_scores(scores, features)[:, n_classes == 2 :]
        for k, name in enumerate(shown):
            scaled = [getattr(w, f"{which}_scaled") for w in weights if w.class_name == name]
            intercept = getattr(intercepts[k], f"{which}_scaled")
            assert intercept == pytest.approx(scores[:, k].mean(), abs=1e-9)
            np.testing.assert_allclose(standard @ scaled + intercept, scores[:, k], atol=1e-8)
