"""Stored repeats survive whatever happens to the program and to its files."""

import gzip
import json
from copy import copy

import pytest
from sklearn.datasets import load_breast_cancer

from neverworse.experiments import _reproduction
from neverworse.experiments._experiments import EXPERIMENTS, Experiment
from neverworse.experiments._reproduction import Plan, run

RECORDS = [{"method": "Supervised", "error": 0.1 + 0.2}, {"method": "ICLS", "error": 1e-17}]


@pytest.fixture
def ran(monkeypatch):
    """Repeats that were computed and not read from a file."""
    done = []

    monkeypatch.setitem(EXPERIMENTS, "table", None)

    @Experiment("Table", 3, ["Supervised"], ["WDBC"])
    def table(data, protocol, rng, repeat):
        done.append(repeat)
        return RECORDS

    return done


def go(folder, **settings):
    return run(Plan(("table",), ("WDBC",), **settings), folder, jobs=1)["table"]["WDBC"]


def test_what_was_stored_comes_back_to_the_last_bit(tmp_path, ran):
    for _ in range(2):
        assert go(tmp_path) == dict.fromkeys(range(3), RECORDS)
    assert ran == [0, 1, 2]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"\x00" * 100,
        lambda content: content[:-1],
        lambda content: content[:30] + bytes([content[30] ^ 1]) + content[31:],
        lambda content: gzip.compress(b"{"),
        lambda content: b"junk",
    ],
)
def test_a_damaged_file_costs_only_its_repeat(tmp_path, ran, damage):
    go(tmp_path)
    (path,) = tmp_path.rglob("1.json.gz")
    path.write_bytes(damage(path.read_bytes()))
    assert go(tmp_path) == dict.fromkeys(range(3), RECORDS)
    assert ran == [0, 1, 2, 1]
    assert json.loads(gzip.decompress(path.read_bytes())) == RECORDS


def test_results_of_other_settings_are_neither_reused_nor_replaced(tmp_path, ran):
    for seed in (0, 1, 0, 1):
        go(tmp_path, seed=seed, repeats=1)
    assert ran == [0, 0]
    settings = [json.loads(path.read_text("utf-8")) for path in tmp_path.rglob("settings.json")]
    assert sorted(each["seed"] for each in settings) == [0, 1]


def test_results_include_what_is_stored_about_other_experiments_and_data_sets(
    tmp_path, ran, monkeypatch
):
    go(tmp_path, repeats=2)
    go(tmp_path, repeats=1, seed=1)
    other = copy(EXPERIMENTS["table"])
    other.name, other.datasets = "robustness", ["Sonar"]
    monkeypatch.setitem(EXPERIMENTS, "robustness", other)
    monkeypatch.setattr(_reproduction, "load_paper_dataset", lambda *_, **__: load_breast_cancer())
    found = run(Plan(("robustness",), ("Sonar",), 1), tmp_path, jobs=1)
    assert found == {
        "robustness": {"Sonar": {0: RECORDS}},
        "table": {"WDBC": {0: RECORDS, 1: RECORDS}},
    }
    assert ran == [0, 1, 0, 0]


def test_nothing_else_is_left_behind(tmp_path, ran):
    go(tmp_path)
    names = sorted(path.name for path in tmp_path.rglob("*.*"))
    assert names == ["0.json.gz", "1.json.gz", "2.json.gz", "settings.json"]
