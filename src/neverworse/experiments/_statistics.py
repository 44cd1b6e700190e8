"""Means, standard errors and tests over repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import stats

from neverworse._typing import AnyArray, Vector

Alternative = Literal["less", "greater"]
LEVEL = 0.05  # family-wise


def signed_rank(differences: Vector, alternative: Alternative) -> float:
    """Return the p-value of Wilcoxon's signed-rank test that differences are below or above zero.

    Normal approximation with continuity correction; zeros are dropped, as in the paper.
    """
    differences = differences[differences != 0.0]
    if not len(differences):
        return 1.0
    return float(
        stats.wilcoxon(
            differences,
            alternative=alternative,
            zero_method="wilcox",
            correction=True,
            method="asymptotic",
        ).pvalue
    )


def reject(p_values: Sequence[float], correction: str, n_hypotheses: int) -> AnyArray:
    """Return which hypotheses are rejected at a family-wise error rate of 0.05.

    Parameters
    ----------
    p_values : sequence of float
    correction : {"bonferroni", "holm"}
    n_hypotheses : int
        How many hypotheses there are; at least as many as p-values.
    """
    p = np.asarray(p_values, dtype=float)
    if correction == "bonferroni":
        return p <= LEVEL / n_hypotheses
    if correction != "holm":
        raise ValueError(f"correction={correction!r} must be 'bonferroni' or 'holm'.")
    order = np.argsort(p)
    # In order, until the first that is not rejected.
    passed = p[order] <= LEVEL / (n_hypotheses - np.arange(len(p)))
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order] = np.logical_and.accumulate(passed)
    return rejected


def standard_error(values: Vector) -> float:
    """Return the standard error of a mean; NaN for a single value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
