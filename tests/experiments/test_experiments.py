"""Which rows are drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neverworse.experiments._experiments import N_FOLDS, draw_folds, draw_labeled, unlabeled_sizes


@given(st.integers(0, 2**32), st.integers(2, 20))
def test_labeled_rows_have_both_classes_and_none_is_drawn_twice(seed, n_labeled):
    y = np.r_[np.zeros(30, int), 1]  # one row only of the second class
    rows = np.arange(5, 31)
    labeled, rest = draw_labeled(y, rows, n_labeled, np.random.default_rng(seed))
    assert len(labeled) == n_labeled
    assert set(y[labeled]) == {0, 1}
    assert sorted(np.concatenate([labeled, rest])) == rows.tolist()


@given(st.integers(0, 2**32), st.integers(40, 120))
def test_every_row_is_tested_once(seed, n):
    y = (np.arange(n) < 12).astype(int)
    folds = list(draw_folds(y, np.random.default_rng(seed)))
    assert sorted(np.concatenate(folds)) == list(range(n))
    assert all(set(y[fold]) == {0, 1} for fold in folds)
    assert [len(fold) for fold in folds[:-1]] == [n // 10] * (N_FOLDS - 1)
    assert len(folds[-1]) == n - 9 * (n // 10)


@pytest.mark.parametrize(
    ("largest", "sizes"), [(512, [2, 4, 8, 16, 32, 64, 128, 256, 512]), (5, [2, 4]), (1, [])]
)
def test_sizes(largest, sizes):
    assert unlabeled_sizes(largest) == sizes
