"""Class priors: restrictions of the share of each class among the unlabeled rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from numbers import Real
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
# A total whose tail is this close to its bound is kept, for the rounding errors of tails of ten
# million rows: that can only widen an interval.
TIE_TOLERANCE = 1e-8


def with_class_prior(known: KnownLabels, class_prior: Any, prior_level: float) -> KnownLabels:
    """Restrict the totals of the labels to the class prior, a parameter of the classifiers."""
    labels, classes = known.labels, known.classes
    weight = float(labels.weights_where(labels.unlabeled).sum())
    is_confidence = isinstance(class_prior, str) and class_prior == "confidence"
    if is_confidence and weight:
        low, high = _confidence(known, prior_level)
    else:  # a prior is checked even if it makes no difference
        low, high = _shares({} if is_confidence else class_prior, classes)
    low, high = _feasible(labels, classes, low, high, weight)
    restricted, scored = (low > 0.0) | (high < 1.0), slice(None)
    if not labels.shape.is_coupled:  # two classes are described by the share of the second one
        restricted[0], scored = False, slice(1, 2)
    if not weight or not restricted.any():
        return known
    named = tuple(
        (str(classes[k]), float(low[k]), float(high[k])) for k in np.flatnonzero(restricted)
    )
    level = float(prior_level) if is_confidence else None
    return replace(
        known,
        labels=replace(labels, totals=Totals(low[scored] * weight, high[scored] * weight)),
        assumptions=replace(known.assumptions, class_prior=named, prior_level=level),
    )


def _confidence(known: KnownLabels, level: float) -> tuple[Vector, Vector]:
    labels, s = known.labels, known.labels.weights
    if not 0.0 < level < 1.0:
        raise ValueError(f"prior_level must lie between 0 and 1, such as 0.95, got {level!r}.")
    if known.counts is None or not known.counts.any() or (s is not None and np.ptp(s[s > 0.0])):
        raise ValueError(
            "class_prior='confidence' counts the labeled rows of each class, but there are none, "
            "or some have soft labels (equal label_bounds) or another sample_weight than others, "
            "which cannot be counted. Give class_prior as an interval (of weighted shares)."
        )
    n_unlabeled = int(np.count_nonzero(labels.weights_where(labels.unlabeled)))
    n_labeled = int(known.counts.sum())
    intervals = count_intervals(n_labeled + n_unlabeled, n_labeled, known.counts.tolist(), level)
    return intervals[:, 0] / n_unlabeled, intervals[:, 1] / n_unlabeled


def _shares(class_prior: Any, classes: AnyArray) -> tuple[Vector, Vector]:
    names = classes.tolist()
    pairs = np.tile([0.0, 1.0], (len(names), 1))
    for name, share in _by_class(class_prior, names).items():
        if name not in names:
            raise _no_prior(f"names the class {name!r}", names)
        pair = pairs[names.index(name)]
        with suppress(TypeError, ValueError):
            pair[:] = np.nan
            pair[:] = share
        low, high = pair
        if not -SUM_TOLERANCE <= low <= high + SUM_TOLERANCE <= 1.0 + 2.0 * SUM_TOLERANCE:
            wrong = "whose first end is above the second" if low > high else "no share or interval"
            raise _no_prior(f"is {short_repr(share)} for class {name!r}, {wrong}", names)
    pairs = pairs.clip(0.0, 1.0)
    return pairs[:, 0], pairs[:, 1]


def _by_class(class_prior: Any, names: list[Any]) -> dict[Any, Any]:
    """Return the share or interval of each class that has one."""
    if isinstance(class_prior, dict):
        return class_prior
    several = np.iterable(class_prior) and not isinstance(class_prior, str)
    listed = list(class_prior) if several else [class_prior]
    is_pair = len(listed) == 2 and all(isinstance(share, Real) for share in listed)
    if len(names) == 2 and (not several or (is_pair and isinstance(class_prior, tuple))):
        return {names[1]: class_prior}
    if len(listed) != len(names):
        raise _no_prior(f"is {short_repr(class_prior)}", names)
    if is_pair and isinstance(class_prior, list) and listed[0] < listed[1]:
        raise _no_prior(f"is {class_prior}, which may be two shares or an interval", names)
    return dict(zip(names, listed, strict=True))


def _no_prior(problem: str, names: list[Any]) -> ValueError:
    return ValueError(
        f"class_prior {problem}. The classes in y are {', '.join(map(repr, names))}. Pass a "
        "dict from classes to shares or to intervals (low, high), a list of one for each class, or "
        "'confidence'. For two classes, a number is the share of the second one, and a tuple "
        "(low, high) an interval for it. Shares are numbers from 0 to 1, not percentages; those of "
        "all classes add up to 1."
    )


def _feasible(
    labels: Labels, classes: AnyArray, low: Vector, high: Vector, weight: float
) -> tuple[Vector, Vector]:
    """Return the bounds, made tight; raise if no labels within their own bounds satisfy them."""
    smallest, largest = _possible(labels, weight) if weight else (0.0 * low, 0.0 * low + 1.0)
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
            f"add up to between {low.sum():.6g} and {high.sum():.6g}. Widen the intervals. (For "
            "two classes, a tuple (low, high) is an interval, and a list has two shares.)"
        )
    # No share is smaller than what the others leave, or larger.
    others = high.sum() - high, low.sum() - low
    low, high = np.maximum(low, 1.0 - others[0]), np.minimum(high, 1.0 - others[1])
    low = np.minimum(low, high)
    if weight and not labels.shape.is_uniform:
        # Bounds of labels and shares, each possible alone, may be impossible together.
        omega = labels.hinge_weights()
        free = np.flatnonzero(omega > 0.0)
        base = (labels.weights_where(labels.unlabeled) * labels.target).sum(axis=1)
        totals = Totals(low * weight - base, high * weight - base)
        missed = SHARE_TOLERANCE * weight / float(omega.sum())
        if not totals_feasibility(omega[free], labels.shape.at(free), totals, missed):
            raise ValueError(
                "class_prior is infeasible together with label_bounds: no labels within their "
                "bounds give these shares. Widen the intervals or the bounds."
            )
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


def totals_feasibility(weights: Vector, shape: LabelSet, totals: Totals, missed: float) -> bool:
    """Return whether labels of several classes have totals Σ ω q within bounds.

    Totals are missed by min_q Σ ω q·λ - max_M M·λ or more, all together, for every multiplier λ of
    the classes with |λ_k| <= 1, and by no more for the best one. Kelley's cutting planes find it:
    each has the totals of one more corner, and few are needed. What misses the totals by the share
    `missed` of Σ ω counts as meeting them.
    """
    n_classes, whole = len(totals.low), float(weights.sum())
    omega, totals = weights / whole, totals.scaled(1.0 / whole)
    corner, corners = shape.minimizer(np.zeros((n_classes, len(omega)))), np.empty((0, n_classes))
    for _ in range(MAX_FEASIBILITY_STEPS):
        corners = np.vstack([corners, corner @ omega])
        # λ in two parts that are not negative, and the largest -Σ ω q·λ of these corners
        best = optimize.linprog(
            np.concatenate([totals.high, -totals.low, [1.0]]),
            A_ub=np.column_stack([-corners, corners, -np.ones(len(corners))]),
            b_ub=np.zeros(len(corners)),
            bounds=[(0.0, 1.0)] * (2 * n_classes) + [(None, None)],
        )
        if best.fun >= -missed:
            return True
        multiplier = best.x[:n_classes] - best.x[n_classes:-1]
        corner = shape.minimizer(np.broadcast_to(multiplier[:, None], corner.shape))
        if corner @ omega @ multiplier - totals.support(multiplier) > missed:
            return False
    return True  # nothing is proved


def count_intervals(
    n_rows: int, n_labeled: int, counts: Sequence[int], level: float = 0.95
) -> NDArray[np.int64]:
    """Return simultaneous confidence intervals for the numbers of unlabeled rows of all classes.

    `counts` are the numbers of labeled rows. Two classes share one interval; more than two have
    Bonferroni's correction. No size is larger or smaller than what the others leave.
    """
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
    from scipy.stats import hypergeom  # slow to import

    n_unlabeled = n_rows - n_labeled

    def largest(x: int) -> int:
        def is_rejected(count: int) -> bool:
            tail = hypergeom.cdf(x, n_rows, x + count, n_labeled)
            return bool(tail <= (1.0 - level) / 2.0 * (1.0 - TIE_TOLERANCE))

        # The more positives there are, the less likely are few of them among the labeled rows.
        return bisect_left(range(1, n_unlabeled + 1), True, key=is_rejected)

    # Few positives are many negatives: the second test is the first one for the other class.
    return n_unlabeled - largest(n_labeled - n_positive), largest(n_positive)
