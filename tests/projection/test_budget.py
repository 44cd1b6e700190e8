"""What a solver tells about its progress."""

import math

import pytest

from neverworse import _budget as budget_module
from neverworse._budget import Budget
from neverworse.projection import Progress


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(budget_module.time, "perf_counter", lambda: now[0])
    return now


def told(clock, gaps, n_rows=10, seconds=1.0, **limits):
    """Report gaps at equal times, with a step before each; return what was told."""
    found = []
    budget = Budget(observer=found.append, **limits)
    for gap in gaps:
        clock[0] += seconds
        budget.spend()
        budget.report("working set", n_rows, gap)
    return found


def test_time_left_by_the_rate_at_which_the_gap_falls(clock):
    found = told(clock, [1e-1, 1e-2, 1e-3], tol=1e-9)
    assert math.isnan(found[0].left)
    assert found[1].left == pytest.approx(7.0)
    assert found[2].left == pytest.approx(6.0)


def test_only_recent_gaps_count(clock):
    gaps = [1.0] * 10 + [10.0**-k for k in range(1, 6)]
    assert told(clock, gaps, tol=1e-9)[-1].left == pytest.approx(4.0)


def test_time_left_is_no_longer_than_the_limits_allow(clock):
    gaps = [1e-1, 1e-2]
    assert told(clock, gaps, tol=1e-9, max_time=5.0)[-1].left == pytest.approx(3.0)
    assert told(clock, gaps, tol=1e-9, max_iter=4)[-1].left == pytest.approx(2.0)
    assert told(clock, gaps, tol=1e-9, max_iter=400)[-1].left == pytest.approx(7.0)


def test_nothing_is_said_where_nothing_is_known(clock):
    assert math.isnan(told(clock, [1e-1, 1e-1], tol=1e-9)[-1].left)
    assert math.isnan(told(clock, [1e-1, 1e-2])[-1].left)
    assert math.isnan(told(clock, [float("nan")] * 3, tol=1e-9)[-1].left)


def test_another_problem_starts_anew(clock):
    found = []
    budget = Budget(observer=found.append, tol=1e-9)
    for n_rows, gap in ((10, 1e-1), (10, 1e-2), (50, 1e-1), (50, 1e-2)):
        clock[0] += 1.0
        budget.report("working set", n_rows, gap)
    assert [math.isnan(one.left) for one in found] == [True, False, True, False]


def test_gaps_of_working_sets_say_nothing_about_the_end(clock):
    found = []
    budget = Budget(observer=found.append, tol=1e-9)
    gaps = ((100, math.nan), (10, 1e-1), (10, 1e-8), (90, 1e-1), (90, 1e-3), (10, 1e-9), (10, 1e-9))
    for n_rows, gap in gaps:
        clock[0] += 1.0
        budget.report("working set", n_rows, gap)
    assert [math.isnan(one.left) for one in found] == [True] * 4 + [False] * 3
    assert [one.left for one in found[4:]] == pytest.approx([3.0, 2.0, 1.0])


def test_a_closed_gap_leaves_no_time(clock):
    assert told(clock, [1e-1, 1e-12, 0.0], tol=1e-9)[-1].left == 0.0


def test_in_words():
    progress = Progress("working set", 7, 1234, 2e-3, 1.5, n_passes=5, left=12.34)
    assert str(progress).strip() == (
        "1.50 s  working set (1,234 rows), 7 steps, 5 passes, about 12.3 s left, gap 2.0e-03"
    )
    assert str(Progress("start", 0, 10, float("nan"), 0.0)).endswith("(10 rows), 0 steps")
