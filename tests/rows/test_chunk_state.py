"""What is kept of chunks: in this process, and by Dask."""

import operator
from itertools import pairwise

import dask
import dask.array as da
import numpy as np
import pytest

from neverworse.rows import DenseRows
from neverworse.rows._chunk_state import LocalChunkState, add_pairs
from neverworse.rows._dask import DaskRows
from neverworse.rows._dask_chunk_state import DaskChunkState
from neverworse.rows._dask_engine import Engine, task_of

SIZES = (3, 0, 4, 1)  # an empty chunk, too
EDGES = np.cumsum([0, *SIZES])
VALUES = 10.0 * np.arange(EDGES[-1])
PARTS = [VALUES[lo:hi] for lo, hi in pairwise(EDGES)]


def local(parts):
    return LocalChunkState(list(parts))


def in_dask(parts):
    tasks = [task_of(part.copy, "part") for part in parts]
    return DaskChunkState(Engine(), tasks, [()] * len(tasks))


kinds = pytest.mark.parametrize("make", [local, in_dask])


@pytest.fixture(autouse=True, params=["threads", "synchronous"])
def scheduler(request):
    with dask.config.set(scheduler=request.param):
        yield


def shifted_sum(part, other, shift, factor=1.0):
    return factor * (part + other + shift).sum()


def sum_and_size(part):
    return part.sum(), part.size


def in_chunks(X):
    return DaskRows(da.from_array(X, chunks=(SIZES, -1)))


def values_of(rows, numbers):
    assert rows.n_rows == len(numbers.numbers if isinstance(numbers, Numbers) else numbers)
    return numbers.numbers if isinstance(numbers, Numbers) else numbers


def first(part):
    return part[:1]


def at(part, indices):
    return part[indices]


def in_two_rows(part, indices):
    return np.stack([part[indices], -part[indices]])


@kinds
def test_map(make):
    kept, other = make(PARTS), make([2.0 * part for part in PARTS])
    found = kept.map(shifted_sum, 1.0, also=(other,))
    assert found == [float((3.0 * part + 1.0).sum()) for part in PARTS]


@kinds
def test_map_of_chosen_chunks(make):
    kept, other = make(PARTS), make(PARTS)
    found = kept.map(shifted_sum, 0.0, also=(other,), chosen=[0, 3], own=[(2.0,), (-1.0,)])
    assert found == [4.0 * PARTS[0].sum(), -2.0 * PARTS[3].sum()]


@kinds
def test_every_chunk_has_arguments_of_its_own(make):
    with pytest.raises(ValueError, match="zip"):
        make(PARTS).map(at, own=[(np.array([0]),)])


@kinds
def test_reduce(make):
    kept = make(PARTS)
    assert kept.reduce(sum_and_size, add_pairs) == (VALUES.sum(), VALUES.size)
    assert kept.reduce(shifted_sum, operator.add, 1.0, also=(kept,)) == (2.0 * VALUES + 1.0).sum()


@kinds
def test_reduce_keeps_the_order(make):
    found = make(PARTS).reduce(list, operator.add)
    assert found == VALUES.tolist()


def test_keep_only_frees_memory_of_this_process_only():
    kept = local(PARTS)
    assert [len(one) for one in kept.keep_only(first).objects] == [1, 0, 1, 1]
    far = in_dask(PARTS)
    assert far.keep_only(first) is far


@pytest.mark.parametrize("indices", [[0, 2, 3, 6, 7], [7], [1, 1, 4], range(8), []])
@pytest.mark.parametrize("place", [DenseRows, in_chunks])
def test_pick(place, indices):
    indices = np.array(indices, dtype=np.intp)
    rows = place(np.zeros((8, 2)))
    kept = rows.keep(values_of, known=(Numbers(VALUES),))
    np.testing.assert_array_equal(rows.pick(at, kept, indices), VALUES[indices])
    found = rows.pick(in_two_rows, kept, indices)
    np.testing.assert_array_equal(found, [VALUES[indices], -VALUES[indices]])


@pytest.mark.parametrize("place", [DenseRows, in_chunks])
def test_what_is_kept_can_be_asked(place):
    rows = place(np.zeros((8, 2)))
    kept = rows.keep(values_of, known=(Numbers(VALUES),))
    found = rows.ask(shifted_sum, (kept, kept), 1.0)
    assert sum(found) == (2.0 * VALUES + 1.0).sum()
    assert rows.ask_and_combine(sum_and_size, add_pairs, (kept,)) == (VALUES.sum(), 8)
    assert len(rows.chunk_starts) == len(found)


class Numbers:
    """Numbers of rows, that belong to chunks."""

    def __init__(self, numbers):
        self.numbers = numbers

    def at(self, rows):
        return self.numbers[rows]


def test_rows_that_are_placed_and_kept():
    X = np.arange(16.0).reshape(8, 2)
    rows = DaskRows(da.from_array(X, chunks=(SIZES, -1)))
    numbers = Numbers(np.arange(8.0))
    placed = rows.scatter(numbers)
    assert placed.map(len) == list(SIZES)
    kept = rows.keep(scored, 2.0, known=(numbers,), kept=(placed,))
    expected = 2.0 * X.sum(axis=1) + np.arange(8.0) ** 2
    np.testing.assert_array_equal(np.concatenate(kept.map(np.copy)), expected)
    assert rows.fold(total, operator.add, kept=(placed, kept)) == np.arange(8.0) @ expected


def scored(rows, factor, numbers, placed):
    return factor * rows.scores(np.ones(2)) + numbers * placed


def total(rows, placed, kept):
    assert rows.n_rows == len(kept)
    return float(placed @ kept)
