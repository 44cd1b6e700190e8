"""What is kept of chunks: in this process, and by Dask."""

import operator

import dask
import dask.array as da
import numpy as np
import pytest

from neverworse.rows import ChunkedRows, DaskRows, DenseRows

SIZES = (3, 0, 4, 1)  # an empty chunk, too
EDGES = np.cumsum([0, *SIZES])
VALUES = 10.0 * np.arange(EDGES[-1])
PARTS = np.split(VALUES, EDGES[1:-1])
X = np.arange(16.0).reshape(8, 2)


class LocalRows(ChunkedRows):
    """Chunks of an array, in this process."""

    def __init__(self, X):
        super().__init__(SIZES, X.shape[1])
        self.chunks = np.split(X, EDGES[1:-1])

    def map_chunks(self, verb, chosen, arguments):
        both = zip(chosen, arguments, strict=True)
        return [verb(DenseRows(self.chunks[k]), *own) for k, own in both]


def in_dask(X):
    return DaskRows(da.from_array(X, chunks=(SIZES, -1)))


chunked = pytest.mark.parametrize("place", [LocalRows, in_dask])
anywhere = pytest.mark.parametrize("place", [DenseRows, LocalRows, in_dask])


@pytest.fixture(autouse=True, params=["threads", "synchronous"])
def scheduler(request):
    with dask.config.set(scheduler=request.param):
        yield


class Numbers:
    """Numbers of rows, that belong to chunks."""

    def __init__(self, numbers):
        self.numbers = numbers

    def at(self, rows):
        return self.numbers[rows]


def shifted_sum(part, other, shift, factor=1.0):
    return factor * (part + other + shift).sum()


def values_of(rows, numbers):
    numbers = numbers.numbers if isinstance(numbers, Numbers) else numbers
    assert rows.n_rows == len(numbers)
    return numbers.sum(), numbers


@chunked
def test_every_chunk_is_asked(place):
    rows = place(X)
    kept, other = rows.scatter(Numbers(VALUES)), rows.scatter(Numbers(2.0 * VALUES))
    found = [*rows.map_state(shifted_sum, (kept, other), 1.0)]
    assert found == [float((3.0 * part + 1.0).sum()) for part in PARTS]
    found = [*rows.map_state(shifted_sum, (kept, other), known=(Numbers(VALUES),))]
    assert found == [float(4.0 * part.sum()) for part in PARTS]


@anywhere
def test_what_is_kept_can_be_asked(place):
    rows = place(X)
    sums, kept = rows.keep(values_of, known=(Numbers(VALUES),))
    assert sum(sums) == VALUES.sum()
    found = [*rows.map_state(shifted_sum, (kept, kept), 1.0)]
    assert sum(found) == (2.0 * VALUES + 1.0).sum()
    assert len(rows.chunk_starts) == len(found)


@chunked
def test_rows_that_are_placed_and_kept(place):
    rows, numbers = place(X), Numbers(np.arange(8.0))
    placed = rows.scatter(numbers)
    assert [*rows.map_state(len, (placed,))] == list(SIZES)
    found, kept = rows.keep(scored, 2.0, known=(numbers,), kept=(placed,))
    expected = 2.0 * X.sum(axis=1) + np.arange(8.0) ** 2
    assert found == list(SIZES)
    np.testing.assert_array_equal(np.concatenate([*rows.map_state(np.copy, (kept,))]), expected)
    assert rows.fold(total, operator.add, kept=(placed, kept)) == np.arange(8.0) @ expected


def scored(rows, factor, numbers, placed):
    return rows.n_rows, factor * rows.scores(np.ones(2)) + numbers * placed


def total(rows, placed, kept):
    assert rows.n_rows == len(kept)
    return float(placed @ kept)
