"""Multipliers of restricted totals: how far all scores shift in the worst labeling.

The largest -Σ ω_j q_j·t_j over soft labels whose totals Σ ω_j q_j are restricted is a linear
program. Any multiplier λ of the totals gives an upper bound of it; what is found here is the λ for
which the bound is the maximum. Whoever uses it evaluates the bound, so nothing rests on how
accurate λ is but the last digits of tightness.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, sparse

from neverworse._typing import Indices, Matrix, Scalars, Vector
from neverworse.projection._shapes import Shape, Simplex
from neverworse.projection._totals import Totals

FIRST_ROWS = 2000  # in the first linear program, where there are many rows
MOST_ROUNDS = 20


def best_multiplier(t: Vector, weights: Vector, shape: Shape, totals: Totals) -> Scalars:
    """Return the multiplier with the lowest bound.

    Parameters
    ----------
    t : array of shape (n,) or (n_classes, n)
    weights : array of shape (n,)
        ω, zero for rows that play no part.
    shape : Shape
    totals : Totals
        Of Σ ω q.
    """
    used = np.flatnonzero(weights > 0.0)
    if isinstance(shape, Simplex):
        return _of_classes(t[:, used], weights[used], shape.at(used), totals)
    order = used[np.argsort(t[used], kind="stable")]
    t, filled = t[order], np.cumsum(weights[order])
    negative, not_positive = (int(np.searchsorted(t, 0.0, side=side)) for side in ("left", "right"))
    # Labels are 1 where t < 0. If that is too much or too little, up to the total that is allowed.
    if negative and filled[negative - 1] > totals.high:
        total = totals.high
    elif (filled[not_positive - 1] if not_positive else 0.0) < totals.low:
        total = totals.low
    else:
        return 0.0
    return -float(t[min(int(np.searchsorted(filled, total)), len(t) - 1)])


def _of_classes(t: Matrix, weights: Vector, shape: Simplex, totals: Totals) -> Vector:
    """Solve programs of few rows, all others in the corner that the last multiplier gives them."""
    n = t.shape[1]
    if n <= 2 * FIRST_ROWS:
        return _solve(t, weights, shape, totals, np.arange(n), np.zeros_like(t))
    random = np.random.default_rng(0)  # only the path depends on it, not the result
    chosen = np.sort(random.choice(n, FIRST_ROWS, replace=False))
    multiplier = _solve(
        t, (n / FIRST_ROWS) * weights, shape, totals, chosen, np.zeros_like(t[:, :1])
    )
    n_rows = FIRST_ROWS
    for _ in range(MOST_ROUNDS):
        shifted = t + multiplier[:, None]
        corner = shape.extreme(shifted)
        n_rows = min(2 * n_rows, n)
        nearest = np.argpartition(shape.margin(shifted), n_rows - 1)[:n_rows]
        multiplier = _solve(t, weights, shape, totals, np.sort(nearest), corner)
        same = (shape.extreme(t + multiplier[:, None]) == corner).all(axis=0)
        same[nearest] = True
        if same.all():
            break
    return multiplier


def _solve(
    t: Matrix, weights: Vector, shape: Simplex, totals: Totals, chosen: Indices, fixed: Matrix
) -> Vector:
    """Return the multiplier of the linear program over the chosen rows, all others fixed.

    If `fixed` has no column for every row, there are no others.
    """
    n_classes, n = len(t), len(chosen)
    known = np.zeros(n_classes)
    if fixed.shape[1] == t.shape[1]:
        others = weights.copy()
        others[chosen] = 0.0
        known = fixed @ others
    omega = weights[chosen]
    scale = float(omega.sum())
    ones = sparse.csr_array(np.ones((1, n_classes)))
    add_up = sparse.kron(ones, sparse.eye_array(n))
    per_class = sparse.kron(sparse.eye_array(n_classes), omega[None, :] / scale)
    caps = np.ones((n_classes, n)) if shape.caps is None else shape.caps[:, chosen]
    size = float(np.abs(t[:, chosen]).max(initial=0.0)) or 1.0
    low, high = ((np.asarray(bound) - known) / scale for bound in (totals.low, totals.high))
    slack = 1e-12  # totals that can just be reached must not fail for rounding errors
    found = optimize.linprog(
        (omega * t[:, chosen]).ravel() / (size * scale),
        A_ub=sparse.vstack([per_class, -per_class]),
        b_ub=np.concatenate([high + slack, slack - low]),
        A_eq=add_up,
        b_eq=np.ones(n),
        bounds=np.column_stack([np.zeros(n_classes * n), caps.ravel()]),
        method="highs",
    )
    if found.status != 0:  # no labels of so few rows give these totals: no help from here
        return np.zeros(n_classes)
    upper, lower = found.ineqlin.marginals.reshape(2, n_classes)
    multiplier: Vector = size * (lower - upper)
    return multiplier
