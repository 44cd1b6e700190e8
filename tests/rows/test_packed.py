import pickle

import numpy as np
import pytest

from neverworse.rows._packed import Packed, pack, unpack
from neverworse.rows._weigh import RowWeigh

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


@pytest.mark.parametrize("value", [RNG.random(5000), np.ones(3), np.ones(5000, int), None, "text"])
def test_what_would_not_be_smaller_is_left_alone(value):
    assert pack(value) is value


def test_weights_that_depend_on_scores():
    weigh = RowWeigh(np.multiply, (BITS,))
    outer = RowWeigh(np.add, (weigh, None))
    packed = pack((outer, 1.5))
    assert len(pickle.dumps(packed)) < BITS.nbytes / 40
    back = unpack(packed)
    np.testing.assert_array_equal(back[0].known[0].known[0], BITS)
    assert back[0].known[1] is None
    assert back[1] == 1.5
