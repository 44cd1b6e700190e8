"""Compact forms of arrays, to send or to keep: most weights and soft labels are one of two numbers.

A row of weight one, or a label of zero or one, then takes a bit instead of eight bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Indices

NUMBERS_PER_EXCEPTION = 16  # at most one in this many numbers may be stored as an exception
SMALL = 1024  # arrays of fewer numbers are left as they are


@dataclass(frozen=True)
class Packed:
    """An array of two values and a few exceptions; or of float64 numbers that float32 holds."""

    shape: tuple[int, ...]
    values: AnyArray  # two, or all of them
    bits: AnyArray | None  # uint8: which of two values each number is
    where: Indices  # of the exceptions, in the flat array
    exceptions: AnyArray

    def unpack(self) -> AnyArray:
        if self.bits is None:
            return self.values.astype(np.float64)
        array = self.values[np.unpackbits(self.bits, count=int(np.prod(self.shape)))]
        array[self.where] = self.exceptions
        return array.reshape(self.shape)


@dataclass(frozen=True)
class PackedFields:
    """A data class whose arrays are packed."""

    kind: type
    fields: dict[str, Any]

    def unpack(self) -> Any:
        return self.kind(**{name: unpack(value) for name, value in self.fields.items()})


def pack(value: Any) -> Any:
    """Return a compact form of an array (alone, in a tuple or in a data class) if there is one."""
    if isinstance(value, tuple):
        return tuple(pack(one) for one in value)
    if is_dataclass(value) and not isinstance(value, type | Packed | PackedFields):
        packed = {one.name: pack(getattr(value, one.name)) for one in fields(value)}
        return PackedFields(type(value), packed)
    if not isinstance(value, np.ndarray) or value.size < SMALL or value.dtype.kind not in "biuf":
        return value
    flat = value.ravel()
    sample = flat[:: flat.size // SMALL]
    found, counts = np.unique(sample, return_counts=True)
    common = np.resize(np.argsort(-counts, kind="stable")[:2], 2)  # twice the same if there is one
    share = counts[common].sum() / sample.size
    if share * NUMBERS_PER_EXCEPTION >= NUMBERS_PER_EXCEPTION - 2:  # a sample is not exact
        first, second = (_equals(flat, found[k]) for k in common)
        where = np.flatnonzero(~(first | second))
        if len(where) * NUMBERS_PER_EXCEPTION <= flat.size:
            bits = np.packbits(second)
            return Packed(value.shape, found[common], bits, where, flat[where])
    return _narrow(value) if _narrow(sample) is not sample else value


def _equals(array: AnyArray, value: Any) -> AnyArray:
    return np.isnan(array) if np.isnan(value) else array == value


@np.errstate(over="ignore", invalid="ignore")
def _narrow(array: AnyArray) -> Any:
    """Return float64 numbers in half the bytes, if that loses nothing."""
    if array.dtype != np.float64:
        return array
    narrow = array.astype(np.float32)
    if not (narrow == array).all():
        return array
    return Packed(array.shape, narrow, None, np.empty(0, np.intp), narrow[:0])


def unpack(value: Any) -> Any:
    """Return what was packed."""
    if isinstance(value, tuple):
        return tuple(unpack(one) for one in value)
    return value.unpack() if isinstance(value, Packed | PackedFields) else value
