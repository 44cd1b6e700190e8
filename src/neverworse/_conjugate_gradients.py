"""Conjugate gradients: linear systems whose matrix is known by its products only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from neverworse._typing import Vector

MOST_STEPS = 10_000
PATIENCE = 200  # steps without a smaller residual: rounding errors allow no more


@dataclass(frozen=True)
class Solved:
    """A solution, what it leaves of the right-hand side, and how many products it took."""

    x: Vector
    residual: Vector
    n_products: int


def conjugate_gradients(
    apply: Callable[[Vector], Vector],
    right: Vector,
    enough: Callable[[Vector], bool],
    *,
    start: Vector | None = None,
    precondition: Callable[[Vector], Vector] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Solved:
    """Solve A x = right for a symmetric matrix A without negative eigenvalues.

    If A is singular and the right-hand side in its range, the solution that starts from zero stays
    in that range: it is the shortest one (without a preconditioner).

    Parameters
    ----------
    apply : callable
        ``apply(x)`` returns A x.
    right : array of any shape
    enough : callable
        ``enough(residual)`` says whether right - A x is small enough.
    start : array, optional
        Where to start; zero if not given.
    precondition : callable, optional
        ``precondition(x)`` returns about A⁻¹x, by a symmetric matrix. It may project on a subspace
        as well: then the solution stays in that.
    stop : callable
        Asked after every product; what was found so far is returned where it says True.
    """
    x = np.zeros_like(right) if start is None else start.copy()
    residual = right.copy() if start is None else right - apply(x)
    n_products = 0 if start is None else 1
    near = residual if precondition is None else precondition(residual)
    square = float(np.vdot(residual, near))
    smallest, since = square, 0
    direction = near.copy()
    for k in range(MOST_STEPS):
        if enough(residual) or k > since + PATIENCE or stop():
            break
        product = apply(direction)
        n_products += 1
        curvature = float(np.vdot(direction, product))
        if curvature <= 0.0:  # nothing but rounding errors is left
            break
        length = square / curvature
        x += length * direction
        residual -= length * product
        near = residual if precondition is None else precondition(residual)
        square, before = float(np.vdot(residual, near)), square
        if square < 0.9 * smallest:
            smallest, since = square, k
        direction *= square / before
        direction += near
    return Solved(x, residual, n_products)
