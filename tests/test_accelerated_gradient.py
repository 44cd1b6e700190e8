"""Accelerated projected gradients, against SciPy's solution of bounded least squares."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from neverworse._iterations import accelerated_gradient


def problem(seed, n=12):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(2 * n, n)) * np.logspace(0, 1.5, n)
    return A, rng.normal(size=2 * n), np.linalg.norm(A, 2) ** 2


def run(A, b, curvature, n_steps, **options):
    """Minimise ½|Ax - b|² over the unit cube; return where that ends, and all points ahead."""
    seen = []

    def step(ahead):
        seen.append(ahead)
        return np.clip(ahead - A.T @ (A @ ahead - b) / curvature, 0.0, 1.0)

    settings = {
        "step": step,
        "extrapolate": lambda here, before, momentum: here + momentum * (here - before),
        "uphill": lambda ahead, new, here: np.vdot(A.T @ (A @ ahead - b), new - here) > 0.0,
        "stop": lambda _: len(seen) >= n_steps,
    }
    end = accelerated_gradient(np.full(A.shape[1], 0.5), **(settings | options))
    return end, seen


@pytest.mark.parametrize("seed", range(5))
def test_solution_of_bounded_least_squares(seed):
    A, b, curvature = problem(seed)
    exact = lsq_linear(A, b, (0.0, 1.0), tol=1e-14).x
    end, _ = run(A, b, curvature, 3000)
    np.testing.assert_allclose(end, exact, atol=1e-7)


def test_faster_than_without_momentum():
    A, b, curvature = problem(0)
    exact = lsq_linear(A, b, (0.0, 1.0), tol=1e-14).x
    fast, _ = run(A, b, curvature, 200)
    slow, _ = run(A, b, curvature, 200, max_momentum=0.0)
    assert np.linalg.norm(fast - exact) < 0.1 * np.linalg.norm(slow - exact)


def test_without_momentum_every_step_starts_where_the_last_one_ended():
    A, b, curvature = problem(1)
    _, seen = run(A, b, curvature, 10, uphill=lambda *_: True)
    x = np.full(12, 0.5)
    for ahead in seen:
        np.testing.assert_array_equal(ahead, x)
        x = np.clip(x - A.T @ (A @ x - b) / curvature, 0.0, 1.0)


def test_worse_points_are_discarded():
    A, b, curvature = problem(2)
    loss = lambda x: np.sum((A @ x - b) ** 2)  # noqa: E731
    here = []

    def note(point):
        here.append(loss(point))
        return len(here) > 300

    options = {"uphill": lambda *_: False, "stop": note}
    run(A, b, curvature, 0, worse=lambda new, old: loss(new) > loss(old), **options)
    assert (np.diff(here) <= 0.0).all()
    here.clear()
    run(A, b, curvature, 0, **options)
    assert (np.diff(here) > 0.0).any()  # momentum alone overshoots


def test_ends_where_a_step_from_the_point_itself_has_nothing_to_gain():
    asked = []

    def step(ahead):
        asked.append(ahead)
        return None if ahead > 3.0 else ahead + 1.0

    end = accelerated_gradient(
        0.0,
        step=step,
        extrapolate=lambda here, before, momentum: here + momentum * (here - before),
        uphill=lambda *_: False,
    )
    assert end == asked[-1] > 3.0
