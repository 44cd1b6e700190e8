"""What evidence is worth: measured on hidden labels, and told as it is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss

from neverworse import LeastSquaresClassifierCV
from neverworse.experiments import EXPERIMENTS, _analysis, _experiments, reproduce
from neverworse.experiments._reproduction import IN_PAPER


@pytest.fixture(scope="module")
def records():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_experiments, "EVIDENCE_SIZES", (40, 200))
        return _experiments.evidence((X[:150], y[:150]), None, np.random.default_rng(1), 0)


def test_every_method_is_measured_on_the_same_rows(records):
    assert {record["n_labeled"] for record in records} == {40}  # 200 labels leave no rows
    named = {record["method"]: record for record in records}
    assert len(named) == len(records)
    assert {"baseline", "ICLS", "random forest", "picked by cross-validation"} < named.keys()
    assert set(_experiments.STACKED) < named.keys()
    assert named["sequential audit, errors"]["asked"] <= _experiments.MOST_QUESTIONS
    assert named["safe stacking"]["asked"] == 0


def test_the_baseline_is_least_squares_with_forty_labels(records):
    """The rows of the draw, fitted and scored without the code under test."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150], y[:150]
    order = np.random.default_rng(1).permutation(150)
    first = [row for label in (0, 1) for row in [k for k in order if y[k] == label][:2]]
    labeled = [*first, *(k for k in order if k not in first)][:40]
    known = np.full(150, -1)
    known[labeled] = y[labeled]
    rest = known == -1
    clf = LeastSquaresClassifierCV(missing_label=-1).fit(X, known)
    (found,) = [record for record in records if record["method"] == "baseline"]
    expected = brier_score_loss(y[rest], clf.predict_proba(X[rest])[:, 1])
    assert found["brier"] == pytest.approx(expected)
    assert found["error"] == pytest.approx(1.0 - clf.score(X[rest], y[rest]))


def few():
    """Two data sets, two repeats: b is better in one of them, and worse in the other."""
    rows = [
        ("A", 0, "baseline", 0.2, 0.4),
        ("A", 1, "baseline", 0.1, 0.0),
        ("B", 0, "baseline", 0.1, 0.1),
        ("B", 1, "baseline", 0.1, 0.1),
        ("A", 0, "b", 0.1, 0.2),
        ("A", 1, "b", 0.1, 0.0),
        ("B", 0, "b", 0.2, 0.2),
        ("B", 1, "b", 0.1, 0.1),
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "repeat", "method", "brier", "error"])
    return frame.assign(n_labeled=40, asked=3)


def test_ratios_are_means_over_repeats_and_then_over_data_sets():
    found = _analysis.evidence(few()).set_index("dataset")
    assert found.loc["A", "brier_ratio"] == pytest.approx(0.75)
    assert found.loc["B", "brier_ratio"] == pytest.approx(1.5)
    assert found.loc["mean", "brier_ratio"] == pytest.approx(1.125)
    assert found.loc["A", "error_ratio"] == pytest.approx(0.75)  # none of none is as many
    assert found["worse"].tolist() == found["more_errors"].tolist() == [0.0, 0.5, 0.25]


def test_the_page_says_how_it_was_made():
    measured = few()
    summary = _analysis.evidence(measured)
    text = _analysis.evidence_page(measured, summary, {"Command": "x"})
    assert "- Command: x" in text
    assert "means over 2 repeats" in text.replace("\n", " ")
    assert "40 labels: means over 2 data sets" in text
    assert "| b | 1.125 | 0.25 | 1.125 | 0.25 | 3 |" in text
    assert "| B | 1.5 |" in text


def test_it_is_run_only_if_it_is_asked_for(tmp_path, monkeypatch):
    assert "evidence" not in IN_PAPER
    monkeypatch.setattr(_experiments, "EVIDENCE_SIZES", (40,))
    X, y = load_breast_cancer(return_X_y=True)
    found = type("Found", (), {"data": X[:100], "target": y[:100]})
    monkeypatch.setattr(
        "neverworse.experiments._reproduction.load_paper_dataset", lambda *_, **__: found
    )
    run = {"datasets": ["WDBC"], "jobs": 1, "out": tmp_path, "quiet": True}
    first = reproduce("evidence", repeats=1, **run)
    first.save(tmp_path, command="neverworse reproduce evidence")
    assert "safe stacking" in (tmp_path / "evidence.md").read_text(encoding="utf-8")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Not an experiment of the paper." in page
    assert "(published:" not in page
    # Stored repeats are not run again.
    monkeypatch.setattr(EXPERIMENTS["evidence"], "run", None)
    again = reproduce("evidence", repeats=1, **run)
    pd.testing.assert_frame_equal(again.measurements["evidence"], first.measurements["evidence"])
