"""What the pseudo-inverse of the published code leaves out."""

import numpy as np
import pytest

from neverworse.experiments import GINV_CUTOFF


@pytest.fixture
def cutoff(load):
    return load("cutoff")


def test_left_out_is_what_the_pseudo_inverse_lacks(cutoff):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6)) * [1e3, 10.0, 1.0, 1e-2, 1e-3, 1e-4]
    rows = X[:20] + 1.0
    E = np.c_[np.ones(20), rows - X.mean(axis=0)]
    kept = np.linalg.matrix_rank(np.linalg.pinv(E.T @ E, rcond=GINV_CUTOFF, hermitian=True))
    assert cutoff.n_left_out(X, rows) == 7 - kept
    assert 0 < kept < 7


def test_table(cutoff, capsys):
    cutoff.main(["--datasets", "WDBC", "--repeats", "1"])
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.count("|") == row.count("|")
    assert row.startswith("| WDBC | 30 | ")
