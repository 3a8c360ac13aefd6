"""Holds and spinning of programs that are not Python, as far as the trace tells them."""

from __future__ import annotations

from typing import Any

import pytest

from contention_lab.analysis.native_program import completed, is_native_program
from contention_lab.trace import Trace, TraceBuilder, parse

MS = 1_000_000


class Program:
    """Two threads and a mutex; times in milliseconds."""

    def __init__(self, implementation: str = "") -> None:
        python = {"implementation": implementation, "gil": False}
        self.builder = TraceBuilder(meta={"python": python}, duration_ns=100 * MS)
        self.threads = [self.builder.add_thread(name) for name in ("first", "second")]
        self.lock = self.builder.add_lock("pthread_mutex")
        self.sites = [self.builder.add_frame(name, "/bin/engine", 0) for name in ("put", "sweep")]

    def release(self, who: int, at_ms: float, since_ms: float | None = None) -> None:
        start = at_ms if since_ms is None else since_ms
        self.builder.add_hold(
            self.lock,
            self.threads[who],
            int(start * MS),
            int(at_ms * MS),
            site=self.sites[who],
            waiters=1,
        )

    def wait(self, who: int, start_ms: float, end_ms: float, **values: Any) -> None:
        times = int(start_ms * MS), int(end_ms * MS)
        self.builder.add_wait(self.lock, self.threads[who], *times, **values)

    def trace(self) -> Trace:
        return completed(parse(self.builder.bytes()))


def spans(trace: Trace) -> list[tuple[float, float]]:
    """Return the holds in milliseconds."""
    return [(hold["start_ns"] / MS, hold["end_ns"] / MS) for hold in trace.holds]


def test_a_hold_lasts_from_when_the_waiting_began() -> None:
    program = Program()
    program.wait(1, 10, 30)
    program.release(0, 30)

    assert spans(program.trace()) == [(10, 30)]


def test_a_hold_begins_after_the_last_release() -> None:
    program = Program()
    program.wait(1, 10, 50)
    program.release(0, 20)
    program.release(0, 40)

    assert spans(program.trace()) == [(10, 20), (20, 40)]


def test_a_hold_begins_after_another_thread_got_the_lock() -> None:
    program = Program()
    program.wait(0, 5, 60)
    program.wait(1, 10, 25)
    program.release(0, 40)

    assert spans(program.trace()) == [(25, 40)]


def test_who_is_let_in_before_the_release_is_noted_does_not_shorten_it() -> None:
    program = Program()
    program.wait(1, 10, 29.95)
    program.wait(0, 12, 31)
    program.release(0, 30)

    assert spans(program.trace()) == [(10, 30)]


def test_a_hold_that_nobody_waits_for_stays_without_length() -> None:
    program = Program()
    program.wait(1, 10, 20)
    program.release(0, 50)

    assert spans(program.trace()) == [(50, 50)]


def test_a_hold_with_a_known_start_stays() -> None:
    program = Program()
    program.wait(1, 10, 30)
    program.release(0, 30, since_ms=25)
    program.release(0, 40)

    assert spans(program.trace())[0] == (25, 30)


def test_a_holder_that_is_only_named_has_the_place_where_it_mostly_takes_the_lock() -> None:
    program = Program()
    program.wait(1, 10, 20, holder=program.threads[0])
    program.release(0, 50)
    trace = program.trace()

    assert trace.frames[int(trace.waits[0]["holder_site"])].function == "put"


def test_spinning_threads_share_the_cpu_with_all_that_run() -> None:
    program = Program()
    program.wait(0, 0, 60, spin_ns=60 * MS)
    program.wait(1, 0, 50, park_ns=50 * MS)
    program.builder.set_status(process_cpu_ns=75 * MS)  # of 150 ms that the two were not asleep
    trace = program.trace()

    assert trace.counters["spin_cpu_ns"].sum() == pytest.approx(30 * MS)
    assert trace.waits["spin_cpu_ns"].sum() == pytest.approx(30 * MS)


def test_a_python_program_is_left_alone() -> None:
    program = Program("CPython")
    program.wait(1, 10, 30)
    program.release(0, 30)
    trace = program.trace()

    assert not is_native_program(trace)
    assert spans(trace) == [(30, 30)]
