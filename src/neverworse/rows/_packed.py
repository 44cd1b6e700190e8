"""Small forms of arrays, to send or to keep: most weights and soft labels are one of two numbers.

A row of weight one, or a label of zero or one, is worth a bit and not eight bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Indices

NUMBERS_PER_EXCEPTION = 16  # at most one in this many numbers may be another than the two
SMALL = 1024  # arrays of fewer numbers are sent as they are


@dataclass(frozen=True)
class Packed:
    """An array of two values, and a few others."""

    shape: tuple[int, ...]
    values: AnyArray  # (2,)
    bits: AnyArray  # uint8: which of the two values each number is
    others: Indices  # where other numbers are
    exact: AnyArray  # these numbers

    def unpack(self) -> AnyArray:
        """Return the array."""
        size = int(np.prod(self.shape))
        array = self.values[np.unpackbits(self.bits, count=size)]
        array[self.others] = self.exact
        return array.reshape(self.shape)


@dataclass(frozen=True)
class Narrow:
    """An array of numbers that single precision holds exactly."""

    array: AnyArray

    def unpack(self) -> AnyArray:
        """Return the array."""
        return self.array.astype(np.float64)


@dataclass(frozen=True)
class PackedFields:
    """A data class whose arrays are packed."""

    kind: type
    fields: dict[str, Any]

    def unpack(self) -> Any:
        """Return the object."""
        return self.kind(**{name: unpack(value) for name, value in self.fields.items()})


@dataclass(frozen=True)
class Sparse:
    """An array of one value, and a few others: labels of which most are missing."""

    size: int
    value: AnyArray  # (1,)
    others: Indices  # where other values are
    exact: AnyArray  # these values

    def unpack(self) -> AnyArray:
        """Return the array."""
        array = np.repeat(self.value, self.size)
        array[self.others] = self.exact
        return array


def sparsely(array: AnyArray) -> AnyArray | Sparse:
    """Return a vector of numbers as one value and others, if these are few."""
    if array.size < SMALL:
        return array
    found, counts = np.unique(array[:: array.size // SMALL], return_counts=True)
    value = found[[counts.argmax()]]
    same = np.isnan(array) if value.dtype.kind == "f" and np.isnan(value[0]) else array == value[0]
    others = np.flatnonzero(~same)
    if NUMBERS_PER_EXCEPTION * len(others) > array.size:
        return array
    return Sparse(array.size, value, others, array[others])


def pack(value: Any) -> Any:
    """Return a small form of an array (alone, in a tuple or in a data class) if there is one."""
    if isinstance(value, tuple):
        return tuple(pack(one) for one in value)
    if is_dataclass(value) and not isinstance(value, type | Packed | Narrow | PackedFields):
        packed = {one.name: pack(getattr(value, one.name)) for one in fields(value)}
        return PackedFields(type(value), packed)
    if not isinstance(value, np.ndarray) or value.size < SMALL:
        return value
    flat = value.ravel()
    if value.dtype == np.bool_:
        none = np.empty(0, np.intp)
        return Packed(value.shape, np.array([False, True]), np.packbits(flat), none, flat[none])
    if value.dtype != np.float64:
        return value
    sample = flat[:: flat.size // SMALL]
    found, counts = np.unique(sample, return_counts=True)
    most = np.argsort(counts)[-2:]
    if (
        NUMBERS_PER_EXCEPTION * counts[most].sum() >= (NUMBERS_PER_EXCEPTION - 2) * sample.size
    ):  # a sample is not exact
        values = np.resize(found[most], 2)  # twice the same, if it is the only one
        second = flat == values[1]
        others = np.flatnonzero(~second & (flat != values[0]))
        if NUMBERS_PER_EXCEPTION * len(others) <= flat.size:
            return Packed(value.shape, values, np.packbits(second), others, flat[others])
    return _narrow(value) if _narrow(sample) is not sample else value


@np.errstate(over="ignore", invalid="ignore")
def _narrow(array: AnyArray) -> Any:
    narrow = array.astype(np.float32)
    return Narrow(narrow) if (narrow == array).all() else array


def unpack(value: Any) -> Any:
    """Return what was packed."""
    if isinstance(value, tuple):
        return tuple(unpack(one) for one in value)
    return value.unpack() if isinstance(value, Packed | Narrow | PackedFields | Sparse) else value
