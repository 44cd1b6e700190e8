"""Encoders of categories from a file: what they say about their features must go together.

scikit-learn's `OneHotEncoder` writes where its attributes tell it to, through compiled code that
does not look whether there is such a place.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.preprocessing import OneHotEncoder

from neverworse._typing import AnyArray
from neverworse.tables._archive import ModelFileError


def check_encoders(model: Any) -> None:
    """Raise a `ModelFileError` if an encoder in a model would write outside of its features."""
    for part in _parts(model):
        if isinstance(part, OneHotEncoder) and hasattr(part, "categories_"):
            try:
                agrees = _agrees(part)
            except (AttributeError, IndexError, TypeError, ValueError):
                agrees = False
            if not agrees:
                raise ModelFileError("the categories of a OneHotEncoder do not go together.")


def _parts(model: Any) -> Iterator[Any]:
    """Yield all objects of a model once."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, str | bytes | int | float | complex | None):
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list | tuple | set):
            waiting += part
        elif isinstance(part, np.ndarray):
            waiting += part.ravel().tolist() if part.dtype == object else []
        else:
            waiting += getattr(part, "__dict__", {}).values()


def _agrees(encoder: Any) -> bool:
    """Whether every level of every feature has a place among the columns."""
    levels, places = encoder.categories_, encoder._n_features_outs
    dropped = encoder._drop_idx_after_grouping
    dropped = [None] * len(levels) if dropped is None else dropped
    grouped = encoder._infrequent_enabled
    rare = encoder._infrequent_indices if grouped else [None] * len(levels)
    groups = encoder._default_to_infrequent_mappings if grouped else [None] * len(levels)
    if type(levels) is not list or type(places) is not list or type(grouped) is not bool:
        return False
    one_each = zip(levels, places, dropped, rare, groups, strict=True)
    return all(_feature_agrees(*feature) for feature in one_each)


def _feature_agrees(levels: AnyArray, n_places: Any, dropped: Any, rare: Any, groups: Any) -> bool:
    if type(n_places) is not int or levels.ndim != 1 or not _in_order(levels):
        return False
    n_groups = len(levels)
    if (rare is None) != (groups is None):
        return False
    if rare is not None:
        n_groups -= len(rare) - 1
        if len(groups) != len(levels) or not _within(groups, n_groups):
            return False
        if not len(rare) or not _within(rare, len(levels)):
            return False
    if dropped is None:
        return n_places == n_groups
    return n_places == n_groups - 1 and _within(np.array([dropped]), n_groups)


def _in_order(levels: AnyArray) -> bool:
    """Whether numbers can be searched; words are looked up, so they need no order."""
    if levels.dtype.kind not in "biufOUS":
        return False
    numbers = [level for level in levels.tolist() if isinstance(level, int | float)]
    if numbers and np.isnan(numbers[-1]):
        numbers.pop()
    return not np.isnan(numbers[:1]).any() and all(map(operator.lt, numbers, numbers[1:]))


def _within(numbers: AnyArray, n: int) -> bool:
    return numbers.dtype.kind in "iu" and bool(np.all((numbers >= 0) & (numbers < n)))
