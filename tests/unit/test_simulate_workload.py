"""Work taken from traces made by hand: what a simulation is given, and that it replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contention_lab.simulate import POLICIES, Machine, simulate
from contention_lab.simulate.history import history
from contention_lab.simulate.lock_policy import NO_COSTS
from contention_lab.simulate.packing import EndReason, Op, OpFlag
from contention_lab.simulate.workload import Workload, recorded_policy, workload
from contention_lab.trace import HoldFlag, Outcome, WaitKind, load
from contention_lab.trace.builder import TraceBuilder
from contention_lab.trace.schema import State

if TYPE_CHECKING:
    from pathlib import Path

    from contention_lab.simulate.lock_policy import LockPolicy
    from contention_lab.simulate.outcome import Outcome as Simulated
    from contention_lab.trace import Lock, Trace

NO_GIL = {"python": {"gil": False}}
US = 1_000


@pytest.fixture
def made(tmp_path: Path) -> Any:
    def write(builder: TraceBuilder) -> Trace:
        builder.write(tmp_path / "made.clt")
        return load(tmp_path / "made.clt")

    return write


def steps(trace: Trace, thread: int) -> list[tuple[str, int]]:
    """Return the steps of a thread as (what, lock or ns)."""
    return [
        (Op(code).name, target if code in (Op.ACQUIRE, Op.RELEASE) else round(ns))
        for code, _, _, target, ns in history(trace, thread).ops.tolist()
    ]


def free(_lock: Lock) -> LockPolicy:
    return POLICIES["mcs"].lock(NO_COSTS)


def replayed(work: Workload, threads: int | None = None, cores: int = 16) -> Simulated:
    return simulate(work.program(free, threads=threads).tables(Machine.ideal(cores)))


def test_a_thread_thinks_and_holds_as_long_as_it_did(made: Any) -> None:
    builder = TraceBuilder(meta=NO_GIL, duration_ns=1000)
    lock, thread = builder.add_lock(), builder.add_thread(end_ns=1000)
    builder.add_hold(lock, thread, 100, 300)
    builder.add_hold(lock, thread, 700, 750)

    assert steps(made(builder), thread) == [
        ("COMPUTE", 100),
        ("ACQUIRE", lock),
        ("COMPUTE", 200),
        ("RELEASE", lock),
        ("COMPUTE", 400),
        ("ACQUIRE", lock),
        ("COMPUTE", 50),
        ("RELEASE", lock),
        ("COMPUTE", 250),
    ]


def test_waits_are_left_out_and_those_for_the_gil_with_the_lock_too(made: Any) -> None:
    builder = TraceBuilder(meta=NO_GIL, duration_ns=1000)
    lock, thread = builder.add_lock(), builder.add_thread(end_ns=1000)
    builder.add_wait(lock, thread, 100, 500, gil_ns=60)
    builder.add_hold(lock, thread, 440, 640)

    assert steps(made(builder), thread) == [
        ("COMPUTE", 100),
        ("ACQUIRE", lock),
        ("COMPUTE", 140),
        ("RELEASE", lock),
        ("COMPUTE", 360),
    ]


def test_locks_within_locks_stay_there_in_order(made: Any) -> None:
    builder = TraceBuilder(meta=NO_GIL, duration_ns=100)
    outer, inner = builder.add_lock(), builder.add_lock()
    thread = builder.add_thread(end_ns=100)
    builder.add_hold(inner, thread, 10, 40)  # begins and ends with the outer one
    builder.add_hold(outer, thread, 10, 40)
    builder.add_hold(outer, thread, 50, 90)
    builder.add_hold(inner, thread, 60, 70)

    found = [step for step in steps(made(builder), thread) if step[0] != "COMPUTE"]

    assert sorted(found[:2]) == [("ACQUIRE", outer), ("ACQUIRE", inner)]
    assert found[2:4] == [("RELEASE", found[1][1]), ("RELEASE", found[0][1])]
    assert found[4:] == [
        ("ACQUIRE", outer),
        ("ACQUIRE", inner),
        ("RELEASE", inner),
        ("RELEASE", outer),
    ]


def test_holds_too_short_for_the_clock_follow_each_other(made: Any) -> None:
    builder = TraceBuilder(meta=NO_GIL, duration_ns=100)
    lock, thread = builder.add_lock(), builder.add_thread(end_ns=100)
    for start, end in ((5, 10), (10, 10), (10, 10), (10, 30), (30, 30)):
        builder.add_hold(lock, thread, start, end)
    trace = made(builder)

    found = [what for what, _ in steps(trace, thread) if what != "COMPUTE"]

    assert found == ["ACQUIRE", "RELEASE"] * 5
    assert replayed(workload(trace)).elapsed_ns == 100.0


def test_waiting_for_an_event_is_time_off_the_core(made: Any) -> None:
    builder = TraceBuilder(meta=NO_GIL, duration_ns=1000)
    event, thread = builder.add_lock("threading.Event"), builder.add_thread(end_ns=1000)
    builder.add_wait(event, thread, 200, 800, kind=WaitKind.COORDINATION)

    assert steps(made(builder), thread) == [("COMPUTE", 200), ("SLEEP", 600), ("COMPUTE", 200)]


def test_a_wait_that_never_ended_is_no_work(made: Any) -> None:
    builder = TraceBuilder(meta=NO_GIL, duration_ns=1000)
    lock, thread = builder.add_lock(), builder.add_thread()
    builder.add_wait(lock, thread, 300, 0, outcome=Outcome.OPEN)

    assert steps(made(builder), thread) == [("COMPUTE", 300)]


def test_holds_that_were_only_counted_come_back_as_many_and_as_long(made: Any) -> None:
    builder = TraceBuilder(meta=NO_GIL, duration_ns=100 * US)
    lock, other = builder.add_lock(), builder.add_lock()
    thread = builder.add_thread(end_ns=100 * US)
    builder.add_hold(lock, thread, 40 * US, 60 * US)
    builder.add_wait(lock, thread, 10 * US, 40 * US)
    builder.add_counter(lock, thread, acquires=31, hold_ns=29 * US)
    builder.add_counter(other, thread, acquires=20, hold_ns=2 * US)
    trace = made(builder)

    work = workload(trace)
    ops = work.histories[0].ops
    acquired = ops["target"][ops["code"] == Op.ACQUIRE]

    assert np.count_nonzero(acquired == lock) == 31
    assert np.count_nonzero(acquired == other) == 20
    assert work.held_ns(lock) == pytest.approx(29 * US, rel=0.02)
    assert work.held_ns(other) == pytest.approx(2 * US, rel=0.02)
    assert work.work_ns == pytest.approx(70 * US, rel=1e-3)
    held = np.cumsum(np.where(ops["code"] == Op.ACQUIRE, 1, 0) - (ops["code"] == Op.RELEASE))
    assert held.max() == 1


def test_what_several_may_hold_is_no_lock(made: Any) -> None:
    builder = TraceBuilder(meta=NO_GIL, duration_ns=1000)
    semaphore = builder.add_lock("threading.Semaphore")
    thread = builder.add_thread(end_ns=1000)
    builder.add_hold(semaphore, thread, 100, 300)

    assert steps(made(builder), thread) == [("COMPUTE", 1000)]


def test_a_hold_released_by_another_thread_is_no_section_of_code(made: Any) -> None:
    builder = TraceBuilder(meta=NO_GIL, duration_ns=1000)
    lock = builder.add_lock()
    one, other = builder.add_thread(end_ns=1000), builder.add_thread(end_ns=1000)
    builder.add_hold(lock, one, 100, 300, release_thread=other, flags=int(HoldFlag.HANDED_OFF))

    found = [what for what, _ in steps(made(builder), one)]

    assert "ACQUIRE" not in found


def test_a_holder_in_input_and_output_sleeps_with_the_lock(made: Any) -> None:
    builder = TraceBuilder(meta=NO_GIL, duration_ns=100 * US)
    lock = builder.add_lock()
    thread = builder.add_thread(end_ns=100 * US, cpu_ns=30 * US)
    builder.add_hold(lock, thread, 0, 80 * US, cpu_ns=8 * US)
    for i in range(40):
        state = State.BLOCKED if i < 30 else State.RUNNABLE
        builder.add_state(i * 2 * US, thread, int(state))

    found = steps(made(builder), thread)

    assert found[:4] == [
        ("ACQUIRE", lock),
        ("COMPUTE", 8 * US),
        ("SLEEP", 72 * US),
        ("RELEASE", lock),
    ]


def test_the_gil_is_needed_for_the_share_that_samples_say(made: Any) -> None:
    builder = TraceBuilder(duration_ns=100 * US, meta={"python": {"gil": True}})
    thread = builder.add_thread(end_ns=100 * US, cpu_ns=100 * US)
    for i in range(51):
        builder.add_gil_sample(i * 2 * US, thread, held=i % 4 == 0)

    work = workload(made(builder))
    ops = work.histories[0].ops
    python = ops["ns"][(ops["flags"] & OpFlag.GIL) != 0].sum()

    assert work.gil
    assert python / ops["ns"].sum() == pytest.approx(0.25, abs=0.03)
    assert ops["ns"].sum() == pytest.approx(100 * US)


def contended(threads: int) -> TraceBuilder:
    """Return threads that each think 3 us and hold 1 us, fifty times, in perfect rotation."""
    end = 200 * US + threads * US
    builder = TraceBuilder(meta=NO_GIL, duration_ns=end)
    lock = builder.add_lock()
    for place in range(threads):
        thread = builder.add_thread(start_ns=place * US, end_ns=200 * US + place * US)
        for turn in range(50):
            began = place * US + turn * 4 * US + 3 * US
            builder.add_hold(lock, thread, began, began + US)
    return builder


def test_a_recording_replayed_takes_as_long_as_it_did(made: Any) -> None:
    work = workload(made(contended(3)))

    found = replayed(work)

    assert found.reason == EndReason.DONE
    assert found.elapsed_ns == pytest.approx(200 * US, rel=0.03)
    assert int(found.locks["acquires"].sum()) == 150


@pytest.mark.parametrize("threads", [1, 2, 4, 12])
def test_the_work_is_the_same_whoever_does_it(made: Any, threads: int) -> None:
    work = workload(made(contended(4)))

    found = replayed(work, threads)

    assert int(found.locks["acquires"].sum()) == 200
    assert float(found.threads["run_ns"].sum()) == pytest.approx(work.work_ns)
    bound = max(work.work_ns / threads, work.held_ns(1))
    assert bound * 0.999 <= found.elapsed_ns <= bound * 1.35


def test_work_is_cut_only_where_no_lock_is_held(made: Any) -> None:
    work = workload(made(contended(4)))

    for which, start, stop in work.pieces(64):
        ops = work.histories[which].ops[start:stop]
        assert np.count_nonzero(ops["code"] == Op.ACQUIRE) == np.count_nonzero(
            ops["code"] == Op.RELEASE
        )
        assert ops["code"][0] != Op.RELEASE


def test_a_thread_that_only_waits_for_others_does_no_work(made: Any) -> None:
    builder = contended(2)
    joined, main = builder.add_lock("threading.Thread"), builder.add_thread(is_main=True)
    builder.add_wait(joined, main, 0, 202 * US, kind=WaitKind.COORDINATION)

    assert len(workload(made(builder)).histories) == 2


def test_locks_are_simulated_as_what_they_are(made: Any) -> None:
    from contention_lab.simulate.calibration import default_calibration

    builder = TraceBuilder(meta=NO_GIL, duration_ns=100)
    thread = builder.add_thread(end_ns=100)
    for place, kind in enumerate(("SpinLock", "threading.Lock")):
        builder.add_hold(builder.add_lock(kind), thread, 10 * place, 10 * place + 5)
    work = workload(made(builder))

    spin, mutex = (recorded_policy(lock, default_calibration(2)) for lock in work.locks)

    assert spin.spin_ns == float("inf")
    assert mutex.spin_ns == 0.0


@st.composite
def nested_holds(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Draw (lock, start, end) of holds of one thread that are properly nested."""
    found: list[tuple[int, int, int]] = []

    def fill(began: int, ended: int, depth: int) -> None:
        at = began
        while ended - at > 4 and draw(st.booleans()):
            start = draw(st.integers(at, ended - 3))
            end = draw(st.integers(start + 2, ended))
            found.append((depth, start, end))
            if depth < 3:
                fill(start, end, depth + 1)
            at = end

    fill(0, 1000, 0)
    return found


@settings(max_examples=80, deadline=None)
@given(holds=nested_holds(), counted=st.integers(0, 30))
def test_any_nesting_replays_in_the_time_of_its_work(
    holds: list[tuple[int, int, int]], counted: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    builder = TraceBuilder(meta=NO_GIL, duration_ns=1000)
    locks = [builder.add_lock() for _ in range(4)]
    thread = builder.add_thread(end_ns=1000)
    for depth, start, end in holds:
        builder.add_hold(locks[depth], thread, start, end)
    if counted:
        builder.add_counter(locks[3], thread, acquires=counted, hold_ns=2 * counted)
    path = tmp_path_factory.mktemp("any") / "made.clt"
    builder.write(path)

    work = workload(load(path))
    found = replayed(work)

    assert found.reason == EndReason.DONE
    assert found.elapsed_ns == pytest.approx(1000.0)
    assert int(found.locks["acquires"].sum()) >= len(holds)
    assert not found.locks["contended"].any()
