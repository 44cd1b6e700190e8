"""Products of rows in memory that are kept: inner products, and the last Gram matrix."""

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


@pytest.mark.parametrize("pieces", ["one", "many"])
@pytest.mark.parametrize("error", [np.inf, 0.0])  # with 0, all rows are added up each time
def test_gram_matrices_of_changing_rows_are_those_of_their_definition(monkeypatch, error, pieces):
    if pieces == "many":
        monkeypatch.setattr(problem, "BLOCK", 1)
    rng = np.random.default_rng(1)
    rows, weights = rng.normal(size=(400, 5)), rng.uniform(0.1, 2.0, 400)
    hinges, taken = problem.Hinges(rows, weights), []
    plain = hinges.map_taken
    monkeypatch.setattr(
        hinges, "map_taken", lambda chosen, *rest: taken.append(len(chosen)) or plain(chosen, *rest)
    )
    chosen, n_asked = rng.random(400) < 0.5, []
    for n_changed in (0, 3, 0, 40, 300, 5):
        chosen[rng.choice(400, n_changed, replace=False)] ^= True
        indices = np.flatnonzero(chosen)
        n_asked.append(len(indices))
        expected = (rows[indices].T * weights[indices]) @ rows[indices]
        np.testing.assert_allclose(hinges.gram(indices, error), expected, atol=1e-11)
    few = [n_asked[0], 3, 0, 40, n_asked[4], 5]
    assert taken == (few if error else n_asked)
