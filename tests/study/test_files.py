"""The files of a fit: what is in them, computed another way, and all of them or none."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from neverworse import ProjectedLeastSquaresClassifier, __version__
from neverworse.study import _files
from neverworse.study._files import OUTPUTS, predictions, read_study, study_from, write_outputs
from neverworse.study._study import FileFacts
from neverworse.study._verdict import claim
from neverworse.tables import load_model, save_model
from tests.study.fits import few_labels, fitted, studied, table

pytestmark = pytest.mark.usefixtures("quick")


def written(folder, n_classes=2, **settings):
    fit, settings = fitted(n_classes, **{"model": "projected", **settings})
    study, scored, chosen = studied(
        fit, settings, files=[FileFacts("t.csv", 7, "0" * 64)], command="neverworse fit"
    )
    paths = write_outputs(folder, chosen, study, scored, settings.id)
    return fit, study, paths


@pytest.fixture(scope="module", params=[2, 3])
def results(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "out"
    return request.param, folder, *written(folder, request.param, id="name", weight="weight")


def test_all_files_and_nothing_else(results):
    _, folder, _, _, paths = results
    assert [path.name for path in paths] == list(OUTPUTS)
    assert sorted(path.name for path in folder.iterdir()) == sorted(OUTPUTS)


def test_predictions(results):
    n_classes, folder, *_ = results
    found = pd.read_csv(folder / "predictions.csv", dtype={"name": str})
    rows = table(n_classes)
    model = load_model(folder / "model.skops").model
    unlabeled = np.array([label is None for label in rows.column("class").to_pylist()])
    assert found["name"].tolist() == np.array(rows.column("name").to_pylist())[unlabeled].tolist()
    assert found["prediction"].tolist() == model.predict(rows)[unlabeled].tolist()
    before = model.supervised().predict(rows)[unlabeled]
    assert found["supervised_prediction"].tolist() == before.tolist()
    assert found["changed"].tolist() == (found["prediction"] != before).tolist()
    decision = model.decision_function(rows)[unlabeled]
    best = 0.5 + (decision.max(axis=1) if n_classes > 2 else np.abs(decision))
    np.testing.assert_allclose(found["score"], best, atol=1e-9)
    # Soft labels are those of a fit without tables.
    features = model.preparation_.transform(rows)
    by_hand = ProjectedLeastSquaresClassifier(alpha=0.0).fit(
        features,
        np.array(rows.column("class").to_pylist(), object),
        sample_weight=rows.column("weight").to_numpy(),
    )
    soft = np.asarray(by_hand.soft_labels_)
    soft = np.column_stack([1.0 - soft, soft]) if n_classes == 2 else soft
    column = [model.classes_.tolist().index(name) for name in found["prediction"]]
    np.testing.assert_allclose(found["soft_label"], soft[range(len(soft)), column], atol=1e-6)


def test_certificate(results):
    n_classes, folder, _, study, _ = results
    document = json.loads((folder / "certificate.json").read_text())
    rows = table(n_classes)
    model = load_model(folder / "model.skops")
    by_hand = ProjectedLeastSquaresClassifier(alpha=0.0).fit(
        model.model.preparation_.transform(rows),
        np.array(rows.column("class").to_pylist(), object),
        sample_weight=rows.column("weight").to_numpy(),
    )
    assert document["certificate"] == json.loads(json.dumps(by_hand.certificate_.to_dict()))
    assert document["model"]["sha256"] == model.sha256
    assert document["claim"] == study.claim == claim(by_hand.certificate_) == model.facts["claim"]
    assert document["data"]["n_labeled"] == 30
    assert document["data"]["n_unlabeled"] == 110
    least = by_hand.certificate_.guaranteed_improvement
    assert f"at least {least:,.4g}" in document["claim"]


def test_the_penalty_is_a_number_in_json(results, tmp_path):
    _, folder, *_ = results
    document = json.loads((folder / "certificate.json").read_text())
    assert document["settings"]["alpha"] == 0.0
    assert document["settings"]["alpha chosen by"] is None
    fit, *_ = written(tmp_path, rows=few_labels(), alpha="loo")
    settings = json.loads((tmp_path / "study.json").read_text())["settings"]
    assert settings["alpha"] == fit.classifier.supervised_.alpha_ > 0.0
    assert settings["alpha chosen by"] == "leave-one-out"


def test_study_round_trip(results):
    _, folder, _, study, _ = results
    again = read_study(folder)
    assert json.dumps(again.to_dict()) == json.dumps(study.to_dict())
    assert again == study_from(json.loads(json.dumps(study.to_dict())))
    assert again.coefficients == study.coefficients


def test_facts_about_the_data(results):
    n_classes, _, fit, study, _ = results
    data = study.data
    assert (data.n_rows, data.n_labeled, data.n_unlabeled) == (140, 30, 110)
    labels = pd.Series(table(n_classes).column("class").to_pylist())
    assert {c.name: c.n_labeled for c in data.classes} == labels.value_counts().to_dict()
    assert sum(c.n_projected for c in data.classes) == 110
    assert sum(c.n_supervised for c in data.classes) == 110
    kinds = {column.name: (column.kind, column.n_missing) for column in data.columns}
    gaps = np.isnan(table(n_classes).column("gap").to_numpy()).sum()
    assert kinds["class"] == ("target", 110)
    assert kinds["name"] == ("id", 0)
    assert kinds["weight"] == ("weight", 0)
    assert kinds["town"] == ("category", 0)
    assert kinds["gap"] == ("number", gaps)
    assert sum(column.n_features for column in data.columns) == fit.features.shape[1]
    assert data.n_features == fit.features.shape[1]


@pytest.mark.parametrize("name", ["prediction", "score", "changed"])
def test_ids_under_the_name_of_a_result(name):
    rows = few_labels()
    rows = rows.rename_columns([name if c == "name" else c for c in rows.column_names])
    fit, settings = fitted(rows=rows, id=name, drop=("weight",), model="projected")
    _, scored, chosen = studied(fit, settings)
    found = predictions(chosen, scored, name)
    assert found.column_names[:2] == ["row", "prediction"]
    assert found.column("row").to_pylist() == fit.row_names.to_pylist()


def test_a_class_with_one_label(tmp_path):
    rows = table(3)
    labels = rows.column("class").to_pylist()
    first = labels.index("setosa")
    labels = [None if v == "setosa" and k != first else v for k, v in enumerate(labels)]
    rows = rows.set_column(rows.column_names.index("class"), "class", [labels])
    fit, settings = fitted(rows=rows)
    study, scored, chosen = studied(fit, settings, curves=True)
    assert study.comparison is None
    assert any("Label more rows of the rare classes" in note for note in study.notes)
    write_outputs(tmp_path, chosen, study, scored, None)
    assert read_study(tmp_path).notes == study.notes


@pytest.mark.parametrize("folder_is_there", [True, False])
@pytest.mark.parametrize("fails", ["save_model", "write_report", "_write_json"])
def test_all_or_nothing(tmp_path, monkeypatch, folder_is_there, fails):
    folder = tmp_path / "out"
    if folder_is_there:
        folder.mkdir()
        for name in OUTPUTS:
            (folder / name).write_text("old")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_files, fails, full)
    with pytest.raises(OSError, match="No space left"):
        written(folder, rows=few_labels())
    left = sorted(path.name for path in folder.iterdir())
    assert left == (sorted(OUTPUTS) if folder_is_there else [])
    assert all(path.read_text() == "old" for path in folder.iterdir())


def test_a_run_that_fails_leaves_the_results_of_another(tmp_path, monkeypatch):
    folder = tmp_path / "out"

    def interrupted(*_, **__):
        (folder / "model.skops").write_text("of another run")
        raise KeyboardInterrupt

    monkeypatch.setattr(_files, "save_model", interrupted)
    with pytest.raises(KeyboardInterrupt):
        written(folder, rows=few_labels())
    assert [path.name for path in folder.iterdir()] == ["model.skops"]


def test_two_runs_into_one_folder_write_one_after_the_other(tmp_path, monkeypatch):
    study, scored, chosen = studied(*fitted(2, rows=few_labels()))
    inside, most = [], []

    def slow(model, path, **settings):
        inside.append(path)
        most.append(len(inside))
        time.sleep(0.3)
        try:
            return save_model(model, path, **settings)
        finally:
            inside.remove(path)

    monkeypatch.setattr(_files, "save_model", slow)
    runs = [
        threading.Thread(target=write_outputs, args=(tmp_path / "out", chosen, study, scored, None))
        for _ in range(2)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert most == [1, 1]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(OUTPUTS)


def test_a_folder_in_the_place_of_a_file(tmp_path):
    (tmp_path / "report.html").mkdir()
    with pytest.raises(IsADirectoryError):
        written(tmp_path, rows=few_labels())
    assert os.listdir(tmp_path) == ["report.html"]  # noqa: PTH208


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "has no study.json, so it is not a results folder"),
        ("", "is damaged: "),
        ("{}", "is damaged: "),
        ("[" * 100_000, "is damaged: "),
        ('{"version": 1}', "is damaged: "),
        (json.dumps({"version": __version__}), "is damaged: "),
        ('{"version": "0.0.1"}', "was written by neverworse 0.0.1, which this one"),
    ],
)
def test_folders_that_are_no_results(tmp_path, content, said):
    if content is not None:
        (Path(tmp_path) / "study.json").write_text(content)
    with pytest.raises(ValueError, match=said):
        read_study(tmp_path)
