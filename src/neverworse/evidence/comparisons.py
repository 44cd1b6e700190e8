"""Comparisons of two fitted classifiers on unlabeled rows, by labels of rows drawn at random.

Labels are fixed but unknown; only the order of the draws is random. Labels count in that order,
whenever they come in, so that it does not matter which rows are easy to label.

The evidence is an e-process: it starts at 1 and, if a hypothesis is true, is not expected to grow,
so that it ever reaches 1/δ with a probability of at most δ. docs/evidence_mathematics.md proves it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import optimize, special

from neverworse._typing import Indices, Mask, Matrix, Vector

NOT_WORSE, WORSE, UNDECIDED = "candidate is not worse", "candidate is worse", "undecided"

MOST_REPEATS = 100_000  # draws of known rows after which the others are given up as too unlikely
PRIOR_DRAWS = 10  # the number of draws that the prior expectation of a forecast counts as
SAME = 1e-12  # differences of probabilities below this are rounding errors


class DrawnWithoutReplacement:
    """Evidence about the sum of numbers 0, ½ or 1 in a finite population.

    There are `size` numbers, multiples of `unit`; `log_threshold` is log(1/δ). With probability
    1 - δ, the sum of all numbers lies between `low` and `high` at all times.
    """

    def __init__(self, size: int, unit: float, log_threshold: float) -> None:
        self.size = size
        self.unit = unit
        self.log_threshold = log_threshold
        self.n_drawn, self.total = 0, 0.0
        self.low, self.high = 0.0, float(size)
        self.sums = np.arange(round(size / unit) + 1) * unit
        # Of every possible sum; minus infinity for sums that the numbers so far exclude.
        self.log_likelihood = np.zeros(len(self.sums))

    def observe(self, x: float) -> None:
        """Add the next number, drawn uniformly from those that remain."""
        mean = (self.sums - self.total) / (self.size - self.n_drawn)
        mean = np.where(self.log_likelihood == -np.inf, 0.5, mean)  # that of an excluded sum
        self.log_likelihood += special.xlogy(x, mean) + special.xlogy(1.0 - x, 1.0 - mean)
        self.n_drawn += 1
        self.total += x
        rest = self.sums - self.total
        self.log_likelihood[(rest < 0.0) | (rest > self.size - self.n_drawn)] = -np.inf
        ratio = _log_mean_exp(self.log_likelihood) - self.log_likelihood
        kept = self.sums[ratio < self.log_threshold]
        inside = kept[(kept >= self.low) & (kept <= self.high)]
        # If none is inside, the interval has failed, which has probability δ, and starts again.
        kept = inside if inside.size else kept
        self.low, self.high = float(kept[0]), float(kept[-1])

    def log_e(self, null: float, *, above: bool) -> float:
        """Return the logarithm of the evidence that the sum is above, or below, a possible sum.

        It is the mean likelihood of all larger (smaller) sums relative to that of `null`. If the
        sum is on the other side of `null`, the evidence is expected to shrink.
        """
        alternatives = self.sums > null if above else self.sums < null
        mean = _log_mean_exp(self.log_likelihood[alternatives])
        # Sums that are excluded have no evidence, even against a sum that is excluded too.
        return -np.inf if mean == -np.inf else mean - self.log_likelihood[round(null / self.unit)]


class DrawnWithReplacement:
    """Evidence about the mean of independent numbers between 0 and 1, by a Beta(½, ½) mixture.

    With probability 1 - δ, the mean lies between `low` and `high` at all times.
    """

    def __init__(self, log_threshold: float) -> None:
        self.log_threshold = log_threshold
        self.n_drawn, self.total = 0, 0.0
        self.low, self.high = 0.0, 1.0

    def observe(self, x: float) -> None:
        """Add the next number; `update` then narrows the interval."""
        self.n_drawn += 1
        self.total += x

    def update(self) -> None:
        """Narrow the interval by the numbers so far."""
        low, high = self.bounds(self.total, self.n_drawn)
        if low <= self.high and self.low <= high:  # otherwise it has failed, and starts again
            low, high = max(low, self.low), min(high, self.high)
        self.low, self.high = low, high

    def log_e(self, mean: float, total: float, n_drawn: float) -> float:
        """Return the logarithm of the evidence against a mean, for numbers with a sum."""
        missed = n_drawn - total
        mixture = special.betaln(total + 0.5, missed + 0.5) - special.betaln(0.5, 0.5)
        return float(mixture - special.xlogy(total, mean) - special.xlog1py(missed, -mean))

    def bounds(self, total: float, n_drawn: float) -> tuple[float, float]:
        """Return the smallest and the largest mean that numbers with a sum do not exclude."""
        if n_drawn <= 0:
            return 0.0, 1.0
        middle = float(np.clip(total / n_drawn, 0.0, 1.0))

        def excess(mean: float) -> float:
            return self.log_e(mean, total, n_drawn) - self.log_threshold

        # The evidence against a mean grows with its distance from the middle, where it is least.
        low = high = middle
        if excess(middle) < 0.0:
            low = 0.0 if excess(0.0) < 0.0 else optimize.brentq(excess, 0.0, middle, xtol=1e-12)
            high = 1.0 if excess(1.0) < 0.0 else optimize.brentq(excess, middle, 1.0, xtol=1e-12)
        return low, high


def random_order(seed: int, n_rows: int) -> list[int]:
    """Return rows in random order, the same in every version of Python and NumPy."""
    draw = random.Random(seed).random
    return np.argsort([draw() for _ in range(n_rows)], kind="stable").tolist()


def _log_mean_exp(values: Vector) -> float:
    return special.logsumexp(values) - np.log(len(values)) if len(values) else -np.inf


class AuditResult:
    """A candidate against the baseline: the state of their audit.

    In subclasses, `draw` returns a row by its position in the order of draws, `count` counts labels
    up to the first drawn row without one, and there are `interval`, `step` and `expected_labels`,
    which `SequentialAudit` describes.
    """

    draw: Callable[[int], int | None]
    _process: Any  # the evidence of the labels so far

    def __init__(self, differs: Mask, delta: float, asked: Collection[int]) -> None:
        self._differs, self._asked = differs, asked
        self.n_differing = int(np.count_nonzero(differs))
        self._log_threshold = math.log(1.0 / delta)
        self.verdict = UNDECIDED if self.n_differing else NOT_WORSE
        self._position = 0  # of the last draw that was new

    @property
    def n_counted(self) -> int:
        return self._process.n_drawn

    def _forecast(self, boundary: float, prior: float, evidence: float) -> float:
        """Return how many more draws are likely to show that their mean is not the boundary.

        They are taken to have a mean between that of the draws so far and a prior expectation.
        """
        process = self._process
        mean = (process.total + PRIOR_DRAWS * prior) / (process.n_drawn + PRIOR_DRAWS)
        rate = special.rel_entr(mean, boundary) + special.rel_entr(1.0 - mean, 1.0 - boundary)
        missing = self._log_threshold - evidence
        return float(np.clip(missing / rate, 1.0, MOST_REPEATS)) if rate > 0.0 else MOST_REPEATS

    def _n_open(self) -> int:
        """Return the number of rows that differ and have not been asked for."""
        return self.n_differing - sum(bool(self._differs[row]) for row in self._asked)

    def draw_new(self) -> int | None:
        """Return the next drawn row that has not been asked for, if there is one."""
        if self._n_open():
            for position in range(self._position, self._position + MOST_REPEATS):
                row = self.draw(position)
                if row not in self._asked:
                    self._position = position
                    return row
        return None


class ErrorComparison(AuditResult):
    """Error rates, by rows that get different classes, drawn without replacement.

    A label shows that the candidate is right (1), that the baseline is right (0), or, with more
    than two classes, neither (½). The candidate has no more errors than the baseline exactly if
    these numbers add up to at least half the number of rows. Classifiers are given by the codes of
    their predicted classes; `order` is a random order of all rows.
    """

    def __init__(
        self,
        baseline: Indices,
        candidate: Indices,
        delta: float,
        asked: Collection[int],
        n_classes: int,
        order: Sequence[int],
    ) -> None:
        super().__init__(baseline != candidate, delta, asked)
        self._baseline, self._candidate = baseline, candidate
        self._order = [row for row in order if self._differs[row]]
        m = self.n_differing
        unit = 1.0 if n_classes == 2 else 0.5
        self._process = DrawnWithoutReplacement(m, unit, self._log_threshold)
        # The largest sum with which the candidate is worse, and the smallest with which it is not.
        self._worse = math.ceil(m / 2.0 / unit - 1.0) * unit
        self._not_worse = self._worse + unit

    def draw(self, number: int) -> int | None:
        return self._order[number] if number < len(self._order) else None

    def count(self, labels: Mapping[int, int]) -> None:
        while (row := self.draw(self.n_counted)) is not None and row in labels:
            hits = labels[row] == self._candidate[row], labels[row] == self._baseline[row]
            self._process.observe(0.5 + 0.5 * hits[0] - 0.5 * hits[1])
            if self.verdict == UNDECIDED:
                if self._process.log_e(self._worse, above=True) >= self._log_threshold:
                    self.verdict = NOT_WORSE
                elif self._process.log_e(self._not_worse, above=False) >= self._log_threshold:
                    self.verdict = WORSE

    @property
    def interval(self) -> tuple[float, float]:
        m, n = self.n_differing, len(self._baseline)
        return (m - 2.0 * self._process.high) / n, (m - 2.0 * self._process.low) / n

    @property
    def step(self) -> float:
        return float(self.verdict == NOT_WORSE)

    @property
    def expected_labels(self) -> int:
        if self.verdict != UNDECIDED:
            return 0
        process, m = self._process, self.n_differing
        above = process.total >= 0.5 * process.n_drawn
        null, prior = (self._worse, 0.75) if above else (self._not_worse, 0.25)
        draws = self._forecast(null / m, prior, process.log_e(null, above=above))
        # Without replacement, each label is more informative the fewer are left.
        return max(1, round(1.0 / (1.0 / draws + 1.0 / (m - process.n_drawn))))

    def numbers(self) -> list[float]:
        """Return numbers that identify the comparison."""
        codes = np.stack([self._baseline, self._candidate])
        return [float(self.n_differing), *map(float, codes @ np.arange(1, codes.shape[1] + 1))]


class BrierComparison(AuditResult):
    r"""Brier scores, by rows drawn with probabilities in proportion to what their label can change.

    With probabilities g and c = g + t, moving by a changes the squared loss of a row with the
    class y by :math:`a^2 \lVert t \rVert^2 - 2a (t_y - t \cdot g)`. Only :math:`t_y` is unknown. In
    rows drawn in proportion to the range of t, with replacement, its position in that range has a
    mean θ that gives the sum over all rows: one unknown for every step a. Classifiers are given by
    their probabilities, with a column for each class.
    """

    def __init__(
        self, baseline: Matrix, candidate: Matrix, delta: float, asked: Collection[int], seed: str
    ) -> None:
        t = candidate - baseline
        self._lowest = t.min(axis=1)
        ranges = t.max(axis=1) - self._lowest
        ranges[ranges < SAME] = 0.0
        super().__init__(ranges > 0.0, delta, asked)
        self._t, self._ranges = t, ranges
        # The Brier score of two classes is that of one column.
        self._scale = (0.5 if t.shape[1] == 2 else 1.0) / len(t)
        self._squares = float(np.sum(t**2))
        self._offset = float(np.sum(self._lowest) - np.sum(t * baseline))
        self._range = float(ranges.sum())
        self._rows = np.flatnonzero(ranges)
        self._edges = np.cumsum(ranges[self._rows])
        self._random = random.Random(seed)  # the same draws in every version of Python
        self._drawn: list[int] = []
        self._process = DrawnWithReplacement(self._log_threshold)
        self._known: dict[int, float] = {}  # of counted rows, their positions in the range

    def draw(self, number: int) -> int | None:
        if not self.n_differing:
            return None
        while number >= len(self._drawn):
            at = np.searchsorted(self._edges, self._random.random() * self._edges[-1], "right")
            self._drawn.append(int(self._rows[min(int(at), len(self._rows) - 1)]))
        return self._drawn[number]

    def count(self, labels: Mapping[int, int]) -> None:
        repeats = 0
        while repeats < MOST_REPEATS and len(self._known) < self.n_differing:
            row = self.draw(self.n_counted)
            if row is None or row not in labels:
                break
            repeats += 1
            if row not in self._known:
                repeats = 0
                self._process.update()
                low, whole = self._lowest[row], self._ranges[row]
                self._known[row] = float((self._t[row, labels[row]] - low) / whole)
            self._process.observe(self._known[row])
        self._process.update()
        if self.verdict == UNDECIDED:
            low, high = self.interval
            self.verdict = NOT_WORSE if high <= 0.0 else WORSE if low > 0.0 else UNDECIDED

    @property
    def interval(self) -> tuple[float, float]:
        low, high = self._bounds()
        return self._change(high), self._change(low)

    @property
    def step(self) -> float:
        if not self.n_differing:
            return 1.0
        gain = self._offset + self._range * self._bounds()[0]
        return float(np.clip(gain / self._squares, 0.0, 1.0))

    def _bounds(self) -> tuple[float, float]:
        """Return bounds of θ: those of the process, and what the labels so far make certain."""
        if not self.n_differing:
            return 0.0, 0.0
        rows = np.fromiter(self._known, np.intp)
        shares = self._ranges[rows] / self._range
        certain = float(shares @ np.fromiter(self._known.values(), np.float64))
        missing = 1.0 - float(shares.sum()) if len(rows) < self.n_differing else 0.0
        low = max(self._process.low, certain)
        return low, max(low, min(self._process.high, certain + max(missing, 0.0)))

    def _change(self, theta: float) -> float:
        """Return the change of the loss per row from the baseline to the candidate."""
        return self._scale * (self._squares - 2.0 * (self._offset + self._range * theta))

    @property
    def expected_labels(self) -> int:
        if self.verdict != UNDECIDED or not self._n_open():
            return 0
        process, boundary = self._process, (self._squares / 2.0 - self._offset) / self._range
        # The mean if the probabilities of the candidate, or those of the baseline, were right.
        side = 0.5 if process.total >= boundary * process.n_drawn else -0.5
        prior = boundary + side * self._squares / self._range
        evidence = process.log_e(boundary, process.total, process.n_drawn)
        draws = self._forecast(boundary, prior, evidence)
        shares = np.minimum(self._ranges / self._range, 1.0 - SAME)
        shares[list(self._asked)] = 0.0
        new = -np.expm1(draws * np.log1p(-shares))
        return max(1, round(float(new.sum())))

    def numbers(self) -> list[float]:
        """Return numbers that identify the comparison."""
        return [float(self.n_differing), self._squares, self._offset, self._range]


Comparison = ErrorComparison | BrierComparison
