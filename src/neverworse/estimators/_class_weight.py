"""Weights of classes, as weights of their labeled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

from neverworse._typing import AnyArray, Indices, Mask, Vector
from neverworse.estimators._row_weights import LARGEST, SMALLEST

CLASS_WEIGHT: list[Any] = [StrOptions({"balanced"}), dict, None]


def class_weights(
    class_weight: Any, classes: AnyArray, codes: Indices, unlabeled: Mask, weights: Vector | None
) -> Vector | None:
    """Return what the weight of a labeled row is multiplied by, for each class.

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        "balanced": the labeled rows of every class weigh the same together, and all of them as
        much as before. A dict has the factors of classes; others have 1.
    classes : array of shape (n_classes,)
    codes : array of shape (n_rows,)
        Position of the class of each row; anything where `unlabeled`.
    unlabeled : boolean array of shape (n_rows,)
    weights : array of shape (n_rows,) or None
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        known = None if weights is None else weights[~unlabeled]
        sums = np.bincount(codes[~unlabeled], known, len(classes))
        balanced: Vector = sums.sum() / (len(classes) * sums)
        return balanced
    for name, factor in class_weight.items():
        try:
            usable = SMALLEST <= float(factor) <= LARGEST
        except (TypeError, ValueError):
            usable = False
        if not usable:
            raise ValueError(
                f"class_weight is {factor!r} for class {name!r}, but has to be a number between "
                f"{SMALLEST:.0e} and {LARGEST:.0e}. To leave a class out, leave out its rows."
            )
    names = classes.tolist()
    others = [name for name in names if name not in class_weight]
    unknown = [name for name in class_weight if name not in names]
    if unknown and others:  # as in scikit-learn: a fold without a class is no mistake
        raise ValueError(
            f"class_weight has the class {unknown[0]!r}, of which there is no label, and none for "
            f"{others[0]!r}. The classes are {', '.join(map(repr, names))}."
        )
    return np.array([class_weight.get(name, 1.0) for name in names], dtype=np.float64)


def weighted_by_class(
    factors: Vector | None, codes: Indices, unlabeled: Mask, weights: Vector | None
) -> Vector | None:
    """Return weights of rows, those of labeled ones multiplied by the factor of their class."""
    if factors is None:
        return weights
    of_rows = np.where(unlabeled, 1.0, factors[codes])
    return of_rows if weights is None else weights * of_rows
