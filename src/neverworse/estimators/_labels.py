"""Which rows are labeled: one convention for all estimators. Where it is unclear, no guess."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from traceback import walk_stack
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from neverworse._typing import AnyArray, Indices, Mask, Matrix, Vector

_MAX_SHOWN = 5  # classes in a message
# Missing labels that were turned into strings, as NumPy does with lists of strings.
_LOOKS_MISSING = ("-1", "nan", "NaN", "None", "<NA>", "NaT")


def split_labels(
    y: Any, missing_label: Any, classes: AnyArray | None = None
) -> tuple[AnyArray, AnyArray, Mask]:
    """Return the classes in sorted order, the position of each row's class, and which have none.

    The position, in the smallest type of integers, is 0 for unlabeled rows. As a marker, NaN, None
    and pd.NA all mean any null value.
    """
    labels = distinct_labels(label_array(y))
    missing = missing_values(labels, missing_label)
    known, markers = native_dtype(labels.values[~missing]), labels.values[missing].tolist()
    if classes is None:
        classes = check_classes(known, len(labels.codes))
        refuse_calibration(markers if is_auto(missing_label) else [missing_label, *markers])
        markers = []
    position = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in known.tolist() if label not in position]
    if unknown:
        raise ValueError(
            f"y has labels that the classifiers do not know: {shown_classes(unknown)}. Their "
            f"classes are {shown_classes(classes)}. Fit them to all classes, or drop these labels."
        )
    if taken := [marker for marker in markers if marker in position]:
        raise ValueError(
            f"{shown(taken[0])} marks unlabeled rows in y, but is a class of the classifiers. Fit "
            "these without unlabeled rows, or pass missing_label=np.nan if it is a class in y."
        )
    order = np.full(len(labels.values), -1, np.min_scalar_type(-len(classes)))
    order[~missing] = [position[label] for label in known.tolist()]
    codes = order[labels.codes]
    return classes, np.maximum(codes, 0), codes == -1


def split_targets(y: Any, missing_label: Any) -> tuple[Vector, Mask]:
    """Return the targets of a regression, zero for unlabeled rows, and which rows these are."""
    labels = distinct_labels(label_array(y))
    missing = _find_marker(labels, missing_label)
    try:
        values = np.where(missing, 0.0, labels.values).astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "y has targets that are not numbers. Convert them, or use a classifier."
        ) from None
    if not np.isfinite(values).all():
        raise ValueError("Input y contains infinity. Mark rows without a target with NaN.")
    if missing.all():
        raise ValueError("y has no target at all: all are missing. Give some rows one.")
    return values[labels.codes], missing[labels.codes]


def find_unlabeled(y: Any, missing_label: Any = "auto") -> Mask:
    """Find the rows without a label (or, where y is continuous, without a target)."""
    labels = distinct_labels(label_array(y))
    return missing_values(labels, missing_label)[labels.codes]


def missing_values(labels: _Labels, missing_label: Any) -> Mask:
    if not is_auto(missing_label):
        return _find_marker(labels, missing_label)
    return labels.null if is_continuous(labels.values[~labels.null]) else _find_missing(labels)


def is_auto(missing_label: Any) -> bool:
    """Whether the marker of unlabeled rows is to be inferred from y."""
    return isinstance(missing_label, str) and missing_label == "auto"


def is_continuous(known: AnyArray) -> bool:
    """Whether known labels are targets of a regression: floats that are not all whole numbers."""
    return known.dtype.kind == "f" and bool(np.any(known != np.floor(known)))


@dataclass(frozen=True)
class _Labels:
    """Distinct values, and which of them each row has: checks look at the distinct ones only."""

    values: AnyArray  # (n_distinct,)
    null: Mask  # (n_distinct,): whether the value is None, NaN, NaT or pd.NA
    codes: AnyArray  # (n_rows,)

    def equal(self, value: Any) -> Mask:
        """Compare, where numbers, booleans and strings are never equal to each other."""
        found = (not is_null(v) and _kind(v) == _kind(value) and v == value for v in self.values)
        return np.fromiter(found, bool, len(self.values))


def label_array(y: Any) -> AnyArray:
    """Return y as a one-dimensional array that keeps missing labels recognisable."""
    if y is None:
        raise ValueError(
            "This estimator requires y to be passed, but the target y is None: give every row a "
            "label, or a marker (-1 or NaN for classes, NaN for numbers)."
        )
    if isinstance(y, np.ma.MaskedArray):
        masked, y = np.ma.getmaskarray(y), y.data.astype(object)
        y[masked] = None
    elif hasattr(y, "to_list") and not isinstance(getattr(y, "dtype", None), np.dtype):
        # A nullable or categorical column: as an array, its integers might turn into floats.
        y = np.array([*y, None], dtype=object)[:-1]
    elif hasattr(y, "to_numpy"):
        y = y.to_numpy()
    elif not isinstance(y, np.ndarray):
        array = np.asarray(y)
        # A list of strings and markers must not become an array of strings.
        y = np.asarray(y, dtype=object) if array.dtype.kind in "US" else array
    labels: AnyArray = column_or_1d(y, warn=True)
    if labels.dtype.kind == "c":
        raise ValueError("y has complex numbers. Complex data not supported.")
    return labels.astype(object) if labels.dtype.kind == "T" else labels


def distinct_labels(labels: AnyArray) -> _Labels:
    if labels.dtype.kind != "O":
        # Most rows are unlabeled, and leaving them out is faster than sorting or hashing them.
        often = labels[len(labels) // 2 :][:1]
        others = labels == labels if (often != often).any() else labels != often
        found = np.unique(np.concatenate([often, labels[others]]))
        codes = np.empty(len(labels), np.min_scalar_type(len(found)))
        codes[:] = np.searchsorted(found, often)
        codes[others] = np.searchsorted(found, labels[others])
        return _Labels(found, found != found, codes)
    # Equal objects of one type are one label. Of these, numbers of several types may be, as well.
    raw: dict[Any, int] = {}
    typed = zip(map(type, labels), labels, strict=True)
    rows = np.fromiter((raw.setdefault(key, len(raw)) for key in typed), np.intp, len(labels))
    seen: dict[Any, int] = {}
    keys = (None if is_null(v) else (_kind(v), v) for _, v in raw)
    codes = np.array([seen.setdefault(key, len(seen)) for key in keys], np.intp)[rows]
    values = np.array([*(None if key is None else key[1] for key in seen), None], object)[:-1]
    null = np.fromiter((key is None for key in seen), bool, len(seen))
    return _Labels(values, null, codes)


def is_null(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pd.NA: nothing that equals itself."""
    if value is None:
        return True
    equal = value == value
    return not isinstance(equal, (bool, np.bool_)) or not equal


def _kind(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    if isinstance(value, numbers.Integral):
        return "integer"
    if isinstance(value, numbers.Real):
        return "integer" if float(value).is_integer() else "float"
    return "string" if isinstance(value, str) else type(value).__name__


def _find_missing(labels: _Labels) -> Mask:
    """Infer the marker of unlabeled rows; raise an error where that is ambiguous."""
    suspects: dict[Any, str] = {text: f"the string {text!r}" for text in _LOOKS_MISSING}
    if labels.values.dtype.kind == "u":
        largest = int(np.iinfo(labels.values.dtype).max)
        suspects[largest] = f"{largest} in unsigned integers"
    for value, what in suspects.items():
        if labels.equal(value).any():
            raise _ambiguous(f"{what}, which may be a missing label that was converted", value)
    minus_one = labels.equal(-1)
    others, problem = labels.values[~minus_one], ""
    if labels.null.any():
        problem = "and null values"
    elif minus_one.any() and isinstance(labels.values[minus_one][0], (float, np.floating)):
        problem = "among floats"
    elif len(others) == 1:
        problem = f"and {shown(others[0])} only"
    if minus_one.any() and problem:
        raise _ambiguous(f"-1 {problem}, which may be two classes, or one and a marker", -1)
    return minus_one if minus_one.any() else labels.null


def _ambiguous(problem: str, marker: Any) -> ValueError:
    return ValueError(
        f"y has {problem}. Pass missing_label={marker!r} if {marker!r} marks unlabeled rows, or "
        f"missing_label=np.nan if it is a class (then NaN, None and pd.NA mark unlabeled rows)."
    )


def _find_marker(labels: _Labels, missing_label: Any) -> Mask:
    if isinstance(missing_label, (list, tuple, dict, set)) or np.ndim(missing_label) > 0:
        raise ValueError(
            f"missing_label={missing_label!r} is not a scalar. Pass the value in y that marks "
            "unlabeled rows."
        )
    if is_null(missing_label):
        return labels.null
    if labels.null.any():
        raise ValueError(
            f"y has null values (None, NaN) in addition to missing_label={missing_label!r}. Pass "
            "missing_label=np.nan if they mark unlabeled rows, or drop these rows."
        )
    return labels.equal(missing_label)


def check_classes(known: AnyArray, n_rows: int) -> AnyArray:
    """Return the classes in sorted order; raise an error unless there are at least two."""
    if is_continuous(known) or (known.dtype.kind == "f" and np.isinf(known).any()):
        raise ValueError(
            "Unknown label type: continuous. y has numbers that are not integers, or infinity: "
            "targets of a regression, not classes. Use ProjectedLeastSquaresRegressor, or turn "
            "them into classes first. NaN marks unlabeled rows."
        )
    classes = np.unique(known)
    if len(classes) < 2:
        found = f"no labeled row: all {n_rows} labels are missing"
        if len(classes):
            found = f"labels of one class only ({shown(classes[0])})"
        raise ValueError(
            f"y has {found}. The labeled rows need at least two classes; neither unlabeled rows "
            "nor bounds can provide one."
        )
    return classes


def native_dtype(known: AnyArray) -> AnyArray:
    """Return labels that were mixed with markers in a type of their own."""
    if known.dtype.kind != "O" or not len(known):
        return known
    kinds = {_kind(v) for v in known}
    if kinds <= {"integer", "float"} and any(isinstance(v, (float, np.floating)) for v in known):
        kinds = {"float"}
    types = {"boolean": bool, "integer": np.int64, "float": np.float64, "string": object}
    try:
        (kind,) = kinds
        return known.astype(types[kind])
    except (KeyError, OverflowError, ValueError):
        names = ", ".join(sorted({type(v).__name__ for v in known}))
        raise ValueError(
            f"Unknown label type: y mixes labels of different types ({names}), has some of an "
            "unsupported one, or integers beyond 64 bits. Convert all labels to strings."
        ) from None


def shown(label: Any) -> str:
    return repr(label.item() if hasattr(label, "item") else label)


def shown_classes(classes: Sequence[Any] | AnyArray) -> str:
    """Return the first few classes, as they are written in Python."""
    more = ", ..." if len(classes) > _MAX_SHOWN else ""
    return ", ".join(shown(k) for k in classes[:_MAX_SHOWN]) + more


def refuse_calibration(markers: Sequence[Any]) -> None:
    """Raise an error if `CalibratedClassifierCV` is fitting the caller, with markers as classes.

    It would pair our scores with the wrong classes. Only its stack frame tells of it.
    """
    for frame, _ in walk_stack(inspect.currentframe()):
        if frame.f_globals.get("__name__") == "sklearn.calibration":
            known = frame.f_locals
            classes = known.get("classes", getattr(known.get("self"), "classes_", ()))
            taken = [marker for marker in markers if marker in list(classes)]
            if taken:
                raise ValueError(
                    f"CalibratedClassifierCV treats {shown(taken[0])}, the marker of unlabeled "
                    "rows, as a class: its probabilities would be wrong. Fit it to labeled rows of "
                    "neverworse.model_selection.WithUnlabeledRows(estimator, X[unlabeled])."
                )


@dataclass(frozen=True)
class SoftLabels:
    """Soft labels of rows."""

    # (n_rows,): the class of each row with a whole label; for two classes, the label itself
    codes: AnyArray
    rows: Indices  # rows whose label is not whole
    values: Matrix  # (1, n) or (n_classes, n): their labels

    @classmethod
    def compress(cls, labels: Matrix) -> SoftLabels:
        """Return the compact form of labels of shape (n_classes, n_rows)."""
        whole = ((labels == 0.0) | (labels == 1.0)).all(axis=0)
        codes = labels.argmax(axis=0) if len(labels) > 1 else labels[0] == 1.0
        rows, largest = np.flatnonzero(~whole), max(len(labels), 2) - 1
        return cls(codes.astype(np.min_scalar_type(largest)), rows, labels[:, rows])

    def to_array(self) -> Vector:
        """Return an array of shape (n_rows,) or (n_rows, n_classes)."""
        values = np.atleast_2d(self.values)  # older model files have (n,) for two classes
        several = len(values) > 1
        labels = np.eye(len(values))[self.codes] if several else self.codes.astype(np.float64)
        labels[self.rows] = values.T if several else values[0]
        return labels
