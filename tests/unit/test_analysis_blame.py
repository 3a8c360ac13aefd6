"""Blame: hand-made traces of known answers, and a slow oracle for all others."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contention_lab.analysis.blame import HAND_OFF, UNRECORDED, blame
from contention_lab.trace import HoldFlag, Outcome, Trace, TraceBuilder, WaitKind, parse

if TYPE_CHECKING:
    from contention_lab.analysis.blame import Blame

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""On a loaded machine any example may be slow; that is no failure."""


def shares(result: Blame) -> list[tuple[int, int, int]]:
    return [(int(pair["wait"]), int(pair["hold"]), int(pair["ns"])) for pair in result.pairs]


def two_threads() -> tuple[TraceBuilder, int, int, int]:
    builder = TraceBuilder()
    return builder, builder.add_lock(), builder.add_thread("a"), builder.add_thread("b")


def test_a_wait_is_divided_over_the_holds_it_overlaps() -> None:
    builder, lock, a, b = two_threads()
    c = builder.add_thread("c")
    builder.add_hold(lock, a, 0, 100)
    builder.add_hold(lock, b, 110, 200)
    builder.add_hold(lock, c, 205, 300)
    builder.add_wait(lock, c, 40, 205, holder=a)

    result = blame(parse(builder.bytes()))

    assert shares(result) == [(0, 0, 60), (0, 1, 90), (0, HAND_OFF, 15)]
    assert result.total_ns == 165
    assert result.unexplained_ns == 15


def test_time_for_the_gil_is_nobodys_fault() -> None:
    builder, lock, a, b = two_threads()
    builder.add_hold(lock, a, 0, 100)
    builder.add_hold(lock, b, 100, 400)
    builder.add_wait(lock, b, 50, 300, gil_ns=200)

    assert shares(blame(parse(builder.bytes()))) == [(0, 0, 50)]


def test_a_holder_that_waits_for_the_gil_is_told_apart() -> None:
    builder, lock, a, b = two_threads()
    c = builder.add_thread("c")
    builder.add_hold(lock, a, 0, 100)
    builder.add_hold(lock, b, 100, 400)
    builder.add_hold(lock, b, 400, 410)
    builder.add_wait(lock, b, 50, 300, gil_ns=200)  # had the lock at 100, the GIL at 300
    builder.add_wait(lock, c, 150, 350)
    builder.add_wait(lock, c, 320, 410)

    result = blame(parse(builder.bytes()))

    assert shares(result) == [(0, 0, 50), (1, 1, 200), (2, 1, 80), (2, 2, 10)]
    assert result.pairs["gil_ns"].tolist() == [0, 150, 0, 0]
    assert result.gil_ns == 150


def test_the_gil_is_looked_for_in_the_hold_that_the_wait_led_to() -> None:
    builder, lock, a, b = two_threads()
    other = builder.add_lock()
    builder.add_wait(lock, a, 0, 80, gil_ns=50)  # its hold was not recorded
    builder.add_hold(lock, a, 100, 200)
    builder.add_hold(lock, b, 200, 300)
    builder.add_hold(other, a, 0, 300)
    builder.add_wait(lock, b, 90, 200)
    builder.add_wait(other, b, 10, 300)

    assert blame(parse(builder.bytes())).gil_ns == 0


def test_holds_of_other_locks_are_not_blamed() -> None:
    builder, lock, a, b = two_threads()
    other = builder.add_lock()
    builder.add_hold(other, a, 0, 100)
    builder.add_hold(lock, a, 20, 30)
    builder.add_wait(lock, b, 10, 40)

    assert shares(blame(parse(builder.bytes()))) == [(0, 1, 10), (0, HAND_OFF, 20)]


def test_a_wait_without_any_recorded_hold_is_the_named_holders() -> None:
    builder, lock, a, b = two_threads()
    builder.add_wait(lock, b, 10, 40, holder=a)
    builder.add_wait(lock, a, 50, 60)

    assert shares(blame(parse(builder.bytes()))) == [(0, UNRECORDED, 30), (1, HAND_OFF, 10)]


def test_waiting_for_an_event_is_not_blamed() -> None:
    builder, lock, a, b = two_threads()
    builder.add_hold(lock, a, 0, 100)
    builder.add_wait(lock, b, 10, 40, kind=WaitKind.COORDINATION)

    assert shares(blame(parse(builder.bytes()))) == []


def test_waits_that_gave_up_are_blamed_like_others() -> None:
    builder, lock, a, b = two_threads()
    builder.add_hold(lock, a, 0, 100)
    builder.add_wait(lock, b, 10, 40, outcome=Outcome.TIMED_OUT)
    builder.add_wait(lock, b, 50, 60, outcome=Outcome.INTERRUPTED)
    builder.add_wait(lock, b, 70, 70, outcome=Outcome.FAILED_TRY)

    assert shares(blame(parse(builder.bytes()))) == [(0, 0, 30), (1, 0, 10)]


def test_what_is_open_lasts_until_the_end_of_the_trace() -> None:
    builder = TraceBuilder(duration_ns=1000)
    lock, a, b = builder.add_lock(), builder.add_thread(), builder.add_thread()
    builder.add_hold(lock, a, 0, 0, flags=HoldFlag.OPEN)
    builder.add_wait(lock, b, 400, 0, outcome=Outcome.OPEN)

    trace = parse(builder.bytes())
    assert shares(blame(trace)) == [(0, 0, 600)]
    assert trace.problems == ()


def test_waiting_for_oneself_is_blamed_on_oneself() -> None:
    builder, lock, a, _ = two_threads()
    builder.add_hold(lock, a, 0, 500)
    builder.add_wait(lock, a, 100, 400, outcome=Outcome.TIMED_OUT)

    assert shares(blame(parse(builder.bytes()))) == [(0, 0, 300)]


def test_the_hold_that_a_wait_led_to_is_not_to_blame_for_it() -> None:
    builder, lock, a, b = two_threads()
    builder.add_hold(lock, a, 0, 100)
    builder.add_hold(lock, b, 98, 200)  # starts before its wait ends, by another core's clock
    builder.add_wait(lock, b, 10, 101)

    assert (0, 1) not in [pair[:2] for pair in shares(blame(parse(builder.bytes())))]
    assert blame(parse(builder.bytes())).total_ns == 91


def test_permits_held_together_share_the_wait() -> None:
    builder, lock, a, b = two_threads()
    c = builder.add_thread("c")
    builder.add_hold(lock, a, 0, 100)
    builder.add_hold(lock, b, 0, 100)
    builder.add_hold(lock, b, 150, 151)
    builder.add_wait(lock, c, 0, 101)
    builder.add_wait(lock, c, 50, 101)

    assert shares(blame(parse(builder.bytes()))) == [
        (0, 0, 50),
        (0, 1, 50),
        (0, HAND_OFF, 1),
        (1, 0, 25),
        (1, 1, 25),
        (1, HAND_OFF, 1),
    ]


def test_parts_that_do_not_divide_evenly_still_add_up() -> None:
    builder, lock, a, _ = two_threads()
    for _ in range(3):
        builder.add_hold(lock, a, 0, 1000)
    builder.add_wait(lock, builder.add_thread(), 0, 100)

    result = blame(parse(builder.bytes()))
    assert sorted(ns for _, _, ns in shares(result)) == [33, 33, 34]


def test_an_empty_trace_has_nobody_to_blame() -> None:
    assert shares(blame(parse(TraceBuilder().bytes()))) == []


def test_records_that_cannot_be_true_do_not_break_the_sums() -> None:
    builder, lock, a, b = two_threads()
    builder.add_hold(lock, a, 100, 50)
    builder.add_hold(lock, a, 0, (1 << 64) - 1)
    builder.add_wait(lock, b, 60, 20)
    builder.add_wait(lock, b, 10, 40, gil_ns=1 << 63)
    builder.add_wait(77, 99, 10, 40)

    assert shares(blame(parse(builder.bytes()))) == [(2, HAND_OFF, 30)]


def test_a_long_hold_among_many_short_ones_costs_little_memory() -> None:
    # Every wait could be searched against every hold; only octaves keep it linear.
    count = 20_000
    builder = TraceBuilder()
    lock = builder.add_lock("Semaphore")
    starts = np.arange(count, dtype=np.uint64) * 10
    from contention_lab.trace.schema import HOLD, WAIT

    holds, waits = np.zeros(count, dtype=HOLD), np.zeros(count, dtype=WAIT)
    holds["lock"] = waits["lock"] = lock
    holds["thread"] = 1
    waits["thread"] = 2
    holds["start_ns"], holds["end_ns"] = starts, starts + np.uint64(10)
    waits["start_ns"], waits["end_ns"] = starts, starts + np.uint64(4)
    builder.add_hold(lock, 3, 0, count * 10)
    builder.add_holds(holds)
    builder.add_waits(waits)

    result = blame(parse(builder.bytes()))

    assert len(result.pairs) == 2 * count
    assert result.total_ns == 4 * count
    assert int(result.pairs["ns"][result.pairs["hold"] == 0].sum()) == 2 * count


# Against an oracle that walks through every nanosecond


small = st.integers(0, 60)
intervals = st.tuples(st.integers(1, 3), st.integers(1, 4), small, small)


def exclusive(spans: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """The spans of each lock, cut so that none overlaps the one before it."""
    free: dict[int, int] = defaultdict(int)
    cut = []
    for lock, thread, a, b in sorted(spans, key=lambda span: span[2]):
        start = max(min(a, b), free[lock])
        end = max(start, max(a, b))
        free[lock] = end
        cut.append((lock, thread, start, end))
    return cut


def make(holds: list[tuple[int, int, int, int]], waits: list[tuple[int, int, int, int]]) -> Trace:
    builder = TraceBuilder()
    for _ in range(3):
        builder.add_lock()
    for _ in range(4):
        builder.add_thread()
    for lock, thread, a, b in holds:
        builder.add_hold(lock, thread, min(a, b), max(a, b))
    for lock, thread, a, b in waits:
        builder.add_wait(lock, 4 + thread, min(a, b), max(a, b))
    return parse(builder.bytes())


@unhurried
@given(st.lists(intervals, max_size=12), st.lists(intervals, max_size=8))
def test_one_holder_at_a_time_is_blamed_as_the_oracle_says(
    holds: list[tuple[int, int, int, int]], waits: list[tuple[int, int, int, int]]
) -> None:
    trace = make(exclusive(holds), waits)
    expected: dict[tuple[int, int], int] = defaultdict(int)
    for i, wait in enumerate(trace.waits):
        for now in range(int(wait["start_ns"]), int(wait["end_ns"])):
            holder = HAND_OFF
            for j, hold in enumerate(trace.holds):
                if hold["lock"] == wait["lock"] and hold["start_ns"] <= now < hold["end_ns"]:
                    holder = j
            expected[i, holder] += 1

    found = shares(blame(trace))

    assert {(wait, hold): ns for wait, hold, ns in found} == dict(expected)
    assert len(found) == len(expected)


@settings(unhurried, max_examples=200)
@given(st.lists(intervals, max_size=12), st.lists(intervals, max_size=8))
def test_many_holders_at_a_time_share_exactly_the_covered_time(
    holds: list[tuple[int, int, int, int]], waits: list[tuple[int, int, int, int]]
) -> None:
    trace = make(holds, waits)
    result = blame(trace)

    assert sorted(result.pairs["wait"].tolist()) == result.pairs["wait"].tolist()
    for i, wait in enumerate(trace.waits):
        start, end = int(wait["start_ns"]), int(wait["end_ns"])
        overlapping = {
            j: min(end, int(hold["end_ns"])) - max(start, int(hold["start_ns"]))
            for j, hold in enumerate(trace.holds)
            if hold["lock"] == wait["lock"]
        }
        overlapping = {j: ns for j, ns in overlapping.items() if ns > 0}
        covered = {
            now
            for j in overlapping
            for now in range(
                max(start, int(trace.holds[j]["start_ns"])),
                min(end, int(trace.holds[j]["end_ns"])),
            )
        }
        parts = {hold: ns for w, hold, ns in shares(result) if w == i}
        assert sum(parts.values()) == end - start
        rest = parts.pop(HAND_OFF, 0)
        assert rest == end - start - len(covered)
        assert parts.keys() <= overlapping.keys()
        fair = dict.fromkeys(overlapping, 0.0)
        for now in covered:
            holding = [
                j
                for j in overlapping
                if int(trace.holds[j]["start_ns"]) <= now < int(trace.holds[j]["end_ns"])
            ]
            for j in holding:
                fair[j] += 1 / len(holding)
        for j, ns in fair.items():
            assert abs(parts.get(j, 0) - ns) <= 1 + 1e-9


@unhurried
@given(
    st.lists(st.tuples(intervals, st.integers(0, 80)), max_size=12),
    st.lists(intervals, max_size=12),
    st.integers(0, 1 << 50),
)
def test_the_parts_of_a_wait_always_add_up_to_it(
    waits: list[tuple[tuple[int, int, int, int], int]],
    holds: list[tuple[int, int, int, int]],
    epoch: int,
) -> None:
    builder = TraceBuilder()
    for lock, thread, a, b in holds:
        builder.add_hold(lock, thread, epoch + min(a, b), epoch + max(a, b))
    for (lock, thread, a, b), gil in waits:
        builder.add_wait(lock, thread, epoch + min(a, b), epoch + max(a, b), gil_ns=gil)
    trace = parse(builder.bytes())

    sums: dict[int, int] = defaultdict(int)
    for pair in blame(trace).pairs:
        assert pair["ns"] > 0
        assert 0 <= pair["gil_ns"] <= pair["ns"]
        sums[int(pair["wait"])] += int(pair["ns"])
    for i, record in enumerate(trace.waits):
        waited = int(record["end_ns"]) - int(record["start_ns"]) - int(record["gil_ns"])
        assert sums[i] == max(0, waited)


def test_more_locks_than_fit_on_one_line_of_64_bits_are_still_told_apart() -> None:
    builder = TraceBuilder()
    far = 1 << 53
    for lock in range(1, 2001):
        builder.add_hold(lock, 1, 0, 10)
        builder.add_wait(lock, 2, 5, 20)
    builder.add_hold(1, 1, far - 10, far)
    builder.add_wait(1, 2, far - 5, far)
    # The same with holds that overlap each other.
    builder.add_hold(2000, 3, 0, 10)

    result = shares(blame(parse(builder.bytes())))

    assert [pair for pair in result if pair[0] < 1999] == [
        pair for i in range(1999) for pair in ((i, i, 5), (i, HAND_OFF, 10))
    ]
    assert [pair for pair in result if pair[0] >= 1999] == [
        (1999, 1999, 2),
        (1999, 2001, 3),
        (1999, HAND_OFF, 10),
        (2000, 2000, 5),
    ]
