"""Means over folds, how far off they may be, and tests, where training folds overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from neverworse._typing import Vector


@dataclass(frozen=True)
class Mean:
    """The mean of a number over the folds of a repeated cross-validation.

    The folds share training rows, so that their results are no independent draws, and the usual
    standard error is too small. Nadeau and Bengio's correction, "Inference for the generalization
    error" (Machine Learning 52, 2003), replaces 1 / J by 1 / J + n_test / n_train for J folds.

    Attributes
    ----------
    value, se : float
        The mean, and its corrected standard error.
    n : int
        Number of folds, J.
    """

    value: float
    se: float
    n: int

    @classmethod
    def over_folds(cls, values: Vector, test_share: float) -> Mean:
        """Return the mean of one value for each of two or more folds.

        Parameters
        ----------
        values : array of shape (n,)
        test_share : float
            Test rows for each training row, n_test / n_train.
        """
        n = len(values)
        spread = float(np.var(values, ddof=1))
        return cls(float(np.mean(values)), float(np.sqrt((1.0 / n + test_share) * spread)), n)

    @property
    def margin(self) -> float:
        """Half the width of a 95 % confidence interval."""
        return float(stats.t.ppf(0.975, self.n - 1)) * self.se

    @property
    def p_value(self) -> float | None:
        """Of the corrected resampled t-test that the mean is zero; two-sided.

        None if all values are the same but not zero: then nothing says how far they may be off.
        """
        if self.se == 0.0:
            return 1.0 if self.value == 0.0 else None
        return float(2.0 * stats.t.sf(abs(self.value) / self.se, self.n - 1))

    @property
    def sign(self) -> int:
        """1 or -1 if the mean is above or below zero beyond chance (95 %), otherwise 0."""
        p = self.p_value
        return int(np.sign(self.value)) if p is not None and p < 0.05 else 0


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values that allow for how many there are, by Holm's method; None stays None."""
    known = [k for k, p in enumerate(p_values) if p is not None]
    p = np.array([p_values[k] for k in known], dtype=np.float64)
    order = np.argsort(p)
    steps = np.minimum(1.0, p[order] * (len(p) - np.arange(len(p))))
    adjusted: list[float | None] = [None] * len(p_values)
    for k, value in zip(order, np.maximum.accumulate(steps), strict=True):
        adjusted[known[k]] = float(value)
    return adjusted
