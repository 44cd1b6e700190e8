r"""Soft labels to start a projection with, where a kernel tells all rows apart.

The projection moves the supervised function f by a function v that is zero at every row whose
imputed label is a fraction. The other rows N, the labeled ones and those whose label is in a
corner, are few. With :math:`v = Ka + b` and :math:`P = K^{-1}`, f + v is least squares for labels y
if

.. math:: s \, v + \alpha a = s \, (y - g), \qquad 1'a = -1'a_f, \qquad g = f + \alpha a_f / s ,

where s are the weights of the rows and :math:`a_f` belongs to f. In N, y is known and
:math:`a = P v - b P 1`, which gives v; elsewhere v is zero, which gives y. Labels that leave their
range join N, and rows of N leave it if v does not push their label into its corner: the primal-dual
active set method. The solver checks what comes out, and goes on from there.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from neverworse._typing import Matrix
from neverworse.projection import Labels, Start, Weights
from neverworse.rows import TrapezoidRows

MAX_ROUNDS = 25


def start_of_projection(
    rows: TrapezoidRows,
    labels: Labels,
    supervised: Weights,
    alpha: float,
    fit_intercept: bool,
) -> Start | None:
    """Return the solution of a projection up to rounding errors, or None if there is none here.

    `rows` are the features L of all rows, and `supervised` are weights of these features.
    """
    if not rows.n_columns == rows.n_rows == len(labels.width) or not alpha:
        return None
    if len(labels.target) > 1 or labels.totals is not None or not labels.unlabeled.any():
        return None
    n, lower, order = rows.n_rows, rows.lower, rows.order
    low, unlabeled = labels.target[0, order], labels.unlabeled[order]
    high = low + labels.width[order]
    s = np.ones(n) if labels.weights is None else labels.weights[order]
    of_supervised = _solve(lower, supervised.coef[0], transposed=True)
    g = lower @ supervised.coef[0] + supervised.intercept[0] + alpha * of_supervised / s
    half = _solve(lower, np.ones(n)) if fit_intercept else np.zeros(n)
    of_one = _solve(lower, half, transposed=True)  # P1
    size = float(half @ half) or 1.0
    # Columns of the inverse of L and their products, each computed when it is needed.
    half_inverse, products = np.zeros((n, n), order="F"), np.zeros((n, n))
    solved = np.zeros(n, bool)
    at_low, at_high = unlabeled & (g < low), unlabeled & (g > high)
    for _ in range(MAX_ROUNDS):
        known = ~unlabeled | at_low | at_high
        at, new = np.flatnonzero(known), np.flatnonzero(known & ~solved)
        half_inverse[:, new] = _solve(lower, (np.arange(n)[:, None] == new).astype(np.float64))
        solved |= known
        pairs = np.ix_(new, np.flatnonzero(solved))
        products[pairs] = half_inverse[:, new].T @ half_inverse[:, solved]
        products[pairs[::-1]] = products[pairs]
        matrix = products[np.ix_(at, at)]
        matrix -= np.outer(of_one[at] / size, of_one[at])
        matrix *= alpha
        matrix.flat[:: len(at) + 1] += s[at]
        right = s * (np.where(at_high, high, low) - g) + alpha * of_supervised.sum() / size * of_one
        v = np.zeros(n)
        try:
            factor = linalg.cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return None
        v[at] = linalg.cho_solve(factor, right[at], check_finite=False)
        b = (of_one @ v + of_supervised.sum()) / size if fit_intercept else 0.0
        coef = _solve(lower, v - b)
        y = g + alpha / s * _solve(lower, coef, transposed=True)
        below = np.where(known, at_low & (v >= 0.0), y < low)
        above = np.where(known, at_high & (v <= 0.0), y > high)
        if np.array_equal(below, at_low) and np.array_equal(above, at_high):
            found = np.empty((1, n))
            found[0, order] = np.where(known, np.where(at_high, high, low), y)
            return Start(Weights(coef[None], np.array([b])), found)
        at_low, at_high = below, above
    return None


def _solve(lower: Matrix, x: Matrix, transposed: bool = False) -> Matrix:
    return linalg.solve_triangular(lower, x, trans=int(transposed), lower=True, check_finite=False)
