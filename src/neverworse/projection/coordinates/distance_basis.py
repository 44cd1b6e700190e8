"""Distances by some points, where no matrix of columns by columns can be made.

In the dual, weights move along H⁻¹D' only, for the points D by which the distance is measured: as
many directions as there are points. These are found by conjugate gradients, and are a basis like
any other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from neverworse._typing import Matrix, Vector
from neverworse.projection.coordinates.gram import EPS, Whitening
from neverworse.projection.coordinates.matrix_free import WeightSpace
from neverworse.rows import Rows

MOST_NUMBERS = 5e7  # in the basis
AT_ONCE = 64  # directions for which linear systems are solved together


def distance_basis(
    space: WeightSpace,
    points: Rows,
    weights: Vector | None,
    with_one: bool,
    name: str,
    stop: Callable[[], bool],
) -> tuple[Whitening, Matrix] | None:
    """Return coordinates in which the distance is Euclidean.

    Parameters
    ----------
    space : WeightSpace
    points : Rows
        D, without shift.
    weights : array of shape (n_points,) or None
        Of the points; ones if None.
    with_one : bool
        Whether points have a one for the intercept.
    name : str
        Of the distance, for a message.
    stop : callable
        Asked after every product; None is returned where it says True.

    Returns
    -------
    whitening : Whitening
    basis : array of shape (rank of `space`, rank)
        In the coordinates of `space`.
    """
    used = np.arange(points.n_rows) if weights is None else np.flatnonzero(weights > 0.0)
    if len(used) * space.rank > MOST_NUMBERS:
        raise ValueError(
            f"distance={name} is measured at {len(used):,} points, and X has "
            f"{space.rows.n_columns:,} columns: too many of both. Use distance='all', fewer "
            "points, or fewer columns (for example by sklearn.decomposition.TruncatedSVD)."
        )
    root = np.ones(len(used)) if weights is None else np.sqrt(weights[used])
    forms = np.empty((len(used), space.rank))
    basis = np.empty_like(forms)
    shift = space.rows.shift
    for lo in range(0, len(used), AT_ONCE):
        these = slice(lo, lo + AT_ONCE)
        taken = points.take(used[these]) if shift is None else points.take(used[these]) - shift
        one = np.ones(len(taken))
        forms[these] = space.pull(taken, one) if with_one else space.pull_coef(taken)
        forms[these] *= root[these, None]
        basis[these] = space.raised(forms[these], 0.0, stop=stop).x
        if stop():
            return None  # what some of the points say would be another distance
    values, vectors = linalg.eigh(0.5 * (forms @ basis.T + basis @ forms.T))
    largest = float(values.max(initial=0.0))
    kept = values > len(values) * 16 * EPS * largest
    basis = basis.T @ (vectors[:, kept] / np.sqrt(largest))
    d = len(space.unit)
    whitening = Whitening(
        space.rows,
        space.mean,
        space.unit[:, None] * basis[:d],
        space.shifts @ basis[d:],
        space.column_norms,
        space.idle,
    )
    return whitening, basis
