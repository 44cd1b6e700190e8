"""The study of defaults measures what its page says, and the page has what was measured."""

import numpy as np
import pandas as pd
import pytest

from neverworse import LeastSquaresClassifierCV, ProjectedLeastSquaresClassifier
from neverworse.datasets import load_wdbc


@pytest.fixture
def study(load):
    return load("defaults")


@pytest.fixture
def layout(load):
    return load("defaults_page")


@pytest.fixture
def measured(study):
    return study.measure({"WDBC": load_wdbc(return_X_y=True)}, repeats=1)


def test_the_command_fills_the_page(study, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{study.BEGIN}\nstale\n<!-- end -->\nafter\n")
    arguments = ["--datasets", "WDBC", "--repeats", "2"]
    assert study.main([*arguments, "--page", str(page)]) == 0
    text, printed = page.read_text(encoding="utf-8"), capsys.readouterr().out.strip()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "stale" not in text
    assert printed in text
    for n, unlabeled in ((40, 358), (100, 298), (200, 198)):
        assert text.count(f"| WDBC | {n} | {unlabeled} |") == 2
    assert "Guarantees broken: 0 of 18. Not converged: 0 of 36 fits." in text
    assert study.tables_of(pd.read_csv(tmp_path / "page.csv")) in text
    assert (tmp_path / "images" / "page.png").read_bytes().startswith(b"\x89PNG")
    assert study.main([*arguments, "--jobs", "2"]) == 0
    assert capsys.readouterr().out.strip() == printed


def test_a_page_that_cannot_be_filled_is_noticed_at_once(study, tmp_path, capsys, monkeypatch):
    monkeypatch.delattr(study, "measure")
    page = tmp_path / "page.md"
    for problem in (str(page), "no marks"):
        with pytest.raises(SystemExit):
            study.main(["--page", str(page)])
        assert problem in capsys.readouterr().err
        page.write_text("# A page")


def test_losses_are_those_of_scores_and_of_probabilities(study):
    X, y = load_wdbc(return_X_y=True)
    clf = ProjectedLeastSquaresClassifier().fit(X[:300], np.where(np.arange(300) < 60, y[:300], -1))
    found = study._held_out(clf, X[300:], y[300:])
    scores = X[300:] @ clf.coef_[0] + clf.intercept_[0] + 0.5
    assert found["raw"] == pytest.approx(np.mean((scores - y[300:]) ** 2))
    shares = clf.predict_proba(X[300:])[:, 1]
    assert found["clipped"] == pytest.approx(np.mean((shares - y[300:]) ** 2))
    assert found["clipped"] < found["raw"]
    assert found["error"] == pytest.approx(1.0 - clf.score(X[300:], y[300:]))


def test_rows_are_tested_or_trained_on_and_labels_are_nested(study, monkeypatch):
    drawn = {}

    def fits(X, y, train, n_labeled, test):
        drawn[n_labeled] = (train[:n_labeled], train[n_labeled:], test)
        return []

    monkeypatch.setattr(study, "_fits", fits)
    y = np.r_[np.zeros(395, int), np.ones(5, int)]
    study.one_repeat("a", np.zeros((400, 1)), y, 0)
    assert list(drawn) == [40, 100, 200]
    for n, (labeled, unlabeled, test) in drawn.items():
        assert (len(labeled), len(unlabeled), len(test)) == (n, 280 - n, 120)
        assert np.array_equal(np.sort(np.concatenate(drawn[n])), np.arange(400))
        assert set(y[labeled]) == {0, 1}
        assert set(drawn[40][0]) <= set(labeled)
        assert np.array_equal(test, drawn[40][2])


def test_a_number_of_labels_that_leaves_no_unlabeled_row_is_left_out(study, monkeypatch):
    monkeypatch.setattr(study, "_fits", lambda *_: [{}])
    y = np.arange(286) % 2  # 200 of them for training
    found = study.one_repeat("a", np.zeros((286, 1)), y, 0)
    assert [record["labels"] for record in found] == [40, 100]


def test_one_penalty_serves_all_defaults(study):
    """What is passed as a number is what alpha="loo" finds."""
    X, y = load_wdbc(return_X_y=True)
    X = study._standardised(X)
    known = np.where(np.arange(len(y)) < 40, y, -1)
    alpha = LeastSquaresClassifierCV().fit(X, known).alpha_
    chosen, given = (
        ProjectedLeastSquaresClassifier(alpha=a, constraint_alpha=alpha).fit(X, known)
        for a in ("loo", alpha)
    )
    np.testing.assert_allclose(chosen.coef_, given.coef_, rtol=1e-9)


def test_guarantees_and_what_they_come_from(study, measured):
    projected = measured[measured["model"].str.startswith("Projection")]
    assert (projected["training"] <= 1.0).all()
    assert (projected["guaranteed"] > 0.0).all()
    # The baseline has the lowest loss on labeled rows that its own penalty allows, so it takes
    # another penalty for a candidate to have a lower one.
    same = projected[~projected["model"].str.endswith(study.OLD_COMMAND)]
    assert (same["from_labeled"] <= 1e-12).all()


def test_means_of_ratios_and_shares_of_repeats(study):
    def fits(model, raw, clipped, error, changed=np.nan):
        values = {"raw": raw, "clipped": clipped, "error": error}
        more = {"test": 9, "unlabeled": 5, "guaranteed": 0.5, "from_labeled": 0.1, "outside": 0.2}
        cell = {"dataset": "A", "labels": 40, "model": model, "repeat": [0, 1]}
        return pd.DataFrame({**cell, **values, **more, "changed": changed})

    own = study.name_of("Projection", study.OLD_PYTHON)
    measured = pd.concat(
        [
            fits(study.TUNED, [1.0, 2.0], [1.0, 1.0], [0.2, 0.2]),
            fits(study.UNPENALISED, [4.0, 4.0], [2.0, 1.0], [0.2, 0.4]),
            fits(own, [1.0 + 1e-13, 3.0], [0.5, 1.1], [0.1, 0.2], [0.0, 1.0]),
        ]
    )
    cells = study.compare(measured).set_index(["model", "against"])
    cell = cells.loc[own, study.TUNED]
    assert cell["raw"] == pytest.approx((1.0 + 1.5) / 2)  # not 4 / 3
    assert cell["raw_se"] == pytest.approx(0.25)
    assert cell["clipped"] == pytest.approx(0.8)
    assert cell["error"] == pytest.approx(-5.0)  # points
    assert list(cell[["raw_worse", "clipped_worse", "error_worse"]]) == [0.5, 0.5, 0.0]
    assert cell["changed"] == 0.5
    assert cells.loc[own, study.UNPENALISED]["raw"] == pytest.approx((0.25 + 0.75) / 2)
    assert cells.loc[study.UNPENALISED, study.TUNED]["error_worse"] == 0.5


@pytest.fixture
def cells(study):
    """What was measured for the page."""
    return pd.read_csv(study.PAGE.with_suffix(".csv"))


def test_the_page_has_the_tables_of_its_numbers(study, cells):
    assert study.tables_of(cells) in study.PAGE.read_text(encoding="utf-8")


def test_what_the_page_says_about_the_tables(study, cells):
    tuned = cells[cells["against"] == study.TUNED]

    def of(method, setting):
        return tuned[tuned["model"] == study.name_of(method, setting)].set_index(study.CELL)

    new, command, python = (
        of("Projection", setting) for setting in (study.NEW, study.OLD_COMMAND, study.OLD_PYTHON)
    )
    missing = {name for name in study.PAPER_DATASETS if (name, 200) not in new.index}
    assert missing == {"Parkinsons", "Sonar", "SPECT", "SPECTF"}
    assert len(new) == 44
    # The baseline matters most.
    assert (python.groupby("labels")["raw"].mean() > 1.2).all()
    own = cells[cells["against"] == study.UNPENALISED].query("model.str.startswith('Projection')")
    assert (own.groupby("labels")["raw"].mean() < 0.9).all()
    # The old command line praised overfitting.
    sonar = command.loc[("Sonar", 100)]
    assert sonar["guaranteed"] > 0.05
    assert sonar["raw_worse"] > 0.9
    assert sonar["from_labeled"] > sonar["guaranteed"]
    share = command.groupby("labels")[["from_labeled", "guaranteed"]].mean()
    assert (share["from_labeled"] / share["guaranteed"])[[100, 200]].between(0.9, 1.3).all()
    assert (command["raw"] < new["raw"] - 0.01)[[("BCI", 100), ("Parkinsons", 100)]].all()
    # With the new defaults, mostly nothing happens, and clipping takes the rest.
    assert (new.groupby("labels")["changed"].mean() < 0.4).all()
    assert (new["raw"] - 2.0 * new["raw_se"] <= 1.0).all()
    assert (new["from_labeled"] <= 0.0).all()
    assert new.groupby("labels")["clipped"].mean().between(0.999, 1.004).all()
    assert (new.loc["WDBC", "clipped"] > 1.02).all()
    assert (new.loc["WDBC", "raw"] < 1.0).all()
    outside = new.groupby("labels")[["outside_changed", "outside_unchanged"]].mean()
    assert (outside["outside_changed"] > outside["outside_unchanged"]).all()
    # ICLS has no guarantee.
    icls = of("ICLS", study.OLD_COMMAND)
    for worse in (frame.groupby("labels")["raw_worse"].mean() for frame in (command, new)):
        assert (icls.groupby("labels")["raw_worse"].mean() > worse).all()
    assert of("ICLS", study.NEW).loc[("Digit1", 200), "raw_worse"] >= 0.4
