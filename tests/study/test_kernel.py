"""Fits to tables in the space of a kernel: what is chosen, and what is said."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import make_circles

from neverworse import LeastSquaresClassifierCV
from neverworse.study import FitSettings, assess, fit_table
from neverworse.study.report import page
from neverworse.tables import load_model, save_model

pytestmark = pytest.mark.usefixtures("quick")


def rings(n=160, n_labeled=50, linear=False):
    X, truth = make_circles(n, noise=0.12, factor=0.4, random_state=0)
    if linear:
        truth = np.arange(n) % 2
        X = np.random.default_rng(2).normal(size=(n, 2)) + 1.0 * truth[:, None]
    colour = np.random.default_rng(0).choice(["red", "blue", "green"], n)
    labels = [("out", "in")[t] if i < n_labeled else None for i, t in enumerate(truth)]
    return pa.table({"a": X[:, 0], "b": X[:, 1], "colour": colour, "label": labels}), truth


@pytest.mark.parametrize("linear", [True, False])
def test_auto_takes_what_predicts_left_out_labels_better(linear):
    table, truth = rings(linear=linear)
    fit = fit_table(table, FitSettings("label", kernel="auto"))
    loss = {
        kernel: LeastSquaresClassifierCV(kernel=kernel, gamma="loo")
        .fit(fit.features, fit.target.codes)
        .loo_brier_.min()
        for kernel in ("linear", "rbf")
    }
    assert fit.classifier.kernel == ("linear" if linear else "rbf")
    assert (loss["rbf"] < 0.95 * loss["linear"]) == (not linear)
    assert f"{loss['rbf']:.4f} by the rbf kernel and {loss['linear']:.4f} by the" in fit.kernel
    kind = "linear" if linear else "not linear (rbf)"
    assert fit.kernel.startswith(f"The models are {kind}: labeled rows that are left out")
    if not linear:
        assert np.mean((fit.model.predict(table) == "in") == (truth == 1)) > 0.9
        assert any("Categories count as indicators" in note for note in fit.notes)


def test_study_of_a_kernel_says_what_matters_without_weights(tmp_path):
    table, _ = rings(100, 40)
    settings = FitSettings("label", kernel="auto", alpha=0.1, candidates=())
    fit = fit_table(table, settings)
    study, _, _ = assess(fit, settings, command="", files=[], curves=False)
    assert study.coefficients == ()
    assert set(study.importance.increases) == {"a", "b", "colour"}
    assert any("not linear (rbf)" in reason for reason in study.verdict.reasons)
    assert study.settings["kernel"].startswith("the rbf kernel (gamma")
    html = page(study)
    assert "Weights, the largest first" not in html
    assert "Most important columns" in html
    path = tmp_path / "model.skops"
    save_model(fit.model, path, facts={})
    again = load_model(path).model
    np.testing.assert_array_equal(again.predict(table), fit.model.predict(table))


def test_many_rows_are_stood_for_by_landmarks():
    table, _ = rings(1100, 60)
    fit = fit_table(table, FitSettings("label", kernel="rbf", alpha=0.1))
    n_landmarks = len(fit.classifier.landmarks_)  # less those that add nothing
    assert 100 < n_landmarks <= fit.classifier.n_components == 300
    words = f"{n_landmarks} Nyström features of the rbf kernel"
    assert any(words in note for note in fit.notes)
