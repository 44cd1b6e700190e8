"""Wins, draws and losses over several seeds."""

import pandas as pd
import pytest

from neverworse.datasets import load_paper_dataset
from tests.experiments import runs


@pytest.fixture
def seeds(load):
    return load("seeds")


def test_cells_are_those_of_the_reproduction(seeds):
    expected = runs.small().summaries["table"].set_index("method")
    data = load_paper_dataset("WDBC", return_X_y=True)
    found = seeds.cells_of(0, "WDBC", data, ["Projection", "TSVM"], 2).set_index("method")
    assert list(found.index) == ["Projection", "TSVM"]
    for column in ("mean", "sd", "p_less", "p_greater", "mark"):
        assert found[column].to_dict() == expected.loc[found.index, column].to_dict()


def test_what_was_run_is_not_run_again(seeds, tmp_path, capsys, monkeypatch):
    out = tmp_path / "seeds.csv"
    settings = [
        "--datasets",
        "WDBC",
        "--repeats",
        "1",
        "--methods",
        "Projection",
        "--out",
        str(out),
    ]
    seeds.main(["--seeds", "1", *settings])
    first = capsys.readouterr().out
    ran = []
    original = seeds.cells_of
    monkeypatch.setattr(seeds, "cells_of", lambda *a: ran.append(a[0]) or original(*a))
    seeds.main(["--seeds", "1", *settings])
    assert (ran, capsys.readouterr().out) == ([], first)
    seeds.main(["--seeds", "2", *settings])
    assert ran == [1]
    assert "| Projection | 0 / 1 / 0 | 0 / 1 / 0: 2 |" in capsys.readouterr().out


def test_counts_over_seeds(seeds):
    marks = {
        "Haberman": ["", "", "better", "worse"],
        "WDBC": ["", "", "", ""],
        "BCI": ["better", "better", "better", "better"],
    }
    cells = pd.DataFrame(
        [
            {"seed": seed, "dataset": dataset, "method": "Projection", "mark": mark}
            for dataset, row in marks.items()
            for seed, mark in enumerate(row)
        ]
    )
    lines = seeds.report(cells).splitlines()
    assert lines[2] == "| Projection | 1 / 2 / 0 | 2 / 1 / 0: 1, 1 / 2 / 0: 2, 1 / 1 / 1: 1 |"
    assert lines[-1] == "| Projection | Haberman | no different | 1 | 2 | 1 |"
    assert not any("WDBC" in line or "BCI" in line for line in lines)
    without_the_last = cells.drop(cells.index[-1])  # an unfinished seed has no count
    line = seeds.report(without_the_last).splitlines()[2]
    assert line == "| Projection | 1 / 2 / 0 | 2 / 1 / 0: 1, 1 / 2 / 0: 2 |"
