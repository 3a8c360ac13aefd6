"""What holders did while they held, on hand-made traces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contention_lab.analysis.holding import PARTS, Holding, holding
from contention_lab.trace import (
    Call,
    ChunkKind,
    HoldFlag,
    State,
    Trace,
    TraceBuilder,
    WaitKind,
    parse,
)
from contention_lab.trace.layer_schema import BlockingFlag, WorldCall

MS = 1_000_000


def held(trace: Trace, hold: int = 0) -> dict[str, float]:
    """Return the parts of a hold in milliseconds, without those that are nothing."""
    parts = holding(trace).parts_ns[hold]
    return {name: ns / MS for name, ns in zip(PARTS, parts.tolist(), strict=True) if ns}


class Holder:
    """One thread that holds one lock for 100 ms, sampled every millisecond."""

    def __init__(self, *, cpu_ms: float = 0.0, preemptions: int = 0, gil: bool = True) -> None:
        self.builder = TraceBuilder(meta={"python": {"gil": gil}})
        self.lock = self.builder.add_lock("threading.Lock", name="cache")
        self.thread, self.other = self.builder.add_thread("holder"), self.builder.add_thread("a")
        site = self.builder.add_frame("refresh", "/src/cache.py", 9)
        self.builder.add_hold(
            self.lock,
            self.thread,
            0,
            100 * MS,
            site=site,
            cpu_ns=round(cpu_ms * MS),
            preemptions=preemptions,
            waiters=1,
        )
        self.builder.add_wait(self.lock, self.other, 0, 100 * MS, holder=self.thread)

    def samples(self, first: int, last: int, state: State, call: int = 0, *, gil: int = 0) -> None:
        """Add samples of the holder, and beside each one who has the GIL."""
        for at in range(first, last):
            self.builder.add_state(at * MS + MS // 2, self.thread, state, call=call)
            self.builder.add_gil_sample(at * MS + MS // 2 + 5000, gil, held=gil != 0)

    def trace(self) -> Trace:
        return parse(self.builder.bytes())


def test_recorded_calls_outdo_what_few_samples_say() -> None:
    holder = Holder(cpu_ms=5.0, preemptions=3)
    holder.samples(0, 4, State.RUNNABLE)  # on a busy machine
    for start, end, call in ((2, 60, WorldCall.FSYNC), (60, 92, WorldCall.WRITE)):
        holder.builder.add_layer_event(
            ChunkKind.BLOCKING,
            start_ns=start * MS,
            end_ns=end * MS,
            thread=holder.thread,
            lock=holder.lock,
            call=int(call),
        )
    trace = holder.trace()

    parts = held(trace)
    assert parts["blocked"] == pytest.approx(90.0)
    assert sum(parts.values()) == pytest.approx(100.0)
    time = holding(trace).of(np.array([0]), np.array([100 * MS]))
    assert time.world == {
        WorldCall.FSYNC: pytest.approx(0.058),
        WorldCall.WRITE: pytest.approx(0.032),
    }


def test_who_runs_in_a_recorded_call_is_blocked_in_it_and_does_no_native_work() -> None:
    holder = Holder(cpu_ms=60.0, preemptions=1)
    holder.samples(0, 30, State.RUNNABLE)  # in the kernel, or woken and without a core
    holder.samples(30, 60, State.BLOCKED, Call.WRITE)
    holder.samples(60, 90, State.RUNNABLE, gil=1)
    holder.samples(90, 100, State.RUNNABLE)
    holder.builder.add_layer_event(
        ChunkKind.BLOCKING,
        end_ns=60 * MS,
        thread=holder.thread,
        lock=holder.lock,
        call=int(WorldCall.FSYNC),
    )
    # Of 70 looks at which it was on the books for a core, 40 were outside of the call: so was its
    # CPU time, and a quarter of that without the GIL.
    on_ms = 60.0 * 40 / 70
    assert held(holder.trace()) == {
        "python": pytest.approx(on_ms * 0.75, rel=0.02),
        "native": pytest.approx(on_ms * 0.25, rel=0.02),
        "blocked": pytest.approx(60.0),
        "preempted": pytest.approx(40.0 - on_ms, rel=0.02),
    }


def test_a_call_that_is_not_seen_to_end_lasts_as_long_as_the_recording() -> None:
    holder = Holder()
    holder.samples(0, 100, State.RUNNABLE)
    holder.builder.add_layer_event(
        ChunkKind.BLOCKING,
        start_ns=20 * MS,
        thread=holder.thread,
        lock=holder.lock,
        call=int(WorldCall.FSYNC),
        flags=int(BlockingFlag.OPEN),
    )
    assert held(holder.trace()) == {
        "native": pytest.approx(20.0, rel=0.03),
        "blocked": pytest.approx(80.0, rel=0.03),
    }


def test_a_holder_that_sleeps_is_blocked() -> None:
    holder = Holder(cpu_ms=1.0)
    holder.samples(0, 100, State.BLOCKED, Call.SLEEP)
    trace = holder.trace()

    assert held(trace) == {"python": pytest.approx(1.0), "blocked": pytest.approx(99.0)}
    time = holding(trace).of(np.array([0]), np.array([300 * MS]))
    assert time.calls == {Call.SLEEP: pytest.approx(0.297)}
    assert time.total_s == pytest.approx(0.3)
    assert time.own_share("blocked") == pytest.approx(0.99)


def test_running_with_the_gil_is_python_and_without_it_native() -> None:
    holder = Holder()
    holder.samples(0, 25, State.RUNNABLE, gil=1)
    holder.samples(25, 100, State.RUNNABLE)

    assert held(holder.trace()) == {
        "python": pytest.approx(25.0, abs=0.5),
        "native": pytest.approx(75.0, abs=0.5),
    }


def test_without_a_gil_all_running_is_python() -> None:
    holder = Holder(gil=False)
    for at in range(100):
        holder.builder.add_state(at * MS + MS // 2, holder.thread, State.RUNNABLE)

    assert held(holder.trace()) == {"python": 100.0}


def test_waiting_for_the_gil_and_for_native_locks_is_told_apart() -> None:
    holder = Holder(cpu_ms=10.0)
    holder.samples(0, 10, State.RUNNABLE, gil=1)
    holder.samples(10, 70, State.AWAITS_GIL, gil=2)
    holder.samples(70, 100, State.AWAITS_LOCK)

    parts = held(holder.trace())
    assert parts == {
        "python": pytest.approx(10.0),
        "gil": pytest.approx(60.0, abs=1.0),
        "native_lock": pytest.approx(30.0, abs=1.0),
    }


def test_runnable_beyond_its_cpu_time_is_preempted() -> None:
    holder = Holder(cpu_ms=20.0, preemptions=4)
    holder.samples(0, 100, State.RUNNABLE, gil=1)

    assert held(holder.trace()) == {"python": 20.0, "preempted": 80.0}


def test_recorded_waits_within_a_hold_are_measured() -> None:
    holder = Holder()
    inner = holder.builder.add_lock("threading.Lock", name="inner")
    holder.builder.add_wait(inner, holder.thread, 10 * MS, 40 * MS, gil_ns=5 * MS)
    holder.builder.add_wait(
        inner, holder.thread, 50 * MS, 70 * MS, kind=WaitKind.COORDINATION, park_ns=20 * MS
    )
    holder.samples(70, 100, State.BLOCKED, Call.READ)
    parts = held(holder.trace())

    assert (parts["lock"], parts["others"], parts["gil"]) == (25.0, 20.0, 5.0)
    assert parts["blocked"] == pytest.approx(50.0)


def test_the_wait_for_the_gil_at_the_start_is_no_time_of_the_holders_code() -> None:
    holder = Holder()
    holder.builder.add_wait(holder.lock, holder.thread, 0, 20 * MS, gil_ns=20 * MS)
    holder.samples(20, 100, State.BLOCKED, Call.WRITE)
    trace = holder.trace()

    assert held(trace) == {"blocked": 80.0, "gil": 20.0}
    assert holding(trace).entry_gil_ns[0] == 20 * MS
    time = holding(trace).of(np.array([0]), np.array([80 * MS]))
    assert time.parts["blocked"] == pytest.approx(0.08)
    assert time.parts["gil"] == 0.0


def test_without_samples_only_cpu_time_is_known() -> None:
    assert held(Holder().trace()) == {"unknown": 100.0}
    assert held(Holder(cpu_ms=30.0).trace()) == {"python": 30.0, "unknown": 70.0}


def test_without_samples_a_holder_off_the_cpu_is_blocked_while_nobody_has_the_gil() -> None:
    holder = Holder(cpu_ms=10.0)
    for at in range(100):
        holder.builder.add_gil_sample(at * MS, 2 if at < 40 else 0, held=at < 40)

    assert held(holder.trace()) == {
        "python": 10.0,
        "blocked": pytest.approx(54.0, abs=1.0),
        "unknown": pytest.approx(36.0, abs=1.0),
    }


def test_short_holds_are_spent_like_others_at_their_place() -> None:
    builder = TraceBuilder()
    lock, thread = builder.add_lock(name="log"), builder.add_thread()
    site = builder.add_frame("write", "/src/log.py", 4)
    for number in range(30):  # of 3 ms each, sampled once in a while
        start = number * 10 * MS
        builder.add_hold(lock, thread, start, start + 3 * MS, site=site, waiters=1)
        if number % 3 == 0:
            builder.add_state(start + MS, thread, State.BLOCKED, call=Call.WRITE)
    parts = holding(parse(builder.bytes())).parts_ns

    assert (parts[:, PARTS.index("blocked")] == 3 * MS).all()


def test_one_sample_at_a_place_says_nothing() -> None:
    builder = TraceBuilder()
    lock, thread = builder.add_lock(name="log"), builder.add_thread()
    builder.add_hold(lock, thread, 0, 3 * MS, waiters=1)
    builder.add_state(MS, thread, State.BLOCKED, call=Call.WRITE)

    assert held(parse(builder.bytes())) == {"unknown": 3.0}


def test_holds_nobody_waited_for_are_not_looked_into() -> None:
    builder = TraceBuilder()
    lock, thread = builder.add_lock(name="log"), builder.add_thread()
    builder.add_hold(lock, thread, 0, 3 * MS, cpu_ns=MS, flags=int(HoldFlag.UNCONTENDED))

    assert held(parse(builder.bytes())) == {"unknown": 3.0}


times = st.integers(0, 60)


@settings(deadline=None, max_examples=25)
@given(
    holds=st.lists(st.tuples(st.integers(1, 3), times, times, times), min_size=1, max_size=8),
    waits=st.lists(st.tuples(st.integers(1, 3), times, times, times), max_size=8),
    states=st.lists(
        st.tuples(st.integers(1, 3), times, st.sampled_from(State), st.booleans()), max_size=40
    ),
)
def test_the_parts_of_a_hold_add_up_to_it(
    holds: list[tuple[int, int, int, int]],
    waits: list[tuple[int, int, int, int]],
    states: list[tuple[int, int, State, bool]],
) -> None:
    builder = TraceBuilder()
    lock = builder.add_lock(name="any")
    for _ in range(3):
        builder.add_thread()
    for thread, start, length, cpu in holds:
        builder.add_hold(lock, thread, start, start + length, cpu_ns=cpu, preemptions=cpu % 3)
    for thread, start, length, gil in waits:
        builder.add_wait(lock, thread, start, start + length, gil_ns=min(gil, length))
    for thread, time, state, own in states:
        builder.add_state(time, thread, state)
        builder.add_gil_sample(time, thread if own else 0, held=own)
    trace = parse(builder.bytes())
    found: Holding = holding(trace)
    length_ns = trace.holds["end_ns"].astype(np.int64) - trace.holds["start_ns"].astype(np.int64)

    assert found.parts_ns.sum(axis=1).tolist() == length_ns.tolist()
    assert (found.parts_ns >= 0).all()
    assert (found.entry_gil_ns <= length_ns).all()


def short_holds(*, gil_holds: int, counted: bool = True) -> float:
    """Return the share of 1,000 holds of 4 us without a sample that is said to be Python."""
    builder = TraceBuilder(duration_ns=100 * MS)
    site = builder.add_frame("trade", "/src/book.py", 3)
    lock = builder.add_lock("threading.Lock", name="guard", site=site)
    thread = builder.add_thread("trader")
    for at in range(1000):
        start = at * 10_000
        builder.add_hold(lock, thread, start, start + 4000, site=site)
    if counted:
        builder.add_layer_event(ChunkKind.GIL_TOTALS, thread=thread, holds=gil_holds, held_ns=MS)
    trace = parse(builder.bytes())
    time = holding(trace).of(np.arange(1000), np.full(1000, 4000))
    return time.parts["python"] / time.total_s


def test_holds_in_which_the_gil_cannot_have_been_let_go_ran_python() -> None:
    assert short_holds(gil_holds=100) == pytest.approx(0.9, abs=0.01)
    assert short_holds(gil_holds=2000) == 0.0  # in each it may have been
    assert short_holds(gil_holds=0, counted=False) == 0.0
