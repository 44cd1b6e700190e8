"""From y, weights and bounds to what is known about every label."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import optimize
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_consistent_length

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector
from neverworse.estimators._input import LARGEST_WEIGHT, SMALLEST_WEIGHT, FitInput
from neverworse.estimators._labels import split_labels
from neverworse.projection import Assumptions, Box, Labels, LabelSet, Simplex, Task, Totals

# The square of what is narrower leaves too little room for what is computed from it.
NARROWEST = 1e-100
# What bounds may contradict each other by, for rounding errors of those who computed them. Bounds
# that leave any room are never taken for equal ones.
SAME = 1e-12
MOST_FEASIBILITY_STEPS = 500


@dataclass(frozen=True)
class KnownLabels:
    """Labels of a classification, as the projection needs them."""

    classes: AnyArray  # (n_classes,)
    labels: Labels  # with one number per row for two classes, one for each class otherwise
    n_bounded: int = 0  # unlabeled rows whose label is restricted by bounds
    # (n_classes,): labeled rows (of positive weight) of each class; None if some labels are soft
    counts: AnyArray | None = None
    # (n_classes,): what weights of labeled rows were multiplied by, see `class_weights`
    factors: Vector | None = None

    @property
    def assumptions(self) -> Assumptions:
        """What is assumed about the labels if nothing is known about their totals."""
        task: Task = "multiclass" if self.labels.shape.is_coupled else "binary"
        return Assumptions(task=task, n_bounded=self.n_bounded)


def known_labels(given: FitInput, missing_label: Any, class_weight: Any = None) -> KnownLabels:
    """Check y, weights and bounds; parameters are those of the classifiers."""
    classes, target, unlabeled = split_labels(given.y, missing_label)
    check_consistent_length(np.empty((given.rows.n_rows, 0)), target)
    check_weights(classes, target, unlabeled, given.weights)
    codes = target.astype(np.intp)
    factors = class_weights(class_weight, classes, codes[~unlabeled], given.weights, unlabeled)
    weights = given.weights
    if factors is not None:
        of_rows = np.where(unlabeled, 1.0, factors[codes])
        weights = of_rows if weights is None else weights * of_rows
    known = coded_labels(classes, codes, unlabeled, weights, given.bounds)
    return replace(known, factors=factors)


def class_weights(
    class_weight: Any, classes: AnyArray, known: Indices, weights: Vector | None, unlabeled: Mask
) -> Vector | None:
    """Return what the weight of a labeled row is multiplied by, for each class.

    `known` are the positions of the classes of the labeled rows.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str):  # balanced
        sums = np.bincount(known, None if weights is None else weights[~unlabeled], len(classes))
        balanced: Vector = sums.sum() / (len(classes) * sums)
        return balanced
    for name, factor in class_weight.items():
        if not isinstance(factor, Real) or not SMALLEST_WEIGHT <= float(factor) <= LARGEST_WEIGHT:
            raise ValueError(
                f"class_weight is {factor!r} for class {name!r}, but has to be a number between "
                f"{SMALLEST_WEIGHT:.0e} and {LARGEST_WEIGHT:.0e}. To leave a class out, leave out "
                "its rows."
            )
    given: Vector = compute_class_weight(class_weight, classes=classes, y=classes)
    return given


def coded_labels(
    classes: AnyArray, codes: Indices, unlabeled: Mask, weights: Vector | None, bounds: Any
) -> KnownLabels:
    """Check the bounds of labels that are given as positions of classes, zero if unlabeled."""
    counted = ~unlabeled if weights is None else ~unlabeled & (weights > 0.0)
    counts = np.bincount(codes[counted], minlength=len(classes))
    several = len(classes) > 2
    hard = np.arange(len(classes))[:, None] == codes if several else codes[None]
    target: Matrix = np.where(unlabeled, 0.0, hard)
    lower, upper = _bounds(bounds, classes, codes, unlabeled)
    if lower is None or upper is None:
        shape, width = Simplex() if several else Box(), unlabeled.astype(np.float64)
        return KnownLabels(classes, Labels(target, width, weights, shape), 0, counts)
    if not several:  # the second class says it all
        lower, upper = lower[1:], upper[1:]
    room = _left(lower)[0] if several else upper[0] - lower[0]
    width = np.where(unlabeled & (upper > lower).any(axis=0) & (room > 0.0), room, 0.0)
    refuse_vanishing(width, "label_bounds", "Give equal bounds.")
    free, soft = width > 0.0, unlabeled & (width == 0.0)
    target = np.where(unlabeled, lower, target)
    caps = np.ones_like(target)
    if several:
        target[:, soft] += (room / len(classes))[soft]  # rounding errors of bounds that are equal
        caps[:, free] = np.clip((upper - lower)[:, free] / width[free], 0.0, 1.0)
    shape = Simplex(caps if (caps < 1.0).any() else None) if several else Box()
    n_bounded = int(np.sum(free & ((width < 1.0) | (caps < 1.0).any(axis=0))))
    labels = Labels(target, width, weights, shape)
    return KnownLabels(classes, labels, n_bounded, None if soft.any() else counts)


def check_weights(
    classes: AnyArray, target: Vector, unlabeled: Mask, weights: Vector | None
) -> None:
    """Check that labeled rows of every class have a positive weight."""
    if weights is None:
        return
    present = np.unique(target[~unlabeled & (weights > 0.0)])
    if len(present) < len(classes):
        raise ValueError(
            "sample_weight is positive for labeled rows of "
            f"{'one class' if len(present) == 1 else f'{len(present)} classes'} only, of "
            f"{len(classes)}. Give some labeled rows of every class a positive weight."
        )


def _bounds(
    bounds: Any, classes: AnyArray, codes: AnyArray, unlabeled: Mask
) -> tuple[Matrix | None, Matrix | None]:
    """Return lower and upper bounds as arrays of shape (n_classes, n_rows), checked and tight."""
    if bounds is None:
        return None, None
    given = np.asarray(bounds, dtype=np.float64)
    n_classes, n = len(classes), len(codes)
    if given.shape == (n, 2) and n_classes == 2:
        given = np.stack([np.full_like(given, np.nan), given], axis=1)
    if given.shape != (n, n_classes, 2):
        wanted = f"({n}, {n_classes}, 2)" + (f" or ({n}, 2)" if n_classes == 2 else "")
        raise ValueError(
            f"label_bounds has shape {given.shape}, but {wanted} is needed: lower and upper bound "
            f"for each of the classes {', '.join(map(str, classes))}. A class that has no labeled "
            "row cannot have bounds: label at least one row of it, or leave it out."
        )
    lower, upper = given[:, :, 0].T.copy(), given[:, :, 1].T.copy()
    lower[np.isnan(lower)] = 0.0
    upper[np.isnan(upper)] = 1.0
    known = (np.arange(n_classes)[:, None] == codes).astype(np.float64)
    no_label = (lower.sum(axis=0) > 1.0 + SAME) | (upper.sum(axis=0) < 1.0 - SAME)
    checks = [
        (
            (lower < 0.0) | (upper > 1.0) | (lower > 1.0) | (upper < 0.0),
            "leave the range from 0 to 1",
            "Give shares of the class, or NaN where nothing is known.",
        ),
        (
            lower > upper + SAME,
            "cross: the lower bound is above the upper one",
            "Swap them, or give NaN where nothing is known.",
        ),
        (
            np.broadcast_to(no_label, lower.shape),
            "leave no label: the shares of all classes cannot add up to 1",
            "Lower the lower bounds or raise the upper ones.",
        ),
        (
            ~unlabeled & ((known < lower - SAME) | (known > upper + SAME)),
            "exclude the label in y",
            "Mark the row as unlabeled in y, or give NaN as its bounds, whichever is wrong.",
        ),
    ]
    for wrong, problem, fix in checks:
        if wrong.any():
            k, j = np.argwhere(wrong.T)[0][::-1]
            raise ValueError(
                f"label_bounds {problem} in row {j} (class {k}: from {lower[k, j]:.6g} to "
                f"{upper[k, j]:.6g}). {fix}"
            )
    # No share is smaller than what the others leave, or larger; rounded outwards.
    least, below = _left(upper, upper)
    most, above = _left(lower, lower)
    lower = np.maximum(lower, np.where(below < 0.0, np.nextafter(least, -1.0), least))
    upper = np.minimum(upper, np.where(above > 0.0, np.nextafter(most, 2.0), most))
    return lower, upper


def _left(shares: Matrix, but: Matrix | float = 0.0) -> tuple[Vector, Vector]:
    """Return what shares (but some) leave of one, and what that was rounded by.

    Narrow bounds consist of nothing but the last digits, so that rounding errors of the sum are
    added up as well.
    """
    left, missed = np.ones(shares.shape[1]), np.zeros(shares.shape[1])
    for share in shares:
        left, error = _subtracted(left, share)
        missed = missed + error
    left, error = _subtracted(left, -but)
    return _subtracted(left, -(missed + error))


def _subtracted(a: Vector, b: Vector | float) -> tuple[Vector, Vector]:
    """Return a - b, and the exact error of its rounding."""
    difference = a - b
    of_b = a - difference
    return difference, (a - (difference + of_b)) + (of_b - b)


def refuse_vanishing(width: Vector, bounds: str, fix: str) -> None:
    """Raise if bounds are apart, but by less than can be computed with."""
    rows = np.flatnonzero((width > 0.0) & (width < NARROWEST))
    if rows.size:
        raise ValueError(
            f"{bounds} in row {rows[0]} differ by {width[rows[0]]:.3g}, of which the square "
            f"vanishes in floating point. {fix}"
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
    options = {"maxiter": MOST_FEASIBILITY_STEPS, "ftol": 0.0, "gtol": 0.0}
    with suppress(_AnsweredError):
        optimize.minimize(
            negative_dual,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * len(start),
            options=options,
        )
    return answer
