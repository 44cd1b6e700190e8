"""From y and bounds to what is known about every target of a regression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from reprlib import repr as short_repr
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from neverworse._typing import Mask, Vector
from neverworse.estimators._input import FitInput
from neverworse.estimators._known_labels import refuse_vanishing
from neverworse.estimators._labels import split_targets
from neverworse.projection import Assumptions, Labels

LARGEST_TARGET = 1e100  # the square of what is larger leaves too little room

_NEEDS_BOTH_ENDS = (
    "Where targets have no bound on one side, no improvement can be guaranteed for all of them: "
    "give finite bounds."
)


@dataclass(frozen=True)
class KnownTargets:
    """Targets of rows, of which some are known, and bounds of the others."""

    target: Vector  # (n_rows,): known targets; anything where it is unknown
    known: Mask  # (n_rows,)
    # lower, upper: (n_rows,): bounds; NaN where there is none
    lower: Vector
    upper: Vector
    weights: Vector | None  # (n_rows,)

    def counted(self, mask: Mask) -> Mask:
        """Return which of these rows have a positive weight: all others are ignored."""
        return mask if self.weights is None else mask & (self.weights > 0.0)

    def contradicted(self) -> Mask:
        """Return which known targets are outside of their bounds."""
        outside = (self.target < self.lower) | (self.target > self.upper)
        return self.counted(self.known & outside)

    def lacks_bounds(self) -> Mask:
        """Return which unknown targets have no bound on one side at least."""
        return ~self.known & (np.isnan(self.lower) | np.isnan(self.upper))

    def with_equal_bounds_known(self) -> KnownTargets:
        """Return the same with targets whose bounds are equal among the known ones."""
        equal = ~self.known & (self.lower == self.upper)
        target = np.where(equal, self.lower, self.target)
        return replace(self, target=target, known=self.known | equal)

    def labels(self) -> Labels:
        """Return what the projection has to know, once all unknown targets have bounds."""
        target = np.where(self.known, self.target, self.lower)
        width = np.where(self.known, target, self.upper) - target
        fix = "Rescale y and its bounds, or give equal bounds."
        refuse_vanishing(width, "The bounds of the target", fix)
        return Labels(target[None], width, self.weights)

    def assumptions(self) -> Assumptions:
        """Return what the certificate has to say about the unknown targets."""
        unknown = self.counted(~self.known)
        n_unknown = int(np.count_nonzero(unknown))
        if not n_unknown:
            return Assumptions(task="regression")
        low, high = float(self.lower[unknown].min()), float(self.upper[unknown].max())
        narrower = unknown & ((self.lower > low) | (self.upper < high))
        n_bounded = int(np.count_nonzero(narrower))
        # A range that no row has in full would say nothing beside the bounds of all rows.
        common = (low, high) if n_bounded < n_unknown else None
        return Assumptions(task="regression", n_bounded=n_bounded, target_range=common)


def known_targets(given: FitInput, missing_label: Any) -> KnownTargets:
    """Check y and the bounds of single rows, as they are passed to `fit`."""
    n_rows = given.rows.n_rows
    target, unlabeled = split_targets(given.y, missing_label)
    check_consistent_length(np.empty((n_rows, 0)), target)
    lower, upper = _own_bounds(given.bounds, n_rows)
    targets = KnownTargets(target, ~unlabeled, lower, upper, given.weights)
    row = first_row(unlabeled & (np.isinf(lower) | np.isinf(upper)))
    if row is not None:
        raise ValueError(
            f"target_bounds of row {row} are not finite (from {lower[row]} to {upper[row]}). "
            f"{_NEEDS_BOTH_ENDS}"
        )
    _raise_if_crossed(lower, upper, "Swap them, or give NaN where nothing is known.")
    row = first_row(targets.contradicted())
    if row is not None:
        raise ValueError(
            f"target_bounds exclude the target in row {row} of y: {target[row]} is not between "
            f"{lower[row]} and {upper[row]}. Mark the target as missing if the bounds are "
            "right; give NaN bounds if the target is."
        )
    targets = targets.with_equal_bounds_known()
    if not targets.counted(targets.known).any():
        raise ValueError(
            "sample_weight is zero for all rows with a target. Give some of them a positive weight."
        )
    known, unknown = targets.known, ~targets.known
    raise_if_too_large("y", targets.target[known])
    raise_if_too_large("target_bounds", lower[unknown], upper[unknown])
    return targets


def _own_bounds(bounds: Any, n_rows: int) -> tuple[Vector, Vector]:
    """Return lower and upper bounds of all rows, NaN where none are given."""
    if bounds is None:
        return np.full(n_rows, np.nan), np.full(n_rows, np.nan)
    given = check_array(
        bounds,
        dtype=np.float64,
        ensure_all_finite=False,
        ensure_2d=False,
        allow_nd=True,
        input_name="target_bounds",
    )
    if given.shape != (n_rows, 2):
        advice = " A range of all targets is passed to the constructor." if given.ndim == 1 else ""
        raise ValueError(
            f"target_bounds has shape {given.shape}, but ({n_rows}, 2) is needed in fit: lower and "
            f"upper bound of the target of each row.{advice}"
        )
    return given[:, 0], given[:, 1]


def within_range(targets: KnownTargets, target_bounds: Any) -> KnownTargets:
    """Give rows without bounds of their own the range of the constructor.

    Raises where known targets contradict that range, or where some row is left without bounds.
    """
    low, high = _common_range(targets, target_bounds)
    lower = np.where(np.isnan(targets.lower), low, targets.lower)
    upper = np.where(np.isnan(targets.upper), high, targets.upper)
    filled = replace(targets, lower=lower, upper=upper)
    row = first_row(filled.contradicted())
    if row is not None:
        raise ValueError(
            f"The target {targets.target[row]} in row {row} of y is outside of "
            f"target_bounds=({low}, {high}): the data contradict the range. Widen it, or "
            "mark the target as missing if it is wrong."
        )
    bare = filled.lacks_bounds()
    if bare.any():
        raise ValueError(
            f"{np.count_nonzero(bare)} of {len(bare)} rows have neither a target nor bounds of it; "
            f"the first is row {first_row(bare)}. Either pass the range of all targets to the "
            "constructor, target_bounds=(low, high) (or 'labeled', for the range of the known "
            "ones), or pass bounds of these rows to fit, target_bounds=array of shape "
            f"({len(bare)}, 2)."
        )
    _raise_if_crossed(
        lower, upper, "One of them is from the constructor's target_bounds: give this row both."
    )
    return filled.with_equal_bounds_known()


def _common_range(targets: KnownTargets, target_bounds: Any) -> tuple[float, float]:
    """Return the range that the constructor's `target_bounds` mean; NaN if there is none."""
    if target_bounds is None:
        return np.nan, np.nan
    if isinstance(target_bounds, str) and target_bounds == "labeled":
        return _range_of_known(targets)
    try:
        pair = np.asarray(target_bounds, dtype=np.float64)
    except (TypeError, ValueError):
        pair = np.empty(0)
    if pair.shape != (2,) or np.isnan(pair).any():
        raise ValueError(
            "The constructor's target_bounds have to be (low, high), 'labeled' or None, got "
            f"{short_repr(target_bounds)}. Bounds of single rows are passed to fit."
        )
    low, high = pair.tolist()
    if np.isinf(pair).any():
        raise ValueError(f"target_bounds=({low}, {high}) is not finite. {_NEEDS_BOTH_ENDS}")
    if low > high:
        raise ValueError(
            f"target_bounds=({low}, {high}) has its lower end above its upper end. Swap them."
        )
    raise_if_too_large("target_bounds", pair)
    return low, high


def _range_of_known(targets: KnownTargets) -> tuple[float, float]:
    """Return the smallest and the largest known target; raise if that would decide all others."""
    values = targets.target[targets.counted(targets.known)]
    low, high = float(values.min()), float(values.max())
    if low == high and targets.lacks_bounds().any():
        raise ValueError(
            "target_bounds='labeled' takes the range of the known targets, but all of them are "
            f"{low}. Pass the range of all targets, target_bounds=(low, high)."
        )
    return low, high


def _raise_if_crossed(lower: Vector, upper: Vector, fix: str) -> None:
    row = first_row(lower > upper)
    if row is not None:
        raise ValueError(
            f"The bounds of the target in row {row} cross: the lower one ({lower[row]}) is "
            f"above the upper one ({upper[row]}). {fix}"
        )


def raise_if_too_large(name: str, *values: Vector) -> None:
    # Bounds may be NaN where there are none.
    if any(np.any(np.abs(v) > LARGEST_TARGET) for v in values):
        raise ValueError(
            f"The values of {name} are so large that their squares overflow. Rescale the targets "
            "and their bounds, for example by a power of ten."
        )


def first_row(wrong: Mask) -> int | None:
    """Return the first row with something wrong in it, if there is one."""
    return int(np.argwhere(wrong)[0, 0]) if wrong.any() else None
