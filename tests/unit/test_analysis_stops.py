"""A process that is stopped for a while, and diagnosed as if it had not been."""

from __future__ import annotations

import pytest
from coordination_scene import MS, ChunkKind, Scene

from contention_lab.analysis.stops import stops, without_stops
from contention_lab.trace import WaitKind

STOP_MS = 3000


def program(
    *, stopped: bool = True, cpu_while_stopped: float = 0.0, busy: bool = False, beat_ms: int = 100
) -> tuple[Scene, int]:
    """Two threads that share a lock for two seconds; in the middle a hold, a wait and a stop."""
    late = STOP_MS if stopped else 0
    scene = Scene(2000.0 + late)
    lock = scene.lock("threading.Lock", 10)
    site = scene.stack(("work", 20))
    first, second = (scene.thread(f"thread {i}", end_ms=2000.0 + late) for i in range(2))
    builder = scene.builder
    for turn in range(100):
        at = turn * 20.0
        start, end = (ms + late * (ms > 1005.0) for ms in (at + 2.0, at + 8.0))
        scene.hold(lock, first, start, end, stack=site, waiters=1)
        scene.wait(
            *(lock, second, start + 4.5 + late * (start > 1e9), end, site),
            by=first,
            kind=WaitKind.CONTENTION,
        )
    for beat in range(1, 2000 // beat_ms + 1):
        ms = beat * beat_ms
        cpu = ms * 0.5 + STOP_MS * cpu_while_stopped * (ms > 1005)
        builder.add_layer_event(
            ChunkKind.STATUS,
            time_ns=(ms + late * (ms > 1005)) * MS,
            process_cpu_ns=int(cpu * MS),
        )
    if busy:
        scene.seen(first, site, 1100.0, 3900.0)
    return scene, lock


def test_a_stop_is_found_and_nothing_else_is_one() -> None:
    trace = program()[0].trace()
    found = stops(trace)

    assert len(found.start_ns) == 1
    assert found.total_ns == pytest.approx(STOP_MS * MS, rel=0.01)
    assert stops(program(stopped=False)[0].trace()).total_ns == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"cpu_while_stopped": 0.5},  # only the writer got no CPU
        {"busy": True},  # or could not write: the program went on
        {"beat_ms": 1000},  # or never reports often
    ],
)
def test_a_silent_recorder_alone_is_no_stop(changes: dict[str, float]) -> None:
    assert stops(program(**changes)[0].trace()).total_ns == 0  # type: ignore[arg-type]


def test_a_trace_without_its_stop_is_that_of_a_run_without_one() -> None:
    trace = program()[0].trace()
    short, plain = without_stops(trace, stops(trace)), program(stopped=False)[0].trace()

    for name in ("waits", "holds"):
        mine, theirs = getattr(short, name), getattr(plain, name)
        for column in ("start_ns", "end_ns"):
            assert mine[column].tolist() == pytest.approx(theirs[column].tolist(), abs=5 * MS)
    totals, expected = short.counters, plain.counters
    for name in ("wait_ns", "hold_ns", "max_wait_ns", "max_hold_ns"):
        assert totals[name].tolist() == pytest.approx(expected[name].tolist(), abs=5 * MS)
    assert short.duration_ns == pytest.approx(plain.duration_ns, abs=5 * MS)


def test_nobody_is_accused_of_what_lasted_only_because_of_a_stop() -> None:
    stopped, plain = program()[0].diagnosis(), program(stopped=False)[0].diagnosis()

    assert stopped.verdict == plain.verdict == "healthy"
    assert stopped.totals["stopped_s"] == pytest.approx(3.0, rel=0.01)
    assert any("the process was stopped" in line for line in stopped.not_seen)
    assert plain.totals["stopped_s"] == 0.0
    assert plain.not_seen == ()


def test_without_removing_the_stop_somebody_would_be_accused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from contention_lab.diagnosis import case_file

    monkeypatch.setattr(case_file, "without_stops", lambda trace, _stopped: trace)
    assert program()[0].diagnosis().verdict != "healthy"
