"""Inner products of rows in memory: kept where most of them are asked for."""

import numpy as np
import pytest

from neverworse.projection.solver import problem


@pytest.mark.parametrize("largest", [5000, 0])  # with 0, none are kept
def test_inner_products_are_those_of_the_rows_asked_for(monkeypatch, largest):
    monkeypatch.setattr(problem, "LARGEST_GRAM", largest)
    rows = np.random.default_rng(0).normal(size=(40, 5))
    hinges = problem.Hinges(rows, np.ones(40))
    for n in (10, 30, 10):  # before products are kept, where they are, and from then on
        indices = np.random.default_rng(n).permutation(40)[:n]
        found = hinges.products(indices, hinges.take(indices))
        np.testing.assert_allclose(found, rows[indices] @ rows[indices].T, atol=1e-13)
    assert (hinges._products is not None) == (largest > 0)
