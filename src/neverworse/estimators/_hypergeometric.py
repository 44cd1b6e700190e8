"""How many unlabeled rows belong to a class: what a random choice of labeled rows tells."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

# A total whose tail equals its bound to within rounding is kept: that can only widen an interval.
TIE = 1e-9
# How many terms of a tail are added up at once, and when the rest is beneath notice.
CHUNK = 2048
NEGLIGIBLE = 1e-20


def count_intervals(
    n_rows: int, n_labeled: int, counts: Sequence[int], level: float = 0.95
) -> NDArray[np.int64]:
    r"""Return simultaneous confidence intervals for the sizes of all classes.

    With probability `level` or more, over the random choice of the labeled rows, all intervals
    together hold: the number of unlabeled rows of class k lies between the two numbers of row k.

    Two classes share one interval. Of more classes, each has an interval of level
    :math:`1 - (1 - level) / K`. As the sizes add up to the number U of unlabeled rows, none can be
    larger than what the smallest sizes of the others leave, or smaller than what their largest
    sizes leave.

    Parameters
    ----------
    n_rows, n_labeled : int
        See `count_interval`.
    counts : sequence of K >= 2 ints
        The number of labeled rows of each class; they add up to `n_labeled`.
    level : float
        Between 0 and 1.

    Returns
    -------
    array of shape (K, 2)
        The smallest and the largest number of unlabeled rows, for every class.
    """
    if len(counts) < 2 or sum(counts) != n_labeled:
        raise ValueError(
            "counts must hold the labeled rows of two classes or more and add up to "
            f"n_labeled={n_labeled}, got {list(counts)}."
        )
    _check_level(level)
    if len(counts) > 2:
        level = 1.0 - (1.0 - level) / len(counts)
    found = [count_interval(n_rows, n_labeled, int(x), level) for x in counts]
    intervals = np.array(found, dtype=np.int64)
    # Never empty. Suppose that the smallest totals L_k added up to more than all rows. Then there
    # are totals M_k <= L_k that do add up, one of them smaller than L_k. With these, P(X_k > x_k)
    # is at most P(X_k >= x_k | L_k - 1), which is at most (1 - level) / 2: small for every k at
    # once, so X = x is likely; but X_k >= x_k is not, where M_k < L_k. Likewise for the largest.
    rest = (n_rows - n_labeled) - (intervals.sum(axis=0) - intervals)
    lower = np.maximum(intervals[:, 0], rest[:, 1])
    upper = np.minimum(intervals[:, 1], rest[:, 0])
    return np.column_stack([lower, upper])


def count_interval(
    n_rows: int, n_labeled: int, n_positive: int, level: float = 0.95
) -> tuple[int, int]:
    r"""Return a confidence interval for the number of positives among the unlabeled rows.

    The labeled rows are a random subset of all rows, so the number X of positives among them
    follows a hypergeometric distribution. Every total M of positives is kept that neither of two
    tests rejects:

    .. math:: P(X \le x \mid M) > (1 - level) / 2 \quad\text{and}\quad
              P(X \ge x \mid M) > (1 - level) / 2

    No approximation is involved: the interval holds with probability `level` or more, whatever
    the truth and however small the numbers.

    Parameters
    ----------
    n_rows : int
        All rows, labeled and unlabeled.
    n_labeled : int
        Labeled rows.
    n_positive : int
        The number x of positives among the labeled rows.
    level : float
        Between 0 and 1.

    Returns
    -------
    lower, upper : int
        The smallest and the largest M that is kept, less x.
    """
    _check_level(level)
    if not 0 <= n_positive <= n_labeled <= n_rows:
        raise ValueError(
            "n_positive, n_labeled and n_rows must not be negative, and each must be at most the "
            f"next one, got {n_positive}, {n_labeled} and {n_rows}."
        )
    n_unlabeled, n_negative = n_rows - n_labeled, n_labeled - n_positive
    bound = (1.0 - level) / 2.0
    # Few positives are many negatives: the second test is the first one for the other class.
    lower = n_unlabeled - _largest_count(n_unlabeled, n_negative, n_positive, bound)
    upper = _largest_count(n_unlabeled, n_positive, n_negative, bound)
    return lower, upper


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, such as 0.95, got {level!r}.")


def _largest_count(n_unlabeled: int, x: int, others: int, bound: float) -> int:
    """Return the largest number of unlabeled positives for which P(X <= x) exceeds `bound`."""

    def is_rejected(count: int) -> bool:
        return _at_most(x, others, count, n_unlabeled - count) <= bound * (1.0 - TIE)

    # The more positives there are, the less likely are few of them among the labeled rows. None
    # beyond those x is never rejected: the probability is one.
    return bisect_left(range(n_unlabeled + 1), True, key=is_rejected) - 1


def _at_most(x: int, others: int, count: int, rest: int) -> float:
    """Return P(X <= x) given the table of labeled (x, others) and unlabeled (count, rest) rows.

    From term to term the probabilities change by simple fractions, so all are known relative to
    P(X = x), to within a few units in the last place for each term between: no factorial of a
    large number is ever computed, and no small number from a difference of large ones. (Tails from
    gamma functions, as in SciPy, lose seven digits for ten million rows.)
    """
    below = _sum_of_terms(x, rest, count, others)
    above = _sum_of_terms(count, others, x, rest)
    return 1.0 / (1.0 + above / (1.0 + below))


@np.errstate(over="ignore", under="ignore")  # beside a sum of infinity, the other one is nothing
def _sum_of_terms(a: int, b: int, c: int, d: int) -> float:
    """Return the probability of tables with smaller a and b, relative to that of this one.

    Moving j rows from a and b to c and d (the margins stay) multiplies the probability by the
    product of (a - i)(b - i) / ((c + i + 1)(d + i + 1)) over i < j. These factors fall with i.
    """
    total, last = 0.0, 1.0
    for start in range(0, min(a, b), CHUNK):
        i = np.arange(start, min(start + CHUNK, a, b), dtype=np.float64)
        terms = last * np.cumprod((a - i) / (c + i + 1.0) * ((b - i) / (d + i + 1.0)))
        total += float(terms.sum())
        last = float(terms[-1])
        if total == inf or last <= NEGLIGIBLE * total:
            break
    return total
