"""Worst and best case of a loss difference over all labelings, with its rounding error.

For scores f and g and the same row weights s, the difference of the quadratic losses is affine in
every unknown label q_j, so its extremes over all labelings are sums of extremes over each row:

    Σ s (f - q)² - Σ s (g - q)² = Σ s t (t + 2 g - 2 q)   with t = f - g,

at most at q_j = 1 where t_j < 0 and q_j = 0 elsewhere, and at least at the opposite labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from neverworse._typing import Mask, Vector
from neverworse.projection._whitening import EPS

# Error of NumPy's summation of a chunk, of the few operations on each term, and of the three sums
# together, in units of EPS times the sum of the sizes of all terms. Chunks are added up exactly.
SUMMATION = 128.0
CHUNK = 2**15


@dataclass(frozen=True)
class LossDifference:
    """Extremes of the loss of a candidate less the loss of its baseline.

    Attributes
    ----------
    worst, best : float
        Largest and smallest difference over all labelings, as computed.
    rounding : float
        `worst` and `best` are at most so far from the true values for the given scores.
    norm_t, norm_residual, norm_one : float
        Weighted norms of the score differences, of the baseline's residuals (with the score itself
        where the label is unknown), and of ones on unlabeled rows: how errors of the scores enter.
    baseline : tuple of float
        Smallest and largest loss of the baseline over all labelings.
    """

    worst: float
    best: float
    rounding: float
    norm_t: float
    norm_residual: float
    norm_one: float
    baseline: tuple[float, float]

    def plus(self, change: float) -> LossDifference:
        """Return the difference with a known change added, for example of a penalty."""
        return replace(self, worst=self.worst + change, best=self.best + change)

    def score_error(self, of_t: float, of_baseline: float) -> float:
        """Return how much errors of the scores can move `worst` and `best`.

        Parameters
        ----------
        of_t, of_baseline : float
            Weighted norms of the errors of the score differences and of the baseline's scores.
        """
        spread = 2.0 * (self.norm_t + self.norm_residual + self.norm_one) + of_t
        return of_t * (spread + 2.0 * of_baseline) + 2.0 * self.norm_t * of_baseline


def loss_difference(
    t: Vector, baseline: Vector, target: Vector, unlabeled: Mask, weights: Vector | None
) -> LossDifference:
    """Return the extremes, over all labelings, of the loss of scores `baseline + t`.

    Parameters
    ----------
    t : array of shape (n,)
        Scores of the candidate less those of the baseline.
    baseline : array of shape (n,)
        Scores of the baseline.
    target : array of shape (n,)
        Known labels, 0 or 1; zero where `unlabeled`.
    unlabeled : boolean array of shape (n,)
    weights : array of shape (n,), optional
        Row weights; ones if not given.
    """
    parts = [
        _sums(
            t[rows],
            baseline[rows],
            target[rows],
            unlabeled[rows],
            None if weights is None else weights[rows],
        )
        for rows in (slice(lo, lo + CHUNK) for lo in range(0, len(t), CHUNK))
    ]
    quadratic, linear, up, down, residual, one, low, high = map(math.fsum, zip(*parts, strict=True))
    known = quadratic + 2.0 * linear
    norm_t, norm_residual = float(np.sqrt(quadratic)), float(np.sqrt(residual))
    sizes = quadratic + 2.0 * norm_t * norm_residual + 2.0 * (up + down)
    return LossDifference(
        worst=known + 2.0 * down,
        best=known - 2.0 * up,
        rounding=SUMMATION * EPS * sizes,
        norm_t=norm_t,
        norm_residual=norm_residual,
        norm_one=float(np.sqrt(one)),
        baseline=(low, high),
    )


def _sums(
    t: Vector, baseline: Vector, target: Vector, unlabeled: Mask, weights: Vector | None
) -> list[float]:
    """Return what `loss_difference` adds up, over rows few enough to stay in cache."""
    s = np.ones(len(t)) if weights is None else weights
    if weights is not None:  # rows without a weight may score anything, even infinity
        t, baseline = np.where(s > 0.0, t, 0.0), np.where(s > 0.0, baseline, 0.0)
    residual = baseline - target
    weighted = s * t
    free = np.where(unlabeled, s, 0.0)
    free_t = free * t
    known_loss = (s - free) * residual**2
    outside = baseline - np.clip(baseline, 0.0, 1.0)
    largest = np.maximum(np.abs(baseline), np.abs(1.0 - baseline))
    terms = (
        weighted * t,
        weighted * residual,
        np.maximum(free_t, 0.0),
        np.maximum(-free_t, 0.0),
        s * residual**2,
        free,
        known_loss + free * outside**2,
        known_loss + free * largest**2,
    )
    return [float(term.sum()) for term in terms]
