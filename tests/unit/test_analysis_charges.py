"""Charges: the sums of blame by hold, for any trace."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contention_lab.analysis.blame import HAND_OFF, UNRECORDED, blame
from contention_lab.analysis.charges import charges
from contention_lab.trace import Outcome, Trace, TraceBuilder, parse

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""On a loaded machine any example may be slow; that is no failure."""

LATE = 1 << 60
"""Times so late that locks cannot follow one another on one line of 64 bits."""


def _by_pairs(trace: Trace) -> dict[tuple[int, int], tuple[int, int]]:
    """Add up the pairs of blame, by lock and hold."""
    sums: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for pair in blame(trace).pairs:
        if pair["hold"] != HAND_OFF:
            lock = int(trace.waits["lock"][pair["wait"]])
            sums[lock, int(pair["hold"])][0] += int(pair["ns"])
            sums[lock, int(pair["hold"])][1] += int(pair["gil_ns"])
    return {key: (ns, gil_ns) for key, (ns, gil_ns) in sums.items() if ns}


def _by_holds(trace: Trace) -> dict[tuple[int, int], tuple[int, int]]:
    sums: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    found = charges(trace)
    for hold, lock, ns, gil_ns in zip(
        *(column.tolist() for column in (found.hold, found.lock, found.ns, found.gil_ns)),
        strict=True,
    ):
        sums[lock, hold][0] += ns
        sums[lock, hold][1] += gil_ns
    return {key: (ns, gil_ns) for key, (ns, gil_ns) in sums.items() if ns}


def test_a_hold_costs_what_all_that_wait_wait() -> None:
    builder = TraceBuilder()
    lock = builder.add_lock()
    a, b, c = (builder.add_thread(name) for name in "abc")
    builder.add_hold(lock, a, 0, 100)
    builder.add_hold(lock, b, 110, 200)
    builder.add_wait(lock, b, 40, 110, holder=a)
    builder.add_wait(lock, c, 60, 200, holder=a)

    found = charges(parse(builder.bytes()))

    assert found.hold.tolist() == [0, 1]
    assert found.ns.tolist() == [60 + 40, 90]
    assert found.gil_ns.tolist() == [0, 0]


def test_the_longest_wait_that_saw_the_holder_stands_for_the_hold() -> None:
    builder = TraceBuilder()
    lock = builder.add_lock()
    a, b, c = (builder.add_thread(name) for name in "abc")
    seen = [builder.add_stack(builder.add_frame(f"f{i}", "/f.py", i + 1)) for i in range(2)]
    builder.add_hold(lock, a, 0, 100)
    builder.add_hold(lock, b, 110, 200)
    builder.add_wait(lock, b, 90, 110, holder=a, holder_stack=seen[0])
    builder.add_wait(lock, c, 60, 200, holder=a, holder_stack=seen[1])

    assert charges(parse(builder.bytes())).wait.tolist() == [1, -1]


def test_a_wait_without_a_recorded_hold_is_charged_to_the_holder_it_names() -> None:
    builder = TraceBuilder()
    lock, other = builder.add_lock(), builder.add_lock()
    a, b = (builder.add_thread(name) for name in "ab")
    builder.add_hold(other, a, 0, 100)
    builder.add_wait(lock, b, 10, 40, holder=a)
    builder.add_wait(lock, b, 50, 70)

    found = charges(parse(builder.bytes()))

    assert (found.hold.tolist(), found.wait.tolist()) == ([UNRECORDED], [0])
    assert (found.ns.tolist(), found.lock.tolist()) == ([30], [lock])


spans = st.tuples(st.integers(0, 60), st.integers(0, 30))


@st.composite
def traces(draw: st.DrawFn, exclusive: bool) -> Trace:
    """Any waits, and any holds: one at a time of each lock, or as they come."""
    builder = TraceBuilder()
    shift = draw(st.sampled_from([0, 0, LATE]))
    locks = [builder.add_lock() for _ in range(draw(st.integers(1, 3)))]
    threads = [builder.add_thread(str(i)) for i in range(3)]
    free = dict.fromkeys(locks, 0)
    for _ in range(draw(st.integers(0, 12))):
        lock, thread = draw(st.sampled_from(locks)), draw(st.sampled_from(threads))
        start, length = draw(spans)
        if exclusive:
            start = free[lock] + start % 7
            free[lock] = start + length
        builder.add_hold(lock, thread, shift // 1024 + start, shift // 1024 + start + length)
    for _ in range(draw(st.integers(0, 12))):
        start, length = draw(spans)
        builder.add_wait(
            draw(st.sampled_from(locks)),
            draw(st.sampled_from(threads)),
            shift // 1024 + start,
            shift // 1024 + start + length,
            gil_ns=draw(st.integers(0, length)),
            holder=draw(st.sampled_from([0, *threads])),
            outcome=draw(st.sampled_from([Outcome.ACQUIRED, Outcome.TIMED_OUT])),
        )
    return parse(builder.bytes())


@unhurried
@given(traces(exclusive=True))
def test_sums_are_those_of_blame_where_one_holds_at_a_time(trace: Trace) -> None:
    assert _by_holds(trace) == _by_pairs(trace)


@settings(unhurried, max_examples=300)
@given(traces(exclusive=False))
def test_sums_are_those_of_blame_where_holds_overlap(trace: Trace) -> None:
    by_holds, by_pairs = _by_holds(trace), _by_pairs(trace)

    for lock in trace.locks:
        ours, theirs = (
            sum(ns for (of, hold), (ns, _) in sums.items() if of == lock and hold >= 0)
            for sums in (by_holds, by_pairs)
        )
        assert ours == theirs
    waits = len(trace.waits)  # each may differ by less than a nanosecond
    for key in by_holds.keys() | by_pairs.keys():
        ours_ns, ours_gil = by_holds.get(key, (0, 0))
        pairs_ns, pairs_gil = by_pairs.get(key, (0, 0))
        assert abs(ours_ns - pairs_ns) <= waits
        assert abs(ours_gil - pairs_gil) <= waits
        assert 0 <= ours_gil <= ours_ns


def test_a_permit_held_alone_for_a_while_costs_more() -> None:
    builder = TraceBuilder()
    lock = builder.add_lock("threading.Semaphore")
    a, b, c = (builder.add_thread(name) for name in "abc")
    builder.add_hold(lock, a, 0, 100)
    builder.add_hold(lock, b, 0, 50)
    builder.add_wait(lock, c, 0, 100, holder=a)

    assert charges(parse(builder.bytes())).ns.tolist() == [75, 25]


def test_a_trace_without_events_has_no_charges() -> None:
    found = charges(parse(TraceBuilder().bytes()))
    assert all(len(getattr(found, name)) == 0 for name in ("hold", "wait", "lock", "ns", "gil_ns"))
    assert found.ns.dtype == np.int64
