"""Least squares on what is kept is least squares with a truncated pseudo-inverse."""

import numpy as np
import pytest

from neverworse import LeastSquaresClassifier
from neverworse.experiments._protocol import GINV_CUTOFF
from neverworse.experiments._truncation import Truncation


def wild_rows(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(60, 5)) * [1e4, 1e2, 1.0, 1e-2, 1e-3] + 5.0, rng.integers(0, 2, 60)


def test_pseudo_inverse_with_the_same_cutoff():
    X, y = wild_rows()
    kept = Truncation(GINV_CUTOFF).fit(X)
    centred = X - X.mean(axis=0)
    inverse = np.linalg.pinv(centred.T @ centred, rcond=GINV_CUTOFF, hermitian=True)
    expected = centred @ (inverse @ centred.T @ (y - y.mean())) + y.mean()
    Z = kept.transform(X)
    assert Z.shape == (60, 2)
    scores = LeastSquaresClassifier().fit(Z, y).decision_function(Z) + 0.5
    assert scores == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("cutoff", [None, 1e-20])
def test_rows_are_left_alone_if_every_direction_is_kept(cutoff):
    X, _ = wild_rows()
    assert Truncation(cutoff).fit(X).transform(X) is X
