"""Worst and best case of a loss difference over all labelings, with its rounding error.

For scores f and g and the same row weights s, the difference of the quadratic losses is affine in
every unknown label y_j, so its extremes over all labelings are sums of extremes over each row:

    Σ s (f - y)² - Σ s (g - y)² = Σ s t·(t + 2 g - 2 y)   with t = f - g.

With y_j = target_j + width_j q_j the unknown part is -2 Σ s_j width_j q_j·t_j: largest in the
corner of the labels' shape that has the smallest q·t, and smallest in that of -t. Where the totals
of the labels are restricted, any multiplier λ gives a bound,

    max -Σ ω q·t  <=  Σ ω max_q -q·(t + λ) + max_M M·λ ,

and the best one gives the maximum itself (linear programming duality).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from neverworse._typing import Matrix, Vector
from neverworse.projection.coordinates.base import EPS
from neverworse.projection.labels import Labels, RowLabels
from neverworse.projection.totals import best_multiplier

# Error of NumPy's summation of a chunk, of the few operations on each term, and of the three sums
# together, in units of EPS times the sum of the sizes of all terms. Chunks are added up exactly.
SUMMATION = 128.0
CHUNK = 2**15
# Squares of what is smaller may vanish, so that rounding errors are never counted as if scores were
# smaller than this. Nothing else depends on it.
TINY = 1e-100


@dataclass(frozen=True)
class LossDifference:
    """Extremes of the loss of a candidate less the loss of its baseline."""

    # Largest and smallest difference over all labelings, as computed
    worst: float
    best: float
    # `worst` and `best` are at most so far from the true values for the given scores
    rounding: float
    # Weighted norms of the score differences, of the baseline's residuals (from the smallest label
    # where it is unknown), and of the widths: how errors of the scores enter
    norm_t: float
    norm_residual: float
    norm_width: float
    # Bounds of the loss of the baseline over all labelings, as computed: see `baseline_loss`
    baseline: tuple[float, float]

    def plus(self, change: float) -> LossDifference:
        """Return the difference with a known change added, for example of a penalty."""
        return replace(self, worst=self.worst + change, best=self.best + change)

    def score_error(self, of_t: float, of_baseline: float) -> float:
        """Return how much errors of the scores can move `worst` and `best`.

        Given are weighted norms of the errors of the score differences and of the baseline's
        scores.
        """
        spread = 2.0 * (self.norm_t + self.norm_residual + self.norm_width) + of_t
        return of_t * (spread + 2.0 * of_baseline) + 2.0 * self.norm_t * of_baseline

    def baseline_loss(self, of_baseline: float = 0.0) -> tuple[float, float]:
        """Return bounds of the loss of the baseline over all labelings, rounded outwards.

        `of_baseline` is the weighted norm of the errors of the baseline's scores.
        """
        low, high = self.baseline
        size = self.norm_residual + self.norm_width
        slack = SUMMATION * EPS * size**2
        # The loss is a squared norm, and the triangle inequality holds.
        error, rounded = of_baseline + 4.0 * EPS * size, 4.0 * EPS
        least = float(np.sqrt(max(0.0, low - slack))) * (1.0 - rounded) - error
        most = float(np.sqrt(high + slack)) * (1.0 + rounded) + error
        return max(0.0, least) ** 2 * (1.0 - rounded), most**2 * (1.0 + rounded)


@dataclass(frozen=True)
class Shifts:
    """By how much restricted totals shift all scores, in the worst and in the best labeling."""

    worst: Vector
    best: Vector

    @classmethod
    def none(cls, n_classes: int) -> Shifts:
        """Return no shifts."""
        nothing = np.zeros(n_classes)
        return cls(nothing, nothing)


def loss_difference(
    t: Matrix, baseline: Matrix, labels: Labels, weights: Vector | None
) -> LossDifference:
    """Return the extremes, over all labelings, of the loss of scores `baseline + t`.

    `weights` are used instead of those of `labels`; ones if None.
    """
    shifts = Shifts.none(len(t)) if labels.totals is None else shifts_of(t, labels, None)
    parts = difference_parts(t, baseline, labels.of_rows(weights), shifts)
    return sum_of_parts(parts, labels, shifts)


def sum_of_parts(parts: list[list[float]], labels: Labels, shifts: Shifts) -> LossDifference:
    """Return the same from what `difference_parts` returns for all rows."""
    totals = labels.free_totals()
    quadratic, linear, up, down, free, moved, residual, width, low, high = map(
        math.fsum, zip(*parts, strict=True)
    )
    if totals is not None:
        down += totals.support(shifts.worst)
        up += totals.support(shifts.best)
        free += _size(labels, shifts.worst) + _size(labels, shifts.best)
    known = quadratic + 2.0 * linear
    norm_t = float(np.sqrt(quadratic + TINY**2 * moved))
    norm_residual = float(np.sqrt(residual))
    sizes = norm_t**2 + 2.0 * norm_t * norm_residual + 2.0 * free
    return LossDifference(
        worst=known + 2.0 * down,
        best=known - 2.0 * up,
        rounding=SUMMATION * EPS * sizes,
        norm_t=norm_t,
        norm_residual=norm_residual,
        norm_width=float(np.sqrt(width)),
        baseline=(low, high),
    )


def difference_parts(
    t: Matrix | None, baseline: Matrix, labels: RowLabels, shifts: Shifts
) -> list[list[float]]:
    """Return what a loss difference adds up, for pieces of some rows. No t stands for zero."""
    return [
        difference_sums(
            np.zeros_like(baseline[:, rows]) if t is None else t[:, rows],
            baseline[:, rows],
            labels.at(rows),
            shifts,
        )
        for rows in pieces(baseline)
    ]


def pieces(scores: Matrix) -> list[slice]:
    """Return the rows of an array of scores, cut into pieces that stay in cache."""
    return [slice(lo, lo + CHUNK) for lo in range(0, scores.shape[1], CHUNK)]


def shifts_of(t: Matrix, labels: Labels, multiplier: Vector | None) -> Shifts:
    """Return the shifts of scores t that give the tightest bounds, where totals are restricted.

    `multiplier` is that of the worst case, if it is known already.
    """
    totals, omega, shape = labels.free_totals(), labels.hinge_weights(), labels.shape
    assert totals is not None
    worst = best_multiplier(t, omega, shape, totals) if multiplier is None else multiplier
    return Shifts(worst, best_multiplier(-t, omega, shape, totals))


def _size(labels: Labels, multiplier: Vector) -> float:
    """Return the size of what is added up for the totals: bounds, and what is known of them."""
    totals = labels.totals
    if totals is None:
        return 0.0
    known = (labels.weights_where(labels.unlabeled) * np.abs(labels.target)).sum(axis=1)
    sizes = np.abs(totals.low) + np.abs(totals.high) + 2.0 * known
    return float(np.sum(np.abs(multiplier) * sizes))


def difference_sums(t: Matrix, baseline: Matrix, labels: RowLabels, shifts: Shifts) -> list[float]:
    """Return what a loss difference adds up, over rows few enough to stay in cache."""
    target, width, shape, weights = labels.target, labels.width, labels.shape, labels.weights
    s = np.ones(len(width)) if weights is None else weights
    if weights is not None:  # rows without a weight may score anything, even infinity
        t, baseline = np.where(s > 0.0, t, 0.0), np.where(s > 0.0, baseline, 0.0)
    residual = baseline - target
    weighted = s * t
    omega = s * width
    for_worst, for_best = t + shifts.worst[:, None], -t + shifts.best[:, None]
    sizes = np.abs(for_worst) + np.abs(for_best)
    share = np.divide(residual, width, out=np.zeros_like(residual), where=width > 0.0)
    outside = residual - width * shape.project(share)
    terms = (
        weighted * t,
        weighted * residual,
        omega * shape.support(for_best),
        omega * shape.support(for_worst),
        omega * sizes.max(axis=0),
        s * (t != 0.0),
        s * residual**2,
        omega * width,
        s * (outside**2),
        s * shape.farthest(residual, width),
    )
    return [float(term.sum()) for term in terms]
