"""What is known about the label or target of every row, from y, weights and bounds."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Real
from reprlib import repr as short_repr
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_consistent_length

from neverworse._typing import AnyArray, Mask, Matrix, Vector
from neverworse.estimators._input import LARGEST_WEIGHT, SMALLEST_WEIGHT, FitInput
from neverworse.estimators._labels import split_labels, split_targets
from neverworse.projection import Assumptions, Box, Labels, Simplex

SMALLEST_WIDTH = 1e-100  # the squares of narrower bounds underflow
LARGEST_TARGET = 1e100  # the squares of larger targets overflow
UNBOUNDED = (-LARGEST_TARGET, LARGEST_TARGET)
TOLERANCE = 1e-12  # bounds of classes may contradict each other by this: rounding errors


@dataclass(frozen=True)
class KnownLabels:
    """Labels of rows in the terms of the projection, and what is assumed about the unknown ones."""

    labels: Labels  # one number per row for two classes or a target, else one for each class
    assumptions: Assumptions
    classes: AnyArray  # (n_classes,); empty for a regression
    # (n_classes,): labeled rows (of positive weight) of each class; None if some labels are soft
    counts: AnyArray | None = None
    class_weight: tuple[tuple[str, float], ...] = ()  # factors of the weights of labeled rows
    upper: Vector | None = None  # (n_rows,): largest possible targets of a regression


def known_labels(given: FitInput, missing_label: Any, class_weight: Any = None) -> KnownLabels:
    """Check y, weights and bounds of a classification; parameters are those of the classifiers."""
    weights, X = given.weights, np.empty((given.rows.n_rows, 0))
    classes, codes, unlabeled = checked_codes(X, given.y, missing_label, weights)
    named: tuple[tuple[str, float], ...] = ()
    if class_weight is not None:
        of_labeled = None if weights is None else weights[~unlabeled]
        factors = class_weights(class_weight, classes, codes[~unlabeled], of_labeled)
        of_rows = np.where(unlabeled, 1.0, factors[codes])
        weights = of_rows if weights is None else weights * of_rows
        named = tuple(zip(map(str, classes.tolist()), factors.tolist(), strict=True))
    known = coded_labels(classes, codes, unlabeled, weights, given.bounds)
    return replace(known, class_weight=named)


def checked_codes(
    X: Any, y: Any, missing_label: Any, weights: Vector | None
) -> tuple[AnyArray, AnyArray, Mask]:
    """Return what `split_labels` does; some labeled rows of every class have a positive weight."""
    classes, codes, unlabeled = split_labels(y, missing_label)
    check_consistent_length(X, codes)
    present = classes if weights is None else np.unique(codes[~unlabeled & (weights > 0.0)])
    if len(present) < len(classes):
        raise ValueError(
            "sample_weight is positive for labeled rows of one class only, or not of all. Give "
            f"some labeled rows of each of the {len(classes)} classes a positive weight."
        )
    return classes, codes, unlabeled


def class_weights(
    class_weight: Any, classes: AnyArray, codes: AnyArray, weights: Vector | None
) -> Vector:
    """Return the factor of each class; `codes` are the positions of those of labeled rows."""
    if isinstance(class_weight, str):  # balanced
        sums = np.bincount(codes, weights, len(classes))
        return sums.sum() / (len(classes) * sums)
    for name, factor in class_weight.items():
        if not isinstance(factor, Real) or not SMALLEST_WEIGHT <= float(factor) <= LARGEST_WEIGHT:
            raise ValueError(
                f"class_weight is {factor!r} for class {name!r}, but has to be a number between "
                f"{SMALLEST_WEIGHT:.0e} and {LARGEST_WEIGHT:.0e}."
            )
    return compute_class_weight(class_weight, classes=classes, y=classes)


def coded_labels(
    classes: AnyArray, codes: AnyArray, unlabeled: Mask, weights: Vector | None, bounds: Any
) -> KnownLabels:
    """Check the bounds of labels that are given as positions of classes, zero if unlabeled."""
    counted = ~unlabeled if weights is None else ~unlabeled & (weights > 0.0)
    counts = np.bincount(codes[counted], minlength=len(classes))
    # Two classes are described by the share of the second one.
    several, scored = len(classes) > 2, slice(None) if len(classes) > 2 else slice(1, 2)
    indicators = (np.arange(len(classes), dtype=codes.dtype)[:, None] == codes) & ~unlabeled
    target: AnyArray = indicators[scored].view(np.int8)
    width: AnyArray = unlabeled.view(np.int8)
    is_soft, is_bounded, caps = False, 0, None
    if bounds is not None:
        lower, upper = _class_bounds(bounds, classes, indicators, unlabeled)
        room = _remainder(lower)[0] if several else upper[1] - lower[1]
        free = unlabeled & (upper > lower).any(axis=0) & (room > 0.0)
        soft = unlabeled & ~free
        width = np.where(free, room, 0.0)
        _refuse_narrow("label_bounds", width)
        target = np.where(unlabeled, lower[scored], target)
        caps = np.ones(target.shape)
        if several:
            target[:, soft] += (room / len(classes))[soft]  # so that the shares add up to one
            caps[:, free] = np.clip((upper - lower)[:, free] / width[free], 0.0, 1.0)
        is_soft = bool(soft.any())
        is_bounded = int(np.sum(free & ((width < 1.0) | (caps < 1.0).any(axis=0))))
        caps = caps if (caps < 1.0).any() else None
    return KnownLabels(
        Labels(target, width, weights, Simplex(caps) if several else Box()),
        Assumptions("multiclass" if several else "binary", n_bounded=is_bounded),
        classes,
        None if is_soft else counts,
    )


def _class_bounds(
    bounds: Any, classes: AnyArray, indicators: Mask, unlabeled: Mask
) -> tuple[Matrix, Matrix]:
    """Return lower and upper bounds as arrays of shape (n_classes, n_rows), checked and tight."""
    given = np.asarray(bounds, dtype=np.float64)
    n_classes, n = indicators.shape
    if given.shape == (n, 2) and n_classes == 2:
        given = np.stack([np.full_like(given, np.nan), given], axis=1)
    if given.shape != (n, n_classes, 2):
        raise ValueError(
            f"label_bounds has shape {given.shape}, but ({n}, {n_classes}, 2) is needed, or "
            f"({n}, 2) for two classes: lower and upper bound for each of the classes "
            f"{', '.join(map(str, classes))}. A class without a labeled row cannot have bounds."
        )
    lower, upper = np.where(np.isnan(given), [0.0, 1.0], given).transpose(2, 1, 0)
    _check_bounds(lower, upper, indicators, unlabeled, classes)
    # No share is smaller than what the others leave, or larger; rounded outwards.
    least, below = _remainder(upper, upper)
    most, above = _remainder(lower, lower)
    lower = np.maximum(lower, np.where(below < 0.0, np.nextafter(least, -1.0), least))
    upper = np.minimum(upper, np.where(above > 0.0, np.nextafter(most, 2.0), most))
    return lower, upper


def _check_bounds(
    lower: Matrix, upper: Matrix, label: AnyArray, unlabeled: Mask, classes: AnyArray
) -> None:
    """Raise an error that names the first row whose bounds are impossible; not if y is NaN."""
    name, (low, high), tolerance = "target_bounds", UNBOUNDED, 0.0
    if len(classes):
        name, (low, high), tolerance = "label_bounds", (0.0, 1.0), TOLERANCE
    smallest, largest = np.fmin(lower, upper), np.fmax(lower, upper)
    least, most = lower.sum(axis=0), upper.sum(axis=0)
    no_shares = len(classes) > 0 and ((least > 1.0 + tolerance) | (most < 1.0 - tolerance))
    problems = {
        f"leave the range from {low:g} to {high:g}": unlabeled
        & ((smallest < low) | (largest > high)),
        "cross (the lower one is above the upper one)": lower > upper + tolerance,
        "allow no shares of the classes that add up to 1": np.broadcast_to(no_shares, lower.shape),
        "exclude the label in y": ~unlabeled
        & ((label < lower - tolerance) | (label > upper + tolerance)),
    }
    for problem, wrong in problems.items():
        if wrong.any():
            row, k = np.argwhere(wrong.T)[0]
            where = f"row {row}, class {classes[k]}" if len(classes) else f"row {row}"
            raise ValueError(
                f"{name} {problem} in {where}: from {lower[k, row]:.6g} to {upper[k, row]:.6g}. "
                "Correct the bounds or y; NaN means that nothing is known."
            )


def _remainder(shares: Matrix, but: Matrix | float = 0.0) -> tuple[Vector, Vector]:
    """Return one minus the sum of shares (of all but one class), and its rounding error."""
    left, missed = np.ones(shares.shape[1]), np.zeros(shares.shape[1])
    for share in shares:
        left, error = _difference(left, share)
        missed = missed + error
    left, error = _difference(left, -but)
    return _difference(left, -(missed + error))


def _difference(a: Vector, b: Vector | float) -> tuple[Vector, Vector]:
    """Return a - b, and the exact error of its rounding."""
    difference = a - b
    of_b = a - difference
    return difference, (a - (difference + of_b)) + (of_b - b)


def _refuse_narrow(name: str, width: Vector) -> None:
    rows = np.flatnonzero((width > 0.0) & (width < SMALLEST_WIDTH))
    if rows.size:
        raise ValueError(
            f"{name} in row {rows[0]} differ by {width[rows[0]]:.3g}, whose square underflows in "
            "floating point. Give equal bounds, or rescale the targets of a regression."
        )


def known_targets(given: FitInput, missing_label: Any, common_range: Any) -> KnownLabels:
    """Check the targets of a regression, and the bounds of those that are unknown.

    Rows have bounds of their own, and the common range where these are NaN.
    """
    target, unlabeled = split_targets(given.y, missing_label)
    check_consistent_length(np.empty((given.rows.n_rows, 0)), target)
    weights = given.weights
    used = np.ones(len(target), bool) if weights is None else weights > 0.0
    bounds = np.full((len(target), 2), np.nan)
    if given.bounds is not None:
        bounds = check_array(
            given.bounds, dtype=float, ensure_all_finite=False, ensure_2d=False, allow_nd=True
        )
    if bounds.shape != (len(target), 2):
        raise ValueError(
            f"target_bounds has shape {bounds.shape}, but ({len(target)}, 2) is needed: lower and "
            "upper bound of each target. A range of all targets belongs in the constructor."
        )
    lower, upper = bounds.T
    is_known = ~unlabeled | (np.isfinite(lower) & (lower == upper))
    known = np.where(unlabeled, lower, target)[used & is_known]
    if not known.size:
        raise ValueError(
            "sample_weight is zero for all rows with a target. Give some of them a positive weight."
        )
    low, high = _common_range(common_range, known)
    lower = np.where(np.isnan(lower), low, lower)
    upper = np.where(np.isnan(upper), high, upper)
    if np.abs(target).max(initial=0.0) > LARGEST_TARGET:
        raise ValueError(
            "The values of y are so large that their squares overflow. Rescale y and its bounds."
        )
    checked = np.where(used, target, np.nan)
    _check_bounds(lower[None], upper[None], checked[None], unlabeled, np.empty(0))
    bare = unlabeled & (np.isnan(lower) | np.isnan(upper))
    if bare.any():
        raise ValueError(
            f"{bare.sum()} of {len(bare)} rows have neither a target nor bounds of it; the first "
            f"is row {bare.argmax()}. Pass target_bounds=(low, high) of all rows to the "
            "constructor, or one such pair for each row to fit."
        )
    target = np.where(unlabeled, lower, target)  # also where equal bounds are a target
    width = np.subtract(upper, lower, out=np.zeros(len(target)), where=unlabeled)
    _refuse_narrow("target_bounds", width)
    assumptions, unknown = Assumptions("regression"), used & (width > 0.0)
    if unknown.any():
        low, high = float(lower[unknown].min()), float(upper[unknown].max())
        n_narrower = int(np.sum(unknown & ((lower > low) | (upper < high))))
        # A range that no row has in full adds nothing to the bounds of all rows.
        found = (low, high) if n_narrower < unknown.sum() else None
        assumptions = replace(assumptions, n_bounded=n_narrower, target_range=found)
    labels = Labels(target[None], width, weights)
    return KnownLabels(labels, assumptions, np.empty(0), upper=upper)


def _common_range(given: Any, known: Vector) -> tuple[float, float]:
    if given is None:
        return np.nan, np.nan
    if isinstance(given, str) and given == "labeled":
        low, high = float(known.min()), float(known.max())
        return (low, high) if low < high else (np.nan, np.nan)  # one target has no range
    low = high = np.nan
    with suppress(TypeError, ValueError):
        low, high = map(float, given)
    if not -LARGEST_TARGET <= low <= high <= LARGEST_TARGET:
        raise ValueError(
            f"target_bounds={short_repr(given)} is no range of targets: without two ends of at most"
            f" {LARGEST_TARGET:g}, no improvement can be guaranteed. Pass (low, high), 'labeled' or"
            " None, and bounds of single rows in fit."
        )
    return low, high
