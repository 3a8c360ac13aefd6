"""From a lock to the root of the waiting for it, in hand-made traces."""

from __future__ import annotations

from contention_lab.analysis.chains import chain
from contention_lab.trace import TraceBuilder, parse


def program(locks: int = 3, threads: int = 5) -> TraceBuilder:
    builder = TraceBuilder(duration_ns=1000)
    for number in range(locks):
        builder.add_lock(name=f"lock {number + 1}")
    for number in range(threads):
        builder.add_thread(f"thread {number + 1}")
    return builder


def test_code_that_holds_and_does_not_wait_is_the_root_itself() -> None:
    builder = program()
    builder.add_hold(1, 1, 0, 500)
    builder.add_wait(1, 2, 100, 500, holder=1)
    assert chain(parse(builder.bytes()), [1]) == ()


def test_a_lock_without_waiting_has_no_chain() -> None:
    assert chain(parse(program().bytes()), [1]) == ()


def test_a_holder_that_waits_passes_the_waiting_on() -> None:
    builder = program()
    builder.add_hold(1, 1, 0, 600)
    builder.add_hold(2, 3, 0, 500)
    builder.add_wait(1, 2, 100, 600, holder=1)
    builder.add_wait(1, 4, 200, 600, holder=1)
    builder.add_wait(2, 1, 50, 500, holder=3)
    (step,) = chain(parse(builder.bytes()), [1])
    assert (step.wait, step.hold, step.lock) == (2, 1, 2)
    assert step.ns == 400 + 300


def test_it_goes_on_to_the_root() -> None:
    builder = program()
    for lock, thread in ((1, 1), (2, 2), (3, 3)):
        builder.add_hold(lock, thread, 0, 1000 - 100 * lock)
    builder.add_wait(1, 4, 100, 900, holder=1)
    builder.add_wait(2, 1, 100, 800, holder=2)
    builder.add_wait(3, 2, 100, 700, holder=3)
    steps = chain(parse(builder.bytes()), [1])
    assert [(step.lock, step.ns) for step in steps] == [(2, 700), (3, 600)]


def test_a_holder_that_waits_for_the_smaller_part_is_the_root() -> None:
    builder = program()
    builder.add_hold(1, 1, 0, 600)
    builder.add_hold(2, 3, 0, 300)
    builder.add_wait(1, 2, 100, 600, holder=1)
    builder.add_wait(2, 1, 100, 300, holder=3)
    assert chain(parse(builder.bytes()), [1]) == ()


def test_waiting_before_anybody_waits_for_the_holder_is_not_passed_on() -> None:
    builder = program()
    builder.add_hold(1, 1, 0, 900)
    builder.add_hold(2, 3, 0, 500)
    builder.add_wait(2, 1, 10, 500, holder=3)
    builder.add_wait(1, 2, 500, 900, holder=1)
    assert chain(parse(builder.bytes()), [1]) == ()


def test_a_ring_ends() -> None:
    builder = program()
    builder.add_hold(1, 1, 0, 900)
    builder.add_hold(2, 2, 0, 900)
    builder.add_wait(2, 1, 100, 900, holder=2)
    builder.add_wait(1, 2, 100, 900, holder=1)
    assert [step.lock for step in chain(parse(builder.bytes()), [1])] == [2]


def test_lock_orders_tell_where_to_look() -> None:
    builder = program()
    builder.add_hold(1, 1, 0, 600)
    builder.add_hold(2, 3, 0, 500)
    builder.add_wait(1, 2, 100, 600, holder=1)
    builder.add_wait(2, 1, 50, 500, holder=3)
    builder.add_order(1, 2, {1: 0})
    trace = parse(builder.bytes())
    assert [step.lock for step in chain(trace, [1])] == [2]
    assert chain(trace, [2]) == ()


def test_a_semaphore_has_no_single_holder_to_follow() -> None:
    builder = TraceBuilder()
    lock = builder.add_lock("threading.Lock")
    permits = builder.add_lock("threading.Semaphore")
    one, two, three = (builder.add_thread() for _ in range(3))
    builder.add_hold(lock, one, 0, 100, waiters=1)
    builder.add_wait(permits, one, 5, 95, holder=two)
    builder.add_hold(permits, two, 0, 95, waiters=1)
    builder.add_wait(lock, three, 0, 100, holder=one)
    trace = parse(builder.bytes())
    assert chain(trace, [lock]) == ()
    assert chain(trace, [permits]) == ()
