"""Damaged files end in a sentence: some seeds of each attack."""

from __future__ import annotations

import pytest

from tests.fuzz.models import changed_model, changed_scikit_learn_model, changed_study
from tests.fuzz.tables import damaged_table


@pytest.mark.parametrize(
    "attack", [changed_model, changed_scikit_learn_model, changed_study, damaged_table]
)
def test_some_seeds(attack):
    broke = {seed: attack(seed) for seed in range(40)}
    assert {seed: what for seed, what in broke.items() if what is not None} == {}
