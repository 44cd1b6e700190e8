"""``neverworse audit``: models of neverworse and of others, and exit codes that mean something."""

from __future__ import annotations

import json

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import neverworse as package
from neverworse.cli import main
from tests.cli.tables import neverworse, patients, quick

TABLE = patients()
NUMBERS = [name for name in TABLE if TABLE[name].dtype == float and name != "mean texture"]
KNOWN = TABLE["diagnosis"].notna().to_numpy()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with models of neverworse and of scikit-learn, and their table."""
    folder = tmp_path_factory.mktemp("audit")
    TABLE.to_csv(folder / "t.csv", index=False)
    words = ["--target", "diagnosis", "--alpha", "0", "--no-curves", "--quiet"]
    words += ["--candidates", "none", "--drop", "patient", "--out"]
    assert main(["fit", str(folder / "t.csv"), *words, str(folder / "all")]) == 0
    for name, C in (("weak", 0.01), ("strong", 10.0)):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=C))
        skops.io.dump(model.fit(*labeled_rows()), folder / f"{name}.skops")
    forest = RandomForestClassifier(5, random_state=0).fit(*labeled_rows())
    skops.io.dump(forest, folder / "forest.skops")
    return folder


def labeled_rows():
    return TABLE.loc[KNOWN, NUMBERS], TABLE.loc[KNOWN, "diagnosis"]


def test_the_certificate_again(folder):
    certificate = json.loads((folder / "all" / "certificate.json").read_text())["certificate"]
    ran = neverworse(
        "audit", "all/model.skops", "t.csv", "--target", "diagnosis", "--json", cwd=folder
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    found = json.loads(ran.stdout)
    assert found["holds"]
    assert found["worst_case"] * len(TABLE) == pytest.approx(certificate["worst_case"], rel=1e-6)
    assert found["best_case"] * len(TABLE) == pytest.approx(certificate["best_case"], rel=1e-6)


def test_no_guarantee_is_an_exit_code(folder, capsys):
    models = [str(folder / f"{name}.skops") for name in ("weak", "strong")]
    words = ["audit", models[0], str(folder / "t.csv"), "--against", models[1]]
    assert main([*words, "--target", "diagnosis"]) == 3
    assert capsys.readouterr().out.startswith("Not guaranteed: ")
    assert main([*words, "--target", "diagnosis", "--quiet"]) == 3
    assert capsys.readouterr() == ("", "")


def test_models_of_scikit_learn(folder, capsys):
    models = [str(folder / f"{name}.skops") for name in ("strong", "weak")]
    words = ["audit", models[0], str(folder / "t.csv"), "--against", models[1], "--json"]
    assert main([*words, "--target", "diagnosis"]) == 3
    found = json.loads(capsys.readouterr().out)
    codes = np.where(KNOWN, TABLE["diagnosis"] == "malignant", -1)
    fitted = [
        make_pipeline(StandardScaler(), LogisticRegression(C=C)).fit(*labeled_rows())
        for C in (10.0, 0.01)
    ]
    scores = [model.predict_proba(TABLE[NUMBERS]) for model in fitted]
    expected = package.audit(*scores, None, codes, missing_label=-1)
    assert found["worst_case"] == pytest.approx(expected.worst_case, rel=1e-9)
    assert found["best_case"] == pytest.approx(expected.best_case, rel=1e-9)


def test_compiled_models_only_if_they_are_trusted(folder, capsys):
    forest, table = str(folder / "forest.skops"), str(folder / "t.csv")
    words = ["audit", forest, table, "--against", forest, "--target", "diagnosis"]
    assert main(words) == 5
    assert "--trust-compiled" in capsys.readouterr().err
    assert main([*words, "--trust-compiled"]) == 0
    assert capsys.readouterr().out.startswith("No difference: ")


def test_a_kernel_machine_that_somebody_lengthened_does_not_crash(folder, capsys):
    model = SVC().fit(*labeled_rows())
    model.support_ = np.arange(1_000_000, dtype=np.int32)
    model._n_support = np.array([500_000, 500_000], dtype=np.int32)
    skops.io.dump(model, folder / "svc.skops")
    words = ["audit", str(folder / "svc.skops"), str(folder / "t.csv"), "--target", "diagnosis"]
    words += ["--against", str(folder / "strong.skops"), "--response", "error"]
    assert main(words) == 5
    assert "--trust-compiled" in capsys.readouterr().err


def test_categories_that_look_like_numbers(tmp_path, capsys):
    table = quick().assign(clinic=["01", "1", "001", "1"] * 25)
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "species", "--categorical", "clinic", "--quiet", "--alpha", "1"]
    assert main(["fit", str(tmp_path / "t.csv"), *words, "--out", str(tmp_path / "o")]) == 0
    model = str(tmp_path / "o" / "model.skops")
    assert main(["audit", model, str(tmp_path / "t.csv"), "--target", "species", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    certificate = json.loads((tmp_path / "o" / "certificate.json").read_text())["certificate"]
    assert found["worst_case"] * len(table) == pytest.approx(certificate["worst_case"], rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            "weak.skops t.csv",
            2,
            "contains no supervised model to compare with.",
        ),
        ("none.skops t.csv", 5, "There is no file"),
        ("t.csv t.csv", 5, "is not a model file"),
        ("all/model.skops none.csv", 4, "There is no file"),
        ("all/model.skops t.csv --target diag", 4, "no column 'diag' for --target. Did you mean"),
        ("all/model.skops t.csv --drop x", 4, "There is no column 'x' for --drop."),
        ("all/model.skops t.csv --weight clinic", 4, "'clinic' should hold numbers"),
        (
            "all/model.skops t.csv --prior 0.4",
            2,
            "Here, --prior must name the class: CLASS=LOW..HIGH.",
        ),
        ("all/model.skops t.csv --prior x=0.4", 4, "--prior names the class 'x'"),
        ("all/model.skops t.csv --response x", 2, "invalid choice: 'x'"),
        ("weak.skops t.csv --against all/model.skops --response score", 4, "--response"),
        ("all/model.skops t.csv --target clinic", 4, "do not know"),
    ],
)
def test_what_is_wrong(folder, monkeypatch, capsys, arguments, code, said):
    monkeypatch.chdir(folder)
    words = arguments.split()
    target = [] if "--target" in words else ["--target", "diagnosis"]
    assert main(["audit", *words, *target]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("neverworse audit: error: ")
    assert said in err
