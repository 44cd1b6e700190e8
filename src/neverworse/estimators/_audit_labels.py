"""What an audit knows about the labels.

Unlike in a fit, the classes are those of the classifiers: y need not have all of them, nor any
label at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from neverworse._typing import AnyArray, Indices, Vector
from neverworse.estimators._audit_models import Models, called, first_row, is_array
from neverworse.estimators._known_labels import KnownLabels, coded_labels
from neverworse.estimators._known_targets import LARGEST, KnownTargets, raise_if_too_large
from neverworse.estimators._labels import (
    check_classes,
    distinct_labels,
    find_unlabeled,
    label_array,
    missing_values,
    shown,
    split_targets,
)
from neverworse.estimators._row_weights import checked_weights
from neverworse.projection import Assumptions, Labels

# How many classes a message names.
FEW = 10


def count_rows(models: Models, X: Any, y: Any) -> int:
    n_rows = len(label_array(y))
    if n_rows == 0:
        raise ValueError("y has no rows: there is nothing to audit.")
    if X is None and not all(is_array(model) for model in models.values()):
        raise ValueError("X is None, but needed: only arrays of scores can do without.")
    if X is not None and _num_samples(X) != n_rows:
        raise ValueError(
            f"X has {_num_samples(X)} rows, but y has {n_rows}. Pass a label for every row, with a "
            "marker such as -1 where there is none."
        )
    return n_rows


def row_weights(sample_weight: Any, n_rows: int) -> Vector | None:
    if sample_weight is None:
        return None
    weights = checked_weights(sample_weight, n_rows)
    if not weights.any():
        raise ValueError("sample_weight is zero for all rows: there is nothing to audit.")
    return weights


def labels_of_classes(
    models: Models, y: Any, missing_label: Any, weights: Vector | None, bounds: Any
) -> KnownLabels:
    """Return what is known about the labels, in terms of the classes of the classifiers."""
    classes, codes = _coded(models, y, missing_label)
    return coded_labels(classes, np.maximum(codes, 0), codes == -1, weights, bounds)


def _coded(models: Models, y: Any, missing_label: Any) -> tuple[AnyArray, Indices]:
    """Return the classes, and which of them each row has: -1 if it is unlabeled."""
    labels = distinct_labels(label_array(y))
    missing = missing_values(labels, missing_label)
    classes = _classes_of(models)
    if classes is None:
        classes = _classes_of_arrays(models, labels.values[~missing], len(labels.codes))
    position = {c: k for k, c in enumerate(classes.tolist())}
    _check_marker(labels.values[missing & ~labels.null], position)
    code_of = [-1 if m else position.get(v) for v, m in zip(labels.values, missing, strict=True)]
    unknown = [v for v, k in zip(labels.values, code_of, strict=True) if k is None]
    if unknown:
        raise ValueError(
            f"y has labels that the classifiers do not know: {listed(unknown)}. Their classes are "
            f"{listed(classes)}. Fit them to rows of all classes, or mark these rows as unlabeled."
        )
    return classes, np.array(code_of, np.intp)[labels.codes]


def _classes_of(models: Models) -> AnyArray | None:
    """Return the classes that the estimators know, in sorted order; None if all are arrays."""
    found = [_sorted_classes(name, model) for name, model in models.items() if not is_array(model)]
    if len(found) == 2 and found[0].tolist() != found[1].tolist():
        raise ValueError(
            f"The candidate has the classes {listed(found[0])}, but the baseline has "
            f"{listed(found[1])}. Both have to be fitted to the same classes. If one of these "
            "marks unlabeled rows, drop them before you fit a supervised classifier."
        )
    return found[0] if found else None


def _sorted_classes(name: str, model: Any) -> AnyArray:
    classes = model.classes_
    if isinstance(classes, list) and np.ndim(classes[0]) > 0:
        raise ValueError(f"{called(name, model)} has several outputs. Audit one at a time.")
    ordered = np.sort(np.asarray(classes))
    if len(ordered) < 2:
        raise ValueError(
            f"{called(name, model)} knows one class only ({listed(ordered)}). Fit it to two or "
            "more."
        )
    return ordered


def _classes_of_arrays(models: Models, known: AnyArray, n_rows: int) -> AnyArray:
    """Return the classes in y, one for each column of the scores."""
    shapes = {name: np.shape(model) for name, model in models.items()}
    n_columns = {2 if len(shape) == 1 else shape[-1] if shape else 0 for shape in shapes.values()}
    n_classes = n_columns.pop()
    if n_columns or n_classes < 2:
        raise ValueError(
            "candidate and baseline have to be estimators, or arrays of scores of the same classes "
            "with the shape (n_samples,) for two classes or (n_samples, n_classes), but have the "
            f"shapes {shapes['candidate']} and {shapes['baseline']}."
        )
    if not len(known):
        return np.arange(n_classes)  # with no label at all, no name of a class matters
    classes = np.unique(known) if len(known) < 2 else check_classes(known, n_rows)
    if len(classes) != n_classes:
        raise ValueError(
            f"The scores are for {n_classes} classes, but y has labels of {len(classes)} "
            f"({listed(classes)}), so that it is not clear which score belongs to which class. "
            "Pass a fitted classifier, which knows its classes, instead of one of the arrays."
        )
    return classes


def _check_marker(markers: AnyArray, position: dict[Any, int]) -> None:
    for marker in markers:
        if marker in position:
            raise ValueError(
                f"{shown(marker)} marks unlabeled rows in y, but is a class of the classifiers. "
                "Drop unlabeled rows before you fit a supervised classifier; or pass "
                "missing_label=np.nan if it is a class in y too (then NaN, None and pd.NA mark "
                "unlabeled rows)."
            )


def check_countable(known: KnownLabels, class_prior: Any) -> None:
    is_confidence = isinstance(class_prior, str) and class_prior == "confidence"
    if is_confidence and known.counts is not None and not known.counts.any():
        raise ValueError(
            "class_prior='confidence' counts labeled rows of each class, but y has none. Give "
            "class_prior as an interval, or label some rows."
        )


def listed(classes: Iterable[Any]) -> str:
    texts = [shown(c) for c in classes]
    more = f" and {len(texts) - FEW} more" if len(texts) > FEW else ""
    return ", ".join(texts[:FEW]) + more


def labels_of_targets(
    y: Any, missing_label: Any, weights: Vector | None, bounds: Any
) -> tuple[Labels, Assumptions]:
    """Return the targets of a regression, those that are unknown with their bounds."""
    marker = None if isinstance(missing_label, str) and missing_label == "auto" else missing_label
    unlabeled = find_unlabeled(y, marker)
    n = len(unlabeled)
    target = np.zeros(n) if unlabeled.all() else split_targets(y, marker)[0]
    raise_if_too_large("y", target)
    low, high = _target_bounds(bounds, n)
    targets = KnownTargets(target, ~unlabeled, low, high, weights)
    wrong = unlabeled & ~((low <= high) & (np.abs(low) < LARGEST) & (np.abs(high) < LARGEST))
    row = first_row(wrong | targets.contradicted())
    if row is not None:
        what = "are missing or not finite"
        if low[row] > high[row]:
            what = "cross"
        elif not unlabeled[row]:
            what = "exclude the target in y"
        raise ValueError(
            f"label_bounds {what} in row {row} (from {low[row]:.6g} to {high[row]:.6g}). Without "
            "bounds of all unknown targets, two regressors have no worst case: pass "
            "label_bounds=(low, high) that hold for all rows, or one such pair for each row."
        )
    targets = targets.with_equal_bounds_known()
    return targets.labels(), targets.assumptions()


def _target_bounds(bounds: Any, n: int) -> tuple[Vector, Vector]:
    """Return lower and upper bounds of all targets, NaN where none are given."""
    given = np.full(2, np.nan) if bounds is None else np.asarray(bounds, dtype=np.float64)
    if given.shape not in ((2,), (n, 2)):
        raise ValueError(
            f"label_bounds has shape {given.shape}, but (2,) or ({n}, 2) is needed: lower and "
            "upper bound of the unknown targets."
        )
    low, high = np.broadcast_to(given, (n, 2)).T
    return low, high
