"""Lock orders in a trace file, and records of what was open and then over."""

from __future__ import annotations

from contention_lab.trace import HoldFlag, OrderFlag, Outcome, TraceBuilder, parse


def test_orders_come_back_as_they_were_written() -> None:
    builder = TraceBuilder()
    thread = builder.add_thread()
    a, b, c = (builder.add_lock() for _ in range(3))
    site, stack = builder.add_frame("f", "f.py", 1), builder.add_stack(1)
    builder.add_order(thread, c, {a: site, b: 0}, stack=stack, time_ns=5, timeout=True)
    builder.add_order(thread, b, {a: site})
    trace = parse(builder.bytes())
    assert not trace.problems
    assert trace.orders["held"].tolist() == [a, b, a]
    assert trace.orders["group"].tolist() == [1, 1, 2]
    assert trace.orders["held_site"].tolist() == [site, 0, site]
    assert trace.orders["flags"].tolist() == [OrderFlag.TIMEOUT_GIVEN] * 2 + [0]


def test_orders_of_strangers_are_told() -> None:
    builder = TraceBuilder()
    builder.add_order(builder.add_thread(), 7, {9: 0})
    problems = parse(builder.bytes()).problems
    assert problems == (
        "1 lock orders have a held the file does not define",
        "1 lock orders have a lock the file does not define",
    )


def test_an_open_wait_is_replaced_by_the_record_of_its_end() -> None:
    builder = TraceBuilder()
    lock, thread, other = builder.add_lock(), builder.add_thread(), builder.add_thread()
    builder.add_wait(lock, thread, 10, 20, outcome=Outcome.OPEN)
    builder.add_wait(lock, thread, 10, 30, outcome=Outcome.OPEN)
    builder.add_wait(lock, other, 10, 50)
    builder.add_wait(lock, thread, 10, 40)
    builder.add_wait(lock, other, 60, 70, outcome=Outcome.OPEN)
    waits = parse(builder.bytes()).waits
    assert waits["end_ns"].tolist() == [50, 40, 70]


def test_of_a_wait_that_stays_open_the_last_record_counts() -> None:
    builder = TraceBuilder()
    lock, thread = builder.add_lock(), builder.add_thread()
    builder.add_wait(lock, thread, 10, 20, outcome=Outcome.OPEN)
    builder.add_wait(lock, thread, 10, 30, outcome=Outcome.OPEN)
    assert parse(builder.bytes()).waits["end_ns"].tolist() == [30]


def test_an_open_hold_is_replaced_by_the_record_of_its_end() -> None:
    builder = TraceBuilder()
    lock, thread = builder.add_lock(), builder.add_thread()
    builder.add_hold(lock, thread, 10, 20, flags=HoldFlag.OPEN)
    builder.add_hold(lock, thread, 10, 90, waiters=1)
    builder.add_hold(lock, thread, 95, 99, flags=HoldFlag.OPEN)
    assert parse(builder.bytes()).holds["end_ns"].tolist() == [90, 99]
