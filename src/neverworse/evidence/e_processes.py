"""E-processes: evidence that stays valid when it is looked at after every label.

An e-process is a nonnegative quantity that starts at 1 and, if a hypothesis is true, is not
expected to grow. By Ville's inequality it then ever reaches 1/δ with a probability of at most δ.

Both processes here are likelihood ratios. For numbers x between 0 and 1 with the mean ν, the
likelihood is νˣ (1-ν)¹⁻ˣ, that of a coin if x is 0 or 1. In between, the ratio for two means ν'
and ν is convex in x, so below the straight line between its values at 0 and 1, whose expectation
is 1 if ν is the mean. Everything is computed in logarithms.
"""

from __future__ import annotations

import random

import numpy as np
from scipy import optimize, special

from neverworse._typing import Vector


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
        self.log_likelihood += _log_coin(mean, x)
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

    def forecast(self, above: float, below: float) -> int:
        """Return how many more numbers a decision is likely to take: above or below these sums.

        The rest is taken to have the share of ones that is expected on the likelier side.
        """
        rest = self.size - self.n_drawn
        posterior = np.exp(self.log_likelihood - self.log_likelihood.max())
        is_above = bool(posterior @ (self.sums > above) >= posterior @ (self.sums < below))
        null, side = (above, self.sums > above) if is_above else (below, self.sums < below)
        expected = posterior[side] @ self.sums[side] / posterior[side].sum()
        share, null_share = np.clip((np.array([expected, null]) - self.total) / rest, 0.0, 1.0)
        missing = self.log_threshold - self.log_e(null, above=is_above)
        more = n_until(missing, share, null_share)
        # Without replacement, each number is more informative the fewer are left.
        return max(1, round(1.0 / (1.0 / more + 1.0 / rest)))


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


def n_until(missing: float, mean: float, null: float) -> float:
    """Return how many numbers with a mean give the missing log evidence against the null mean."""
    rate = special.rel_entr(mean, null) + special.rel_entr(1.0 - mean, 1.0 - null)
    return max(missing / rate, 1.0) if rate > 0.0 else np.inf


def random_order(seed: int, n_rows: int) -> list[int]:
    """Return rows in random order, the same in every version of Python and NumPy."""
    draw = random.Random(seed).random
    return np.argsort([draw() for _ in range(n_rows)], kind="stable").tolist()


def _log_coin(mean: Vector, x: float) -> Vector:
    """Return log(meanˣ (1 - mean)¹⁻ˣ); minus infinity where the mean excludes x."""
    possible = (mean >= 0.0) & (mean <= 1.0)
    mean = np.where(possible, mean, 0.5)
    return np.where(possible, special.xlogy(x, mean) + special.xlogy(1.0 - x, 1.0 - mean), -np.inf)


def _log_mean_exp(values: Vector) -> float:
    return special.logsumexp(values) - np.log(len(values)) if len(values) else -np.inf
