"""Damaged files end in a sentence: some seeds of each attack."""

from __future__ import annotations

import pytest

from tests.fuzz import models, tables

ATTACKS = models.ATTACKS | tables.ATTACKS


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ATTACKS)
def test_some_seeds(name):
    broke = {seed: ATTACKS[name](seed) for seed in range(40)}
    assert {seed: what for seed, what in broke.items() if what is not None} == {}
