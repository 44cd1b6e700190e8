"""Damaged files end in a sentence: some seeds of each attack."""

from __future__ import annotations

import pytest

from tests.fuzz import models, tables


@pytest.mark.parametrize("module", [models, tables])
def test_some_seeds(module):
    broke = {seed: module.attack(seed) for seed in range(60)}
    assert {seed: what for seed, what in broke.items() if what is not None} == {}
