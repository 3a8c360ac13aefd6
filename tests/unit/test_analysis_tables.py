"""Lock table, block matrix and thread time of hand-made traces, and sums that must agree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contention_lab.analysis import (
    GIL,
    LockRow,
    blame,
    block_matrix,
    lock_table,
    thread_time,
    working,
)
from contention_lab.trace import (
    HoldFlag,
    Outcome,
    Trace,
    TraceBuilder,
    WaitKind,
    parse,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""On a loaded machine any example may be slow; that is no failure."""


def table(builder: TraceBuilder) -> tuple[LockRow, ...]:
    return lock_table(parse(builder.bytes()))


# Lock table


def test_totals_come_from_counters_and_quantiles_from_waits() -> None:
    builder = TraceBuilder(duration_ns=1000)
    lock, a, b = builder.add_lock(), builder.add_thread(), builder.add_thread()
    for length in range(1, 101):
        builder.add_wait(lock, a, 0, length)
    builder.add_counter(
        lock,
        a,
        acquires=500,
        contended=100,
        wait_ns=5050,
        spin_ns=50,
        park_ns=5000,
        hold_ns=600,
        max_wait_ns=100,
        max_hold_ns=77,
    )
    builder.add_counter(lock, b, acquires=3, failed_tries=4, timed_out=2, hold_ns=100)
    (row,) = table(builder)

    assert (row.acquires, row.contended, row.failed_tries, row.timed_out) == (503, 100, 4, 2)
    assert (row.wait_s, row.spin_s, row.park_s) == pytest.approx((5050e-9, 50e-9, 5000e-9))
    assert (row.wait_p50_s, row.wait_p99_s, row.wait_max_s) == (50e-9, 99e-9, 100e-9)
    assert (row.hold_s, row.hold_max_s) == pytest.approx((700e-9, 77e-9))
    assert row.utilisation == pytest.approx(0.7)
    assert row.threads == 2
    assert (row.open_waits, row.missing_waits) == (0, 0)


def test_time_for_the_gil_is_not_waiting_for_the_lock() -> None:
    builder = TraceBuilder()
    lock, a = builder.add_lock(), builder.add_thread()
    builder.add_wait(lock, a, 0, 100, gil_ns=30)
    (row,) = table(builder)

    assert (row.wait_s, row.gil_s, row.wait_max_s) == (70e-9, 30e-9, 70e-9)


def test_dropped_waits_are_told_and_the_longest_is_still_known() -> None:
    builder = TraceBuilder()
    lock, a = builder.add_lock(), builder.add_thread()
    builder.add_wait(lock, a, 0, 10)
    builder.add_counter(lock, a, contended=5, wait_ns=500, max_wait_ns=300)
    (row,) = table(builder)

    assert row.missing_waits == 4
    assert (row.wait_s, row.wait_max_s, row.wait_p99_s) == (500e-9, 300e-9, 10e-9)


def test_a_file_cut_before_its_counters_has_what_was_recorded() -> None:
    builder = TraceBuilder(derive_counters=False)
    lock, a = builder.add_lock(), builder.add_thread()
    builder.add_wait(lock, a, 0, 100, spin_ns=40, park_ns=60, gil_ns=10)
    builder.add_hold(lock, a, 90, 300)
    (row,) = table(builder)

    assert (row.contended, row.missing_waits) == (1, 0)
    assert (row.wait_s, row.spin_s, row.park_s, row.gil_s) == (90e-9, 40e-9, 60e-9, 10e-9)
    assert row.hold_s == pytest.approx(210e-9)


def test_open_waits_and_open_holds_count_until_the_end() -> None:
    builder = TraceBuilder(duration_ns=1000)
    lock, a, b = builder.add_lock(), builder.add_thread(), builder.add_thread()
    builder.add_wait(lock, b, 100, 200)
    builder.add_wait(lock, b, 300, 1000, outcome=Outcome.OPEN)
    builder.add_hold(lock, a, 250, 0, flags=HoldFlag.OPEN)
    (row,) = table(builder)

    assert (row.contended, row.open_waits, row.missing_waits) == (2, 1, 0)
    assert (row.wait_s, row.wait_max_s) == (800e-9, 700e-9)
    assert (row.hold_s, row.hold_max_s, row.utilisation) == pytest.approx((750e-9, 750e-9, 0.75))
    assert row.threads == 2


def test_the_most_waited_for_lock_is_first_and_idle_locks_are_absent() -> None:
    builder = TraceBuilder()
    idle, little, much = (builder.add_lock(name=name) for name in ("idle", "little", "much"))
    a = builder.add_thread()
    builder.add_wait(little, a, 0, 10)
    builder.add_wait(much, a, 0, 20)

    assert [row.lock.name for row in table(builder)] == ["much", "little"]
    assert idle not in {row.lock.id for row in table(builder)}


def test_a_row_as_json_names_the_lock_and_its_site() -> None:
    builder = TraceBuilder()
    site = builder.add_frame("Server.__init__", "/src/server.py", 31)
    lock = builder.add_lock("SpinLock", name="autodiff server", site=site)
    builder.add_wait(lock, builder.add_thread(), 0, 10)
    (row,) = table(builder)

    written: dict[str, Any] = json.loads(json.dumps(row.to_json()))
    assert written["lock"] == "autodiff server"
    assert written["type"] == "SpinLock"
    assert written["site"] == {
        "file": "/src/server.py",
        "line": 31,
        "function": "Server.__init__",
    }
    assert written["wait_s"] == row.wait_s
    assert set(written) == {*LockRow.__slots__, "type", "site", "instance"}


def test_coordination_is_in_no_row() -> None:
    builder = TraceBuilder()
    lock, a = builder.add_lock(), builder.add_thread()
    builder.add_wait(lock, a, 0, 100, kind=WaitKind.COORDINATION)
    builder.add_hold(lock, a, 100, 110)
    (row,) = table(builder)

    assert (row.contended, row.wait_s, row.wait_max_s) == (0, 0, 0)


# Block matrix


def matrix_case() -> TraceBuilder:
    builder = TraceBuilder()
    register = builder.add_frame("register", "/src/client.py", 20)
    backward = builder.add_frame("backward", "/src/client.py", 40)
    acquire = builder.add_frame("Lock.acquire", "/usr/lib/python3.11/threading.py", 1)
    register_stack = builder.add_stack(acquire, register)
    backward_stack = builder.add_stack(backward)
    lock = builder.add_lock()
    a, b = builder.add_thread(), builder.add_thread()
    builder.add_hold(lock, a, 0, 90, site=backward, stack=backward_stack)
    builder.add_hold(lock, b, 90, 100, site=acquire, stack=register_stack)
    builder.add_wait(lock, b, 10, 90, stack=register_stack)
    builder.add_wait(lock, a, 92, 105, stack=backward_stack)
    builder.add_wait(lock, a, 200, 203, stack=backward_stack, holder=b, holder_site=register)
    builder.add_wait(lock, a, 300, 301)
    return builder


def test_the_matrix_names_user_code_on_both_sides() -> None:
    trace = parse(matrix_case().bytes())
    matrix = block_matrix(trace, blame(trace))

    def names(frames: Sequence[Any]) -> list[str | None]:
        return [frame and frame.function for frame in frames]

    assert names(matrix.victims) == ["register", "backward", None]
    assert names(matrix.culprits) == ["backward", "register", None]
    assert (matrix.seconds * 1e9).round().tolist() == [[80, 0, 0], [0, 11, 5], [0, 0, 1]]


def test_the_matrix_of_chosen_locks_leaves_the_others_out() -> None:
    trace = parse(matrix_case().bytes())

    assert block_matrix(trace, blame(trace), locks=[99]).seconds.shape == (0, 0)
    assert block_matrix(trace, blame(trace), locks=[1]).seconds.sum() == pytest.approx(97e-9)


def test_the_matrix_sets_holders_apart_that_wait_for_the_gil() -> None:
    builder = TraceBuilder()
    backward = builder.add_frame("backward", "/src/client.py", 40)
    stack = builder.add_stack(backward)
    lock, a, b = builder.add_lock(), builder.add_thread(), builder.add_thread()
    builder.add_hold(lock, a, 100, 400, site=backward)
    builder.add_wait(lock, a, 90, 300, gil_ns=200)
    builder.add_wait(lock, b, 150, 400, stack=stack)
    trace = parse(builder.bytes())
    matrix = block_matrix(trace, blame(trace))

    assert matrix.culprits == (GIL, trace.frames[1], None)
    assert (matrix.seconds * 1e9).round().tolist() == [[150, 100, 0], [0, 0, 10]]


# Thread time


def test_a_threads_time_is_told_apart() -> None:
    builder = TraceBuilder(duration_ns=1000)
    lock = builder.add_lock()
    worker = builder.add_thread("worker", start_ns=0, end_ns=1000, cpu_ns=500)
    builder.add_wait(lock, worker, 0, 400, spin_ns=250, spin_cpu_ns=200, park_ns=100, gil_ns=50)
    builder.add_wait(lock, worker, 500, 600, kind=WaitKind.COORDINATION)
    (time,) = thread_time(parse(builder.bytes()))

    found = (time.wall_s, time.cpu_s, time.run_s, time.spin_s, time.park_s, time.gil_s)
    assert found == pytest.approx((1000e-9, 500e-9, 300e-9, 250e-9, 100e-9, 50e-9))
    assert time.coordination_s == pytest.approx(100e-9)
    assert time.other_s == pytest.approx(200e-9)
    assert time.thread.name == "worker"


def test_unmeasured_spinning_is_taken_for_cpu_time() -> None:
    builder = TraceBuilder(duration_ns=1000)
    lock, worker = builder.add_lock(), builder.add_thread(cpu_ns=500)
    builder.add_wait(lock, worker, 0, 300, spin_ns=300)
    (time,) = thread_time(parse(builder.bytes()))

    assert (time.run_s, time.spin_s) == pytest.approx((200e-9, 300e-9))


def test_a_thread_still_waiting_is_parked_until_the_end() -> None:
    builder = TraceBuilder(duration_ns=1000)
    lock, worker = builder.add_lock(), builder.add_thread()
    builder.add_wait(lock, worker, 400, 1000, outcome=Outcome.OPEN)
    (time,) = thread_time(parse(builder.bytes()))

    assert (time.wall_s, time.park_s) == pytest.approx((1000e-9, 600e-9))


# Sums agree, whatever the trace


records = st.tuples(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 500),
    st.integers(0, 300),
    st.integers(0, 40),
    st.sampled_from(Outcome),
    st.sampled_from(WaitKind),
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    builder = TraceBuilder(duration_ns=draw(st.integers(0, 900)))
    frames = [builder.add_frame(name, f"{name}.py", 1) for name in "abc"]
    stacks = [0, *(builder.add_stack(frame) for frame in frames)]
    for _ in range(2):
        builder.add_lock()
    for end_ns in draw(st.lists(st.integers(0, 900), min_size=3, max_size=3)):
        builder.add_thread(end_ns=end_ns, cpu_ns=draw(st.integers(0, 2000)))
    for lock, thread, start, length, gil, outcome, kind in draw(st.lists(records, max_size=15)):
        builder.add_wait(
            lock,
            thread,
            start,
            start + length + gil,
            gil_ns=gil,
            spin_ns=length // 2,
            spin_cpu_ns=length // 3,
            park_ns=length - length // 2,
            outcome=outcome,
            kind=kind,
            stack=draw(st.sampled_from(stacks)),
        )
    for lock, thread, start, length, _, _, _ in draw(st.lists(records, max_size=15)):
        builder.add_hold(
            lock,
            thread,
            start,
            start + length,
            site=draw(st.sampled_from([0, *frames])),
            stack=draw(st.sampled_from(stacks)),
            flags=draw(st.sampled_from([0, HoldFlag.OPEN, HoldFlag.UNCONTENDED])),
        )
    return parse(builder.bytes())


@unhurried
@given(traces())
def test_rows_matrix_and_blame_have_the_same_waiting(trace: Trace) -> None:
    result = blame(trace)
    tried = sum(
        int(pair["ns"])
        for pair in result.pairs
        if trace.waits["outcome"][pair["wait"]] == Outcome.FAILED_TRY
    )

    waited = sum(row.wait_s for row in lock_table(trace))
    assert waited * 1e9 == pytest.approx(result.total_ns - tried, abs=1)
    matrix = block_matrix(trace, result)
    assert matrix.seconds.sum() * 1e9 == pytest.approx(result.total_ns, abs=1)


@unhurried
@given(traces())
def test_the_parts_of_a_threads_time_are_never_negative_and_fit_into_its_wall_time(
    trace: Trace,
) -> None:
    for time in thread_time(trace):
        parts = (
            time.run_s,
            time.spin_s,
            time.park_s,
            time.gil_s,
            time.coordination_s,
            time.other_s,
        )
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(time.wall_s)


@unhurried
@given(traces())
def test_rows_agree_with_a_count_by_hand(trace: Trace) -> None:
    for row in lock_table(trace):
        waits = [
            wait
            for wait in trace.waits
            if wait["lock"] == row.lock.id and wait["kind"] == WaitKind.CONTENTION
        ]
        assert row.contended == sum(wait["outcome"] != Outcome.FAILED_TRY for wait in waits)
        assert row.open_waits == sum(wait["outcome"] == Outcome.OPEN for wait in waits)
        assert row.missing_waits == 0
        lengths = sorted(
            (
                max(int(wait["end_ns"]), trace.duration_ns)
                if wait["outcome"] == Outcome.OPEN
                else int(wait["end_ns"])
            )
            - int(wait["start_ns"])
            - int(wait["gil_ns"])
            for wait in waits
            if wait["outcome"] != Outcome.FAILED_TRY
        )
        if lengths:
            assert row.wait_max_s == max(0, lengths[-1]) / 1e9
            assert row.wait_p50_s == max(0, lengths[(len(lengths) + 1) // 2 - 1]) / 1e9


def test_a_thread_that_only_waits_for_others_does_not_count_as_working() -> None:
    builder = TraceBuilder(duration_ns=100)
    joined = builder.add_lock("Thread.join")
    main = builder.add_thread("main", cpu_ns=1)
    worker = builder.add_thread("worker", cpu_ns=90)
    builder.add_wait(joined, main, 1, 99, kind=WaitKind.COORDINATION)
    times = thread_time(parse(builder.bytes()))

    assert [time.thread.id for time in times] == [main, worker]
    assert [time.thread.id for time in working(times)] == [worker]


def test_tasks_have_no_thread_time_of_their_own() -> None:
    builder = TraceBuilder(duration_ns=100)
    loop = builder.add_thread("MainThread", cpu_ns=90)
    builder.add_thread("Task-1", is_task=True)

    assert [time.thread.id for time in thread_time(parse(builder.bytes()))] == [loop]
