"""Which model ``neverworse fit`` makes, through the real command and its exit codes."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from neverworse.cli import main
from neverworse.tables import load_model, save_model
from tests.cli.tables import flowers, quick


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small tables: one with two labels, which leaves nothing to compare, and rarer ones."""
    folder = tmp_path_factory.mktemp("choice")
    quick().to_csv(folder / "quick.csv", index=False)
    flowers().to_csv(folder / "flowers.csv", index=False)
    rng = np.random.default_rng(0)
    rare = rng.random(300) < 0.15
    X = rng.normal(size=(300, 2)) + 1.2 * rare[:, None]
    X[80:] *= 2.0  # so far off that not all scores of the supervised model are probabilities
    table = pd.DataFrame(X, columns=["a", "b"]).assign(kind=np.where(rare, "fraud", "ok"))
    table.loc[80:, "kind"] = None
    table.to_csv(folder / "rare.csv", index=False)
    return folder


def fit(folder, table, target, *words):
    out = ["--out", str(folder / "out"), "--no-curves", "--quiet", "--candidates", "none"]
    return main(["fit", str(folder / table), "--target", target, *out, *words])


def document(folder, name="certificate.json"):
    return json.loads((folder / "out" / name).read_text())


def predicted(folder, table, *words, code=0):
    out = str(folder / "p.csv")
    model = str(folder / "out" / "model.skops")
    assert main(["predict", model, str(folder / table), "--out", out, "--quiet", *words]) == code
    return pd.read_csv(out)


def test_a_model_of_another_family_has_no_certificate(folder):
    assert fit(folder, "quick.csv", "species", "--model", "Logistic-Regression") == 0
    found = document(folder)
    assert found["certificate"] is None
    assert found["model"]["name"] == "logistic regression"
    assert found["model"]["certified"] is False
    assert found["claim"].startswith("model.skops holds the logistic regression model. Nothing is")
    assert found["audit"]["holds"] is False
    assert found["audit"]["worst_case"] > 0.0
    assert load_model(folder / "out" / "model.skops").facts["model"] == "logistic regression"
    written = pd.read_csv(folder / "out" / "predictions.csv")
    assert "soft_label" not in written
    again = predicted(folder, "quick.csv").iloc[written["row"] - 1]
    assert again["prediction"].tolist() == written["prediction"].tolist()
    np.testing.assert_allclose(again["score"], written["score"])


def test_the_projected_model_has_one(folder):
    assert fit(folder, "quick.csv", "species", "--model", "projected") == 0
    found = document(folder)
    assert found["model"]["name"] == "projected"
    assert found["model"]["certified"] is True
    assert found["certificate"]["summary"]
    assert "soft_label" in pd.read_csv(folder / "out" / "predictions.csv")


def test_the_stacked_model_is_likely_better_and_not_certified(folder, capsys):
    words = ["fit", str(folder / "rare.csv"), "--target", "kind", "--no-curves", "--out"]
    words += [str(folder / "out"), "--candidates", "icls", "Logistic_Regression"]
    assert main([*words, "--model", "stacked"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    found, study = document(folder), document(folder, "study.json")
    assert found["model"]["name"] == "stacked"
    assert found["certificate"] is None
    assert [rung["strength"] for rung in found["ladder"]] == ["certain", "confident", "undecided"]
    for rung in found["ladder"]:
        start = " ".join(rung["words"][0].split())
        assert f"{rung['strength'].capitalize()} {start}" in said
    names = [each["name"] for each in study["confident"]["candidates"]]
    assert names == ["ICLS", "logistic regression"]
    assert study["settings"]["candidates"] == "ICLS, logistic regression"
    assert "stacked" in [each["method"] for each in study["comparison"]["methods"]]
    written = pd.read_csv(folder / "out" / "predictions.csv")
    again = predicted(folder, "rare.csv").iloc[written["row"] - 1]
    assert again["prediction"].tolist() == written["prediction"].tolist()
    np.testing.assert_allclose(again["score"], written["score"], atol=1e-12)


def test_candidates_can_be_left_out(folder):
    assert fit(folder, "rare.csv", "kind") == 0
    study = document(folder, "study.json")
    assert study["confident"] is None
    assert "--candidates none" in study["ladder"][1]["words"][0]
    assert study["settings"]["candidates"] == "none"


def test_few_labels_are_no_reason_to_stop(folder):
    assert fit(folder, "quick.csv", "species", "--candidates", "icls") == 0
    said = document(folder)["ladder"][1]["words"][0]
    assert "it needs at least 10 labeled rows, and there are 2." in said


def test_a_stacked_model_with_a_forest_says_how_to_open_it_and_opens_like_that(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (300, 2))
    kinds = np.where(X[:, 0] * X[:, 1] > 0.0, "in", "out")  # nothing for a linear model
    table = pd.DataFrame(X, columns=["a", "b"]).assign(kind=kinds)
    table.loc[80:, "kind"] = None
    table.to_csv(tmp_path / "corners.csv", index=False)
    assert fit(tmp_path, "corners.csv", "kind", "--candidates", "random-forest") == 0
    study = document(tmp_path, "study.json")
    assert study["model"]["name"] == "stacked"
    assert "neverworse predict model.skops TABLE --trust-compiled" in study["model"]["words"][-1]
    model, rows = str(tmp_path / "out" / "model.skops"), str(tmp_path / "corners.csv")
    for words in (["predict", model, rows], ["audit", model, rows, "--target", "kind"]):
        assert main(words) == 5
        said = capsys.readouterr().err
        assert "If you made the file, or know who did, accept it with --trust-compiled" in said
    found = predicted(tmp_path, "corners.csv", "--trust-compiled")
    assert np.mean(found["prediction"].to_numpy()[80:] == kinds[80:]) > 0.8
    assert main(["audit", model, rows, "--target", "kind", "--trust-compiled"]) == 3


def test_forests_are_opened_by_those_who_trust_them(folder, capsys):
    assert fit(folder, "quick.csv", "species", "--model", "random forest") == 0
    words = ["predict", str(folder / "out" / "model.skops"), str(folder / "quick.csv")]
    assert main(words) == 5
    assert "accept it with --trust-compiled" in capsys.readouterr().err
    assert len(predicted(folder, "quick.csv", "--trust-compiled")) == 100
    assert document(folder, "study.json")["model"]["compiled"] is True


def test_any_model_can_be_audited_later(folder, capsys):
    table = str(folder / "rare.csv")
    for words, code, said in (
        (["supervised"], 0, "No difference"),
        (["projected"], 0, "Never worse"),
        (["projected", "--calibrate"], 3, "Not guaranteed: whatever the true labels"),
    ):
        assert fit(folder, "rare.csv", "kind", "--alpha", "1", "--model", *words) == 0
        capsys.readouterr()
        model = str(folder / "out" / "model.skops")
        assert main(["audit", model, table, "--target", "kind"]) == code
        assert capsys.readouterr().out.startswith(said)


@pytest.mark.parametrize("calibrate", [[], ["--calibrate"]])
def test_thresholds_are_kept_in_the_model(folder, calibrate):
    words = ["--threshold", "cost=10:1", "--model", "supervised", *calibrate]
    assert fit(folder, "rare.csv", "kind", *words) == 0
    decision = document(folder, "study.json")["model"]["decision"]
    assert (decision["rule"], decision["positive"]) == ("cost=10:1", "fraud")
    assert decision["calibrated"] == bool(calibrate)
    assert 0.0 < decision["threshold"] < 0.5
    written = pd.read_csv(folder / "out" / "predictions.csv")
    fraud = written["probability: fraud"] >= decision["threshold"]
    assert (written["prediction"] == np.where(fraud, "fraud", "ok")).all()
    again = predicted(folder, "rare.csv", "--probabilities").iloc[written["row"] - 1]
    assert again["prediction"].tolist() == written["prediction"].tolist()
    for column in ("probability: fraud", "probability: ok"):
        np.testing.assert_allclose(again[column], written[column], atol=1e-12)
    np.testing.assert_allclose(again["score"], written["score"], atol=1e-12)


def test_weights_of_classes_find_more_of_the_rare_one(folder):
    found = []
    for words in ([], ["--class-weight", "balanced"]):
        assert fit(folder, "rare.csv", "kind", "--model", "projected", *words) == 0
        found.append((predicted(folder, "rare.csv")["prediction"] == "fraud").sum())
    assert found[1] > 1.5 * found[0]
    weights = document(folder)["certificate"]["class_weight"]
    assert [name for name, _ in weights] == ["fraud", "ok"]
    assert weights[0][1] > 2.0 > 1.0 > weights[1][1]
    assert document(folder)["settings"]["class weight"] == "balanced"


@pytest.mark.parametrize(
    ("table", "target", "words", "code", "said"),
    [
        ("quick.csv", "species", ["--model", "forrest"], 2, "Did you mean 'random forest'?"),
        ("quick.csv", "species", ["--model", "label spreading"], 2, "no model 'label spreading'"),
        ("quick.csv", "species", ["--candidates", "forrest"], 2, "Did you mean 'random forest'?"),
        ("quick.csv", "species", ["--candidates", "none", "icls"], 2, "no candidate 'none'"),
        (
            *("quick.csv", "species", ["--candidates", "none", "--model", "stacked"]),
            *(2, "--model stacked needs candidates."),
        ),
        ("quick.csv", "species", ["--model", "stacked"], 4, "needs at least 10 labeled rows"),
        ("quick.csv", "species", ["--threshold", "cost=0:1"], 2, "both costs must be positive"),
        ("quick.csv", "species", ["--threshold", "-0.5"], 2, "probability between 0 and 1"),
        ("quick.csv", "species", ["--threshold", "1.5"], 2, "probability between 0 and 1"),
        ("quick.csv", "species", ["--threshold", "f2"], 2, "balanced, f1 or cost=5:1"),
        ("quick.csv", "species", ["--class-weight", "even"], 2, "invalid choice"),
        (
            "quick.csv",
            "species",
            ["--threshold", "f1"],
            4,
            "Say which one is positive: --positive small",
        ),
        (
            "quick.csv",
            "species",
            ["--calibrate"],
            4,
            "--calibrate are tested on held-out labeled rows",
        ),
        ("flowers.csv", "species", ["--threshold", "0.3"], 4, "for two classes, and there are 3"),
    ],
)
def test_what_cannot_be_done_is_said_with_its_exit_code(
    folder, tmp_path, capsys, table, target, words, code, said
):
    out = tmp_path / "out"
    try:
        found = main(["fit", str(folder / table), "--target", target, "--out", str(out), *words])
    except SystemExit as error:  # of argparse
        found = error.code
    assert found == code
    assert said in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


def test_the_printout_says_which_model_it_is(folder, capsys):
    words = ["fit", str(folder / "rare.csv"), "--target", "kind", "--no-curves", "--alpha", "1"]
    words += ["--out", str(folder / "out"), "--candidates", "none"]
    assert main([*words, "--model", "icls", "--threshold", "balanced"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Model model.skops holds the ICLS model. Nothing is proved about it" in said
    assert "'fraud' is predicted where its probability is at least" in said
    assert "This is tested on held-out rows, by what each training fold alone would decide" in said
    assert "Audit Not guaranteed: " in said


@pytest.fixture(scope="module")
def decided(folder):
    """The file of a model with a threshold of its own."""
    assert fit(folder, "rare.csv", "kind", "--threshold", "0.3", "--model", "supervised") == 0
    return shutil.copy(folder / "out" / "model.skops", folder / "decided.skops")


@pytest.mark.parametrize(
    "parts",
    [
        {"positive": 7, "threshold": 0.5},
        {"positive": "fraud", "threshold": 0.5},
        {"threshold": "0.5"},
        {"sigmoids": np.zeros((3, 2))},
        {"sigmoids": np.zeros(2)},
        {"estimator": "none"},
    ],
    ids=str,
)
def test_decisions_that_somebody_made_up_are_refused(folder, decided, tmp_path, capsys, parts):
    model = load_model(decided).model
    model.estimator_.set_params(**parts)
    save_model(model, tmp_path / "m.skops", facts={})
    assert main(["predict", str(tmp_path / "m.skops"), str(folder / "rare.csv")]) == 5
    assert "its contents are inconsistent" in capsys.readouterr().err
