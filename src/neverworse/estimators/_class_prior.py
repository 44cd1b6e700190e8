"""What a class prior says about the labels of unlabeled rows, and what labeled rows say of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neverworse._typing import AnyArray, Vector
from neverworse.estimators._known_labels import KnownLabels, totals_feasibility
from neverworse.projection import Assumptions, Labels, Totals

SUM_TOLERANCE = 1e-9  # tolerance for shares that should add up to one
MISSED = 1e-6  # shares that miss their intervals by more than this do so


def with_class_prior(
    known: KnownLabels, class_prior: Any, prior_level: float
) -> tuple[Labels, Assumptions]:
    """Restrict the totals of the labels to what the prior says, a parameter of the classifiers."""
    labels, classes, assumed = known.labels, known.classes, known.assumptions
    weight = float(labels.weights_where(labels.unlabeled).sum())
    level = float(prior_level) if _is_confidence(class_prior) else None
    if level is None:
        low, high = _shares(class_prior, classes)  # checked even if it makes no difference
    if weight == 0.0:
        return labels, assumed
    if level is not None:
        low, high = _confidence(known, level)
    low, high = _feasible(labels, classes, low, high, weight)
    restricted = (low > 0.0) | (high < 1.0)
    counted = slice(None)
    if not labels.shape.is_coupled:  # the second class says it all
        restricted[0], counted = False, slice(1, 2)
    totals = Totals(low[counted] * weight, high[counted] * weight)
    if not restricted.any():
        return labels, assumed
    named = tuple(
        (str(classes[k]), float(low[k]), float(high[k])) for k in np.flatnonzero(restricted)
    )
    assumed = replace(assumed, class_prior=named, prior_level=level)
    return replace(labels, totals=totals), assumed


def _is_confidence(class_prior: Any) -> bool:
    if not isinstance(class_prior, str):
        return False
    if class_prior != "confidence":
        raise ValueError(
            f"class_prior={class_prior!r} is not a prior. Pass 'confidence', a share, an interval "
            "of shares, or a dict from classes to shares or intervals."
        )
    return True


def _confidence(known: KnownLabels, level: float) -> tuple[Vector, Vector]:
    """Return bounds of the shares that hold with the given probability."""
    labels = known.labels
    if known.counts is None or not known.counts.any():
        problem = "y has none"
        if known.counts is None:
            problem = "some rows have soft labels (equal label_bounds), which cannot be counted"
        raise ValueError(
            f"class_prior='confidence' counts labeled rows of each class, but {problem}. Give "
            "class_prior as an interval."
        )
    s = labels.weights
    if s is not None and np.ptp(s[s > 0.0]) > 0.0:
        raise ValueError(
            "class_prior='confidence' counts rows, but sample_weight gives them different weights. "
            "Give class_prior as an interval of weighted shares, or leave out sample_weight."
        )
    n_unlabeled = int(np.count_nonzero(labels.weights_where(labels.unlabeled)))
    n_labeled = int(known.counts.sum())
    intervals = count_intervals(
        n_labeled + n_unlabeled, n_labeled, [int(c) for c in known.counts], level
    )
    shares = np.asarray(intervals, dtype=np.float64) / n_unlabeled
    return shares[:, 0], shares[:, 1]


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
        try:
            low, high = (share, share) if isinstance(share, Real) else share
            pairs[names.index(name)] = float(low), float(high)
        except (TypeError, ValueError):
            raise ValueError(
                f"class_prior[{name!r}] = {share!r} is neither a share nor an interval (low, high)."
            ) from None
    low, high = pairs.T
    if not ((pairs >= -SUM_TOLERANCE) & (pairs <= 1.0 + SUM_TOLERANCE)).all():
        raise ValueError(
            "class_prior leaves the range from 0 to 1. It is the share of a class among the "
            "unlabeled rows, not a percentage or a number of rows."
        )
    if (low > high + SUM_TOLERANCE).any():
        raise ValueError(
            "class_prior has an interval whose lower end is above its upper end. Swap them. (A "
            "tuple is an interval; shares of all classes are a list or an array.)"
        )
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _by_class(class_prior: Any, classes: AnyArray) -> dict[Any, Any]:
    """Return the shares or intervals of a prior that does not name its classes."""
    names, shown = classes.tolist(), ", ".join(map(str, classes))
    n = len(names)
    try:
        given = np.asarray(class_prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"class_prior={class_prior!r} cannot be read as shares of the classes {shown}."
        ) from None
    is_interval = isinstance(class_prior, tuple) and given.shape == (2,)
    if n == 2 and (is_interval or given.ndim == 0):
        return {names[1]: given.tolist()}
    if given.shape not in ((n,), (n, 2)):
        wanted = f"{n} shares or {n} intervals (low, high)"
        if n == 2:
            wanted = f"the share of class {classes[1]}, or a tuple (low, high) for it"
        raise ValueError(
            f"class_prior has shape {given.shape}, but y has {n} classes ({shown}): give {wanted}, "
            "or a dict from classes to shares."
        )
    if given.ndim == 1 and not abs(given.sum() - 1.0) <= SUM_TOLERANCE:
        raise ValueError(
            f"class_prior has shares that add up to {given.sum():.6g}, not to 1: give the share of "
            f"each of the classes {shown} among the unlabeled rows. (For two classes, a tuple is "
            "an interval for the second one.)"
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
    for k in reversed(range(len(classes))):  # of two classes, the second is spoken of
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
    missed = MISSED * weight / float(omega.sum())
    if totals_feasibility(omega, labels.shape.at(free), totals, missed) is False:
        raise ValueError(
            "class_prior is infeasible together with label_bounds: no labels within their bounds "
            "give these shares. Widen the intervals of the prior or the bounds of the labels."
        )


# A total whose tail equals its bound to within rounding is kept: that can only widen an interval.
TIE = 1e-9
# How many terms of a tail are added up at once, and when the rest is beneath notice.
CHUNK = 2048
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
        return _at_most(x, others, count, n_unlabeled - count) <= bound * (1.0 - TIE)

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
