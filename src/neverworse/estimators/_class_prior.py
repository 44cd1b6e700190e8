"""What a class prior says about the labels of the unlabeled rows."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Matrix, Vector
from neverworse.estimators._hypergeometric import count_intervals
from neverworse.estimators._known_labels import KnownLabels
from neverworse.projection import Assumptions, Labels, Task, Totals, reachable

SUM_TOLERANCE = 1e-9  # tolerance for shares that should add up to one
MISSED = 1e-6  # shares that miss their intervals by more than this do so


def with_class_prior(
    known: KnownLabels, class_prior: Any, prior_level: float
) -> tuple[Labels, Assumptions]:
    """Restrict the totals of the labels to what the prior says, a parameter of the classifiers."""
    labels, classes = known.labels, known.classes
    task: Task = "multiclass" if labels.shape.is_coupled else "binary"
    assumed = Assumptions(task=task, n_bounded=known.n_bounded)
    weight = float(labels.weights_where(labels.unlabeled).sum())
    if class_prior is None or weight == 0.0:
        if class_prior is not None and not _is_confidence(class_prior):
            _shares(class_prior, classes)  # wrong is wrong, even if it makes no difference
        return labels, assumed
    level = None
    if _is_confidence(class_prior):
        level = float(prior_level)
        low, high = _confidence(known, level)
    else:
        low, high = _shares(class_prior, classes)
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
    if known.counts is None:
        raise ValueError(
            "class_prior='confidence' counts labeled rows of each class, but some rows have soft "
            "labels (equal label_bounds), which cannot be counted. Give class_prior as an interval."
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
    n = len(classes)
    names = ", ".join(map(str, classes))
    if isinstance(class_prior, dict):
        pairs = _from_dict(class_prior, classes)
    else:
        try:
            given = np.asarray(class_prior, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"class_prior={class_prior!r} cannot be read as shares of the classes {names}."
            ) from None
        is_interval = isinstance(class_prior, tuple) and given.shape == (2,)
        if n == 2 and (is_interval or given.ndim == 0):
            low, high = (float(given), float(given)) if given.ndim == 0 else map(float, given)
            _check_order(low, high, classes)
            pairs = np.array([[1.0 - high, 1.0 - low], [low, high]])
        elif given.shape == (n,):
            _check_shares(class_prior, given, classes)
            pairs = np.column_stack([given, given])
        elif given.shape == (n, 2):
            pairs = given
        else:
            wanted = f"{n} shares or {n} intervals (low, high)"
            if n == 2:
                wanted = f"the share of class {classes[1]}, or a tuple (low, high) for it"
            raise ValueError(
                f"class_prior has shape {given.shape}, but y has {n} classes ({names}): give "
                f"{wanted}, or a dict from classes to shares."
            )
    low, high = pairs.T
    if not ((pairs >= -SUM_TOLERANCE) & (pairs <= 1.0 + SUM_TOLERANCE)).all():
        raise ValueError(
            "class_prior leaves the range from 0 to 1. It is the share of a class among the "
            "unlabeled rows, not a percentage or a number of rows."
        )
    if (low > high + SUM_TOLERANCE).any():
        raise ValueError(
            "class_prior has an interval whose lower end is above its upper end. Swap them."
        )
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _check_order(low: float, high: float, classes: AnyArray) -> None:
    if low > high + SUM_TOLERANCE:
        raise ValueError(
            f"class_prior=({low:.6g}, {high:.6g}) is an interval, for it is a tuple, but its lower "
            f"end is above its upper end. {_two_spellings(low, high, classes)}"
        )


def _check_shares(class_prior: Any, given: Vector, classes: AnyArray) -> None:
    """Raise if shares do not add up to one, or may be meant as an interval."""
    added = float(given.sum())
    if not abs(added - 1.0) <= SUM_TOLERANCE:
        interval = ""
        if len(classes) == 2:
            interval = f" {_two_spellings(float(given[0]), float(given[1]), classes)}"
        raise ValueError(
            f"class_prior has shares that add up to {added:.6g}, not to 1: give the share of each "
            f"of the classes {', '.join(map(str, classes))} among the unlabeled rows.{interval}"
        )
    if len(classes) == 2 and isinstance(class_prior, list) and given[0] < given[1]:
        low, high = map(float, given)
        raise ValueError(
            f"class_prior=[{low:.6g}, {high:.6g}] may be the shares of the two classes, or an "
            f"interval for the second one. {_two_spellings(low, high, classes)}"
        )


def _two_spellings(low: float, high: float, classes: AnyArray) -> str:
    second = classes[1].item() if hasattr(classes[1], "item") else classes[1]
    return (
        f"Write {{{second!r}: {high:.6g}}} for the share of class {second}, and the tuple "
        f"({min(low, high):.6g}, {max(low, high):.6g}) for an interval that contains it."
    )


def _from_dict(class_prior: dict[Any, Any], classes: AnyArray) -> Matrix:
    pairs = np.column_stack([np.zeros(len(classes)), np.ones(len(classes))])
    known = {c.item() if hasattr(c, "item") else c: k for k, c in enumerate(classes)}
    for name, share in class_prior.items():
        if name not in known:
            raise ValueError(
                f"class_prior names the class {name!r}, but the classes in y are "
                f"{', '.join(map(repr, known))}."
            )
        interval = (share, share) if isinstance(share, Real) else share
        try:
            low, high = interval
            pairs[known[name]] = float(low), float(high)
        except (TypeError, ValueError):
            raise ValueError(
                f"class_prior[{name!r}] = {share!r} is neither a share nor an interval (low, high)."
            ) from None
    return pairs


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
    if reachable(omega, labels.shape.at(free), totals, missed) is False:
        raise ValueError(
            "class_prior is infeasible together with label_bounds: no labels within their bounds "
            "give these shares. Widen the intervals of the prior or the bounds of the labels."
        )
