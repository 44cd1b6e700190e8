"""Labels of unlabeled rows with a given share of positive ones."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from neverworse._typing import Mask, Vector
from neverworse.projection.coordinates.gram import EPS

# A share times a number of rows is a whole number but for rounding errors.
WHOLE = 1e-9
# Scores of equal rows are equal but for rounding errors: so much of the largest score, at most.
TIED = 1e-12


def label_shares(scores: Vector, low: float, high: float) -> Mask:
    """Return which rows are positive: those with a positive score, as far as shares allow it.

    Parameters
    ----------
    scores : array of shape (n_rows,)
    low, high : float
        The smallest and largest share of positive rows. Where they leave no whole number of rows,
        the row in question has the label of its score.

    Returns
    -------
    positive : boolean array of shape (n_rows,)
        If the loss of a positive label less that of a negative one decreases with the score, and is
        zero where that is, no other labels with such a share have a smaller loss.
    """
    n = len(scores)
    fewest = int(np.floor(low * n + WHOLE))
    most = int(np.ceil(high * n - WHOLE))
    wanted = int(np.count_nonzero(scores > 0.0))
    n_positive = min(max(wanted, fewest), most)
    positive = np.zeros(n, bool)
    if n_positive:
        positive[np.argpartition(scores, n - n_positive)[n - n_positive :]] = True
    return positive


def label_like_svmlin(scores: Vector, share: float) -> Mask:
    """Return which rows are positive: those above the ⌊(1 - share) n⌋-th smallest score.

    As in SVMlin: rows with the same score as that one are negative, so that there may be fewer
    positive rows than the share says; and the number is rounded down after it was computed in
    floating point, where (1 - 0.9) · 10 is less than 1. If it is 0, all rows are positive.
    """
    n_negative = int((1.0 - share) * len(scores))
    if not n_negative:
        return np.ones(len(scores), bool)
    threshold = np.partition(scores, n_negative - 1)[n_negative - 1]
    return np.asarray(scores > threshold + TIED * np.abs(scores).max())


def share_probabilities(costs: Vector, share: float, temperature: float) -> Vector:
    r"""Return the probabilities p that balance cost and entropy, with a given mean.

    They minimise :math:`\sum_j p_j c_j + T \sum_j p_j \log p_j + (1 - p_j) \log(1 - p_j)`.

    Parameters
    ----------
    costs : array of shape (n_rows,)
        The cost c of being positive, less that of being negative.
    share : float
        The mean of p.
    temperature : float
        T, positive.
    """
    if share <= 0.0 or share >= 1.0:
        return np.full(len(costs), float(share >= 1.0))
    scaled = costs / temperature

    def excess(threshold: float) -> float:
        return float(np.mean(expit(threshold - scaled))) - share

    # At the costs of the extreme rows, all probabilities are on one side of the share.
    middle = float(np.log(share / (1.0 - share)))
    beyond = 1.0 + 8.0 * EPS * float(np.abs(scaled).max())
    low, high = scaled.min() + middle - beyond, scaled.max() + middle + beyond
    return np.asarray(expit(brentq(excess, low, high, maxiter=1000) - scaled))
