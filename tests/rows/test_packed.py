import pickle

import numpy as np
import pytest

from neverworse.rows import RowWeigh
from neverworse.rows._packed import Packed, pack, unpack

RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 2, 5000).astype(np.float64)
FEW_OTHERS = np.where(RNG.random(5000) < 0.02, RNG.random(5000), BITS)
ARRAYS = {
    "constant": np.ones(5000),
    "two values": BITS,
    "two odd values": 0.1 + 1e-17 * BITS + BITS,
    "a few others": FEW_OTHERS,
    "several rows": FEW_OTHERS.reshape(5, 1000),
    "strided": FEW_OTHERS[::2],
    "transposed": FEW_OTHERS.reshape(1000, 5).T,
    "signed zeros": -0.0 * BITS + BITS,
    "not finite": np.where(BITS > 0, np.inf, BITS),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_packed_arrays_come_back_as_they_were(name):
    array = ARRAYS[name]
    packed = pack(array)
    assert isinstance(packed, Packed)
    assert len(pickle.dumps(packed)) < 0.5 * array.nbytes
    np.testing.assert_array_equal(unpack(packed), array)


@pytest.mark.parametrize("value", [RNG.random(5000), np.ones(3), np.arange(5000), None, "text"])
def test_what_would_not_be_smaller_is_left_alone(value):
    assert pack(value) is value


def test_numbers_of_single_precision_take_half_the_bytes():
    array = RNG.random(5000).astype(np.float32).astype(np.float64).reshape(50, 100)
    packed = pack(array)
    assert isinstance(packed, Packed)
    assert len(pickle.dumps(packed)) < 0.51 * array.nbytes
    assert unpack(packed).dtype == np.float64
    np.testing.assert_array_equal(unpack(packed), array)
    array[49, 99] = 0.1  # where a sample may not look
    assert pack(array) is array


def test_weights_that_depend_on_scores():
    weigh = RowWeigh(np.multiply, (BITS,))
    outer = RowWeigh(np.add, (weigh, None))
    packed = pack((outer, 1.5))
    assert len(pickle.dumps(packed)) < BITS.nbytes / 20
    back = unpack(packed)
    np.testing.assert_array_equal(back[0].known[0].known[0], BITS)
    assert back[0].known[1] is None
    assert back[1] == 1.5


FEW_KNOWN = np.where(RNG.random(5000) < 0.02, BITS, -1.0)


@pytest.mark.parametrize(
    "labels",
    [FEW_KNOWN, FEW_KNOWN.astype(np.int8), np.where(FEW_KNOWN < 0.0, np.nan, FEW_KNOWN), BITS == 2],
)
def test_labels_of_which_most_are_missing(labels):
    found = pack(labels)
    assert isinstance(found, Packed)
    assert len(pickle.dumps(found)) < max(0.2 * labels.nbytes, 3000)
    assert unpack(found).dtype == labels.dtype
    np.testing.assert_array_equal(unpack(found), labels)


def test_fields_of_data_classes():
    known = RowWeigh(np.multiply, (BITS > 0.0, FEW_OTHERS))
    packed = pack(known)
    assert len(pickle.dumps(packed)) < 0.1 * (BITS.nbytes + 5000)
    np.testing.assert_array_equal(unpack(packed).known[0], BITS > 0.0)
    np.testing.assert_array_equal(unpack(packed).known[1], FEW_OTHERS)
