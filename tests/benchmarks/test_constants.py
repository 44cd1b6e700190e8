"""The constants of fits agree with what is known of these, on sizes that say nothing of speed."""

import numpy as np
import pytest


@pytest.fixture
def constants(load):
    return load("constants")


@pytest.fixture
def problem(constants):
    labeled, columns = constants.N_LABELED, constants.N_COLUMNS
    return constants.two_gaussians(labeled, 20_000 - labeled, columns, dtype=np.float32)[:2]


def test_of_fits(constants, problem, monkeypatch):
    monkeypatch.setattr(constants, "MANY", 8)  # these are few rows
    found = constants._fits(*problem)
    # Passes, and rows that are taken, are tasks; so is what each round asks of what it has left.
    assert found["tasks"] > 1 + found["passes"] + found["takes"]
    # Of few rows, many may take no more rounds than half of them.
    assert found["round_tasks"] >= 3 * (found["more_rounds"] > 0)
    # About a bit for each row, and what travels with it; known labels are few, and take less.
    assert 0 < found["placed_bytes"] < 1 / 2
    assert 1 / 8 < found["soft_bytes"] < 1
    # A sample is thirty rows for each column, in the precision of the rows.
    assert found["taken_bytes"] > 4 * 100 * 30 * 100
    assert found["task_bytes"] > 8 * 100
    assert found["solver_seconds"] > 0


def test_of_one_core(constants, problem, tmp_path):
    found = constants._one_core(problem[0], tmp_path)
    assert all(rate > 0 for rate in found.values())
    assert list(tmp_path.iterdir()) == []


def test_fits_that_take_another_way(constants):
    X, y, _ = constants.two_gaussians(20, 1000, 10)  # solved as a whole
    with pytest.raises(RuntimeError, match="another way"):
        constants._Fit.to(X, y)
