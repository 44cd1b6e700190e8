import multiprocessing
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from neverworse.rows import DenseRows, SparseRows, as_rows
from neverworse.rows import _base as base
from neverworse.rows._blocks import single_threaded_blas
from tests.problems import with_cancelling_duplicates

# Name: rows, columns, how many parts (for threads) and blocks (for the cache) that makes.
SIZES = {
    "one row": (1, 3, 1, 1),
    "one column": (50, 1, 1, 1),
    "one block": (200, 7, 1, 1),
    "several blocks": (5000, 40, 1, 5),
    "several parts": (5000, 100, 5, 5),
    "narrow": (140_000, 8, 16, 18),
}
sizes = pytest.mark.parametrize("size", SIZES)
KINDS = {
    "dense": lambda X, shift=None: DenseRows(X, shift),
    "sparse": lambda X, shift=None: SparseRows(sparse.csr_array(X), shift),
}
kinds = pytest.mark.parametrize("kind", KINDS)
shifts = pytest.mark.parametrize("shifted", [False, True], ids=["as is", "shifted"])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of a quarter of the usual size, so that few rows have several."""
    monkeypatch.setattr(base, "BLOCK_BYTES", 2**19)


def integers(size):
    """Small integers, most of them zero: no sum of their products is ever rounded."""
    n, d, _, _ = SIZES[size]
    rng = np.random.default_rng(n + d)
    return rng.integers(-6, 7, (n, d)) * (rng.random((n, d)) < 0.3).astype(np.float64)


def example(size, shifted):
    """X, a shift, the shifted rows, coefficients, and weights with an exact square root."""
    X = integers(size)
    rng = np.random.default_rng(7)
    shift = rng.integers(-3, 4, X.shape[1]).astype(np.float64) if shifted else None
    E = X if shift is None else X - shift
    coef = rng.integers(-4, 5, X.shape[1]).astype(np.float64)
    weights = rng.choice([0.0, 0.25, 1.0, 4.0, 9.0], len(X))
    return X, shift, E, coef, weights


def normal(size, kind="dense"):
    n, d, _, _ = SIZES[size]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X if kind == "dense" else np.where(rng.random((n, d)) < 0.1, X, 0.0)


@sizes
def test_sizes_are_what_they_say(size):
    n, d, n_parts, n_blocks = SIZES[size]
    rows = DenseRows(np.zeros((n, d)))
    assert (rows.n_rows, rows.n_columns) == (n, d)
    parts = rows.parts()
    assert len(parts) == n_parts
    assert (n * d >= 2**18) == (n_parts > 1)
    blocks = [piece for part in parts for piece in rows._slices(*part)]
    assert len(blocks) == n_blocks
    np.testing.assert_array_equal(np.concatenate([np.arange(n)[b] for b in blocks]), np.arange(n))


# The verbs, without rounding


@sizes
@kinds
@shifts
@pytest.mark.parametrize("weighted", [False, True])
def test_gram(size, kind, shifted, weighted):
    X, shift, E, _, weights = example(size, shifted)
    gram, total = KINDS[kind](X, shift).gram(weights if weighted else None)
    s = weights if weighted else np.ones(len(X))
    np.testing.assert_array_equal(gram, (E * s[:, None]).T @ E)
    np.testing.assert_array_equal(total, s @ E)
    assert gram.dtype == total.dtype == np.float64


@sizes
@kinds
@shifts
def test_scores_are_those_of_the_unshifted_rows(size, kind, shifted):
    X, shift, _, coef, _ = example(size, shifted)
    scores = KINDS[kind](X, shift).scores(coef, 2.5)
    np.testing.assert_array_equal(scores, X @ coef + 2.5)
    assert scores.dtype == np.float64
    np.testing.assert_array_equal(KINDS[kind](X, shift).scores(coef), X @ coef)


@sizes
@kinds
@shifts
def test_scores_and_sum(size, kind, shifted):
    X, shift, E, coef, weights = example(size, shifted)

    def weigh(t, rows):
        return weights[rows] * (t < 0.0)

    scores, summed, total = KINDS[kind](X, shift).scores_and_sum(coef, 0.5, weigh)
    t = X @ coef + 0.5
    x = weights * (t < 0.0)
    np.testing.assert_array_equal(scores, t)
    np.testing.assert_array_equal(summed, x @ E)
    assert total == x.sum()


@sizes
@kinds
@shifts
def test_weighted_sum(size, kind, shifted):
    X, shift, E, _, weights = example(size, shifted)
    summed = KINDS[kind](X, shift).weighted_sum(weights - 1.0)
    np.testing.assert_array_equal(summed, (weights - 1.0) @ E)
    assert summed.dtype == np.float64


@sizes
@kinds
@shifts
def test_take(size, kind, shifted):
    X, shift, E, _, _ = example(size, shifted)
    rows = KINDS[kind](X, shift)
    indices = np.array([len(X) - 1, 0, len(X) // 2, 0])
    taken = rows.take(indices)
    np.testing.assert_array_equal(taken, E[indices])
    assert taken.dtype == np.float64
    taken[:] = 99.0  # the caller's own
    np.testing.assert_array_equal(rows.take(indices), E[indices])
    assert rows.take(np.array([], dtype=np.intp)).shape == (0, X.shape[1])


@sizes
@kinds
@shifts
def test_block(size, kind, shifted):
    X, shift, E, _, _ = example(size, shifted)
    rows = KINDS[kind](X, shift)
    for start, stop in [(0, len(X)), (0, 1), (len(X) // 2, len(X))]:
        np.testing.assert_array_equal(rows.block(start, stop), E[start:stop])
        assert rows.block(start, stop).dtype == np.float64


@kinds
def test_shifted_replaces_the_shift(kind):
    X = integers("one block")
    first, second = np.arange(7.0), np.full(7, -2.0)
    rows = KINDS[kind](X)
    once = rows.shifted(first)
    twice = once.shifted(second)
    assert type(once) is type(rows)
    assert rows.shift is None
    np.testing.assert_array_equal(rows.block(0, 200), X)
    np.testing.assert_array_equal(once.block(0, 200), X - first)
    np.testing.assert_array_equal(twice.block(0, 200), X - second)
    np.testing.assert_array_equal(twice.scores(first, 1.0), X @ first + 1.0)


# The verbs, with rounding


@sizes
@kinds
@shifts
def test_normal_numbers(size, kind, shifted):
    X = normal(size, kind)
    n, d = X.shape
    shift = np.linspace(-1.0, 1.0, d) if shifted else None
    E = X if shift is None else X - shift
    coef = np.random.default_rng(1).normal(size=d)
    s = np.random.default_rng(2).random(n)
    rows = KINDS[kind](X, shift)
    gram, total = rows.gram(s)
    precision = {"rtol": 0.0, "atol": 1e-13 * n}
    np.testing.assert_allclose(gram, (E * s[:, None]).T @ E, **precision)
    np.testing.assert_allclose(total, s @ E, **precision)
    np.testing.assert_allclose(rows.gram()[0], E.T @ E, **precision)
    np.testing.assert_allclose(rows.scores(coef, 0.1), X @ coef + 0.1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(rows.weighted_sum(s), s @ E, **precision)


# Number types and memory layouts


def strided_columns(X):
    wide = np.full((X.shape[0], 2 * X.shape[1]), 77, dtype=X.dtype)
    wide[:, ::2] = X
    return wide[:, ::2]


def strided_rows(X):
    tall = np.full((3 * X.shape[0], X.shape[1]), 77, dtype=X.dtype)
    tall[::3] = X
    return tall[::3]


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "X[:, ::2]": strided_columns,
    "X[::3]": strided_rows,
    "X[::-1]": lambda X: X[::-1].copy()[::-1],
}


@pytest.mark.parametrize("size", ["one block", "several parts"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8])
@pytest.mark.parametrize("layout", LAYOUTS)
@shifts
def test_dense_number_types_and_layouts(size, dtype, layout, shifted):
    X, shift, E, coef, weights = example(size, shifted)
    data = LAYOUTS[layout](X.astype(dtype))
    assert data.dtype == dtype
    rows = DenseRows(data, shift)
    gram, total = rows.gram(weights)
    np.testing.assert_array_equal(gram, (E * weights[:, None]).T @ E)
    np.testing.assert_array_equal(total, weights @ E)
    np.testing.assert_array_equal(rows.scores(coef, -1.0), X @ coef - 1.0)
    np.testing.assert_array_equal(rows.weighted_sum(weights), weights @ E)
    np.testing.assert_array_equal(rows.take(np.array([5, 2])), E[[5, 2]])
    assert gram.dtype == rows.take(np.array([0])).dtype == np.float64


@pytest.mark.parametrize("size", ["one block", "several parts"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
@shifts
def test_sparse_number_types(size, dtype, container, shifted):
    X, shift, E, coef, weights = example(size, shifted)
    rows = SparseRows(container(X.astype(dtype)), shift)
    for s in (None, weights):
        gram, total = rows.gram(s)
        ones = np.ones(len(X)) if s is None else s
        np.testing.assert_array_equal(gram, (E * ones[:, None]).T @ E)
        np.testing.assert_array_equal(total, ones @ E)
        assert gram.dtype == total.dtype == np.float64
    scores = rows.scores(coef, -1.0)
    np.testing.assert_array_equal(scores, X @ coef - 1.0)
    assert scores.dtype == np.float64
    np.testing.assert_array_equal(rows.weighted_sum(weights), weights @ E)
    np.testing.assert_array_equal(rows.take(np.array([5, 2])), E[[5, 2]])


@pytest.mark.parametrize("weighted", [False, True])
@kinds
@shifts
def test_float32_is_added_up_in_float64(kind, shifted, weighted):
    # One third as float32 has digits that its squares lose unless they are float64.
    X = np.full((1000, 2), np.float32(1 / 3))
    shift = np.array([1.0, 0.0]) if shifted else None
    third = float(np.float32(1 / 3))
    s = np.full(1000, 4.0) if weighted else None
    gram, total = KINDS[kind](X, shift).gram(s)
    factor = 4000.0 if weighted else 1000.0
    np.testing.assert_allclose(gram[1, 1], factor * third**2, rtol=1e-13)
    np.testing.assert_allclose(total[1], factor * third, rtol=1e-13)
    scores = KINDS[kind](X, shift).scores(np.array([0.0, third]))
    np.testing.assert_allclose(scores, third**2, rtol=1e-15)


def test_duplicate_and_unsorted_entries_of_a_sparse_matrix():
    data, indices = np.array([5.0, 1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 0, 1, 0])
    X = sparse.csr_array((data, indices, np.array([0, 3, 5])), shape=(2, 3))
    dense = np.array([[3.0, 0.0, 5.0], [4.0, 3.0, 0.0]])
    for rows in (SparseRows(X), SparseRows(X, np.zeros(3))):
        np.testing.assert_array_equal(rows.gram()[0], dense.T @ dense)
        np.testing.assert_array_equal(rows.gram(np.array([4.0, 1.0]))[1], [16.0, 3.0, 20.0])
        np.testing.assert_array_equal(rows.scores(np.array([1.0, 2.0, 3.0])), [18.0, 10.0])
        np.testing.assert_array_equal(rows.take(np.array([1, 0])), dense[::-1])
    np.testing.assert_array_equal(X.data, [5.0, 1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(X.indices, [2, 0, 0, 1, 0])


@pytest.mark.parametrize("large", [1e4, 1e16])
def test_duplicate_entries_that_cancel_leave_no_rounding_errors(large):
    rng = np.random.default_rng(0)
    X = with_cancelling_duplicates(rng.normal(size=(40, 3)), rng, large)
    given, coef, s = X.data.copy(), rng.normal(size=3), rng.random(40)
    rows, dense = SparseRows(X), X.toarray()
    np.testing.assert_array_equal(rows.block(0, 40), dense)
    np.testing.assert_allclose(rows.scores(coef), dense @ coef, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(rows.weighted_sum(s), s @ dense, rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(X.data, given)


@pytest.mark.parametrize("shift", [None, np.ones(3)], ids=["as is", "shifted"])
def test_sparse_matrix_without_entries(shift):
    rows = SparseRows(sparse.csr_array((5, 3)), shift)
    gram, total = rows.gram()
    expected = 0.0 if shift is None else 5.0
    np.testing.assert_array_equal(gram, np.full((3, 3), expected))
    np.testing.assert_array_equal(total, np.full(3, -expected))
    np.testing.assert_array_equal(rows.scores(np.arange(3.0), 0.5), np.full(5, 0.5))


def test_as_rows_picks_by_type_and_does_not_copy():
    X = integers("one block")
    dense = as_rows(X)
    assert type(dense) is DenseRows
    assert np.shares_memory(dense.block(0, 10), X)
    assert type(as_rows(sparse.csr_matrix(X))) is SparseRows
    csr = sparse.csr_array(X)
    assert np.shares_memory(as_rows(csr)._X.data, csr.data)


# Offset


def test_offset_without_shift_is_the_intercept():
    assert DenseRows(np.zeros((2, 2))).offset(np.array([3.0, 4.0]), 0.1) == 0.1


@pytest.mark.parametrize(
    ("coef", "shift", "intercept", "expected"),
    [
        ([1.0, 1.0, 1.0], [1e16, 1.0, -1e16], 0.5, 1.5),
        ([1e8, -1e8], [1e8 + 1, 1e8], 0.0, 1e8),
        ([1.0], [1e300], -1e300, 0.0),
        ([3.0, 1.0], [1e17, -3e17], 0.1, 0.1),
        ([2.0, 3.0], [5.0, 7.0], 1.0, 32.0),
    ],
)
@kinds
def test_offset_is_exact_where_terms_cancel(kind, coef, shift, intercept, expected):
    rows = KINDS[kind](np.zeros((2, len(coef))), np.array(shift))
    assert rows.offset(np.array(coef), intercept) == expected


def test_offset_is_correctly_rounded():
    rng = np.random.default_rng(0)
    for _ in range(20):
        coef, shift = rng.normal(size=(2, 30)) * 10.0 ** rng.integers(-8, 9, (2, 30))
        intercept = -float(coef @ shift)
        exact = Fraction(intercept)
        for c, s in zip(coef.tolist(), shift.tolist(), strict=True):
            exact += Fraction(c) * Fraction(s)
        offset = DenseRows(np.zeros((1, 30)), shift).offset(coef, intercept)
        assert offset == exact.numerator / exact.denominator
        assert offset != 0.0


@kinds
def test_scores_far_from_zero_keep_their_digits(kind):
    rng = np.random.default_rng(0)
    centred = rng.integers(-50, 50, (300, 3)) / 64.0  # exact beside 2**40
    far = np.array([2.0**40, -(2.0**40), 2.0**39])
    coef = rng.normal(size=3)
    intercept = -float(far @ coef)
    rest = DenseRows(np.zeros((1, 3)), far).offset(coef, intercept)
    scores = KINDS[kind](centred + far, far).scores(coef, intercept)
    np.testing.assert_allclose(scores, centred @ coef + rest, rtol=0, atol=1e-14)


# Nothing is written into the data


@kinds
@shifts
@pytest.mark.parametrize("size", ["one block", "several parts"])
def test_rows_are_only_read(kind, shifted, size):
    X, shift, _, coef, weights = example(size, shifted)
    data = X if kind == "dense" else sparse.csr_array(X)
    arrays = [X] if kind == "dense" else [data.data, data.indices, data.indptr]
    arrays += [coef, weights, *([] if shift is None else [shift])]
    before = [a.tobytes() for a in arrays]
    rows = DenseRows(data, shift) if kind == "dense" else SparseRows(data, shift)
    for array in arrays:
        array.flags.writeable = False  # whoever writes raises
    rows.gram()
    rows.gram(weights)
    rows.scores(coef, 1.0)
    rows.scores_and_sum(coef, 1.0, lambda t, part: weights[part] * t)
    rows.weighted_sum(weights)
    rows.take(np.array([0, 1]))[:] = 5.0
    rows.shifted(coef).gram(weights)
    assert [a.tobytes() for a in arrays] == before


# Threads


def blas_threads():
    return {lib["filepath"]: lib["num_threads"] for lib in threadpool_info()}


def forget_who_controls_blas():
    """Let any thread set limits: threadpoolctl 3.8 heeds one, until it leaves its context."""
    with threadpool_limits(None):
        pass


@pytest.fixture
def clean_blas():
    """The usual number of BLAS threads before and after, whatever the test does to it."""
    before = threadpool_info()
    forget_who_controls_blas()
    yield
    for lib in before:
        threadpool_limits({lib["filepath"]: lib["num_threads"]})
    forget_who_controls_blas()
    assert threadpool_info() == before


def everything(rows, weights):
    """All results of all verbs, bit by bit."""
    coef = np.random.default_rng(1).normal(size=rows.n_columns)
    results = [
        *rows.gram(),
        *rows.gram(weights),
        rows.scores(coef, 0.3),
        *rows.scores_and_sum(coef, 0.3, lambda t, part: weights[part] * np.maximum(t, 0.0)),
        rows.weighted_sum(weights),
    ]
    return [np.asarray(r).tobytes() for r in results]


@pytest.mark.parametrize("size", ["one block", "several blocks", "several parts", "narrow"])
@kinds
@shifts
def test_results_do_not_depend_on_the_number_of_threads(size, kind, shifted):
    X = normal(size, kind)
    rows = KINDS[kind](X, np.linspace(-1.0, 1.0, X.shape[1]) if shifted else None)
    weights = np.random.default_rng(3).random(len(X))
    default = everything(rows, weights)
    assert everything(rows, weights) == default
    for limit in (1, 2, 3):
        with threadpool_limits(limit):
            assert everything(rows, weights) == default


@pytest.mark.usefixtures("clean_blas")
@pytest.mark.parametrize("first_in_main", [True, False])
def test_calls_from_several_threads_at_once(first_in_main):
    X = normal("several parts")
    rows, weights = DenseRows(X), np.random.default_rng(3).random(len(X))
    with threadpool_limits(1):
        alone = everything(rows, weights)
    if first_in_main:
        assert everything(rows, weights) == alone
    before = blas_threads()
    with ThreadPoolExecutor(4) as executor:
        together = list(executor.map(lambda _: everything(rows, weights), range(12)))
        assert [result == alone for result in together] == [True] * 12
        assert blas_threads() == before
    assert blas_threads() == before


@pytest.mark.usefixtures("clean_blas")
def test_call_from_a_thread_after_a_call_from_another():
    X = normal("several parts")
    rows, weights = DenseRows(X), np.ones(len(X))
    here = everything(rows, weights)
    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(everything, rows, weights).result() == here


@pytest.mark.usefixtures("clean_blas")
def test_blas_threads_are_restored_whichever_thread_leaves_last():
    before = blas_threads()
    first_is_out, done = threading.Event(), threading.Event()
    second_is_in = threading.Event()

    def enter_first():
        with single_threaded_blas():
            second.start()
            second_is_in.wait(10)
        first_is_out.set()
        done.wait(10)  # alive, as a thread of a pool would be

    def leave_last():
        with single_threaded_blas():
            second_is_in.set()
            first_is_out.wait(10)
        done.set()

    first, second = threading.Thread(target=enter_first), threading.Thread(target=leave_last)
    first.start()
    first.join()
    second.join()
    assert blas_threads() == before


@pytest.mark.usefixtures("clean_blas")
def test_user_may_still_limit_blas_from_another_thread():
    rows = DenseRows(normal("several parts"))
    rows.gram()

    def limited():
        with threadpool_limits(1, user_api="blas"):
            return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}

    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(limited).result() == {1}


@pytest.mark.usefixtures("clean_blas")
def test_number_of_blas_threads_is_restored():
    rows = DenseRows(normal("several parts"))
    before = blas_threads()
    rows.gram()
    assert blas_threads() == before

    def fail(t, part):
        raise RuntimeError("in a thread")

    with pytest.raises(RuntimeError, match="in a thread"):
        rows.scores_and_sum(np.zeros(100), 0.0, fail)
    assert blas_threads() == before
    with threadpool_limits(1):
        limited = blas_threads()
        rows.gram()
        assert blas_threads() == limited
    assert blas_threads() == before


def test_many_small_parts(monkeypatch):
    monkeypatch.setattr(base, "SMALL", 1)
    monkeypatch.setattr(base, "BLOCK_BYTES", 8)  # 128 rows at once
    X = np.random.default_rng(0).integers(-5, 6, (5000, 3)).astype(np.float64)
    rows = DenseRows(X)
    parts = rows.parts()
    assert len(parts) == 16
    assert parts[0][0] == 0
    assert parts[-1][1] == 5000
    assert all(left[1] == right[0] for left, right in pairwise(parts))
    assert all((stop - start) % 128 == 0 for start, stop in parts[:-1])
    assert {len(list(rows._slices(*part))) for part in parts} == {2, 3}
    np.testing.assert_array_equal(rows.gram()[0], X.T @ X)
    np.testing.assert_array_equal(rows.scores(np.arange(3.0), 1.0), X @ np.arange(3.0) + 1.0)
    np.testing.assert_array_equal(rows.weighted_sum(X[:, 0]), X[:, 0] @ X)


def gram_in_child(connection, X):
    connection.send(DenseRows(X).gram()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_threads_work_in_a_forked_process():
    X = normal("several parts")
    expected = DenseRows(X).gram()[0]  # and the threads of this process have started
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=gram_in_child, args=(sender, X))
    process.start()
    try:
        assert receiver.poll(20.0), "the forked process hangs"
        np.testing.assert_array_equal(receiver.recv(), expected)
    finally:
        process.terminate()
        process.join()
        receiver.close()
        sender.close()
