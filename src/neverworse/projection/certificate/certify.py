"""Worst and best case of a loss difference over all labelings, and weights that are never worse.

For scores f and g and the same row weights s, the difference of the quadratic losses is affine in
every unknown label y_j, so its extremes over all labelings are sums of extremes over each row:

    Σ s (f - y)² - Σ s (g - y)² = Σ s t·(t + 2 g - 2 y)   with t = f - g.

With y_j = target_j + width_j q_j the unknown part is -2 Σ s_j width_j q_j·t_j: largest in the
corner of the labels' shape that has the smallest q·t, and smallest in that of -t. Where the totals
of the labels are restricted, any multiplier λ gives a bound,

    max -Σ ω q·t  <=  Σ ω max_q -q·(t + λ) + max_M M·λ ,

and the best one gives the maximum itself (linear programming duality). Weights are evaluated as
they will be stored, with a bound of all rounding errors, and stepped back until that is below zero.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from neverworse._typing import Matrix, Vector
from neverworse.projection.coordinates import EPS, Weights
from neverworse.projection.geometry import Geometry
from neverworse.projection.label_sets import Box, Simplex
from neverworse.projection.labels import Labels, Scored, implied_labels
from neverworse.projection.totals import best_multiplier
from neverworse.rows import Rows, blocks

# Error of NumPy's summation of a block, of the few operations on each term, and of the three sums
# together, in units of EPS times the sum of the sizes of all terms. Blocks are added up exactly.
SUMMATION = 128.0
# Squares of what is smaller may vanish, so that rounding errors are never counted as if scores were
# smaller than this. Nothing else depends on it.
TINY = 1e-100
# What the loss of a baseline, and differences from it, add up over a block of rows
LossParts = tuple[list[float], ...]


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

    def score_error(self, of_t: float, of_baseline: float) -> float:
        """Return how far errors of t and of the baseline, in weighted norm, move worst and best."""
        spread = 2.0 * (self.norm_t + self.norm_residual + self.norm_width) + of_t
        return of_t * (spread + 2.0 * of_baseline) + 2.0 * self.norm_t * of_baseline

    def baseline_loss(self, of_baseline: float = 0.0) -> tuple[float, float]:
        """Return bounds of the baseline's loss; its scores have errors of this weighted norm."""
        low, high = self.baseline
        size = self.norm_residual + self.norm_width
        slack = SUMMATION * EPS * size**2
        # The loss is a squared norm, and the triangle inequality holds.
        error, rounded = of_baseline + 4.0 * EPS * size, 4.0 * EPS
        least = float(np.sqrt(max(0.0, low - slack))) * (1.0 - rounded) - error
        most = float(np.sqrt(high + slack)) * (1.0 + rounded) + error
        return max(0.0, least) ** 2 * (1.0 - rounded), most**2 * (1.0 + rounded)


def loss_difference(
    t: Matrix, baseline: Matrix, labels: Labels, weights: Vector | None
) -> LossDifference:
    """Return the extremes, over all labelings, of the loss of scores `baseline + t`.

    `weights` are used instead of those of `labels`; ones if None.
    """
    shifts = np.zeros((2, len(t))) if labels.totals is None else shifts_of(t, labels, None)
    parts = loss_parts(t, baseline, replace(labels, weights=weights), shifts)
    return sum_of_parts(parts, labels, shifts)


def sum_of_parts(parts: Iterable[LossParts], labels: Labels, shifts: Matrix) -> LossDifference:
    """Return the same from the sums of all blocks of rows."""
    totals = labels.free_totals()
    of_baseline, of_step = zip(*parts, strict=True)
    quadratic, linear, up, down, free, moved, residual = map(math.fsum, zip(*of_step, strict=True))
    width, low, high = map(math.fsum, zip(*of_baseline, strict=True))
    if totals is not None:
        down, up = (x + totals.support(shift) for x, shift in zip((down, up), shifts, strict=True))
        # What is added up for the totals: bounds, and what is known of them.
        assert labels.totals is not None
        of_known = (labels.weights_where(labels.unlabeled) * np.abs(labels.target)).sum(axis=1)
        of_totals = np.abs(labels.totals.low) + np.abs(labels.totals.high) + 2.0 * of_known
        free += float(np.sum(np.abs(shifts) * of_totals))
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


def shifts_of(t: Matrix, labels: Labels, multiplier: Vector | None) -> Matrix:
    """Return by how much restricted totals shift scores t, in the worst and in the best labeling.

    `multiplier` is that of the worst case, if it is known already.
    """
    totals, omega, shape = labels.free_totals(), labels.hinge_weights(), labels.shape
    assert totals is not None
    worst = best_multiplier(t, omega, shape, totals) if multiplier is None else multiplier
    return np.stack([worst, best_multiplier(-t, omega, shape, totals)])


def loss_parts(t: Matrix, baseline: Matrix, labels: Labels, *shifts: Matrix) -> list[LossParts]:
    """Return what the baseline's loss and the loss difference add up, for blocks of rows.

    With second shifts, the same for probabilities comes last.
    """
    found = []
    for rows in blocks(baseline):
        scores, own = (t[:, rows], baseline[:, rows]), labels.at(rows)
        pairs = (scores, probability_step(*scores)) if len(shifts) > 1 else (scores,)
        sums = [_difference_sums(*pair, own, by) for pair, by in zip(pairs, shifts, strict=True)]
        found.append((_baseline_sums(scores[1], own), *sums))
    return found


def _difference_sums(t: Matrix, baseline: Matrix, labels: Labels, shifts: Matrix) -> list[float]:
    shape, omega = labels.shape, labels.weighted(labels.width)
    t, residual = labels.counted(t), labels.counted(baseline) - labels.target
    weighted = labels.weighted(t)
    for_worst, for_best = t + shifts[0][:, None], -t + shifts[1][:, None]
    sizes = np.abs(for_worst) + np.abs(for_best)
    terms = (
        weighted * t,
        weighted * residual,
        omega * shape.support(for_best),
        omega * shape.support(for_worst),
        omega * sizes.max(axis=0),
        labels.weighted(t != 0.0),
        labels.weighted(residual**2),
    )
    return [float(term.sum()) for term in terms]


def _baseline_sums(baseline: Matrix, labels: Labels) -> list[float]:
    target, width, shape = labels.target, labels.width, labels.shape
    baseline = labels.counted(baseline)
    residual = baseline - target
    outside = residual - width * shape.project(implied_labels(baseline, target, width))
    terms = (width**2, outside**2, shape.farthest(residual, width))
    return [float(labels.weighted(term).sum()) for term in terms]


@dataclass(frozen=True)
class Evaluated:
    """Weights, and their loss less that of the supervised ones."""

    weights: Weights
    step: Weights  # less the supervised weights
    difference: LossDifference
    bound: float  # of the rounding error of `difference`
    # Worst and best case for the probabilities nearest to the scores, rounded outwards
    probabilities: tuple[float, float]
    # Bounds of the loss of the supervised weights over all labelings, rounded outwards
    supervised_loss: tuple[float, float]

    @property
    def is_never_worse(self) -> bool:
        """Whether that is proved in spite of rounding errors."""
        return self.difference.worst + self.bound <= 0.0

    def squared_step(self, alpha: float) -> float:
        """Return the squared distance from the supervised weights, in the norm of H."""
        penalised = float(np.vdot(self.step.coef, self.step.coef))
        return self.difference.norm_t**2 + alpha * penalised


@dataclass(frozen=True)
class Certifier:
    """Evaluates steps from the supervised weights, as they are stored: less the threshold."""

    geometry: Geometry
    threshold: float

    def certified(
        self, direction: Weights, multiplier: Vector | None, converged: bool
    ) -> Evaluated:
        """Return the weights in that direction that are never worse, where that is promised.

        The worst case along a ray is a parabola through zero, so its lowest point is known. If
        even that cannot be told from zero, the supervised weights themselves are returned.
        """
        full = self.evaluate(direction, multiplier)
        if not self.geometry.guaranteed or (converged and full.is_never_worse):
            return full
        quadratic, worst = full.squared_step(self.geometry.alpha), full.difference.worst
        length = (quadratic - worst) / (2.0 * quadratic) if quadratic > 0.0 else 0.0
        if length > 0.0:
            shift = None if multiplier is None else length * multiplier
            part = self.evaluate(direction.scaled(length), shift)
            if part.is_never_worse:
                return part
        return self.evaluate(direction.scaled(0.0), None)

    def evaluate(self, direction: Weights, multiplier: Vector | None) -> Evaluated:
        """Return the weights in that direction as they will be stored, and their loss."""
        geometry = self.geometry
        supervised, alpha = geometry.supervised, geometry.alpha
        weights = (supervised + direction).snapped(self.threshold)
        step, of_baseline = weights - supervised, self._score_error(supervised)
        difference, clipped = self._differences(step, multiplier)
        loss = self._supervised_loss(difference, of_baseline)
        if step.is_zero:
            return Evaluated(weights, step, difference, 0.0, (0.0, 0.0), loss)
        of_step = self._score_error(step)
        bound = difference.rounding + difference.score_error(of_step, of_baseline)
        if alpha > 0.0:
            both = step.coef + 2.0 * supervised.coef
            size = alpha * float(np.vdot(np.abs(step.coef), np.abs(both)))
            more = alpha * float(np.vdot(step.coef, both))
            worst, best = difference.worst + more, difference.best + more
            difference = replace(difference, worst=worst, best=best)
            bound += (both.size + 4) * EPS * size
        # The nearest probability moves no farther than the score, and is rounded itself.
        n_classes = len(step.coef)
        of_before = of_baseline + (n_classes + 4) * EPS * np.sqrt(n_classes * self._total_weight())
        slack = clipped.rounding + clipped.score_error(of_step + 2.0 * of_before, of_before)
        probabilities = float(clipped.worst + slack), float(clipped.best - slack)
        return Evaluated(weights, step, difference, bound, probabilities, loss)

    def _supervised_loss(
        self, difference: LossDifference, of_baseline: float
    ) -> tuple[float, float]:
        """Return bounds of the penalised loss of the supervised weights, rounded outwards."""
        coef, alpha = self.geometry.supervised.coef, self.geometry.alpha
        low, high = difference.baseline_loss(of_baseline)
        penalty = alpha * float(np.vdot(coef, coef))
        bound = (coef.size + 8) * EPS * (penalty + alpha * TINY**2)
        # The last sum is rounded as well.
        least, most = (low + (penalty - bound)), (high + (penalty + bound))
        return max(0.0, least * (1.0 - 2.0 * EPS)), most * (1.0 + 2.0 * EPS)

    def _differences(
        self, step: Weights, multiplier: Vector | None
    ) -> tuple[LossDifference, LossDifference]:
        """Return the loss differences of the scores, and of the probabilities nearest to them."""
        geometry = self.geometry
        rows, labels = geometry.coordinates.rows, geometry.training.labels
        shifts = clipped_shifts = np.zeros((2, len(step.coef)))
        if step.is_zero:  # takes no pass
            found = rows.map_state(_unchanged, (geometry.scored, geometry.labels))
            nothing = sum_of_parts(chain.from_iterable(found), labels, shifts)
            return nothing, nothing
        if labels.totals is not None:
            t = rows.scores(step.coef, step.intercept)
            shifts = shifts_of(t, labels, multiplier)
            clipped, _ = probability_step(t, geometry.supervised_scores())
            clipped_shifts = shifts_of(clipped, labels, None)
        args, kept = (step.coef, step.intercept), (geometry.labels, geometry.scored)
        both = (shifts, clipped_shifts)
        parts: list[Any] = rows.fold(evaluate_step, operator.add, *args, both, kept=kept)
        return (
            sum_of_parts([part[:2] for part in parts], labels, shifts),
            sum_of_parts([part[::2] for part in parts], labels, clipped_shifts),
        )

    def _total_weight(self) -> float:
        weights = self.geometry.weights
        return self.geometry.coordinates.rows.n_rows if weights is None else float(weights.sum())

    def _score_error(self, w: Weights) -> float:
        """Return a bound of the weighted norm of the rounding errors of all scores of w.

        Each score of d terms is off by at most (d + 4) ε Σ|w_k||x_k|; the norm over the rows is
        at most the sum of the norms of the columns. Where the rows are shifted, the intercept and
        the shift only nearly cancel: what was rounded is the size of both.
        """
        geometry = self.geometry
        rows, columns = geometry.coordinates.rows, geometry.coordinates.column_norms
        total = self._total_weight()
        if rows.shift is not None:
            columns = columns + np.abs(rows.shift) * np.sqrt(total)
        size = np.abs(w.coef) @ columns + (np.abs(w.intercept) + TINY) * np.sqrt(total)
        return (w.coef.shape[1] + 4) * EPS * float(np.linalg.norm(size))


def evaluate_step(
    rows: Rows,
    coef: Matrix,
    intercept: Vector,
    shifts: tuple[Matrix, Matrix],
    labels: Labels,
    scored: Scored,
) -> list[LossParts]:
    """Return what the loss differences of a step add up over blocks of some rows."""
    return loss_parts(rows.scores(coef, intercept), scored.scores, labels, *shifts)


def probability_step(t: Matrix, baseline: Matrix) -> tuple[Matrix, Matrix]:
    """Return the change of the probabilities nearest to scores, and those before it."""
    nearest = (Box() if len(t) == 1 else Simplex()).project
    before = nearest(baseline)
    return nearest(baseline + t) - before, before


def _unchanged(scored: Scored, labels: Labels) -> list[LossParts]:
    nothing = np.zeros_like(scored.scores)
    return loss_parts(nothing, scored.scores, labels, np.zeros((2, len(nothing))))
