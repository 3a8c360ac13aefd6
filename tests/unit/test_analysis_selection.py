"""Traces cut down to some locks, threads or stacks, and with the locks of a site as one."""

from __future__ import annotations

import pytest

from contention_lab.analysis import by_site, lock_table, selected
from contention_lab.trace import Trace, TraceBuilder, parse

MS = 1_000_000


@pytest.fixture
def trace() -> Trace:
    """Two locks of one site and a named one; `reader` waits for all, `writer` holds them."""
    builder = TraceBuilder()
    made = builder.add_frame("Cache.__init__", "/src/cache.py", 10)
    get = builder.add_stack(builder.add_frame("Cache.get", "/src/cache.py", 20))
    put = builder.add_stack(builder.add_frame("Cache.put", "/src/cache.py", 30))
    reader, writer = builder.add_thread("reader"), builder.add_thread("writer")
    locks = [
        builder.add_lock("threading.Lock", site=made),
        builder.add_lock("threading.Lock", site=made),
        builder.add_lock("threading.Lock", name="ledger", site=made),
    ]
    for turn, lock in enumerate(locks):
        start = turn * 10 * MS
        builder.add_wait(lock, reader, start, start + (turn + 1) * MS, stack=get, holder=writer)
        builder.add_hold(lock, writer, start, start + (turn + 1) * MS, stack=put)
        builder.add_counter(
            lock,
            reader,
            acquires=1,
            contended=1,
            wait_ns=(turn + 1) * MS,
            max_wait_ns=(turn + 1) * MS,
        )
        builder.add_counter(
            lock,
            writer,
            acquires=1,
            blocking_holds=1,
            hold_ns=(turn + 1) * MS,
            max_hold_ns=(turn + 1) * MS,
        )
    return parse(builder.bytes())


def test_locks_of_a_site_are_one_and_sums_stay(trace: Trace) -> None:
    rows = lock_table(by_site(trace))

    assert [(row.lock.label, row.lock.instance) for row in rows] == [
        ("cache:Cache.__init__:10", 2),
        ("ledger", 1),
    ]
    assert [row.wait_s for row in rows] == pytest.approx([0.003, 0.003])
    assert [row.wait_max_s for row in rows] == pytest.approx([0.002, 0.003])
    assert [row.hold_s for row in rows] == pytest.approx([0.003, 0.003])
    assert [row.acquires for row in rows] == [4, 2]
    assert [row.threads for row in rows] == [2, 2]


def test_the_trace_itself_does_not_change(trace: Trace) -> None:
    before = lock_table(trace)
    by_site(trace), selected(trace, lock="ledger", thread="reader", stack="get")
    assert lock_table(trace) == before


@pytest.mark.parametrize("text", ["ledger", "LEDGER", "ledg"])
def test_a_lock_is_found_by_a_part_of_its_name(trace: Trace, text: str) -> None:
    assert [row.lock.name for row in lock_table(selected(trace, lock=text))] == ["ledger"]


def test_a_lock_is_found_by_its_type_and_by_where_it_was_made(trace: Trace) -> None:
    assert len(lock_table(selected(trace, lock="threading.lock"))) == 3
    assert len(lock_table(selected(trace, lock="cache.py:10"))) == 3
    assert lock_table(selected(trace, lock="cache.py:11")) == ()


def test_only_what_a_thread_did_is_left(trace: Trace) -> None:
    waiting = lock_table(selected(trace, thread="reader"))
    holding = lock_table(selected(trace, thread="writer"))

    assert [row.wait_s for row in waiting] == pytest.approx([0.003, 0.002, 0.001])
    assert all(row.hold_s == 0 for row in waiting)
    assert all(row.wait_s == 0 and row.hold_s > 0 for row in holding)


def test_only_what_happened_under_a_frame_is_left(trace: Trace) -> None:
    waiting = lock_table(selected(trace, stack="Cache.get"))
    holding = lock_table(selected(trace, stack="cache.put"))

    assert [row.contended for row in waiting] == [1, 1, 1]
    assert all(row.hold_s == 0 for row in waiting)
    assert all(row.contended == 0 and row.hold_s > 0 for row in holding)
    assert lock_table(selected(trace, stack="nowhere")) == ()
