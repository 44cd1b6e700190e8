"""The linear system of a Newton step, against its definition with explicit matrices."""

from dataclasses import replace

import numpy as np
import pytest

from neverworse.projection.solver.newton_system import NewtonSystem
from neverworse.projection.solver.problem import Hinges

N, RANK, SIGMA = 60, 5, 3.0


def make(n_classes, seed, most_inner):
    rng = np.random.default_rng(seed)
    hinges = Hinges(rng.normal(size=(N, RANK)), rng.uniform(0.1, 2.0, N))
    indices = np.sort(rng.choice(N, 40, replace=False))
    inner = np.zeros((n_classes, 40), dtype=bool)
    for j in range(40):
        n_inner = 1 if n_classes == 1 else rng.integers(2, most_inner + 1)
        inner[rng.choice(n_classes, n_inner, replace=False), j] = True
    curve = rng.uniform(0.5, 2.0, (n_classes, RANK))
    return NewtonSystem(hinges, indices, inner, curve, SIGMA, n_classes > 1), rng


def by_definition(system):
    """C + σ Σ s_j P_j ⊗ k_j k_j'."""
    matrix = np.diag(system.curve.ravel())
    for j, i in enumerate(system.indices):
        row, a = system.hinges.take(np.array([i]))[0], system.inner[:, j].astype(float)
        P = np.diag(a) - (np.outer(a, a) / a.sum() if system.is_coupled else 0.0)
        matrix += SIGMA * system.hinges.weights[i] * np.kron(P, np.outer(row, row))
    return matrix


@pytest.mark.parametrize(("n_classes", "most_inner"), [(1, 1), (2, 2), (3, 3), (6, 2), (6, 6)])
@pytest.mark.parametrize("seed", range(3))
def test_every_way_to_solve_gives_the_solution_of_the_definition(n_classes, most_inner, seed):
    system, rng = make(n_classes, seed, most_inner)
    matrix, right = by_definition(system), rng.normal(size=(n_classes, RANK))
    expected = np.linalg.solve(matrix, right.ravel()).reshape(right.shape)
    lower = np.tril(system._matrix())
    np.testing.assert_allclose(lower, np.tril(matrix), atol=1e-12 * np.abs(matrix).max())
    size = np.abs(expected).max()
    np.testing.assert_allclose(system.solve(right), expected, atol=1e-10 * size)
    np.testing.assert_allclose(system._solve_by_rows(right), expected, atol=1e-10 * size)
    left = right - (matrix @ system._solve_iteratively(right).ravel()).reshape(right.shape)
    assert np.linalg.norm(left) <= 0.011 * np.linalg.norm(right)


@pytest.mark.parametrize(("most_inner", "iterates"), [(4, False), (26, True)])
def test_rows_that_many_classes_share_are_solved_for_without_pairs(
    most_inner, iterates, monkeypatch
):
    system, rng = make(26, 0, most_inner)
    right = rng.normal(size=(26, RANK))
    asked = []
    monkeypatch.setattr(NewtonSystem, "_solve_iteratively", lambda _, b: asked.append(b) or b)
    system.solve(right)
    assert bool(asked) == iterates


def test_many_pieces_add_up_to_the_same_matrix(monkeypatch):
    system, _ = make(3, 0, 3)
    whole = system._matrix()
    monkeypatch.setattr("neverworse.projection.solver.problem.BLOCK", 1)
    indices, inner = np.repeat(system.indices, 30), np.repeat(system.inner, 30, axis=1)
    many = replace(system, indices=indices, inner=inner, sigma=SIGMA / 30)
    np.testing.assert_allclose(np.tril(many._matrix()), np.tril(whole), atol=1e-11)
