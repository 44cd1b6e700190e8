"""Which rows are labeled: one convention for all estimators.

A row is unlabeled where its label is -1 (integers), NaN (floats), or None, NaN or pd.NA (objects,
strings, nullable and categorical columns). Where -1 might as well be a class, nothing is guessed.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from neverworse._typing import AnyArray, Mask, Vector

# What NumPy makes of a missing label when a list of strings is turned into an array.
_LOOKS_MISSING = ("-1", "nan", "NaN", "None", "<NA>", "NaT")


def split_labels(y: Any, missing_label: Any) -> tuple[AnyArray, Vector, Mask]:
    """Find the classes, and which rows carry one.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels, with a marker where there is none.
    missing_label : "auto" or scalar
        The marker. NaN, None and pd.NA all mean any null value.

    Returns
    -------
    classes : array of shape (2,)
        The classes in sorted order.
    target : array of shape (n_rows,)
        1 for rows of the second class, 0 for all other rows.
    unlabeled : boolean array of shape (n_rows,)
    """
    labels, null = _as_labels(y)
    if isinstance(missing_label, str) and missing_label == "auto":
        unlabeled = _find_missing(labels, null)
    else:
        unlabeled = _is_marker(labels, null, missing_label)
    known = labels[~unlabeled]
    if not len(known):
        raise ValueError(
            f"y has no labeled row: all {len(labels)} labels are missing. At least one row of "
            "each of two classes needs a label."
        )
    known = _plain(known)
    check_classification_targets(known)
    classes, codes = np.unique(known, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y has labels of one class only ({_shown(classes[0])}). The labeled rows need two "
            "classes; unlabeled rows cannot provide one."
        )
    if len(classes) > 2:
        shown = ", ".join(_shown(c) for c in classes[:5])
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"{len(classes)} classes ({shown}{', ...' if len(classes) > 5 else ''}). Merge "
            "classes, or fit one class against the rest. If one of them marks unlabeled rows, say "
            "so with missing_label."
        )
    target = np.zeros(len(labels))
    target[~unlabeled] = codes
    return classes, target, unlabeled


def _shown(label: Any) -> str:
    """Return a label as people would write it."""
    return repr(label.item() if hasattr(label, "item") else label)


def _as_labels(y: Any) -> tuple[AnyArray, Mask]:
    """Return y as a one-dimensional array, and where it is null."""
    if y is None:
        raise ValueError(
            "This estimator requires y to be passed, but the target y is None: give a label for "
            "every row, with a marker such as -1 where there is none."
        )
    if hasattr(y, "to_numpy") and not isinstance(y, np.ndarray):
        # pandas and polars columns: nullable and categorical types become objects.
        values = np.asarray(y.to_numpy())
        if values.dtype.kind not in "biufO":
            values = values.astype(object)
        labels = column_or_1d(values, warn=True)
    else:
        labels = column_or_1d(y if isinstance(y, np.ndarray) else _from_sequence(y), warn=True)
    if labels.dtype.kind == "c":
        raise ValueError("y has complex numbers. Complex data not supported.")
    if labels.dtype.kind == "f":
        return labels, np.isnan(labels)
    if labels.dtype.kind == "O":
        return labels, np.fromiter((_is_null(v) for v in labels), bool, len(labels))
    return labels, np.zeros(len(labels), bool)


def _from_sequence(y: Any) -> AnyArray:
    """Turn a list into an array without turning its markers into strings."""
    array = np.asarray(y)
    if array.dtype.kind in "US":
        array = np.asarray(y, dtype=object)
    return array


def _is_null(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pd.NA: nothing that equals itself."""
    if value is None:
        return True
    equal = value == value
    return not isinstance(equal, (bool, np.bool_)) or not equal


def _find_missing(labels: AnyArray, null: Mask) -> Mask:
    """Find the unlabeled rows without being told the marker; raise where that takes a guess."""
    minus_one = _equals(labels, -1)
    _refuse_strings(labels)
    if not minus_one.any():
        return null
    advice = (
        "Pass missing_label=-1 if -1 marks unlabeled rows, or missing_label=np.nan if -1 is a "
        "class (then NaN, None and pd.NA mark unlabeled rows)."
    )
    if null.any():
        raise ValueError(f"y has both -1 and null values: which of them is unlabeled? {advice}")
    others = labels[~minus_one]
    if labels.dtype.kind == "f":
        raise ValueError(f"y has -1 among floats, where NaN marks unlabeled rows. {advice}")
    if len(np.unique(others.astype(str))) == 1:
        raise ValueError(
            f"y has the values -1 and {_shown(others[0])} only, which may be two classes, or one "
            f"class and unlabeled rows. {advice}"
        )
    return minus_one


def _refuse_strings(labels: AnyArray) -> None:
    if labels.dtype.kind not in "USO":
        return
    for text in _LOOKS_MISSING:
        if _equals(labels, text).any():
            raise ValueError(
                f"y has the string {text!r}, which looks like a missing label that was turned into "
                f"a string. Pass missing_label={text!r} if it marks unlabeled rows; if it is a "
                "class, pass missing_label=np.nan (then NaN, None and pd.NA mark unlabeled rows)."
            )


def _is_marker(labels: AnyArray, null: Mask, missing_label: Any) -> Mask:
    """Find the rows that carry the given marker."""
    if not np.isscalar(missing_label) and not _is_null(missing_label):
        raise ValueError(
            f"missing_label={missing_label!r} is not a scalar. Pass 'auto' or the value in y that "
            "marks unlabeled rows, for example -1, np.nan, None or '?'."
        )
    if _is_null(missing_label):
        return null
    if null.any():
        raise ValueError(
            f"y has null values (NaN, None or pd.NA) beside missing_label={missing_label!r}. Pass "
            "missing_label=np.nan if they mark unlabeled rows, or drop these rows."
        )
    return _equals(labels, missing_label)


def _equals(labels: AnyArray, value: Any) -> Mask:
    """Compare elementwise, where numbers and strings are never equal."""
    number = isinstance(value, numbers.Number)
    if labels.dtype.kind == "O":
        return np.fromiter((_same(v, value) for v in labels), bool, len(labels))
    if number != (labels.dtype.kind in "iuf"):
        return np.zeros(len(labels), bool)
    result: Mask = labels == value
    return result


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, (bool, np.bool_)) != isinstance(b, (bool, np.bool_)):
        return False
    return not _is_null(a) and bool(a == b)


def _plain(known: AnyArray) -> AnyArray:
    """Give labels that were mixed with markers their own type again."""
    if known.dtype.kind != "O":
        return known
    kinds = {type(v) for v in known}
    if all(issubclass(k, (bool, np.bool_)) for k in kinds):
        return known.astype(bool)
    if all(issubclass(k, (int, np.integer)) for k in kinds):
        return known.astype(np.int64)
    if all(issubclass(k, numbers.Real) for k in kinds):
        return known.astype(np.float64)
    if all(issubclass(k, str) for k in kinds):
        return known
    names = ", ".join(sorted(k.__name__ for k in kinds))
    raise ValueError(
        f"y mixes labels of different types ({names}). Unknown label type: convert all labels to "
        "strings or all to numbers."
    )
