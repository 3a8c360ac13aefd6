"""The part of a trace between two moments."""

from __future__ import annotations

from contention_lab.analysis import blame, lock_table
from contention_lab.analysis.time_window import during
from contention_lab.trace import Outcome, TraceBuilder, parse


def test_what_reaches_beyond_is_cut_and_the_rest_left_out() -> None:
    builder = TraceBuilder(duration_ns=1_000)
    lock, waiter, holder = builder.add_lock(), builder.add_thread(), builder.add_thread()
    builder.add_hold(lock, holder, 0, 300)
    builder.add_wait(lock, waiter, 100, 300, holder=holder)
    builder.add_hold(lock, holder, 600, 700)
    builder.add_wait(lock, waiter, 650, 700, holder=holder)

    part = during(parse(builder.bytes()), 200, 500)

    assert part.waits["start_ns"].tolist() == [200]
    assert part.waits["end_ns"].tolist() == [300]
    assert blame(part).total_ns == 100
    (row,) = lock_table(part)
    assert (row.contended, row.wait_s) == (1, 100e-9)


def test_an_open_wait_lasts_until_the_end_of_the_part() -> None:
    builder = TraceBuilder(duration_ns=1_000)
    lock, waiter = builder.add_lock(), builder.add_thread()
    builder.add_wait(lock, waiter, 100, 0, outcome=Outcome.OPEN)

    (row,) = lock_table(during(parse(builder.bytes()), 200, 500))

    assert row.wait_s == 300e-9


def test_an_empty_part_is_an_empty_trace() -> None:
    builder = TraceBuilder(duration_ns=1_000)
    lock, thread = builder.add_lock(), builder.add_thread()
    builder.add_hold(lock, thread, 0, 100)

    part = during(parse(builder.bytes()), 500, 500)

    assert len(part.holds) == len(part.counters) == 0
