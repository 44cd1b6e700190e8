"""Compact forms of arrays, to send or to keep: most weights and soft labels are one of two numbers.

A row of weight one, or a label of zero or one, then takes a bit instead of eight bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Indices
from neverworse.rows._blocks import narrowed

NUMBERS_PER_EXCEPTION = 16  # at most one in this many numbers may be stored as an exception
SMALL = 1024  # arrays of fewer numbers are left as they are


@dataclass(frozen=True)
class Packed:
    """A compact form of something: ``restore(*parts)`` returns it."""

    restore: Callable[..., Any]
    parts: tuple[Any, ...]


def pack(value: Any) -> Any:
    """Return a compact form of an array (alone, in a tuple or in a data class) if there is one."""
    if isinstance(value, tuple):
        return tuple(map(pack, value))
    if is_dataclass(value) and not isinstance(value, type | Packed):
        values = [pack(getattr(value, one.name)) for one in fields(value)]
        return Packed(_of_fields, (type(value), *values))
    if not isinstance(value, np.ndarray) or value.size < SMALL or value.dtype.kind not in "biuf":
        return value
    sample = value.flat[:: value.size // SMALL]  # without a copy of columns
    found, counts = np.unique(sample, return_counts=True)
    common = np.resize(np.argsort(-counts, kind="stable")[:2], 2)  # twice the same if there is one
    share = counts[common].sum() / sample.size
    if share * NUMBERS_PER_EXCEPTION >= NUMBERS_PER_EXCEPTION - 2:  # a sample is not exact
        flat = value.ravel()
        first, second = (_equals(flat, found[k]) for k in common)
        where = np.flatnonzero(~(first | second))
        if len(where) * NUMBERS_PER_EXCEPTION <= flat.size:
            parts = (value.shape, found[common], np.packbits(second), where, flat[where])
            return Packed(_of_two_values, parts)
    narrow = narrowed(value) if narrowed(sample) is not sample else value
    return value if narrow is value else Packed(np.asarray, (narrow, np.float64))


def _equals(array: AnyArray, value: Any) -> AnyArray:
    return np.isnan(array) if np.isnan(value) else array == value


def _of_two_values(
    shape: tuple[int, ...], values: AnyArray, bits: AnyArray, where: Indices, exceptions: AnyArray
) -> AnyArray:
    array = values[np.unpackbits(bits, count=math.prod(shape))]
    array[where] = exceptions
    return array.reshape(shape)


def _of_fields(kind: type, *values: Any) -> Any:
    return kind(*map(unpack, values))


def unpack(value: Any) -> Any:
    """Return what was packed."""
    if isinstance(value, tuple):
        return tuple(map(unpack, value))
    return value.restore(*value.parts) if isinstance(value, Packed) else value
