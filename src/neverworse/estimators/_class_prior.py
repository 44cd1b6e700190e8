"""Class priors: restrictions of the share of each class among the unlabeled rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from reprlib import repr as short_repr
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from neverworse._typing import AnyArray, Vector
from neverworse.estimators._known_labels import KnownLabels
from neverworse.projection import Labels, LabelSet, Totals

SUM_TOLERANCE = 1e-9  # tolerance for shares that should add up to one
SHARE_TOLERANCE = 1e-6  # shares may miss their intervals by this much: rounding errors
MAX_FEASIBILITY_STEPS = 500


def with_class_prior(known: KnownLabels, class_prior: Any, prior_level: float) -> KnownLabels:
    """Restrict the totals of the labels to the class prior, a parameter of the classifiers."""
    labels, classes = known.labels, known.classes
    weight = float(labels.weights_where(labels.unlabeled).sum())
    level = None
    if isinstance(class_prior, str):
        if class_prior != "confidence":
            raise ValueError(
                f"class_prior={class_prior!r} is not a prior. Pass 'confidence', a share, an "
                "interval of shares, or a dict from classes to shares or intervals."
            )
        level = float(prior_level)
    else:
        low, high = _shares(class_prior, classes)  # checked even if it makes no difference
    if weight == 0.0:
        return known
    if level is not None:
        low, high = _confidence(known, level)
    low, high = _feasible(labels, classes, low, high, weight)
    restricted, scored = (low > 0.0) | (high < 1.0), slice(None)
    if not labels.shape.is_coupled:  # two classes are described by the share of the second one
        restricted[0], scored = False, slice(1, 2)
    if not restricted.any():
        return known
    named = tuple(
        (str(classes[k]), float(low[k]), float(high[k])) for k in np.flatnonzero(restricted)
    )
    return replace(
        known,
        labels=replace(labels, totals=Totals(low[scored] * weight, high[scored] * weight)),
        assumptions=replace(known.assumptions, class_prior=named, prior_level=level),
    )


def _confidence(known: KnownLabels, level: float) -> tuple[Vector, Vector]:
    """Return bounds of the shares that hold with the given probability."""
    labels, s, problem = known.labels, known.labels.weights, None
    if known.counts is None:
        problem = "some rows have soft labels (equal label_bounds), which cannot be counted"
    elif not known.counts.any():
        problem = "y has none"
    elif s is not None and np.ptp(s[s > 0.0]) > 0.0:
        problem = "sample_weight gives rows different weights"
    if known.counts is None or problem:
        raise ValueError(
            f"class_prior='confidence' counts labeled rows of each class, but {problem}. Give "
            "class_prior as an interval (of weighted shares)."
        )
    n_unlabeled = int(np.count_nonzero(labels.weights_where(labels.unlabeled)))
    n_labeled = int(known.counts.sum())
    intervals = count_intervals(n_labeled + n_unlabeled, n_labeled, known.counts.tolist(), level)
    return intervals[:, 0] / n_unlabeled, intervals[:, 1] / n_unlabeled


def _shares(class_prior: Any, classes: AnyArray) -> tuple[Vector, Vector]:
    """Return lower and upper bounds of the share of every class."""
    named = class_prior if isinstance(class_prior, dict) else _by_class(class_prior, classes)
    names = classes.tolist()
    pairs = np.tile([0.0, 1.0], (len(names), 1))
    for name, share in named.items():
        if name not in names:
            raise ValueError(
                f"class_prior names the class {name!r}, but the classes in y are "
                f"{', '.join(map(repr, names))}."
            )
        pair = pairs[names.index(name)]
        with suppress(TypeError, ValueError):
            pair[:] = np.nan
            pair[:] = share
        low, high = pair
        if not -SUM_TOLERANCE <= low <= high + SUM_TOLERANCE <= 1.0 + 2.0 * SUM_TOLERANCE:
            raise ValueError(
                f"class_prior is {short_repr(share)} for class {name!r}, but has to be a share "
                "from 0 to 1 (not a percentage), or an interval of shares: a tuple (low, high) in "
                "ascending order."
            )
    pairs = pairs.clip(0.0, 1.0)
    return pairs[:, 0], pairs[:, 1]


def _by_class(class_prior: Any, classes: AnyArray) -> dict[Any, Any]:
    """Return the shares or intervals of a prior that does not name its classes."""
    names, n = classes.tolist(), len(classes)
    try:
        given = np.asarray(class_prior, dtype=np.float64)
        problem = f"has shape {given.shape}"
    except (TypeError, ValueError):
        given, problem = np.empty((0, 0)), f"={short_repr(class_prior)} is no array of numbers"
    if n == 2 and (given.ndim == 0 or (isinstance(class_prior, tuple) and given.shape == (2,))):
        return {names[1]: given.tolist()}
    fits = given.shape in ((n,), (n, 2))
    if fits and given.ndim == 1 and not abs(given.sum() - 1.0) <= SUM_TOLERANCE:
        fits, problem = False, f"has shares that add up to {given.sum():.6g}"
    if not fits:
        raise ValueError(
            f"class_prior {problem}, but y has {n} classes ({', '.join(map(str, names))}): give a "
            f"list of {n} shares that add up to 1 or of {n} intervals (low, high), or a dict from "
            "classes to shares or intervals. For two classes, a number is the share of the second "
            "one, and a tuple (low, high) is an interval for it."
        )
    if given.shape == (2,) and isinstance(class_prior, list) and given[0] < given[1]:
        low, high = class_prior
        raise ValueError(
            f"class_prior=[{low:.6g}, {high:.6g}] may be the shares of the two classes, or an "
            f"interval for the second one. Write {{{names[1]!r}: {high:.6g}}} for the share of "
            f"class {names[1]}, and the tuple ({low:.6g}, {high:.6g}) for an interval."
        )
    return dict(zip(names, given.tolist(), strict=True))


def _feasible(
    labels: Labels, classes: AnyArray, low: Vector, high: Vector, weight: float
) -> tuple[Vector, Vector]:
    """Return the bounds, made tight; raise if no labels within their own bounds satisfy them."""
    smallest, largest = _possible(labels, weight)
    for k in reversed(range(len(classes))):  # of two classes, name the second one
        if low[k] > largest[k] + SUM_TOLERANCE or high[k] < smallest[k] - SUM_TOLERANCE:
            raise ValueError(
                f"class_prior is infeasible: the share of class {classes[k]} is to lie between "
                f"{low[k]:.6g} and {high[k]:.6g}, but the bounds of the labels allow "
                f"{smallest[k]:.6g} to {largest[k]:.6g} only."
            )
    low, high = np.maximum(low, smallest), np.minimum(high, largest)
    if low.sum() > 1.0 + SUM_TOLERANCE or high.sum() < 1.0 - SUM_TOLERANCE:
        raise ValueError(
            "class_prior is infeasible: the shares of all classes have to add up to 1, but they "
            f"add up to between {low.sum():.6g} and {high.sum():.6g}. Widen the intervals."
        )
    # No share is smaller than what the others leave, or larger.
    others = high.sum() - high, low.sum() - low
    low, high = np.maximum(low, 1.0 - others[0]), np.minimum(high, 1.0 - others[1])
    low = np.minimum(low, high)
    if not labels.shape.is_uniform:
        _check_together(labels, low, high, weight)
    return low, high


def _possible(labels: Labels, weight: float) -> tuple[Vector, Vector]:
    """Return the smallest and largest share of every class within the bounds of the labels."""
    s = labels.weights_where(labels.unlabeled)
    base = (s * labels.target).sum(axis=1) / weight
    room = labels.hinge_weights() * labels.shape.upper(labels.target)
    top = base + np.broadcast_to(room, labels.target.shape).sum(axis=1) / weight
    if not labels.shape.is_coupled:
        return np.append(1.0 - top, base), np.append(1.0 - base, top)
    return base, np.minimum(top, 1.0)


def _check_together(labels: Labels, low: Vector, high: Vector, weight: float) -> None:
    """Raise if bounds of labels and shares, each possible alone, are impossible together."""
    free = np.flatnonzero(labels.hinge_weights() > 0.0)
    omega = labels.hinge_weights()[free]
    base = (labels.weights_where(labels.unlabeled) * labels.target).sum(axis=1)
    totals = Totals(low * weight - base, high * weight - base)
    # Rounding errors alone are not a contradiction.
    missed = SHARE_TOLERANCE * weight / float(omega.sum())
    if totals_feasibility(omega, labels.shape.at(free), totals, missed) is False:
        raise ValueError(
            "class_prior is infeasible together with label_bounds: no labels within their bounds "
            "give these shares. Widen the intervals of the prior or the bounds of the labels."
        )


class _AnsweredError(Exception):
    """Raised to end the search when the question is answered."""


def totals_feasibility(
    weights: Vector, shape: LabelSet, totals: Totals, missed: float
) -> bool | None:
    """Return whether some labels of several classes have totals Σ ω q in their intervals.

    The labels nearest to the middle of their sets are sought through the dual, with a multiplier λ
    for each class. Either they meet the totals for some λ, or λ grows, and shows that no labels do:
    totals are missed by -(Σ ω max_q -q·λ + max_M M·λ) / max |λ_k| or more, all together. What
    misses them by the share `missed` of Σ ω counts as meeting them. None if it cannot be told.
    """
    n_classes = len(totals.low)
    whole = float(weights.sum())
    low, high = totals.low / whole, totals.high / whole
    omega = weights / whole
    middle = shape.project(np.full((n_classes, len(weights)), 0.5))
    answer: bool | None = None

    def negative_dual(both: Vector) -> tuple[float, Vector]:
        nonlocal answer
        above, below = both.reshape(2, n_classes)
        multiplier = above - below
        q = shape.project(middle - multiplier[:, None])
        total = q @ omega
        if np.abs(total - np.clip(total, low, high)).sum() <= missed:
            answer = True
            raise _AnsweredError
        terms = float(above @ high - below @ low)
        bound = terms + float(omega @ shape.support(np.broadcast_to(multiplier[:, None], q.shape)))
        if bound < -missed * float(np.abs(multiplier).max()):
            answer = False
            raise _AnsweredError
        square = float(omega @ ((q - middle) ** 2).sum(axis=0))
        value = 0.5 * square + float(multiplier @ total) - terms
        return -value, np.concatenate([high - total, total - low])

    start = np.zeros(2 * n_classes)
    with suppress(_AnsweredError):
        optimize.minimize(
            negative_dual,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * len(start),
            options={"maxiter": MAX_FEASIBILITY_STEPS, "ftol": 0.0, "gtol": 0.0},
        )
    return answer


# A total whose tail equals its bound to within rounding is kept: that can only widen an interval.
TIE_TOLERANCE = 1e-9
# How many terms of a tail are summed at once, and the relative size of terms that are left out.
TERMS_AT_ONCE = 2048
NEGLIGIBLE = 1e-20


def count_intervals(
    n_rows: int, n_labeled: int, counts: Sequence[int], level: float = 0.95
) -> NDArray[np.int64]:
    """Return simultaneous confidence intervals for the numbers of unlabeled rows of all classes.

    `counts` are the numbers of labeled rows. Two classes share one interval; more than two have
    Bonferroni's correction. As the sizes add up, none is larger than what the smallest sizes of
    the others leave, or smaller than what their largest sizes leave.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, such as 0.95, got {level!r}.")
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
    """Return an exact confidence interval for the number of positives among the unlabeled rows.

    The number X of positives in a random subset is hypergeometric. Every total M is kept for which
    P(X <= x | M) and P(X >= x | M) exceed (1 - level) / 2; the ends are less the x labeled ones.
    """
    n_unlabeled, n_negative = n_rows - n_labeled, n_labeled - n_positive
    bound = (1.0 - level) / 2.0
    # Few positives are many negatives: the second test is the first one for the other class.
    lower = n_unlabeled - _largest_count(n_unlabeled, n_negative, n_positive, bound)
    upper = _largest_count(n_unlabeled, n_positive, n_negative, bound)
    return lower, upper


def _largest_count(n_unlabeled: int, x: int, others: int, bound: float) -> int:
    """Return the largest number of unlabeled positives for which P(X <= x) exceeds `bound`."""

    def is_rejected(count: int) -> bool:
        return _at_most(x, others, count, n_unlabeled - count) <= bound * (1.0 - TIE_TOLERANCE)

    # The more positives there are, the less likely are few of them among the labeled rows. None
    # beyond those x is never rejected: the probability is one.
    return bisect_left(range(n_unlabeled + 1), True, key=is_rejected) - 1


def _at_most(x: int, others: int, count: int, rest: int) -> float:
    """Return P(X <= x) given the table of labeled (x, others) and unlabeled (count, rest) rows.

    Ratios of neighbouring probabilities are simple fractions, and accurate. (Tails from gamma
    functions, as in SciPy, lose seven digits for ten million rows.)
    """
    below = _sum_of_terms(x, rest, count, others)
    above = _sum_of_terms(count, others, x, rest)
    return 1.0 / (1.0 + above / (1.0 + below))


@np.errstate(over="ignore", under="ignore")  # beside an infinite sum, the other one does not matter
def _sum_of_terms(a: int, b: int, c: int, d: int) -> float:
    """Return the probability of tables with smaller a and b, relative to that of this one.

    Moving j rows from a and b to c and d (the margins stay) multiplies the probability by the
    product of (a - i)(b - i) / ((c + i + 1)(d + i + 1)) over i < j. These factors fall with i.
    """
    total, last = 0.0, 1.0
    for start in range(0, min(a, b), TERMS_AT_ONCE):
        i = np.arange(start, min(start + TERMS_AT_ONCE, a, b), dtype=np.float64)
        terms = last * np.cumprod((a - i) / (c + i + 1.0) * ((b - i) / (d + i + 1.0)))
        total += float(terms.sum())
        last = float(terms[-1])
        if total == inf or last <= NEGLIGIBLE * total:
            break
    return total
