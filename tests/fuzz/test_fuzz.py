"""A few seeds of every attack, and the runner."""

import json
import os
import sys

import pytest

from tests.fuzz import ATTACKS, Attack
from tests.fuzz.run import _batches, main

SMOKE = {"certificates": 60, "audits": 100, "fits": 400}


@pytest.mark.filterwarnings("ignore")  # of damaged files, and of scikit-learn in hostile fits
@pytest.mark.parametrize("name", sorted({*ATTACKS} - {"workers"}))  # killed in tests/rows
def test_a_few_seeds_of_every_attack_hold(name):
    attack = ATTACKS[name].load()
    violations = {seed: attack(seed) for seed in range(SMOKE.get(name, 40))}
    assert {seed: text for seed, text in violations.items() if text is not None} == {}


def attack(seed):
    """Does not hold for two seeds, of which one ends the process."""
    if seed == 31:
        os._exit(1)
    if seed == 3 and not os.environ.get("REPAIRED"):
        return "three does not hold"
    return None


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(ATTACKS, "toy", Attack("test_fuzz", "attack", 60))
    monkeypatch.setattr("tests.fuzz.run.N_BATCHES", 20)
    # Processes are started afresh, and know the registry as it is in the file.
    monkeypatch.setattr("tests.fuzz.run._pool", _fork)


def _fork(jobs):
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(jobs, get_context("fork"))


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fork beside threads
def test_a_run_finds_what_does_not_hold_and_goes_on(toy, tmp_path, monkeypatch, capsys):
    state = tmp_path / "deep" / "fuzz.json"
    arguments = ["--only", "toy", "--jobs", "1", "--state", str(state)]
    assert main([*arguments, "--minutes", "0"]) == 0  # no time, nothing tried
    assert main(arguments) == 1
    known = json.loads(state.read_text())["toy"]
    assert known["done"] == 60
    assert known["cpu_seconds"] >= 0.0
    assert known["violations"] == {"3": "three does not hold", "31": "the process died"}
    monkeypatch.setenv("REPAIRED", "1")
    assert main(arguments) == 1
    assert set(json.loads(state.read_text())["toy"]["violations"]) == {"31"}
    assert "60 of 60 seeds tried, 1 violations" in capsys.readouterr().out


def test_all_attacks_get_the_same_share_of_the_time(toy, monkeypatch):
    monkeypatch.setitem(ATTACKS, "other", Attack("test_fuzz", "attack", 1000))
    left = _batches(["toy", "other"], {"toy": {"done": 30}, "other": {"done": 0}})
    assert sorted(seed for name, seeds in left if name == "toy" for seed in seeds) == [
        *range(30, 60)
    ]
    assert sorted(seed for name, seeds in left if name == "other" for seed in seeds) == [
        *range(1000)
    ]
    first = [name for name, _ in left[:10]]
    assert set(first) == {"other"}  # until it has caught up
    assert [name for name, _ in left[10:]].count("toy") == 10


def test_one_seed_alone_is_not_remembered(toy, tmp_path, capsys):
    state = tmp_path / "fuzz.json"
    assert main(["--only", "toy", "--seed", "3", "--state", str(state)]) == 1
    assert main(["--only", "toy", "--seed", "4", "--state", str(state)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "toy, seed 3: three does not hold",
        "toy, seed 4: holds",
    ]
    assert not state.exists()
