"""Several parts at once: in order, and nothing goes on when the work is over."""

import threading
import time

import pytest
from threadpoolctl import threadpool_limits

from neverworse.rows import map_in_threads, read_ahead, single_threaded_blas
from neverworse.rows._blocks import in_streams


@pytest.fixture(autouse=True)
def no_threads_are_left():
    before = set(threading.enumerate())
    with threadpool_limits(2):
        yield
    assert set(threading.enumerate()) <= before | {
        thread for thread in threading.enumerate() if thread.name.startswith("neverworse_")
    }
    assert single_threaded_blas._inside == 0


def numbers(part):
    for number in range(part):
        time.sleep(0.002 * (part - number) / part)
        yield part, number


def test_items_come_in_the_order_of_the_parts():
    parts = [5, 1, 0, 7, 2]
    found = list(in_streams(parts, numbers))
    assert found == [(part, number) for part in parts for number in range(part)]
    assert list(in_streams([], numbers)) == []


def test_parts_are_worked_on_at_once():
    meeting = threading.Barrier(2, timeout=10)

    def meet(part):
        meeting.wait()
        yield part

    assert list(in_streams([1, 2, 3, 4], meet)) == [1, 2, 3, 4]


def test_work_uses_no_further_threads():
    def who(part):
        yield map_in_threads(lambda _: threading.get_ident(), range(4)), threading.get_ident()

    for found, own in in_streams(range(4), who):
        assert set(found) == {own}


def test_an_error_ends_all_parts():
    asked = []

    def work(part):
        for number in range(1000):
            asked.append(part)
            if part == 0 and number == 3:
                raise ZeroDivisionError("of this part")
            time.sleep(0.001)
            yield number

    with pytest.raises(ZeroDivisionError, match="of this part"):
        list(in_streams([0, 1, 2, 3, 4, 5], work))
    assert len(asked) < 1000
    assert 5 not in asked


def test_whoever_has_seen_enough_closes_the_stream():
    asked = []

    def work(part):
        for number in range(1000 if part else 3):
            asked.append(part)
            time.sleep(0.001)
            yield part, number

    stream = in_streams([0, 1, 2], work)
    assert next(stream) == (0, 0)
    stream.close()
    n_asked = len(asked)
    assert n_asked < 1000
    time.sleep(0.01)
    assert len(asked) == n_asked


def test_read_ahead():
    ready = threading.Event()

    def items():
        yield 1
        ready.set()
        yield 2
        raise ZeroDivisionError("while reading")

    found = read_ahead(items())
    assert next(found) == 1
    assert ready.wait(10)  # nobody has asked for the second one
    assert next(found) == 2
    with pytest.raises(ZeroDivisionError, match="while reading"):
        next(found)
    assert list(read_ahead(iter([]))) == []
    early = read_ahead(iter(range(1000)))
    assert next(early) == 0
    early.close()
