"""When whom the critical path is with, and native waits in it: hand-made traces, known shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from native_scene import MS, NativeScene

from contention_lab.analysis.critical_path import critical_path
from contention_lab.analysis.native_nesting import path_share
from contention_lab.diagnosis import diagnose
from contention_lab.trace import ChunkKind, Outcome, TraceBuilder, WaitKind, parse
from contention_lab.trace.layer_schema import NativeWaitFlag
from contention_lab.trace.native import NativeKind

if TYPE_CHECKING:
    from contention_lab.diagnosis.finding import Finding

STORE = "/usr/lib/libstore.so.1"


def stretches_of(builder: TraceBuilder) -> list[tuple[int, int, int]]:
    running = critical_path(parse(builder.bytes())).running
    columns = running.actor.tolist(), running.start_ns.tolist(), running.end_ns.tolist()
    return sorted(zip(*columns, strict=True), key=lambda stretch: stretch[1])


def program() -> tuple[TraceBuilder, int]:
    builder = TraceBuilder(duration_ns=1000)
    return builder, builder.add_thread("main", is_main=True, cpu_ns=1000)


def test_without_waits_it_is_with_the_main_thread_all_the_time() -> None:
    builder, main = program()
    builder.add_thread("other")
    assert stretches_of(builder) == [(main, 0, 1000)]


def test_without_anybody_it_is_with_nobody() -> None:
    assert stretches_of(TraceBuilder(duration_ns=1000)) == []


def test_it_is_with_the_holder_until_the_release_and_then_with_the_waiter() -> None:
    builder, main = program()
    other = builder.add_thread("other")
    lock = builder.add_lock()
    builder.add_hold(lock, other, 100, 500)
    builder.add_wait(lock, main, 200, 500, holder=other)
    assert stretches_of(builder) == [(other, 0, 500), (main, 500, 1000)]


def test_before_its_first_event_a_thread_is_whoever_started_it() -> None:
    builder, main = program()
    child = builder.add_thread("child", start_ns=300, end_ns=900)
    join = builder.add_lock("threading.Thread", name="child")
    builder.add_wait(join, main, 310, 900, kind=WaitKind.COORDINATION)
    assert stretches_of(builder) == [(main, 0, 300), (child, 300, 900), (main, 900, 1000)]


def test_a_wait_that_nobody_ended_is_no_running() -> None:
    builder, main = program()
    lock = builder.add_lock()
    other = builder.add_thread("other")
    builder.add_hold(lock, other, 0, 1000)
    builder.add_wait(lock, main, 100, 400, holder=other, outcome=Outcome.TIMED_OUT)
    assert stretches_of(builder) == [(main, 0, 100), (main, 400, 1000)]


def test_spans_are_cut_to_the_stretches_of_their_own_thread() -> None:
    builder, main = program()
    other = builder.add_thread("other")
    lock = builder.add_lock()
    for start in (0, 400):
        builder.add_hold(lock, other, start, start + 200)
        builder.add_wait(lock, main, start + 50, start + 200, holder=other)
    # other 0-200, main 200-450 (it waits from then on for other, who runs 200-600, too)
    running = critical_path(parse(builder.bytes())).running
    threads = np.array([other, main, main, 77])
    start, end = np.array([100, 0, 500, 0]), np.array([700, 100, 900, 1000])
    span, since, until = running.clipped(threads, start, end)
    parts = sorted(zip(span.tolist(), since.tolist(), until.tolist(), strict=True))
    assert parts == [(0, 100, 600), (2, 600, 900)]


class Joined(NativeScene):
    """The main thread waits for `late`, which ends last, and for `early`, which ends at 400 ms."""

    def __init__(self) -> None:
        super().__init__(duration_ms=1000)
        self.main = self.builder.add_thread("main", is_main=True, cpu_ns=0)
        self.early = self.builder.add_thread("early", end_ns=400 * MS)
        self.late = self.builder.add_thread("late", end_ns=1000 * MS)
        self.sweeper = self.builder.add_thread("sweeper")
        for name, end in (("early", 400), ("late", 1000)):
            join = self.builder.add_lock("threading.Thread", name=name)
            start = 0 if name == "early" else 400
            times = (start * MS + 1, end * MS)
            self.builder.add_wait(join, self.main, *times, kind=WaitKind.COORDINATION)
        self.store = self.lock(NativeKind.MUTEX, "store", STORE)
        self.native = self.native_stack(("store", STORE))
        self.put, self.sweep = self.stack("put", 7), self.stack("sweep", 20)

    def wait_for_sweeper(self, thread: int, start_ms: float, end_ms: float, flags: int = 0) -> None:
        values = {"stack": self.put, "native_stack": self.native, "flags": flags}
        self.wait(self.store, thread, start_ms, end_ms, holder=self.sweeper, **values)
        self.release(self.store, self.sweeper, end_ms, stack=self.sweep)

    def share(self) -> float | None:
        trace = self.trace()
        return path_share(trace, critical_path(trace), trace.native_waits[::2])


def test_native_waits_of_the_thread_that_ends_last_are_on_the_path() -> None:
    scene = Joined()
    scene.wait_for_sweeper(scene.late, 100, 350)
    scene.wait_for_sweeper(scene.late, 600, 700)
    assert scene.share() == pytest.approx(0.35)


def test_those_of_a_thread_that_was_done_long_before_are_not() -> None:
    scene = Joined()
    scene.wait_for_sweeper(scene.early, 0, 390)
    assert scene.share() == 0.0


def test_waiting_for_the_gil_of_one_that_waits_natively_is_the_native_locks() -> None:
    scene = Joined()
    scene.wait_for_sweeper(scene.sweeper, 200, 500, int(NativeWaitFlag.STACK_LATER))
    times = {"start_ns": 100 * MS, "end_ns": 450 * MS}
    scene.builder.add_layer_event(ChunkKind.GIL_WAITS, thread=scene.late, **times)
    assert scene.share() == pytest.approx(0.25)


def test_where_nobody_is_known_to_be_on_the_path_there_is_no_share() -> None:
    scene = NativeScene()
    store = scene.lock(NativeKind.MUTEX, "store", STORE)
    scene.wait(store, scene.thread("worker"), 0, 500)
    trace = scene.trace()
    assert path_share(trace, critical_path(trace), trace.native_waits) is None


def external(scene: Joined) -> Finding:
    [finding] = [one for one in diagnose(scene.trace()).findings if one.kind == "external-lock"]
    return finding


def test_the_share_of_the_path_is_the_severity_of_a_native_lock() -> None:
    scene = Joined()
    for at in range(0, 800, 10):
        scene.wait_for_sweeper(scene.late, at, at + 6)
    finding = external(scene)
    # 480 of 1000 ms, of the time of two threads a quarter.
    assert finding.evidence["wait_share"] == pytest.approx(0.24)
    assert finding.evidence["path_share"] == pytest.approx(0.48)
    assert finding.severity == pytest.approx(0.48)


def test_off_the_path_it_comes_after_a_lock_that_is_on_it() -> None:
    scene = Joined()
    for at in range(0, 390, 10):
        scene.wait_for_sweeper(scene.early, at, at + 9)
    catalog = scene.builder.add_lock("threading.Lock", name="catalog")
    get = scene.stack("get", 3)
    times = (100 * MS, 600 * MS)
    scene.builder.add_hold(catalog, scene.sweeper, *times, stack=get, waiters=1)
    scene.builder.add_wait(catalog, scene.late, *times, stack=get, holder=scene.sweeper)
    first, *_, last = diagnose(scene.trace()).findings
    assert first.lock is not None
    assert first.lock.name == "catalog"
    assert first.severity == pytest.approx(0.5)
    assert last.kind == "external-lock"
    assert last.evidence["path_share"] == 0.0
    assert last.severity < first.severity
