"""Means over folds, and how far off they may be, where training folds overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from neverworse._typing import Vector
from neverworse.study._study import Estimate

LEVEL = 0.95


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

    def estimate(self, n_tests: int = 1) -> Estimate:
        """Return the mean with its interval.

        Parameters
        ----------
        n_tests : int, default=1
            How many intervals are to be right together, with a probability of 95 % (Bonferroni).
        """
        # Values that are all the same but not zero do not say how far they may be off.
        margin = abs(self.value)
        if self.se > 0.0:
            margin = float(stats.t.isf(0.5 * (1.0 - LEVEL) / n_tests, self.n - 1)) * self.se
        return Estimate(self.value, self.value - margin, self.value + margin)
