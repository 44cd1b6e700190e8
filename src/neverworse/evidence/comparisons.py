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

import numpy as np
from scipy import optimize, special

from neverworse._typing import Indices, Mask, Matrix, Vector

NOT_WORSE, WORSE, UNDECIDED = "candidate is not worse", "candidate is worse", "undecided"

MOST_REPEATS = 100_000  # draws of known rows after which the others are given up as too unlikely
PRIOR_DRAWS = 10  # the number of draws that the prior expectation of a forecast counts as
SAME = 1e-12  # differences of probabilities below this are rounding errors


def random_order(seed: int, n_rows: int) -> list[int]:
    """Return rows in random order, the same in every version of Python and NumPy."""
    draw = random.Random(seed).random
    return np.argsort([draw() for _ in range(n_rows)], kind="stable").tolist()


def _log_mean_exp(values: Vector) -> float:
    return special.logsumexp(values) - np.log(len(values)) if len(values) else -np.inf


class AuditResult:
    """A candidate against the baseline: the state of their audit, with probability 1 - δ.

    Labels are turned into numbers between 0 and 1, about which there is evidence. In subclasses,
    `draw` returns a row by its position in the order of draws, `count` counts labels up to the
    first drawn row without one, `_low` and `_high` are bounds of the sum or mean of all numbers at
    all times, and there are `interval`, `step` and `expected_labels`, which `SequentialAudit`
    describes.
    """

    draw: Callable[[int], int | None]

    def __init__(self, differs: Mask, delta: float, asked: Collection[int]) -> None:
        self._differs, self._asked = differs, asked
        self.n_differing = int(np.count_nonzero(differs))
        self._log_threshold = math.log(1.0 / delta)
        self.verdict = UNDECIDED if self.n_differing else NOT_WORSE
        self._position = 0  # of the last draw that was new
        self.n_counted, self._total = 0, 0.0

    def _forecast(self, boundary: float, prior: float, evidence: float) -> float:
        """Return how many more draws are likely to show that their mean is not the boundary.

        They are taken to have a mean between that of the draws so far and a prior expectation.
        """
        mean = (self._total + PRIOR_DRAWS * prior) / (self.n_counted + PRIOR_DRAWS)
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
        self._low, self._high = 0.0, float(m)
        self._unit = unit = 1.0 if n_classes == 2 else 0.5
        self._sums = np.arange(round(m / unit) + 1) * unit
        # Of every possible sum; minus infinity for sums that the numbers so far exclude.
        self._log_likelihood = np.zeros(len(self._sums))
        # The largest sum with which the candidate is worse, and the smallest with which it is not.
        self._worse = math.ceil(m / 2.0 / unit - 1.0) * unit
        self._not_worse = self._worse + unit

    def draw(self, number: int) -> int | None:
        return self._order[number] if number < len(self._order) else None

    def count(self, labels: Mapping[int, int]) -> None:
        while (row := self.draw(self.n_counted)) is not None and row in labels:
            hits = labels[row] == self._candidate[row], labels[row] == self._baseline[row]
            self._observe(0.5 + 0.5 * hits[0] - 0.5 * hits[1])
            if self.verdict == UNDECIDED:
                if self._log_e(self._worse, above=True) >= self._log_threshold:
                    self.verdict = NOT_WORSE
                elif self._log_e(self._not_worse, above=False) >= self._log_threshold:
                    self.verdict = WORSE

    def _observe(self, x: float) -> None:
        """Add the next number, drawn uniformly from those that remain."""
        mean = (self._sums - self._total) / (self.n_differing - self.n_counted)
        mean = np.where(self._log_likelihood == -np.inf, 0.5, mean)  # that of an excluded sum
        self._log_likelihood += special.xlogy(x, mean) + special.xlogy(1.0 - x, 1.0 - mean)
        self.n_counted += 1
        self._total += x
        rest = self._sums - self._total
        self._log_likelihood[(rest < 0.0) | (rest > self.n_differing - self.n_counted)] = -np.inf
        ratio = _log_mean_exp(self._log_likelihood) - self._log_likelihood
        kept = self._sums[ratio < self._log_threshold]
        inside = kept[(kept >= self._low) & (kept <= self._high)]
        # If none is inside, the interval has failed, which has probability δ, and starts again.
        kept = inside if inside.size else kept
        self._low, self._high = float(kept[0]), float(kept[-1])

    def _log_e(self, null: float, *, above: bool) -> float:
        """Return the logarithm of the evidence that the sum is above, or below, a possible sum.

        It is the mean likelihood of all larger (smaller) sums relative to that of `null`. If the
        sum is on the other side of `null`, the evidence is expected to shrink.
        """
        alternatives = self._sums > null if above else self._sums < null
        mean = _log_mean_exp(self._log_likelihood[alternatives])
        # Sums that are excluded have no evidence, even against a sum that is excluded too.
        return -np.inf if mean == -np.inf else mean - self._log_likelihood[round(null / self._unit)]

    @property
    def interval(self) -> tuple[float, float]:
        m, n = self.n_differing, len(self._baseline)
        return (m - 2.0 * self._high) / n, (m - 2.0 * self._low) / n

    @property
    def step(self) -> float:
        return float(self.verdict == NOT_WORSE)

    @property
    def expected_labels(self) -> int:
        if self.verdict != UNDECIDED:
            return 0
        above = self._total >= 0.5 * self.n_counted
        null, prior = (self._worse, 0.75) if above else (self._not_worse, 0.25)
        draws = self._forecast(null / self.n_differing, prior, self._log_e(null, above=above))
        # Without replacement, each label is more informative the fewer are left.
        return max(1, round(1.0 / (1.0 / draws + 1.0 / (self.n_differing - self.n_counted))))

    def numbers(self) -> list[float]:
        """Return numbers that identify the comparison."""
        codes = np.stack([self._baseline, self._candidate])
        return [float(self.n_differing), *map(float, codes @ np.arange(1, codes.shape[1] + 1))]


class BrierComparison(AuditResult):
    r"""Brier scores, by rows drawn with probabilities in proportion to what their label can change.

    With probabilities g and c = g + t, moving by a changes the squared loss of a row with the
    class y by :math:`a^2 \lVert t \rVert^2 - 2a (t_y - t \cdot g)`. Only :math:`t_y` is unknown. In
    rows drawn in proportion to the range of t, with replacement, its position in that range has a
    mean θ that gives the sum over all rows: one unknown for every step a. The evidence about it is
    a Beta(½, ½) mixture. Classifiers are given by their probabilities, with a column for each
    class.
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
        self._low, self._high = 0.0, 1.0
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
                self._update()
                low, whole = self._lowest[row], self._ranges[row]
                self._known[row] = float((self._t[row, labels[row]] - low) / whole)
            self.n_counted += 1
            self._total += self._known[row]
        self._update()
        if self.verdict == UNDECIDED:
            low, high = self.interval
            self.verdict = NOT_WORSE if high <= 0.0 else WORSE if low > 0.0 else UNDECIDED

    def _update(self) -> None:
        """Narrow the interval of the mean by the numbers so far."""
        if not self.n_counted:
            return
        low = high = float(np.clip(self._total / self.n_counted, 0.0, 1.0))

        def excess(mean: float) -> float:
            return self._log_e(mean) - self._log_threshold

        # The evidence against a mean grows with its distance from the middle, where it is least.
        if excess(low) < 0.0:
            low = 0.0 if excess(0.0) < 0.0 else optimize.brentq(excess, 0.0, low, xtol=1e-12)
            high = 1.0 if excess(1.0) < 0.0 else optimize.brentq(excess, high, 1.0, xtol=1e-12)
        if low <= self._high and self._low <= high:  # otherwise it has failed, and starts again
            low, high = max(low, self._low), min(high, self._high)
        self._low, self._high = low, high

    def _log_e(self, mean: float) -> float:
        """Return the logarithm of the evidence against a mean."""
        missed = self.n_counted - self._total
        mixture = special.betaln(self._total + 0.5, missed + 0.5) - special.betaln(0.5, 0.5)
        return float(mixture - special.xlogy(self._total, mean) - special.xlog1py(missed, -mean))

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
        """Return bounds of θ: by the evidence, and by what the labels so far make certain."""
        if not self.n_differing:
            return 0.0, 0.0
        rows = np.fromiter(self._known, np.intp)
        shares = self._ranges[rows] / self._range
        certain = float(shares @ np.fromiter(self._known.values(), np.float64))
        missing = 1.0 - float(shares.sum()) if len(rows) < self.n_differing else 0.0
        low = max(self._low, certain)
        return low, max(low, min(self._high, certain + max(missing, 0.0)))

    def _change(self, theta: float) -> float:
        """Return the change of the loss per row from the baseline to the candidate."""
        return self._scale * (self._squares - 2.0 * (self._offset + self._range * theta))

    @property
    def expected_labels(self) -> int:
        if self.verdict != UNDECIDED or not self._n_open():
            return 0
        boundary = (self._squares / 2.0 - self._offset) / self._range
        # The mean if the probabilities of the candidate, or those of the baseline, were right.
        side = 0.5 if self._total >= boundary * self.n_counted else -0.5
        prior = boundary + side * self._squares / self._range
        draws = self._forecast(boundary, prior, self._log_e(boundary))
        shares = np.minimum(self._ranges / self._range, 1.0 - SAME)
        shares[list(self._asked)] = 0.0
        new = -np.expm1(draws * np.log1p(-shares))
        return max(1, round(float(new.sum())))

    def numbers(self) -> list[float]:
        """Return numbers that identify the comparison."""
        return [float(self.n_differing), self._squares, self._offset, self._range]


Comparison = ErrorComparison | BrierComparison
