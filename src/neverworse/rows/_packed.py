"""Small forms of arrays, to send or to keep: most weights and soft labels are one of two numbers.

A row of weight one, or a label of zero or one, is worth a bit and not eight bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from neverworse._typing import AnyArray, Indices

FEW = 16  # at most one in this many numbers may be another than the two
SMALL = 1024  # arrays of fewer numbers are sent as they are


@dataclass(frozen=True)
class Packed:
    """An array of two values, and a few others.

    Attributes
    ----------
    shape : tuple of int
    values : array of shape (2,)
    bits : array of uint8
        Which of the two values each number is.
    others : array of int
        Where other numbers are.
    exact : array
        These numbers.
    """

    shape: tuple[int, ...]
    values: AnyArray
    bits: AnyArray
    others: Indices
    exact: AnyArray

    def unpack(self) -> AnyArray:
        """Return the array."""
        size = int(np.prod(self.shape))
        array = self.values[np.unpackbits(self.bits, count=size)]
        array[self.others] = self.exact
        return array.reshape(self.shape)


@dataclass(frozen=True)
class PackedFields:
    """A data class whose arrays are packed.

    Attributes
    ----------
    kind : type
    fields : dict
    """

    kind: type
    fields: dict[str, Any]

    def unpack(self) -> Any:
        """Return the object."""
        return self.kind(**{name: unpack(value) for name, value in self.fields.items()})


@dataclass(frozen=True)
class Sparse:
    """An array of one value, and a few others: labels of which most are missing.

    Attributes
    ----------
    size : int
    value : array of shape (1,)
    others : array of int
        Where other values are.
    exact : array
        These values.
    """

    size: int
    value: AnyArray
    others: Indices
    exact: AnyArray

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
    if FEW * len(others) > array.size:
        return array
    return Sparse(array.size, value, others, array[others])


def pack(value: Any) -> Any:
    """Return a small form of an array (alone, in a tuple or in a data class) if there is one."""
    if isinstance(value, tuple):
        return tuple(pack(one) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
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
    found, counts = np.unique(flat[:: flat.size // SMALL], return_counts=True)
    values = np.resize(found[np.argsort(counts)[-2:]], 2)  # twice the same, if it is the only one
    second = flat == values[1]
    others = np.flatnonzero(~second & (flat != values[0]))
    if FEW * len(others) > flat.size:
        return value
    return Packed(value.shape, values, np.packbits(second), others, flat[others])


def unpack(value: Any) -> Any:
    """Return what was packed."""
    if isinstance(value, tuple):
        return tuple(unpack(one) for one in value)
    return value.unpack() if isinstance(value, Packed | PackedFields | Sparse) else value
