"""The critical path of hand-made traces with known answers."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contention_lab.analysis.critical_path import CriticalPath, critical_path
from contention_lab.trace import Outcome, TraceBuilder, WaitKind, parse


def path_of(builder: TraceBuilder) -> CriticalPath:
    return critical_path(parse(builder.bytes()))


def program(duration_ns: int = 1000) -> tuple[TraceBuilder, int]:
    builder = TraceBuilder(duration_ns=duration_ns)
    return builder, builder.add_thread("main", is_main=True, cpu_ns=duration_ns)


def test_a_program_without_waits_has_an_empty_path() -> None:
    builder, _ = program()
    path = path_of(builder)
    assert len(path.wait) == 0
    assert path.share([1]) == path.coordination_share == path.gil_share == 0.0


def test_a_wait_on_the_path_counts_as_long_as_it_lasts() -> None:
    builder, main = program()
    other = builder.add_thread("other")
    lock = builder.add_lock()
    builder.add_hold(lock, other, 100, 500)
    builder.add_wait(lock, main, 200, 500, holder=other)
    path = path_of(builder)
    assert path.share([lock]) == pytest.approx(0.3)
    assert path.hold_share([lock], np.array([True])) == pytest.approx(0.3)
    assert path.unexplained_share == 0.0


def test_waiting_that_nothing_later_depended_on_costs_nothing() -> None:
    builder, _ = program()
    a, b = builder.add_thread("a"), builder.add_thread("b")
    lock = builder.add_lock()
    builder.add_hold(lock, a, 0, 900)
    builder.add_wait(lock, b, 0, 900, holder=a)
    assert path_of(builder).share([lock]) == 0.0


def test_of_two_threads_joined_the_later_one_is_on_the_path() -> None:
    builder, main = program()
    short = builder.add_thread("short", end_ns=500)
    long = builder.add_thread("long", end_ns=890)
    joins = [builder.add_lock("threading.Thread", name=name) for name in ("short", "long")]
    quick, slow = builder.add_lock(name="quick"), builder.add_lock(name="slow")
    holder = builder.add_thread("holder")
    builder.add_hold(quick, holder, 0, 400)
    builder.add_wait(quick, short, 0, 400, holder=holder)
    builder.add_hold(slow, holder, 450, 800)
    builder.add_wait(slow, long, 500, 800, holder=holder)
    builder.add_wait(joins[0], main, 10, 500, kind=WaitKind.COORDINATION)
    builder.add_wait(joins[1], main, 500, 900, kind=WaitKind.COORDINATION)
    path = path_of(builder)
    assert path.share([slow]) == pytest.approx(0.3)
    assert path.share([quick]) == 0.0
    assert path.coordination_share == pytest.approx(0.4)


def test_a_convoy_is_on_the_path_through_all_its_holders() -> None:
    builder, main = program()
    a, b = builder.add_thread("a"), builder.add_thread("b")
    lock = builder.add_lock()
    for thread, start in ((a, 100), (b, 300), (main, 500)):
        builder.add_hold(lock, thread, start, start + 200)
    builder.add_wait(lock, b, 150, 300, holder=a)
    builder.add_wait(lock, main, 160, 500, holder=a)
    path = path_of(builder)
    assert path.hold.tolist() == [1, 0]
    assert path.share([lock]) == pytest.approx(0.35)
    assert path.hold_share([lock], np.array([True, False, False])) == pytest.approx(0.15)
    assert path.hold_share([lock], np.array([False, True, False])) == pytest.approx(0.2)


def test_a_holder_that_waited_itself_leads_to_the_root() -> None:
    builder, main = program()
    middle, root = builder.add_thread("middle"), builder.add_thread("root")
    outer, inner = builder.add_lock(), builder.add_lock()
    builder.add_hold(outer, middle, 0, 800)
    builder.add_hold(inner, root, 0, 700)
    builder.add_wait(inner, middle, 100, 700, holder=root)
    builder.add_wait(outer, main, 200, 800, holder=middle)
    path = path_of(builder)
    assert path.share([outer]) == pytest.approx(0.6)
    assert path.share([inner]) == pytest.approx(0.6)
    assert path.share([outer, inner]) == pytest.approx(0.7)


def test_a_timeout_ends_a_wait_without_anybody_and_counts() -> None:
    builder, main = program()
    other = builder.add_thread("other")
    lock = builder.add_lock()
    builder.add_hold(lock, other, 0, 1000)
    builder.add_wait(lock, main, 100, 400, holder=other, outcome=Outcome.TIMED_OUT)
    path = path_of(builder)
    assert path.share([lock]) == path.unexplained_share == pytest.approx(0.3)


def test_waits_still_open_at_the_end_last_until_then() -> None:
    builder, main = program()
    other = builder.add_thread("other")
    a, b = builder.add_lock(), builder.add_lock()
    builder.add_wait(a, main, 600, 0, holder=other, outcome=Outcome.OPEN)
    builder.add_wait(b, other, 700, 0, holder=main, outcome=Outcome.OPEN)
    assert path_of(builder).share([a]) == pytest.approx(0.4)


def test_an_item_in_a_queue_leads_to_its_producer() -> None:
    builder, main = program()
    producer = builder.add_thread("producer")
    slow = builder.add_thread("slow")
    queue, lock = builder.add_lock("threading.Lock in Queue"), builder.add_lock()
    builder.add_hold(lock, slow, 0, 500)
    builder.add_wait(lock, producer, 100, 500, holder=slow)
    builder.add_wait(queue, main, 50, 600, holder=producer, kind=WaitKind.COORDINATION)
    path = path_of(builder)
    assert path.share([lock]) == pytest.approx(0.4)
    assert path.share([queue]) == 0.0
    assert path.share([queue], coordination=True) == pytest.approx(0.55)


def test_before_its_first_event_a_thread_is_whoever_started_it() -> None:
    builder, main = program()
    starter = builder.add_thread("starter")
    child = builder.add_thread("child", start_ns=500, end_ns=900)
    holder = builder.add_thread("holder")
    begun = builder.add_lock("threading.Lock in Thread")
    join = builder.add_lock("threading.Thread", name="child")
    lock = builder.add_lock()
    builder.add_hold(lock, holder, 0, 400)
    builder.add_wait(lock, starter, 200, 400, holder=holder)
    builder.add_wait(begun, starter, 490, 510, holder=child, kind=WaitKind.COORDINATION)
    builder.add_wait(join, main, 10, 900, kind=WaitKind.COORDINATION)
    path = path_of(builder)
    assert path.share([lock]) == pytest.approx(0.2)


def test_tasks_are_on_the_path_of_the_thread_they_run_on() -> None:
    builder = TraceBuilder(duration_ns=1000)
    builder.add_thread("main", is_main=True, native_id=7)
    a = builder.add_thread("a", is_task=True, native_id=7)
    b = builder.add_thread("b", is_task=True, native_id=7)
    lock = builder.add_lock("asyncio.Lock")
    builder.add_hold(lock, a, 0, 450)
    builder.add_hold(lock, b, 450, 900)
    builder.add_wait(lock, b, 10, 450, holder=a)
    builder.add_wait(lock, a, 450, 900, holder=b)
    assert path_of(builder).share([lock]) == pytest.approx(0.89)


def test_a_main_thread_that_sleeps_to_the_end_hands_over_to_the_others() -> None:
    builder = TraceBuilder(duration_ns=1000)
    builder.add_thread("main", is_main=True, cpu_ns=10)
    a, b = builder.add_thread("a"), builder.add_thread("b")
    lock = builder.add_lock()
    builder.add_hold(lock, a, 0, 900)
    builder.add_wait(lock, b, 100, 900, holder=a)
    assert path_of(builder).share([lock]) == pytest.approx(0.8)


def test_waiting_for_the_gil_afterwards_is_not_the_locks() -> None:
    builder, main = program()
    other = builder.add_thread("other")
    lock = builder.add_lock()
    builder.add_hold(lock, other, 0, 500)
    builder.add_wait(lock, main, 400, 700, holder=other, gil_ns=200)
    path = path_of(builder)
    assert path.share([lock]) == pytest.approx(0.1)
    assert path.gil_share == pytest.approx(0.2)


def test_of_many_waits_the_last_ones_are_walked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["contention_lab.analysis.critical_path"]
    monkeypatch.setattr(module, "MOST_WAITS", 4)
    builder, main = program()
    other = builder.add_thread("other")
    lock = builder.add_lock()
    for start in range(0, 1000, 100):
        end = start + 50
        builder.add_wait(lock, main, start + 10, end, holder=other, outcome=Outcome.TIMED_OUT)
    path = path_of(builder)
    assert path.wall_ns == 1000 - 650
    assert path.wait.tolist() == [9, 8, 7]
    assert path.share([lock]) == pytest.approx(3 * 40 / 350)


NUMBERS = st.integers(0, 50)
WAITS = st.lists(
    st.tuples(
        *[st.integers(1, 4)] * 3, NUMBERS, NUMBERS, st.sampled_from(list(Outcome)), st.booleans()
    ),
    max_size=25,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(WAITS, st.lists(st.tuples(*[st.integers(1, 4)] * 3, NUMBERS, NUMBERS), max_size=25))
def test_any_trace_has_a_path_that_goes_back_in_time_and_ends(
    waits: list[tuple[int, int, int, int, int, Outcome, bool]],
    holds: list[tuple[int, int, int, int, int]],
) -> None:
    builder, _ = program(100)
    for number in range(3):
        builder.add_thread(str(number), is_task=number == 2, native_id=1)
    for _ in range(4):
        builder.add_lock()
    for lock, thread, holder, start, length, outcome, together in waits:
        builder.add_wait(
            lock, thread, start, start + length, holder=holder, outcome=outcome, kind=int(together)
        )
    for lock, thread, release, start, length in holds:
        builder.add_hold(lock, thread, start, start + length, release_thread=release)
    path = path_of(builder)
    assert len(set(path.wait.tolist())) == len(path.wait)
    assert (np.diff(path.return_ns) <= 0).all()
    shares = (path.share(range(5)), path.coordination_share, path.gil_share, path.unexplained_share)
    assert all(0.0 <= share <= 1.0 for share in shares)
