"""Find known labels, and hide some of them."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from neverworse._typing import AnyArray, Indices, Mask
from neverworse.estimators import find_unlabeled, is_auto, is_continuous, label_array, native_dtype


def labeled_rows(y: Any, missing_label: Any, advice: str) -> tuple[Indices, AnyArray]:
    """Return positions and labels of the labeled rows; with none, raise an error with advice."""
    unlabeled = find_unlabeled(y, missing_label)
    if unlabeled.all():
        raise ValueError(f"y has no labeled row: all {len(unlabeled)} labels are missing. {advice}")
    labeled = np.flatnonzero(~unlabeled)
    return labeled, native_dtype(label_array(y)[labeled])


def labeled_codes(name: str, values: Any, labeled: Indices, n_rows: int) -> Indices:
    """Encode the values of a column in the labeled rows as 0, 1, ... in ascending order."""
    column = label_array(values)
    if len(column) != n_rows:
        raise ValueError(f"{name} has {len(column)} entries, but y has {n_rows}: pass as many.")
    column = column[labeled]
    null = find_unlabeled(column, None)
    if null.any():
        raise ValueError(
            f"{name} is missing in {null.sum()} labeled rows, the first of them row "
            f"{labeled[null][0]}. Only unlabeled rows may go without."
        )
    return np.unique(column, return_inverse=True)[1]


def shuffled_strata(
    strata: Indices, rng: np.random.RandomState
) -> tuple[Indices, Indices, Indices]:
    """Shuffle rows within their strata, given the number of the stratum of each row.

    Returns the positions of the rows, one stratum after the other; the rank of each of these within
    its stratum, 0 for the first; and the number of rows of each stratum.
    """
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    counts = np.bincount(strata)
    rank = np.arange(len(strata)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order, rank, counts


def mask_labels(
    y: Any,
    *,
    n_labeled: int | None = None,
    fraction: float | None = None,
    stratify: Any = None,
    random_state: Any = None,
    missing_label: Any = "auto",
) -> Any:
    """Hide all labels but a random few.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels, or targets of a regression. Rows that are unlabeled already stay so.
    n_labeled : int, optional
        How many rows keep their label. Pass this or `fraction`.
    fraction : float, optional
        Share of the labeled rows that keep their label, rounded to whole rows.
    stratify : None, True or array-like of shape (n_rows,), default=None
        Whether to keep the share of each class (True) or of each value in an array, as nearly
        as whole rows allow, with at least one row of each.
    random_state : int, RandomState or None, default=None
        Seed. An int hides the same labels in every call.
    missing_label : "auto" or scalar, default="auto"
        What to put in place of a label. "auto" is the marker that y has already, or else -1 for
        integers, NaN for floats, None for everything else, and in a nullable or categorical
        column of pandas its null value. If the type of y cannot hold another marker, y gets one
        that can.

    Returns
    -------
    masked : array of shape (n_rows,) or pandas.Series
        A copy of y: a Series with the same index and name if y is one, or else an array.

    Examples
    --------
    >>> import numpy as np
    >>> from neverworse.model_selection import mask_labels
    >>> y = np.array([0, 0, 0, 0, 1, 1])
    >>> mask_labels(y, n_labeled=3, stratify=True, random_state=0)
    array([-1,  0,  0, -1,  1, -1])
    >>> mask_labels(["a", "b", "a", "b"], fraction=0.5, random_state=0)
    array([None, None, 'a', 'b'], dtype=object)
    """
    labeled, known = labeled_rows(y, missing_label, "There are no labels to hide.")
    column = label_array(y)
    number: Any = n_labeled
    share: Any = fraction
    n_keep, n_known = 0, len(labeled)
    if share is None and isinstance(number, Integral):
        n_keep = int(number)
    elif number is None and isinstance(share, Real) and 0 < float(share) <= 1:
        n_keep = round(float(share) * n_known)
    if not 1 <= n_keep <= n_known:
        raise ValueError(
            f"Pass either n_labeled, an integer from 1 to {n_known} (the labeled rows of y), or "
            "fraction, a number above 0 and at most 1 that keeps at least one label; got "
            f"n_labeled={n_labeled!r} and fraction={fraction!r}."
        )
    strata = _strata(stratify, labeled, known, len(column))
    rng = check_random_state(random_state)
    keep = _numbers_to_keep(n_keep, np.bincount(strata), rng)
    order, rank, counts = shuffled_strata(strata, rng)
    hidden = np.zeros(len(column), bool)
    hidden[labeled[order]] = rank >= np.repeat(keep, counts)
    marker = missing_label
    if is_auto(marker):  # the one that is there already, or else the usual one for this type
        marker = {"i": -1, "u": -1, "f": np.nan}.get(column.dtype.kind)
        marker = np.delete(column, labeled)[0] if len(labeled) < len(column) else marker
    masked = _put(y, column, hidden, marker)
    try:
        find_unlabeled(masked, missing_label)
    except ValueError as error:
        raise ValueError(
            f"With the {n_keep} labels that are kept, the masked y would be ambiguous. Keep more "
            f"classes (stratify=True), or name the marker with missing_label everywhere. {error}"
        ) from error
    return masked


def _strata(stratify: Any, labeled: Indices, known: AnyArray, n_rows: int) -> Indices:
    if stratify is None:
        return np.zeros(len(labeled), np.intp)
    if stratify is True:
        if is_continuous(known):
            raise ValueError(
                "stratify=True needs classes, but y is continuous. Pass an array such as bins of "
                "y, or stratify=None."
            )
        return np.unique(known, return_inverse=True)[1]
    if np.ndim(stratify) == 0:
        raise ValueError(
            f"stratify={stratify!r} must be None, True (by the classes of y), or an array with "
            "one entry for every row."
        )
    return labeled_codes("stratify", stratify, labeled, n_rows)


def _numbers_to_keep(n_keep: int, sizes: Indices, rng: np.random.RandomState) -> Indices:
    """Return how many labels each stratum keeps: in proportion to its size, and at least one.

    Starts from the exact shares rounded down, and takes or gives single rows where the share is
    farthest off: for a separable convex function such steps lead to the minimum.
    """
    if n_keep < len(sizes):
        raise ValueError(
            f"{n_keep} labels are to be kept, fewer than the {len(sizes)} classes or values to "
            f"stratify by, each of which keeps one. Keep at least {len(sizes)}, or pass "
            "stratify=None."
        )
    # In units of 1 / sum(sizes), in which everything is an integer and ties are ties.
    total, share = int(sizes.sum()), n_keep * sizes
    keep = np.maximum(1, share // total)
    order = rng.permutation(len(sizes))
    while missing := n_keep - int(keep.sum()):
        step = 1 if missing > 0 else -1
        gain = step * (share - keep * total)
        if step < 0:
            gain[keep == 1] = np.iinfo(gain.dtype).min
        keep[order[np.argmax(gain[order])]] += step
    return keep


def _put(y: Any, column: AnyArray, hidden: Mask, marker: Any) -> Any:
    """Return y with the marker in place of hidden labels, in the first type that can hold both."""
    is_series = hasattr(y, "iloc") and y.ndim == 1
    wider = (np.int64, np.float64) if column.dtype.kind in "iu" else ()
    # Python compares large integers and floats without rounding.
    exact = [dtype for dtype in wider if column.astype(dtype).tolist() == column.tolist()]
    copies = (column.astype(dtype) for dtype in (column.dtype, *exact, object))
    is_special = is_series and not isinstance(y.dtype, np.dtype)  # nullable or categorical
    for masked in chain([y.copy()] if is_special else [], copies):
        with suppress(TypeError, ValueError, OverflowError):
            masked[hidden] = marker
            if find_unlabeled(masked, marker)[hidden].all():
                break
    if is_series and isinstance(masked, np.ndarray):
        # With an explicit type, pandas infers none: objects stay objects.
        return type(y)(masked, y.index, masked.dtype, y.name)
    return masked
