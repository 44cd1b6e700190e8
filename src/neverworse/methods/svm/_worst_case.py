"""Labels that are the best in the worst case, whichever of some separators is right."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from neverworse._typing import AnyArray, Mask, Vector


def improvements(
    labels: Mask, separators: AnyArray, supervised: Mask, weights: Vector, risk: float
) -> Vector:
    """Return what labels gain over supervised ones less what they lose, for each separator.

    If a separator is right, labels gain the rows that they have right and the supervised machine
    has wrong, and lose the rows the other way round.

    Parameters
    ----------
    labels, supervised : boolean arrays of shape (n_rows,)
        Which rows are positive.
    separators : boolean array of shape (n_separators, n_rows)
    weights : array of shape (n_rows,)
        What each row counts.
    risk : float
        What a row that is lost counts, for one that is gained.
    """
    gained = (labels == separators) & (supervised != separators)
    lost = (labels != separators) & (supervised == separators)
    found: Vector = (gained - risk * lost) @ weights
    return found


def safest_labels(
    separators: AnyArray, supervised: Mask, weights: Vector, risk: float, order: Vector
) -> Mask:
    """Return the labels whose smallest improvement over all separators is the largest.

    A linear program for the share of positive rows in each group of rows that all separators treat
    alike. It is as good as one for each row, and rounding it changes at most a row in each of as
    many groups as there are separators.

    Parameters
    ----------
    separators, supervised, weights, risk
        See `improvements`.
    order : array of shape (n_rows,)
        In a group of which only a part is positive, it is the rows in which this is the largest.
    """
    patterns = np.vstack([supervised, separators])
    kinds, group = np.unique(patterns, axis=1, return_inverse=True)
    group = group.ravel()
    size = np.bincount(group, weights)
    wrong = kinds[1:] != kinds[0]  # where the supervised machine is, if the separator is right
    # What the separator says about a positive label of a group, and about a negative one.
    when_positive = np.where(kinds[1:], np.where(wrong, 1.0, 0.0), np.where(wrong, 0.0, -risk))
    when_negative = np.where(kinds[1:], np.where(wrong, 0.0, -risk), np.where(wrong, 1.0, 0.0))
    n_groups = len(size)
    solution = linprog(
        np.append(np.zeros(n_groups), -1.0),
        A_ub=np.column_stack([(when_negative - when_positive) * size, np.ones(len(separators))]),
        b_ub=when_negative @ size,
        bounds=[(0.0, 1.0)] * n_groups + [(None, None)],
    )
    return _rounded(solution.x[:-1] * size, group, weights, order)


def _rounded(positive: Vector, group: AnyArray, weights: Vector, order: Vector) -> Mask:
    """Return labels with about the given weight of positive rows in each group."""
    first = np.lexsort((-order, group))  # by group, and the largest first within each
    ahead = np.cumsum(weights[first]) - weights[first]
    starts = np.searchsorted(group[first], np.arange(len(positive)))
    ahead -= ahead[starts][group[first]]
    labels = np.zeros(len(group), bool)
    labels[first] = ahead + 0.5 * weights[first] < positive[group[first]]
    return labels
