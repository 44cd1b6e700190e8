"""From y and bounds to what is known about every target of a regression."""

from __future__ import annotations

from dataclasses import dataclass
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

    def lacks_bounds(self) -> Mask:
        """Return which unknown targets have no bound on one side at least."""
        return ~self.known & (np.isnan(self.lower) | np.isnan(self.upper))

    def require_bounds(self, fix: str) -> None:
        """Raise if an unknown target has no bounds."""
        bare = self.lacks_bounds()
        if bare.any():
            raise ValueError(
                f"{np.count_nonzero(bare)} of {len(bare)} rows have neither a target nor bounds of "
                f"it; the first is row {first_row(bare)}. {fix}"
            )

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
    bounds = np.full((n_rows, 2), np.nan)
    if given.bounds is not None:
        bounds = check_array(
            given.bounds,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_2d=False,
            allow_nd=True,
            input_name="target_bounds",
        )
    if bounds.shape != (n_rows, 2):
        raise ValueError(
            f"target_bounds has shape {bounds.shape}, but ({n_rows}, 2) is needed in fit: lower "
            "and upper bound of the target of each row. A range of all targets is passed to the "
            "constructor."
        )
    targets = checked_targets(target, ~unlabeled, bounds[:, 0], bounds[:, 1], given.weights)
    if not targets.counted(targets.known).any():
        raise ValueError(
            "sample_weight is zero for all rows with a target. Give some of them a positive weight."
        )
    return targets


def checked_targets(
    target: Vector,
    known: Mask,
    lower: Vector,
    upper: Vector,
    weights: Vector | None,
    name: str = "target_bounds",
) -> KnownTargets:
    """Check targets and their bounds; targets whose bounds are equal are known.

    `name` is that of the argument with the bounds.
    """
    row = first_row(~known & (np.isinf(lower) | np.isinf(upper)))
    if row is not None:
        raise ValueError(
            f"{name} of row {row} are not finite (from {lower[row]} to {upper[row]}). "
            f"{_NEEDS_BOTH_ENDS}"
        )
    _check_size("y", target[known])
    _check_size(name, lower[~known], upper[~known])
    row = first_row(lower > upper)
    if row is not None:
        raise ValueError(
            f"{name} of row {row} cross: the lower one ({lower[row]}) is above the upper one "
            f"({upper[row]}). Swap them; if one of them is from the range of all targets, give "
            "this row both."
        )
    counted = known if weights is None else known & (weights > 0.0)
    row = first_row(counted & ((target < lower) | (target > upper)))
    if row is not None:
        raise ValueError(
            f"{name} exclude the target in row {row} of y: {target[row]} is not between "
            f"{lower[row]} and {upper[row]}. Widen the bounds, or mark the target as missing if "
            "it is wrong."
        )
    equal = ~known & (lower == upper)
    return KnownTargets(np.where(equal, lower, target), known | equal, lower, upper, weights)


def within_range(targets: KnownTargets, target_bounds: Any) -> KnownTargets:
    """Give rows without bounds of their own the range of the constructor."""
    low, high = _common_range(targets, target_bounds)
    lower = np.where(np.isnan(targets.lower), low, targets.lower)
    upper = np.where(np.isnan(targets.upper), high, targets.upper)
    filled = checked_targets(targets.target, targets.known, lower, upper, targets.weights)
    filled.require_bounds(
        "Either pass the range of all targets to the constructor, target_bounds=(low, high) (or "
        "'labeled', for the range of the known ones), or pass bounds of these rows to fit, "
        f"target_bounds=array of shape ({len(lower)}, 2)."
    )
    return filled


def _common_range(targets: KnownTargets, target_bounds: Any) -> tuple[float, float]:
    """Return the range that the constructor's `target_bounds` mean; NaN if there is none."""
    if target_bounds is None:
        return np.nan, np.nan
    if isinstance(target_bounds, str) and target_bounds == "labeled":
        values = targets.target[targets.counted(targets.known)]
        low, high = float(values.min()), float(values.max())
        if low == high and targets.lacks_bounds().any():
            raise ValueError(
                "target_bounds='labeled' takes the range of the known targets, but all of them are "
                f"{low}. Pass the range of all targets, target_bounds=(low, high)."
            )
        return low, high
    try:
        low, high = map(float, target_bounds)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if np.isnan(low) or np.isnan(high):
        raise ValueError(
            "The constructor's target_bounds have to be (low, high), 'labeled' or None, got "
            f"{short_repr(target_bounds)}. Bounds of single rows are passed to fit."
        )
    if np.isinf(low) or np.isinf(high):
        raise ValueError(f"target_bounds=({low}, {high}) is not finite. {_NEEDS_BOTH_ENDS}")
    if low > high:
        raise ValueError(
            f"target_bounds=({low}, {high}) has its lower end above its upper end. Swap them."
        )
    _check_size("target_bounds", low, high)
    return low, high


def _check_size(name: str, *values: Any) -> None:
    if any(np.any(np.abs(value) > LARGEST_TARGET) for value in values):  # bounds may be NaN
        raise ValueError(
            f"The values of {name} are so large that their squares overflow. Rescale the targets "
            "and their bounds, for example by a power of ten."
        )


def first_row(wrong: Mask) -> int | None:
    """Return the first row with something wrong in it, if there is one."""
    return int(np.argwhere(wrong)[0, 0]) if wrong.any() else None
