"""Who has the GIL and who wants it, on hand-made traces."""

from __future__ import annotations

import pytest

from contention_lab.analysis.gil_use import GilThread, gil_use
from contention_lab.trace import Call, ChunkKind, State, TraceBuilder, parse

MS = 1_000_000


def threads(builder: TraceBuilder) -> dict[str, GilThread]:
    use = gil_use(parse(builder.bytes()))
    assert use is not None
    return {one.thread.name: one for one in use.threads}


def test_a_trace_without_samples_has_no_use_of_the_gil() -> None:
    assert gil_use(parse(TraceBuilder(duration_ns=MS).bytes())) is None


def test_held_time_is_weighed_by_the_time_between_samples() -> None:
    builder = TraceBuilder(duration_ns=100 * MS)
    builder.add_thread("a")
    builder.add_thread("b")
    for at in range(20):  # every millisecond
        builder.add_gil_sample(at * MS, 1)
    for at in range(20, 100, 8):  # every eight
        builder.add_gil_sample(at * MS, 2, held=at < 60)
    use = gil_use(parse(builder.bytes()))

    assert use is not None
    assert use.held_share == pytest.approx(0.56, abs=0.04)
    held = {one.thread.name: one.held_s for one in use.threads}
    assert held["a"] == pytest.approx(0.02, abs=0.001)
    assert held["b"] == pytest.approx(0.036, abs=0.004)
    assert not use.sampled
    assert use.switch_interval_s == 0.005


def test_a_row_of_samples_is_one_wait_for_the_gil() -> None:
    builder = TraceBuilder(duration_ns=100 * MS, meta={"switch_interval_s": 0.002})
    builder.add_thread("io")
    for at in range(100):
        waiting = at % 10 >= 4  # 6 ms of every 10
        state = State.AWAITS_GIL if waiting else State.BLOCKED
        builder.add_state(at * MS, 1, state, call=0 if waiting else Call.READ)
        builder.add_gil_sample(at * MS + 5000, 0)
    (io,) = threads(builder).values()

    assert io.wait_s == pytest.approx(0.06, abs=0.002)
    assert io.blocked_s == pytest.approx(0.04, abs=0.002)
    assert io.returns == 10
    assert io.wait_each_s == pytest.approx(0.006)


def test_what_was_seen_less_often_counts_for_longer() -> None:
    builder = TraceBuilder(duration_ns=10_000 * MS)
    builder.add_thread("native")
    builder.add_thread("python")
    for at in [*range(0, 3000, 8), *range(3000, 10_000, 50)]:  # as in a recording of ten seconds
        early = at < 3000
        builder.add_state(at * MS, 1, State.RUNNABLE if early else State.BLOCKED)
        builder.add_gil_sample(at * MS + 5000, 2, held=early)
    use = gil_use(parse(builder.bytes()))

    assert use is not None
    assert use.held_share == pytest.approx(0.3, abs=0.01)
    held = {one.thread.name: one.held_s for one in use.threads}
    assert held == {"native": 0.0, "python": pytest.approx(3.0, abs=0.05)}
    native = threads(builder)["native"]
    assert native.native_s == pytest.approx(3.0, abs=0.05)
    assert native.blocked_s == pytest.approx(7.0, abs=0.05)


def test_time_in_recorded_waits_is_not_divided_by_samples() -> None:
    builder = TraceBuilder(duration_ns=100 * MS)
    lock = builder.add_lock(name="cache")
    builder.add_thread("a")
    builder.add_wait(lock, 1, 0, 80 * MS, gil_ns=10 * MS)
    for at in range(80, 100):
        builder.add_state(at * MS, 1, State.AWAITS_GIL)
        builder.add_gil_sample(at * MS + 5000, 0)
    (one,) = threads(builder).values()

    assert one.wait_s == pytest.approx(0.03)
    assert one.blocked_s == pytest.approx(0.07)


def test_tasks_have_no_gil() -> None:
    builder = TraceBuilder(duration_ns=10 * MS)
    builder.add_thread("loop")
    builder.add_thread("task", is_task=True)
    for at in range(10):
        builder.add_gil_sample(at * MS, 1)

    assert list(threads(builder)) == ["loop"]


def test_exact_events_need_no_samples() -> None:
    builder = TraceBuilder(duration_ns=100 * MS)
    for name, wait_ms, held_ms in (("a", 20, 50), ("b", 40, 30)):
        thread = builder.add_thread(name)
        builder.add_layer_event(
            ChunkKind.GIL_TOTALS, thread=thread, wait_ns=wait_ms * MS, held_ns=held_ms * MS, holds=1
        )
    use = gil_use(parse(builder.bytes()))

    assert use is not None
    assert use.exact
    assert use.held_share == pytest.approx(0.8)
    assert [(one.thread.name, one.wait_s) for one in use.threads] == [
        ("a", pytest.approx(0.02)),
        ("b", pytest.approx(0.04)),
    ]


def test_samples_do_not_change_the_share_of_exact_events() -> None:
    builder = TraceBuilder(duration_ns=100 * MS)
    thread = builder.add_thread("a")
    builder.add_layer_event(ChunkKind.GIL_TOTALS, thread=thread, held_ns=10 * MS, holds=1)
    for at in range(100):
        builder.add_gil_sample(at * MS, thread)
    use = gil_use(parse(builder.bytes()))

    assert use is not None
    assert use.held_share == pytest.approx(0.1)


def test_who_waits_for_a_gil_that_nobody_has_waits_for_a_core() -> None:
    builder = TraceBuilder(duration_ns=100 * MS)
    a, b = (builder.add_thread(name) for name in "ab")
    for at in range(10):  # 1 ms with the GIL, of every 10, while the other waits for all of them
        start = at * 10 * MS
        add = builder.add_layer_event
        add(ChunkKind.GIL_HOLDS, thread=b, start_ns=start, end_ns=start + MS)
        add(ChunkKind.GIL_WAITS, thread=a, start_ns=start, end_ns=start + 10 * MS)
    builder.add_layer_event(ChunkKind.GIL_TOTALS, thread=a, waits=20, wait_ns=50 * MS)
    builder.add_layer_event(ChunkKind.GIL_TOTALS, thread=b, holds=10, held_ns=10 * MS)
    one = threads(builder)["a"]

    assert one.wait_s == pytest.approx(0.005)  # the same share of what was not recorded
    assert one.core_wait_s == pytest.approx(0.045)
    assert one.wait_each_s == pytest.approx(0.001)


@pytest.mark.parametrize(("cpu_ms", "share"), [(40, 0.8), (2, 0.1), (0, 0.1)])
def test_waiting_for_a_core_to_ask_for_the_gil_is_no_time_off_the_core_with_it(
    cpu_ms: int, share: float
) -> None:
    # It has the GIL for 50 of 500 ms. In the others it wakes to ask for it, late each time.
    builder = TraceBuilder(duration_ns=500 * MS)
    thread = builder.add_thread("a", cpu_ns=cpu_ms * MS)
    builder.add_layer_event(ChunkKind.GIL_TOTALS, thread=thread, held_ns=50 * MS, holds=10)
    for at, cpu, delay in ((10, 1, 0), (490, 46, 405)):
        builder.add_state(at * MS, thread, State.AWAITS_GIL, cpu_ns=cpu * MS, delay_ns=delay * MS)
    (one,) = threads(builder).values()

    assert one.on_core_share == pytest.approx(share)
    assert one.ran_each_s == pytest.approx(share * 0.005)


@pytest.mark.parametrize(("cpu_ms", "waited_s"), [(15, 0.09), (60, 0.0)])
def test_who_runs_only_with_the_gil_waits_for_it_without_a_core(
    cpu_ms: int, waited_s: float
) -> None:
    # Two threads have the GIL half of the time each; in the other half `a` is runnable. With more
    # CPU time than it had the GIL for, it ran something else meanwhile.
    builder = TraceBuilder(duration_ns=200 * MS)
    a = builder.add_thread("a", cpu_ns=cpu_ms * MS)
    b = builder.add_thread("b", cpu_ns=15 * MS)
    for at in range(200):
        owner = a if at // 10 % 2 else b
        builder.add_state(at * MS, a, State.RUNNABLE)
        builder.add_gil_sample(at * MS + 5000, owner)
    for thread, held_ms in ((a, 50), (b, 135)):
        builder.add_layer_event(
            ChunkKind.GIL_TOTALS, thread=thread, held_ns=held_ms * MS, holds=held_ms // 5
        )
    one = threads(builder)["a"]

    assert one.wait_s == pytest.approx(waited_s, abs=0.01)
    assert (one.native_s == 0.0) == (waited_s > 0)
