"""Whether labels with given totals exist: the same answer as a linear program."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from neverworse.estimators._class_prior import totals_feasibility
from neverworse.projection import Simplex, Totals

MISSED = 1e-6


def least_missed(weights, caps, totals):
    """By how much totals are missed at least, as a share of the sum of the weights."""
    k, n = caps.shape
    omega = weights / weights.sum()
    each = sparse.kron(sparse.eye_array(k), omega[None, :])
    slack = -sparse.eye_array(k)
    found = linprog(
        np.r_[np.zeros(k * n), np.ones(k)],
        A_ub=sparse.vstack([sparse.hstack([each, slack]), sparse.hstack([-each, slack])]),
        b_ub=np.r_[totals.high, -totals.low] / weights.sum(),
        A_eq=sparse.hstack(
            [sparse.kron(np.ones((1, k)), sparse.eye_array(n)), sparse.csr_array((n, k))]
        ),
        b_eq=np.ones(n),
        bounds=np.column_stack([np.zeros(k * n + k), np.r_[caps.ravel(), np.full(k, np.inf)]]),
        method="highs",
    )
    return found.fun


def random_problem(rng, most_classes=5):
    k, n = int(rng.integers(2, most_classes + 1)), int(rng.integers(1, 40))
    caps = rng.choice([0.0, 0.3, 0.5, 1.0], (k, n))
    caps[:, caps.sum(axis=0) < 1.0] = 1.0
    weights = rng.uniform(0.1, 3.0, n) if rng.random() < 0.5 else np.ones(n)
    return weights, caps, Simplex(caps)


@pytest.mark.parametrize(("most_classes", "n_problems"), [(5, 80), (25, 40)])
def test_same_as_a_linear_program(most_classes, n_problems):
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(n_problems):
        weights, caps, shape = random_problem(rng, most_classes)
        share = rng.dirichlet(np.ones(len(caps))) * weights.sum()
        room = rng.choice([0.0, 0.02, 0.1]) * weights.sum()
        totals = Totals(np.maximum(share - room, 0.0), share + room)
        least = least_missed(weights, caps, totals)
        answer = totals_feasibility(weights, shape, totals, MISSED)
        if abs(least - MISSED) > 0.1 * MISSED:
            assert answer is bool(least < MISSED)
        answers.append(answer)
    assert min(answers.count(True), answers.count(False)) > n_problems / 8


@pytest.mark.parametrize("exact", [False, True])
def test_totals_of_some_labels(exact):
    # Exact totals of corners can just be reached: there are no other labels that have them.
    rng = np.random.default_rng(1)
    for _ in range(50):
        weights, caps, shape = random_problem(rng)
        t = rng.normal(size=(len(caps), 1)) + (0.0 if exact else rng.normal(size=caps.shape))
        total = shape.minimizer(np.broadcast_to(t, caps.shape)) @ weights
        assert totals_feasibility(weights, shape, Totals(total, total), MISSED)


def test_many_rows_take_no_large_linear_program():
    rng = np.random.default_rng(2)
    caps = np.where(rng.random((4, 200_000)) < 0.2, 0.5, 1.0)
    weights = np.ones(200_000)
    for low, high, answer in ((0.2, 0.3, True), (0.25, 0.25, True)):
        totals = Totals(np.full(4, low * 2e5), np.full(4, high * 2e5))
        assert totals_feasibility(weights, Simplex(caps), totals, MISSED) is answer
    most = caps.sum(axis=1)[0]
    beyond = Totals(np.array([most + 100.0, 0, 0, 0]), np.full(4, 2e5))
    assert totals_feasibility(weights, Simplex(caps), beyond, MISSED) is False
