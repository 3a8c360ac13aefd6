"""Deadlocks in hand-made traces, and what looks like one and is none."""

from __future__ import annotations

from contention_lab.analysis.wait_for import Deadlock, deadlocks
from contention_lab.trace import HoldFlag, Outcome, TraceBuilder, WaitKind, parse


def found(builder: TraceBuilder) -> tuple[Deadlock, ...]:
    return deadlocks(parse(builder.bytes()))


def ring(
    outcomes: tuple[Outcome, ...], *, end_ns: int = 500, duration_ns: int = 1000
) -> TraceBuilder:
    """Make threads 1, 2, ... that hold the lock of their number and wait for the next one."""
    builder = TraceBuilder(duration_ns=duration_ns)
    count = len(outcomes)
    for number in range(count):
        builder.add_lock(name=f"lock {number + 1}")
        builder.add_thread(f"thread {number + 1}")
    for number, outcome in enumerate(outcomes):
        own, other = number + 1, (number + 1) % count + 1
        last = 1000 if outcome == Outcome.OPEN else end_ns + number
        builder.add_wait(other, own, 100 + number, last, holder=other, outcome=outcome)
        flags = HoldFlag.OPEN if outcome == Outcome.OPEN else 0
        builder.add_hold(own, own, 10, min(1000, last + 5), flags=flags, waiters=1)
    return builder


def test_two_threads_that_wait_for_each_other_until_a_timeout() -> None:
    (deadlock,) = found(ring((Outcome.TIMED_OUT, Outcome.TIMED_OUT)))
    assert [(link.thread, link.lock, link.holder) for link in deadlock.links] == [
        (1, 2, 2),
        (2, 1, 1),
    ]
    assert (deadlock.start_ns, deadlock.end_ns) == (101, 500)
    assert not deadlock.is_open
    assert not deadlock.is_alone


def test_one_that_gives_up_lets_the_other_have_the_lock() -> None:
    (deadlock,) = found(ring((Outcome.TIMED_OUT, Outcome.ACQUIRED)))
    assert {link.thread for link in deadlock.links} == {1, 2}


def test_a_ring_of_three_that_lasts_to_the_end_is_found_once() -> None:
    (deadlock,) = found(ring((Outcome.OPEN,) * 3))
    assert len(deadlock.links) == 3
    assert deadlock.is_open
    assert deadlock.end_ns == 1000


def test_open_waits_name_their_holders_where_no_hold_is_recorded() -> None:
    builder = TraceBuilder(duration_ns=1000)
    a, b = builder.add_lock(), builder.add_lock()
    one, two = builder.add_thread(), builder.add_thread()
    builder.add_wait(b, one, 100, 0, holder=two, outcome=Outcome.OPEN)
    builder.add_wait(a, two, 200, 0, holder=one, outcome=Outcome.OPEN)
    (deadlock,) = found(builder)
    assert [link.hold for link in deadlock.links] == [-1, -1]


def test_every_time_it_happens_counts() -> None:
    builder = ring((Outcome.TIMED_OUT, Outcome.ACQUIRED))
    for start in (2000, 3000):
        builder.add_hold(1, 1, start, start + 90, waiters=1)
        builder.add_hold(2, 2, start, start + 90, waiters=1)
        builder.add_wait(2, 1, start + 10, start + 80, holder=2, outcome=Outcome.TIMED_OUT)
        builder.add_wait(1, 2, start + 10, start + 85, holder=1)
    assert [one.start_ns for one in found(builder)] == [101, 2010, 3010]


def test_a_chain_without_a_way_back_is_no_deadlock() -> None:
    builder = TraceBuilder()
    a, b = builder.add_lock(), builder.add_lock()
    one, two, three = (builder.add_thread() for _ in range(3))
    builder.add_hold(a, two, 0, 900, waiters=1)
    builder.add_hold(b, three, 0, 800, waiters=1)
    builder.add_wait(b, two, 10, 800, holder=three)
    builder.add_wait(a, one, 20, 500, holder=two, outcome=Outcome.TIMED_OUT)
    assert found(builder) == ()


def test_a_holder_that_lets_go_before_is_no_deadlock() -> None:
    builder = TraceBuilder()
    a, b = builder.add_lock(), builder.add_lock()
    one, two = builder.add_thread(), builder.add_thread()
    builder.add_hold(a, one, 0, 300, waiters=1)
    builder.add_hold(b, two, 0, 300, waiters=1)
    builder.add_wait(a, two, 100, 300, holder=one)
    builder.add_wait(b, one, 350, 500, holder=two, outcome=Outcome.TIMED_OUT)
    builder.add_hold(b, two, 310, 600, waiters=1)
    assert found(builder) == ()


def test_a_thread_that_waits_for_a_lock_it_holds_waits_for_itself() -> None:
    builder = TraceBuilder(duration_ns=1000)
    lock, thread = builder.add_lock(), builder.add_thread()
    builder.add_hold(lock, thread, 0, 600)
    builder.add_wait(lock, thread, 100, 500, holder=thread, outcome=Outcome.TIMED_OUT)
    (deadlock,) = found(builder)
    assert deadlock.is_alone
    assert (deadlock.start_ns, deadlock.end_ns) == (100, 500)


def test_a_lock_that_others_release_is_a_signal() -> None:
    builder = TraceBuilder(duration_ns=1000)
    lock, thread, other = builder.add_lock(), builder.add_thread(), builder.add_thread()
    builder.add_hold(lock, thread, 0, 50, release_thread=other, flags=HoldFlag.HANDED_OFF)
    builder.add_hold(lock, thread, 60, 600)
    builder.add_wait(lock, thread, 100, 500, holder=thread, outcome=Outcome.TIMED_OUT)
    assert found(builder) == ()


def test_a_lock_known_to_be_a_signal_needs_no_hold_to_say_so() -> None:
    builder = ring((Outcome.TIMED_OUT, Outcome.TIMED_OUT))
    builder.add_signal(1)
    assert found(builder) == ()


def test_where_several_can_hold_at_once_another_permit_may_come_back() -> None:
    builder = ring((Outcome.TIMED_OUT, Outcome.TIMED_OUT))
    other = builder.add_thread()
    builder.add_hold(2, other, 5, 450, waiters=1)
    assert found(builder) == ()


def test_a_join_that_gives_up_under_a_lock_that_the_thread_waits_for_was_a_deadlock() -> None:
    builder = TraceBuilder(duration_ns=1000)
    lock = builder.add_lock()
    join = builder.add_lock("threading.Thread", name="worker")
    main, ended = builder.add_thread("main"), builder.add_thread("worker", end_ns=20)
    worker = builder.add_thread("worker", start_ns=30)  # another one of that name has ended
    builder.add_hold(lock, main, 40, 510, waiters=1)
    builder.add_wait(join, main, 50, 500, kind=WaitKind.COORDINATION, outcome=Outcome.TIMED_OUT)
    builder.add_wait(lock, worker, 100, 510, holder=main)
    (deadlock,) = found(builder)
    assert {link.thread for link in deadlock.links} == {main, worker}
    assert ended not in {link.holder for link in deadlock.links}
    assert (deadlock.start_ns, deadlock.end_ns) == (100, 500)


def test_a_join_that_gives_up_while_the_thread_works_is_no_deadlock() -> None:
    builder = TraceBuilder(duration_ns=1000)
    lock = builder.add_lock()
    join = builder.add_lock("threading.Thread", name="worker")
    main, worker = builder.add_thread("main"), builder.add_thread("worker")
    builder.add_hold(lock, main, 0, 500, waiters=1)
    builder.add_wait(join, main, 50, 300, kind=WaitKind.COORDINATION, outcome=Outcome.TIMED_OUT)
    builder.add_wait(lock, worker, 400, 500, holder=main)
    assert found(builder) == ()


def test_joining_a_thread_that_waits_for_my_lock_is_a_deadlock() -> None:
    builder = TraceBuilder(duration_ns=1000)
    lock = builder.add_lock()
    join = builder.add_lock("threading.Thread", name="worker")
    main, worker = builder.add_thread("main"), builder.add_thread("worker")
    builder.add_hold(lock, main, 0, 1000, flags=HoldFlag.OPEN, waiters=1)
    builder.add_wait(lock, worker, 100, 0, holder=main, outcome=Outcome.OPEN)
    builder.add_wait(join, main, 50, 0, kind=WaitKind.COORDINATION, outcome=Outcome.OPEN)
    (deadlock,) = found(builder)
    assert {link.lock for link in deadlock.links} == {lock, join}
