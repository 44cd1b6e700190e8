"""Iterations: conjugate gradients, and accelerated projected gradients.

Momentum of projected gradients (Beck and Teboulle, SIAM Journal on Imaging Sciences 2 (2009),
183-202) is dropped where it points uphill (O'Donoghue and Candès, Foundations of Computational
Mathematics 15 (2015), 715-732).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import linalg

from neverworse._typing import Matrix, Vector

MAX_STEPS = 10_000
EPS = float(np.finfo(np.float64).eps)
PATIENCE = 200  # steps without a smaller residual: rounding errors allow no more


@dataclass(frozen=True)
class Solved:
    """A solution, its residual, and the number of products with the matrix."""

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

    `apply` returns A x, and `precondition` about A⁻¹x, by a symmetric matrix; if that projects on a
    subspace, the solution is in it. `enough` says of a residual whether it is small enough, and
    `stop` before every product whether to return the current solution. If A is singular, its range
    contains the right-hand side, and there is no preconditioner, the solution from a start at zero
    is the shortest one.
    """
    x = np.zeros_like(right) if start is None else start.copy()
    residual = right.copy() if start is None else right - apply(x)
    n_products = 0 if start is None else 1
    near = residual if precondition is None else precondition(residual)
    square = float(np.vdot(residual, near))
    smallest, since = square, 0
    direction = near.copy()
    for k in range(MAX_STEPS):
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


@dataclass(frozen=True)
class LowRank:
    """An approximation UΛU' of a symmetric matrix without negative eigenvalues."""

    vectors: Matrix  # (n, rank): orthonormal columns U
    values: Vector  # (rank,): Λ, the largest first

    def preconditioner(self, alpha: float) -> Callable[[Matrix], Matrix]:
        """Return an approximate inverse of the matrix plus α, in single precision.

        Outside of the range of U, all eigenvalues are taken to be the smallest of Λ.
        """
        rest = alpha + (float(self.values[-1]) if len(self.values) else 0.0)
        change = (1.0 / (self.values + alpha) - 1.0 / rest)[:, None].astype(np.float32)
        vectors = self.vectors.astype(np.float32)
        turned = np.ascontiguousarray(vectors.T)

        def apply(x: Matrix) -> Matrix:
            along = change * (turned @ x.astype(np.float32))
            return x / rest + vectors @ along

        return apply


def low_rank(
    product: Callable[[Matrix], Matrix],
    n: int,
    rank: int,
    at_once: int,
    stop: Callable[[], bool] = lambda: False,
) -> LowRank:
    """Approximate an (n, n) matrix by its products with vectors, `at_once` of them at a time.

    It is the Nyström approximation K Q (Q'KQ)⁻¹ Q'K, where Q is a basis of about the range of K.
    There are twice as many as the rank: random ones, and their images. The approximation is never
    larger than the matrix, and zero if `stop` returns True.
    """
    basis = np.random.default_rng(0).normal(size=(n, rank))  # only the path depends on it
    for _ in range(2):
        basis = linalg.qr(basis, mode="economic", overwrite_a=True, check_finite=False)[0]
        image = np.empty_like(basis)
        for lo in range(0, rank, at_once):
            if stop():
                return LowRank(np.empty((n, 0)), np.empty(0))
            piece = slice(lo, lo + at_once)
            image[:, piece] = product(np.ascontiguousarray(basis[:, piece]))
        basis, before = image, basis
    # The image is KQ, and the approximation KQ (Q'KQ)⁻¹ QK: the square of its factor.
    small = before.T @ image
    del before, basis
    small = 0.5 * (small + small.T)
    inner, rotation = linalg.eigh(small, check_finite=False)
    kept = inner > 8.0 * EPS * max(rank, 1) * float(inner.max(initial=0.0))
    factor = image @ (rotation[:, kept] / np.sqrt(inner[kept]))
    values, rotation = linalg.eigh(factor.T @ factor, check_finite=False)
    kept = values > EPS * float(values.max(initial=0.0))
    values, rotation = values[kept][::-1], rotation[:, kept][:, ::-1]
    return LowRank(factor @ (rotation / np.sqrt(values)), values)


Point = TypeVar("Point")


def accelerated_gradient(
    start: Point,
    *,
    step: Callable[[Point], Point | None],
    extrapolate: Callable[[Point, Point, float], Point],
    uphill: Callable[[Point, Point, Point], bool],
    worse: Callable[[Point, Point], bool] = lambda *_: False,
    stop: Callable[[Point], bool] = lambda _: False,
    max_momentum: float = 1.0,
) -> Point:
    """Minimise by accelerated projected gradient steps, and return the last point.

    A point is anything that the callables know: variables, and what is computed along with them.
    ``step(ahead)`` returns the projection of a gradient step, or None if the point is optimal.
    ``extrapolate(here, before, momentum)`` returns here + momentum (here - before), which need not
    be feasible, or `here` itself. ``uphill(ahead, new, here)`` says whether the objective rises
    from `here` to `new`, by the gradient at `ahead`; then momentum restarts from zero.
    ``worse(new, here)`` says whether to discard the new point, and restart from `here`.
    ``stop(here)`` is called before every step.
    """
    here = before = start
    pace = 1.0
    while not stop(here):
        faster = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * pace**2))
        momentum = min((pace - 1.0) / faster, max_momentum)
        ahead = extrapolate(here, before, momentum) if momentum > 0.0 else here
        new = step(ahead)
        if new is None and ahead is here:
            break
        if new is None or worse(new, here):
            before, pace = here, 1.0
        else:
            pace = 1.0 if uphill(ahead, new, here) else faster
            before, here = here, new
    return here
